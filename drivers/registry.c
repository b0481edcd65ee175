/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of drivers. Tests: tests/unit/drivers/test-registry.c */
#include "drivers/registry.h"

#include <errno.h>
#include <string.h>

#include "drivers/driver-config.h"
#include "drivers/libvirt/domain.h"
#include "drivers/libvirt/driver.h"
#include "drivers/linux/driver.h"
#include "drivers/static-driver.h"

static const DriverOps *const drivers[] = {
        &libvirt_driver_ops,
        &linux_driver_ops,
        &static_driver_ops,
};

static const DriverOps *find_ops(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
                if (strcmp(drivers[i]->name, name) == 0)
                        return drivers[i];
        return NULL;
}

int driver_new(Driver **ret, const char *name, const DriverConfig *config, Driver *before,
               Error *reterr)
{
        const DriverOps *ops = find_ops(name);
        PollSource source;
        int r;

        if (!ops)
                return error_setf(reterr, ENOENT,
                                  "Unknown driver \"%.40s\". The drivers are %s, %s and %s", name,
                                  drivers[0]->name, drivers[1]->name, drivers[2]->name);
        r = driver_config_check(&config->host, reterr);
        if (r == 0)
                r = ops->open(config, &source, reterr);
        return r < 0 ? r : poll_thread_start(ret, ops->name, &source, before, reterr);
}

/* Parses libvirt's form, because only libvirt has a hook that passes the description of a guest. */
int driver_read_domain(const char *text, SnapshotDomain *ret, Error *reterr)
{
        return domain_parse(text, ret, reterr);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/driver.h"

#include <stdlib.h>

Driver *driver_free(Driver *driver)
{
        if (!driver)
                return NULL;
        driver->ops->done(driver);
        free(driver);
        return NULL;
}

int driver_get_fd(Driver *driver)
{
        return driver->ops->get_fd(driver);
}

int driver_poll(Driver *driver, DriverPollKind kind)
{
        return driver->ops->poll(driver, kind);
}

int driver_take(Driver *driver, DriverEvent *ret)
{
        return driver->ops->take(driver, ret);
}

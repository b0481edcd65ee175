/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests: tests/unit/drivers/test-registry.c */

#include "drivers/driver-words.h"

#include <string.h>

static const DriverWords of_libvirt = {
        "systemctl status libvirtd",
        "Check that libvirt runs (\"systemctl status libvirtd\", or virtqemud), that the user compute-agent is in the group libvirt, and that [libvirt] connection_uri is right",
};

static const DriverWords of_linux = {
        "journalctl -u compute-agent",
        "Check that /proc and /sys are as the kernel has them, and that the user compute-agent may read the file that is named",
};

static const DriverWords of_static = {
        "computectl doctor --config-only",
        "Check that the file that [static] path names is there, whole, and that the user compute-agent may read it",
};

const DriverWords *driver_words(const char *name)
{
        if (name && strcmp(name, "linux") == 0)
                return &of_linux;
        return name && strcmp(name, "static") == 0 ? &of_static : &of_libvirt;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests: tests/unit/drivers/test-registry.c */

#include "drivers/driver-words.h"

#include <string.h>

static const DriverWords of_libvirt = {
        "systemctl status libvirtd",
        "Check that libvirt runs (\"systemctl status libvirtd\", or virtqemud), that the user compute-agent is in the group libvirt, and that [libvirt] connection_uri is correct",
};

static const DriverWords of_linux = {
        "journalctl -u compute-agent",
        "Check that /proc and /sys are mounted, and that the user compute-agent can read the named file",
};

static const DriverWords of_static = {
        "computectl doctor --config-only",
        "Check that the file of [static] path exists and is complete, and that the user compute-agent can read it",
};

const DriverWords *driver_words(const char *name)
{
        if (name && strcmp(name, "linux") == 0)
                return &of_linux;
        return name && strcmp(name, "static") == 0 ? &of_static : &of_libvirt;
}

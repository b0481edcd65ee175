/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/node-device.h"
#include "tests/fuzz/fuzz.h"

void fuzz_text(const char *text)
{
        _cleanup_(node_device_done) NodeDevice device = { 0 };

        if (node_device_parse(text, &device, NULL) < 0)
                return;
        assert(device.kind < _NODE_DEVICE_KIND_MAX);
        if (device.kind == NODE_DEVICE_DEVICE)
                assert(device.device.name && device.device.vendor && device.device.product);
}

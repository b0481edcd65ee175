/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/vgpu-types.h"
#include "tests/fuzz/fuzz.h"

/* The first line is the file of the current type; the others are the file of the possible types. */
void fuzz_text(const char *text)
{
        _cleanup_(snapshot_device_done) SnapshotDevice device = { 0 };
        size_t length = strcspn(text, "\n");
        char *current = strndup(text, length);

        assert(current);
        assert(vgpu_types_parse(text + length, current, &device) == 0);
        for (size_t i = 0; i < device.n_mdev_types; i++) {
                const MdevType *type = &device.mdev_types[i];

                assert(strncmp(type->id, "nvidia-", 7) == 0);
                assert(type->available_instances + type->created_instances <= 1);
        }
        free(current);
}

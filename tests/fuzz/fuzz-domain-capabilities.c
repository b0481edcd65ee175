/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/capabilities.h"
#include "drivers/tree/host-traits.h"
#include "tests/fuzz/fuzz.h"

static int check_trait(const char *trait, int state, void *userdata)
{
        assert(resource_class_valid(trait));
        return 0;
}

void fuzz_text(const char *text)
{
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };
        const HostConfig config = { .swtpm_enabled = true };
        char arch[] = "x86_64";

        if (domain_capabilities_parse(text, &emulator, NULL) < 0)
                return;
        assert(emulator.arch[0]); /* other kinds of hypervisor need no name for their machine */
        (void)host_traits_visit(
                &config, &(Snapshot){ .arch = arch, .emulators = &emulator, .n_emulators = 1 },
                check_trait, NULL);
}

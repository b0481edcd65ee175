/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How many guests with encrypted memory the host may have: SEV, from the kernel's controller. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/linux/reader.h"

/* "sev 410\nsev_es 99\n": what the kernel's controller of such resources has, which is what libvirt
 * reckons from CPUID. */
static int parse_capacity(char *text, SnapshotEmulator *emulator)
{
        char *state = NULL;

        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                char name[32], rest;
                uint64_t n;

                if (sscanf(line, "%31s %19" SCNu64 "%c", name, &n, &rest) != 2 || n > INT64_MAX)
                        return -EBADMSG;
                if (strcmp(name, "sev") == 0)
                        emulator->sev_max_guests = n;
                else if (strcmp(name, "sev_es") == 0)
                        emulator->sev_es_max_guests = n;
        }
        emulator->sev = emulator->sev_max_guests > 0;
        emulator->sev_es = emulator->sev_es_max_guests > 0;
        return 0;
}

/* Contexts of SEV-ES are those of SEV-SNP where KVM has that. */
static int read_snp(LinuxReader *reader, SnapshotEmulator *emulator, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = sysfs_read(linux_path(reader, "module/kvm_amd/parameters/sev_snp"), &text);

        if (r < 0)
                return linux_note(reader, r, reterr);
        emulator->sev_snp = emulator->sev_es && (text[0] == 'Y' || text[0] == '1');
        return 0;
}

int linux_read_encryption(LinuxReader *reader, Error *reterr)
{
        Snapshot *snapshot = reader->snapshot;
        SnapshotEmulator emulator = { 0 };
        _cleanup_free_ char *text = NULL;
        int r = sysfs_read(linux_path(reader, "fs/cgroup/misc.capacity"), &text);

        snapshot->emulators_incomplete = true;
        if (r == 0)
                r = parse_capacity(text, &emulator);
        if (r < 0)
                return linux_note(reader, r, reterr);
        if (!emulator.sev)
                return 0;
        if ((r = read_snp(reader, &emulator, reterr)) < 0)
                return r;
        emulator.arch = strdup(snapshot->arch);
        emulator.machine = strdup("");
        snapshot->emulators = calloc(1, sizeof(SnapshotEmulator));
        if (!emulator.arch || !emulator.machine || !snapshot->emulators) {
                snapshot_emulator_done(&emulator);
                return error_oom(reterr);
        }
        snapshot->emulators[snapshot->n_emulators++] = emulator;
        return 0;
}

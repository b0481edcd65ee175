/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's XML of what a host is and what its guests may have. Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

/* Reads the architecture, CPU model and NUMA cells of the host from the capabilities. It judges
 * nothing: sparse cell ids, cells without CPUs or memory, a CPU in two cells and a host without
 * cells are read as they are. The snapshot has none of it yet; what was read before a failure stays
 * there. A missing text is "". -EBADMSG with words, -ENOMEM. */
int capabilities_parse(const char *text, Snapshot *snapshot, Error *reterr);

/* An architecture for which there is an emulator. */
typedef struct GuestEmulator {
        char *arch;
        char *path;         /* "/usr/bin/qemu-system-x86_64", "" when not given */
        StringSet machines; /* short names that stand for the newest of a kind: "pc", "q35" */
} GuestEmulator;

/* The parts of the capabilities that do not change while libvirt runs: the host's CPU in full, and
 * the emulators. */
typedef struct GuestCapabilities {
        char *cpu_arch, *cpu_model, *cpu_vendor; /* "" when not given */
        StringSet cpu_features;                  /* beside those that the model has anyway */
        GuestEmulator *emulators;
        size_t n_emulators;
} GuestCapabilities;

void guest_capabilities_done(GuestCapabilities *capabilities);

/* Reads these parts. domain_type ("kvm", "qemu") chooses the emulator where an architecture has
 * several. -EBADMSG with words, -ENOMEM. */
int guest_capabilities_parse(const char *text, const char *domain_type, GuestCapabilities *ret,
                             Error *reterr);

/* Reads what guests of one architecture and machine type may have from the domain capabilities. The
 * caller frees ret with snapshot_emulator_done(). -EBADMSG with words, -ENOMEM. */
int domain_capabilities_parse(const char *text, SnapshotEmulator *ret, Error *reterr);

/* Formats the XML of a model of that architecture with these features beside it; vendor and
 * features may be NULL. NULL when out of memory, and when a name is none that XML or libvirt could
 * have. */
char *cpu_model_format(const char *arch, const char *model, const char *vendor,
                       const StringSet *features);

/* Adds the names of the features of such XML to ret. -EBADMSG with words, -ENOMEM. */
int cpu_model_read_features(const char *text, StringSet *ret, Error *reterr);

/* Applies [libvirt] cpu_model_extra_flags: "+x" and "x" add a feature, "-x" takes it away. -ENOMEM.
 */
int cpu_model_apply_flags(char *const flags[], StringSet *features);

/* Returns the model that guests of that architecture have with cpu_mode = none, or NULL. */
const char *cpu_model_of_arch(const char *arch);

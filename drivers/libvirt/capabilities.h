/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses libvirt's XML about a host and the abilities of its guests. Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

/* Reads the architecture, CPU model and NUMA cells of the host from the capabilities. It accepts
 * cell ids with gaps, cells without CPUs or memory, a CPU in two cells, and a host without
 * cells. The snapshot must have none of these members yet. After a failure it has those that
 * were read before. A missing text is "". -EBADMSG with an error text, -ENOMEM. */
int capabilities_parse(const char *text, Snapshot *snapshot, Error *reterr);

/* An architecture with an emulator. */
typedef struct GuestEmulator {
        char *arch;
        char *path;         /* "/usr/bin/qemu-system-x86_64"; "" if missing */
        StringSet machines; /* short names of the newest machine types: "pc", "q35" */
} GuestEmulator;

/* The parts of the capabilities that stay the same while libvirt runs: the full CPU of the host,
 * and the emulators. */
typedef struct GuestCapabilities {
        char *cpu_arch, *cpu_model, *cpu_vendor; /* "" if missing */
        StringSet cpu_features;                  /* features beyond those of the model */
        GuestEmulator *emulators;
        size_t n_emulators;
} GuestCapabilities;

void guest_capabilities_done(GuestCapabilities *capabilities);

/* Reads these parts. domain_type ("kvm", "qemu") selects the emulator of an architecture with
 * several ones. The caller frees ret with guest_capabilities_done(). -EBADMSG with an error
 * text, -ENOMEM. */
int guest_capabilities_parse(const char *text, const char *domain_type, GuestCapabilities *ret,
                             Error *reterr);

/* Reads the domain capabilities of one architecture and machine type. The caller frees ret with
 * snapshot_emulator_done(). -EBADMSG with an error text, -ENOMEM. */
int domain_capabilities_parse(const char *text, SnapshotEmulator *ret, Error *reterr);

/* Formats the XML of a CPU model with these additional features. vendor and features can be NULL.
 * The caller frees *ret. -ENOMEM, or -EINVAL if arch, model or a feature is empty or has a
 * character that libvirt's names cannot have. Such a vendor is left out. */
int cpu_model_format(const char *arch, const char *model, const char *vendor,
                     const StringSet *features, char **ret);

/* Adds the names of the features in such XML to ret, except those with the policy "disable" or
 * "forbid". Errors are -EBADMSG with an error text and -ENOMEM; ret can then have some of them. */
int cpu_model_read_features(const char *text, StringSet *ret, Error *reterr);

/* Applies [libvirt] cpu_model_extra_flags: "+x" and "x" add a feature, "-x" removes it. Upper case
 * becomes lower case. -ENOMEM. */
int cpu_model_apply_flags(char *const flags[], StringSet *features);

/* Returns the CPU model of guests of this architecture with cpu_mode = none, or NULL. */
const char *cpu_model_of_arch(const char *arch);

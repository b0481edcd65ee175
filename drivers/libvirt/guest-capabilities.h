/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of libvirt's capabilities XML that do not change while libvirt runs: the host's CPU in
 * full, and for which architectures and machine types there is an emulator. Pure: text in, struct
 * out. */

#include "drivers/host/snapshot.h"

typedef struct GuestEmulator {
        char *arch;
        char *path;         /* "/usr/bin/qemu-system-x86_64", "" when not given */
        StringSet machines; /* short names that stand for the newest of a kind: "pc", "q35" */
} GuestEmulator;

typedef struct GuestCapabilities {
        char *cpu_arch, *cpu_model, *cpu_vendor; /* "" when not given */
        StringSet cpu_features;                  /* beside those that the model has anyway */
        GuestEmulator *emulators;
        size_t n_emulators;
} GuestCapabilities;

void guest_capabilities_done(GuestCapabilities *capabilities);

/* domain_type ("kvm", "qemu") chooses the emulator where an architecture has several. -EBADMSG with
 * words, -ENOMEM. */
int guest_capabilities_parse(const char *text, const char *domain_type, GuestCapabilities *ret,
                             Error *reterr);

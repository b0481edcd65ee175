/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an operator took out of use: the host, by the trait COMPUTE_STATUS_DISABLED on its provider
 * (facts A17), or a device, by reserving all that its provider has. Kept with who, when and why in
 * "cordon.json" of state_dir, so that neither a restart nor what others write in Placement ends
 * it.
 *
 * What stood there before comes back when the cordon is lifted: a trait that somebody else set
 * stays, a device has reserved what it would have reserved. A lifted cordon is forgotten once a
 * tree that was read from Placement shows that it is gone. Main thread; blocks on the disk. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "report/session/nova-mode.h"

#define CORDON_TRAIT    "COMPUTE_STATUS_DISABLED"
#define CORDON_TEXT_MAX 255 /* bytes of a reason */

typedef struct Cordon Cordon;

/* read_only: never write the file (--dry-run). -ENOMEM. */
int cordon_new(Cordon **ret, const char *state_dir, bool read_only);
Cordon *cordon_free(Cordon *cordon);
DEFINE_CLEANUP(Cordon *, cordon_free);

/* From now on, once it is on disk. device: "" for the host, else the name or uuid of its provider,
 * libvirt's name or the PCI address; tree has it (NULL: not looked at). Once more only changes who,
 * when and why. -ENODEV, -EINVAL or what the disk says, with words; -ENOMEM. */
int cordon_set(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
               const char *reason, const char *who, uint64_t now_usec, Error *reterr);

/* By any name of the device. -ENOENT with words when it is not cordoned, -EINVAL for a host that is
 * retired; else as above. */
int cordon_lift(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
                Error *reterr);

/* A mark on the host's cordon, which is kept with it: nothing is reported to Placement (computectl
 * retire). -ENOENT with words for a host that is not cordoned; else as above. */
int cordon_set_retired(Cordon *cordon, bool retired, Error *reterr);

/* Takes what cordons did to devices off a tree, before anybody else edits it: what driver and
 * device ledger then do, and learn from it, is not mixed up with it. known: the tree is what
 * Placement holds; else nothing is remembered. */
void cordon_clear(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known);

/* Puts it on, after all of them. -ENOMEM. */
int cordon_apply(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known, Error *reterr);

/* The words are borrowed until the next change. */
typedef struct CordonView {
        const char *host;    /* why the host takes no claim; NULL: it does */
        const char *devices; /* which devices take none, and why; NULL: all do */
        size_t n_devices;
        bool is_retired; /* see cordon_set_retired() */
} CordonView;

CordonView cordon_view(const Cordon *cordon);

/* Returns true if Nova leaves the reserved amount of the provider as it finds it. It does so for
 * PCI devices that are given whole, whose providers are named after host and address
 * ("host1_0000:81:00.0"): of these it writes total and max_unit alone (facts C7). Of all other
 * classes it writes reserved itself. */
bool nova_keeps_reserved(const ProviderTree *tree, const Uuid *root, const Provider *provider);

/* What it takes to cordon this one: NOVA_ACTION_CORDON_… */
NovaAction cordon_action(const ProviderTree *tree, const Uuid *root, const char *device);

/* Is this provider out of use: the host's own, or a device's? tree has it. */
bool cordon_covers(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                   const Uuid *provider);

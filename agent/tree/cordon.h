/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps cordons: orders of an operator, or of a health rule, to take the host or a device out of
 * use. A cordoned host has the trait COMPUTE_STATUS_DISABLED on its provider (facts A17). A
 * cordoned device has all capacity of its provider reserved. "cordon.json" of state_dir has each
 * cordon with its author, time and reason. A restart, or another writer in Placement, therefore
 * does not end it. A cordon of the host does not cordon its devices.
 *
 * A device of a set ([device_shapes NAME]) has no provider of its own. Its cordon withholds this
 * device alone: the driver computes what the set still offers (drivers/tree/shape-providers.h).
 *
 * A lifted cordon restores the earlier state: a trait that another writer had set before stays, and
 * a device gets the reserved amount that it would have. A trait that another writer sets or removes
 * during the cordon is removed with it. The entry is removed once a tree that was read from
 * Placement shows no effect of the cordon.
 *
 * A cordon of a device belongs to a person or to a health rule (agent/health/rule.h). A rule never
 * changes a cordon of a person, and takes over one of another rule only if its own is harder to
 * lift (agent/health/judge.h). A person can take over and lift the cordon of any rule. The last
 * 1024 times at which a person lifted the cordon of a device are kept, because older evidence must
 * not cordon the device again. Main thread; blocks on the disk. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "drivers/host/host-config.h"
#include "report/session/nova-mode.h"

#define CORDON_TRAIT    "COMPUTE_STATUS_DISABLED"
#define CORDON_TEXT_MAX 255 /* length of a reason, in bytes */

typedef struct Cordon Cordon;

/* The health rule that a cordon belongs to. The texts are borrowed. */
typedef struct CordonRule {
        const char *name;    /* "": the cordon belongs to a person */
        const char *lift;    /* event that ends it, besides a person: health_lift_to_text() */
        const char *boot_id; /* boot of the host whose evidence made it */
} CordonRule;

/* The cordon of a device now. */
typedef struct CordonState {
        bool cordoned;
        CordonRule rule;      /* if cordoned */
        uint64_t lifted_usec; /* CLOCK_REALTIME when a person lifted a cordon last; 0: never */
} CordonState;

/* Loads the cordons. A damaged file is logged as an error. There are no cordons then. A damaged
 * entry is logged and left out. read_only: later changes are not written (--dry-run), and a damaged
 * file is not set aside. Returns a negative errno with words if the file cannot be read, because a
 * later write would replace it. */
int cordon_new(Cordon **ret, const char *state_dir, bool read_only, Error *reterr);
Cordon *cordon_free(Cordon *cordon);
DEFINE_CLEANUP(Cordon *, cordon_free);

/* Sets the configuration whose sets have devices that can be cordoned without a provider. It is
 * borrowed until the next call or cordon_free(). Without a call there are no sets. */
void cordon_set_host(Cordon *cordon, const HostConfig *host);

/* Returns true if a cordon that is not lifted names this PCI address, which is that of a device of
 * a set. */
bool cordon_has_member(const Cordon *cordon, const char *address);

/* Cordons the host or a device, and returns after the write of the file (state_file_write()),
 * unless read_only. device: "" for the host, else the name or uuid of its provider, libvirt's name
 * or the PCI address. The device must be in tree or in a set. tree can be NULL for the host. who is
 * the author. rule: the health rule that then owns the cordon of a device; NULL: a person owns it.
 * A call for a cordoned device changes only owner, author, time and reason; so a person takes over
 * the cordon of a rule. For a rule, the caller ensures that no person owns it (cordon_get_state()).
 * now_usec is CLOCK_REALTIME. Returns -ENODEV, -EINVAL (also for a reason above CORDON_TEXT_MAX) or
 * the error of the disk, with words, or -ENOMEM. The cordon is then not set, unless memory was
 * short after the write. */
int cordon_set(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
               const char *reason, const char *who, const CordonRule *rule, uint64_t now_usec,
               Error *reterr);

/* Lifts a cordon, by any name of the device. rule NULL: for a person, and notes now_usec
 * (CLOCK_REALTIME) for a device; returns -ENOENT with words if it is not cordoned, -EINVAL for a
 * host that is retired. Otherwise lifts only a cordon of the health rule of this name, and returns
 * 0 if there is none. Returns 1 if the cordon was lifted. Other errors are those of cordon_set().
 */
int cordon_lift(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
                const char *rule, uint64_t now_usec, Error *reterr);

/* Returns the name of a device with a cordon of a rule that the next boot ends (CordonRule.lift),
 * and that was made in another boot than boot_id. NULL: there is none. Borrowed until the next
 * change; *ret_rule likewise. */
const char *cordon_find_of_other_boot(const Cordon *cordon, const char *boot_id,
                                      CordonRule *ret_rule);

/* Returns the state of a device, by any of its names. The texts are borrowed until the next
 * change. */
CordonState cordon_get_state(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                             const char *device);

/* Returns the name by which the device at the PCI address can be cordoned, borrowed. It is the
 * address if that has a provider below root or is in a set. Otherwise it is "card", the address of
 * the device's physical function or "", if that has a provider. NULL: neither. */
const char *cordon_find_name(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                             const char *address, const char *card);

/* Sets or clears the retired mark of the host's cordon. While it is set, nothing is reported to
 * Placement (computectl retire). Returns -ENOENT with words for a host that is not cordoned. Other
 * errors are those of cordon_set(). */
int cordon_set_retired(Cordon *cordon, bool retired, Error *reterr);

/* Restores the known reserved amounts of cordoned devices in a tree, before the driver and the
 * device ledger edit it. So neither of them takes a cordon's reservation for one of its own.
 * Removes the entries of lifted device cordons that have no effect in the tree any more. known: the
 * tree is Placement's; otherwise no entry is removed or stored. */
void cordon_clear(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known);

/* Applies the cordons to a tree, after the driver and the device ledger. Removes the trait of a
 * lifted host cordon, unless another writer had set it before. known: as for cordon_clear(). A
 * failed write of the file is logged once, and repeated with the next known tree. Until it
 * succeeds, a new cordon of the host does not set the trait in known trees. Returns -ENOMEM on
 * failure. */
int cordon_apply(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known, Error *reterr);

/* The cordons in words, which are borrowed until the next change. */
typedef struct CordonView {
        const char *host;    /* reason why the host takes no claim; NULL: not cordoned */
        const char *devices; /* cordoned devices with their reasons; NULL: none */
        size_t n_devices;
        const char *by_persons, *by_rules; /* parts of devices by their owners; NULL: none */
        size_t n_by_rules;
        bool is_retired; /* see cordon_set_retired() */
} CordonView;

CordonView cordon_view(const Cordon *cordon);

/* Returns true if Nova does not write the reserved amount of the provider. This holds for a
 * provider of PCI devices. Such a provider is named after host and address ("host1_0000:81:00.0").
 * Nova writes only its total and max_unit (facts C7), but writes the reserved amounts of all other
 * providers. */
bool nova_keeps_reserved(const ProviderTree *tree, const Uuid *root, const Provider *provider);

/* Returns the permission that cordoning this device needs: NOVA_ACTION_CORDON_… */
NovaAction cordon_action(const ProviderTree *tree, const Uuid *root, const char *device);

/* Returns true if this provider, which is in tree, has a cordon that is not lifted: that of the
 * host, or that of a device. */
bool cordon_covers(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                   const Uuid *provider);

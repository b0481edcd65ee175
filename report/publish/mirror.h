/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The mirror: what Placement holds for one tree, as far as we have read or written it.
 *
 * For each provider it has the generation that its inventories, traits and aggregates belong to,
 * and beside the tree the names that Placement is known to have. A provider is stale when it must
 * be read again. Plain data; it sends nothing.
 *
 * Providers of other trees that share with this one through aggregates are no part of it, because
 * nothing of them is ever written: sharing.h says when they are read.
 *
 * A refresh works on a copy (mirror_make_next) that takes the mirror's place when every read went
 * well, so that a failed refresh changes nothing of it; the next one goes on from the copy.
 *
 * LIMITATIONS: aggregates written with a microversion below 1.19 leave the generation as it is, and
 * are seen with the provider's next change only. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "report/placement/answer.h"

/* Of mirror_read(): another writer changed the provider between the reads, so all parts must be
 * read again. */
#define MIRROR_TORN 1

/* Names that need not be asked for or made again. */
typedef struct MirrorNames {
        StringSet known_classes, known_traits;
        StringSet missing_traits; /* that Placement lacked when it was asked */
} MirrorNames;

typedef struct Mirror Mirror;

int mirror_new(Mirror **ret);
Mirror *mirror_free(Mirror *mirror);
DEFINE_CLEANUP(Mirror *, mirror_free);

/* Borrowed; valid until the mirror changes or is freed. A reference to it (provider_tree_ref())
 * keeps it as it is: the mirror then changes a copy. It includes stale providers as they were last
 * read. */
const ProviderTree *mirror_get_tree(const Mirror *mirror);
const MirrorNames *mirror_get_names(const Mirror *mirror);

/* -1 when the provider is unknown or stale. */
int64_t mirror_get_generation(const Mirror *mirror, const Uuid *provider);

/* Checks whether the mirror has exactly these providers, and none is stale. */
bool mirror_is_current(const Mirror *mirror, const PlacementProviders *providers);

/* Makes a mirror of these providers (parents first). A provider that this mirror, or else partial
 * (NULL: none), has in the same generation is copied; the others are stale. -EBADMSG, -ENOMEM. */
int mirror_make_next(const Mirror *mirror, const Mirror *partial,
                     const PlacementProviders *providers, Mirror **ret, Error *reterr);

/* Lists the uuids of stale providers in an array that the caller frees. -ENOMEM. */
int mirror_list_stale(const Mirror *mirror, Uuid **ret, size_t *ret_n);

/* Checks whether a provider or the list was forgotten and not read since. */
bool mirror_has_stale(const Mirror *mirror);

/* Takes the answer to a read of a stale provider, which stays stale until all its parts have one
 * generation. MIRROR_TORN, -EBADMSG, -ENOMEM. */
int mirror_read(Mirror *mirror, const Uuid *provider, PlacementPart part, const json_t *body,
                Error *reterr);

/* Adds a provider that was created, without parts. -ENOMEM. */
int mirror_add(Mirror *mirror, const Provider *provider, int64_t generation);

/* Takes one part of a provider that was written. -ENOENT, -ENOMEM; the provider is stale then. */
int mirror_write(Mirror *mirror, const Provider *written, PlacementPart part, int64_t generation);

/* Takes the parent of a provider that was moved. The provider is stale if its generation differs
 * (another writer), and after -ENOENT, -ELOOP and -ENOMEM. */
int mirror_move(Mirror *mirror, const Provider *moved, int64_t generation);

/* Removes a provider with all below it. */
void mirror_remove(Mirror *mirror, const Uuid *provider);

/* Makes a provider stale. For one that is unknown, and for NULL (any of them), the list of
 * providers must be read again: its generations show which ones changed. */
void mirror_forget(Mirror *mirror, const Uuid *provider);

/* Makes every provider stale, whatever its generation, and forgets every name. */
void mirror_forget_all(Mirror *mirror);

/* Forgets every name: Placement lacks one that was known. */
void mirror_forget_names(Mirror *mirror);

/* Forgets the traits that Placement lacked: an upgrade can have added them. */
void mirror_forget_missing_traits(Mirror *mirror);

/* Notes that Placement has the class, or that it has or lacks the trait. -ENOMEM. */
int mirror_learn_class(Mirror *mirror, const char *name);
int mirror_learn_trait(Mirror *mirror, const char *name, bool exists);

/* Lists the traits of desired that are not known to exist or to be missing. If there are any, the
 * list includes those that Placement lacked earlier: an upgrade can have added them. ret must be
 * initialised. -ENOMEM. */
int mirror_list_unknown_traits(const Mirror *mirror, const ProviderTree *desired, StringSet *ret);

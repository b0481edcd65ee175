/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The mirror: the content of Placement for one tree, as far as the agent has read or written it.
 *
 * For each provider it has the generation of its inventories, traits and aggregates. Besides the
 * tree it has the names that Placement is known to have or to lack. A provider is stale if it must
 * be read again. Plain data; it sends nothing.
 *
 * Providers of other trees that share with this tree through aggregates are not included, because
 * the agent never changes these providers: see sharing.h.
 *
 * A refresh of providers works on a copy (mirror_make_next()), which replaces the mirror when every
 * read has succeeded. A refresh that fails leaves the tree of the mirror unchanged, and the next
 * one continues with the copy.
 *
 * A provider that was deleted and created again can have the old generation. Then the list has
 * another last-modified than the list that the mirror remembers.
 *
 * LIMITATIONS: last-modified has whole seconds. So a provider that is created again in the second
 * of its last write is not noticed before the next full read. Aggregates written with a
 * microversion below 1.19 do not raise the generation. They are seen only with the next change of
 * the provider. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "report/placement/answer.h"
#include "report/placement/request.h"

/* Result of mirror_read(): another writer changed the provider between the reads, so all parts must
 * be read again. */
#define MIRROR_TORN 1

/* Names that were looked up, read or created. */
typedef struct MirrorNames {
        StringSet known_classes, known_traits;
        /* Names that Placement lacked at the last look-up. */
        StringSet missing_classes, missing_traits;
} MirrorNames;

/* The mirror. Only mirror.c changes the members; others read tree, names and list. */
typedef struct Mirror {
        ProviderTree *tree; /* valid until the mirror changes or is freed. A reference
                               (provider_tree_ref()) keeps it unchanged, because the mirror then
                               changes a copy. A stale provider has old, partly read or no contents
                               there. */
        MirrorNames names;
        const PlacementSeen *list;   /* the list that shows exactly the generations of the mirror;
                                        NULL: unknown. Each change of the mirror that can make them
                                        differ forgets it. */
        PlacementSeen seen;          /* storage of list */
        bool list_is_stale;          /* the list of providers must be read */
        struct MirrorEntry *entries; /* one for each provider of the tree, sorted by uuid */
        size_t n_entries, n_allocated;
} Mirror;

int mirror_new(Mirror **ret);
Mirror *mirror_free(Mirror *mirror);
DEFINE_CLEANUP(Mirror *, mirror_free);

/* Returns the generation, -1 if the provider is unknown or stale. */
int64_t mirror_get_generation(const Mirror *mirror, const Uuid *provider);

/* Checks whether the mirror has exactly these providers, with these generations, names and parents,
 * and neither one of them nor the list is stale. */
bool mirror_is_current(const Mirror *mirror, const PlacementProviders *providers);

/* Notes the list that the mirror has just been compared with or made from. Then no provider is
 * new. */
void mirror_set_list(Mirror *mirror, const PlacementSeen *seen);

/* Makes a mirror of these providers (parents first). The contents of a provider that this mirror
 * has in the same generation are copied, else those of one that partial (NULL: none) has. All
 * others are stale and empty. -ENOMEM, or an error of provider_tree_add(). */
int mirror_make_next(const Mirror *mirror, const Mirror *partial,
                     const PlacementProviders *providers, Mirror **ret, Error *reterr);

/* Lists the uuids of stale providers in an array that the caller frees. -ENOMEM. */
int mirror_list_stale(const Mirror *mirror, Uuid **ret, size_t *ret_n);

/* Checks whether a provider or the list must be read again. */
bool mirror_has_stale(const Mirror *mirror);

/* Stores the answer to a read of a stale provider, which stays stale until all its parts have one
 * generation. MIRROR_TORN, -EBADMSG, -ENOMEM. */
int mirror_read(Mirror *mirror, const Uuid *provider, PlacementPart part, const json_t *body,
                Error *reterr);

/* Adds a provider that was created, without parts. The provider is new until the next refresh that
 * succeeds or mirror_clear_new(). -ENOMEM, or an error of provider_tree_add(). */
int mirror_add(Mirror *mirror, const Provider *provider, int64_t generation);

/* Checks whether mirror_add() added the provider since the last refresh and mirror_clear_new(). */
bool mirror_is_new(const Mirror *mirror, const Uuid *provider);

/* Notes that no provider is new, for example after a reshape of allocations. */
void mirror_clear_new(Mirror *mirror);

/* Stores one part of a provider that was written. The provider is stale after -ENOMEM; -ENOENT if
 * it is unknown. */
int mirror_write(Mirror *mirror, const Provider *written, PlacementPart part, int64_t generation);

/* Stores the new parent of a provider. The provider is stale if its generation differs (another
 * writer), and after -ENOENT (unknown parent or provider), -ELOOP or -ENOMEM. */
int mirror_move(Mirror *mirror, const Uuid *moved, const Uuid *parent, int64_t generation);

/* Removes a provider and its descendants. If memory runs out, the provider becomes stale instead.
 */
void mirror_remove(Mirror *mirror, const Uuid *provider);

/* Makes a provider stale. For NULL, and for an unknown provider, the list of providers must be read
 * again, whose generations show the changes. */
void mirror_forget(Mirror *mirror, const Uuid *provider);

/* Makes every provider stale, also if the list shows its generation. */
void mirror_forget_generations(Mirror *mirror);

/* Forgets the names that Placement lacked, because an upgrade or another client can have added
 * them. With also_known, because Placement lacks one that was known, forgets every name. */
void mirror_forget_names(Mirror *mirror, bool also_known);

/* Notes that Placement has or lacks a name of that part: a trait, or a class of inventories.
 * -ENOMEM. */
int mirror_learn(Mirror *mirror, PlacementPart part, const char *name, bool exists);

/* Lists the valid traits and the custom classes of desired that are neither known to exist nor
 * known to be missing. If a list has any, it also has those that Placement lacked earlier, because
 * an upgrade can have added them. Standard classes are not listed, because they cannot be created.
 * Both lists must be initialised. -ENOMEM. */
int mirror_list_unknown(const Mirror *mirror, const ProviderTree *desired, StringSet *ret_traits,
                        StringSet *ret_classes);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Asks Placement which traits it has, and gives them to the mirror. */

#include "report/publish/mirror.h"
#include "report/session/session.h"

/* The traits of desired of which it is not known whether Placement has them. If there are any,
 * those that it lacked when it was asked before are among them again: the service may have been
 * upgraded. ret must be initialised. -ENOMEM. */
int trait_lookup_list(const ProviderTree *desired, const MirrorNames *names, StringSet *ret);

typedef struct TraitLookup TraitLookup;

/* As for RefreshDone. */
typedef void (*TraitLookupDone)(int result, const Error *error, void *userdata);

/* One GET for as many names as fit into a path, one after the other. The names are copied, the rest
 * is borrowed; there must be at least one name. -ENOMEM. */
int trait_lookup_new(TraitLookup **ret, Session *session, Mirror *mirror, const StringSet *names,
                     TraitLookupDone done, void *userdata, Error *reterr);

/* Cancels what is under way. */
TraitLookup *trait_lookup_free(TraitLookup *lookup);
DEFINE_CLEANUP(TraitLookup *, trait_lookup_free);

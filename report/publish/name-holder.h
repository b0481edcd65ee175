/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The provider that has a name which this host needs. Names are unique in Placement (facts E3), and
 * its rejection alone does not show what the operator can do. Pure. */

#include "base/error.h"
#include "report/placement/answer.h"

typedef struct NameHolder {
        Uuid uuid;
        bool root;             /* the root of its tree, so probably a host */
        bool counted;          /* n_consumers is known */
        size_t n_consumers;    /* number of consumers with allocations of it */
        uint64_t modified_sec; /* since the epoch; 0: unknown */
} NameHolder;

/* Makes the holder from the provider that was found by its name. */
static inline NameHolder name_holder_from(const PlacementProvider *provider, uint64_t modified_sec)
{
        return (NameHolder){
                .uuid = provider->uuid,
                .root = uuid_empty(&provider->parent),
                .modified_sec = modified_sec,
        };
}

/* Counts the consumers in the answer to GET /resource_providers/{uuid}/allocations. -EBADMSG with
 * words leaves the holder uncounted. */
int name_holder_count(NameHolder *holder, const json_t *body, Error *reterr);

/* Checks whether the holder certainly has no allocations. Otherwise it can be another running host,
 * so no message must advise to adopt its uuid or to delete it. */
static inline bool name_holder_is_empty(const NameHolder *holder)
{
        return holder->counted && holder->n_consumers == 0;
}

/* Writes a text such as "3 consumers have allocations of it, last changed 2025-01-06 12:00 UTC".
 * The time is left out if it is unknown. */
void name_holder_describe(const NameHolder *holder, char *text, size_t size);

/* Writes a message with the possible solutions. wants_root: the name is for the root of this host,
 * and the holder can be an older root of this host. Returns -EEXIST. */
int name_holder_explain(const NameHolder *holder, bool wants_root, Error *reterr);

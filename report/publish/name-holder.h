/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who has a name in Placement that this host needs: names are unique there (facts E3), and the
 * refusal alone does not say what to do. Pure. */

#include "base/error.h"
#include "report/placement/answer.h"

typedef struct NameHolder {
        Uuid uuid;
        bool root;             /* it stands at the top of its tree: a host, most likely */
        bool counted;          /* n_consumers is known */
        size_t n_consumers;    /* that hold something of it */
        uint64_t modified_sec; /* since the epoch; 0: not known */
} NameHolder;

/* Makes the holder of the provider that was found by its name. */
static inline NameHolder name_holder_from(const PlacementProvider *provider, uint64_t modified_sec)
{
        return (NameHolder){
                .uuid = provider->uuid,
                .root = uuid_empty(&provider->parent),
                .modified_sec = modified_sec,
        };
}

/* Takes the answer to GET /resource_providers/{uuid}/allocations. -EBADMSG: it stays uncounted. */
int name_holder_count(NameHolder *holder, const json_t *body);

/* Checks whether it is certain that no consumer holds anything of it. Otherwise it can be another
 * host, which lives: no message must advise to take its uuid or to delete it. */
static inline bool name_holder_is_empty(const NameHolder *holder)
{
        return holder->counted && holder->n_consumers == 0;
}

/* "3 consumers hold something of it, last changed 2025-01-06 12:00 UTC" */
void name_holder_describe(const NameHolder *holder, char *text, size_t size);

/* Words with the ways out. wants_root: the name is that of the host itself, which may be the very
 * host that the holder stands for. Returns -EEXIST. */
int name_holder_explain(const NameHolder *holder, bool wants_root, Error *reterr);

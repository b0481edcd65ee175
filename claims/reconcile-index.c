/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/reconcile-index.h"

#include <stdlib.h>

#include "base/text.h"

void reconcile_index_done(ReconcileIndex *index)
{
        free(index->claims);
        free(index->domains);
        free(index->mdevs);
        free(index->pci);
}

static int order_known(const void *a, const void *b)
{
        return uuid_order(&((const ReconcileKnown *)a)->uuid, &((const ReconcileKnown *)b)->uuid);
}

static void index_claims(ReconcileIndex *index, const ClaimList *claims)
{
        for (size_t i = 0; i < claims->n_claims; i++) {
                const Claim *claim = claims->claims[i];

                index->claims[index->n_claims++] = (ReconcileKnown){ claim->consumer, claim };
                if (!uuid_empty(&claim->guest))
                        index->claims[index->n_claims++] = (ReconcileKnown){ claim->guest, claim };
        }
        qsort(index->claims, index->n_claims, sizeof(ReconcileKnown), order_known);
}

static void index_facts(ReconcileIndex *index, const ReconcileInput *input)
{
        const HostFacts *facts = input->facts;

        for (; index->n_domains < facts->n_domains; index->n_domains++)
                index->domains[index->n_domains] =
                        (ReconcileKnown){ facts->domains[index->n_domains].uuid,
                                          &facts->domains[index->n_domains] };
        for (size_t i = 0; i < input->n_lives; i++)
                index->domains[index->n_domains++] =
                        (ReconcileKnown){ input->lives[i].uuid, &input->lives[i] };
        for (; index->n_mdevs < facts->n_mdevs; index->n_mdevs++)
                index->mdevs[index->n_mdevs] = (ReconcileKnown){ facts->mdevs[index->n_mdevs].uuid,
                                                                 &facts->mdevs[index->n_mdevs] };
        for (; index->n_pci < facts->n_pci; index->n_pci++)
                index->pci[index->n_pci] = facts->pci[index->n_pci].address;
        qsort(index->domains, index->n_domains, sizeof(ReconcileKnown), order_known);
        qsort(index->mdevs, index->n_mdevs, sizeof(ReconcileKnown), order_known);
        qsort(index->pci, index->n_pci, sizeof(char *), text_order);
}

int reconcile_index_make(ReconcileIndex *index, const ReconcileInput *input)
{
        index->claims = calloc(2 * input->claims->n_claims + 1, sizeof(ReconcileKnown));
        index->domains =
                calloc(input->facts->n_domains + input->n_lives + 1, sizeof(ReconcileKnown));
        index->mdevs = calloc(input->facts->n_mdevs + 1, sizeof(ReconcileKnown));
        index->pci = calloc(input->facts->n_pci + 1, sizeof(char *));
        if (!index->claims || !index->domains || !index->mdevs || !index->pci)
                return -ENOMEM;
        index_claims(index, input->claims);
        index_facts(index, input);
        return 0;
}

const ReconcileKnown *reconcile_index_find(const ReconcileKnown *items, size_t n, const Uuid *uuid,
                                           size_t *ret_n)
{
        size_t low = 0, high = n, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (uuid_order(&items[middle].uuid, uuid) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < n && uuid_equal(&items[end].uuid, uuid);)
                end++;
        *ret_n = end - low;
        return items + low;
}

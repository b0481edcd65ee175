/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/share.h"

uint64_t reshape_portion(uint64_t amount, uint64_t before, uint64_t weight, uint64_t all)
{
        __extension__ typedef unsigned __int128 Wide;

        if (all == 0)
                return 0;
        return (uint64_t)((Wide)amount * (before + weight) / all - (Wide)amount * before / all);
}

/* How much of amount can be added to what is given. */
static uint64_t addable(const ReshapeShare *share, uint64_t amount)
{
        uint64_t sum = MIN(share->room, share->given + amount);

        sum -= sum % share->step;
        if (sum < share->least || sum < share->given)
                return 0;
        return sum - share->given;
}

/* Is share better than best for what stays together? */
static bool is_better(const ReshapeShare *share, const ReshapeShare *best)
{
        if (!best || share->rank != best->rank)
                return !best || share->rank < best->rank;
        return share->room - share->given < best->room - best->given;
}

static ReshapeShare *find_for_whole(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *best = NULL;

        for (size_t i = 0; i < n_shares; i++)
                if (addable(&shares[i], amount) == amount && is_better(&shares[i], best))
                        best = &shares[i];
        return best;
}

static ReshapeShare *find_largest(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *best = NULL;

        for (size_t i = 0; i < n_shares; i++)
                if (addable(&shares[i], amount) > (best ? addable(best, amount) : 0))
                        best = &shares[i];
        return best;
}

int reshape_share_out(ReshapeShare *shares, size_t n_shares, uint64_t amount)
{
        ReshapeShare *share;

        for (size_t i = 0; i < n_shares; i++) {
                shares[i].given = 0;
                shares[i].given = addable(&shares[i], MIN(shares[i].wanted, amount));
                amount -= shares[i].given;
        }
        if (amount > 0 && (share = find_for_whole(shares, n_shares, amount))) {
                share->given += amount;
                return 0;
        }
        while (amount > 0 && (share = find_largest(shares, n_shares, amount))) {
                uint64_t part = addable(share, amount);

                share->given += part;
                amount -= part;
        }
        return amount > 0 ? -ENOSPC : 0;
}

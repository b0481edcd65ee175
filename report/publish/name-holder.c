/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/name-holder.h"

#include <string.h>
#include <time.h>

#include "base/json.h"

int name_holder_count(NameHolder *holder, const json_t *body, Error *reterr)
{
        json_t *consumers;
        int r = json_read_object(body, "allocations", &consumers, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "The allocations of provider %s",
                                     holder->uuid.text);
        holder->n_consumers = json_object_size(consumers);
        holder->counted = true;
        return 0;
}

/* Describes the number of consumers, or that it is unknown. */
static void describe_consumers(const NameHolder *holder, char *text, size_t size)
{
        if (!holder->counted)
                snprintf(text, size, "its consumers are unknown");
        else if (holder->n_consumers == 0)
                snprintf(text, size, "it has no allocations");
        else
                snprintf(text, size, "%zu consumer%s allocations of it", holder->n_consumers,
                         holder->n_consumers == 1 ? " has" : "s have");
}

/* Omits an unknown time. */
void name_holder_describe(const NameHolder *holder, char *text, size_t size)
{
        time_t modified = (time_t)holder->modified_sec;
        char consumers[80], when[80] = "";
        struct tm tm;

        describe_consumers(holder, consumers, sizeof(consumers));
        if (modified > 0 && gmtime_r(&modified, &tm))
                (void)strftime(when, sizeof(when), ", last changed %Y-%m-%d %H:%M UTC", &tm);
        snprintf(text, size, "%s%s", consumers, when);
}

/* Distinguishes three cases with different advice: a root with allocations, which can be another
 * host; a root without any; and a provider of another tree. */
int name_holder_explain(const NameHolder *holder, bool wants_root, Error *reterr)
{
        char text[160];

        name_holder_describe(holder, text, sizeof(text));
        if (wants_root && holder->root && !name_holder_is_empty(holder))
                return error_setf(
                        reterr, EEXIST,
                        "The name belongs to provider %s in Placement (%s). Another running host might use this name. If so, rename one of them. Only if these guests are on this host, stop the agent and run \"computectl identity adopt --force\"",
                        holder->uuid.text, text);
        if (wants_root && holder->root)
                return error_setf(
                        reterr, EEXIST,
                        "The name belongs to provider %s in Placement (%s). If it is left over from an earlier installation of this host, stop the agent and run \"computectl identity adopt --force\". If not, delete it",
                        holder->uuid.text, text);
        return error_setf(
                reterr, EEXIST,
                "The name belongs to provider %s of another tree in Placement (%s). Delete that provider. \"computectl identity check\" shows whether this host has the right uuid",
                holder->uuid.text, text);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides whether this host is the one that Placement knows, from facts that the helper gathered.
 * The main facts are the provider with this host's uuid ("own") and the one with its name
 * ("holder"). The function find_state() maps them to a state. The table has its name and most of
 * the advice (advise()). Explanation, advice and the permission to rename depend on that state;
 * identity_may_adopt() checks the facts itself. identity_plan_rename() lists the providers to
 * rename. Pure.
 *
 * LIMITATIONS: the facts cannot show whether another provider is a running host. The advice for
 * such a provider therefore depends on its consumers, and leaves the decision to the operator. The
 * order of the checks matters: a uuid that belongs to a child comes before the names, and the
 * provider with the uuid before the one with the name. */

#include "agent/helper/identity-judge.h"

#include <string.h>

#include "base/text.h"

#define NAME_MAX_CHARACTERS 200 /* Placement's limit, see facts E3 */

typedef enum IdentityState {
        IDENTITY_GOOD,        /* the root with this host's uuid has this host's name */
        IDENTITY_UNKNOWN,     /* Placement was not read, or the name is not known */
        IDENTITY_NEW,         /* Placement has neither uuid nor name */
        IDENTITY_RENAMED,     /* the root with the uuid has another name, and this host's name is
                                 free */
        IDENTITY_TAKEN,       /* Placement lacks the uuid, and another root has the name */
        IDENTITY_TAKEN_BELOW, /* Placement lacks the uuid, and a child has the name */
        IDENTITY_TWICE,       /* the root with the uuid has another name, and another provider has
                                 this host's */
        IDENTITY_NO_ROOT,     /* the provider with this host's uuid is below another one */
        _IDENTITY_STATE_MAX,
} IdentityState;

/* Names and advices of the states. advice NULL: advise() chooses one by the facts. It has
 * another one for IDENTITY_TWICE if the holder can be a running host. */
static const struct {
        const char *name, *advice;
} states[_IDENTITY_STATE_MAX] = {
        [IDENTITY_GOOD] = { "good", "" },
        [IDENTITY_UNKNOWN] = { "unknown", "" },
        [IDENTITY_NEW] = { "new", "Start the agent to publish it" },
        [IDENTITY_RENAMED] = { "renamed",
                               "If another host has the old name, this host is a clone of it: stop the agent, and remove compute_id and the other files of its state_dir. If not, restore the old name of the host, or run \"computectl identity rename\" (preview: --dry-run)" },
        [IDENTITY_TAKEN] = { "taken", NULL },
        [IDENTITY_TAKEN_BELOW] = { "taken-below",
                                   "Delete that provider in Placement, or rename this host" },
        [IDENTITY_TWICE] = { "twice",
                             "Decide which of the two is this host. If it is the one with its name, stop the agent and run \"computectl identity adopt --force\". If it is the one with its uuid, delete the other and run \"computectl identity rename\"" },
        [IDENTITY_NO_ROOT] = { "no-root",
                               "The uuid does not belong to a host. Remove compute_id and start the agent, which creates another one" },
};

static void provider_done(IdentityProvider *provider)
{
        free(provider->name);
        *provider = (IdentityProvider){ 0 };
}

void identity_facts_done(IdentityFacts *facts)
{
        free(facts->file);
        provider_done(&facts->own);
        provider_done(&facts->holder);
        *facts = (IdentityFacts){ 0 };
}

static IdentityState find_state(const IdentityFacts *facts)
{
        const IdentityProvider *own = &facts->own, *holder = &facts->holder;

        if (!facts->asked || facts->name[0] == '\0')
                return IDENTITY_UNKNOWN;
        if (own->found && !own->who.root)
                return IDENTITY_NO_ROOT;
        if (own->found && strcmp(own->name, facts->name) == 0)
                return IDENTITY_GOOD;
        if (own->found)
                return holder->found ? IDENTITY_TWICE : IDENTITY_RENAMED;
        if (!holder->found)
                return IDENTITY_NEW;
        return holder->who.root ? IDENTITY_TAKEN : IDENTITY_TAKEN_BELOW;
}

static const char *advise(const IdentityFacts *facts, IdentityState state)
{
        bool is_alive = (state == IDENTITY_TAKEN || state == IDENTITY_TWICE) &&
                        !name_holder_is_empty(&facts->holder.who);

        if (is_alive)
                return "Another running host might use this name. If so, rename one of them. If the guests with allocations of that provider are on this host, the provider is left over from an earlier installation of it. Then stop the agent and run \"computectl identity adopt --force\"";
        if (state != IDENTITY_TAKEN)
                return states[state].advice;
        return facts->file
                       ? "If that provider is left over from an earlier installation of this host, stop the agent and run \"computectl identity adopt --force\". If not, delete it in Placement, or rename one of the two hosts"
                       : "If that provider is left over from an earlier installation of this host, run \"computectl identity adopt\" before the first start of the agent. If not, delete it in Placement, or rename one of the two hosts";
}

static void explain(const IdentityFacts *facts, IdentityState state, char *text, size_t size)
{
        const IdentityProvider *own = &facts->own, *holder = &facts->holder;
        char who[160];

        name_holder_describe(&holder->who, who, sizeof(who));
        switch (state) {
        case IDENTITY_GOOD:
                snprintf(text, size, "Placement has this host as %.200s (%s)", own->name,
                         own->who.uuid.text);
                return;
        case IDENTITY_NEW:
                snprintf(text, size,
                         "Placement has no provider of this host yet, and the name %.200s is free",
                         facts->name);
                return;
        case IDENTITY_RENAMED:
                snprintf(text, size,
                         "Placement has this host as \"%.200s\", but its name is now \"%.200s\"",
                         own->name, facts->name);
                return;
        case IDENTITY_TAKEN:
        case IDENTITY_TAKEN_BELOW:
                snprintf(
                        text, size,
                        "The name %.200s belongs to %sprovider %s in Placement (%s), which is not this host's",
                        facts->name, holder->who.root ? "" : "the child ", holder->who.uuid.text,
                        who);
                return;
        case IDENTITY_TWICE:
                snprintf(
                        text, size,
                        "In Placement, this host's uuid belongs to \"%.200s\", but its name %.200s belongs to provider %s (%s)",
                        own->name, facts->name, holder->who.uuid.text, who);
                return;
        case IDENTITY_NO_ROOT:
                snprintf(
                        text, size,
                        "The provider with this host's uuid is \"%.200s\", which is a child of another one",
                        own->name);
                return;
        default:
                snprintf(text, size, "Could not check whether Placement has this host");
        }
}

void identity_judge(const IdentityFacts *facts, IdentityVerdict *ret)
{
        IdentityState state = find_state(facts);

        ret->state = states[state].name;
        ret->advice = advise(facts, state);
        explain(facts, state, ret->text, sizeof(ret->text));
}

/* Checks the facts in an order in which the most basic reason comes first. If this host has no file
 * with a uuid yet, no force is necessary. */
int identity_may_adopt(const IdentityFacts *facts, bool force, Error *reterr)
{
        const NameHolder *who = &facts->holder.who;

        if (facts->name[0] == '\0')
                return error_setf(reterr, ENODATA, "The name of this host is unknown");
        if (!facts->holder.found)
                return error_setf(
                        reterr, ENOENT,
                        "Placement has no provider named %.200s, so there is nothing to adopt",
                        facts->name);
        if (!who->root)
                return error_setf(
                        reterr, EPERM,
                        "Provider %s, which has the name %.200s, is a child of another one, so it is not a host",
                        who->uuid.text, facts->name);
        if (facts->file && uuid_equal(&facts->uuid, &who->uuid))
                return error_setf(reterr, EALREADY, "This host already has the uuid of %.200s",
                                  facts->name);
        if (facts->file && !force)
                return error_setf(
                        reterr, EEXIST,
                        "%s contains %s. --force replaces it with %s. The old provider stays in Placement; delete it yourself",
                        facts->file, facts->uuid.text, who->uuid.text);
        return 0;
}

bool identity_rename_needs_use(const IdentityFacts *facts, bool force)
{
        return !force && find_state(facts) == IDENTITY_RENAMED;
}

/* Returns 0 if the root provider can get this host's name. A tree in use can be that of another
 * running host. */
static int check_rename(const IdentityFacts *facts, bool force, Error *reterr)
{
        IdentityState state = find_state(facts);
        char text[ERROR_TEXT_MAX];

        switch (state) {
        case IDENTITY_RENAMED:
                if (!facts->in_use || force)
                        return 0;
                return error_setf(
                        reterr, EEXIST,
                        "Consumers have allocations of \"%.200s\". If another host has that name, this host is a clone of it, and must not rename its providers. Only if their guests are on this host, use --force",
                        facts->own.name);
        case IDENTITY_GOOD:
                return error_setf(reterr, EALREADY, "Placement already has the name %.200s",
                                  facts->name);
        case IDENTITY_UNKNOWN:
                return error_setf(reterr, ENODATA, "The name of this host is unknown");
        default:
                explain(facts, state, text, sizeof(text));
                return error_setf(reterr, EPERM, "%s", text);
        }
}

void identity_plan_done(IdentityPlan *plan)
{
        for (size_t i = 0; i < plan->n_items; i++) {
                free(plan->items[i].from);
                free(plan->items[i].to);
        }
        free(plan->items);
        *plan = (IdentityPlan){ 0 };
}

/* Adds the change of one provider to the name "name" followed by "rest". */
static int add_change(IdentityPlan *plan, const PlacementProvider *provider, const char *name,
                      const char *rest, Error *reterr)
{
        IdentityChange *change = &plan->items[plan->n_items];

        if (strlen(name) + strlen(rest) > NAME_MAX_CHARACTERS)
                return error_setf(
                        reterr, EINVAL,
                        "%.200s cannot become %.80s…, because a name has at most %d characters",
                        provider->name, name, NAME_MAX_CHARACTERS);
        change->uuid = provider->uuid;
        change->from = strdup(provider->name);
        change->to = text_format("%s%s", name, rest);
        plan->n_items++;
        return change->from && change->to ? 0 : error_oom(reterr);
}

/* Returns the provider with this uuid, or NULL. */
static const PlacementProvider *find_root(const PlacementProviders *tree, const Uuid *root)
{
        for (size_t i = 0; i < tree->n_items; i++)
                if (uuid_equal(&tree->items[i].uuid, root))
                        return &tree->items[i];
        return NULL;
}

int identity_plan_rename(const IdentityFacts *facts, const PlacementProviders *tree, bool force,
                         IdentityPlan *ret, Error *reterr)
{
        const PlacementProvider *old = find_root(tree, &facts->uuid);
        _cleanup_(identity_plan_done) IdentityPlan plan = { 0 };
        const char *name = facts->name;
        size_t n, n_new = strlen(name);
        int r = check_rename(facts, force, reterr);

        if (r < 0)
                return r;
        if (!old)
                return error_setf(reterr, ENOENT, "Placement has no provider %s", facts->uuid.text);
        n = strlen(old->name);
        plan.items = calloc(tree->n_items, sizeof(IdentityChange));
        if (!plan.items)
                return error_oom(reterr);
        for (size_t i = tree->n_items; r == 0 && i > 0; i--) {
                const PlacementProvider *item = &tree->items[i - 1];

                /* "host" is renamed to "host_b", and an earlier run has renamed this one. If
                 * "host_b" is renamed to "host", the names of both begin with "host_". */
                if (n_new > n && strncmp(item->name, name, n_new) == 0 && item->name[n_new] == '_')
                        continue;
                if (item != old && strncmp(item->name, old->name, n) == 0 && item->name[n] == '_')
                        r = add_change(&plan, item, name, item->name + n, reterr);
        }
        if (r == 0)
                r = add_change(&plan, old, name, "", reterr);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(plan);
        return 0;
}

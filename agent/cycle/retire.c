/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/retire.h"

#include <string.h>

#include "agent/formats/format-names.h"

void retirement_done(Retirement *retirement)
{
        json_decref(retirement->holders);
        json_decref(retirement->foreign);
        json_decref(retirement->providers);
        *retirement = (Retirement){ 0 };
}

static json_t *find_holder(const Retirement *retirement, const Uuid *consumer)
{
        json_t *holder;
        size_t i;

        json_array_foreach(retirement->holders, i, holder)
                if (strcmp(json_string_value(json_object_get(holder, "consumer")),
                           consumer->text) == 0)
                        return holder;
        return NULL;
}

/* The one that is there, or a new one. NULL when out of memory. */
static json_t *get_holder(const RetireFacts *facts, Retirement *retirement, const Uuid *consumer)
{
        json_t *holder = find_holder(retirement, consumer);
        const char *guest = "";

        for (size_t i = 0; i < facts->snapshot->n_domains; i++)
                if (uuid_equal(&facts->snapshot->domains[i].uuid, consumer))
                        guest = facts->snapshot->domains[i].name;
        if (holder)
                return holder;
        holder = json_pack("{ss ss sI sb}", "consumer", consumer->text, "guest", guest, "claim",
                           (json_int_t)0, "placed", 0);
        return json_array_append_new(retirement->holders, holder) < 0 ? NULL : holder;
}

static int add_holders(const RetireFacts *facts, Retirement *retirement)
{
        json_t *holder;

        for (size_t i = 0; i < facts->claims->n_claims; i++) {
                const Claim *claim = facts->claims->claims[i];

                holder = get_holder(facts, retirement, &claim->consumer);
                if (json_object_set_new(holder, "claim", json_integer(claim->id)) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < facts->snapshot->n_domains; i++)
                if (facts->snapshot->domains[i].state != DOMAIN_SHUTOFF &&
                    !get_holder(facts, retirement, &facts->snapshot->domains[i].uuid))
                        return -ENOMEM;
        for (size_t i = 0; facts->consumers && i < facts->consumers->n_consumers; i++) {
                holder = get_holder(facts, retirement, &facts->consumers->consumers[i]->uuid);
                if (json_object_set_new(holder, "placed", json_true()) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* By its name, where Nova made it before; else by the uuid that the name gives it. */
static bool is_own(const RetireFacts *facts, const Provider *provider)
{
        Uuid uuid = uuid_make_child(facts->root, provider->name);

        return uuid_equal(&provider->uuid, facts->root) || uuid_equal(&provider->uuid, &uuid) ||
               provider_tree_find_name(facts->own, provider->name);
}

int retire_judge(const RetireFacts *facts, Retirement *ret)
{
        *ret = (Retirement){ json_array(), json_array(), json_array() };
        if (!ret->holders || !ret->foreign || !ret->providers || add_holders(facts, ret) < 0)
                return -ENOMEM;
        for (size_t i = facts->remote->n_providers; i > 0; i--) {
                const Provider *provider = facts->remote->providers[i - 1];
                json_t *list = is_own(facts, provider) ? ret->providers : ret->foreign;

                if (json_array_append_new(list, json_string(provider->name)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

bool retirement_is_refused(const Retirement *retirement)
{
        return json_array_size(retirement->holders) > 0 || json_array_size(retirement->foreign) > 0;
}

json_t *retirement_to_json(const Retirement *retirement, bool done)
{
        return json_pack("{ss sb sO sO sO}", "format", RETIRE_FORMAT, "done", (int)done, "holders",
                         retirement->holders, "foreign", retirement->foreign, "providers",
                         retirement->providers);
}

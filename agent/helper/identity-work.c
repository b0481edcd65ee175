/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/helper/identity-work.h"

#include <string.h>

#include "agent/helper/identity-judge.h"
#include "agent/helper/talk.h"
#include "agent/state/identity.h"
#include "agent/state/state-lock.h"
#include "base/json.h"
#include "formats/format-names.h"

typedef struct Work {
        const IdentityTask *task;
        Talk *talk; /* NULL: there is no Placement */
        IdentityFacts facts;
        PlacementProviders tree; /* that our uuid belongs to */
        IdentityPlan plan;
        Error placement_error; /* code 0: Placement answered everything */
        Error refused;
        bool done;
} Work;

static void work_done(Work *work)
{
        talk_free(work->talk);
        identity_facts_done(&work->facts);
        placement_providers_done(&work->tree);
        identity_plan_done(&work->plan);
}

IdentityOrder identity_order_from_text(const char *text)
{
        static const char *const names[] = {
                [IDENTITY_SHOW] = "show",
                [IDENTITY_ADOPT] = "adopt",
                [IDENTITY_RENAME] = "rename",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], text) == 0)
                        return (IdentityOrder)i;
        return _IDENTITY_ORDER_INVALID;
}

/* Takes the request over. A failure of Placement is kept in the document: EIO. */
static int ask(Work *work, PlacementRequest request, TalkAnswer *ret, Error *reterr)
{
        int r = talk_ask(work->talk, request, ret, reterr);

        return r > 0 ? -EIO : r;
}

static int count_consumers(Work *work, NameHolder *who, Error *reterr)
{
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        int r = ask(work, placement_get_provider_allocations(&who->uuid), &answer, reterr);

        return r < 0 ? r : name_holder_count(who, answer.body);
}

static int read_age(Work *work, NameHolder *who, Error *reterr)
{
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        int r = ask(work, placement_request("GET", "/resource_providers/{uuid}", who->uuid.text),
                    &answer, reterr);

        who->modified_sec = answer.modified_sec;
        return r;
}

static int take_provider(Work *work, const PlacementProvider *item, IdentityProvider *ret,
                         Error *reterr)
{
        int r;

        ret->name = strdup(item->name);
        if (!ret->name)
                return error_oom(reterr);
        ret->generation = item->generation;
        ret->who = name_holder_from(item, 0);
        r = read_age(work, &ret->who, reterr);
        if (r == 0)
                r = count_consumers(work, &ret->who, reterr);
        ret->found = r == 0;
        return r;
}

static int read_own(Work *work, Error *reterr)
{
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        const Uuid *uuid = &work->facts.uuid;
        int r = ask(work, placement_get_tree(uuid), &answer, reterr);

        if (r == 0)
                r = placement_read_tree(answer.body, &work->tree, reterr);
        for (size_t i = 0; r == 0 && i < work->tree.n_items; i++)
                if (uuid_equal(&work->tree.items[i].uuid, uuid))
                        r = take_provider(work, &work->tree.items[i], &work->facts.own, reterr);
        if (r == 0 && work->facts.own.found)
                work->facts.n_below = work->tree.n_items - 1;
        return r;
}

static int read_holder(Work *work, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders found = PLACEMENT_PROVIDERS_INIT;
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        int r = ask(work, placement_get_provider_by_name(work->task->name), &answer, reterr);

        if (r == 0)
                r = placement_read_providers(answer.body, &found, reterr);
        if (r == 0 && found.n_items > 0)
                r = take_provider(work, &found.items[0], &work->facts.holder, reterr);
        return r;
}

/* What Placement says; why it does not is kept. -ENOMEM and -EINVAL are the caller's. */
static int ask_placement(Work *work, Error *reterr)
{
        Error error = ERROR_NULL;
        int r;

        if (!work->task->config->has_placement) {
                error_setf(&work->placement_error, ENODATA, "There is no [placement] section");
                return 0;
        }
        if (!work->talk) {
                r = talk_new(&work->talk, &work->task->config->reporter, reterr);
                if (r < 0)
                        return r;
        }
        r = work->facts.file ? read_own(work, &error) : 0;
        if (r == 0 && work->task->name[0] != '\0')
                r = read_holder(work, &error);
        work->facts.asked = r == 0;
        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r < 0)
                work->placement_error = error;
        return 0;
}

static int gather(Work *work, Error *reterr)
{
        const IdentityPlaces places = config_identity_places(work->task->config);
        int r;

        identity_facts_done(&work->facts);
        placement_providers_done(&work->tree);
        work->facts.name = work->task->name;
        r = identity_find(&places, &work->facts.uuid, &work->facts.file, reterr);
        return r < 0 ? r : ask_placement(work, reterr);
}

static int adopt(Work *work, Error *reterr)
{
        const Config *config = work->task->config;
        const IdentityPlaces places = config_identity_places(config);
        _cleanup_close_ int lock_fd = -EBADF;
        int r = identity_may_adopt(&work->facts, work->task->force, reterr);

        if (r < 0 || work->task->dry_run)
                return r;
        /* A running agent goes by the old uuid. */
        r = state_lock_take(config->state_dir, &lock_fd, reterr);
        if (r < 0)
                return r;
        return identity_replace(&places, &work->facts.holder.who.uuid, reterr);
}

static int rename_one(Work *work, const IdentityChange *change, Error *reterr)
{
        _cleanup_(talk_answer_done) TalkAnswer answer = { 0 };
        int r = ask(work, placement_put_provider(&change->uuid, change->to, NULL), &answer, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", change->from) : 0;
}

static int rename_tree(Work *work, Error *reterr)
{
        const char *why = nova_mode_refuses(work->task->config->reporter.nova, NOVA_ACTION_RENAME);
        int r = why ? error_setf(reterr, EPERM, "%s", why)
                    : identity_may_rename(&work->facts, reterr);

        if (r == 0)
                r = identity_plan_rename(&work->tree, &work->facts.uuid, work->task->name,
                                         &work->plan, reterr);
        for (size_t i = 0; r == 0 && !work->task->dry_run && i < work->plan.n_items; i++)
                r = rename_one(work, &work->plan.items[i], reterr);
        return r;
}

/* What was ordered, unless it is refused; then the facts are those of after it. */
static int carry_out(Work *work, Error *reterr)
{
        int r;

        if (work->task->order == IDENTITY_SHOW)
                return 0;
        if (work->placement_error.code) {
                work->refused = work->placement_error;
                return 0;
        }
        r = work->task->order == IDENTITY_ADOPT ? adopt(work, &work->refused)
                                                : rename_tree(work, &work->refused);
        if (r < 0 || work->task->dry_run)
                return r == -ENOMEM ? error_oom(reterr) : 0;
        work->done = true;
        return gather(work, reterr);
}

static json_t *provider_to_json(const IdentityProvider *provider)
{
        const NameHolder *who = &provider->who;

        if (!provider->found)
                return json_null();
        return json_pack("{ss ss sb sI sI sI}", "uuid", who->uuid.text, "name", provider->name,
                         "root", who->root, "generation", (json_int_t)provider->generation,
                         "consumers", who->counted ? (json_int_t)who->n_consumers : -1,
                         "modified_usec", (json_int_t)(who->modified_sec * USEC_PER_SEC));
}

static json_t *plan_to_array(const IdentityPlan *plan)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < plan->n_items; i++)
                if (json_array_append_new(
                            array, json_pack("{ss ss ss}", "uuid", plan->items[i].uuid.text, "from",
                                             plan->items[i].from, "to", plan->items[i].to)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *describe(const Work *work)
{
        const IdentityFacts *facts = &work->facts;
        IdentityState state = identity_judge(facts);
        char text[ERROR_TEXT_MAX + 200];

        identity_explain(facts, text, sizeof(text));
        return json_pack(
                "{ss ss ss ss ss ss ss ss so so sI so sb ss}", "format", IDENTITY_FORMAT, "name",
                facts->name, "state", identity_state_to_text(state), "text", text, "advice",
                identity_advise(facts, state), "file", facts->file ? facts->file : "", "uuid",
                facts->file ? facts->uuid.text : "", "placement_error", work->placement_error.text,
                "own", provider_to_json(&facts->own), "holder", provider_to_json(&facts->holder),
                "below", (json_int_t)facts->n_below, "changes", plan_to_array(&work->plan), "done",
                work->done, "refused", work->refused.text);
}

int identity_work(const IdentityTask *task, json_t **ret, Error *reterr)
{
        _cleanup_(work_done) Work work = { .task = task };
        int r = gather(&work, reterr);

        if (r == 0)
                r = carry_out(&work, reterr);
        if (r < 0)
                return r;
        *ret = describe(&work);
        return *ret ? 0 : error_oom(reterr);
}

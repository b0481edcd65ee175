/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/trait-lookup.h"

#include <assert.h>
#include <string.h>

/* One GET: the names [first, end) of the set. */
typedef struct Question {
        TraitLookup *lookup;
        size_t first, end;
        SessionCall *call;
} Question;

struct TraitLookup {
        Mirror *mirror;
        StringSet names;
        Question *questions;
        size_t n_questions, n_running;
        TraitLookupDone done;
        void *userdata;
};

static int list_of_provider(const Provider *provider, const MirrorNames *names, StringSet *ret,
                            bool *ret_unknown)
{
        for (size_t i = 0; i < provider->traits.n_items; i++) {
                const char *trait = provider->traits.items[i];

                if (!resource_class_valid(trait) ||
                    string_set_contains(&names->known_traits, trait))
                        continue;
                if (string_set_add(ret, trait) < 0)
                        return -ENOMEM;
                if (!string_set_contains(&names->missing_traits, trait))
                        *ret_unknown = true;
        }
        return 0;
}

int trait_lookup_list(const ProviderTree *desired, const MirrorNames *names, StringSet *ret)
{
        bool unknown = false;

        for (size_t i = 0; i < desired->n_providers; i++)
                if (list_of_provider(desired->providers[i], names, ret, &unknown) < 0)
                        return -ENOMEM;
        if (!unknown)
                string_set_done(ret);
        return 0;
}

static void finish(TraitLookup *lookup, int result, const Error *error)
{
        for (size_t i = 0; i < lookup->n_questions; i++)
                lookup->questions[i].call = session_call_cancel(lookup->questions[i].call);
        /* The lookup may be gone after this. */
        lookup->done(result, error, lookup->userdata);
}

static int take_answer(Question *question, const json_t *body, Error *reterr)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        TraitLookup *lookup = question->lookup;
        int r;

        r = placement_read_traits(body, &found, reterr);
        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's list of traits");
                return REPORT_E_UNAVAILABLE;
        }
        for (size_t i = question->first; r >= 0 && i < question->end; i++) {
                const char *name = lookup->names.items[i];

                r = string_set_contains(&found, name)
                            ? mirror_learn_trait(lookup->mirror, name)
                            : mirror_learn_missing_trait(lookup->mirror, name);
        }
        return r < 0 ? error_oom(reterr) : REPORT_DONE;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Question *question = userdata;
        TraitLookup *lookup = question->lookup;
        Error words = *error;

        question->call = NULL;
        lookup->n_running--;
        if (result == REPORT_DONE)
                result = take_answer(question, answer->body, &words);
        if (result != REPORT_DONE || lookup->n_running == 0)
                finish(lookup, result, &words);
}

static int ask(TraitLookup *lookup, Session *session, size_t *first, Error *reterr)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        Question *question = &lookup->questions[lookup->n_questions];
        int r;

        question->lookup = lookup;
        question->first = *first;
        if (placement_get_known_traits(&lookup->names, first, &request) < 0)
                return error_oom(reterr);
        question->end = *first;
        r = session_send(session, &request, on_answer, question, &question->call, reterr);
        if (r < 0)
                return r;
        lookup->n_questions++;
        lookup->n_running++;
        return 0;
}

int trait_lookup_new(TraitLookup **ret, Session *session, Mirror *mirror, const StringSet *names,
                     TraitLookupDone done, void *userdata, Error *reterr)
{
        _cleanup_(trait_lookup_freep) TraitLookup *lookup = calloc(1, sizeof(TraitLookup));
        int r;

        assert(names->n_items > 0);
        if (!lookup || string_set_copy(&lookup->names, names) < 0)
                return error_oom(reterr);
        lookup->mirror = mirror;
        lookup->done = done;
        lookup->userdata = userdata;
        /* At most one question a name. */
        lookup->questions = calloc(names->n_items, sizeof(Question));
        if (!lookup->questions)
                return error_oom(reterr);
        for (size_t first = 0; first < names->n_items;) {
                r = ask(lookup, session, &first, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(lookup);
        return 0;
}

TraitLookup *trait_lookup_free(TraitLookup *lookup)
{
        if (!lookup)
                return NULL;
        for (size_t i = 0; i < lookup->n_questions; i++)
                session_call_cancel(lookup->questions[i].call);
        free(lookup->questions);
        string_set_done(&lookup->names);
        free(lookup);
        return NULL;
}

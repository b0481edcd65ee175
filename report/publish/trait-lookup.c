/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/trait-lookup.h"

#include <assert.h>

struct TraitLookup {
        Session *session;
        Mirror *mirror;
        StringSet names;
        size_t first, next; /* of those that are asked for; of those that come then */
        SessionCall *call;
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

static int take_answer(TraitLookup *lookup, const json_t *body, Error *reterr)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        int r = placement_read_traits(body, &found, reterr);

        if (r == -EBADMSG) {
                error_prefixf(reterr, r, "Placement's list of traits");
                return REPORT_E_UNAVAILABLE;
        }
        for (; r >= 0 && lookup->first < lookup->next; lookup->first++) {
                const char *name = lookup->names.items[lookup->first];

                r = string_set_contains(&found, name)
                            ? mirror_learn_trait(lookup->mirror, name)
                            : mirror_learn_missing_trait(lookup->mirror, name);
        }
        return r < 0 ? error_oom(reterr) : REPORT_DONE;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata);

static int ask(TraitLookup *lookup, Error *reterr)
{
        return session_send(lookup->session,
                            placement_get_known_traits(&lookup->names, &lookup->next), on_answer,
                            lookup, &lookup->call, reterr);
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        TraitLookup *lookup = userdata;
        Error words = *error;

        lookup->call = NULL;
        if (result == REPORT_DONE)
                result = take_answer(lookup, answer->body, &words);
        if (result == REPORT_DONE && lookup->next < lookup->names.n_items) {
                result = ask(lookup, &words);
                if (result >= 0)
                        return;
        }
        /* The lookup may be gone after this. */
        lookup->done(result, &words, lookup->userdata);
}

int trait_lookup_new(TraitLookup **ret, Session *session, Mirror *mirror, const StringSet *names,
                     TraitLookupDone done, void *userdata, Error *reterr)
{
        _cleanup_(trait_lookup_freep) TraitLookup *lookup = calloc(1, sizeof(TraitLookup));
        int r;

        assert(names->n_items > 0);
        if (!lookup || string_set_copy(&lookup->names, names) < 0)
                return error_oom(reterr);
        lookup->session = session;
        lookup->mirror = mirror;
        lookup->done = done;
        lookup->userdata = userdata;
        r = ask(lookup, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(lookup);
        return 0;
}

TraitLookup *trait_lookup_free(TraitLookup *lookup)
{
        if (!lookup)
                return NULL;
        session_call_cancel(lookup->call);
        string_set_done(&lookup->names);
        free(lookup);
        return NULL;
}

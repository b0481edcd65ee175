/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/trait-lookup.h"

#include <assert.h>
#include <string.h>

#include "report/session/reads.h"

struct TraitLookup {
        Mirror *mirror;
        StringSet names;
        size_t *firsts; /* the first name of each question; behind the last, where the names end */
        Reads *reads;
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

static PlacementRequest make_request(size_t i, void *userdata)
{
        const TraitLookup *lookup = userdata;
        size_t first = lookup->firsts[i];

        return placement_get_known_traits(&lookup->names, &first);
}

static int learn(TraitLookup *lookup, size_t i, const StringSet *found)
{
        for (size_t j = lookup->firsts[i]; j < lookup->firsts[i + 1]; j++) {
                const char *name = lookup->names.items[j];
                int r = string_set_contains(found, name)
                                ? mirror_learn_trait(lookup->mirror, name)
                                : mirror_learn_missing_trait(lookup->mirror, name);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int on_answer(size_t i, int result, const SessionAnswer *answer, Error *error,
                     void *userdata)
{
        _cleanup_(string_set_done) StringSet found = STRING_SET_INIT;
        int r;

        if (result != REPORT_DONE)
                return result;
        r = placement_read_traits(answer->body, &found, error);
        if (r == -EBADMSG) {
                error_prefixf(error, r, "Placement's list of traits");
                return REPORT_E_UNAVAILABLE;
        }
        return r < 0 || learn(userdata, i, &found) < 0 ? error_oom(error) : REPORT_DONE;
}

static void on_done(int result, const Error *error, void *userdata)
{
        TraitLookup *lookup = userdata;

        /* The lookup may be gone after this. */
        lookup->done(result, error, lookup->userdata);
}

/* How many questions there are: as many names go into one as a path may be long. */
static int split_names(TraitLookup *lookup, size_t *ret_n)
{
        size_t n = 0;

        /* At most one question a name. */
        lookup->firsts = calloc(lookup->names.n_items + 1, sizeof(size_t));
        if (!lookup->firsts)
                return -ENOMEM;
        while (lookup->firsts[n] < lookup->names.n_items) {
                size_t next = lookup->firsts[n];
                _cleanup_(placement_request_done) PlacementRequest request =
                        placement_get_known_traits(&lookup->names, &next);

                if (!request.path)
                        return -ENOMEM;
                lookup->firsts[++n] = next;
        }
        *ret_n = n;
        return 0;
}

int trait_lookup_new(TraitLookup **ret, Session *session, Mirror *mirror, const StringSet *names,
                     TraitLookupDone done, void *userdata, Error *reterr)
{
        static const ReadsOps ops = { make_request, on_answer, on_done };
        _cleanup_(trait_lookup_freep) TraitLookup *lookup = calloc(1, sizeof(TraitLookup));
        size_t n;
        int r;

        assert(names->n_items > 0);
        if (!lookup || string_set_copy(&lookup->names, names) < 0 || split_names(lookup, &n) < 0)
                return error_oom(reterr);
        lookup->mirror = mirror;
        lookup->done = done;
        lookup->userdata = userdata;
        r = reads_new(&lookup->reads, session, n, &ops, lookup, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(lookup);
        return 0;
}

TraitLookup *trait_lookup_free(TraitLookup *lookup)
{
        if (!lookup)
                return NULL;
        reads_free(lookup->reads);
        free(lookup->firsts);
        string_set_done(&lookup->names);
        free(lookup);
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the search with brute force on small random hosts. Every request is fitted that any
 * assignment fits, and every fit obeys the rules. */

#include <inttypes.h>

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define FITS_MIN         20000
#define SEARCHED_MIN     400 /* requests that no shortcut rejects */
#define SUBTREE_FITS_MIN 1500
#define PARTS_MAX        8
#define PROVIDERS_MAX    5

static const char *const classes[] = { "VCPU", "VGPU", "MEMORY_MB" };
static const char *const traits[] = { "A", "B" };

/* A unit of the assignment: a suffixed group, or a class of the unsuffixed one. */
typedef struct Part {
        const RequestGroup *group;
        const ResourceAmount *amounts;
        size_t n_amounts;
} Part;

typedef struct Problem {
        const HostView *view;
        const ResourceRequest *request;
        Part parts[PARTS_MAX];
        size_t n_parts;
        size_t chosen[PARTS_MAX];
} Problem;

/* Returns the words of one provider. The ranges are small, so equal_providers, with and without
 * traits, are frequent. */
static char *random_provider(void)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        for (size_t c = 0; c < ARRAY_SIZE(classes); c++)
                if (roll(3) > 0)
                        fprintf(file, " %s=%u/%u/%u/%u/%u", classes[c], 1 + roll(6), roll(2),
                                1 + roll(4) / 3, 2 + roll(5), 1 + roll(4) / 3);
        for (size_t t = 0; t < ARRAY_SIZE(traits); t++)
                if (roll(2))
                        fprintf(file, " +%s", traits[t]);
        fclose(file);
        return text;
}

/* nested: with providers below others than the root */
static char *random_host(bool nested)
{
        _cleanup_free_ char *words = random_provider();
        char *text = NULL;
        size_t size, n = 1 + roll(PROVIDERS_MAX);
        FILE *file = open_memstream(&text, &size);

        fprintf(file, "host%s", words);
        for (size_t i = 1; i < n; i++) {
                if (roll(2)) {
                        free(words);
                        words = random_provider();
                }
                if (nested && i > 1 && roll(2))
                        fprintf(file, "; p%zu<p%u%s", i, 1 + roll((unsigned)i - 1), words);
                else
                        fprintf(file, "; p%zu<host%s", i, words);
        }
        fclose(file);
        return text;
}

static void write_traits(FILE *file)
{
        const char *separator = ":";

        for (size_t t = 0; t < ARRAY_SIZE(traits); t++)
                if (roll(4) == 0) {
                        fprintf(file, "%s%s%s", separator, roll(3) ? "" : "!", traits[t]);
                        separator = ",";
                }
}

static char *random_request(void)
{
        char *text = NULL;
        size_t size, n = roll(5), first = roll(2) || n == 0 ? 0 : 1;
        FILE *file = open_memstream(&text, &size);

        for (size_t i = first; i <= n; i++) {
                const char *separator = "";
                size_t must = roll(ARRAY_SIZE(classes));

                if (i > 0)
                        fprintf(file, " _%zu:", i);
                for (size_t c = 0; c < ARRAY_SIZE(classes); c++)
                        if (c == must || roll(4) == 0) {
                                fprintf(file, "%s%s=%u", separator, classes[c], 1 + roll(3));
                                separator = ",";
                        }
                write_traits(file);
        }
        if (roll(3) == 0)
                fputs(" isolate", file);
        fclose(file);
        return text;
}

static void split_request(Problem *problem)
{
        for (size_t i = 0; i < problem->request->n_groups; i++) {
                const RequestGroup *group = &problem->request->groups[i];
                size_t step = group->suffix[0] ? group->resources.n_items : 1;

                if (group->resources.n_items == 0)
                        problem->parts[problem->n_parts++] = (Part){ .group = group };
                for (size_t j = 0; j < group->resources.n_items; j += step)
                        problem->parts[problem->n_parts++] =
                                (Part){ group, &group->resources.items[j], step };
        }
}

static bool has_all(const StringSet *set, const StringSet *wanted)
{
        for (size_t i = 0; i < wanted->n_items; i++)
                if (!string_set_contains(set, wanted->items[i]))
                        return false;
        return true;
}

static bool has_any(const StringSet *set, const StringSet *unwanted)
{
        for (size_t i = 0; i < unwanted->n_items; i++)
                if (string_set_contains(set, unwanted->items[i]))
                        return true;
        return false;
}

static bool units_keep(const Problem *problem, const Part *part, size_t provider)
{
        for (size_t i = 0; i < part->n_amounts; i++) {
                const Inventory *inventory = provider_find_inventory(
                        problem->view->tree->providers[provider], part->amounts[i].resource_class);

                if (!inventory || part->amounts[i].amount < inventory->min_unit ||
                    part->amounts[i].amount % inventory->step_size != 0)
                        return false;
        }
        return true;
}

/* Returns true if the first n parts fit on the provider together. */
static bool sums_keep(const Problem *problem, size_t n, size_t provider)
{
        for (size_t c = 0; c < ARRAY_SIZE(classes); c++) {
                const Inventory *inventory = provider_find_inventory(
                        problem->view->tree->providers[provider], classes[c]);
                uint64_t sum = 0;

                for (size_t i = 0; i < n; i++)
                        for (size_t j = 0; j < problem->parts[i].n_amounts; j++)
                                if (problem->chosen[i] == provider &&
                                    strcmp(problem->parts[i].amounts[j].resource_class,
                                           classes[c]) == 0)
                                        sum += problem->parts[i].amounts[j].amount;
                if (sum == 0)
                        continue;
                if (sum > inventory->max_unit ||
                    sum + resources_get(&problem->view->providers[provider].used, classes[c]) >
                            inventory_capacity(inventory))
                        return false;
        }
        return true;
}

static bool is_above(const ProviderTree *tree, const Provider *above, const Provider *below)
{
        while (below && below != above)
                below = provider_tree_find(tree, &below->parent);
        return below != NULL;
}

static bool subtree_keeps(const Problem *problem, const StringSet *suffixes)
{
        const ProviderTree *tree = problem->view->tree;

        for (size_t i = 0; i < tree->n_providers; i++) {
                bool chosen = false, above_all = true;

                for (size_t j = 0; j < problem->n_parts; j++) {
                        if (!string_set_contains(suffixes, problem->parts[j].group->suffix))
                                continue;
                        chosen = chosen || problem->chosen[j] == i;
                        above_all = above_all && is_above(tree, tree->providers[i],
                                                          tree->providers[problem->chosen[j]]);
                }
                if (chosen && above_all)
                        return true;
        }
        return false;
}

/* Returns true if a complete assignment obeys the rules of claims/fit/fit.h. */
static bool keeps_rules(const Problem *problem)
{
        StringSet together = STRING_SET_INIT;
        const RequestGroup *unsuffixed = NULL;
        bool keeps = true;

        for (size_t i = 0; i < problem->n_parts; i++) {
                const Part *part = &problem->parts[i];
                const Provider *provider = problem->view->tree->providers[problem->chosen[i]];

                keeps = keeps && units_keep(problem, part, problem->chosen[i]) &&
                        !has_any(&provider->traits, &part->group->forbidden);
                if (part->group->suffix[0]) {
                        keeps = keeps && has_all(&provider->traits, &part->group->required);
                        for (size_t j = 0; j < i && problem->request->isolate; j++)
                                if (problem->parts[j].group->suffix[0] &&
                                    problem->chosen[j] == problem->chosen[i])
                                        keeps = false;
                        continue;
                }
                unsuffixed = part->group;
                for (size_t t = 0; t < provider->traits.n_items; t++)
                        string_set_add(&together, provider->traits.items[t]);
        }
        if (unsuffixed)
                keeps = keeps && has_all(&together, &unsuffixed->required);
        for (size_t i = 0; keeps && i < problem->request->n_subtrees; i++)
                keeps = subtree_keeps(problem, &problem->request->subtrees[i]);
        for (size_t i = 0; keeps && i < problem->view->n_providers; i++)
                keeps = sums_keep(problem, problem->n_parts, i);
        string_set_done(&together);
        return keeps;
}

static bool brute_force(Problem *problem, size_t level)
{
        if (level == problem->n_parts)
                return keeps_rules(problem);
        for (size_t i = 0; i < problem->view->n_providers; i++) {
                problem->chosen[level] = i;
                if (units_keep(problem, &problem->parts[level], i) &&
                    sums_keep(problem, level + 1, i) && brute_force(problem, level + 1))
                        return true;
        }
        return false;
}

/* Reads the fit back into the problem's form. */
static void take_fit(Problem *problem, const Fit *fit)
{
        size_t n = 0;

        for (size_t i = 0; i < problem->n_parts; i++)
                for (size_t j = 0; j < problem->parts[i].n_amounts; j++, n++) {
                        const FitPiece *piece = &fit->pieces[n];

                        assert_ptr_equal(&problem->request->groups[piece->group],
                                         problem->parts[i].group);
                        assert_string_equal(piece->resource_class,
                                            problem->parts[i].amounts[j].resource_class);
                        assert_int_equal(piece->amount, problem->parts[i].amounts[j].amount);
                        assert_true(j == 0 || problem->chosen[i] == piece->provider);
                        problem->chosen[i] = piece->provider;
                }
        assert_int_equal(n, fit->n_pieces);
}

/* Adds a list of groups that share a subtree, sometimes with one that has only traits. Returns
 * false if there are not enough groups. */
static bool add_subtree(ResourceRequest *request)
{
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        RequestGroup *group;

        if (roll(2)) {
                assert_int_equal(resource_request_group(request, "_T", &group, NULL), 0);
                assert_true(string_set_add(&group->required, traits[roll(2)]) >= 0);
        }
        for (size_t i = 0; i < request->n_groups; i++)
                if (request->groups[i].suffix[0] &&
                    (request->groups[i].resources.n_items == 0 || roll(3)))
                        assert_true(string_set_add(&suffixes, request->groups[i].suffix) >= 0);
        return resource_request_add_subtree(request, &suffixes, NULL) == 0;
}

/* The fit does not contain the providers of groups without resources: some choice of them must obey
 * the rules. */
static bool complete(Problem *problem, size_t level)
{
        if (level == problem->n_parts)
                return keeps_rules(problem);
        if (problem->parts[level].n_amounts > 0)
                return complete(problem, level + 1);
        for (size_t i = 0; i < problem->view->n_providers; i++) {
                problem->chosen[level] = i;
                if (complete(problem, level + 1))
                        return true;
        }
        return false;
}

typedef enum Round {
        ROUND_FITS,
        ROUND_SEARCHED, /* no shortcut rejects it */
        ROUND_REFUSED,
        ROUND_NONE, /* the request has too few groups for a subtree */
} Round;

/* Runs one random host and request. nested: with subtrees. */
static Round run_round(bool nested)
{
        uint64_t round = seed;
        _cleanup_free_ char *host = random_host(nested), *words = random_request();
        _cleanup_(host_view_freep) HostView *view = make_view(host);
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        Problem problem = { .view = view, .request = &request };
        Error error = ERROR_NULL;
        int r;

        if (!nested && roll(2))
                use_some(view, "host", classes[roll(3)], 1 + roll(2));
        make_request(&request, words);
        if (nested && !add_subtree(&request))
                return ROUND_NONE;
        split_request(&problem);
        r = fit_freely(view, &request, &fit, &error);
        assert_true(r >= 0 && r != CLAIM_E_TOO_HARD);
        if (r == CLAIM_DONE) {
                take_fit(&problem, &fit);
                if (!complete(&problem, 0))
                        fail_msg("seed %" PRIu64 ": %s\n%s\nbreaks a rule", round, host, words);
                return ROUND_FITS;
        }
        assert_true(error.text[0] != '\0');
        if (brute_force(&problem, 0))
                fail_msg("seed %" PRIu64 ": %s\n%s\nfits, but: %s", round, host, words, error.text);
        return strstr(error.text, "fits alone") ? ROUND_SEARCHED : ROUND_REFUSED;
}

static void test_against_brute_force(void **state)
{
        unsigned n[ROUND_NONE + 1] = { 0 };

        for (seed = 1; n[ROUND_FITS] < FITS_MIN || n[ROUND_SEARCHED] < SEARCHED_MIN;)
                n[run_round(false)]++;
}

/* E8, same_subtree: the same test on trees with more levels. */
static void test_subtrees_against_brute_force(void **state)
{
        unsigned n[ROUND_NONE + 1] = { 0 };

        for (seed = 7; n[ROUND_FITS] < SUBTREE_FITS_MIN ||
                       n[ROUND_SEARCHED] + n[ROUND_REFUSED] < SUBTREE_FITS_MIN;)
                n[run_round(true)]++;
}

/* Cases that longer runs of the above found. Each fits only if one condition of the cuts is kept:
 * equal_providers need the same number of suffixed groups, the same candidates, and the same placed
 * parts. */
static void test_narrow_cases(void **state)
{
        static const struct {
                const char *host, *request;
        } cases[] = {
                { "host VCPU=4/0/1/6/2 VGPU=2/1/1/5/2 +B; p1<host VCPU=4/0/1/6/2 VGPU=2/1/1/5/2 +B;"
                  "p2<host VCPU=6/1/1/5/1 VGPU=3/0/1/2/1 MEMORY_MB=4/0/1/4/1 +B;"
                  "p3<host VCPU=6/1/1/5/1 VGPU=3/0/1/2/1 MEMORY_MB=4/0/1/4/1 +B",
                  "VCPU=2,VGPU=2,MEMORY_MB=3 _1:MEMORY_MB=3:!A _2:VCPU=1,VGPU=2 isolate" },
                { "host VCPU=6/1/2/3/1 MEMORY_MB=3/1/1/5/1 +A;"
                  "p1<host VCPU=1/1/2/4/1 VGPU=1/0/1/5/1 MEMORY_MB=2/0/1/6/2 +A;"
                  "p2<host MEMORY_MB=6/0/1/5/1; p3<host MEMORY_MB=6/0/1/5/1;"
                  "p4<host MEMORY_MB=6/0/1/5/1",
                  "MEMORY_MB=1:A _1:MEMORY_MB=2:A isolate" },
                { "host VCPU=3/1/1/6/1 MEMORY_MB=2/0/1/6/1 +B;"
                  "p1<host VCPU=3/1/1/6/1 MEMORY_MB=2/0/1/6/1 +B; p2<host VCPU=1/1/1/6/1 +B;"
                  "p3<host VCPU=1/1/1/6/1 +B",
                  "VCPU=2,MEMORY_MB=2 _1:VCPU=2 _2:MEMORY_MB=2:!A isolate" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(host_view_freep) HostView *view = make_view(cases[i].host);
                _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT;
                _cleanup_(fit_done) Fit fit = FIT_NULL;
                Problem problem = { .view = view, .request = &request };
                Error error = ERROR_NULL;

                make_request(&request, cases[i].request);
                split_request(&problem);
                if (fit_freely(view, &request, &fit, &error) != CLAIM_DONE)
                        fail_msg("%s: %s", cases[i].request, error.text);
                take_fit(&problem, &fit);
                assert_true(keeps_rules(&problem));
        }
}

/* The same input yields the same fit. */
static void test_deterministic(void **state)
{
        seed = 4711;
        for (int i = 0; i < 500; i++) {
                _cleanup_free_ char *host = random_host(false), *words = random_request();
                _cleanup_free_ char *texts[2] = { NULL, NULL };

                for (int j = 0; j < 2; j++) {
                        _cleanup_(host_view_freep) HostView *view = make_view(host);
                        _cleanup_(resource_request_done) ResourceRequest request =
                                RESOURCE_REQUEST_INIT;
                        _cleanup_(fit_done) Fit fit = FIT_NULL;

                        make_request(&request, words);
                        fit_freely(view, &request, &fit, NULL);
                        texts[j] = format_fit(view, &request, &fit);
                }
                assert_string_equal(texts[0], texts[1]);
                freep(&texts[1]);
                texts[1] = NULL;
        }
}

TEST_MAIN(test_against_brute_force, test_subtrees_against_brute_force, test_narrow_cases,
          test_deterministic)

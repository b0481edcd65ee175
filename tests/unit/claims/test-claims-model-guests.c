/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs thousands of random operations on claims, guests, mdevs and host CPUs, with a reconciliation
 * after each change of a guest. Each operation is also done on a plain model in memory. Both must
 * be equal after each operation, across restarts. The claims choose among several free devices or
 * CPUs. The model checks that the chosen one was free, and takes it over. */

#include <inttypes.h>

#include "claims/reconcile.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/numa.h"
#include "tests/unit/test.h"

#define N_OPERATIONS_DEFAULT 3000 /* CLAIMS_MODEL_OPERATIONS sets another number */
#define N_CONSUMERS          8
#define N_GPUS               2
#define GPU_MDEVS            4 /* largest number on one GPU */
#define N_CPUS               16
#define MDEVS_MAX            4 /* mdevs of one claim */
#define EXPIRY_USEC          (300 * USEC_PER_SEC)
#define START_USEC           (1000 * USEC_PER_SEC)

/* CPUs 0-3 and 8-11 are shared, 4-7 and 12-15 dedicated. */
static const NumaCellSpec specs[] = { { 4, 4, 1, 65536, 0, 0, 0 }, { 4, 4, 1, 65536, 0, 0, 0 } };

#define HOST "host VCPU=64 PCPU=8; host_a<host VGPU=4; host_b<host VGPU=4"

typedef struct ModelClaim {
        bool processes, confirmed;
        int64_t id;
        unsigned n_pcpus, n_vgpus;
        Uuid mdevs[MDEVS_MAX]; /* in the claim */
        unsigned n_mdevs;
        bool held[N_CPUS];
        uint64_t missing_since; /* 0: its guest exists, or was not looked for yet */
} ModelClaim;

typedef struct ModelGuest {
        bool there;
        HostDomain domain;
        Uuid mdevs[MDEVS_MAX];
} ModelGuest;

typedef struct Model {
        NumaFixture facts;
        ModelClaim claims[N_CONSUMERS];
        ModelGuest guests[N_CONSUMERS];
        HostDomain domains[N_CONSUMERS];
        HostMdev mdevs[64];
        ReconcileMemory memory;
        uint64_t now;
        int64_t last_id;
} Model;

static Uuid consumer_uuid(unsigned i)
{
        char name[8];

        snprintf(name, sizeof(name), "g%u", i);
        return make_uuid(name);
}

/* The hypervisor. */

static size_t gpu_of(const Model *model, const Uuid *mdev)
{
        const HostMdev *found = host_facts_find_mdev(&model->facts.facts, mdev);

        return found ? (size_t)(found->device[0] - 'a') : N_GPUS;
}

static void make_facts(Model *model)
{
        HostFacts *facts = &model->facts.facts;
        size_t n_existing[N_GPUS] = { 0 };

        facts->taken_usec = model->now;
        facts->n_domains = 0;
        for (size_t i = 0; i < N_CONSUMERS; i++)
                if (model->guests[i].there)
                        model->domains[facts->n_domains++] = model->guests[i].domain;
        facts->domains = model->domains;
        facts->mdevs = model->mdevs;
        for (size_t i = 0; i < facts->n_mdevs; i++)
                n_existing[facts->mdevs[i].device[0] - 'a']++;
        for (size_t i = 0; i < N_GPUS; i++)
                facts->devices[i].available = GPU_MDEVS - MIN(n_existing[i], (size_t)GPU_MDEVS);
}

static void create_mdev(Model *model, const Uuid *mdev, size_t gpu)
{
        if (host_facts_find_mdev(&model->facts.facts, mdev))
                return;
        assert_true(model->facts.facts.n_mdevs < ARRAY_SIZE(model->mdevs));
        model->mdevs[model->facts.facts.n_mdevs++] =
                (HostMdev){ .uuid = *mdev, .device = gpu ? "b" : "a", .type = "t" };
        make_facts(model);
}

static void remove_guest(Model *model, unsigned i)
{
        ModelGuest *guest = &model->guests[i];

        /* its mdevs are removed with it */
        for (size_t j = 0; j < guest->domain.n_mdevs; j++)
                for (size_t k = model->facts.facts.n_mdevs; k > 0; k--)
                        if (uuid_equal(&model->mdevs[k - 1].uuid, &guest->mdevs[j]))
                                model->mdevs[k - 1] = model->mdevs[--model->facts.facts.n_mdevs];
        layout_done(&guest->domain.layout);
        *guest = (ModelGuest){ 0 };
        make_facts(model);
}

/* Adds a guest with these pins, the lowest first. Its cell is that of the first pin. */
static void add_guest(Model *model, unsigned i, const bool pins[static N_CPUS], const Uuid *mdevs,
                      unsigned n_mdevs)
{
        ModelGuest *guest = &model->guests[i];
        Layout *layout = &guest->domain.layout;
        unsigned n = 0;

        guest->there = true;
        guest->domain = (HostDomain){ .uuid = consumer_uuid(i), .name = "g", .running = true };
        guest->domain.mdevs = guest->mdevs;
        guest->domain.n_mdevs = n_mdevs;
        for (unsigned j = 0; j < n_mdevs; j++)
                guest->mdevs[j] = mdevs[j];
        assert_int_equal(layout_reserve(layout, 1, N_CPUS), 0);
        for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
                LayoutCpu *pin;

                if (!pins[cpu])
                        continue;
                if (n == 0)
                        layout->cells[layout->n_cells++].host_cell = cpu / 8;
                pin = &layout->cpus[layout->n_cpus++];
                pin->vcpu = n++;
                pin->dedicated = true;
                assert_int_equal(cpu_set_add(&pin->cpus, cpu), 0);
                assert_int_equal(cpu_set_add(&layout->held, cpu), 0);
                assert_int_equal(cpu_set_add(&layout->cells[0].vcpus, pin->vcpu), 0);
        }
        guest->domain.vcpus = n;
        make_facts(model);
}

/* The free resources of the model. */

static bool is_held(const Model *model, unsigned cpu)
{
        for (size_t i = 0; i < N_CONSUMERS; i++)
                if (model->claims[i].processes && model->claims[i].held[cpu])
                        return true;
        return false;
}

static bool is_named(const Model *model, const Uuid *mdev)
{
        for (size_t i = 0; i < N_CONSUMERS; i++)
                for (unsigned j = 0; model->claims[i].processes && j < model->claims[i].n_mdevs;
                     j++)
                        if (uuid_equal(&model->claims[i].mdevs[j], mdev))
                                return true;
        return false;
}

static unsigned sum_pcpus(const Model *model)
{
        unsigned sum = 0;

        for (size_t i = 0; i < N_CONSUMERS; i++)
                sum += model->claims[i].processes ? model->claims[i].n_pcpus : 0;
        return sum;
}

static bool pcpus_fit(const Model *model, unsigned n)
{
        if (n == 0)
                return true;
        for (unsigned cell = 0; cell < 2; cell++) {
                unsigned n_free = 0;

                for (unsigned cpu = 8 * cell + 4; cpu < 8 * cell + 8; cpu++)
                        n_free += !is_held(model, cpu);
                if (n_free >= n && sum_pcpus(model) + n <= 8)
                        return true;
        }
        return false;
}

/* Operations on claims. */

static void take_claim(Model *model, unsigned i, const Claim *claim)
{
        ModelClaim *to = &model->claims[i];

        *to = (ModelClaim){ .processes = true,
                            .id = claim->id,
                            .n_pcpus = (unsigned)claim_sum(claim, "PCPU"),
                            .n_vgpus = (unsigned)claim_sum(claim, "VGPU"),
                            .confirmed = claim->state == CLAIM_STATE_CONFIRMED };
        assert_true(claim->id > model->last_id); /* ids are never used again */
        model->last_id = claim->id;
        assert_true(claim->n_devices <= MDEVS_MAX);
        for (size_t j = 0; j < claim->n_devices; j++) {
                Uuid mdev = claim->devices[j].mdev;

                to->processes = false; /* compare with other claims only */
                assert_false(is_named(model, &mdev));
                to->processes = true;
                to->mdevs[to->n_mdevs++] = mdev;
        }
        to->processes = false;
        CPU_SET_FOREACH(cpu, &claim->layout.held) {
                assert_true(cpu < N_CPUS && cpu % 8 >= 4 && !is_held(model, cpu));
                to->held[cpu] = true;
        }
        to->processes = true;
}

static bool facts_has_guest_with(const HostFacts *facts, const Uuid *mdev)
{
        for (size_t i = 0; i < facts->n_domains; i++)
                for (size_t j = 0; j < facts->domains[i].n_mdevs; j++)
                        if (uuid_equal(&facts->domains[i].mdevs[j], mdev))
                                return true;
        return false;
}

static void do_claim(Fixture *fixture, Model *model)
{
        unsigned i = roll(N_CONSUMERS), n_pcpus = roll(4), n_vgpus = roll(3);
        ClaimRequest request = { .consumer = consumer_uuid(i) };
        _cleanup_(claim_freep) Claim *claim = NULL;
        const NumaOptions options = { 0 };
        bool had = model->claims[i].processes;
        RequestGroup *group;
        int r;

        if (n_pcpus + n_vgpus == 0)
                return;
        if (n_pcpus > 0) {
                assert_int_equal(resource_request_group(&request.resources, "", &group, NULL), 0);
                assert_int_equal(resources_set(&group->resources, "PCPU", n_pcpus), 0);
                assert_int_equal(numa_request_make(&options, &group->resources,
                                                   &request.resources.numa, NULL),
                                 0);
        }
        if (n_vgpus > 0) {
                assert_int_equal(resource_request_group(&request.resources, "_G", &group, NULL), 0);
                assert_int_equal(resources_set(&group->resources, "VGPU", n_vgpus), 0);
        }
        r = claims_claim(fixture->claims, &request, NULL, &claim, NULL, &fixture->error);
        resource_request_done(&request.resources);
        if (had) {
                assert_true(r == CLAIM_E_CONFLICT || r == CLAIM_DONE);
                if (r == CLAIM_DONE)
                        assert_int_equal(claim->id, model->claims[i].id);
                return;
        }
        if (!pcpus_fit(model, n_pcpus))
                assert_int_equal(r, CLAIM_E_NO_CAPACITY);
        else if (n_vgpus == 0)
                assert_int_equal(r, CLAIM_DONE);
        if (r != CLAIM_DONE) {
                assert_int_equal(r, CLAIM_E_NO_CAPACITY);
                return;
        }
        take_claim(model, i, claim);
        assert_int_equal(claim->n_devices, n_vgpus);
        assert_int_equal(cpu_set_count(&claim->layout.held), n_pcpus);
        for (size_t j = 0; j < claim->n_devices; j++)
                assert_false(facts_has_guest_with(&model->facts.facts, &claim->devices[j].mdev));
}

static void do_confirm(Fixture *fixture, Model *model)
{
        ModelClaim *claim = &model->claims[roll(N_CONSUMERS)];

        if (!claim->processes)
                return;
        assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), CLAIM_DONE);
        claim->confirmed = true;
}

static void do_release(Fixture *fixture, Model *model)
{
        unsigned i = roll(N_CONSUMERS);

        assert_int_equal(claims_release(fixture->claims, model->claims[i].id, "done", NULL),
                         model->claims[i].processes ? CLAIM_DONE : CLAIM_E_NOT_FOUND);
        model->claims[i] = (ModelClaim){ 0 };
}

static void do_reopen(Fixture *fixture, Model *model)
{
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        claims_set_facts(fixture->claims, &model->facts.facts);
}

/* The agent's handling of the actions. */

static void model_adopt(Fixture *fixture, Model *model, const HostDomain *domain)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        unsigned i = 0, n_vgpus = 0, n_pins = cpu_set_count(&domain->layout.held);
        bool conflict = false;
        int r;

        while (!uuid_equal(&model->guests[i].domain.uuid, &domain->uuid))
                i++;
        for (size_t j = 0; j < domain->n_mdevs; j++) {
                conflict = conflict || is_named(model, &domain->mdevs[j]);
                n_vgpus += !is_named(model, &domain->mdevs[j]);
        }
        CPU_SET_FOREACH(cpu, &domain->layout.held)
                conflict = conflict || is_held(model, cpu);
        r = claims_adopt(fixture->claims, domain, &claim, &fixture->error);
        if (n_pins + n_vgpus == 0) {
                assert_int_equal(r, CLAIM_E_CONFLICT);
                assert_null(claim);
                return;
        }
        assert_int_equal(r == CLAIM_E_CONFLICT, conflict);
        assert_non_null(claim);
        assert_int_equal(claim->state, CLAIM_STATE_CONFIRMED);
        assert_int_equal(claim->n_devices, n_vgpus);
        assert_int_equal(claim_sum(claim, "PCPU"), n_pins);
        take_claim(model, i, claim);
}

static void model_check(Fixture *fixture, Model *model, const ReconcileAction *action)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        uint64_t since;
        unsigned i = 0;

        (void)claims_check_again(fixture->claims, action->claim_id, action->domain, &(bool){ 0 },
                                 NULL);
        while (model->claims[i].id != action->claim_id)
                i++;
        assert_int_equal(claims_get(fixture->claims, action->claim_id, &claim, NULL), 0);
        /* it can have got devices and a layout: none that another claim has */
        since = model->claims[i].missing_since;
        model->claims[i].processes = false;
        model->last_id = claim->id - 1;
        take_claim(model, i, claim);
        model->claims[i].missing_since = since;
}

static void act(Fixture *fixture, Model *model, const ReconcileAction *action)
{
        ModelClaim *claim = NULL;
        int64_t last_id = model->last_id;

        for (size_t i = 0; i < N_CONSUMERS; i++)
                if (model->claims[i].processes && model->claims[i].id == action->claim_id)
                        claim = &model->claims[i];
        switch (action->type) {
        case RECONCILE_ADOPT:
                model_adopt(fixture, model, action->domain);
                return;
        case RECONCILE_RELEASE:
                assert_true(claim && claim->confirmed);
                assert_true(claim->missing_since &&
                            model->now - claim->missing_since >= EXPIRY_USEC);
                assert_int_equal(claims_release(fixture->claims, action->claim_id, "", NULL), 0);
                *claim = (ModelClaim){ 0 };
                return;
        case RECONCILE_CONFIRM:
                assert_non_null(claim);
                assert_int_equal(claims_confirm(fixture->claims, action->claim_id, NULL), 0);
                claim->confirmed = true;
                return;
        default:
                assert_non_null(claim);
                model_check(fixture, model, action);
                model->last_id = last_id;
        }
}

static void do_reconcile(Fixture *fixture, Model *model)
{
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        ReconcileInput input = { .claims = &list,
                                 .facts = &model->facts.facts,
                                 .node = "host",
                                 .boot_id = claims_boot_id(fixture->claims),
                                 .expiry_usec = EXPIRY_USEC };

        model->now += roll(120) * USEC_PER_SEC;
        make_facts(model);
        for (size_t i = 0; i < N_CONSUMERS; i++) {
                ModelClaim *claim = &model->claims[i];

                if (!claim->processes || !claim->confirmed || model->guests[i].there)
                        claim->missing_since = 0;
                else if (claim->missing_since == 0)
                        claim->missing_since = model->now;
        }
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(claims_host(fixture->claims, &input.view, NULL), 0);
        assert_int_equal(reconcile_make(&input, &model->memory, &reconcile), 0);
        for (size_t i = 0; i < reconcile.n_actions; i++)
                act(fixture, model, &reconcile.actions[i]);
        /* a guest has a claim, unless another claim has all of its resources */
        for (size_t i = 0; i < N_CONSUMERS; i++)
                if (model->guests[i].there && cpu_set_count(&model->guests[i].domain.layout.held))
                        assert_true(model->claims[i].processes);
}

/* Operations on guests, each with a reconciliation. */

/* Starts a guest with the resources of its claim, and creates the new mdevs. */
static void do_start(Fixture *fixture, Model *model)
{
        unsigned i = roll(N_CONSUMERS);
        ModelClaim *claim = &model->claims[i];
        _cleanup_(claim_freep) Claim *read = NULL;

        if (!claim->processes || model->guests[i].there)
                return;
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        for (size_t j = 0; j < read->n_devices; j++)
                create_mdev(model, &read->devices[j].mdev, strcmp(read->devices[j].name, "b") == 0);
        add_guest(model, i, claim->held, claim->mdevs, claim->n_mdevs);
        do_reconcile(fixture, model);
}

/* Starts a guest on any CPUs and devices, even if claims have them. */
static void do_start_without_claim(Fixture *fixture, Model *model)
{
        unsigned i = roll(N_CONSUMERS), n = 1 + roll(2), first = 4 + 8 * roll(2) + roll(2);
        bool pins[N_CPUS] = { false };
        Uuid mdev = uuid_make_random();
        bool takes_mdev = roll(2);
        size_t gpu = roll(N_GPUS);

        if (model->guests[i].there || model->claims[i].processes)
                return;
        for (unsigned j = 0; j < n; j++)
                pins[first + j] = true;
        /* sometimes an existing one that another claim has */
        if (takes_mdev && model->facts.facts.n_mdevs > 0 && roll(3) == 0)
                mdev = model->mdevs[roll((unsigned)model->facts.facts.n_mdevs)].uuid;
        if (takes_mdev && facts_has_guest_with(&model->facts.facts, &mdev))
                takes_mdev = false;
        if (takes_mdev && gpu_of(model, &mdev) == N_GPUS) {
                if (model->facts.devices[gpu].available == 0)
                        takes_mdev = false;
                else
                        create_mdev(model, &mdev, gpu);
        }
        add_guest(model, i, pins, &mdev, takes_mdev);
        do_reconcile(fixture, model);
}

static void do_stop(Fixture *fixture, Model *model)
{
        remove_guest(model, roll(N_CONSUMERS));
        do_reconcile(fixture, model);
}

/* Compares the claims of the model and of the store. */

static void compare_claim(const Model *model, const Claim *claim)
{
        const ModelClaim *expected = NULL;
        unsigned i = 0;

        for (; i < N_CONSUMERS && !expected; i++)
                if (model->claims[i].processes && model->claims[i].id == claim->id)
                        expected = &model->claims[i];
        assert_non_null(expected);
        assert_int_equal(claim->state == CLAIM_STATE_CONFIRMED, expected->confirmed);
        assert_int_equal(claim_sum(claim, "PCPU"), expected->n_pcpus);
        assert_int_equal(claim_sum(claim, "VGPU"), expected->n_vgpus);
        assert_int_equal(claim->n_devices, expected->n_mdevs);
        for (unsigned j = 0; j < expected->n_mdevs; j++)
                assert_true(claim_has_mdev(claim, &expected->mdevs[j]));
        for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
                assert_int_equal(cpu_set_contains(&claim->layout.held, cpu), expected->held[cpu]);
}

static void compare(Fixture *fixture, const Model *model)
{
        ClaimList list = { 0 };
        const HostView *view;
        size_t n = 0;

        for (size_t i = 0; i < N_CONSUMERS; i++)
                n += model->claims[i].processes;
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, n);
        for (size_t i = 0; i < n; i++)
                compare_claim(model, list.claims[i]);
        claim_list_done(&list);
        assert_int_equal(fixture_used(fixture, "host", "PCPU"), sum_pcpus(model));
        assert_int_equal(claims_host(fixture->claims, &view, NULL), 0);
        for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
                assert_int_equal(cpu_set_contains(&view->held, cpu), is_held(model, cpu));
}

static void test_model(void **state)
{
        static const struct {
                unsigned weight;
                void (*run)(Fixture *fixture, Model *model);
        } operations[] = {
                { 30, do_claim },
                { 15, do_confirm },
                { 10, do_release },
                { 15, do_start },
                { 8, do_start_without_claim },
                { 12, do_stop },
                { 8, do_reconcile },
                { 2, do_reopen },
        };
        const char *wanted = getenv("CLAIMS_MODEL_OPERATIONS");
        unsigned n = wanted ? (unsigned)atoi(wanted) : N_OPERATIONS_DEFAULT;
        Fixture *fixture = *state;
        Model *model = calloc(1, sizeof(Model));

        assert_non_null(model);
        numa_fixture_make(&model->facts, specs, 2);
        numa_fixture_device(&model->facts, "a", HOST_CELL_NONE);
        numa_fixture_device(&model->facts, "b", HOST_CELL_NONE);
        model->now = START_USEC;
        make_facts(model);
        fixture_create(fixture, HOST);
        claims_set_facts(fixture->claims, &model->facts.facts);
        seed = 1;
        for (unsigned i = 0; i < n; i++) {
                unsigned pick = roll(100);
                size_t j = 0;

                for (; pick >= operations[j].weight; j++)
                        pick -= operations[j].weight;
                operations[j].run(fixture, model);
                compare(fixture, model);
        }
        assert_true(model->last_id > n / 10);
        print_message("%u operations, %" PRIi64 " claims\n", n, model->last_id);
        for (unsigned i = 0; i < N_CONSUMERS; i++)
                remove_guest(model, i);
        reconcile_memory_done(&model->memory);
        fixture_close(fixture);
        assert_store_sane(fixture->path);
        free(model);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_model)

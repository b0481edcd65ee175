/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs thousands of random operations, each also on a plain model in memory. Both must have the
 * same results after each operation, across restarts and changes of the host. */

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define N_OPERATIONS 10000
#define N_CONSUMERS  12
#define CLAIMS_MAX   (N_CONSUMERS * 2)
#define N_GPUS       3

/* One root and some GPUs; a group of VGPUs comes from one of them. */
static const struct {
        const char *text;
        unsigned vcpus, gpus[N_GPUS];
} hosts[] = {
        { "host VCPU=16; gpu_0<host VGPU=4; gpu_1<host VGPU=6; gpu_2<host VGPU=6",
          16,
          { 4, 6, 6 } },
        { "host VCPU=20; gpu_0<host VGPU=4; gpu_2<host VGPU=6", 20, { 4, 0, 6 } },
        { "host VCPU=8; gpu_0<host VGPU=2; gpu_1<host VGPU=6", 8, { 2, 6, 0 } },
};

typedef struct ModelClaim {
        bool processes, confirmed;
        int64_t id;
        unsigned consumer;
        bool target;
        unsigned vcpus, vgpus;
        size_t gpu;
        uint64_t expires;
} ModelClaim;

typedef struct Model {
        ModelClaim claims[CLAIMS_MAX];
        size_t host;
        int64_t last_id;
} Model;

static unsigned used_vcpus(const Model *model)
{
        unsigned sum = 0;

        for (size_t i = 0; i < CLAIMS_MAX; i++)
                sum += model->claims[i].processes ? model->claims[i].vcpus : 0;
        return sum;
}

static unsigned used_vgpus(const Model *model, size_t gpu)
{
        unsigned sum = 0;

        for (size_t i = 0; i < CLAIMS_MAX; i++)
                if (model->claims[i].processes && model->claims[i].gpu == gpu)
                        sum += model->claims[i].vgpus;
        return sum;
}

static ModelClaim *find(Model *model, unsigned consumer, bool target)
{
        for (size_t i = 0; i < CLAIMS_MAX; i++)
                if (model->claims[i].processes && model->claims[i].consumer == consumer &&
                    model->claims[i].target == target)
                        return &model->claims[i];
        return NULL;
}

static ModelClaim *find_id(Model *model, int64_t id)
{
        for (size_t i = 0; i < CLAIMS_MAX; i++)
                if (model->claims[i].processes && model->claims[i].id == id)
                        return &model->claims[i];
        return NULL;
}

/* Returns the GPU with most free capacity; N_GPUS if none has enough. */
static size_t choose_gpu(const Model *model, unsigned vgpus)
{
        size_t best = N_GPUS;
        unsigned most = 0;

        for (size_t i = 0; i < N_GPUS; i++) {
                unsigned total = hosts[model->host].gpus[i], used = used_vgpus(model, i);

                if (total > used && total - used >= vgpus && total - used > most) {
                        most = total - used;
                        best = i;
                }
        }
        return best;
}

static ClaimOutcome model_claim(Model *model, unsigned consumer, bool target, unsigned vcpus,
                                unsigned vgpus)
{
        ModelClaim *claim = find(model, consumer, target);
        size_t gpu = vgpus ? choose_gpu(model, vgpus) : 0;

        if (claim)
                return claim->vcpus == vcpus && claim->vgpus == vgpus ? CLAIM_DONE
                                                                      : CLAIM_E_CONFLICT;
        if (used_vcpus(model) + vcpus > hosts[model->host].vcpus || gpu == N_GPUS)
                return CLAIM_E_NO_CAPACITY;
        for (claim = model->claims; claim->processes; claim++)
                ;
        *claim = (ModelClaim){ .processes = true,
                               .id = ++model->last_id,
                               .consumer = consumer,
                               .target = target,
                               .vcpus = vcpus,
                               .vgpus = vgpus,
                               .gpu = gpu };
        return CLAIM_DONE;
}

/* A confirmed target without a first claim becomes the first. */
static void model_promote(Model *model, unsigned consumer)
{
        ModelClaim *target = find(model, consumer, true);

        if (target && target->confirmed && !find(model, consumer, false))
                target->target = false;
}

static void model_end(Model *model, ModelClaim *claim)
{
        claim->processes = false;
        model_promote(model, claim->consumer);
}

static void compare_claim(Model *model, const Claim *claim)
{
        const ModelClaim *expected = find_id(model, claim->id);
        char gpu[16];
        Uuid uuid;

        assert_non_null(expected);
        assert_int_equal(claim->state == CLAIM_STATE_CONFIRMED, expected->confirmed);
        assert_int_equal(claim->resize_target, expected->target);
        assert_int_equal(claim->n_allocations, 1 + (expected->vgpus > 0));
        assert_int_equal(claim_sum(claim, "VCPU"), expected->vcpus);
        assert_int_equal(claim_sum(claim, "VGPU"), expected->vgpus);
        snprintf(gpu, sizeof(gpu), "gpu_%zu", expected->gpu);
        uuid = make_uuid(gpu);
        for (size_t i = 0; i < claim->mappings.n_items; i++)
                if (strcmp(claim->mappings.items[i].suffix, "_G") == 0)
                        assert_string_equal(claim->mappings.items[i].provider.text, uuid.text);
        if (expected->confirmed)
                assert_int_equal(claim->expires_usec, 0);
        else if (expected->expires)
                assert_int_equal(claim->expires_usec, expected->expires);
}

static void compare(Fixture *fixture, Model *model)
{
        ClaimList list = { 0 };
        size_t n = 0;

        for (size_t i = 0; i < CLAIMS_MAX; i++)
                n += model->claims[i].processes;
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, n);
        for (size_t i = 0; i < n; i++) {
                assert_true(i == 0 || list.claims[i - 1]->id < list.claims[i]->id);
                compare_claim(model, list.claims[i]);
        }
        claim_list_done(&list);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), used_vcpus(model));
        assert_int_equal(fixture_used(fixture, "gpu_0", "VGPU"), used_vgpus(model, 0));
        assert_int_equal(fixture_used(fixture, "gpu_1", "VGPU"), used_vgpus(model, 1));
        assert_int_equal(fixture_used(fixture, "gpu_2", "VGPU"), used_vgpus(model, 2));
}

static void do_claim(Fixture *fixture, Model *model)
{
        unsigned consumer = roll(N_CONSUMERS), vcpus = 1 + roll(4), vgpus = roll(4);
        bool target = roll(4) == 0;
        _cleanup_(claim_freep) Claim *claim = NULL;
        char name[16], text[64];
        int r;

        snprintf(name, sizeof(name), "vm-%u", consumer);
        if (vgpus)
                snprintf(text, sizeof(text), "VCPU=%u _G:VGPU=%u", vcpus, vgpus);
        else
                snprintf(text, sizeof(text), "VCPU=%u", vcpus);
        r = target ? fixture_claim_target(fixture, name, text, &claim)
                   : fixture_claim(fixture, name, text, &claim);
        assert_int_equal(r, model_claim(model, consumer, target, vcpus, vgpus));
        if (r == CLAIM_DONE)
                assert_int_equal(claim->id, find(model, consumer, target)->id);
}

/* Returns the id of a living claim in most cases; else one that ended or never existed. */
static int64_t pick_id(Model *model)
{
        for (int i = 0; i < 20; i++) {
                const ModelClaim *claim = &model->claims[roll(CLAIMS_MAX)];

                if (claim->processes)
                        return claim->id;
        }
        return roll((unsigned)model->last_id + 3);
}

static void do_confirm(Fixture *fixture, Model *model)
{
        int64_t id = pick_id(model);
        ModelClaim *claim = find_id(model, id);

        assert_int_equal(claims_confirm(fixture->claims, id, NULL),
                         claim ? CLAIM_DONE : CLAIM_E_NOT_FOUND);
        if (!claim)
                return;
        claim->confirmed = true;
        claim->expires = 0;
        model_promote(model, claim->consumer);
}

static void do_release(Fixture *fixture, Model *model)
{
        int64_t id = pick_id(model);
        ModelClaim *claim = find_id(model, id);

        assert_int_equal(claims_release(fixture->claims, id, "done", NULL),
                         claim ? CLAIM_DONE : CLAIM_E_NOT_FOUND);
        if (claim)
                model_end(model, claim);
}

static void do_abort(Fixture *fixture, Model *model)
{
        int64_t id = pick_id(model);
        ModelClaim *claim = find_id(model, id);

        assert_int_equal(claims_abort(fixture->claims, id, "", NULL), !claim ? CLAIM_E_NOT_FOUND
                                                                      : claim->confirmed
                                                                              ? CLAIM_E_CONFLICT
                                                                              : CLAIM_DONE);
        if (claim && !claim->confirmed)
                model_end(model, claim);
}

/* Times of the model are all far in the future, so that only do_expire() ends claims. */
#define FUTURE (UINT64_C(4102444800) * USEC_PER_SEC)

static void do_extend(Fixture *fixture, Model *model)
{
        int64_t id = pick_id(model);
        ModelClaim *claim = find_id(model, id);
        uint64_t expires = FUTURE + roll(1000);

        assert_int_equal(claims_extend(fixture->claims, id, expires, NULL),
                         !claim             ? CLAIM_E_NOT_FOUND
                         : claim->confirmed ? CLAIM_E_CONFLICT
                                            : CLAIM_DONE);
        if (claim && !claim->confirmed)
                claim->expires = expires;
}

static void do_expire(Fixture *fixture, Model *model)
{
        uint64_t now = FUTURE + roll(1000), n, expected = 0;

        assert_int_equal(claims_expire(fixture->claims, now, &n, NULL), 0);
        for (size_t i = 0; i < CLAIMS_MAX; i++) {
                ModelClaim *claim = &model->claims[i];

                if (!claim->processes || claim->confirmed || claim->expires > now)
                        continue;
                model_end(model, claim);
                expected++;
        }
        assert_int_equal(n, expected);
}

static void do_set_host(Fixture *fixture, Model *model)
{
        model->host = roll(ARRAY_SIZE(hosts));
        fixture_set_host(fixture, hosts[model->host].text);
}

static void do_reopen(Fixture *fixture, Model *model)
{
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
}

static void test_model(void **state)
{
        static const struct {
                unsigned weight;
                void (*run)(Fixture *fixture, Model *model);
        } operations[] = {
                { 40, do_claim }, { 15, do_confirm }, { 12, do_release }, { 5, do_abort },
                { 8, do_extend }, { 2, do_expire },   { 4, do_set_host }, { 1, do_reopen },
        };
        Fixture *fixture = *state;
        Model model = { 0 };

        fixture_create(fixture, hosts[0].text);
        seed = 1;
        for (int i = 0; i < N_OPERATIONS; i++) {
                unsigned pick = roll(87);
                size_t j = 0;

                for (; pick >= operations[j].weight; j++)
                        pick -= operations[j].weight;
                operations[j].run(fixture, &model);
                compare(fixture, &model);
        }
        assert_true(model.last_id > 500);
        fixture_close(fixture);
        assert_store_sane(fixture->path);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_model)

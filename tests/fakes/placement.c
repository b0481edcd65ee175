/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/fakes/placement.h"

#include <string.h>

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

typedef enum FakeKind { FAKE_READ, FAKE_WRITE, FAKE_CAPACITY } FakeKind;

struct ConsumersCall {
        sd_event_source *source;
        FakeKind kind;
        Uuid uuid;
        Allocations *written;
        Consumer *free_capacity; /* as of the time of the request: other writers can change it
                                  * before the answer */
        ConsumersDone done;
        void *userdata;
};

static struct {
        sd_event *event;
        const ProviderTree *tree;
        Allocations *consumers;
        FakeTrouble trouble;
        unsigned skip, hits, n_requests;
        bool on, hangs;
        Allocations *late[8];
        size_t n_late;
} fake;

void fake_placement_begin(sd_event *event, const ProviderTree *tree)
{
        memset(&fake, 0, sizeof(fake));
        fake.event = event;
        fake.tree = tree;
        assert_int_equal(allocations_new(&fake.consumers), 0);
}

void fake_placement_end(void)
{
        allocations_free(fake.consumers);
        for (size_t i = 0; i < fake.n_late; i++)
                allocations_free(fake.late[i]);
        memset(&fake, 0, sizeof(fake));
}

void fake_placement_trouble(FakeTrouble trouble, unsigned skip, bool on)
{
        fake.trouble = trouble;
        fake.skip = skip;
        fake.on = on;
        fake.hits = 0;
        fake.hangs = false;
}

bool fake_placement_hangs(void)
{
        return fake.hangs;
}

unsigned fake_placement_get_hits(void)
{
        return fake.hits;
}

unsigned fake_placement_get_n_requests(void)
{
        return fake.n_requests;
}

size_t fake_placement_count(void)
{
        return fake.consumers->n_consumers;
}

/* The rules. */

static uint64_t used(const Uuid *provider, const char *resource_class, const Allocations *but)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < fake.consumers->n_consumers; i++) {
                const Consumer *consumer = fake.consumers->consumers[i];
                const Resources *held = consumer_find(consumer, provider);

                if (held && !(but && allocations_find(but, &consumer->uuid)))
                        sum += resources_get(held, resource_class);
        }
        return sum;
}

static uint64_t free_capacity(const Uuid *provider, const char *resource_class,
                              const Allocations *but)
{
        const Provider *found = provider_tree_find(fake.tree, provider);
        const Inventory *inventory = found ? provider_find_inventory(found, resource_class) : NULL;

        return inventory ? inventory_capacity(inventory) - used(provider, resource_class, but) : 0;
}

static bool fits(const Allocations *written, const Consumer *consumer)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];

                for (size_t j = 0; j < held->resources.n_items; j++)
                        if (free_capacity(&held->provider, held->resources.items[j].resource_class,
                                          written) < held->resources.items[j].amount)
                                return false;
        }
        return true;
}

static bool is_current(const Consumer *consumer)
{
        const Consumer *now = allocations_find(fake.consumers, &consumer->uuid);

        return consumer->generation == (now ? now->generation : -1);
}

static void store(const Consumer *consumer)
{
        Consumer *copy;

        (void)allocations_remove(fake.consumers, &consumer->uuid);
        if (consumer->n_allocations == 0)
                return;
        assert_int_equal(consumer_copy(&copy, consumer), 0);
        copy->generation = consumer->generation < 0 ? 1 : consumer->generation + 1;
        assert_int_equal(allocations_add(fake.consumers, copy), 0);
}

/* Returns the status of the answer, and in *ret the result of the call. */
static int write_all(const Allocations *written, int *ret)
{
        for (size_t i = 0; i < written->n_consumers; i++)
                if (!is_current(written->consumers[i])) {
                        *ret = REPORT_E_CONFLICT;
                        return 409;
                }
        for (size_t i = 0; i < written->n_consumers; i++)
                if (!fits(written, written->consumers[i])) {
                        *ret = REPORT_E_REFUSED;
                        return 409;
                }
        for (size_t i = 0; i < written->n_consumers; i++)
                store(written->consumers[i]);
        *ret = REPORT_DONE;
        return 204;
}

void fake_placement_arrive(bool all)
{
        int result;

        for (size_t i = 0; i < fake.n_late; i++) {
                const Allocations *written = fake.late[i];

                if (all || (written->n_consumers == 1 && written->consumers[0]->n_allocations > 0))
                        (void)write_all(written, &result);
                allocations_free(fake.late[i]);
        }
        fake.n_late = 0;
}

/* Answers. */

static Consumer *find_capacity(const Uuid *root)
{
        const Uuid nobody = UUID_NULL;
        Consumer *left;

        assert_int_equal(consumer_new(&left, &nobody), 0);
        for (size_t i = 0; i < fake.tree->n_providers; i++) {
                const Provider *provider = fake.tree->providers[i];

                if (!provider_tree_in_subtree(fake.tree, provider, root))
                        continue;
                for (size_t j = 0; j < provider->n_inventories; j++) {
                        const char *resource_class = provider->inventories[j].resource_class;

                        assert_true(consumer_set(left, &provider->uuid, resource_class,
                                                 free_capacity(&provider->uuid, resource_class,
                                                               NULL)) >= 0);
                }
        }
        return left;
}

static FakeTrouble take_trouble(void)
{
        if (fake.trouble == FAKE_TROUBLE_NONE)
                return FAKE_TROUBLE_NONE;
        if (fake.skip > 0) {
                fake.skip--;
                return FAKE_TROUBLE_NONE;
        }
        if (fake.hits > 0 && !fake.on)
                return FAKE_TROUBLE_NONE;
        fake.hits++;
        return fake.trouble;
}

static bool is_done(FakeTrouble trouble)
{
        return trouble == FAKE_TROUBLE_NONE || trouble == FAKE_TROUBLE_CUT ||
               trouble == FAKE_TROUBLE_HUNG || trouble == FAKE_TROUBLE_TWICE;
}

static void answer_well(ConsumersCall *call, int *result, ConsumersAnswer *answer)
{
        const Consumer *found = allocations_find(fake.consumers, &call->uuid);

        *result = REPORT_DONE;
        answer->status = 200;
        if (call->kind == FAKE_WRITE)
                answer->status = write_all(call->written, result);
        else if (call->kind == FAKE_CAPACITY)
                answer->consumer = TAKE_PTR(call->free_capacity);
        else if (found)
                assert_int_equal(consumer_copy(&answer->consumer, found), 0);
        else
                assert_int_equal(consumer_new(&answer->consumer, &call->uuid), 0);
}

static void answer_ill(FakeTrouble trouble, int *result, ConsumersAnswer *answer)
{
        consumer_free(answer->consumer);
        *answer = (ConsumersAnswer){ .status = trouble == FAKE_TROUBLE_ERROR ? 500 : 0 };
        *result = trouble == FAKE_TROUBLE_ERROR ? REPORT_E_UNAVAILABLE : REPORT_E_UNREACHABLE;
        if (trouble < FAKE_TROUBLE_RACE)
                return;
        answer->status = 409;
        *result = trouble == FAKE_TROUBLE_NO_CAPACITY ? REPORT_E_REFUSED : REPORT_E_CONFLICT;
}

static int on_turn(sd_event_source *source, void *userdata)
{
        ConsumersCall *call = userdata;
        ConsumersDone done = call->done;
        void *to = call->userdata;
        ConsumersAnswer answer = { 0 };
        FakeTrouble trouble = take_trouble();
        Error error = ERROR_NULL;
        int result;

        /* These troubles concern only writes. */
        if (call->kind != FAKE_WRITE && trouble >= FAKE_TROUBLE_RACE)
                trouble = FAKE_TROUBLE_NONE;
        if (is_done(trouble))
                answer_well(call, &result, &answer);
        if (trouble == FAKE_TROUBLE_LATE && call->kind == FAKE_WRITE) {
                assert_true(fake.n_late < ARRAY_SIZE(fake.late));
                fake.late[fake.n_late++] = TAKE_PTR(call->written);
        }
        if (trouble == FAKE_TROUBLE_HANG || trouble == FAKE_TROUBLE_HUNG) {
                consumer_free(answer.consumer);
                fake.hangs = true;
                return 0;
        }
        if (trouble != FAKE_TROUBLE_NONE)
                answer_ill(trouble, &result, &answer);
        if (result != REPORT_DONE)
                error_setf(&error, EREMOTEIO, "Trouble %d", trouble);
        consumers_cancel(call);
        done(result, &answer, &error, to);
        consumer_free(answer.consumer);
        return 0;
}

static ConsumersCall *begin_call(FakeKind kind, ConsumersDone done, void *userdata)
{
        ConsumersCall *call = calloc(1, sizeof(ConsumersCall));

        assert_non_null(call);
        fake.n_requests++;
        call->kind = kind;
        call->done = done;
        call->userdata = userdata;
        assert_true(sd_event_add_defer(fake.event, &call->source, on_turn, call) >= 0);
        return call;
}

ConsumersCall *consumers_cancel(ConsumersCall *call)
{
        if (!call)
                return NULL;
        sd_event_source_disable_unref(call->source);
        allocations_free(call->written);
        consumer_free(call->free_capacity);
        free(call);
        return NULL;
}

int consumers_read(ConsumersCall **ret, Session *session, const Uuid *uuid, ConsumersDone done,
                   void *userdata, Error *reterr)
{
        *ret = begin_call(FAKE_READ, done, userdata);
        (*ret)->uuid = *uuid;
        return 0;
}

int consumers_write(ConsumersCall **ret, Session *session, const Consumer *consumer,
                    const RequestMappings *mappings, ConsumersDone done, void *userdata,
                    Error *reterr)
{
        Consumer *copy;

        assert_non_null(consumer->project_id);
        assert_non_null(consumer->user_id);
        *ret = begin_call(FAKE_WRITE, done, userdata);
        assert_int_equal(allocations_new(&(*ret)->written), 0);
        assert_int_equal(consumer_copy(&copy, consumer), 0);
        assert_int_equal(allocations_add((*ret)->written, copy), 0);
        return 0;
}

int consumers_move(ConsumersCall **ret, Session *session, const Allocations *consumers,
                   ConsumersDone done, void *userdata, Error *reterr)
{
        *ret = begin_call(FAKE_WRITE, done, userdata);
        assert_int_equal(allocations_copy(&(*ret)->written, consumers), 0);
        return 0;
}

int capacity_read(ConsumersCall **ret, Session *session, const Uuid *root,
                  const char *resource_class, uint64_t amount, ConsumersDone done, void *userdata,
                  Error *reterr)
{
        *ret = begin_call(FAKE_CAPACITY, done, userdata);
        (*ret)->free_capacity = find_capacity(root);
        return 0;
}

/* For the test. */

void fake_placement_put(const Uuid *uuid, const char *held)
{
        const Consumer *now = allocations_find(fake.consumers, uuid);
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        _cleanup_free_ char *copy = strdup(held);
        char *save = NULL;

        assert_int_equal(consumer_new(&consumer, uuid), 0);
        consumer->generation = now ? now->generation : -1;
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                char name[20], resource_class[20];
                unsigned amount;
                Uuid provider;

                assert_int_equal(sscanf(word, "%19s %19[^=]=%u", name, resource_class, &amount), 3);
                provider = make_uuid(name);
                assert_int_equal(consumer_set(consumer, &provider, resource_class, amount), 0);
        }
        store(consumer);
}

void fake_placement_format(const Uuid *uuid, char text[static 256])
{
        const Consumer *consumer = allocations_find(fake.consumers, uuid);
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; consumer && i < fake.tree->n_providers; i++) {
                const Provider *provider = fake.tree->providers[i];
                const Resources *held = consumer_find(consumer, &provider->uuid);

                for (size_t j = 0; held && j < held->n_items; j++)
                        n += (size_t)snprintf(text + n, 256 - n, "%s%s %s=%u", n > 0 ? "," : "",
                                              provider->name, held->items[j].resource_class,
                                              (unsigned)held->items[j].amount);
        }
}

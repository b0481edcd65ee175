/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests each move in one line: a host, and the allocations before and after it. "a@cn1:VCPU=2"
 * is consumer a with 2 VCPU of provider cn1. */

#include "drivers/reshape/moves.h"
#include "drivers/update.h"
#include "tests/fixtures/host.h"

#define CPUS(a, b, c, d) "{'id': " #a "}, {'id': " #b "}, {'id': " #c "}, {'id': " #d "}"
#define HOST                                                                               \
        "'online_cpus': '0-7', 'memory_kib': 16777216, 'disk_total_bytes': 107374182400,"  \
        " 'cells': [{'id': 0, 'memory_kib': 8388608, 'cpus': [" CPUS(                      \
                0, 1, 2, 3) "]}, {'id': 1, 'memory_kib': 8388608, 'cpus': [" CPUS(4, 5, 6, \
                                                                                  7) "]}]"
#define GUEST(letter) \
        letter letter letter letter letter letter letter letter "-0000-4000-8000-000000000000"
#define DOMAIN(letter, vcpus, mib, more)                                     \
        "{'uuid': '" GUEST(letter) "', 'state': 'running', 'vcpus': " #vcpus \
                                   ", 'memory_kib': " #mib "000" more "}"
#define DOMAINS(list)   ", 'domains': [" list "]"
#define PIN(vcpu, cpus) "{'vcpu': " #vcpu ", 'cpus': '" cpus "'}"
#define PINS(list)      ", 'pins': [" list "]"
#define CPUSET(cpus)    ", 'cpus': '" cpus "'"
#define UNREAD          ", 'unread': true"

/* The options that decide the shape of the tree. */
typedef struct Shape {
        bool numa;
        const char *shared, *dedicated;
        double cpu_ratio;
        char **renamed;
} Shape;

/* A move from one shape to the other. r and words are the expected result of the update. */
typedef struct Case {
        const char *about, *host;
        Shape from, to;
        const char *before, *after;
        int r;
        const char *words;
} Case;

static HostConfig config_of(const Shape *shape)
{
        HostConfig config = config_make(NULL, 0);

        config.numa_in_placement = shape->numa;
        config.cpu_shared_set = shape->shared;
        config.cpu_dedicated_set = shape->dedicated;
        config.cpu_allocation_ratio = shape->cpu_ratio;
        config.renamed_classes = shape->renamed;
        return config;
}

static Uuid uuid_of_letter(char letter)
{
        Uuid uuid = UUID_NULL;
        char text[] = GUEST("x");

        memset(text, letter, 8);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

/* Parses allocations in the notation above. */
static Allocations *allocations_of(const char *text, const ProviderTree *tree)
{
        Allocations *allocations = NULL;
        char letter, name[64], resource_class[64];
        unsigned amount;
        int n;

        assert_int_equal(allocations_new(&allocations), 0);
        for (; sscanf(text, " %c@%63[^:]:%63[^=]=%u%n", &letter, name, resource_class, &amount,
                      &n) == 4;
             text += n) {
                const Provider *provider = provider_tree_find_name(tree, name);

                if (!provider)
                        fail_msg("no provider %s", name);
                fixture_hold(&allocations, uuid_of_letter(letter), provider->uuid, resource_class,
                             amount);
        }
        assert_string_equal(text, "");
        return allocations;
}

static bool equal(const Allocations *a, const Allocations *b)
{
        if (a->n_consumers != b->n_consumers)
                return false;
        for (size_t i = 0; i < a->n_consumers; i++) {
                const Consumer *one = a->consumers[i], *other = b->consumers[i];

                if (one->n_allocations != other->n_allocations)
                        return false;
                for (size_t j = 0; j < one->n_allocations; j++)
                        if (!uuid_equal(&one->allocations[j].provider,
                                        &other->allocations[j].provider) ||
                            !resources_equal(&one->allocations[j].resources,
                                             &other->allocations[j].resources))
                                return false;
        }
        return true;
}

static void print(const Allocations *allocations, const ProviderTree *tree)
{
        for (size_t i = 0; i < allocations->n_consumers; i++)
                for (size_t j = 0; j < allocations->consumers[i]->n_allocations; j++) {
                        const Allocation *held = &allocations->consumers[i]->allocations[j];
                        const Provider *provider = provider_tree_find(tree, &held->provider);
                        _cleanup_free_ char *text = resources_format(&held->resources);

                        print_error("%c@%s:%s\n", allocations->consumers[i]->uuid.text[0],
                                    provider ? provider->name : held->provider.text, text);
                }
}

/* Fails if an allocation has no inventory, or if the allocations are above a capacity. */
static void check_room(const Allocations *allocations, const ProviderTree *tree, const char *about)
{
        Consumer sums = { 0 };

        for (size_t i = 0; i < allocations->n_consumers; i++)
                for (size_t j = 0; j < allocations->consumers[i]->n_allocations; j++) {
                        const Allocation *held = &allocations->consumers[i]->allocations[j];
                        const Provider *provider = provider_tree_find(tree, &held->provider);

                        for (size_t k = 0; k < held->resources.n_items; k++) {
                                const ResourceAmount *item = &held->resources.items[k];
                                const Inventory *record =
                                        provider_find_inventory(provider, item->resource_class);

                                if (!record || item->amount > record->max_unit)
                                        fail_msg("%s: %s of %s", about, item->resource_class,
                                                 provider->name);
                                assert_int_equal(consumer_add(&sums, &held->provider,
                                                              item->resource_class, item->amount),
                                                 0);
                                if (resources_get(consumer_find(&sums, &held->provider),
                                                  item->resource_class) >
                                    inventory_capacity(record))
                                        fail_msg("%s: too much %s of %s", about,
                                                 item->resource_class, provider->name);
                        }
                }
        consumer_clear(&sums);
}

static void run(const Case *test, const ReshapeAlias *aliases, size_t n_aliases)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(test->host);
        HostConfig from = config_of(&test->from), to = config_of(&test->to);
        _cleanup_(allocations_freep) Allocations *moved = NULL, *expected = NULL;
        DriverReshape reshape = { .aliases = aliases, .n_aliases = n_aliases };
        Error error = ERROR_NULL;
        int r;

        assert_int_equal(provider_update(&from, host, NULL, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        if (to.renamed_classes)
                fixture_put(tree, tree->providers[0], "cn1_x", "CUSTOM_OLD=4");
        moved = allocations_of(test->before, tree);
        assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_RESHAPE_NEEDED);
        assert_true(reshape.classes.n_items > 0);

        reshape.consumers = moved;
        r = provider_update(&to, host, NULL, tree, "cn1", &reshape, &error);
        if (r != test->r || (test->words && !strstr(error.text, test->words)))
                fail_msg("%s: %d: %s", test->about, r, error.text);
        expected = allocations_of(test->after, tree);
        if (!equal(moved, expected)) {
                print(moved, tree);
                fail_msg("%s", test->about);
        }
        check_room(moved, tree, test->about);

        /* after that nothing has to move any more, except classes that stayed */
        reshape.consumers = NULL;
        assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error), test->r);
        check_room(moved, tree, test->about);
        driver_reshape_done(&reshape);
}

#define SHAPE(...)          \
        {                   \
                __VA_ARGS__ \
        }
#define FLAT  SHAPE(.numa = false)
#define CELLS SHAPE(.numa = true)

static void test_cells(void **state)
{
        static const Case cases[] = {
                { "as pinned",
                  HOST DOMAINS(DOMAIN("a", 2, 2048, PINS(PIN(0, "4-7") "," PIN(1, "5")))), FLAT,
                  CELLS, "a@cn1:VCPU=2 a@cn1:MEMORY_MB=2000 a@cn1:DISK_GB=5",
                  "a@cn1_NUMA1:VCPU=2 a@cn1_NUMA1:MEMORY_MB=2000 a@cn1:DISK_GB=5", 0, NULL },
                { "over two cells",
                  HOST DOMAINS(DOMAIN(
                          "a", 4, 4000,
                          PINS(PIN(0, "0") "," PIN(1, "1") "," PIN(2, "2") "," PIN(3, "6")))),
                  FLAT, CELLS, "a@cn1:VCPU=4 a@cn1:MEMORY_MB=4000",
                  "a@cn1_NUMA0:VCPU=3 a@cn1_NUMA0:MEMORY_MB=3000 a@cn1_NUMA1:VCPU=1 a@cn1_NUMA1:MEMORY_MB=1000",
                  0, NULL },
                { "memory as it is bound, whatever the CPUs say",
                  HOST DOMAINS(DOMAIN("a", 1, 4000, PINS(PIN(0, "0")) ", 'memory_cells': '1'")),
                  FLAT, CELLS, "a@cn1:VCPU=1 a@cn1:MEMORY_MB=4000",
                  "a@cn1_NUMA0:VCPU=1 a@cn1_NUMA1:MEMORY_MB=4000", 0, NULL },
                { "memory by the guest's cells",
                  HOST DOMAINS(DOMAIN(
                          "a", 2, 4000,
                          ", 'cpus': '0-3', 'cells': [{'id': 0, 'memory_kib': 1000000,"
                          " 'host_cells': '0'}, {'id': 1, 'memory_kib': 3000000, 'host_cells': '1'}]")),
                  FLAT, CELLS, "a@cn1:VCPU=2 a@cn1:MEMORY_MB=4000",
                  "a@cn1_NUMA0:VCPU=2 a@cn1_NUMA0:MEMORY_MB=1000 a@cn1_NUMA1:MEMORY_MB=3000", 0,
                  NULL },
                { "floating: where there is room for all of it",
                  HOST DOMAINS(DOMAIN("a", 1, 8000, PINS(PIN(0, "0")))), FLAT, CELLS,
                  "a@cn1:VCPU=1 a@cn1:MEMORY_MB=8000 b@cn1:VCPU=1 b@cn1:MEMORY_MB=1000",
                  "a@cn1_NUMA0:VCPU=1 a@cn1_NUMA0:MEMORY_MB=8000 b@cn1_NUMA1:VCPU=1 b@cn1_NUMA1:MEMORY_MB=1000",
                  0, NULL },
                { "floating: split", HOST, FLAT, CELLS, "a@cn1:MEMORY_MB=10000",
                  "a@cn1_NUMA0:MEMORY_MB=8192 a@cn1_NUMA1:MEMORY_MB=1808", 0, NULL },
                { "no room where it is pinned to",
                  HOST DOMAINS(
                          DOMAIN("a", 4, 1,
                                 PINS(PIN(0, "0") "," PIN(1, "0") "," PIN(2, "0") "," PIN(
                                         3, "0"))) "," DOMAIN("b", 2, 1,
                                                              PINS(PIN(0, "0") "," PIN(1, "0")))),
                  SHAPE(.cpu_ratio = 1.0), SHAPE(.numa = true, .cpu_ratio = 1.0),
                  "a@cn1:VCPU=4 b@cn1:VCPU=2", "a@cn1_NUMA0:VCPU=4 b@cn1_NUMA1:VCPU=2", 0, NULL },
                { "more than there is: VCPU stays, MEMORY_MB goes", HOST, FLAT,
                  SHAPE(.numa = true, .cpu_ratio = 1.0),
                  "a@cn1:VCPU=8 a@cn1:MEMORY_MB=100 b@cn1:VCPU=1 b@cn1:MEMORY_MB=100",
                  "a@cn1:VCPU=8 a@cn1_NUMA0:MEMORY_MB=100 b@cn1:VCPU=1 b@cn1_NUMA0:MEMORY_MB=100",
                  DRIVER_UPDATED_IN_PART, "VCPU cannot be moved: consumer " },
                { "back to flat", HOST, CELLS, FLAT,
                  "a@cn1_NUMA0:VCPU=2 a@cn1_NUMA1:VCPU=1 a@cn1_NUMA1:MEMORY_MB=7 a@cn1:DISK_GB=1 b@cn1_NUMA1:VCPU=3",
                  "a@cn1:VCPU=3 a@cn1:MEMORY_MB=7 a@cn1:DISK_GB=1 b@cn1:VCPU=3", 0, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                run(&cases[i], NULL, 0);
}

/* C5.2 and F3 */
static void test_dedicated_cpus(void **state)
{
        static const Case cases[] = {
                { "pinned guests change, others do not",
                  HOST DOMAINS(DOMAIN("a", 2, 1, PINS(PIN(0, "4") "," PIN(1, "5"))) "," DOMAIN(
                          "b", 2, 1, ", 'cpus': '0-7'")),
                  FLAT, SHAPE(.shared = "0-3", .dedicated = "4-7"), "a@cn1:VCPU=2 b@cn1:VCPU=2",
                  "a@cn1:PCPU=2 b@cn1:VCPU=2", 0, NULL },
                { "a mixed guest",
                  HOST DOMAINS(DOMAIN(
                          "a", 4, 1,
                          PINS(PIN(0, "4") "," PIN(1, "5") "," PIN(2, "0-3") "," PIN(3, "0-3")))),
                  FLAT, SHAPE(.shared = "0-3", .dedicated = "4-7"), "a@cn1:VCPU=4",
                  "a@cn1:VCPU=2 a@cn1:PCPU=2", 0, NULL },
                { "no shared CPUs are left: the unpinned guest blocks VCPU",
                  HOST DOMAINS(DOMAIN("a", 1, 1, PINS(PIN(0, "4")))), FLAT,
                  SHAPE(.dedicated = "4-7"), "a@cn1:VCPU=1 b@cn1:VCPU=1",
                  "a@cn1:VCPU=1 b@cn1:VCPU=1", DRIVER_UPDATED_IN_PART,
                  "not pinned to dedicated CPUs" },
                { "an unread guest blocks VCPU", HOST DOMAINS(DOMAIN("a", 2, 1, UNREAD)), FLAT,
                  SHAPE(.shared = "0-3", .dedicated = "4-7"), "a@cn1:VCPU=2 b@cn1:VCPU=2",
                  "a@cn1:VCPU=2 b@cn1:VCPU=2", DRIVER_UPDATED_IN_PART, "cannot be read" },
                { "an unread guest blocks VCPU on its way into cells",
                  HOST DOMAINS(DOMAIN("a", 2, 1, UNREAD)), FLAT,
                  SHAPE(.numa = true, .shared = "0-1", .dedicated = "2-5"), "a@cn1:VCPU=2",
                  "a@cn1:VCPU=2", DRIVER_UPDATED_IN_PART, "cannot be read" },
                { "an unread guest without VCPU blocks nothing",
                  HOST DOMAINS(DOMAIN("a", 2, 1, UNREAD)), FLAT,
                  SHAPE(.shared = "0-3", .dedicated = "4-7"), "a@cn1:DISK_GB=2 b@cn1:VCPU=2",
                  "a@cn1:DISK_GB=2 b@cn1:VCPU=2", 0, NULL },
                { "back", HOST DOMAINS(DOMAIN("a", 2, 1, PINS(PIN(0, "4") "," PIN(1, "5")))),
                  SHAPE(.shared = "0-3", .dedicated = "4-7"), FLAT, "a@cn1:PCPU=2 b@cn1:VCPU=2",
                  "a@cn1:VCPU=2 b@cn1:VCPU=2", 0, NULL },
                { "a total shrinks under what does not move", HOST, FLAT,
                  SHAPE(.numa = true, .shared = "0,4", .dedicated = "1-3"),
                  "a@cn1:VCPU=1 b@cn1:VCPU=2 b@cn1:DISK_GB=100",
                  "a@cn1_NUMA0:VCPU=1 b@cn1_NUMA1:VCPU=1 b@cn1_NUMA0:VCPU=1 b@cn1:DISK_GB=100", 0,
                  NULL },
                { "in cells already",
                  HOST DOMAINS(DOMAIN(
                          "a", 4, 1,
                          PINS(PIN(0, "2") "," PIN(1, "0") "," PIN(2, "3") "," PIN(3, "6")))),
                  SHAPE(.numa = true), SHAPE(.numa = true, .shared = "0-2,5-7", .dedicated = "3,4"),
                  "a@cn1_NUMA0:VCPU=3 a@cn1_NUMA1:VCPU=1",
                  "a@cn1_NUMA0:VCPU=2 a@cn1_NUMA0:PCPU=1 a@cn1_NUMA1:VCPU=1", 0, NULL },
                { "dedicated CPUs end and cells begin: VCPU has no room, so PCPU goes back", HOST,
                  SHAPE(.shared = "0-3", .dedicated = "4-7", .cpu_ratio = 4),
                  SHAPE(.numa = true, .cpu_ratio = 1),
                  "a@cn1:PCPU=2 b@cn1:VCPU=4 c@cn1:VCPU=4 d@cn1:VCPU=4",
                  "a@cn1:PCPU=2 b@cn1:VCPU=4 c@cn1:VCPU=4 d@cn1:VCPU=4", DRIVER_UPDATED_IN_PART,
                  "VCPU cannot be moved" },
                { "into cells at the same time",
                  HOST DOMAINS(DOMAIN("a", 2, 1, PINS(PIN(0, "3") "," PIN(1, "4")))), FLAT,
                  SHAPE(.numa = true, .shared = "0-1", .dedicated = "2-5"), "a@cn1:VCPU=2",
                  "a@cn1_NUMA0:PCPU=1 a@cn1_NUMA1:PCPU=1", 0, NULL },
                { "<vcpu cpuset> is no pin: into cells",
                  HOST DOMAINS(DOMAIN("a", 1, 1, CPUSET("4-7"))), FLAT,
                  SHAPE(.numa = true, .shared = "0-3", .dedicated = "4-7"), "a@cn1:VCPU=1",
                  "a@cn1_NUMA0:VCPU=1", 0, NULL },
                { "<vcpu cpuset> is no pin: no shared CPUs are left",
                  HOST DOMAINS(DOMAIN("a", 1, 1, CPUSET("4-7"))), FLAT, SHAPE(.dedicated = "4-7"),
                  "a@cn1:VCPU=1", "a@cn1:VCPU=1", DRIVER_UPDATED_IN_PART,
                  "is not pinned to dedicated CPUs" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                run(&cases[i], NULL, 0);
}

static uint64_t reserved_pcpu(const ProviderTree *tree)
{
        return provider_find_inventory(tree->providers[0], "PCPU")->reserved;
}

/* CPUs on which a guest without pins can run are reserved after allocations have moved, not
 * before. Otherwise the allocations of pinned guests would not fit. */
static void test_floating_guests_do_not_limit_a_reshape(void **state)
{
        static const Shape before = FLAT, after = SHAPE(.shared = "0-3", .dedicated = "4-7");
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(HOST DOMAINS(
                DOMAIN("a", 2, 1, PINS(PIN(0, "4") "," PIN(1, "4"))) "," DOMAIN("b", 2, 1, "")));
        HostConfig from = config_of(&before), to = config_of(&after);
        _cleanup_(allocations_freep) Allocations *moved = NULL;
        const ReshapeAlias alias = { .consumer = uuid_of_letter('e'),
                                     .guest = uuid_of_letter('a') };
        DriverReshape reshape = { .aliases = &alias, .n_aliases = 1 };
        Error error = ERROR_NULL;

        assert_int_equal(provider_update(&from, host, NULL, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        moved = allocations_of("a@cn1:VCPU=2 b@cn1:VCPU=2 e@cn1:VCPU=2", tree);
        reshape.consumers = moved;
        assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED);
        check_room(moved, tree, "reshape");
        assert_int_equal(reserved_pcpu(tree), 0);
        reshape.consumers = NULL;
        assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED);
        assert_int_equal(reserved_pcpu(tree), 3);
        driver_reshape_done(&reshape);
}

/* A later update names the consumer, too, beside the problems of its own. */
static void test_the_reason_why_a_class_stays_is_repeated(void **state)
{
        const Shape shape = { .numa = true };
        HostConfig from = config_make(NULL, 0), to = config_of(&shape);
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(HOST);
        _cleanup_(allocations_freep) Allocations *moved = NULL;
        DriverReshape reshape = { 0 };
        Error error = ERROR_NULL;

        assert_int_equal(provider_update(&from, host, NULL, tree, "cn1", NULL, NULL),
                         DRIVER_UPDATED);
        reshape.consumers = moved = allocations_of("a@cn1:VCPU=100", tree);
        for (int i = 0; i < 3; i++) {
                char first[ERROR_TEXT_MAX];

                assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                                 DRIVER_UPDATED_IN_PART);
                if (i == 0)
                        strcpy(first, error.text);
                assert_non_null(strstr(error.text, "VCPU cannot be moved: consumer "));
                assert_true(i == 2 || strcmp(error.text, first) == 0);
                assert_int_equal(!strstr(error.text, "; VCPU"), i < 2);
                reshape.consumers = NULL;
                to.reserved_host_disk_mb = i == 1 ? 1000000 : 0;
        }
        driver_reshape_done(&reshape);
}

/* C5.2: the consumer is the migration, and the domain has the uuid of the instance */
/* CUSTOM_A was kept before, and nothing of it is left. */
static void test_the_error_names_a_class_that_stays(void **state)
{
        static const char *const kept[] = { "CUSTOM_A", "MEMORY_MB", "VCPU" };
        const Shape shape = { .numa = true };
        const HostConfig from = config_make(NULL, 0), to = config_of(&shape);
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(HOST);
        DriverReshape reshape = { 0 };
        Error error = ERROR_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                assert_int_equal(string_set_add(&reshape.kept, kept[i]), 1);
        assert_int_equal(provider_update(&from, host, NULL, tree, "cn1", NULL, NULL),
                         DRIVER_UPDATED);
        assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED_IN_PART);
        assert_non_null(strstr(error.text, "MEMORY_MB cannot be moved"));
        /* The class of the reason need not stay any more, as if its former option were back. */
        error_setf(&reshape.blocked, EBUSY, "CUSTOM_A cannot be moved: consumer X");
        for (int i = 0; i < 2; i++) {
                assert_int_equal(provider_update(&to, host, NULL, tree, "cn1", &reshape, &error),
                                 DRIVER_UPDATED_IN_PART);
                assert_non_null(strstr(error.text, i == 0 ? "MEMORY_MB cannot be moved"
                                                          : "VCPU cannot be moved: consumer X"));
                error_setf(&reshape.blocked, EBUSY, "VCPU cannot be moved: consumer X");
        }
        driver_reshape_done(&reshape);
}

static void test_alias(void **state)
{
        static const Case test = { "a migration",
                                   HOST DOMAINS(
                                           DOMAIN("a", 2, 1, PINS(PIN(0, "4") "," PIN(1, "5")))),
                                   FLAT,
                                   SHAPE(.shared = "0-3", .dedicated = "4-7"),
                                   "e@cn1:VCPU=2",
                                   "e@cn1:PCPU=2",
                                   0,
                                   NULL };
        const ReshapeAlias alias = { .consumer = uuid_of_letter('e'),
                                     .guest = uuid_of_letter('a') };

        run(&test, &alias, 1);
}

static void test_renamed_classes(void **state)
{
        static char *renamed[] = { TEXT("CUSTOM_Y:VGPU"), TEXT("CUSTOM_OLD:PGPU"), NULL };
        static const Case cases[] = {
                { "a child's", HOST, FLAT, SHAPE(.renamed = renamed),
                  "a@cn1_x:CUSTOM_OLD=3 a@cn1:VCPU=1 b@cn1_x:CUSTOM_OLD=1",
                  "a@cn1_x:PGPU=3 a@cn1:VCPU=1 b@cn1_x:PGPU=1", 0, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                run(&cases[i], NULL, 0);
}

#define CARD(product)                                                                             \
        HOST ", 'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0', 'vendor_id':" \
             " 4318, 'product_id': " #product "}]"

/* A card is exchanged for one of another model, so its class is another one. */
static void test_allocations_of_an_exchanged_device_stay(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *former = host_new(CARD(8368)),
                                            *host = host_new(CARD(8369));
        HostConfig config = config_make(NULL, 0);
        _cleanup_(allocations_freep) Allocations *moved = NULL, *expected = NULL;
        DriverReshape reshape = { 0 };
        DeviceFacts facts = { 0 };
        Error error = ERROR_NULL;
        const Provider *card;

        config.report_in_placement = true;
        assert_int_equal(specs_add(&config.pci_specs, "{'vendor_id': '10de'}", &error), 0);
        assert_int_equal(provider_update(&config, former, NULL, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        card = provider_tree_find_name(tree, "cn1_0000:41:00.0");
        fixture_hold(&moved, uuid_of_letter('a'), card->uuid, "CUSTOM_PCI_10DE_20B0", 1);
        fixture_hold(&expected, uuid_of_letter('a'), card->uuid, "CUSTOM_PCI_10DE_20B0", 1);
        assert_int_equal(provider_update(&config, host, &facts, tree, "cn1", NULL, &error),
                         DRIVER_RESHAPE_NEEDED);
        assert_int_equal(string_set_add(&facts.exchanged, "cn1_0000:41:00.0"), 1);
        reshape.consumers = moved;
        assert_int_equal(provider_update(&config, host, &facts, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED);
        assert_true(equal(moved, expected));
        check_room(moved, tree, "exchanged");
        assert_int_equal(provider_update(&config, host, &facts, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        card = provider_tree_find_name(tree, "cn1_0000:41:00.0");
        assert_int_equal(card->n_inventories, 1);
        assert_string_equal(card->inventories[0].resource_class, "CUSTOM_PCI_10DE_20B1");
        device_facts_done(&facts);
        driver_reshape_done(&reshape);
        pci_specs_done(&config.pci_specs);
}

/* All of the device is reserved: it is not clean, or its one_time_use is over. Another device at
 * its place is not. */
static void test_a_reserved_device_gets_another_class(void **state)
{
        static char *renamed[] = { TEXT("CUSTOM_A:CUSTOM_B"), NULL };
        static const struct {
                bool held, exchanged;
                char **renamed;
                uint64_t reserved;
        } cases[] = { { true, false, NULL, 1 },
                      { true, false, renamed, 1 },
                      { false, false, NULL, 1 },
                      { false, true, NULL, 0 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(CARD(8368));
                HostConfig from = config_make(NULL, 0), to = config_make(NULL, 0);
                _cleanup_(allocations_freep) Allocations *moved = NULL;
                DriverReshape reshape = { 0 };
                DeviceFacts facts = { 0 };
                Error error = ERROR_NULL;
                const Inventory *record;

                from.report_in_placement = to.report_in_placement = true;
                to.renamed_classes = cases[i].renamed;
                assert_int_equal(specs_add(&from.pci_specs, "{'resource_class': 'A'}", &error), 0);
                assert_int_equal(specs_add(&to.pci_specs, "{'resource_class': 'B'}", &error), 0);
                assert_int_equal(provider_update(&from, host, NULL, tree, "cn1", NULL, &error),
                                 DRIVER_UPDATED);
                tree->providers[1]->inventories[0].inventory.reserved = 1;
                moved = allocations_of("", tree);
                if (cases[i].held)
                        fixture_hold(&moved, uuid_of_letter('a'), tree->providers[1]->uuid,
                                     "CUSTOM_A", 1);
                reshape.consumers = moved;
                if (cases[i].exchanged)
                        assert_int_equal(string_set_add(&facts.exchanged, "cn1_0000:41:00.0"), 1);
                assert_int_equal(provider_update(&to, host, &facts, tree, "cn1", &reshape, &error),
                                 DRIVER_UPDATED);
                assert_int_equal(moved->n_consumers, cases[i].held);
                if (cases[i].held)
                        assert_int_equal(consumer_get(moved->consumers[0],
                                                      &tree->providers[1]->uuid, "CUSTOM_B"),
                                         1);
                record = provider_find_inventory(tree->providers[1], "CUSTOM_B");
                assert_int_equal(record->total, 1);
                assert_int_equal(record->reserved, cases[i].reserved);
                device_facts_done(&facts);
                driver_reshape_done(&reshape);
                pci_specs_done(&from.pci_specs);
                pci_specs_done(&to.pci_specs);
        }
}

#define PAGES(gib, mib)                                                                          \
        "'online_cpus': '0', 'cells': [{'id': 0, 'cpus': [{'id': 0}], 'pages': [{'size_kib': 4," \
        " 'count': 9}, {'size_kib': 2048, 'count': " #mib                                        \
        "}, {'size_kib': 1048576, 'count': " #gib "}]}]"

/* With numa_in_placement = root, hugepages are the only inventory of a cell. Another size is
 * another resource, also with the same number of pages. */
static void test_hugepages_of_another_size_are_no_new_name(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(snapshot_unrefp) Snapshot *former = host_new(PAGES(4, 0)),
                                            *host = host_new(PAGES(0, 512));
        HostConfig config = config_make(NULL, 0);
        _cleanup_(allocations_freep) Allocations *moved = NULL, *expected = NULL;
        DriverReshape reshape = { 0 };
        Error error = ERROR_NULL;

        config.numa_in_placement = HOST_NUMA_ROOT;
        assert_int_equal(provider_update(&config, former, NULL, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        reshape.consumers = moved = allocations_of("a@cn1_NUMA0:CUSTOM_HUGEPAGES_1G=4", tree);
        expected = allocations_of("a@cn1_NUMA0:CUSTOM_HUGEPAGES_1G=4", tree);
        assert_int_equal(provider_update(&config, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED);
        assert_true(equal(moved, expected));
        check_room(moved, tree, "pages");
        /* Without consumers, only the pages that are there are reported. */
        reshape.consumers = NULL;
        assert_int_equal(provider_update(&config, host, NULL, tree, "cn1", &reshape, &error),
                         DRIVER_UPDATED);
        assert_int_equal(tree->providers[1]->n_inventories, 1);
        assert_string_equal(tree->providers[1]->inventories[0].resource_class,
                            "CUSTOM_HUGEPAGES_2M");
        assert_int_equal(provider_update(&config, former, NULL, tree, "cn1", NULL, &error),
                         DRIVER_UPDATED);
        driver_reshape_done(&reshape);
}

TEST_MAIN(test_allocations_of_an_exchanged_device_stay, test_a_reserved_device_gets_another_class,
          test_hugepages_of_another_size_are_no_new_name, test_cells, test_dedicated_cpus,
          test_floating_guests_do_not_limit_a_reshape,
          test_the_reason_why_a_class_stays_is_repeated, test_the_error_names_a_class_that_stays,
          test_alias, test_renamed_classes)

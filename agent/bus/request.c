/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the request of Claim() and Explain() from a message: the groups, then the options. A wrong
 * value is -EINVAL with words, and a process or unit that does not run or cannot be read is -ESRCH,
 * with words, too. Errors of sd-bus are returned unchanged, without words, and -ENOMEM is possible.
 * The numbers of groups, amounts, traits, mappings, cells and options are limited during the read,
 * so an oversized request is rejected as soon as it passes a limit. The NUMA options are collected
 * in a Reading, and numa_request_make() interprets them together at the end. It can turn VCPU of
 * the unnamed group into PCPU, or PCPU into VCPU. The texts of project, user and consumer type are
 * borrowed from the message, which must outlive the request. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/bus/methods.h"
#include "agent/guests/process.h"

#define AMOUNTS_MAX  1024 /* in all groups together */
#define MAPPINGS_MAX 1024
#define OPTIONS_MAX  32

/* The target of the options: the request, and the NUMA options, which are interpreted together when
 * all are read. Texts are borrowed from the message. */
typedef struct Reading {
        ClaimRequest *request;
        NumaOptions options;
        const char *cpus[NUMA_REQUEST_CELLS_MAX];
        uint64_t memory_mb[NUMA_REQUEST_CELLS_MAX];
} Reading;

void claim_request_done(ClaimRequest *request)
{
        resource_request_done(&request->resources);
        request_mappings_done(&request->mappings);
}

/* Reads the amounts of a group, "a{st}". *n_amounts counts the amounts of all groups. */
static int read_amounts(sd_bus_message *m, Resources *resources, size_t *n_amounts, Error *reterr)
{
        const char *resource_class;
        uint64_t amount;
        int r = sd_bus_message_enter_container(m, 'a', "{st}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "{st}", &resource_class, &amount)) > 0) {
                if (!resource_class_valid(resource_class))
                        return error_setf(reterr, EINVAL, "\"%.60s\" is not a resource class",
                                          resource_class);
                if (amount == 0 || amount > INVENTORY_MAX_AMOUNT)
                        return error_setf(reterr, EINVAL,
                                          "%.60s: the amount must be from 1 to %" PRIu64,
                                          resource_class, INVENTORY_MAX_AMOUNT);
                if (resources->n_items >= CLAIM_CLASSES_MAX)
                        return error_setf(reterr, EINVAL, "A group has more than %d classes",
                                          CLAIM_CLASSES_MAX);
                if (++*n_amounts > AMOUNTS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d amounts in all groups",
                                          AMOUNTS_MAX);
                if (resources_get(resources, resource_class) != 0)
                        return error_setf(reterr, EINVAL, "%.60s is given twice", resource_class);
                if (resources_set(resources, resource_class, amount) < 0)
                        return error_oom(reterr);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Adds the traits of an array to the set. */
static int read_traits(sd_bus_message *m, StringSet *set, Error *reterr)
{
        const char *trait;
        int r = sd_bus_message_enter_container(m, 'a', "s");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "s", &trait)) > 0) {
                if (!resource_class_valid(trait))
                        return error_setf(reterr, EINVAL, "\"%.60s\" is not a trait", trait);
                if (set->n_items >= CLAIM_TRAITS_MAX)
                        return error_setf(reterr, EINVAL, "A group has more than %d traits",
                                          CLAIM_TRAITS_MAX);
                if (string_set_add(set, trait) < 0)
                        return error_oom(reterr);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads the members of one group: suffix, amounts, required traits, forbidden traits. */
static int read_group(sd_bus_message *m, ResourceRequest *request, size_t *n_amounts, Error *reterr)
{
        RequestGroup *group;
        size_t n_groups = request->n_groups;
        const char *suffix;
        int r = sd_bus_message_read(m, "s", &suffix);

        if (r < 0)
                return r;
        r = resource_request_group(request, suffix, &group, reterr);
        if (r < 0)
                return r;
        if (request->n_groups == n_groups)
                return error_setf(reterr, EINVAL, "Group \"%.70s\" is given twice", suffix);
        r = read_amounts(m, &group->resources, n_amounts, reterr);
        if (r < 0)
                return r;
        r = read_traits(m, &group->required, reterr);
        if (r < 0)
                return r;
        return read_traits(m, &group->forbidden, reterr);
}

static int read_groups(sd_bus_message *m, ResourceRequest *request, Error *reterr)
{
        size_t n_groups = 0, n_amounts = 0;
        int r = sd_bus_message_enter_container(m, 'a', "(sa{st}asas)");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "sa{st}asas")) > 0) {
                if (++n_groups > CLAIM_GROUPS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d groups", CLAIM_GROUPS_MAX);
                r = read_group(m, request, &n_amounts, reterr);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads numa-cpus: a list of CPUs for each guest cell. */
static int read_texts(sd_bus_message *m, Reading *reading, Error *reterr)
{
        const char *text;
        int r = sd_bus_message_enter_container(m, 'a', "s");

        while (r >= 0 && (r = sd_bus_message_read(m, "s", &text)) > 0) {
                if (reading->options.n_cpus >= ARRAY_SIZE(reading->cpus))
                        return error_setf(reterr, EINVAL, "numa-cpus: more than %d cells",
                                          NUMA_REQUEST_CELLS_MAX);
                reading->cpus[reading->options.n_cpus++] = text;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads numa-mem: the memory of each guest cell. Unit: MiB. */
static int read_numbers(sd_bus_message *m, Reading *reading, Error *reterr)
{
        uint64_t number;
        int r = sd_bus_message_enter_container(m, 'a', "t");

        while (r >= 0 && (r = sd_bus_message_read(m, "t", &number)) > 0) {
                if (reading->options.n_memory >= ARRAY_SIZE(reading->memory_mb))
                        return error_setf(reterr, EINVAL, "numa-mem: more than %d cells",
                                          NUMA_REQUEST_CELLS_MAX);
                reading->memory_mb[reading->options.n_memory++] = number;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads same-subtree, "aas": each list has the suffixes of groups that must get providers of one
 * subtree. */
static int read_subtrees(sd_bus_message *m, Reading *reading, Error *reterr)
{
        int r = sd_bus_message_enter_container(m, 'a', "as");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'a', "s")) > 0) {
                _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
                const char *suffix;

                while ((r = sd_bus_message_read(m, "s", &suffix)) > 0) {
                        if (suffixes.n_items >= CLAIM_GROUPS_MAX)
                                return error_setf(reterr, EINVAL,
                                                  "same-subtree: more than %d groups",
                                                  CLAIM_GROUPS_MAX);
                        if (string_set_add(&suffixes, suffix) < 0)
                                return error_oom(reterr);
                }
                if (r < 0 || (r = resource_request_add_subtree(&reading->request->resources,
                                                               &suffixes, reterr)) < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads in-tree, "a{ss}": the suffix of a group, and the uuid of a provider of the tree in which it
 * must be placed. Adds a group without amounts if the suffix is new. */
static int read_trees(sd_bus_message *m, Reading *reading, Error *reterr)
{
        ResourceRequest *request = &reading->request->resources;
        const char *suffix, *uuid;
        int r = sd_bus_message_enter_container(m, 'a', "{ss}");

        while (r >= 0 && (r = sd_bus_message_read(m, "{ss}", &suffix, &uuid)) > 0) {
                RequestGroup *group;

                r = resource_request_group(request, suffix, &group, reterr);
                if (r < 0)
                        return r;
                if (request->n_groups > CLAIM_GROUPS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d groups", CLAIM_GROUPS_MAX);
                if (uuid_from_text(uuid, &group->in_tree) < 0)
                        return error_setf(reterr, EINVAL, "in-tree: \"%.40s\" is not a uuid", uuid);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads one entry of mappings. */
static int read_mapping(sd_bus_message *m, RequestMappings *mappings, Error *reterr)
{
        const char *suffix, *uuid;
        int r = sd_bus_message_read(m, "s", &suffix);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read(m, "s", &uuid)) > 0) {
                Uuid provider;

                if (uuid_from_text(uuid, &provider) < 0)
                        return error_setf(reterr, EINVAL, "mappings: \"%.40s\" is not a uuid",
                                          uuid);
                if (mappings->n_items >= MAPPINGS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d mappings", MAPPINGS_MAX);
                if (request_mappings_add(mappings, suffix, &provider) < 0)
                        return error_oom(reterr);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads mappings, "a{sas}": the suffix of a group, and the uuids of its providers. */
static int read_mappings(sd_bus_message *m, Reading *reading, Error *reterr)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sas}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sas")) > 0) {
                r = read_mapping(m, &reading->request->mappings, reterr);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Reads the process that the claim belongs to. Fails if it does not run, or cannot be read. */
static int read_process(sd_bus_message *m, Reading *reading, Error *reterr)
{
        uint32_t pid;
        int r = sd_bus_message_read(m, "u", &pid);

        return r < 0 ? r : process_identify(pid, reading->request->process, reterr);
}

/* Reads the control group of the unit that the claim belongs to. */
static int read_control_group(sd_bus_message *m, Reading *reading, Error *reterr)
{
        const char *group;
        int r = sd_bus_message_read(m, "s", &group);

        return r < 0 ? r : process_identify_unit(group, reading->request->process, reterr);
}

/* Reads a boolean, which sd-bus stores as an int. */
static int read_bool(sd_bus_message *m, bool *ret)
{
        int value, r = sd_bus_message_read(m, "b", &value);

        if (r >= 0)
                *ret = value;
        return r;
}

/* Reads the value of an option. An unknown option is an error. */
static int read_option(sd_bus_message *m, const char *name, Reading *reading, Error *reterr)
{
        ClaimRequest *request = reading->request;
        NumaOptions *numa = &reading->options;
        const struct {
                const char *name, *type;
                void *value; /* where a basic type is stored; NULL: read() stores it */
                int (*read)(sd_bus_message *m, Reading *reading, Error *reterr);
        } known[] = { { "project", "s", &request->project_id, NULL },
                      { "user", "s", &request->user_id, NULL },
                      { "consumer-type", "s", &request->consumer_type, NULL },
                      { "resize-target", "b", &request->resize_target, NULL },
                      { "isolate", "b", &request->resources.isolate, NULL },
                      { "cpu-policy", "s", &numa->cpu_policy, NULL },
                      { "cpu-dedicated-mask", "s", &numa->dedicated_mask, NULL },
                      { "cpu-thread-policy", "s", &numa->thread_policy, NULL },
                      { "mem-page-size", "s", &numa->page_size, NULL },
                      { "pci-numa-affinity-policy", "s", &numa->affinity, NULL },
                      { "numa-strategy", "s", &numa->strategy, NULL },
                      { "numa-nodes", "t", &numa->nodes, NULL },
                      { "numa-cpus", "as", NULL, read_texts },
                      { "numa-mem", "at", NULL, read_numbers },
                      { "same-subtree", "aas", NULL, read_subtrees },
                      { "in-tree", "a{ss}", NULL, read_trees },
                      { "mappings", "a{sas}", NULL, read_mappings },
                      { "process", "u", NULL, read_process },
                      { "control-group", "s", NULL, read_control_group } };
        size_t i = 0;
        int r;

        while (i < ARRAY_SIZE(known) && strcmp(known[i].name, name) != 0)
                i++;
        if (i == ARRAY_SIZE(known))
                return error_setf(reterr, EINVAL, "Unknown option \"%.60s\"", name);
        r = sd_bus_message_enter_container(m, 'v', known[i].type);
        if (r < 0)
                return r;
        r = known[i].read ? known[i].read(m, reading, reterr)
            : known[i].type[0] == 'b'
                    ? read_bool(m, known[i].value)
                    : sd_bus_message_read_basic(m, known[i].type[0], known[i].value);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_options(sd_bus_message *m, Reading *reading, Error *reterr)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");
        size_t n_options = 0;

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *name;

                if (++n_options > OPTIONS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d options", OPTIONS_MAX);
                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        return r;
                r = read_option(m, name, reading, reterr);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Makes the NUMA layout of the unnamed group from the NUMA options and the amounts of that group.
 * The options can turn its VCPU into PCPU, or PCPU into VCPU. Amounts with PCPU get a layout
 * without options, too. */
static int make_layout(Reading *reading, Error *reterr)
{
        ResourceRequest *resources = &reading->request->resources;
        RequestGroup *group;
        int r;

        reading->options.cpus = reading->cpus;
        reading->options.memory_mb = reading->memory_mb;
        /* Without NUMA options and without an unnamed group there is no layout, and
         * resource_request_group() must not be called, because it would add this group. The unnamed
         * group is always the first one. */
        if (!numa_options_given(&reading->options) &&
            (resources->n_groups == 0 || resources->groups[0].suffix[0]))
                return 0;
        r = resource_request_group(resources, "", &group, reterr);
        return r < 0 ? r
                     : numa_request_make(&reading->options, &group->resources, &resources->numa,
                                         reterr);
}

static bool has_group(const ResourceRequest *request, const char *suffix)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (strcmp(request->groups[i].suffix, suffix) == 0)
                        return true;
        return false;
}

/* Checks that each mapping names a group of the request. Another one would have no effect, and the
 * group that the caller meant could get any of the equal providers. */
static int check_mappings(const ClaimRequest *request, Error *reterr)
{
        const RequestMappings *mappings = &request->mappings;

        for (size_t i = 0; i < mappings->n_items; i++)
                if (!has_group(&request->resources, mappings->items[i].suffix))
                        return error_setf(reterr, EINVAL,
                                          "mappings: the request has no group \"%.60s\"",
                                          mappings->items[i].suffix);
        return 0;
}

int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        Reading reading = { .request = request };
        int r = read_groups(m, &request->resources, reterr);

        if (r >= 0)
                r = read_options(m, &reading, reterr);
        if (r >= 0)
                r = make_layout(&reading, reterr);
        return r < 0 ? r : check_mappings(request, reterr);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/ask/message.h"

#include <string.h>

#include "agent/ctl/print/claims.h"
#include "agent/formats/interface.h"

/* Writing */

static int append_resources(sd_bus_message *m, const Resources *resources)
{
        int r = sd_bus_message_open_container(m, 'a', "{st}");

        for (size_t i = 0; r >= 0 && i < resources->n_items; i++)
                r = sd_bus_message_append(m, "{st}", resources->items[i].resource_class,
                                          resources->items[i].amount);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_set(sd_bus_message *m, const StringSet *set)
{
        int r = sd_bus_message_open_container(m, 'a', "s");

        for (size_t i = 0; r >= 0 && i < set->n_items; i++)
                r = sd_bus_message_append(m, "s", set->items[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_groups(sd_bus_message *m, const ResourceRequest *request)
{
        int r = sd_bus_message_open_container(m, 'a', "(sa{st}asas)");

        for (size_t i = 0; r >= 0 && i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];

                if ((r = sd_bus_message_open_container(m, 'r', "sa{st}asas")) < 0 ||
                    (r = sd_bus_message_append(m, "s", group->suffix)) < 0 ||
                    (r = append_resources(m, &group->resources)) < 0 ||
                    (r = append_set(m, &group->required)) < 0 ||
                    (r = append_set(m, &group->forbidden)) < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_subtrees(sd_bus_message *m, const CtlClaim *claim)
{
        const ResourceRequest *request = claim->request;
        int r = sd_bus_message_open_container(m, 'a', "as");

        for (size_t i = 0; r >= 0 && i < request->n_subtrees; i++)
                r = append_set(m, &request->subtrees[i].suffixes);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_trees(sd_bus_message *m, const CtlClaim *claim)
{
        const ResourceRequest *request = claim->request;
        int r = sd_bus_message_open_container(m, 'a', "{ss}");

        for (size_t i = 0; r >= 0 && i < request->n_groups; i++)
                if (!uuid_empty(&request->groups[i].in_tree))
                        r = sd_bus_message_append(m, "{ss}", request->groups[i].suffix,
                                                  request->groups[i].in_tree.text);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* An option whose value is written by a function. */
static int append_lists(sd_bus_message *m, const char *name, const char *type,
                        int (*append)(sd_bus_message *m, const CtlClaim *claim),
                        const CtlClaim *claim)
{
        int r;

        if ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
            (r = sd_bus_message_append(m, "s", name)) < 0 ||
            (r = sd_bus_message_open_container(m, 'v', type)) < 0 || (r = append(m, claim)) < 0 ||
            (r = sd_bus_message_close_container(m)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

static int append_cells(sd_bus_message *m, const NumaOptions *numa)
{
        int r = 0;

        if (numa->n_cpus > 0 && ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
                                 (r = sd_bus_message_append(m, "s", "numa-cpus")) < 0 ||
                                 (r = sd_bus_message_open_container(m, 'v', "as")) < 0 ||
                                 (r = sd_bus_message_append_strv(m, (char **)numa->cpus)) < 0 ||
                                 (r = sd_bus_message_close_container(m)) < 0 ||
                                 (r = sd_bus_message_close_container(m)) < 0))
                return r;
        if (numa->n_memory > 0 &&
            ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
             (r = sd_bus_message_append(m, "s", "numa-mem")) < 0 ||
             (r = sd_bus_message_open_container(m, 'v', "at")) < 0 ||
             (r = sd_bus_message_append_array(m, 't', numa->memory_mb,
                                              numa->n_memory * sizeof(uint64_t))) < 0 ||
             (r = sd_bus_message_close_container(m)) < 0 ||
             (r = sd_bus_message_close_container(m)) < 0))
                return r;
        return 0;
}

static int append_numa(sd_bus_message *m, const NumaOptions *numa)
{
        const struct {
                const char *name, *text;
        } texts[] = { { "cpu-policy", numa->cpu_policy },
                      { "cpu-dedicated-mask", numa->dedicated_mask },
                      { "cpu-thread-policy", numa->thread_policy },
                      { "mem-page-size", numa->page_size },
                      { "pci-numa-affinity-policy", numa->affinity },
                      { "numa-strategy", numa->strategy } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(texts); i++)
                if (texts[i].text)
                        r = sd_bus_message_append(m, "{sv}", texts[i].name, "s", texts[i].text);
        if (r >= 0 && numa->nodes > 0)
                r = sd_bus_message_append(m, "{sv}", "numa-nodes", "t", numa->nodes);
        return r < 0 ? r : append_cells(m, numa);
}

/* "a{sas}": equal suffixes stand next to each other. */
static int append_mappings(sd_bus_message *m, const CtlClaim *claim)
{
        const RequestMappings *mappings = claim->mappings;
        int r = sd_bus_message_open_container(m, 'a', "{sas}");

        for (size_t i = 0, next; r >= 0 && i < mappings->n_items; i = next) {
                const char *suffix = mappings->items[i].suffix;

                if ((r = sd_bus_message_open_container(m, 'e', "sas")) < 0 ||
                    (r = sd_bus_message_append(m, "s", suffix)) < 0 ||
                    (r = sd_bus_message_open_container(m, 'a', "s")) < 0)
                        return r;
                for (next = i;
                     next < mappings->n_items && strcmp(mappings->items[next].suffix, suffix) == 0;
                     next++)
                        if ((r = sd_bus_message_append(m, "s",
                                                       mappings->items[next].provider.text)) < 0)
                                return r;
                if ((r = sd_bus_message_close_container(m)) < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static bool names_trees(const ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (!uuid_empty(&request->groups[i].in_tree))
                        return true;
        return false;
}

static int append_options(sd_bus_message *m, const CtlClaim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0 && claim->consumer_type)
                r = sd_bus_message_append(m, "{sv}", "consumer-type", "s", claim->consumer_type);
        if (r >= 0)
                r = append_numa(m, claim->numa);
        if (r >= 0 && claim->request->n_subtrees > 0)
                r = append_lists(m, "same-subtree", "aas", append_subtrees, claim);
        if (r >= 0 && names_trees(claim->request))
                r = append_lists(m, "in-tree", "a{ss}", append_trees, claim);
        if (r >= 0 && claim->mappings && claim->mappings->n_items > 0)
                r = append_lists(m, "mappings", "a{sas}", append_mappings, claim);
        if (r >= 0 && claim->project)
                r = sd_bus_message_append(m, "{sv}", "project", "s", claim->project);
        if (r >= 0 && claim->user)
                r = sd_bus_message_append(m, "{sv}", "user", "s", claim->user);
        if (r >= 0 && claim->resize_target)
                r = sd_bus_message_append(m, "{sv}", "resize-target", "b", 1);
        if (r >= 0 && claim->request->isolate)
                r = sd_bus_message_append(m, "{sv}", "isolate", "b", 1);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int ctl_message_append_request(sd_bus_message *m, const CtlClaim *claim)
{
        int r = append_groups(m, claim->request);

        return r < 0 ? r : append_options(m, claim);
}

/* Reading */

static int read_resources(sd_bus_message *m, json_t *resources)
{
        const char *resource_class;
        uint64_t amount;
        int r = sd_bus_message_enter_container(m, 'a', "{st}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "{st}", &resource_class, &amount)) > 0)
                if (json_object_set_new(
                            resources, resource_class,
                            json_integer((json_int_t)MIN(amount, (uint64_t)INT64_MAX))) < 0)
                        return -ENOMEM;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_allocations(sd_bus_message *m, json_t *allocations)
{
        int r = sd_bus_message_enter_container(m, 'a', BUS_ALLOCATION);

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "ssa{st}")) > 0) {
                _cleanup_json_ json_t *resources = json_object();
                const char *provider, *name;

                if (!resources)
                        return -ENOMEM;
                r = sd_bus_message_read(m, "ss", &provider, &name);
                if (r < 0)
                        return r;
                r = read_resources(m, resources);
                if (r < 0)
                        return r;
                if (json_array_append_new(allocations,
                                          json_pack("{ss ss sO}", "provider", provider, "name",
                                                    name, "resources", resources)) < 0)
                        return -ENOMEM;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_devices(sd_bus_message *m, json_t *devices)
{
        const char *provider, *group, *device, *address, *type, *mdev;
        int exists, managed, r = sd_bus_message_enter_container(m, 'a', BUS_DEVICE);

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, BUS_DEVICE, &provider, &group, &device, &address, &type,
                                        &mdev, &exists, &managed)) > 0)
                if (json_array_append_new(
                            devices, json_pack("{ss ss ss ss ss ss sb sb}", "provider", provider,
                                               "group", group, "device", device, "address", address,
                                               "mdev_type", type, "mdev", mdev, "exists", exists,
                                               "managed", managed)) < 0)
                        return -ENOMEM;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_cells(sd_bus_message *m, json_t *cells)
{
        uint32_t cell, host_cell;
        uint64_t memory_mb, page_kib;
        const char *vcpus;
        int r = sd_bus_message_enter_container(m, 'a', BUS_CELL);

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, BUS_CELL, &cell, &host_cell, &memory_mb, &page_kib,
                                        &vcpus)) > 0)
                if (json_array_append_new(cells,
                                          json_pack("{sI sI sI sI ss}", "cell", (json_int_t)cell,
                                                    "host_cell", (json_int_t)host_cell, "memory_mb",
                                                    (json_int_t)memory_mb, "page_kib",
                                                    (json_int_t)page_kib, "vcpus", vcpus)) < 0)
                        return -ENOMEM;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_cpus(sd_bus_message *m, json_t *cpus)
{
        const char *host_cpus;
        uint32_t vcpu;
        int dedicated, r = sd_bus_message_enter_container(m, 'a', BUS_CPU);

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, BUS_CPU, &vcpu, &dedicated, &host_cpus)) > 0)
                if (json_array_append_new(cpus,
                                          json_pack("{sI sb ss}", "vcpu", (json_int_t)vcpu,
                                                    "dedicated", dedicated, "cpus", host_cpus)) < 0)
                        return -ENOMEM;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Its uuids by suffix, as in Placement's "mappings". */
static int read_mapping(sd_bus_message *m, json_t *mappings)
{
        _cleanup_json_ json_t *providers = json_array();
        const char *suffix, *provider;
        int r = sd_bus_message_read(m, "s", &suffix);

        if (r < 0 || !providers)
                return r < 0 ? r : -ENOMEM;
        r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read(m, "s", &provider)) > 0)
                if (json_array_append_new(providers, json_string(provider)) < 0)
                        return -ENOMEM;
        if (r < 0)
                return r;
        if (json_object_set(mappings, suffix, providers) < 0)
                return -ENOMEM;
        return sd_bus_message_exit_container(m);
}

static int read_mappings(sd_bus_message *m, json_t *mappings)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sas}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sas")) > 0) {
                r = read_mapping(m, mappings);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* What a claim has. */
typedef struct Holdings {
        json_t *allocations, *devices, *cells, *cpus, *mappings;
} Holdings;

static void holdings_done(Holdings *holdings)
{
        json_decref(holdings->allocations);
        json_decref(holdings->devices);
        json_decref(holdings->cells);
        json_decref(holdings->cpus);
        json_decref(holdings->mappings);
}

static int holdings_init(Holdings *holdings)
{
        *holdings = (Holdings){ .allocations = json_array(),
                                .devices = json_array(),
                                .cells = json_array(),
                                .cpus = json_array(),
                                .mappings = json_object() };
        return holdings->allocations && holdings->devices && holdings->cells && holdings->cpus &&
                               holdings->mappings
                       ? 0
                       : -ENOMEM;
}

static int read_placing(sd_bus_message *m, Holdings *holdings)
{
        int r = read_cells(m, holdings->cells);

        if (r >= 0)
                r = read_cpus(m, holdings->cpus);
        return r < 0 ? r : read_mappings(m, holdings->mappings);
}

int ctl_message_read_claimed(sd_bus_message *m, const char *consumer, json_t **ret)
{
        _cleanup_(holdings_done) Holdings holdings;
        json_t *document;
        int64_t id;
        int r = holdings_init(&holdings);

        if (r < 0 || (r = sd_bus_message_read(m, "x", &id)) < 0 ||
            (r = read_allocations(m, holdings.allocations)) < 0 ||
            (r = read_devices(m, holdings.devices)) < 0 || (r = read_placing(m, &holdings)) < 0)
                return r;
        document = json_pack("{ss sI ss sO sO sO sO sO}", "format", CTL_CLAIM_FORMAT, "id",
                             (json_int_t)id, "consumer", consumer, "allocations",
                             holdings.allocations, "devices", holdings.devices, "cells",
                             holdings.cells, "cpus", holdings.cpus, "mappings", holdings.mappings);
        if (!document)
                return -ENOMEM;
        *ret = document;
        return 0;
}

int ctl_message_read_claim(sd_bus_message *m, json_t *claims)
{
        const char *consumer, *state, *project, *user, *reason, *boot_id, *type;
        _cleanup_(holdings_done) Holdings holdings;
        uint64_t created, expires, ended;
        int64_t id;
        int resize_target, r = holdings_init(&holdings);

        if (r < 0 ||
            (r = sd_bus_message_read(m, "xssbssttts", &id, &consumer, &state, &resize_target,
                                     &project, &user, &created, &expires, &ended, &reason)) < 0 ||
            (r = read_allocations(m, holdings.allocations)) < 0 ||
            (r = read_devices(m, holdings.devices)) < 0 ||
            (r = sd_bus_message_read(m, "ss", &boot_id, &type)) < 0 ||
            (r = read_placing(m, &holdings)) < 0)
                return r;
        return json_array_append_new(
                       claims, json_pack("{sI ss ss sb ss ss sI sI sI ss sO sO ss ss sO sO sO}",
                                         "id", (json_int_t)id, "consumer", consumer, "state", state,
                                         "resize_target", resize_target, "project", project, "user",
                                         user, "created_usec", (json_int_t)created, "expires_usec",
                                         (json_int_t)expires, "ended_usec", (json_int_t)ended,
                                         "end_reason", reason, "allocations", holdings.allocations,
                                         "devices", holdings.devices, "boot_id", boot_id,
                                         "consumer_type", type, "cells", holdings.cells, "cpus",
                                         holdings.cpus, "mappings", holdings.mappings)) < 0
                       ? -ENOMEM
                       : 0;
}

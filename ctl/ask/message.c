/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/message.h"

#include <string.h>

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
                r = append_set(m, &request->subtrees[i]);
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

static int append_cpus(sd_bus_message *m, const CtlClaim *claim)
{
        return sd_bus_message_append_strv(m, (char **)claim->numa->cpus);
}

static int append_memory(sd_bus_message *m, const CtlClaim *claim)
{
        return sd_bus_message_append_array(m, 't', claim->numa->memory_mb,
                                           claim->numa->n_memory * sizeof(uint64_t));
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

static int append_texts(sd_bus_message *m, const CtlClaim *claim)
{
        const NumaOptions *numa = claim->numa;
        const struct {
                const char *name, *text;
        } texts[] = { { "consumer-type", claim->consumer_type },
                      { "project", claim->project },
                      { "user", claim->user },
                      { "control-group", claim->control_group },
                      { "cpu-policy", numa->cpu_policy },
                      { "cpu-dedicated-mask", numa->dedicated_mask },
                      { "cpu-thread-policy", numa->thread_policy },
                      { "mem-page-size", numa->page_size },
                      { "pci-numa-affinity-policy", numa->affinity },
                      { "numa-strategy", numa->strategy } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(texts); i++)
                if (texts[i].text)
                        r = sd_bus_message_append(m, "{sv}", texts[i].name, "s", texts[i].text);
        return r;
}

/* Options whose values are written by a function. */
static int append_lists(sd_bus_message *m, const CtlClaim *claim)
{
        const struct {
                bool given;
                const char *name, *type;
                int (*append)(sd_bus_message *m, const CtlClaim *claim);
        } lists[] = { { claim->numa->n_cpus > 0, "numa-cpus", "as", append_cpus },
                      { claim->numa->n_memory > 0, "numa-mem", "at", append_memory },
                      { claim->request->n_subtrees > 0, "same-subtree", "aas", append_subtrees },
                      { names_trees(claim->request), "in-tree", "a{ss}", append_trees },
                      { claim->mappings && claim->mappings->n_items > 0, "mappings", "a{sas}",
                        append_mappings } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(lists); i++)
                if (lists[i].given &&
                    ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
                     (r = sd_bus_message_append(m, "s", lists[i].name)) < 0 ||
                     (r = sd_bus_message_open_container(m, 'v', lists[i].type)) < 0 ||
                     (r = lists[i].append(m, claim)) < 0 ||
                     (r = sd_bus_message_close_container(m)) < 0 ||
                     (r = sd_bus_message_close_container(m)) < 0))
                        return r;
        return r;
}

static int append_options(sd_bus_message *m, const CtlClaim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = append_texts(m, claim);
        if (r >= 0)
                r = append_lists(m, claim);
        if (r >= 0 && claim->numa->nodes > 0)
                r = sd_bus_message_append(m, "{sv}", "numa-nodes", "t", claim->numa->nodes);
        if (r >= 0 && claim->process > 0)
                r = sd_bus_message_append(m, "{sv}", "process", "u", claim->process);
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

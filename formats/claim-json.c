/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the JSON of claims and events for the documents of D-Bus (members: claim-json.h). The name
 * of a guest with a domain, and the members "class", "exists" and "managed" of a device, come from
 * the facts of the last poll. Everything else comes from the claim or the event.
 *
 * Each part of a claim has a function that returns a new reference. It returns NULL if memory ran
 * out or a text is not UTF-8. A NULL among the values makes json_pack() fail and release the other
 * values, so errors need no further check. Allocations are sorted by provider name; the other
 * arrays keep the order of the claim. Limit: the texts of an event come from a database that might
 * be damaged. A column that is not a JSON array, or that cannot be parsed because memory is short,
 * becomes an empty array. */

#include "formats/claim-json.h"

#include <string.h>

#include "base/json.h"
#include "claims/fit/device-choice.h"
#include "claims/follow.h"

static int add(json_t *array, json_t *item)
{
        return json_array_append_new(array, item);
}

/* Compares indexes by the names of their providers, with numbers as numbers. A name precedes longer
 * ones that begin with it, and card 9 precedes card 10. */
static int order_names(const void *a, const void *b, void *names)
{
        return strverscmp(((char **)names)[*(const size_t *)a],
                          ((char **)names)[*(const size_t *)b]);
}

/* Makes the allocations, sorted by provider name. */
static json_t *allocations_to_json(const Claim *claim)
{
        _cleanup_json_ json_t *array = json_array();
        _cleanup_free_ size_t *order = calloc(claim->n_allocations + 1, sizeof(size_t));

        if (!order)
                return NULL;
        for (size_t i = 0; i < claim->n_allocations; i++)
                order[i] = i;
        qsort_r(order, claim->n_allocations, sizeof(size_t), order_names, claim->provider_names);
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *allocation = &claim->allocations[order[i]];

                if (add(array, json_pack("{ss ss so}", "provider", allocation->provider.text,
                                         "name", claim->provider_names[order[i]], "resources",
                                         resources_to_json(&allocation->resources))) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* Checks whether libvirt must detach the device from its host driver (managed='yes'). An mdev has
 * no such driver. A PCI device counts as managed if the poll did not find it, or if facts is
 * NULL. */
static bool is_managed(const HostFacts *facts, const ClaimDevice *device)
{
        const HostPci *pci = facts ? host_facts_find_pci(facts, device->address) : NULL;

        return uuid_empty(&device->mdev) && (!pci || pci->managed);
}

/* Checks whether the mdev existed at the last poll. A whole PCI device always counts as
 * existing. */
static bool exists(const HostFacts *facts, const ClaimDevice *device)
{
        return uuid_empty(&device->mdev) || (facts && host_facts_find_mdev(facts, &device->mdev));
}

static json_t *devices_to_json(const Claim *claim, const HostFacts *facts)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (add(array, json_pack("{ss ss ss ss ss ss ss ss sb sb}", "provider",
                                         device->provider.text, "group", device->suffix, "class",
                                         facts ? device_class_of(facts, device) : "", "device",
                                         device->name, "address", device->address, "identity",
                                         device->identity, "mdev_type", device->mdev_type, "mdev",
                                         device->mdev.text, "exists", exists(facts, device),
                                         "managed", is_managed(facts, device))) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *cells_to_json(const Layout *layout)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < layout->n_cells; i++) {
                const LayoutCell *cell = &layout->cells[i];
                _cleanup_free_ char *vcpus = cpu_set_format(&cell->vcpus);

                if (!vcpus ||
                    add(array, json_pack("{sI sI sI sI ss}", "cell", (json_int_t)cell->cell,
                                         "host_cell", (json_int_t)cell->host_cell, "memory_mb",
                                         (json_int_t)cell->memory_mb, "page_kib",
                                         (json_int_t)cell->page_kib, "vcpus", vcpus)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *cpus_to_json(const Layout *layout)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; i < layout->n_cpus; i++) {
                const LayoutCpu *cpu = &layout->cpus[i];
                _cleanup_free_ char *cpus = cpu_set_format(&cpu->cpus);

                if (!cpus ||
                    add(array, json_pack("{sI sb ss}", "vcpu", (json_int_t)cpu->vcpu, "dedicated",
                                         (int)cpu->dedicated, "cpus", cpus)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* Makes {suffix: [uuid of a provider]}. */
static json_t *mappings_to_json(const RequestMappings *mappings)
{
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; i < mappings->n_items; i++) {
                const char *suffix = mappings->items[i].suffix;

                if (!json_object_get(object, suffix) &&
                    json_object_set_new(object, suffix, json_array()) < 0)
                        return NULL;
                if (add(json_object_get(object, suffix),
                        json_string(mappings->items[i].provider.text)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* Returns the name of the claim's guest, not terminated: *ret_length is its length. While the
 * consumer is a migration, the guest has another uuid than the consumer. A guest without a domain
 * is "process 1234", without its start time, or "unit PATH". */
static const char *guest_name(const Claim *claim, const HostFacts *facts, size_t *ret_length)
{
        const HostDomain *domain =
                facts ? host_facts_find_domain(facts, uuid_empty(&claim->guest) ? &claim->consumer
                                                                                : &claim->guest)
                      : NULL;

        *ret_length = domain ? strlen(domain->name) : strcspn(claim->process, ",");
        return domain ? domain->name : claim->process;
}

/* Makes the amounts that Placement has for the guest and that its domain does not show. */
static json_t *beyond_domain_to_json(const Claim *claim)
{
        static const char *const classes[] = { "MEMORY_MB", "PCPU", "VCPU" };
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                uint64_t amount = claim_beyond_domain(claim, classes[i]);

                if (amount > 0 &&
                    json_object_set_new(object, classes[i], json_from_u64(amount)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

json_t *claim_to_json(const Claim *claim, const HostFacts *facts)
{
        _cleanup_free_ char *held = cpu_set_format(&claim->layout.held);
        size_t length;
        const char *guest = guest_name(claim, facts, &length);

        return json_pack(
                "{sI ss ss% ss ss sb ss ss sI sI sI ss so so ss ss so so ss so so}", "id",
                (json_int_t)claim->id, "consumer", claim->consumer.text, "guest", guest, length,
                "of", claim->guest.text, "state", claim_state_to_text(claim->state),
                "resize_target", (int)claim->resize_target, "project", claim->project_id, "user",
                claim->user_id, "created_usec", (json_int_t)claim->created_usec, "expires_usec",
                (json_int_t)claim->expires_usec, "ended_usec", (json_int_t)claim->ended_usec,
                "end_reason", claim->end_reason, "allocations", allocations_to_json(claim),
                "devices", devices_to_json(claim, facts), "boot_id", claim->boot_id,
                "consumer_type", claim->consumer_type, "cells", cells_to_json(&claim->layout),
                "cpus", cpus_to_json(&claim->layout), "held", held, "mappings",
                mappings_to_json(&claim->mappings), "beyond_domain", beyond_domain_to_json(claim));
}

/* Events. */

/* Reads an array that the store keeps as JSON. The file might be damaged, so any other text becomes
 * an empty array. */
static json_t *read_array(const char *text)
{
        json_t *array = json_loads(text, 0, NULL);

        if (json_is_array(array))
                return array;
        json_decref(array);
        return json_array();
}

/* Returns the name of the domain with that uuid; "" if the poll has none. */
static const char *find_name(const HostFacts *facts, const char *text)
{
        const HostDomain *domain = NULL;
        Uuid uuid;

        if (facts && uuid_from_text(text, &uuid) == 0)
                domain = host_facts_find_domain(facts, &uuid);
        return domain ? domain->name : "";
}

json_t *event_to_json(const Event *event, const HostFacts *facts)
{
        return json_pack("{sI sI ss ss sI sI ss ss ss so so ss}", "id", (json_int_t)event->id,
                         "usec", (json_int_t)event->usec, "event", event->kind, "author",
                         event->author, "uid", (json_int_t)event->uid, "claim",
                         (json_int_t)event->claim, "consumer", event->consumer, "guest",
                         find_name(facts, event->guest[0] ? event->guest : event->consumer), "of",
                         event->guest, "allocations", read_array(event->allocations), "devices",
                         read_array(event->devices), "reason", event->reason);
}

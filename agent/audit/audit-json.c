/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/audit/audit-json.h"

#include "agent/audit/audit-picture.h"
#include "base/json.h"
#include "formats/format-names.h"

static json_t *finding_to_json(const AuditFinding *finding)
{
        static const char *const outcomes[] = {
                [AUDIT_FOUND] = "found",
                [AUDIT_HEALED] = "healed",
                [AUDIT_FAILED] = "failed",
        };

        return json_pack("{ss ss ss sI ss ss ss ss sb}", "type", audit_type_to_text(finding->type),
                         "remedy", audit_remedy_to_text(finding->remedy), "consumer",
                         finding->consumer.text, "claim", (json_int_t)finding->claim_id, "text",
                         finding->text, "evidence", finding->evidence, "outcome",
                         outcomes[finding->outcome], "error",
                         finding->outcome == AUDIT_FAILED ? finding->error.text : "", "problem",
                         (int)audit_type_is_problem(finding->type));
}

static json_t *findings_to_json(const Audit *audit)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < audit->n_items; i++)
                if (json_array_append_new(array, finding_to_json(&audit->items[i])) < 0)
                        return NULL;
        return json_incref(array);
}

/* The allocations in this tree, or all others. */
static json_t *held_to_json(const AuditInput *input, const Consumer *consumer, bool here)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = provider_tree_find(input->tree, &held->provider);

                if (!audit_own_provider(input, &held->provider) != here &&
                    json_array_append_new(
                            array, json_pack("{ss ss so}", "provider", held->provider.text, "name",
                                             provider ? provider->name : "", "resources",
                                             resources_to_json(&held->resources))) < 0)
                        return NULL;
        }
        return json_incref(array);
}

static json_t *devices_to_json(const Claim *claim)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && claim && i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (json_array_append_new(array, json_string(device->address[0] ? device->address
                                                                                : device->name)) <
                    0)
                        return NULL;
        }
        return json_incref(array);
}

/* Host CPUs that the claim has for its guest; NULL when out of memory. */
static char *cpus_of(const Claim *claim)
{
        CpuSet cpus = { 0 };
        char *text = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && claim && i < claim->layout.n_cpus; i++)
                CPU_SET_FOREACH(cpu, &claim->layout.cpus[i].cpus)
                        r = r < 0 ? r : cpu_set_add(&cpus, cpu);
        if (r == 0)
                text = cpu_set_format(&cpus);
        cpu_set_done(&cpus);
        return text;
}

static json_t *consumer_to_json(const AuditPicture *picture, const Consumer *consumer,
                                const Claim *claim)
{
        const AuditInput *input = picture->input;
        const HostDomain *domain = audit_picture_domain(picture, &consumer->uuid);
        _cleanup_free_ char *cpus = cpus_of(claim);

        return cpus ? json_pack("{ss ss ss ss ss sI so so so ss}", "consumer", consumer->uuid.text,
                                "type", consumer->type ? consumer->type : "", "project",
                                consumer->project_id ? consumer->project_id : "", "user",
                                consumer->user_id ? consumer->user_id : "", "guest",
                                domain ? domain->name : "", "claim",
                                (json_int_t)(claim ? claim->id : 0), "here",
                                held_to_json(input, consumer, true), "elsewhere",
                                held_to_json(input, consumer, false), "devices",
                                devices_to_json(claim), "cpus", cpus)
                    : NULL;
}

static json_t *list_consumers(const AuditPicture *picture)
{
        const Allocations *consumers = picture->input->consumers;
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];
                const Claim *claim = audit_picture_claim(picture, &consumer->uuid);

                if ((claim || audit_holds_here(picture->input, consumer)) &&
                    json_array_append_new(array, consumer_to_json(picture, consumer, claim)) < 0)
                        return NULL;
        }
        return json_incref(array);
}

static json_t *consumers_to_json(const AuditInput *input)
{
        AuditPicture picture = { 0 };
        json_t *array = audit_picture_make(input, &picture) < 0 ? NULL : list_consumers(&picture);

        audit_picture_done(&picture);
        return array;
}

json_t *audit_to_json(const AuditInput *input, const Audit *audit)
{
        return json_pack("{ss ss sI sI sI so so}", "format", AUDIT_FORMAT, "root", input->root.text,
                         "taken_usec", (json_int_t)input->now_usec, "holding",
                         (json_int_t)audit->n_consumers, "in_flight",
                         (json_int_t)audit->n_in_flight, "findings", findings_to_json(audit),
                         "consumers", consumers_to_json(input));
}

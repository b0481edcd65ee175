/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes the document of an audit: its figures, the findings, and each consumer of the input that
 * has a claim or an allocation here. The input lacks consumers without any allocations, so a claim
 * of such a consumer appears only in findings. A consumer with two claims appears once, with the
 * older claim. The text of each item is written at once, so that no JSON value of the whole
 * document exists: for thousands of consumers, to free it alone would stop the main loop.
 *
 * Tests: tests/unit/agent/audit/test-auditor.c */

#include "agent/audit/document.h"

#include <stdio.h>

#include "agent/audit/evidence.h"
#include "base/json.h"
#include "formats/format-names.h"

struct AuditDocument {
        const AuditInput *input;
        const Audit *audit;
        GuestIndex index;
        FILE *file; /* writes to text; NULL: complete */
        char *text;
        size_t size;
        size_t n_described;    /* findings, consumers and ends of lists */
        const char *separator; /* text before the next item of a list */
};

static json_t *finding_to_json(const AuditFinding *finding)
{
        static const char *const outcomes[] = {
                [AUDIT_FOUND] = "found",
                [AUDIT_HEALED] = "healed",
                [AUDIT_FAILED] = "failed",
        };

        return json_pack("{ss ss ss sI ss ss ss ss sb}", "type", audit_type_names[finding->type],
                         "remedy", audit_remedy_names[finding->remedy], "consumer",
                         finding->consumer.text, "claim", (json_int_t)finding->claim_id, "text",
                         finding->text, "evidence", finding->evidence, "outcome",
                         outcomes[finding->outcome], "error",
                         finding->outcome == AUDIT_FAILED ? finding->error.text : "", "problem",
                         (int)audit_type_is_problem(finding->type));
}

/* Returns the consumer's allocations from this tree, or all others. */
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

/* Returns the addresses of the claim's devices, or names where a device has no address. */
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

/* Returns the host CPUs of the claim's layout, "" without any. NULL: memory is short. */
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

static json_t *consumer_to_json(const AuditInput *input, const GuestIndex *index,
                                const Consumer *consumer, const Claim *claim)
{
        const HostDomain *domain = guest_index_domain(index, &consumer->uuid);
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

/* Writes a value after the separator. Takes ownership of the value, which can be NULL. */
static int write_item(AuditDocument *document, json_t *item)
{
        int r = item && fputs(document->separator, document->file) != EOF
                        ? json_dumpf(item, document->file, JSON_COMPACT)
                        : -1;

        document->separator = ",";
        json_decref(item);
        return r < 0 ? -ENOMEM : 0;
}

/* Begins an object with the figures and the list of findings. */
static int write_begin(AuditDocument *document)
{
        const AuditInput *input = document->input;
        _cleanup_json_ json_t *figures = json_pack(
                "{ss ss sI sI sI}", "format", AUDIT_FORMAT, "root", input->root.text, "taken_usec",
                (json_int_t)input->now_usec, "holding", (json_int_t)document->audit->n_consumers,
                "in_flight", (json_int_t)document->audit->n_in_flight);

        return figures && fputc('{', document->file) != EOF &&
                               json_dumpf(figures, document->file, JSON_COMPACT | JSON_EMBED) >=
                                       0 &&
                               fputs(",\"findings\":[", document->file) != EOF
                       ? 0
                       : -ENOMEM;
}

int audit_document_new(AuditDocument **ret, const AuditInput *input, const Audit *audit)
{
        _cleanup_(audit_document_freep) AuditDocument *document = calloc(1, sizeof(AuditDocument));

        if (!document)
                return -ENOMEM;
        document->input = input;
        document->audit = audit;
        document->index = (GuestIndex){ .claims = input->claims, .facts = input->facts };
        document->separator = "";
        document->file = open_memstream(&document->text, &document->size);
        if (!document->file || guest_index_make(&document->index) < 0 || write_begin(document) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(document);
        return 0;
}

AuditDocument *audit_document_free(AuditDocument *document)
{
        if (!document)
                return NULL;
        if (document->file)
                fclose(document->file);
        free(document->text);
        guest_index_done(&document->index);
        free(document);
        return NULL;
}

/* Describes a consumer that has a claim or an allocation here. */
static int write_consumer(AuditDocument *document, const Consumer *consumer)
{
        const Claim *claim = guest_index_claim(&document->index, &consumer->uuid, 0);

        return claim || audit_holds_here(document->input, consumer)
                       ? write_item(document, consumer_to_json(document->input, &document->index,
                                                               consumer, claim))
                       : 0;
}

/* Ends a list with this text. */
static int write_end(AuditDocument *document, const char *text)
{
        document->separator = "";
        return fputs(text, document->file) == EOF ? -ENOMEM : 0;
}

/* Writes the i-th thing: the findings, the begin of the next list, the consumers, and the end. */
static int write_thing(AuditDocument *document, size_t i)
{
        const Allocations *consumers = document->input->consumers;
        size_t n_findings = document->audit->n_items;

        if (i < n_findings)
                return write_item(document, finding_to_json(&document->audit->items[i]));
        if (i == n_findings)
                return write_end(document, "],\"consumers\":[");
        i -= n_findings + 1;
        return i < consumers->n_consumers ? write_consumer(document, consumers->consumers[i])
                                          : write_end(document, "]}");
}

int audit_document_step(AuditDocument *document, size_t n, char **ret)
{
        size_t n_things = document->audit->n_items + document->input->consumers->n_consumers + 2;
        int r;

        for (; n > 0 && document->n_described < n_things; n--)
                if (write_thing(document, document->n_described++) < 0)
                        return -ENOMEM;
        if (document->n_described < n_things)
                return 1;
        r = fclose(document->file);
        document->file = NULL;
        *ret = r == 0 ? TAKE_PTR(document->text) : NULL;
        return 0;
}

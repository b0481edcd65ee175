/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes and reads the messages of compute-agent-health. The reader checks the type of each member,
 * and replaces control characters of texts. A message has only the members of its kind, and the
 * reader ignores other members. A member that is missing, of another type or too long, a bad
 * address, or an unknown kind or lift makes the whole line no message. The number of guests is cut
 * to HEALTH_GUESTS_MAX.
 *
 * Tests: tests/unit/agent/health/test-message.c */

#include "agent/health/message.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const char *const kinds[] = {
        [HEALTH_FINDING] = "finding",
        [HEALTH_RECOVERED] = "recovered",
        [HEALTH_PROBLEM] = "problem",
        [HEALTH_STATE] = "state",
};

/* Returns the members of the message's kind. NULL: out of memory, or a text is not UTF-8. */
static json_t *to_json(const HealthMessage *message)
{
        switch (message->kind) {
        case HEALTH_FINDING:
                return json_pack(
                        "{ss ss ss ss ss sI sI sI si ss sb}", "kind", kinds[message->kind], "rule",
                        message->rule, "address", message->address, "line", message->line,
                        "boot_id", message->boot_id, "last_usec", (json_int_t)message->last_usec,
                        "first_usec", (json_int_t)message->first_usec, "within_usec",
                        (json_int_t)message->within_usec, "guests", (int)message->guests, "lift",
                        health_lift_to_text(message->lift), "reports", (int)message->reports);
        case HEALTH_RECOVERED:
                return json_pack("{ss ss ss ss ss sI}", "kind", kinds[message->kind], "rule",
                                 message->rule, "address", message->address, "line", message->line,
                                 "boot_id", message->boot_id, "last_usec",
                                 (json_int_t)message->last_usec);
        case HEALTH_PROBLEM:
                return json_pack("{ss ss}", "kind", kinds[message->kind], "text", message->text);
        default:
                return json_pack("{ss ss sI ss}", "kind", kinds[message->kind], "text",
                                 message->text, "n_rules", (json_int_t)message->n_rules, "cursor",
                                 message->cursor);
        }
}

char *health_message_to_text(const HealthMessage *message)
{
        _cleanup_json_ json_t *json = to_json(message);

        return json ? json_dumps(json, JSON_COMPACT) : NULL;
}

/* Reads a text into an array of size bytes. A text that does not fit with its NUL is an error. */
static int read_text(const json_t *json, const char *key, char *ret, size_t size, Error *reterr)
{
        const char *text;
        int r = json_read_string(json, key, &text, reterr);

        if (r < 0)
                return r;
        if (strlen(text) >= size)
                return error_setf(reterr, EBADMSG, "%s is too long", key);
        strcpy(ret, text);
        text_sanitize(ret, '?');
        return 0;
}

/* Reads the members of a finding that a recovery has, too. */
static int read_subject(const json_t *json, HealthMessage *ret, Error *reterr)
{
        char address[PCI_ADDRESS_SIZE] = "";
        int r;

        if ((r = read_text(json, "rule", ret->rule, sizeof(ret->rule), reterr)) < 0 ||
            (r = read_text(json, "address", address, sizeof(address), reterr)) < 0 ||
            (r = read_text(json, "line", ret->line, sizeof(ret->line), reterr)) < 0 ||
            (r = read_text(json, "boot_id", ret->boot_id, sizeof(ret->boot_id), reterr)) < 0 ||
            (r = json_read_u64(json, "last_usec", &ret->last_usec, reterr)) < 0)
                return r;
        if (!ret->rule[0] || pci_address_parse(address, ret->address) < 0)
                return error_setf(reterr, EBADMSG, "no rule, or no PCI address");
        return 0;
}

/* Reads a finding. An unknown lift is an error, because the end of the cordon would be unknown. */
static int read_finding(const json_t *json, HealthMessage *ret, Error *reterr)
{
        const char *lift;
        uint64_t guests;
        int r = read_subject(json, ret, reterr);

        if (r < 0 || (r = json_read_u64(json, "first_usec", &ret->first_usec, reterr)) < 0 ||
            (r = json_read_u64(json, "within_usec", &ret->within_usec, reterr)) < 0 ||
            (r = json_read_u64(json, "guests", &guests, reterr)) < 0 ||
            (r = json_read_string(json, "lift", &lift, reterr)) < 0 ||
            (r = json_read_bool(json, "reports", &ret->reports, reterr)) < 0)
                return r;
        ret->guests = (unsigned)MIN(guests, (uint64_t)HEALTH_GUESTS_MAX);
        ret->lift = health_lift_from_text(lift);
        if ((int)ret->lift < 0)
                return error_setf(reterr, EBADMSG, "unknown lift");
        return 0;
}

static int read_members(const json_t *json, HealthMessage *ret, Error *reterr)
{
        int r;

        switch (ret->kind) {
        case HEALTH_FINDING:
                return read_finding(json, ret, reterr);
        case HEALTH_RECOVERED:
                return read_subject(json, ret, reterr);
        case HEALTH_PROBLEM:
                return read_text(json, "text", ret->text, sizeof(ret->text), reterr);
        default:
                if ((r = read_text(json, "text", ret->text, sizeof(ret->text), reterr)) < 0 ||
                    (r = json_read_u64(json, "n_rules", &ret->n_rules, reterr)) < 0)
                        return r;
                return read_text(json, "cursor", ret->cursor, sizeof(ret->cursor), reterr);
        }
}

int health_message_from_text(const char *text, size_t n, HealthMessage *ret, Error *reterr)
{
        _cleanup_json_ json_t *json = NULL;
        HealthMessage message = { .kind = _HEALTH_MESSAGE_INVALID };
        const char *kind;
        int r = json_parse(text, n, &json, reterr);

        if (r < 0 || (r = json_read_string(json, "kind", &kind, reterr)) < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (strcmp(kinds[i], kind) == 0)
                        message.kind = (HealthMessageKind)i;
        if ((int)message.kind < 0)
                return error_setf(reterr, EBADMSG, "unknown kind of message");
        r = read_members(json, &message, reterr);
        if (r == 0)
                *ret = message;
        return r;
}

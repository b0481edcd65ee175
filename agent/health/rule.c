/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads health rules from YAML. A Reader has the document and the rule that is read. Each key of a
 * rule is a row of a table with its function. A function returns -EINVAL after it reported a
 * problem. That rule is then skipped. A file is skipped as a whole if it cannot be parsed as YAML
 * (yaml-text.h), or has no list "rules". The function health_rules_add() still returns 0. -ENOMEM
 * ends the whole call; the rules before it stay. A rule is added only when it is complete and
 * valid. Keys that depend on each other are checked when all keys were read (check()). An unknown
 * key is a problem, so a file for a newer version loses the rules that use it.
 *
 * The patterns are those of PCRE2, which can allocate up to MATCH_HEAP_KIB during a match. From
 * version 10.41 on, it keeps this memory until the pattern is freed.
 *
 * Tests: tests/unit/agent/health/test-rule.c */

#include "agent/health/rule.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define WITHIN_DEFAULT_USEC (UINT64_C(3600) * USEC_PER_SEC)
#define MATCH_STEPS_MAX     20000 /* steps of a match */
#define MATCH_DEPTH_MAX     250   /* depth of nested backtracking */
#define MATCH_HEAP_KIB      256

/* Patterns */

/* Owns the code, the limits of a match and the memory for the result of one match. */
struct HealthPattern {
        pcre2_code *code;
        pcre2_match_context *context;
        pcre2_match_data *data;
        int address, nvme; /* numbers of the groups; below 0: none or several have the name */
};

static HealthPattern *pattern_free(HealthPattern *pattern)
{
        if (!pattern)
                return NULL;
        pcre2_match_data_free(pattern->data);
        pcre2_match_context_free(pattern->context);
        pcre2_code_free(pattern->code);
        free(pattern);
        return NULL;
}
DEFINE_CLEANUP(HealthPattern *, pattern_free);

static int compile(HealthPattern *pattern, const char *text, Error *reterr)
{
        PCRE2_UCHAR words[120] = "";
        PCRE2_SIZE at = 0;
        int code = 0;

        pattern->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                      PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
        if (pattern->code)
                return 0;
        (void)pcre2_get_error_message(code, words, sizeof(words));
        return error_setf(reterr, EINVAL, "not a regular expression, at byte %zu: %s", (size_t)at,
                          (const char *)words);
}

/* Allocates the memory of a match, and sets its limits. */
static int prepare(HealthPattern *pattern)
{
        pattern->context = pcre2_match_context_create(NULL);
        pattern->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
        if (!pattern->context || !pattern->data)
                return -ENOMEM;
        pcre2_set_match_limit(pattern->context, MATCH_STEPS_MAX);
        pcre2_set_depth_limit(pattern->context, MATCH_DEPTH_MAX);
        pcre2_set_heap_limit(pattern->context, MATCH_HEAP_KIB);
        return 0;
}

/* Compiles a pattern. Returns -EINVAL with words if it is too long, if PCRE2 cannot compile it
 * (also for lack of memory), or if it does not have exactly one of the groups "address" and "nvme".
 * Returns -ENOMEM on another failure. */
static int pattern_new(HealthPattern **ret, const char *text, Error *reterr)
{
        _cleanup_(pattern_freep) HealthPattern *pattern = calloc(1, sizeof(HealthPattern));
        int r;

        if (!pattern)
                return error_oom(reterr);
        if (strlen(text) > HEALTH_PATTERN_MAX)
                return error_setf(reterr, EINVAL, "longer than %d bytes", HEALTH_PATTERN_MAX);
        r = compile(pattern, text, reterr);
        if (r < 0)
                return r;
        pattern->address = pcre2_substring_number_from_name(pattern->code, (PCRE2_SPTR) "address");
        pattern->nvme = pcre2_substring_number_from_name(pattern->code, (PCRE2_SPTR) "nvme");
        if ((pattern->address < 0) == (pattern->nvme < 0))
                return error_setf(reterr, EINVAL,
                                  "needs one group (?<address>…) or (?<nvme>…) for the device");
        if (prepare(pattern) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(pattern);
        return 0;
}

/* Copies the text of a group. Returns false if it is missing or empty, or does not fit. */
static bool copy_group(const HealthPattern *pattern, int group, const char *line, char *ret,
                       size_t size)
{
        const PCRE2_SIZE *places = pcre2_get_ovector_pointer(pattern->data);
        size_t begin, n;

        if (group < 0 || places[2 * group] == PCRE2_UNSET)
                return false;
        begin = places[2 * group];
        if (places[2 * group + 1] <= begin)
                return false;
        n = places[2 * group + 1] - begin;
        if (n >= size)
                return false;
        memcpy(ret, line + begin, n);
        ret[n] = '\0';
        return true;
}

/* Completes an address that lacks its domain or function, and parses it. */
static bool read_address(const char *text, char ret[static PCI_ADDRESS_SIZE])
{
        const char *colon = strchr(text, ':');
        bool has_domain = colon && strchr(colon + 1, ':');
        char full[2 * PCI_ADDRESS_SIZE];

        snprintf(full, sizeof(full), "%s%s%s", has_domain ? "" : "0000:", text,
                 strchr(text, '.') ? "" : ".0");
        return pci_address_parse(full, ret) >= 0;
}

/* Returns true for a name without characters that have a meaning in a path. */
static bool is_name(const char *text)
{
        for (; *text; text++)
                if (!isalnum((unsigned char)*text))
                        return false;
        return true;
}

bool health_pattern_match(const HealthPattern *pattern, const char *line, HealthSubject *ret)
{
        size_t n = strnlen(line, HEALTH_LINE_MAX);
        HealthSubject subject = { .address = "" };
        char text[2 * PCI_ADDRESS_SIZE - 8] = "";

        if (pcre2_match(pattern->code, (PCRE2_SPTR)line, n, 0, 0, pattern->data, pattern->context) <
            0)
                return false;
        if (copy_group(pattern, pattern->nvme, line, subject.nvme, sizeof(subject.nvme))) {
                if (!is_name(subject.nvme))
                        return false;
        } else if (!copy_group(pattern, pattern->address, line, text, sizeof(text)) ||
                   !read_address(text, subject.address)) {
                return false;
        }
        *ret = subject;
        return true;
}

/* The list of rules */

/* The document that is read, and the rule that is being made. */
typedef struct Reader {
        HealthRules *rules;
        const char *source;
        yaml_document_t *document;
        void (*problem)(const char *text, void *userdata);
        void *userdata;
        HealthRule *rule;
        bool has_evidence, has_recovery, has_lift;
} Reader;

static HealthRule *rule_free(HealthRule *rule)
{
        if (!rule)
                return NULL;
        pattern_free(rule->pattern);
        pattern_free(rule->recovery);
        free(rule->name);
        free(rule);
        return NULL;
}
DEFINE_CLEANUP(HealthRule *, rule_free);

void health_rules_done(HealthRules *rules)
{
        for (size_t i = 0; i < rules->n_items; i++)
                rule_free(rules->items[i]);
        free(rules->items);
        *rules = HEALTH_RULES_INIT;
}

static const char *const lifts[] = {
        [HEALTH_LIFT_BOOT] = "boot",
        [HEALTH_LIFT_RECOVERY] = "recovery",
        [HEALTH_LIFT_NEVER] = "never",
};

const char *health_lift_to_text(HealthLift lift)
{
        return lifts[lift];
}

HealthLift health_lift_from_text(const char *text)
{
        for (size_t i = 0; text && i < ARRAY_SIZE(lifts); i++)
                if (strcmp(lifts[i], text) == 0)
                        return (HealthLift)i;
        return _HEALTH_LIFT_INVALID;
}

/* Reports a problem with file, line (1 without a node) and the name of the rule, if the name was
 * read before. Always returns -EINVAL. */
_printf_(3, 4) static int complain(const Reader *reader, const yaml_node_t *node,
                                   const char *format, ...)
{
        const char *name = reader->rule && reader->rule->name ? reader->rule->name : "";
        char words[ERROR_TEXT_MAX];
        Error error;
        va_list ap;

        va_start(ap, format);
        vsnprintf(words, sizeof(words), format, ap);
        va_end(ap);
        /* error_setf() also replaces control characters and cuts long texts. */
        error_setf(&error, EINVAL, "%.150s:%zu: %s%s%s", reader->source,
                   node ? node->start_mark.line + 1 : 1, name, name[0] ? ": " : "", words);
        reader->problem(error.text, reader->userdata);
        return -EINVAL;
}

/* Values of keys */

/* Reads the name, which must be unique among the rules of all files. */
static int read_name(Reader *reader, const yaml_node_t *value)
{
        const char *text = yaml_text_scalar(value);
        size_t n = text ? strlen(text) : 0;

        if (n == 0 || n > HEALTH_RULE_NAME_MAX ||
            strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
                return complain(reader, value,
                                "name must have 1 to %d lower-case letters, digits and \"-\"",
                                HEALTH_RULE_NAME_MAX);
        for (size_t i = 0; i < reader->rules->n_items; i++)
                if (strcmp(reader->rules->items[i]->name, text) == 0)
                        return complain(reader, value, "another rule has the name \"%s\"", text);
        reader->rule->name = strdup(text);
        return reader->rule->name ? 0 : -ENOMEM;
}

/* Compiles a pattern. One that PCRE2 rejects is a problem of the rule. */
static int read_pattern(Reader *reader, const yaml_node_t *value, const char *key,
                        HealthPattern **ret)
{
        const char *text = yaml_text_scalar(value);
        Error error = ERROR_NULL;
        int r;

        if (!text)
                return complain(reader, value, "%s must be a text", key);
        r = pattern_new(ret, text, &error);
        return r == -EINVAL ? complain(reader, value, "%s: %s", key, error.text) : r;
}

/* Notes the kind of evidence. A rule has exactly one. */
static int note_evidence(Reader *reader, const yaml_node_t *value, HealthEvidence evidence)
{
        if (reader->has_evidence)
                return complain(reader, value, "needs only one of pattern, aer and link");
        reader->has_evidence = true;
        reader->rule->evidence = evidence;
        return 0;
}

static int read_line(Reader *reader, const yaml_node_t *value)
{
        int r = note_evidence(reader, value, HEALTH_LINE);

        return r < 0 ? r : read_pattern(reader, value, "pattern", &reader->rule->pattern);
}

/* Reads the pattern of the recovery. check() requires it exactly for a rule with a line and "lift:
 * recovery". */
static int read_recovery(Reader *reader, const yaml_node_t *value)
{
        reader->has_recovery = true;
        return read_pattern(reader, value, "recovery_pattern", &reader->rule->recovery);
}

/* Returns 1 if the value is the second text, 0 for the first one, or -EINVAL after a problem. */
static int read_choice(const Reader *reader, const yaml_node_t *value, const char *key,
                       const char *first, const char *second)
{
        const char *text = yaml_text_scalar(value);

        if (text && strcmp(text, first) == 0)
                return 0;
        if (text && strcmp(text, second) == 0)
                return 1;
        return complain(reader, value, "%s must be %s or %s", key, first, second);
}

static int read_aer(Reader *reader, const yaml_node_t *value)
{
        int which = read_choice(reader, value, "aer", "fatal", "nonfatal");

        return which < 0 ? which
                         : note_evidence(reader, value,
                                         which ? HEALTH_AER_NONFATAL : HEALTH_AER_FATAL);
}

static int read_link(Reader *reader, const yaml_node_t *value)
{
        int which = read_choice(reader, value, "link", "width", "speed");

        return which < 0 ? which
                         : note_evidence(reader, value,
                                         which ? HEALTH_LINK_SPEED : HEALTH_LINK_WIDTH);
}

/* Reads a whole number from 1 to max. */
static int read_number(const Reader *reader, const yaml_node_t *value, const char *key,
                       unsigned max, unsigned *ret)
{
        const char *text = yaml_text_scalar(value);
        size_t n = text ? strlen(text) : 0;
        unsigned long number =
                n > 0 && n < 6 && strspn(text, "0123456789") == n ? strtoul(text, NULL, 10) : 0;

        if (number < 1 || number > max)
                return complain(reader, value, "%s must be a whole number from 1 to %u", key, max);
        *ret = (unsigned)number;
        return 0;
}

static int read_count(Reader *reader, const yaml_node_t *value)
{
        return read_number(reader, value, "count", HEALTH_COUNT_MAX, &reader->rule->count);
}

static int read_guests(Reader *reader, const yaml_node_t *value)
{
        return read_number(reader, value, "guests", HEALTH_GUESTS_MAX, &reader->rule->guests);
}

/* Reads a time: a whole number with the unit s, min, h or d. */
static int read_within(Reader *reader, const yaml_node_t *value)
{
        static const struct {
                const char *name;
                uint64_t seconds;
        } units[] = { { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 } };
        const char *text = yaml_text_scalar(value);
        size_t digits = text ? strspn(text, "0123456789") : 0;
        uint64_t usec = 0;

        for (size_t i = 0; digits > 0 && digits < 8 && i < ARRAY_SIZE(units); i++)
                if (strcmp(text + digits, units[i].name) == 0)
                        usec = strtoull(text, NULL, 10) * units[i].seconds * USEC_PER_SEC;
        if (usec == 0 || usec > HEALTH_WITHIN_MAX)
                return complain(reader, value,
                                "within must be a time such as 30s, 10min, 1h or 7d, at most 30d");
        reader->rule->within_usec = usec;
        return 0;
}

static int read_lift(Reader *reader, const yaml_node_t *value)
{
        HealthLift lift = health_lift_from_text(yaml_text_scalar(value));

        if ((int)lift < 0)
                return complain(reader, value, "lift must be boot, recovery or never");
        reader->rule->lift = lift;
        reader->has_lift = true;
        return 0;
}

static int read_action(Reader *reader, const yaml_node_t *value)
{
        int which = read_choice(reader, value, "action", "withhold", "report");

        if (which < 0)
                return which;
        reader->rule->reports = which == 1;
        return 0;
}

/* A text for people, which the agent ignores. */
static int read_comment(Reader *reader, const yaml_node_t *value)
{
        return yaml_text_scalar(value) ? 0 : complain(reader, value, "description must be a text");
}

static const struct {
        const char *key;
        int (*read)(Reader *reader, const yaml_node_t *value);
} keys[] = {
        { "name", read_name },     { "description", read_comment },
        { "pattern", read_line },  { "recovery_pattern", read_recovery },
        { "aer", read_aer },       { "link", read_link },
        { "count", read_count },   { "within", read_within },
        { "guests", read_guests }, { "lift", read_lift },
        { "action", read_action },
};

/* Rules */

/* Reads one key of a rule. A repeated key is a problem, because its first value would leak. */
static int read_pair(Reader *reader, const yaml_node_pair_t *pair, unsigned *seen)
{
        const yaml_node_t *name = yaml_document_get_node(reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
        const char *key = yaml_text_scalar(name);
        size_t i = 0;

        while (key && i < ARRAY_SIZE(keys) && strcmp(keys[i].key, key) != 0)
                i++;
        if (!key || i == ARRAY_SIZE(keys))
                return complain(reader, name, "\"%.40s\" is not a key of a rule", key ? key : "?");
        if (*seen & 1U << i)
                return complain(reader, name, "the key %s is repeated", key);
        *seen |= 1U << i;
        return keys[i].read(reader, value);
}

/* Checks the keys that depend on each other. */
static int check(Reader *reader, const yaml_node_t *node)
{
        HealthRule *rule = reader->rule;
        bool is_line = rule->evidence == HEALTH_LINE;
        bool is_link = rule->evidence == HEALTH_LINK_WIDTH || rule->evidence == HEALTH_LINK_SPEED;

        if (!rule->name)
                return complain(reader, node, "a rule needs a name");
        if (!reader->has_evidence)
                return complain(reader, node, "needs one of pattern, aer and link");
        if (!reader->has_lift && is_link)
                rule->lift = HEALTH_LIFT_RECOVERY;
        if (is_line && (rule->lift == HEALTH_LIFT_RECOVERY) != reader->has_recovery)
                return complain(reader, node,
                                "\"lift: recovery\" and recovery_pattern need each other");
        if (!is_line && (reader->has_recovery || rule->guests > 0))
                return complain(reader, node, "recovery_pattern and guests need a pattern");
        if (!is_line && !is_link && rule->lift == HEALTH_LIFT_RECOVERY)
                return complain(reader, node,
                                "lift must be boot or never, because a counter never falls");
        if (rule->guests > 0 && rule->count > 1)
                return complain(reader, node, "needs only one of count and guests");
        if (rule->reports && rule->lift == HEALTH_LIFT_NEVER)
                return complain(reader, node, "lift must not be never for \"action: report\"");
        return 0;
}

/* Reads a rule and adds it. Returns 0, -EINVAL after a problem, or -ENOMEM. */
static int read_rule(Reader *reader, const yaml_node_t *node)
{
        _cleanup_(rule_freep) HealthRule *rule = calloc(1, sizeof(HealthRule));
        unsigned seen = 0;
        int r = 0;

        if (!rule)
                return -ENOMEM;
        *rule = (HealthRule){ .count = 1, .within_usec = WITHIN_DEFAULT_USEC };
        reader->rule = rule;
        reader->has_evidence = reader->has_recovery = reader->has_lift = false;
        if (!node || node->type != YAML_MAPPING_NODE)
                return complain(reader, node, "a rule must be a mapping");
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             r == 0 && pair < node->data.mapping.pairs.top; pair++)
                r = read_pair(reader, pair, &seen);
        if (r == 0)
                r = check(reader, node);
        if (r == 0 && reader->rules->n_items == HEALTH_RULES_MAX)
                r = complain(reader, node, "there are more than %d rules", HEALTH_RULES_MAX);
        if (r == 0)
                r = array_grow(&reader->rules->items, sizeof(HealthRule *), reader->rules->n_items,
                               &reader->rules->n_allocated);
        if (r < 0)
                return r;
        reader->rules->longest_usec = MAX(reader->rules->longest_usec, rule->within_usec);
        reader->rules->items[reader->rules->n_items++] = TAKE_PTR(rule);
        return 0;
}

/* Reads the list of rules. After HEALTH_RULES_MAX problems the rest of the file is skipped, so an
 * alias cannot multiply the work. */
static int read_rules(Reader *reader)
{
        const yaml_node_t *root = yaml_document_get_root_node(reader->document);
        const yaml_node_t *list = yaml_text_member(reader->document, root, "rules");
        size_t n_problems = 0;

        if (!list || list->type != YAML_SEQUENCE_NODE)
                return complain(reader, root, "the file needs a list \"rules\"");
        for (yaml_node_item_t *item = list->data.sequence.items.start;
             item < list->data.sequence.items.top && n_problems < HEALTH_RULES_MAX; item++) {
                int r = read_rule(reader, yaml_document_get_node(reader->document, *item));

                reader->rule = NULL;
                if (r == -ENOMEM)
                        return r;
                n_problems += r < 0;
        }
        return 0;
}

int health_rules_add(HealthRules *rules, const char *source, const char *text, size_t n,
                     void (*problem)(const char *text, void *userdata), void *userdata)
{
        yaml_document_t document;
        Reader reader = { .rules = rules,
                          .source = source,
                          .document = &document,
                          .problem = problem,
                          .userdata = userdata };
        Error error = ERROR_NULL;
        int r = yaml_text_parse(text, n, &document, &error);

        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                (void)complain(&reader, NULL, "%s", error.text);
                return 0;
        }
        r = read_rules(&reader);
        yaml_document_delete(&document);
        return r == -ENOMEM ? r : 0;
}

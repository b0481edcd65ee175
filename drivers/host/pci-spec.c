/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses [pci] device_spec and matches devices with it. A PciSpec has a matcher for each part of
 * the address: a number, ANY, or a regular expression. Parsing checks every value of a known key
 * and reports errors in Nova's terms, so matching has no errors. A match that exceeds a limit, or
 * for which memory is short, is no match. pci_specs_find() tries the specs in their order and
 * returns the first match. Names of classes and traits are brought into Placement's form while they
 * are parsed. In drivers/, only this file calls PCRE2.
 *
 * Limits: PCI_SPECS_MAX specs, PCI_SPEC_TEXT_MAX bytes of a value, and the limits of a regular
 * expression below.
 *
 * Tests: tests/unit/drivers/host/test-pci-spec.c */

#include "drivers/host/pci-spec.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"
#include "base/json.h"

/* Regular expressions
 *
 * Nova's patterns are those of Python's module re. The reader checks each pattern before PCRE2
 * compiles it. It rejects elements that PCRE2 is known to read differently, because they could
 * match other devices than in Nova. A few patterns that Python rejects are accepted, for example
 * "\x1". "{,n}" is a literal text for PCRE2, so the reader writes it as "{0,n}". The length of a
 * pattern, and the memory, depth and steps of a match, are limited. */

#define REGEX_LENGTH_MAX 128    /* bytes of a pattern */
#define MATCH_LIMIT      100000 /* steps of a match */
/* limit of PCRE2 for nested backtracking in a match */
#define DEPTH_LIMIT    1000
#define HEAP_LIMIT_KIB 1024

/* A compiled pattern, and the limits of its matches. */
typedef struct Regex {
        pcre2_code *code;
        pcre2_match_context *context;
} Regex;

static Regex *regex_free(Regex *regex)
{
        if (!regex)
                return NULL;
        pcre2_code_free(regex->code);
        pcre2_match_context_free(regex->context);
        free(regex);
        return NULL;
}
DEFINE_CLEANUP(Regex *, regex_free);

/* Returns true if a backslash before c means the same in Python and PCRE2. Python rejects most
 * other letters, and PCRE2 does not read "\N", "\u" and "\U" as Python does. A reference with two
 * digits or more can be an octal number in PCRE2. */
static bool is_known_escape(const char *c, bool in_class)
{
        if (isdigit((unsigned char)c[0]))
                return c[0] == '0' || in_class || !isdigit((unsigned char)c[1]);
        return !isalpha((unsigned char)c[0]) || strchr("AbBdDsSwWZafnrtvx", c[0]);
}

/* A pattern that is read: c is the next character, output the end of the copy, in_class inside
 * of "[…]". extended: the flag x was set, for all of the pattern or a part. */
typedef struct Reader {
        const char *pattern, *c;
        char *output;
        bool in_class, extended;
} Reader;

/* Returns true if both read the flags in the same way. PCRE2 has a meaning for "xx". Python allows
 * flags without a group only at the start of the pattern. */
static bool are_known_flags(Reader *reader, const char *flags)
{
        size_t n = strspn(flags, "imsx-");
        const char *x = memchr(flags, 'x', n);

        reader->extended |= x != NULL;
        if (n == 0 || (x && memchr(x + 1, 'x', n - (size_t)(x + 1 - flags))))
                return false;
        return flags[n] == ':' ||
               (flags[n] == ')' && reader->c == reader->pattern && !memchr(flags, '-', n));
}

/* Returns true if both read the condition in the same way: a number, or a name in lower case. PCRE2
 * has meanings for a sign and for words in upper case, for example "R" and "DEFINE". */
static bool is_known_condition(const char *c)
{
        size_t n = strspn(c, "0123456789abcdefghijklmnopqrstuvwxyz_");

        return n > 0 && c[n] == ')';
}

/* Returns the length of what can be copied at the "(" of a group, or of all of a comment. Returns 0
 * if Python and PCRE2 read it in different ways. */
static size_t read_group(Reader *reader)
{
        const char *c = reader->c;
        size_t n;

        if (c[1] != '?')
                return c[1] != '*';
        switch (c[2]) {
        case '#':
                /* Only in Python a backslash can keep ")" from ending the comment. */
                n = strcspn(c, "\\)");
                return c[n] == ')' ? n + 1 : 0;
        case '(':
                return is_known_condition(c + 3);
        case '<':
                return c[3] == '=' || c[3] == '!';
        case 'P':
                return c[3] == '<' || c[3] == '=';
        case ':':
        case '=':
        case '!':
        case '>':
                return 1;
        default:
                return are_known_flags(reader, c + 2);
        }
}

/* Returns true if PCRE2 10.43 and later read the brace as a count, and Python as text: the count
 * has spaces. */
static bool is_spaced_count(const char *c)
{
        size_t n = strspn(c + 1, "0123456789, \t");

        return c[n + 1] == '}' && n > strspn(c + 1, "0123456789,");
}

static int refuse(const Reader *reader, Error *reterr)
{
        return error_setf(reterr, EINVAL,
                          "Python does not support \"%.10s\", or reads it differently", reader->c);
}

/* Reads one element of the pattern, copies it to the output, and moves c behind it. */
static int read_one(Reader *reader, Error *reterr)
{
        const char *c = reader->c;
        size_t n = 1;

        if (!isascii((unsigned char)c[0]))
                return refuse(reader, reterr);
        if (c[0] == '\\') {
                if (!c[1] || !is_known_escape(c + 1, reader->in_class))
                        return refuse(reader, reterr);
                n = 2;
        } else if (reader->in_class) {
                if (c[0] == '[' && c[1] && strchr(":.=", c[1]))
                        return refuse(reader, reterr);
                reader->in_class = c[0] != ']';
        } else if (c[0] == '[') {
                reader->in_class = true;
                n += c[1] == '^';
                n += c[n] == ']';
        } else if (c[0] == '(') {
                n = read_group(reader);
                if (n == 0)
                        return refuse(reader, reterr);
        } else if ((c[0] == '#' && reader->extended) || (c[0] == '{' && is_spaced_count(c))) {
                return refuse(reader, reterr);
        } else if (c[0] == '{' && c[1] == ',') {
                size_t digits = strspn(c + 2, "0123456789");

                if (c[2 + digits] == '}') {
                        reader->output = stpcpy(reader->output, "{0");
                        reader->c++;
                        return 0;
                }
        }
        memcpy(reader->output, c, n);
        reader->output += n;
        reader->c += n;
        return 0;
}

/* Copies the pattern in the form that PCRE2 reads as Python does. Each element grows by at most
 * one byte. */
static int translate(const char *pattern, char ret[static 2 * REGEX_LENGTH_MAX + 1], Error *reterr)
{
        Reader reader = { .pattern = pattern, .c = pattern, .output = ret };

        if (strlen(pattern) > REGEX_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "longer than %d bytes", REGEX_LENGTH_MAX);
        while (*reader.c) {
                int r = read_one(&reader, reterr);

                if (r < 0)
                        return r;
        }
        *reader.output = '\0';
        return 0;
}

/* Compiles a pattern. -EINVAL with an error text, -ENOMEM. */
static int regex_new(Regex **ret, const char *pattern, Error *reterr)
{
        _cleanup_(regex_freep) Regex *regex = calloc(1, sizeof(Regex));
        char text[2 * REGEX_LENGTH_MAX + 1];
        PCRE2_UCHAR words[120] = "";
        PCRE2_SIZE place;
        int code, r;

        if (!regex)
                return error_oom(reterr);
        r = translate(pattern, text, reterr);
        if (r < 0)
                return r;
        regex->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                    PCRE2_ANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code,
                                    &place, NULL);
        if (!regex->code) {
                (void)pcre2_get_error_message(code, words, sizeof(words));
                return error_setf(reterr, EINVAL, "%s", (const char *)words);
        }
        regex->context = pcre2_match_context_create(NULL);
        if (!regex->context)
                return error_oom(reterr);
        pcre2_set_match_limit(regex->context, MATCH_LIMIT);
        pcre2_set_depth_limit(regex->context, DEPTH_LIMIT);
        pcre2_set_heap_limit(regex->context, HEAP_LIMIT_KIB);
        *ret = TAKE_PTR(regex);
        return 0;
}

/* Matches like Python's re.match(): at the start of the text, but not up to its end. Also
 * returns false if a limit is reached or memory is short. */
static bool regex_matches(const Regex *regex, const char *text)
{
        pcre2_match_data *data = pcre2_match_data_create(1, NULL);
        int r;

        if (!data)
                return false;
        r = pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, regex->context);
        pcre2_match_data_free(data);
        return r >= 0;
}

/* Matches every number. */
#define ANY (-1)
/* The classes of the library os-resource-classes. Another name becomes a custom class. */
#define STANDARD_CLASSES                                                                          \
        "VCPU", "MEMORY_MB", "DISK_GB", "PCI_DEVICE", "SRIOV_NET_VF", "NUMA_SOCKET", "NUMA_CORE", \
                "NUMA_THREAD", "NUMA_MEMORY_MB", "IPV4_ADDRESS", "VGPU", "VGPU_DISPLAY_HEAD",     \
                "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC", "PCPU",               \
                "MEM_ENCRYPTION_CONTEXT", "FPGA", "PGPU", "NET_PACKET_RATE_KILOPACKET_PER_SEC",   \
                "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC", "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC"

/* Traits that Nova sets on the providers of PCI devices. */
static const char managed_trait[] = "COMPUTE_MANAGED_PCI_DEVICE";
static const char live_migratable_trait[] = "HW_PCI_LIVE_MIGRATABLE";
static const char one_time_use_trait[] = "HW_PCI_ONE_TIME_USE";

typedef enum Part { PART_DOMAIN, PART_BUS, PART_SLOT, PART_FUNCTION, _PART_MAX } Part;

/* The parts of an address: name of the key, largest number, and place in "0000:41:00.0". */
static const struct {
        const char *name;
        uint32_t max;
        size_t offset, length; /* in "0000:41:00.0" */
} parts[_PART_MAX] = {
        [PART_DOMAIN] = { "domain", 0xffff, 0, 4 },
        [PART_BUS] = { "bus", 0xff, 5, 2 },
        [PART_SLOT] = { "slot", 0x1f, 8, 2 },
        [PART_FUNCTION] = { "function", 7, 11, 1 },
};

static PciSpec *pci_spec_free(PciSpec *spec)
{
        if (!spec)
                return NULL;
        for (Part part = 0; part < _PART_MAX; part++)
                regex_free(spec->parts[part].regex);
        free(spec->devname);
        free(spec->physical_network);
        free(spec->resource_class);
        string_set_done(&spec->traits);
        free(spec);
        return NULL;
}
DEFINE_CLEANUP(PciSpec *, pci_spec_free);

void pci_specs_done(PciSpecs *specs)
{
        for (size_t i = 0; i < specs->n_items; i++)
                pci_spec_free(specs->items[i]);
        free(specs->items);
        *specs = PCI_SPECS_INIT;
}

/* Numbers */

/* Parses a hexadecimal number with or without 0x. Spaces around it are ignored. "*" is ANY. what:
 * name of the value, with which an error begins. */
static int read_hex(const char *text, size_t n, const char *what, uint32_t max, int32_t *ret,
                    Error *reterr)
{
        char copy[16], *end;
        unsigned long value;

        while (n > 0 && isspace((unsigned char)text[0])) {
                text++;
                n--;
        }
        while (n > 0 && isspace((unsigned char)text[n - 1]))
                n--;
        if (n == 1 && text[0] == '*') {
                *ret = ANY;
                return 0;
        }
        if (n == 0 || n >= sizeof(copy) || !isxdigit((unsigned char)text[0]))
                return error_setf(reterr, EINVAL, "%s \"%.*s\" is not a hexadecimal number", what,
                                  (int)MIN(n, 40U), text);
        memcpy(copy, text, n);
        copy[n] = '\0';
        value = strtoul(copy, &end, 16);
        if (*end)
                return error_setf(reterr, EINVAL, "%s \"%s\" is not a hexadecimal number", what,
                                  copy);
        if (value > max)
                return error_setf(reterr, EINVAL, "%s %s is greater than %X", what, copy, max);
        *ret = (int32_t)value;
        return 0;
}

/* Texts of the JSON object */

/* Sets *ret to the borrowed string, or to NULL if the key is missing or null. Rejects other
 * types. */
static int read_text(const json_t *object, const char *key, const char **ret, Error *reterr)
{
        const json_t *value = json_object_get(object, key);

        *ret = NULL;
        if (!value || json_is_null(value))
                return 0;
        if (!json_is_string(value))
                return error_setf(reterr, EINVAL, "%s must be a string", key);
        *ret = json_string_value(value);
        return 0;
}

/* Copies the string; *ret stays as it is if the string is missing or empty. */
static int copy_text(const json_t *object, const char *key, char **ret, Error *reterr)
{
        const char *text;
        int r = read_text(object, key, &text, reterr);

        if (r < 0 || !text || !text[0])
                return r;
        *ret = strdup(text);
        return *ret ? 0 : error_oom(reterr);
}

/* Accepts the words of oslo.utils' strict booleans, JSON booleans, 0 and 1. *value stays as it is
 * if the key is missing or null. */
static int read_bool(const json_t *object, const char *key, bool *value, Error *reterr)
{
        static const char *const words[][6] = { { "0", "f", "false", "off", "n", "no" },
                                                { "1", "t", "true", "on", "y", "yes" } };
        const json_t *item = json_object_get(object, key);
        const char *text = json_string_value(item);

        if (!item || json_is_null(item))
                return 0;
        if (json_is_boolean(item)) {
                *value = json_is_true(item);
                return 0;
        }
        if (json_is_integer(item) &&
            (json_integer_value(item) == 0 || json_integer_value(item) == 1)) {
                *value = json_integer_value(item) == 1;
                return 0;
        }
        for (unsigned truth = 0; text && truth < 2; truth++)
                for (size_t i = 0; i < ARRAY_SIZE(words[truth]); i++)
                        if (strcasecmp(words[truth][i], text) == 0) {
                                *value = truth;
                                return 0;
                        }
        return error_setf(reterr, EINVAL, "%s: \"%.40s\" is neither true nor false", key,
                          text ? text : "?");
}

/* Address */

/* Parses "domain:bus:slot.function". A part before the dot that is missing on the left, blank, or
 * "*" matches every number. So does a function that is missing or "*". */
static int read_glob(const char *text, PciSpec *spec, Error *reterr)
{
        const char *dot = strchr(text, '.'), *end = dot ? dot : text + strlen(text);
        Part part = PART_SLOT;
        int r;

        if (dot && dot[1]) {
                r = read_hex(dot + 1, strlen(dot + 1), "address: function", 7,
                             &spec->parts[PART_FUNCTION].number, reterr);
                if (r < 0)
                        return r;
        }
        /* from the right: parts that are missing on the left stay ANY */
        while (end > text) {
                const char *colon = memrchr(text, ':', (size_t)(end - text));
                const char *begin = colon ? colon + 1 : text;
                bool blank = strspn(begin, " \t") >= (size_t)(end - begin);

                if (!blank) {
                        r = read_hex(begin, (size_t)(end - begin), parts[part].name,
                                     parts[part].max, &spec->parts[part].number, reterr);
                        if (r < 0)
                                return error_prefixf(reterr, r, "address");
                }
                if (!colon)
                        return 0;
                if (part == PART_DOMAIN)
                        return error_setf(reterr, EINVAL,
                                          "address \"%.40s\" has more than three colons", text);
                part--;
                end = colon;
        }
        return 0;
}

static bool is_hex_text(const char *text)
{
        return text[strspn(text, "0123456789abcdefABCDEF")] == '\0';
}

/* Parses the object of regular expressions. The spec is the address of one device (is_single) if
 * each expression is only hexadecimal digits, as many as its part of an address has. Nova joins
 * these texts to an address, and looks for its device in sysfs. */
static int read_regexes(const json_t *address, PciSpec *spec, Error *reterr)
{
        spec->is_single = true;
        for (Part part = 0; part < _PART_MAX; part++) {
                const char *text;
                int r = read_text(address, parts[part].name, &text, reterr);

                if (r == 0 && text && text[0])
                        r = regex_new(&spec->parts[part].regex, text, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "address: %s: \"%.40s\"", parts[part].name,
                                             text ? text : "");
                if (!text || strlen(text) != parts[part].length || !is_hex_text(text))
                        spec->is_single = false;
        }
        return 0;
}

/* Reads the address of a spec. Without one every number matches. Sets is_single. */
static int read_address(const json_t *object, PciSpec *spec, Error *reterr)
{
        const json_t *address = json_object_get(object, "address");
        int r;

        for (Part part = 0; part < _PART_MAX; part++)
                spec->parts[part].number = ANY;
        if (!address || json_is_null(address))
                return 0;
        if (spec->devname)
                return error_setf(reterr, EINVAL, "address and devname exclude each other");
        if (json_is_object(address))
                return read_regexes(address, spec, reterr);
        if (!json_is_string(address))
                return error_setf(reterr, EINVAL,
                                  "address must be a string, or an object of regular expressions");
        r = read_glob(json_string_value(address), spec, reterr);
        if (r < 0)
                return r;
        spec->is_single = true;
        for (Part part = 0; part < _PART_MAX; part++)
                if (spec->parts[part].number == ANY)
                        spec->is_single = false;
        return 0;
}

/* Compares the address in the form of pci_address_parse() with all four parts. */
static bool address_matches(const PciSpec *spec, const char *address)
{
        for (Part part = 0; part < _PART_MAX; part++) {
                const Regex *regex = spec->parts[part].regex;
                int32_t number = spec->parts[part].number;
                char text[8];

                memcpy(text, address + parts[part].offset, parts[part].length);
                text[parts[part].length] = '\0';
                if (regex && !regex_matches(regex, text))
                        return false;
                if (number != ANY && (unsigned long)number != strtoul(text, NULL, 16))
                        return false;
        }
        return true;
}

/* Names of resource classes and traits */

/* Writes "CUSTOM_" and the text in upper case. Each run of other characters than letters and
 * digits becomes one '_', as in os-traits and os-resource-classes. -EINVAL if the name is too
 * long. */
static int make_custom_name(const char *text, char ret[RESOURCE_CLASS_MAX + 1])
{
        static const char prefix[] = "CUSTOM_";
        size_t n = strlen(prefix);
        bool in_run = false;

        memcpy(ret, prefix, n);
        for (; *text; text++) {
                bool plain = isascii((unsigned char)*text) && isalnum((unsigned char)*text);

                if (!plain && in_run)
                        continue;
                if (n >= RESOURCE_CLASS_MAX)
                        return -EINVAL;
                ret[n++] = plain ? (char)toupper((unsigned char)*text) : '_';
                in_run = !plain;
        }
        ret[n] = '\0';
        return 0;
}

static int upper_name(const char *text, char ret[RESOURCE_CLASS_MAX + 1])
{
        size_t n = strlen(text);

        if (n > RESOURCE_CLASS_MAX)
                return -EINVAL;
        for (size_t i = 0; i <= n; i++)
                ret[i] = (char)toupper((unsigned char)text[i]);
        return 0;
}

static bool is_standard_class(const char *name)
{
        static const char *const classes[] = { STANDARD_CLASSES };

        for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
                if (strcmp(classes[i], name) == 0)
                        return true;
        return false;
}

/* Returns true for the name of a standard trait. Decides by the prefix, because the set of standard
 * traits depends on the release of Placement. */
static bool is_standard_trait(const char *name)
{
        static const char *const prefixes[] = { "HW_", "COMPUTE_", "STORAGE_", "MISC_", "OWNER_" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
                        return resource_class_valid(name);
        return false;
}

/* Makes a custom name, unless the text in upper case is one already. -EINVAL with an error text. */
static int make_name(const char *text, char ret[RESOURCE_CLASS_MAX + 1], Error *reterr)
{
        char name[RESOURCE_CLASS_MAX + 1];

        if (upper_name(text, name) < 0 ||
            (!resource_class_is_custom(name) && make_custom_name(text, name) < 0) ||
            !resource_class_valid(name))
                return error_setf(reterr, EINVAL, "\"%.60s\" cannot become a name in Placement",
                                  text);
        strcpy(ret, name);
        return 0;
}

static int read_resource_class(const json_t *object, PciSpec *spec, Error *reterr)
{
        char name[RESOURCE_CLASS_MAX + 1];
        const char *text;
        int r = read_text(object, "resource_class", &text, reterr);

        if (r < 0 || !text || !text[0])
                return r;
        if (upper_name(text, name) < 0 || !is_standard_class(name)) {
                r = make_name(text, name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "resource_class");
        }
        spec->resource_class = strdup(name);
        return spec->resource_class ? 0 : error_oom(reterr);
}

static int add_trait(PciSpec *spec, const char *text, Error *reterr)
{
        char name[RESOURCE_CLASS_MAX + 1];
        int r;

        if (!is_standard_trait(text)) {
                r = make_name(text, name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "traits");
                text = name;
        }
        return string_set_add(&spec->traits, text) < 0 ? error_oom(reterr) : 0;
}

/* Parses a list that is separated by commas. Spaces become part of a name, as in Nova. */
static int read_traits(const json_t *object, PciSpec *spec, Error *reterr)
{
        _cleanup_free_ char *copy = NULL;
        const char *text;
        char *rest, *item;
        int r = read_text(object, "traits", &text, reterr);

        if (r < 0 || !text || !text[0])
                return r;
        rest = copy = strdup(text);
        if (!copy)
                return error_oom(reterr);
        while ((item = strsep(&rest, ","))) {
                r = add_trait(spec, item, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Specs */

/* Parses a vendor or product id; ANY if it is missing. */
static int read_id(const json_t *object, const char *key, int32_t *ret, Error *reterr)
{
        const char *text;
        int r = read_text(object, key, &text, reterr);

        *ret = ANY;
        if (r < 0 || !text)
                return r;
        return read_hex(text, strlen(text), key, 0xffff, ret, reterr);
}

/* Reads all keys of a spec. Unknown keys are ignored. An error leaves a partial spec, which the
 * caller frees. */
static int read_spec(const json_t *object, PciSpec *spec, Error *reterr)
{
        int r;

        spec->managed = true;
        if ((r = read_id(object, "vendor_id", &spec->vendor_id, reterr)) < 0 ||
            (r = read_id(object, "product_id", &spec->product_id, reterr)) < 0 ||
            (r = copy_text(object, "devname", &spec->devname, reterr)) < 0 ||
            (r = read_address(object, spec, reterr)) < 0 ||
            (r = copy_text(object, "physical_network", &spec->physical_network, reterr)) < 0 ||
            (r = read_resource_class(object, spec, reterr)) < 0 ||
            (r = read_traits(object, spec, reterr)) < 0 ||
            (r = read_bool(object, "remote_managed", &spec->remote_managed, reterr)) < 0 ||
            (r = read_bool(object, "live_migratable", &spec->live_migratable, reterr)) < 0 ||
            (r = read_bool(object, "one_time_use", &spec->one_time_use, reterr)) < 0 ||
            (r = read_bool(object, "managed", &spec->managed, reterr)) < 0)
                return r;
        return 0;
}

static int add_spec(PciSpecs *specs, const json_t *object, Error *reterr)
{
        _cleanup_(pci_spec_freep) PciSpec *spec = NULL;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EINVAL, "a JSON object is expected ({…})");
        if (specs->n_items >= PCI_SPECS_MAX)
                return error_setf(reterr, EINVAL, "more than %d specs", PCI_SPECS_MAX);
        spec = calloc(1, sizeof(PciSpec));
        if (!spec ||
            array_grow(&specs->items, sizeof(PciSpec *), specs->n_items, &specs->n_allocated) < 0)
                return error_oom(reterr);
        r = read_spec(object, spec, reterr);
        if (r < 0)
                return r;
        specs->items[specs->n_items++] = TAKE_PTR(spec);
        return 0;
}

int pci_specs_add(PciSpecs *specs, const char *text, Error *reterr)
{
        _cleanup_json_ json_t *json = NULL;
        size_t n = strlen(text);
        int r;

        if (n > PCI_SPEC_TEXT_MAX)
                return error_setf(reterr, EINVAL, "longer than %d bytes", PCI_SPEC_TEXT_MAX);
        r = json_parse(text, n, &json, reterr);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_prefixf(reterr, -EINVAL, "not JSON");
        if (!json_is_array(json))
                return add_spec(specs, json, reterr);
        for (size_t i = 0; i < json_array_size(json); i++) {
                r = add_spec(specs, json_array_get(json, i), reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Checks the rules that depend on report_in_placement. */
int pci_specs_check(const PciSpecs *specs, bool report_in_placement, Error *reterr)
{
        for (size_t i = 0; i < specs->n_items; i++) {
                if (report_in_placement && specs->items[i]->devname)
                        return error_setf(
                                reterr, EINVAL,
                                "devname \"%.40s\": [pci] report_in_placement needs an address instead of a name",
                                specs->items[i]->devname);
                if (!report_in_placement && specs->items[i]->one_time_use)
                        return error_setf(reterr, EINVAL,
                                          "one_time_use needs [pci] report_in_placement = true");
        }
        return 0;
}

/* Matching */

/* Returns true if ids and address match. A spec with the address of one physical function also
 * matches its virtual functions. A spec with a devname matches nothing here, because device
 * names are not in the snapshot. */
static bool spec_matches(const PciSpec *spec, const SnapshotDevice *device)
{
        if (spec->devname)
                return false;
        /* The manager of such a function runs outside of this host, and identifies the function by
         * the serial number of its card. */
        if (spec->remote_managed && !device->has_card_serial)
                return false;
        if ((spec->vendor_id != ANY && (uint32_t)spec->vendor_id != device->vendor_id) ||
            (spec->product_id != ANY && (uint32_t)spec->product_id != device->product_id))
                return false;
        if (spec->is_single && device->physical_function[0] &&
            address_matches(spec, device->physical_function))
                return true;
        return address_matches(spec, device->address);
}

const PciSpec *pci_specs_find(const PciSpecs *specs, const SnapshotDevice *device)
{
        for (size_t i = 0; device->is_pci && i < specs->n_items; i++)
                if (spec_matches(specs->items[i], device))
                        return specs->items[i];
        return NULL;
}

void pci_spec_resource_class(const PciSpec *spec, const SnapshotDevice *device,
                             char ret[RESOURCE_CLASS_MAX + 1])
{
        if (spec->resource_class)
                strcpy(ret, spec->resource_class);
        else
                snprintf(ret, RESOURCE_CLASS_MAX + 1, "CUSTOM_PCI_%04X_%04X",
                         device->vendor_id & 0xffff, device->product_id & 0xffff);
}

int pci_spec_add_traits(const PciSpec *spec, StringSet *traits)
{
        for (size_t i = 0; i < spec->traits.n_items; i++)
                if (string_set_add(traits, spec->traits.items[i]) < 0)
                        return -ENOMEM;
        if (string_set_add(traits, managed_trait) < 0 ||
            (spec->live_migratable && string_set_add(traits, live_migratable_trait) < 0) ||
            (spec->one_time_use && string_set_add(traits, one_time_use_trait) < 0))
                return -ENOMEM;
        return 0;
}

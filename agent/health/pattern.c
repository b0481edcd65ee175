/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compiles and matches the patterns of health rules with PCRE2. A HealthPattern owns its code, the
 * limits of a match and the memory for the result of one match. PCRE2 itself can allocate up to
 * MATCH_HEAP_KIB during a match. From version 10.41 on, it keeps this memory until the pattern is
 * freed.
 *
 * Tests: tests/unit/agent/health/test-pattern.c */

#include "agent/health/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <string.h>

#define MATCH_STEPS_MAX 20000 /* steps of a match */
#define MATCH_DEPTH_MAX 250   /* depth of nested backtracking */
#define MATCH_HEAP_KIB  256

struct HealthPattern {
        pcre2_code *code;
        pcre2_match_context *context;
        pcre2_match_data *data;
        int address, nvme; /* numbers of the groups; below 0: none or several have the name */
};

HealthPattern *health_pattern_free(HealthPattern *pattern)
{
        if (!pattern)
                return NULL;
        pcre2_match_data_free(pattern->data);
        pcre2_match_context_free(pattern->context);
        pcre2_code_free(pattern->code);
        free(pattern);
        return NULL;
}

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

int health_pattern_new(HealthPattern **ret, const char *text, Error *reterr)
{
        _cleanup_(health_pattern_freep) HealthPattern *pattern = calloc(1, sizeof(HealthPattern));
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

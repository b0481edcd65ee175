/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Formats small texts for people: escaped names, cut and wrapped texts, times and amounts. Finds
 * the word that a mistyped one probably means. Pure, except for the time zone.
 *
 * ctl_text_escape() comes first: the functions that count or cut characters expect its result,
 * which is valid UTF-8 without control characters. Invariant: texts in a caller's buffer fit
 * CTL_TEXT_MAX bytes. Limit: each character counts as one column, also one of double width. */

#include "ctl/print/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define WORD_MAX 32 /* longest word of a table that is compared, in bytes; others are skipped */

/* Returns the code of a well-formed UTF-8 sequence of n bytes. */
static uint32_t decode_utf8(const char *text, size_t n)
{
        uint32_t code = n == 1 ? (unsigned char)text[0] : (unsigned char)text[0] & (0x7fU >> n);

        for (size_t i = 1; i < n; i++)
                code = code << 6 | ((unsigned char)text[i] & 0x3f);
        return code;
}

/* Checks whether a character can be printed: it is no control character, changes no direction of
 * writing and separates no lines. Without utf8 only ASCII can be printed. */
static bool code_is_harmless(uint32_t code, bool utf8)
{
        if (code < 0x20 || (code >= 0x7f && (!utf8 || code < 0xa0)))
                return false;
        /* These change the direction of writing, or separate lines. */
        return code != 0x200e && code != 0x200f && (code < 0x2028 || code > 0x202e) &&
               (code < 0x2066 || code > 0x2069) && code != 0x061c;
}

char *ctl_text_escape(const char *foreign, bool utf8)
{
        char *escaped = malloc(strlen(foreign) * 4 + 1), *end = escaped;

        if (!escaped)
                return NULL;
        while (*foreign) {
                size_t n = text_sequence_length(foreign);

                if (n > 0 && code_is_harmless(decode_utf8(foreign, n), utf8)) {
                        end = mempcpy(end, foreign, n);
                        foreign += n;
                        continue;
                }
                for (n = MAX(n, (size_t)1); n > 0; n--)
                        end += sprintf(end, "\\x%02x", (unsigned char)*foreign++);
        }
        *end = '\0';
        return escaped;
}

/* Returns the offset of the character with that number, from 0. */
static size_t find_character(const char *text, size_t number)
{
        size_t i = 0;

        while (text[i] && number > 0) {
                do
                        i++;
                while (((unsigned char)text[i] & 0xc0) == 0x80);
                number--;
        }
        return i;
}

char *ctl_text_cut(const char *text, size_t n, bool utf8)
{
        const char *mark = utf8 ? "…" : "~";
        size_t length = text_count_characters(text), head = (n - 1) / 3, tail = n - 1 - head;

        if (length <= n)
                return strdup(text);
        return text_format("%.*s%s%s", (int)find_character(text, head), text, mark,
                           text + find_character(text, length - tail));
}

void ctl_text_wrap(char *text, size_t n)
{
        char *blank = NULL, *line = text;

        for (char *c = text; *c; c++) {
                if (*c != ' ')
                        continue;
                *c = '\0';
                if (blank && text_count_characters(line) > n) {
                        *blank = '\n';
                        line = blank + 1;
                }
                *c = ' ';
                blank = c;
        }
        if (blank && text_count_characters(line) > n)
                *blank = '\n';
}

const char *ctl_text_time(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec)
{
        time_t seconds = (time_t)(realtime_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) ||
            strftime(buffer, CTL_TEXT_MAX, "%a %Y-%m-%d %H:%M:%S %Z", &tm) == 0)
                snprintf(buffer, CTL_TEXT_MAX, "@%" PRIu64, realtime_usec / USEC_PER_SEC);
        return buffer;
}

/* Writes "3min 20s": the largest unit and the rest in a smaller one, similar to systemctl. The
 * second unit is left out if it is 0 or the first one is large. */
static void format_span(char buffer[static CTL_TEXT_MAX], uint64_t seconds)
{
        static const struct {
                const char *name;
                uint64_t seconds;
                const char *small_name; /* the second unit; "" for none */
                uint64_t small_seconds;
                uint64_t small_below; /* from this number of the unit on, the second unit is left
                                         out */
        } units[] = {
                { " years", 365 * 86400, " months", 30 * 86400, 3 },
                { " months", 30 * 86400, " days", 86400, 3 },
                { " weeks", 7 * 86400, " days", 86400, 4 },
                { " days", 86400, "h", 3600, 2 },
                { "h", 3600, "min", 60, UINT64_MAX },
                { "min", 60, "s", 1, 5 },
                { "s", 1, "", 1, 0 },
        };
        size_t i = 0;
        uint64_t big, small;
        int n;

        while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
                i++;
        big = seconds / units[i].seconds;
        small = big < units[i].small_below ? seconds % units[i].seconds / units[i].small_seconds
                                           : 0;
        n = snprintf(buffer, CTL_TEXT_MAX, "%" PRIu64 "%s", big, units[i].name);
        if (big == 1 && units[i].name[0] == ' ')
                n--; /* "1 day": the plural's last letter is cut */
        if (small > 0)
                n += snprintf(buffer + n, CTL_TEXT_MAX - (size_t)n, " %" PRIu64 "%s", small,
                              units[i].small_name);
        if (small == 1 && units[i].small_name[0] == ' ')
                n--;
        buffer[n] = '\0';
}

const char *ctl_text_relative(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec,
                              uint64_t now_usec)
{
        bool past = realtime_usec <= now_usec;
        uint64_t seconds =
                (past ? now_usec - realtime_usec : realtime_usec - now_usec) / USEC_PER_SEC;

        if (seconds == 0)
                return strcpy(buffer, "now");
        format_span(buffer, seconds);
        return strcat(buffer, past ? " ago" : " left");
}

const char *ctl_text_kib(char buffer[static CTL_TEXT_MAX], uint64_t kib)
{
        static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
        double amount = (double)kib;
        size_t i = 0;

        while (amount >= 1024 && i + 1 < ARRAY_SIZE(units)) {
                amount /= 1024;
                i++;
        }
        snprintf(buffer, CTL_TEXT_MAX, "%.*f %s", amount == (double)(uint64_t)amount ? 0 : 1,
                 amount, units[i]);
        return buffer;
}

/* Returns the Levenshtein distance: the smallest number of bytes to change, add or remove. b has at
 * most WORD_MAX bytes. Only one row of the matrix is kept. */
static unsigned edit_distance(const char *a, const char *b)
{
        unsigned row[WORD_MAX + 1], n = (unsigned)strlen(b);

        for (unsigned j = 0; j <= n; j++)
                row[j] = j;
        for (unsigned i = 0; a[i]; i++) {
                unsigned diagonal = row[0];

                row[0] = i + 1;
                for (unsigned j = 1; j <= n; j++) {
                        unsigned change = diagonal + (a[i] != b[j - 1]);

                        diagonal = row[j];
                        row[j] = MIN(MIN(row[j], row[j - 1]) + 1, change);
                }
        }
        return row[n];
}

const char *ctl_text_nearest(const char *word, const char *const *table)
{
        size_t length = strnlen(word, WORD_MAX);
        const char *nearest = NULL;
        unsigned best = 3;

        for (; *table && length > 0 && length < WORD_MAX; table++) {
                unsigned distance;

                if (strlen(*table) > WORD_MAX)
                        continue;
                /* The begin of a word means that word. */
                distance = strncmp(word, *table, length) == 0 ? 0 : edit_distance(word, *table);
                if (distance < best && distance < length) {
                        best = distance;
                        nearest = *table;
                }
        }
        return nearest;
}

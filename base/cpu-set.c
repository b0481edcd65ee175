/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* CPU sets as bitmaps of 64-bit words. The array ends with the highest word that a set ever needed,
 * so two equal sets can have different lengths; word_at() reads missing words as zeros. A removal
 * never shrinks the array. A set has no CPU from CPU_SET_MAX on: an addition of it is rejected
 * without a change. The parser collects included and excluded CPUs separately and subtracts at the
 * end, so the order of the items in a text does not matter. An error of the text quotes up to 40
 * bytes of it, from the wrong item on. */

#include "base/cpu-set.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"

#define WORD_BITS 64

void cpu_set_done(CpuSet *set)
{
        free(set->words);
        *set = CPU_SET_INIT;
}

/* Lengthens the array to the word of the last CPU if it is shorter. A failure leaves the set as it
 * was. Sets whole words, because any user can name many long ranges in one request. */
int cpu_set_add_range(CpuSet *set, unsigned first, unsigned last)
{
        size_t end = last / WORD_BITS + 1;

        if (last >= CPU_SET_MAX)
                return -ERANGE;
        if (end > set->n_words) {
                uint64_t *grown = reallocarray(set->words, end, sizeof(uint64_t));

                if (!grown)
                        return -ENOMEM;
                memset(grown + set->n_words, 0, (end - set->n_words) * sizeof(uint64_t));
                set->words = grown;
                set->n_words = end;
        }
        for (size_t word = first / WORD_BITS; word < end; word++) {
                uint64_t bits = UINT64_MAX;

                if (word == first / WORD_BITS)
                        bits &= UINT64_MAX << first % WORD_BITS;
                if (word == end - 1)
                        bits &= UINT64_MAX >> (WORD_BITS - 1 - last % WORD_BITS);
                set->words[word] |= bits;
        }
        return 0;
}

int cpu_set_add(CpuSet *set, unsigned cpu)
{
        return cpu_set_add_range(set, cpu, cpu);
}

void cpu_set_remove(CpuSet *set, unsigned cpu)
{
        if (cpu / WORD_BITS < set->n_words)
                set->words[cpu / WORD_BITS] &= ~(UINT64_C(1) << (cpu % WORD_BITS));
}

bool cpu_set_contains(const CpuSet *set, unsigned cpu)
{
        return cpu / WORD_BITS < set->n_words &&
               (set->words[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1);
}

unsigned cpu_set_count(const CpuSet *set)
{
        unsigned count = 0;

        for (size_t i = 0; i < set->n_words; i++)
                count += (unsigned)__builtin_popcountll(set->words[i]);
        return count;
}

/* Returns a word of the set, and 0 beyond the end of the array. */
static uint64_t word_at(const CpuSet *set, size_t i)
{
        return i < set->n_words ? set->words[i] : 0;
}

bool cpu_set_equal(const CpuSet *a, const CpuSet *b)
{
        for (size_t i = 0; i < MAX(a->n_words, b->n_words); i++)
                if (word_at(a, i) != word_at(b, i))
                        return false;
        return true;
}

/* Compares only the words of set: the words that only "of" has do not matter. */
bool cpu_set_is_subset(const CpuSet *set, const CpuSet *of)
{
        for (size_t i = 0; i < set->n_words; i++)
                if (set->words[i] & ~word_at(of, i))
                        return false;
        return true;
}

unsigned cpu_set_count_common(const CpuSet *a, const CpuSet *b)
{
        unsigned count = 0;

        for (size_t i = 0; i < a->n_words; i++)
                count += (unsigned)__builtin_popcountll(a->words[i] & word_at(b, i));
        return count;
}

/* Clears the bits of CPUs below "from" in a copy of the word of "from". Skips empty words. */
unsigned cpu_set_next(const CpuSet *set, unsigned from)
{
        for (size_t i = from / WORD_BITS; i < set->n_words; i++) {
                uint64_t word = set->words[i];

                if (i == from / WORD_BITS)
                        word &= UINT64_MAX << from % WORD_BITS;
                if (word)
                        return (unsigned)(i * WORD_BITS) + (unsigned)__builtin_ctzll(word);
        }
        return CPU_SET_MAX;
}

/* Copies the words before it frees the old ones, so set and ret can be the same. */
int cpu_set_copy(CpuSet *ret, const CpuSet *set)
{
        uint64_t *words = NULL;

        if (set->n_words) {
                words = reallocarray(NULL, set->n_words, sizeof(uint64_t));
                if (!words)
                        return -ENOMEM;
                memcpy(words, set->words, set->n_words * sizeof(uint64_t));
        }
        free(ret->words);
        *ret = (CpuSet){ .words = words, .n_words = set->n_words };
        return 0;
}

static const char *skip_spaces(const char *text)
{
        while (isspace((unsigned char)*text))
                text++;
        return text;
}

/* Reads a number and moves *text behind it. Returns -EINVAL without a digit, or -ERANGE for a
 * number from CPU_SET_MAX on. cpu_set_parse() returns -EINVAL for both, with different words. */
static int parse_cpu(const char **text, unsigned *ret)
{
        const char *c = *text;
        unsigned value = 0;

        if (!isdigit((unsigned char)*c))
                return -EINVAL;
        for (; isdigit((unsigned char)*c); c++) {
                value = value * 10 + (unsigned)(*c - '0');
                if (value >= CPU_SET_MAX)
                        return -ERANGE;
        }
        *text = c;
        *ret = value;
        return 0;
}

/* Reads one item ("3", "0-3", "^3" or "^0-3") up to the comma or the end. CPUs behind "^" go to
 * exclude. *text moves only on success. */
static int parse_item(const char **text, CpuSet *include, CpuSet *exclude)
{
        const char *c = skip_spaces(*text);
        unsigned first, last;
        CpuSet *set = include;
        int r;

        if (*c == '^') {
                set = exclude;
                c = skip_spaces(c + 1);
        }
        r = parse_cpu(&c, &first);
        if (r < 0)
                return r;
        last = first;
        c = skip_spaces(c);
        if (*c == '-') {
                c = skip_spaces(c + 1);
                r = parse_cpu(&c, &last);
                if (r < 0)
                        return r;
                c = skip_spaces(c);
        }
        /* Text behind the item is an error, for example "3 4". */
        if (last < first || (*c && *c != ','))
                return -EINVAL;
        if (cpu_set_add_range(set, first, last) < 0)
                return -ENOMEM;
        *text = c;
        return 0;
}

/* Completes both sets before ret changes, so a failure leaves ret unchanged. */
int cpu_set_parse(const char *text, CpuSet *ret, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet include = CPU_SET_INIT;
        _cleanup_(cpu_set_done) CpuSet exclude = CPU_SET_INIT;

        for (const char *c = skip_spaces(text); *c; c = skip_spaces(c)) {
                const char *item = c;
                int r;

                if (*c == ',') {
                        c++;
                        continue;
                }
                r = parse_item(&c, &include, &exclude);
                if (r == -ENOMEM)
                        return error_oom(reterr);
                if (r == -ERANGE)
                        return error_setf(reterr, EINVAL, "CPU numbers must be below %d: \"%.40s\"",
                                          CPU_SET_MAX, item);
                if (r < 0)
                        return error_setf(reterr, EINVAL,
                                          "Not a list of CPUs (like 0-3,^2,8): \"%.40s\"", item);
        }
        CPU_SET_FOREACH(cpu, &exclude)
                cpu_set_remove(&include, cpu);
        cpu_set_done(ret);
        *ret = TAKE_STRUCT(include);
        return 0;
}

/* Writes a run of consecutive CPUs as a range. */
char *cpu_set_format(const CpuSet *set)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        bool comma = false;

        if (!stream)
                return NULL;
        CPU_SET_FOREACH(cpu, set) {
                unsigned first = cpu;

                while (cpu_set_contains(set, cpu + 1))
                        cpu++;
                fprintf(stream, first == cpu ? "%s%u" : "%s%u-%u", comma ? "," : "", first, cpu);
                comma = true;
        }
        return text_close(stream, &text);
}

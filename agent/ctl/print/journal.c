/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/journal.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
#include <time.h>

#include "agent/ctl/print/text.h"

#define INDENT 16 /* behind the time */

#define UNIT_MATCH "_SYSTEMD_UNIT=compute-agent.service"

static void journal_closep(sd_journal **journal)
{
        sd_journal_close(*journal);
}

/* 0: positioned at the first line to show; -ENODATA: there is none. */
static int find_lines(sd_journal *journal, unsigned n)
{
        char boot[sizeof("_BOOT_ID=") + SD_ID128_STRING_MAX] = "_BOOT_ID=";
        sd_id128_t id;
        int r;

        r = sd_id128_get_boot(&id);
        if (r < 0)
                return r;
        sd_id128_to_string(id, boot + strlen(boot));
        r = sd_journal_add_match(journal, UNIT_MATCH, 0);
        if (r < 0)
                return r;
        r = sd_journal_add_match(journal, boot, 0);
        if (r < 0)
                return r;
        r = sd_journal_seek_tail(journal);
        if (r < 0)
                return r;
        r = sd_journal_previous_skip(journal, n);
        return r < 0 ? r : r == 0 ? -ENODATA : 0;
}

static int print_line(sd_journal *journal, const CtlStyle *style, FILE *output)
{
        _cleanup_free_ char *text = NULL, *escaped = NULL;
        const void *data;
        char when[32];
        uint64_t usec;
        struct tm tm;
        size_t n;

        if (sd_journal_get_realtime_usec(journal, &usec) < 0 ||
            sd_journal_get_data(journal, "MESSAGE", &data, &n) < 0)
                return 0;
        text = strndup((const char *)data + strlen("MESSAGE="), n - strlen("MESSAGE="));
        if (!text)
                return -ENOMEM;
        escaped = ctl_text_escape(text, style->utf8);
        if (!escaped)
                return -ENOMEM;
        localtime_r(&(time_t){ (time_t)(usec / USEC_PER_SEC) }, &tm);
        strftime(when, sizeof(when), "%b %d %H:%M:%S", &tm);
        if (style->width > 2 * INDENT && !style->all)
                ctl_text_wrap(escaped, style->width - INDENT);
        fprintf(output, "%s ", when);
        ctl_style_write(style, CTL_PLAIN, escaped, INDENT, output);
        return 0;
}

int ctl_journal_print(unsigned n, const CtlStyle *style, FILE *output)
{
        _cleanup_(journal_closep) sd_journal *journal = NULL;
        int r;

        if (sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM) < 0 ||
            find_lines(journal, n) < 0)
                return 0;
        fputc('\n', output);
        do {
                r = print_line(journal, style, output);
                if (r < 0)
                        return r;
        } while (sd_journal_next(journal) > 0);
        return 0;
}

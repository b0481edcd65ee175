/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/journal.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
#include <time.h>

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

static void print_line(sd_journal *journal, CtlPage *page)
{
        const char *text;
        const void *data;
        char when[32];
        uint64_t usec;
        struct tm tm;
        size_t n;

        if (sd_journal_get_realtime_usec(journal, &usec) < 0 ||
            sd_journal_get_data(journal, "MESSAGE", &data, &n) < 0)
                return;
        text = (const char *)data + strlen("MESSAGE=");
        n -= strlen("MESSAGE=");
        localtime_r(&(time_t){ (time_t)(usec / USEC_PER_SEC) }, &tm);
        strftime(when, sizeof(when), "%b %d %H:%M:%S", &tm);
        fprintf(page->output, "%s ", when);
        if (!page->style.all) {
                ctl_page_rest(page, INDENT, CTL_PLAIN, "%.*s", (int)n, text);
                return;
        }
        ctl_page_write(page, CTL_PLAIN, "%.*s", (int)n, text);
        fputc('\n', page->output);
}

void ctl_journal_print(unsigned n, CtlPage *page)
{
        _cleanup_(journal_closep) sd_journal *journal = NULL;

        if (sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM) < 0 ||
            find_lines(journal, n) < 0)
                return;
        fputc('\n', page->output);
        do
                print_line(journal, page);
        while (sd_journal_next(journal) > 0);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/common.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "ctl/ask/bus.h"
#include "ctl/ask/helper.h"
#include "ctl/print/pager.h"
#include "ctl/print/status.h"
#include "ctl/verbs/consent.h"

int ctl_need_answer(int r)
{
        return r == CTL_BUS_E_NOT_RUNNING ? -ESRCH : r;
}

void ctl_fetch_snapshot(Ctl *ctl, Snapshot **ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &document, reterr);

        if (r == CTL_BUS_E_NOT_RUNNING)
                r = ctl_poll(ctl->options.config, NULL, &document, reterr);
        if (r == 0)
                (void)snapshot_from_json(document, ret, reterr);
}

const char *ctl_get_cloud(Ctl *ctl)
{
        const char *cloud = ctl->options.os_cloud ? ctl->options.os_cloud : getenv("OS_CLOUD");

        return cloud && cloud[0] ? cloud : NULL;
}

bool ctl_wants_json(Ctl *ctl)
{
        return ctl->options.json != CTL_JSON_OFF;
}

void ctl_print_json(Ctl *ctl, const json_t *document)
{
        ctl_json_print(document, ctl->options.json, &ctl->page);
}

void ctl_print_document(Ctl *ctl, const json_t *document, CtlPrint print)
{
        if (ctl_wants_json(ctl))
                ctl_print_json(ctl, document);
        else
                print(document, &ctl->page);
}

void ctl_print_done(Ctl *ctl, json_t *document, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        if (ctl_wants_json(ctl))
                ctl_print_json(ctl, document);
        else if (!ctl->options.quiet)
                vprintf(format, ap);
        va_end(ap);
        json_decref(document);
}

bool ctl_must_ask(const Ctl *ctl)
{
        return ctl_consent_is_needed(&ctl->options, isatty(STDIN_FILENO));
}

int ctl_ask(Ctl *ctl, const json_t *document, CtlPrint print, const char *question, Error *reterr)
{
        if (document && !ctl_wants_json(ctl) && !ctl->options.quiet) {
                print(document, &ctl->page);
                fputc('\n', ctl->page.output);
        }
        return ctl_consent_ask(question, reterr);
}

void ctl_note_old_spelling(const Ctl *ctl, const char *old, const char *now)
{
        if (!ctl->options.quiet)
                fprintf(stderr, "computectl: %s is now %s; the next release drops %s\n", old, now,
                        old);
}

void ctl_open_pager(Ctl *ctl)
{
        ctl->bus = sd_bus_flush_close_unref(ctl->bus);
        if (ctl->page.style.terminal && !ctl->options.no_pager)
                ctl->pager = ctl_pager_open();
}

static int open_bus(Ctl *ctl, Error *reterr)
{
        return ctl->bus ? CTL_BUS_DONE : ctl_bus_open(&ctl->bus, ctl->options.host, reterr);
}

int ctl_read_unit(Ctl *ctl, CtlUnit *ret)
{
        int r = open_bus(ctl, NULL);

        return r != CTL_BUS_DONE ? -ENOTCONN : ctl_unit_read(ctl->bus, ret);
}

int ctl_connect(Ctl *ctl, Error *reterr)
{
        return ctl_need_answer(open_bus(ctl, reterr));
}

int ctl_fetch(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr)
{
        int r = open_bus(ctl, reterr);

        return r != CTL_BUS_DONE ? r : ctl_bus_describe(ctl->bus, document, format, ret, reterr);
}

int ctl_need(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr)
{
        return ctl_need_answer(ctl_fetch(ctl, document, format, ret, reterr));
}

int ctl_need_text(Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        if (r == 0)
                r = ctl_bus_get_text(ctl->bus, method, timeout_usec, ret, reterr);
        return ctl_need_answer(r);
}

int ctl_need_result(Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                    json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_need_text(ctl, method, timeout_usec, &text, reterr);

        return r < 0 ? r : ctl_json_read_document(text, false, format, ret, reterr);
}

int ctl_fetch_status(Ctl *ctl, json_t **ret, Error *reterr)
{
        Error why = ERROR_NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_STATUS, STATUS_FORMAT, ret, &why);

        if (r < 0)
                return error_setf(reterr, r, "%s", why.text);
        if (r != CTL_BUS_DONE)
                *ret = ctl_status_make_not_running(why.text);
        return *ret ? 0 : error_oom(reterr);
}

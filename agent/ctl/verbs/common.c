/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/verbs/common.h"

#include <stdarg.h>

#include "agent/ctl/ask/bus.h"
#include "agent/ctl/ask/helper.h"
#include "agent/ctl/print/status.h"

int ctl_need_answer(int r)
{
        return r == CTL_BUS_E_NOT_RUNNING ? -ESRCH : r;
}

void ctl_fetch_snapshot(const Ctl *ctl, Snapshot **ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &document, reterr);

        if (r == CTL_BUS_E_NOT_RUNNING)
                r = ctl_poll(ctl->options.config, NULL, &document, reterr);
        if (r == 0)
                (void)snapshot_from_json(document, ret, reterr);
}

const char *ctl_get_cloud(const Ctl *ctl)
{
        const char *cloud = ctl->options.os_cloud ? ctl->options.os_cloud : getenv("OS_CLOUD");

        return cloud && cloud[0] ? cloud : NULL;
}

bool ctl_wants_json(const Ctl *ctl)
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

void ctl_open_pager(Ctl *ctl)
{
        if (ctl->page.style.terminal && !ctl->options.no_pager)
                ctl_pager_open(&ctl->pager);
}

int ctl_connect(const Ctl *ctl, sd_bus **ret, Error *reterr)
{
        return ctl_need_answer(ctl_bus_open(ret, ctl->options.host, reterr));
}

int ctl_fetch(const Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = ctl_bus_open(&bus, ctl->options.host, reterr);

        return r != CTL_BUS_DONE ? r : ctl_bus_describe(bus, document, format, ret, reterr);
}

int ctl_need(const Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr)
{
        return ctl_need_answer(ctl_fetch(ctl, document, format, ret, reterr));
}

int ctl_need_text(const Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret,
                  Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = ctl_connect(ctl, &bus, reterr);

        return r < 0 ? r
                     : ctl_need_answer(ctl_bus_get_text(bus, method, timeout_usec, ret, reterr));
}

int ctl_need_result(const Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                    json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_need_text(ctl, method, timeout_usec, &text, reterr);

        return r < 0 ? r : ctl_json_read_document(text, false, format, ret, reterr);
}

int ctl_fetch_status(const Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        Error why = ERROR_NULL;
        int r = ctl_bus_open(&bus, ctl->options.host, &why);

        if (r == CTL_BUS_DONE)
                r = ctl_bus_describe(bus, BUS_DOCUMENT_STATUS, STATUS_FORMAT, ret, &why);
        if (r < 0)
                return error_setf(reterr, r, "%s", why.text);
        if (r != CTL_BUS_DONE)
                *ret = ctl_status_make_not_running(why.text);
        return *ret ? 0 : error_oom(reterr);
}

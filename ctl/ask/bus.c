/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/bus.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ask/authorization.h"
#include "ctl/ask/progress-line.h"
#include "ctl/ask/unit.h"
#include "ctl/print/json.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define MANAGER_NAME "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"

static int open_local(sd_bus **ret, Error *reterr)
{
        int r = sd_bus_open_system_with_description(ret, "computectl");

        if (r >= 0) {
                if (ctl_authorization_may_ask())
                        ctl_authorization_allow(*ret);
                return CTL_BUS_DONE;
        }
        if (r == -ENOENT || r == -ECONNREFUSED) {
                error_setf(
                        reterr, r,
                        "The system bus is not there (%s), so compute-agent cannot be asked; is dbus running?",
                        strerror(-r));
                return CTL_BUS_E_NOT_RUNNING;
        }
        return error_setf(reterr, r, "The system bus cannot be used: %s", strerror(-r));
}

/* The bus is asked for our name on it, so that what keeps ssh from getting there is known here. */
static int open_remote(sd_bus **ret, const char *host, Error *reterr)
{
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        const char *name;
        int r = sd_bus_open_system_remote(&bus, host);

        if (r == -EINVAL)
                return error_setf(reterr, r, "--host: \"%.60s\" is not [USER@]HOST[:PORT]", host);
        if (r >= 0)
                r = sd_bus_get_unique_name(bus, &name);
        if (r < 0)
                return error_setf(
                        reterr, r,
                        "The bus of that host cannot be reached over ssh (%s); can you log in there, and is systemd-stdio-bridge installed?",
                        strerror(-r));
        *ret = TAKE_PTR(bus);
        return CTL_BUS_DONE;
}

int ctl_bus_open(sd_bus **ret, const char *host, Error *reterr)
{
        return host ? open_remote(ret, host, reterr) : open_local(ret, reterr);
}

/* Stores why there is no agent on the bus: systemd knows if the unit failed. */
static int explain_absence(sd_bus *bus, Error *reterr)
{
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };

        if (ctl_unit_read(bus, &unit) < 0 || !ctl_unit_explain(&unit, reterr))
                error_setf(
                        reterr, ESRCH,
                        "compute-agent is not running; start it with: systemctl start compute-agent");
        return CTL_BUS_E_NOT_RUNNING;
}

/* Stores the reason why a call failed. */
static int explain(sd_bus *bus, int r, const sd_bus_error *error, Error *reterr)
{
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN,
                                   SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return explain_absence(bus, reterr);
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_ACCESS_DENIED,
                                   SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return error_setf(reterr, EACCES, "You may not do this; try it as root");
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT))
                return error_setf(
                        reterr, ETIMEDOUT,
                        "compute-agent did not answer in time, or stopped while it was asked; see: journalctl -u compute-agent");
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_UNKNOWN_METHOD,
                                   SD_BUS_ERROR_UNKNOWN_INTERFACE, SD_BUS_ERROR_UNKNOWN_OBJECT))
                return error_setf(
                        reterr, EOPNOTSUPP,
                        "The compute-agent that runs does not know this request; is it of the same version as computectl?");
        if (sd_bus_error_has_name(error, BUS_ERROR_TOO_HARD))
                r = -E2BIG;
        if (error->message && error->message[0])
                return error_setf(reterr, r, "%s", error->message);
        return error_setf(reterr, r, "compute-agent cannot be asked: %s", strerror(-r));
}

static int malformed(int r, Error *reterr)
{
        return r == -ENOMEM
                       ? error_oom(reterr)
                       : error_setf(
                                 reterr, EBADMSG,
                                 "The answer of compute-agent cannot be read; is it of the same version as computectl?");
}

static int new_call(sd_bus *bus, const char *method, sd_bus_message **ret, Error *reterr)
{
        int r = sd_bus_message_new_method_call(bus, ret, BUS_NAME, BUS_PATH, BUS_INTERFACE, method);

        if (r < 0)
                return error_setf(reterr, r, "Cannot make a message: %s", strerror(-r));
        (void)sd_bus_message_set_auto_start(*ret, false);
        return 0;
}

static int call(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec, sd_bus_message **ret,
                Error *reterr)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call(bus, m, timeout_usec, &error, ret);

        return r < 0 ? explain(bus, r, &error, reterr) : CTL_BUS_DONE;
}

/* What appending to a message can fail with here: memory, or a text that is not UTF-8. */
static int append_failed(int r, Error *reterr)
{
        return r == -ENOMEM ? error_oom(reterr)
                            : error_setf(reterr, EINVAL, "An argument is not a UTF-8 text");
}

/* The arguments as sd_bus_message_append() takes them. */
static int call_with(sd_bus *bus, const char *method, uint64_t timeout_usec, sd_bus_message **ret,
                     Error *reterr, const char *types, ...)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list ap;
        int r = new_call(bus, method, &m, reterr);

        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(m, types, ap);
        va_end(ap);
        return r < 0 ? append_failed(r, reterr) : call(bus, m, timeout_usec, ret, reterr);
}

/* One that may take its time. */
static int call_long(sd_bus *bus, const char *method, uint64_t timeout_usec, sd_bus_message **ret,
                     Error *reterr)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = new_call(bus, method, &m, reterr);

        if (r < 0)
                return r;
        r = ctl_progress_call(bus, m, timeout_usec, &error, ret);
        return r < 0 ? explain(bus, r, &error, reterr) : CTL_BUS_DONE;
}

int ctl_bus_reload(sd_bus *bus, uint64_t timeout_usec, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        return call_long(bus, "Reload", timeout_usec, &reply, reterr);
}

static int read_text(sd_bus_message *reply, char **ret, Error *reterr)
{
        const char *text;
        int r = sd_bus_message_read(reply, "s", &text);

        if (r < 0)
                return malformed(r, reterr);
        *ret = strdup(text);
        return *ret ? CTL_BUS_DONE : error_oom(reterr);
}

/* format NULL: an array. */
static int read_document(sd_bus_message *reply, const char *format, json_t **ret, Error *reterr)
{
        const char *text;
        int r = sd_bus_message_read(reply, "s", &text);

        return r < 0 ? malformed(r, reterr)
                     : ctl_json_read_document(text, !format, format, ret, reterr);
}

int ctl_bus_get_text(sd_bus *bus, const char *method, uint64_t timeout_usec, char **ret,
                     Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_long(bus, method, timeout_usec, &reply, reterr);

        return r == CTL_BUS_DONE ? read_text(reply, ret, reterr) : r;
}

int ctl_bus_heal_consumer(sd_bus *bus, const char *consumer, uint64_t timeout_usec, char **ret,
                          Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_with(bus, "HealConsumer", timeout_usec, &reply, reterr, "s", consumer);

        return r == CTL_BUS_DONE ? read_text(reply, ret, reterr) : r;
}

int ctl_bus_describe(sd_bus *bus, const char *document, const char *format, json_t **ret,
                     Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_with(bus, "Describe", 0, &reply, reterr, "s", document);

        return r == CTL_BUS_DONE ? read_document(reply, format, ret, reterr) : r;
}

/* Each type of unit has an interface of its own: "…systemd1.Scope" of "a.scope". */
static int read_group(sd_bus *bus, const char *unit, const char *path, char **ret,
                      sd_bus_error *error)
{
        const char *type = strrchr(unit, '.') + 1;
        _cleanup_free_ char *interface =
                text_format(MANAGER_NAME ".%c%s", toupper((unsigned char)type[0]), type + 1);

        if (!interface)
                return -ENOMEM;
        return sd_bus_get_property_string(bus, MANAGER_NAME, path, interface, "ControlGroup", error,
                                          ret);
}

int ctl_bus_control_group(sd_bus *bus, const char *unit, char **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *name = text_format("%s%s", unit, strchr(unit, '.') ? "" : ".service");
        _cleanup_free_ char *group = NULL;
        const char *path;
        int r;

        if (!name)
                return error_oom(reterr);
        r = sd_bus_call_method(bus, MANAGER_NAME, MANAGER_PATH, MANAGER_NAME ".Manager", "GetUnit",
                               &error, &reply, "s", name);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0)
                r = read_group(bus, name, path, &group, &error);
        if (r < 0)
                return error_setf(reterr, r, "Cannot ask systemd about %.200s: %s", name,
                                  error.message ? error.message : strerror(-r));
        if (!group[0])
                return error_setf(reterr, ESRCH, "%.200s does not run", name);
        *ret = TAKE_PTR(group);
        return 0;
}

/* Claims. */

/* The consumer, if there is one, and what it asks for. */
static int call_request(sd_bus *bus, const char *method, const CtlClaim *claim,
                        sd_bus_message **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = new_call(bus, method, &m, reterr);

        if (r < 0)
                return r;
        r = claim->consumer ? sd_bus_message_append(m, "s", claim->consumer) : 0;
        if (r >= 0)
                r = ctl_message_append_request(m, claim);
        return r < 0 ? append_failed(r, reterr) : call(bus, m, 0, ret, reterr);
}

int ctl_bus_claim(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *text;
        int64_t id;
        int r = call_request(bus, "Claim", claim, &reply, reterr);

        if (r != CTL_BUS_DONE)
                return r;
        r = sd_bus_message_read(reply, BUS_CLAIM_OUT, &id, &text);
        return r < 0 ? malformed(r, reterr)
                     : ctl_json_read_document(text, false, CLAIM_FORMAT, ret, reterr);
}

int ctl_bus_explain(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_request(bus, "Explain", claim, &reply, reterr);

        return r == CTL_BUS_DONE ? read_document(reply, EXPLAIN_FORMAT, ret, reterr) : r;
}

int ctl_bus_cordon(sd_bus *bus, const char *method, const char *device, const char *reason,
                   uint64_t timeout_usec, char **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_with(bus, method, timeout_usec, &reply, reterr, reason ? "ss" : "s", device,
                          reason);

        return r == CTL_BUS_DONE ? read_text(reply, ret, reterr) : r;
}

int ctl_bus_guest(sd_bus *bus, const char *method, const char *argument, const char *argument2,
                  uint64_t timeout_usec, const char **ret_refused, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = new_call(bus, method, &m, reterr);

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, argument2 ? "ss" : "s", argument, argument2);
        if (r < 0)
                return append_failed(r, reterr);
        r = sd_bus_call(bus, m, timeout_usec, &error, &reply);
        if (r >= 0)
                return CTL_BUS_DONE;
        if (sd_bus_error_has_name(&error, BUS_ERROR_INVALID))
                *ret_refused = "the agent cannot read the domain of";
        else if (sd_bus_error_has_names(&error, BUS_ERROR_NO_CAPACITY, BUS_ERROR_UNKNOWN_CLASS,
                                        BUS_ERROR_CONFLICT))
                *ret_refused = "no room on this host for";
        return explain(bus, r, &error, reterr);
}

int ctl_bus_confirm(sd_bus *bus, int64_t id, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        return call_with(bus, "Confirm", 0, &reply, reterr, "x", id);
}

int ctl_bus_move_claim(sd_bus *bus, const char *from, const char *to, const char *consumer_type,
                       int64_t *ret_id, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_with(bus, "MoveClaim", 0, &reply, reterr, "sss", from, to,
                          consumer_type ? consumer_type : "");

        if (r != CTL_BUS_DONE)
                return r;
        r = sd_bus_message_read(reply, "x", ret_id);
        return r < 0 ? malformed(r, reterr) : CTL_BUS_DONE;
}

int ctl_bus_release(sd_bus *bus, int64_t id, const char *reason, bool allocations, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        return call_with(bus, allocations ? "ReleaseAllocations" : "Release", 0, &reply, reterr,
                         "xs", id, reason);
}

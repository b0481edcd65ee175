/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/polkit.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

#define ALLOW_USER_INTERACTION 1
/* A person may have to find the password. */
#define PATIENCE_USEC (5 * 60 * USEC_PER_SEC)

typedef struct Question {
        sd_bus_message *call;
        sd_bus_message_handler_t handler;
        void *userdata;
} Question;

static void question_free(void *data)
{
        Question *question = data;

        sd_bus_message_unref(question->call);
        free(question);
}

/* 1 when the caller needs nobody's leave. */
static int is_privileged(sd_bus_message *call)
{
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        uid_t uid;
        int r;

        r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);
        if (r < 0)
                return r;
        r = sd_bus_creds_get_euid(creds, &uid);
        if (r < 0)
                return r;
        return uid == 0 || uid == geteuid();
}

static int deny(sd_bus_error *error, bool challenge)
{
        if (challenge)
                return sd_bus_error_set(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                        "Interactive authentication is required");
        return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Access denied");
}

/* 1: allowed; a negative errno with error set: not. */
static int read_verdict(sd_bus_message *reply, sd_bus_error *error)
{
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        int allowed, challenge, r;

        if (failure) {
                log_debug("polkit does not answer: %s", failure->message ?: failure->name);
                return deny(error, false);
        }
        r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "bb", &allowed, &challenge);
        if (r < 0)
                return r;
        return allowed ? 1 : deny(error, challenge);
}

static int on_verdict(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Question *question = userdata;
        int r;

        r = read_verdict(reply, &error);
        if (r > 0)
                r = question->handler(question->call, question->userdata, &error);
        if (r < 0 || sd_bus_error_is_set(&error))
                (void)sd_bus_reply_method_errno(question->call, r, &error);
        return 0;
}

static int make_question(sd_bus_message *call, const char *action, sd_bus_message **ret)
{
        int interactive = sd_bus_message_get_allow_interactive_authorization(call);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(
                sd_bus_message_get_bus(call), &m, "org.freedesktop.PolicyKit1",
                "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority",
                "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(call), action, 0,
                                  interactive > 0 ? ALLOW_USER_INTERACTION : 0, "");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static int ask(sd_bus_message *call, const char *action, sd_bus_message_handler_t handler,
               void *userdata)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus_slot *slot;
        Question *question;
        int r;

        r = make_question(call, action, &m);
        if (r < 0)
                return r;
        question = calloc(1, sizeof(Question));
        if (!question)
                return -ENOMEM;
        *question = (Question){ sd_bus_message_ref(call), handler, userdata };
        r = sd_bus_call_async(sd_bus_message_get_bus(call), &slot, m, on_verdict, question,
                              PATIENCE_USEC);
        if (r < 0) {
                question_free(question);
                return r;
        }
        /* The question lives as long as the bus waits for its answer. */
        (void)sd_bus_slot_set_destroy_callback(slot, question_free);
        (void)sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        return 1;
}

int polkit_guard(sd_bus_message *call, const char *action, sd_bus_message_handler_t handler,
                 void *userdata, sd_bus_error *error)
{
        int r;

        r = is_privileged(call);
        if (r < 0)
                return r;
        return r > 0 ? handler(call, userdata, error) : ask(call, action, handler, userdata);
}

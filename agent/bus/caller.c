/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Identifies callers for the journal, and asks polkit for the rights of those whose user is known,
 * and is neither root nor the agent's own user. The list of a Polkit has one question for each call
 * that waits for polkit. A question owns a reference to its call until polkit has answered, the
 * question has failed, or it is dropped. If the agent's bus connection ends before, the call gets
 * no answer. dbus-daemon keeps a pending reply for each question, and limits their number. So the
 * number of questions is bounded, for each user and in total: a further call gets
 * LimitsExceeded. */

#include "agent/bus/caller.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-login.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "formats/interface.h"

#define AUTHORITY              "org.freedesktop.PolicyKit1"
#define AUTHORITY_PATH         "/org/freedesktop/PolicyKit1/Authority"
#define AUTHORITY_INTERFACE    "org.freedesktop.PolicyKit1.Authority"
#define ALLOW_USER_INTERACTION 1
#define CANCELLATION_ID_SIZE   32

/* Finds the name of a user. Reads only /etc/passwd, because a directory service could block the
 * main loop. */
static bool find_name(uid_t uid, char *text, size_t size)
{
        _cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
        const struct passwd *user;

        while (file && (user = fgetpwent(file)))
                if (user->pw_uid == uid) {
                        snprintf(text, size, "%s", user->pw_name);
                        return true;
                }
        return false;
}

/* Writes the command of the process and a separator, for example "computectl, ", or "" if it cannot
 * be read. A process can choose its name, so spaces, unprintable characters and the separators of
 * the journal text are replaced in it. */
static void find_command(pid_t pid, char *text, size_t size)
{
        char path[64], line[32] = "";
        _cleanup_fclose_ FILE *file = NULL;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        file = fopen(path, "re");
        text[0] = '\0';
        if (!file || !fgets(line, sizeof(line), file))
                return;
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c; c++)
                if (!isgraph((unsigned char)*c) || *c == ',' || *c == '(' || *c == ')')
                        *c = '?';
        snprintf(text, size, "%s, ", line);
}

void bus_caller_find(const BusGate *gate, sd_bus_message *call, BusCaller *ret)
{
        const BusSender *sender = bus_gate_get_sender(gate, call);
        _cleanup_free_ char *unit = NULL;
        char command[40];

        ret->author.uid = sender ? (int64_t)sender->uid : -1;
        if (!sender)
                snprintf(ret->name, sizeof(ret->name), "unknown caller");
        else if (!find_name(sender->uid, ret->name, sizeof(ret->name)))
                snprintf(ret->name, sizeof(ret->name), "uid %u", (unsigned)sender->uid);
        snprintf(ret->author.text, sizeof(ret->author.text), "%s", ret->name);
        if (!sender || sender->pid <= 0)
                return;
        find_command(sender->pid, command, sizeof(command));
        if (sd_pid_get_unit(sender->pid, &unit) < 0)
                unit = NULL;
        snprintf(ret->author.text, sizeof(ret->author.text), "%s (%spid %d%s%.60s)", ret->name,
                 command, (int)sender->pid, unit ? ", " : "", unit ? unit : "");
}

/* The rights of the caller */

typedef struct PolkitQuestion Question;
struct PolkitQuestion {
        uint64_t id;
        Polkit *polkit; /* borrowed */
        uid_t uid;
        sd_bus_slot *slot; /* its last reference ends the wait for polkit's reply */
        sd_bus_message *call;
        sd_bus_message_handler_t handler;
        void *userdata;
        LIST_ENTRY(PolkitQuestion) link;
};

static void question_free(Question *question)
{
        LIST_REMOVE(question, link);
        sd_bus_slot_unref(question->slot);
        sd_bus_message_unref(question->call);
        free(question);
}

/* Sets the bus error of a denied call. challenge: a password could grant the right, but polkit
 * could not ask for it. Returns a negative errno. */
static int deny(sd_bus_error *error, bool challenge)
{
        if (challenge)
                return sd_bus_error_set(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                        "Interactive authentication is required");
        return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Access denied");
}

/* Sets the bus error of a call without a verdict, which the caller can repeat. Warns once for each
 * POLKIT_PATIENCE_USEC, because a user can cause this too: the caller can leave the bus. Returns a
 * negative errno. */
static int postpone(Polkit *polkit, const char *reason, sd_bus_error *error)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (polkit->warned_usec == 0 || now - polkit->warned_usec >= POLKIT_PATIENCE_USEC) {
                polkit->warned_usec = now;
                log_warning("polkit does not decide on the rights of a caller: %s", reason);
        }
        return sd_bus_error_setf(error, BUS_ERROR_BUSY,
                                 "polkit does not decide on the rights of the caller: %s", reason);
}

/* Returns whether the failure means that this host has no polkit: nothing provides it, or its unit
 * is masked or missing. */
static bool lacks_polkit(const sd_bus_error *failure)
{
        return sd_bus_error_has_name(failure, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
               sd_bus_error_has_name(failure, "org.freedesktop.systemd1.UnitMasked") ||
               sd_bus_error_has_name(failure, "org.freedesktop.systemd1.NoSuchUnit");
}

/* Returns 1 if the call is allowed; else a negative errno with error set. Only a verdict of polkit,
 * or a host without polkit, is a denial. */
static int read_verdict(Polkit *polkit, sd_bus_message *reply, sd_bus_error *error)
{
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        int allowed, challenge, r;

        if (failure && lacks_polkit(failure))
                return deny(error, false);
        if (failure)
                return postpone(polkit, failure->message ?: failure->name, error);
        r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
        if (r > 0)
                r = sd_bus_message_read(reply, "bb", &allowed, &challenge);
        if (r <= 0)
                return postpone(polkit, "Unexpected reply", error);
        return allowed ? 1 : deny(error, challenge);
}

/* Writes the cancellation id, which names the question to polkit. */
static void format_id(const Question *question, char id[static CANCELLATION_ID_SIZE])
{
        snprintf(id, CANCELLATION_ID_SIZE, "compute-agent-%" PRIu64, question->id);
}

/* Withdraws a question without an answer. Otherwise polkit keeps it, and dbus-daemon keeps its
 * pending reply. */
static void withdraw(const Question *question)
{
        char id[CANCELLATION_ID_SIZE];

        format_id(question, id);
        (void)sd_bus_call_method_async(sd_bus_message_get_bus(question->call), NULL, AUTHORITY,
                                       AUTHORITY_PATH, AUTHORITY_INTERFACE,
                                       "CancelCheckAuthorization", NULL, NULL, "s", id);
}

/* Runs the handler if the call is allowed. Answers with its error, or with the refusal, and frees
 * the question. */
static int on_verdict(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        Question *question = userdata;
        int r;

        if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) ||
            sd_bus_message_is_method_error(reply, SD_BUS_ERROR_TIMEOUT))
                withdraw(question);
        r = read_verdict(question->polkit, reply, &error);
        if (r > 0)
                r = question->handler(question->call, question->userdata, &error);
        if (r < 0 || sd_bus_error_is_set(&error))
                (void)sd_bus_reply_method_errno(question->call, r, &error);
        question_free(question);
        return 0;
}

static Question *question_new(Polkit *polkit, sd_bus_message *call, uid_t uid,
                              sd_bus_message_handler_t handler, void *userdata)
{
        Question *question = calloc(1, sizeof(Question));

        if (!question)
                return NULL;
        *question = (Question){ .id = ++polkit->last_id,
                                .polkit = polkit,
                                .uid = uid,
                                .call = sd_bus_message_ref(call),
                                .handler = handler,
                                .userdata = userdata };
        LIST_INSERT_HEAD(&polkit->questions, question, link);
        return question;
}

/* Returns true if the user can have another open question. Otherwise bus_caller_guard() answers the
 * call with the error LimitsExceeded. */
static bool has_capacity(const Polkit *polkit, uid_t uid)
{
        size_t n = 0, n_of_user = 0;
        const Question *question;

        LIST_FOREACH(question, &polkit->questions, link) {
                n++;
                n_of_user += question->uid == uid;
        }
        return n < POLKIT_QUESTIONS_MAX && n_of_user < POLKIT_QUESTIONS_PER_USER;
}

/* Sends the question to polkit. Returns 1 if the answer will follow. After an error, the question
 * is freed. */
static int ask(Question *question, const char *action)
{
        int interactive = sd_bus_message_get_allow_interactive_authorization(question->call);
        sd_bus *bus = sd_bus_message_get_bus(question->call);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char id[CANCELLATION_ID_SIZE];
        int r = sd_bus_message_new_method_call(bus, &m, AUTHORITY, AUTHORITY_PATH,
                                               AUTHORITY_INTERFACE, "CheckAuthorization");

        format_id(question, id);
        if (r >= 0)
                r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                          sd_bus_message_get_sender(question->call), action, 0,
                                          interactive > 0 ? ALLOW_USER_INTERACTION : 0, id);
        if (r >= 0)
                r = sd_bus_call_async(bus, &question->slot, m, on_verdict, question,
                                      POLKIT_PATIENCE_USEC);
        if (r >= 0)
                return 1;
        question_free(question);
        return r;
}

int bus_caller_guard(Polkit *polkit, sd_bus_message *call, const char *action,
                     sd_bus_message_handler_t check, sd_bus_message_handler_t handler,
                     void *userdata, sd_bus_error *error)
{
        const BusSender *sender = bus_gate_get_sender(polkit->gate, call);
        Question *question;
        int r;

        if (!sender)
                return deny(error, false);
        if (sender->is_privileged)
                return handler(call, userdata, error);
        if (check) {
                r = check(call, userdata, error);
                if (r < 0)
                        return r;
                (void)sd_bus_message_rewind(call, true);
        }
        if (!has_capacity(polkit, sender->uid))
                return sd_bus_error_set(
                        error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "Too many requests of this user wait for polkit. Answer them or wait");
        question = question_new(polkit, call, sender->uid, handler, userdata);
        return question ? ask(question, action) : -ENOMEM;
}

void bus_caller_forget(Polkit *polkit)
{
        while (!LIST_EMPTY(&polkit->questions))
                question_free(LIST_FIRST(&polkit->questions));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Receives calls, holds them until their turn, and sends refusals late. A call that waits for its
 * turn is in the queue of exactly one sender, which owns one reference to the call. The serve
 * source is on while a call of a known user or a job waits, and after calls that sd-bus answers. It
 * has a lower priority than the bus, so it runs after all input is read; before that, only
 * serve_if_late() serves. Each run serves at most one call, or makes one step of a job (an answer
 * that is made in steps). Calls of root and of the agent's own user skip the queue once their user
 * is known. Answers count against their unprivileged user until the bus reports how many bytes are
 * unread, so no call of a user that does not read is served. Refusals are kept in a ring in the
 * order of their times, and a source of their own sends them. */

#include "agent/bus/gate.h"

#include <errno.h>
#include <string.h>

#include "agent/bus/ask.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"

/* Intervals of two checks: whether answers are written, and whether they are read. */
#define WRITING_USEC USEC_PER_MSEC
#define LOOK_USEC    (20 * USEC_PER_MSEC)
/* Connections of one user about which one ask_unread() asks. */
#define ASKED_AT_ONCE 32
/* Calls of a user that does not read for this long are dropped. A refusal to such a user is dropped
 * at this age. */
#define UNREAD_USEC (10 * USEC_PER_SEC)

#define REFUSALS_AT_ONCE 256 /* refusals in one run of their source; then other sources run */

/* The weight of an answer to Introspect. Unit: ordinary answers. */
#define ANSWERS_INTROSPECT 4

#define TOO_MANY                                                                          \
        "Too many calls of this user wait for replies. Wait for some of them, then call " \
        "again"

/* A late refusal. Only the answer is kept, because the arguments of the call can be large. */
typedef struct Refusal {
        sd_bus_message *answer;
        uint64_t due_usec;   /* CLOCK_MONOTONIC */
        uint64_t until_usec; /* CLOCK_MONOTONIC when a refusal to a caller that does not read is
                                dropped */
} Refusal;

struct BusGate {
        sd_event_source *refusal_source;
        Refusal refusals[BUS_REFUSALS_MAX]; /* a ring, the earliest first */
        size_t first_refusal, n_refusals;
        sd_event_source *serve_source;
        sd_bus_message_handler_t serve;
        bool (*is_long)(sd_bus_message *call);
        void *userdata;
        sd_bus *bus; /* NULL while there is none */
        sd_bus_slot *filter;
        BusCallQueue queue;
        TAILQ_HEAD(, BusJob) jobs; /* the first job makes the next step */
        bool step_was_last;        /* the last turn was a step, so a call is next */
        bool is_counted;           /* a question about all unread bytes is open */
        size_t n_looks;            /* counter; modulo the number of senders, the sender with which
                                      the next questions begin */
        unsigned n_direct;         /* unprivileged calls for sd-bus since all input was read */
        uint64_t read_usec;        /* CLOCK_MONOTONIC of the last call that was read */
        uint64_t served_usec;      /* CLOCK_MONOTONIC of the last turn, or of the last start or run
                                      of serve_source */
};

/* Size */

/* Subtracts the size of the arguments from *left, recursively for containers. Returns -EMSGSIZE if
 * they are larger, or another negative errno if they cannot be read. */
static int weigh(sd_bus_message *m, size_t *left)
{
        const char *contents;
        char type;
        int r;

        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                union {
                        uint64_t number;
                        const char *text;
                } value;
                size_t size = BUS_CALL_SIZE_OF_A_VALUE;

                if (strchr("arve", type)) {
                        if ((r = sd_bus_message_enter_container(m, type, contents)) < 0 ||
                            (r = weigh(m, left)) < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                                return r;
                } else if ((r = sd_bus_message_read_basic(m, type, &value)) < 0) {
                        return r;
                } else if (strchr("sog", type)) {
                        size += strlen(value.text);
                }
                if (size > *left)
                        return -EMSGSIZE;
                *left -= size;
        }
        return r;
}

/* Returns false if the arguments are larger than max. Reading stops there, and the message is
 * rewound. Arguments that cannot be read count as small. */
static bool weigh_call(sd_bus_message *call, size_t max, size_t *ret_size)
{
        size_t left = max;
        int r = weigh(call, &left);

        (void)sd_bus_message_rewind(call, true);
        *ret_size = max - left;
        return r != -EMSGSIZE;
}

/* Answering */

/* Answers a call that failed. Does nothing after success, because the handler has answered or will
 * answer. */
static void answer_failure(sd_bus_message *call, int r, const sd_bus_error *error)
{
        if (r < 0 || sd_bus_error_is_set(error))
                (void)sd_bus_reply_method_errno(call, r, error);
}

static void serve(BusGate *gate, sd_bus_message *call)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = gate->serve(call, gate->userdata, &error);

        answer_failure(call, r, &error);
}

/* Turns the serve source on. It runs when all pending input is read. */
static void arm(BusGate *gate)
{
        int enabled = SD_EVENT_OFF;

        (void)sd_event_source_get_enabled(gate->serve_source, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        gate->served_usec = clock_usec(CLOCK_MONOTONIC);
        (void)sd_event_source_set_time(gate->serve_source, 0);
        (void)sd_event_source_set_enabled(gate->serve_source, SD_EVENT_ONESHOT);
}

/* Unread answers */

/* Makes the serve source due now, also if it waits for the end of a pause. */
static void wake(BusGate *gate)
{
        arm(gate);
        (void)sd_event_source_set_time(gate->serve_source, 0);
}

/* Stops counting unread answers if the bus does not report them. dbus-broker does not, but it
 * disconnects clients that do not read. */
static void note_unread_counts(BusGate *gate, int result)
{
        if (gate->queue.no_unread_counts || (result != -EACCES && result != -ENOTSUP))
                return;
        gate->queue.no_unread_counts = true;
        if (result == -EACCES)
                log_warning(
                        "The bus policy hides the number of unread replies from the agent. A caller that reads nothing can block the agent. Install the policy of this version and reload the bus (\"systemctl reload dbus\").");
}

/* Lets the user's calls continue if the user reads its answers again. */
static void note_reading(BusGate *gate, const BusSender *sender)
{
        BusReading reading = bus_call_queue_reading(&gate->queue, sender);

        for (size_t i = 0; reading != BUS_READS_NOT && i < gate->queue.n_senders; i++)
                if (bus_call_queue_same_user(sender, gate->queue.senders[i]))
                        gate->queue.senders[i]->unread_since_usec = 0;
        if (reading == BUS_READS)
                wake(gate);
}

/* Stores the unread bytes of a connection, 0 after a failed question. The answers that were counted
 * when the question was sent count as part of these bytes, also if they are sent later, so they are
 * no longer counted. */
static void on_unread(const char *name, int result, uint64_t bytes, void *userdata)
{
        BusGate *gate = userdata;
        BusSender *sender = bus_call_queue_find(&gate->queue, name);

        note_unread_counts(gate, result);
        if (!sender)
                return;
        if (sender->is_counted) {
                sender->is_counted = false;
                sender->n_answers -= MIN(sender->n_answers, sender->n_counted);
                sender->unread = bytes;
        }
        note_reading(gate, sender);
}

/* Stores the unread bytes of everything that the agent sent, 0 after a failed question. */
static void on_sent(const char *name, int result, uint64_t bytes, void *userdata)
{
        BusGate *gate = userdata;

        note_unread_counts(gate, result);
        gate->queue.unread = bytes;
        gate->is_counted = false;
}

/* Asks about connections of the user that might have unread answers. Each call asks about
 * ASKED_AT_ONCE of them at most, and begins with another one. Also asks about all unread bytes,
 * unless that question is open. */
static void ask_unread(BusGate *gate, const BusSender *sender)
{
        size_t first = gate->n_looks++, n_asked = 0;
        const char *own;

        for (size_t i = 0; i < gate->queue.n_senders && n_asked < ASKED_AT_ONCE; i++) {
                BusSender *other = gate->queue.senders[(first + i) % gate->queue.n_senders];

                if (other->is_counted || !bus_call_queue_same_user(sender, other) ||
                    (other->n_answers == 0 && other->unread == 0))
                        continue;
                other->n_counted = other->n_answers;
                other->is_counted =
                        bus_ask(gate->bus, BUS_ASK_UNREAD, other->name, on_unread, gate) >= 0;
                n_asked++;
        }
        if (!gate->is_counted && sd_bus_get_unique_name(gate->bus, &own) >= 0)
                gate->is_counted = bus_ask(gate->bus, BUS_ASK_SENT, own, on_sent, gate) >= 0;
}

/* Counts answers to the sender, and asks the bus when it is time. */
static void note_answers(BusGate *gate, BusSender *sender, unsigned n)
{
        if (bus_call_queue_answered(&gate->queue, sender, n))
                ask_unread(gate, sender);
}

/* Counts the answer to a call. The answers of Describe() and Explain(), which can be large, count
 * as BUS_ANSWERS_MAX, so the bus is asked before the user gets another one. */
static void note_call(BusGate *gate, sd_bus_message *call)
{
        BusSender *sender = bus_call_queue_find(&gate->queue, sd_bus_message_get_sender(call));
        const char *member = sd_bus_message_get_member(call);
        bool is_large = strcmp(member, "Describe") == 0 || strcmp(member, "Explain") == 0;

        if (sender)
                (void)bus_call_queue_answered(&gate->queue, sender, is_large ? BUS_ANSWERS_MAX : 1);
}

/* Refusing late */

/* The ring of refusals must not be empty. */
static Refusal *first_refusal(BusGate *gate)
{
        return &gate->refusals[gate->first_refusal % BUS_REFUSALS_MAX];
}

static void append_refusal(BusGate *gate, const Refusal *refusal)
{
        gate->refusals[(gate->first_refusal + gate->n_refusals++) % BUS_REFUSALS_MAX] = *refusal;
}

static Refusal take_refusal(BusGate *gate)
{
        Refusal refusal = *first_refusal(gate);

        gate->first_refusal++;
        gate->n_refusals--;
        return refusal;
}

static void drop_refusal(BusGate *gate)
{
        sd_bus_message_unref(take_refusal(gate).answer);
}

/* Sends the first refusal. For a caller that does not read, the refusal goes back to the end of the
 * ring, and is dropped at the age UNREAD_USEC. Returns false, and keeps the refusal first, until
 * the bus has answered about unread bytes. */
static bool refuse_first(BusGate *gate, uint64_t now)
{
        sd_bus_message *answer = first_refusal(gate)->answer;
        BusSender *sender =
                bus_call_queue_find(&gate->queue, sd_bus_message_get_destination(answer));
        BusReading reading = sender ? bus_call_queue_reading(&gate->queue, sender) : BUS_READS;

        if (reading != BUS_READS)
                ask_unread(gate, sender);
        if (reading == BUS_READS_PERHAPS)
                return false;
        if (reading == BUS_READS_NOT && now < first_refusal(gate)->until_usec) {
                Refusal refusal = take_refusal(gate);

                refusal.due_usec = now + BUS_REFUSAL_USEC;
                append_refusal(gate, &refusal);
                return true;
        }
        if (reading == BUS_READS) {
                (void)sd_bus_send(NULL, answer, NULL);
                if (sender)
                        note_answers(gate, sender, 1);
        }
        drop_refusal(gate);
        return true;
}

/* Sends the refusals that are due, at most REFUSALS_AT_ONCE. */
static int on_refusal(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusGate *gate = userdata;
        uint64_t now = clock_usec(CLOCK_MONOTONIC), next = 0;
        unsigned n = 0;

        while (next == 0 && gate->n_refusals > 0 && first_refusal(gate)->due_usec <= now)
                if (!refuse_first(gate, now) || ++n == REFUSALS_AT_ONCE)
                        next = now + WRITING_USEC;
        if (gate->n_refusals == 0)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void)sd_event_source_set_time(source, next ? next : first_refusal(gate)->due_usec);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Queues a refusal. If the ring is full, the caller expects no reply, or memory is short, the call
 * gets no answer. */
static void refuse_late(BusGate *gate, sd_bus_message *call, const char *words)
{
        const sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_LIMITS_EXCEEDED, words);
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        Refusal refusal = { .due_usec = now + BUS_REFUSAL_USEC, .until_usec = now + UNREAD_USEC };

        if (sd_bus_message_get_expect_reply(call) <= 0 || gate->n_refusals >= BUS_REFUSALS_MAX ||
            sd_bus_message_new_method_error(call, &refusal.answer, &error) < 0)
                return;
        append_refusal(gate, &refusal);
        if (gate->n_refusals > 1)
                return;
        (void)sd_event_source_set_time(gate->refusal_source, refusal.due_usec);
        (void)sd_event_source_set_enabled(gate->refusal_source, SD_EVENT_ONESHOT);
}

/* Jobs */

static void drop_job(BusGate *gate, BusJob *job)
{
        TAILQ_REMOVE(&gate->jobs, job, link);
        sd_bus_message_unref(job->call);
        job->free(job);
}

/* Inserts the job at the head, so it makes the next step. */
void bus_gate_begin(BusGate *gate, BusJob *job)
{
        TAILQ_INSERT_HEAD(&gate->jobs, job, link);
        arm(gate);
}

/* Makes one step of the first job. A job with more to do goes to the end of the list. The answer
 * counts again when it is sent, because a report of the bus can have ended the first count. */
static void step(BusGate *gate)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        BusJob *job = TAILQ_FIRST(&gate->jobs);
        int r = job->step(job, &error);

        if (r > 0) {
                TAILQ_REMOVE(&gate->jobs, job, link);
                TAILQ_INSERT_TAIL(&gate->jobs, job, link);
                return;
        }
        answer_failure(job->call, r, &error);
        note_call(gate, job->call);
        drop_job(gate, job);
}

/* Serving in turn */

/* Serves one call or one step, alternately while there are both. While a job exists, no long call
 * of an unprivileged user begins. Returns false if there was nothing to do. */
static bool serve_next(BusGate *gate)
{
        bool has_job = !TAILQ_EMPTY(&gate->jobs);
        BusCall call;

        if (has_job && !gate->step_was_last) {
                gate->step_was_last = true;
                step(gate);
        } else if (bus_call_queue_next(&gate->queue, !has_job, &call)) {
                gate->step_was_last = false;
                note_call(gate, call.message);
                serve(gate, call.message);
                sd_bus_message_unref(call.message);
        } else if (has_job) {
                step(gate);
        } else {
                return false;
        }
        return true;
}

/* Returns true while answers wait in the output queue: later answers would wait behind them. */
static bool is_writing(const BusGate *gate)
{
        uint64_t n = 0;

        return gate->bus && sd_bus_get_n_queued_write(gate->bus, &n) >= 0 && n > 0;
}

/* Returns true if more calls are probably about to arrive. A refused user can have sent more than
 * the socket holds. The rest waits at dbus-daemon, and the calls of root wait behind it. */
static bool is_more_to_come(const BusGate *gate, uint64_t now)
{
        return gate->n_refusals > 0 && now - gate->read_usec < BUS_QUIET_USEC &&
               now - gate->served_usec < BUS_READING_USEC;
}

/* Drops the sender's waiting calls without an answer. */
static void drop_calls(BusSender *sender)
{
        while (sender->n_calls > 0)
                sd_bus_message_unref(sender->calls[--sender->n_calls].message);
}

/* Asks the bus about the users whose calls wait because of unread answers. Drops the calls of a
 * sender whose user counts as not reading for more than UNREAD_USEC. Returns false if no calls wait
 * for this reason. */
static bool ask_about_unread(BusGate *gate)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        bool any = false;

        for (size_t i = 0; i < gate->queue.n_senders; i++) {
                BusSender *sender = gate->queue.senders[i];
                BusReading reading;

                if (!sender->is_known || sender->n_calls == 0)
                        continue;
                reading = bus_call_queue_reading(&gate->queue, sender);
                if (reading == BUS_READS)
                        continue;
                if (reading == BUS_READS_NOT && sender->unread_since_usec == 0)
                        sender->unread_since_usec = now;
                if (reading == BUS_READS_NOT && now - sender->unread_since_usec > UNREAD_USEC) {
                        drop_calls(sender);
                        sender->unread_since_usec = 0;
                }
                ask_unread(gate, sender);
                any = true;
        }
        return any;
}

/* Serves one call or step and runs again until there is nothing to serve. Pauses while more input
 * is expected, while earlier answers are being written, and while only calls of users with unread
 * answers wait. */
static int on_serve(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusGate *gate = userdata;
        bool writing = is_writing(gate);
        uint64_t pause = writing ? WRITING_USEC : 0;

        if (is_more_to_come(gate, clock_usec(CLOCK_MONOTONIC))) {
                (void)sd_event_source_set_time(source, gate->read_usec + BUS_QUIET_USEC);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        gate->n_direct = 0;
        if (!writing && !serve_next(gate)) {
                if (!ask_about_unread(gate))
                        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
                pause = LOOK_USEC;
        }
        gate->served_usec = clock_usec(CLOCK_MONOTONIC);
        (void)sd_event_source_set_time(source, pause ? gate->served_usec + pause : 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Serves one call or step, or asks about unread answers, although input is left. Does nothing if
 * the last turn was less than BUS_READING_USEC ago, or while answers are being written. */
static void serve_if_late(BusGate *gate)
{
        if (clock_usec(CLOCK_MONOTONIC) - gate->served_usec < BUS_READING_USEC || is_writing(gate))
                return;
        gate->n_direct = 0;
        if (!serve_next(gate))
                (void)ask_about_unread(gate);
        gate->served_usec = clock_usec(CLOCK_MONOTONIC);
}

/* The user of a connection */

/* Serves all calls of a privileged sender that arrived before its user was known. */
static void serve_privileged(BusGate *gate, BusSender *sender)
{
        while (sender->n_calls > 0) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = sender->calls[0].message;

                array_close(sender->calls, sizeof(BusCall), &sender->n_calls, 0);
                serve(gate, call);
        }
}

/* Sets the user of the sender. The limits of a user are stricter than those of an unknown sender,
 * so calls over the limits are refused now. */
static void learn_user(BusGate *gate, BusSender *sender, uid_t uid)
{
        BusCall call;

        bus_call_queue_set_user(&gate->queue, sender, uid, uid == 0 || uid == geteuid());
        if (sender->is_privileged) {
                serve_privileged(gate, sender);
                return;
        }
        while (bus_call_queue_take_over(&gate->queue, sender, &call)) {
                refuse_late(gate, call.message, TOO_MANY);
                sd_bus_message_unref(call.message);
        }
        if (sender->n_calls > 0)
                arm(gate);
}

/* Handles the answer about the user. If there is no answer, for example because the connection is
 * gone, its calls are dropped. */
static void on_user(const char *name, int result, uint64_t user, void *userdata)
{
        BusGate *gate = userdata;
        BusSender *sender = bus_call_queue_find(&gate->queue, name);

        if (!sender)
                return;
        sender->is_asked = false;
        sender->pid = (pid_t)(user >> 32);
        if (result < 0)
                drop_calls(sender);
        else
                learn_user(gate, sender, (uid_t)user);
}

/* Asks for the user of the connection, unless it is known or that question is open. */
static int ask_user(BusGate *gate, BusSender *sender)
{
        int r = sender->is_known || sender->is_asked
                        ? 0
                        : bus_ask(gate->bus, BUS_ASK_USER, sender->name, on_user, gate);

        sender->is_asked = sender->is_asked || (r >= 0 && !sender->is_known);
        return r;
}

const BusSender *bus_gate_get_sender(const BusGate *gate, sd_bus_message *call)
{
        const char *name = sd_bus_message_get_sender(call);
        const BusSender *sender = name ? bus_call_queue_find(&gate->queue, name) : NULL;

        return sender && sender->is_known ? sender : NULL;
}

/* Receiving */

/* Returns the limit of the size of a call. It is larger for three methods of libvirt's hook from a
 * privileged or unknown user: the hook sends the XML of a domain over a new connection. */
static size_t find_size_max(const BusSender *sender, const char *member)
{
        bool of_guest = strcmp(member, "PrepareGuest") == 0 ||
                        strcmp(member, "GuestStarted") == 0 || strcmp(member, "GuestReleased") == 0;

        return of_guest && (sender->is_privileged || !sender->is_known) ? BUS_CALL_SIZE_OF_A_GUEST
                                                                        : BUS_CALL_SIZE_MAX;
}

/* Queues the call, or serves it at once if the sender is privileged. If no further call is within
 * the limits, the call is refused before it is weighed, because weighing is the expensive part.
 * Returns 0, -EBUSY or -EMSGSIZE for a refusal, or another negative errno. */
static int take_in(BusGate *gate, sd_bus_message *m, const char *name)
{
        const char *member = sd_bus_message_get_member(m);
        BusCall call = { .message = m };
        BusSender *sender;
        int r = bus_call_queue_sender(&gate->queue, name, &sender);

        if (r < 0 || (r = ask_user(gate, sender)) < 0)
                return r;
        if (!bus_call_queue_has_capacity(&gate->queue, sender, 0))
                return -EBUSY;
        if (!weigh_call(m, find_size_max(sender, member), &call.size))
                return -EMSGSIZE;
        if (sender->is_privileged) {
                serve(gate, m);
                return 0;
        }
        if (!bus_call_queue_has_capacity(&gate->queue, sender, call.size))
                return -EBUSY;
        call.is_long = gate->is_long(m);
        r = bus_call_queue_add(sender, &call);
        if (r < 0)
                return r;
        sd_bus_message_ref(m);
        if (sender->is_known)
                arm(gate);
        return 0;
}

/* Returns true for a call that sd-bus answers, at once and without a turn. */
static bool is_for_sd_bus(sd_bus_message *m)
{
        const char *interface = sd_bus_message_get_interface(m);

        return interface && (strcmp(interface, "org.freedesktop.DBus.Introspectable") == 0 ||
                             strcmp(interface, "org.freedesktop.DBus.Peer") == 0);
}

/* Limits the calls that sd-bus answers, except those of senders that are known to be privileged.
 * Until all input is read, at most BUS_CALLS_PER_USER of them are answered for all other senders
 * together. The call of a user is also refused while it does not read its answers, or while the bus
 * must be asked about that. Returns -EBUSY for a refusal. */
static int limit_sd_bus_call(BusGate *gate, sd_bus_message *m, const char *name)
{
        BusSender *sender;
        int r = bus_call_queue_sender(&gate->queue, name, &sender);

        if (r >= 0)
                r = ask_user(gate, sender);
        if (r < 0 || sender->is_privileged)
                return r;
        arm(gate);
        if (++gate->n_direct > BUS_CALLS_PER_USER ||
            bus_call_queue_reading(&gate->queue, sender) != BUS_READS)
                return -EBUSY;
        note_answers(gate, sender, ANSWERS_INTROSPECT);
        return 0;
}

/* The filter of the connection, which sees each call before sd-bus does. Returns 0 for messages
 * that sd-bus must handle, and nonzero for messages that the gate has handled. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
        BusGate *gate = userdata;
        const char *name = sd_bus_message_get_sender(m);
        bool direct;
        int r;

        if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0 || !name)
                return 0;
        gate->read_usec = clock_usec(CLOCK_MONOTONIC);
        direct = is_for_sd_bus(m);
        r = direct ? limit_sd_bus_call(gate, m, name) : take_in(gate, m, name);
        if (r == -EBUSY)
                refuse_late(gate, m, TOO_MANY);
        else if (r == -EMSGSIZE)
                refuse_late(gate, m, "The arguments are too large");
        else if (r < 0)
                (void)sd_bus_reply_method_errno(m, r, NULL);
        serve_if_late(gate);
        return r < 0 || !direct;
}

/* Creation and destruction */

int bus_gate_attach(BusGate *gate, sd_bus *bus)
{
        int r = sd_bus_add_filter(bus, &gate->filter, on_message, gate);

        if (r < 0)
                return r;
        gate->bus = bus;
        return 0;
}

void bus_gate_detach(BusGate *gate)
{
        for (size_t i = 0; i < gate->queue.n_senders; i++)
                drop_calls(gate->queue.senders[i]);
        while (gate->n_refusals > 0)
                drop_refusal(gate);
        bus_call_queue_done(&gate->queue); /* names are only unique on one connection */
        gate->is_counted = false;
        while (!TAILQ_EMPTY(&gate->jobs))
                drop_job(gate, TAILQ_FIRST(&gate->jobs));
        gate->filter = sd_bus_slot_unref(gate->filter);
        gate->bus = NULL;
}

int bus_gate_new(BusGate **ret, sd_event *event, sd_bus_message_handler_t serve_call,
                 bool (*is_long)(sd_bus_message *call), void *userdata)
{
        _cleanup_(bus_gate_freep) BusGate *gate = calloc(1, sizeof(BusGate));
        int r;

        if (!gate)
                return -ENOMEM;
        TAILQ_INIT(&gate->jobs);
        gate->serve = serve_call;
        gate->is_long = is_long;
        gate->userdata = userdata;
        r = sd_event_add_time(event, &gate->serve_source, CLOCK_MONOTONIC, 0, 1, on_serve, gate);
        if (r >= 0)
                r = sd_event_source_set_priority(gate->serve_source, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r >= 0)
                r = sd_event_add_time(event, &gate->refusal_source, CLOCK_MONOTONIC, 0,
                                      USEC_PER_MSEC, on_refusal, gate);
        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(gate->serve_source, SD_EVENT_OFF);
        (void)sd_event_source_set_enabled(gate->refusal_source, SD_EVENT_OFF);
        *ret = TAKE_PTR(gate);
        return 0;
}

BusGate *bus_gate_free(BusGate *gate)
{
        if (!gate)
                return NULL;
        bus_gate_detach(gate);
        sd_event_source_disable_unref(gate->serve_source);
        sd_event_source_disable_unref(gate->refusal_source);
        free(gate);
        return NULL;
}

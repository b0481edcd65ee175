/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A caller on the system bus that sends more calls than the agent should serve, for the tests and
 * for "make bench-bus".
 *
 *   bus-caller KIND N [SECONDS [wait|unread]]
 *
 * Sends N calls of a kind at once, over the number of connections that dbus-daemon requires. Until
 * the seconds are over, each answer is followed by a new call (0: no new ones). Then it waits for
 * the other answers and prints one line. The line has the numbers of answers, of errors
 * LimitsExceeded and of other errors, and the bytes of text in the answers. The longest time and
 * the 99th percentile in ms follow, and the name of the last error ("-": none).
 *
 * The name of a document is a kind: Describe() of it. "ask" is a Claim that allows polkit to ask
 * the user. "silent-polkit" is a polkit that never answers: it prints "ready" and runs until its
 * input ends. With "wait" it prints "ready" first and waits for a byte of input. With "unread" it
 * opens N connections, sends calls over all of them until the seconds are over, and reads no
 * answer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "formats/interface.h"

#define PATIENCE_USEC (120 * USEC_PER_SEC) /* time limit of a call */
#define LATENCIES_MAX 1000000              /* latencies; further ones are not recorded */
#define LARGE         (20 * 1024 * 1024)   /* argument of "large", in bytes */
#define PROPERTIES    "org.freedesktop.DBus.Properties"

typedef struct Caller Caller;
typedef int (*Fill)(sd_bus_message *m);

/* A kind of call. The first argument of the program selects it. */
typedef struct Kind {
        const char *name, *path, *interface, *member;
        Fill fill;            /* NULL: no arguments */
        const char *document; /* argument of Describe() */
} Kind;

/* dbus-daemon lets a connection wait for at most 128 answers. */
#define PER_CONNECTION 100

/* The state of one run. Times are CLOCK_MONOTONIC. */
struct Caller {
        sd_event *event;
        const Kind *kind;
        uint64_t end_usec;
        size_t n_pending, n_answered, n_refused, n_failed, bytes;
        double *latencies; /* times from a call to its answer, in ms */
        size_t n_latencies;
        char error[128];
};

/* A call without an answer; owned by its callback. */
typedef struct Pending {
        Caller *caller;
        sd_bus *bus;
        uint64_t begin_usec;
} Pending;

/* Arguments. */

static int fill_version(sd_bus_message *m)
{
        return sd_bus_message_append(m, "ss", BUS_INTERFACE, "Version");
}

static int fill_all(sd_bus_message *m)
{
        return sd_bus_message_append(m, "s", "");
}

static int fill_large(sd_bus_message *m)
{
        char *text;
        int r = sd_bus_message_append_string_space(m, LARGE, &text);

        if (r >= 0)
                memset(text, 'a', LARGE);
        return r;
}

static int fill_claim(sd_bus_message *m)
{
        const Uuid consumer = uuid_make_random();
        int r = sd_bus_message_set_allow_interactive_authorization(m, true);

        return r < 0 ? r
                     : sd_bus_message_append(m, BUS_CLAIM_IN, consumer.text, 1, "", 1, "VCPU",
                                             UINT64_C(1), 0, 0, 0);
}

static int fill_bad_claim(sd_bus_message *m)
{
        int r = sd_bus_message_set_allow_interactive_authorization(m, true);

        return r < 0 ? r : sd_bus_message_append(m, BUS_CLAIM_IN, "me", 0, 0);
}

static int fill_large_claim(sd_bus_message *m)
{
        const char *behind_consumer = &BUS_CLAIM_IN[1];
        int r = fill_large(m);

        return r < 0 ? r : sd_bus_message_append(m, behind_consumer, 0, 0);
}

/* Appends a request with n traits in descending order, so that each is inserted before all earlier
 * ones. */
static int fill_traits_of(sd_bus_message *m, unsigned n_traits)
{
        char trait[32];
        int r = sd_bus_message_open_container(m, 'a', "(sa{st}asas)");

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "sa{st}asas");
        if (r >= 0)
                r = sd_bus_message_append(m, "sa{st}", "", 1, "VCPU", UINT64_C(1));
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "s");
        for (unsigned i = n_traits; r >= 0 && i > 0; i--) {
                snprintf(trait, sizeof(trait), "CUSTOM_%08u", i);
                r = sd_bus_message_append(m, "s", trait);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_message_append(m, "as", 0);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_append(m, "a{sv}", 0);
}

static int fill_traits(sd_bus_message *m)
{
        return fill_traits_of(m, 1000000);
}

/* Appends a request that no fit can satisfy: 256 groups of one VGPU each, in one subtree
 * ("same-subtree"). The providers are siblings, and each has one device less than there are groups.
 * The search for it is the most expensive one. */
static int fill_hard(sd_bus_message *m)
{
        char suffix[8];
        int r = sd_bus_message_open_container(m, 'a', "(sa{st}asas)");

        for (unsigned i = 0; r >= 0 && i < 256; i++) {
                snprintf(suffix, sizeof(suffix), "_%03u", i);
                r = sd_bus_message_append(m, "(sa{st}asas)", suffix, 1, "VGPU", UINT64_C(1), 0, 0);
        }
        if (r < 0 || (r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "{sv}")) < 0 ||
            (r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
            (r = sd_bus_message_append(m, "s", "same-subtree")) < 0 ||
            (r = sd_bus_message_open_container(m, 'v', "aas")) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "as")) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "s")) < 0)
                return r;
        for (unsigned i = 0; r >= 0 && i < 256; i++) {
                snprintf(suffix, sizeof(suffix), "_%03u", i);
                r = sd_bus_message_append(m, "s", suffix);
        }
        for (unsigned i = 0; r >= 0 && i < 5; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* Appends the largest allowed request. Each provider has its class, so each of them rejects each
 * group with a reason. */
static int fill_wide(sd_bus_message *m)
{
        char suffix[8];
        int r = sd_bus_message_open_container(m, 'a', "(sa{st}asas)");

        for (unsigned i = 0; r >= 0 && i < 256; i++) {
                snprintf(suffix, sizeof(suffix), "_%03u", i);
                r = sd_bus_message_append(m, "(sa{st}asas)", suffix, 1, "VGPU", UINT64_C(1), 0, 4,
                                          "CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D");
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_append(m, "a{sv}", 0);
}

static int fill_level(sd_bus_message *m)
{
        return sd_bus_message_append(m, "ssv", "org.freedesktop.LogControl1", "LogLevel", "s",
                                     "debug");
}

#define INTROSPECTION "org.freedesktop.DBus.Introspectable"

static const Kind kinds[] = {
        { "status", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "status" },
        { "tree", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "tree" },
        { "host", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "host" },
        { "claims", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "claims" },
        { "history", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "history" },
        { "events", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "events" },
        { "problems", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "problems" },
        { "plan", BUS_PATH, BUS_INTERFACE, "Describe", NULL, "plan" },
        { "Explain-hard", BUS_PATH, BUS_INTERFACE, "Explain", fill_hard, NULL },
        { "Explain-wide", BUS_PATH, BUS_INTERFACE, "Explain", fill_wide, NULL },
        { "Explain-traits", BUS_PATH, BUS_INTERFACE, "Explain", fill_traits, NULL },
        { "Get", BUS_PATH, PROPERTIES, "Get", fill_version, NULL },
        { "GetAll", BUS_PATH, PROPERTIES, "GetAll", fill_all, NULL },
        { "Introspect", BUS_PATH, INTROSPECTION, "Introspect", NULL, NULL },
        { "nowhere", "/nowhere", BUS_INTERFACE, "Describe", NULL, "status" },
        { "Set", "/org/freedesktop/LogControl1", PROPERTIES, "Set", fill_level, NULL },
        { "large", BUS_PATH, BUS_INTERFACE, "Describe", fill_large, NULL },
        { "ask", BUS_PATH, BUS_INTERFACE, "Claim", fill_claim, NULL },
        { "ask-badly", BUS_PATH, BUS_INTERFACE, "Claim", fill_bad_claim, NULL },
        { "ask-large", BUS_PATH, BUS_INTERFACE, "Claim", fill_large_claim, NULL },
};

static int fill(const Kind *kind, sd_bus_message *m)
{
        return kind->fill       ? kind->fill(m)
               : kind->document ? sd_bus_message_append(m, "s", kind->document)
                                : 0;
}

/* Calls. */

static int send_one(Caller *caller, sd_bus *bus);

static void note_error(Caller *caller, const sd_bus_error *error)
{
        if (strcmp(error->name, SD_BUS_ERROR_LIMITS_EXCEEDED) == 0)
                caller->n_refused++;
        else
                caller->n_failed++;
        snprintf(caller->error, sizeof(caller->error), "%s", error->name);
}

/* Records an answer, and sends the next call or ends the loop. */
static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
        Pending *pending = userdata;
        Caller *caller = pending->caller;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        sd_bus *bus = pending->bus;
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        const char *text;

        caller->n_pending--;
        if (error) {
                note_error(caller, error);
        } else {
                caller->n_answered++;
                if (sd_bus_message_has_signature(reply, "s") &&
                    sd_bus_message_read(reply, "s", &text) > 0)
                        caller->bytes += strlen(text);
                if (caller->n_latencies < LATENCIES_MAX)
                        caller->latencies[caller->n_latencies++] =
                                (double)(now - pending->begin_usec) / 1e3;
        }
        free(pending);
        if (now < caller->end_usec)
                return send_one(caller, bus);
        return caller->n_pending == 0 ? sd_event_exit(caller->event, 0) : 0;
}

/* Sends one call. Its answer is handled by on_answer(). */
static int send_one(Caller *caller, sd_bus *bus)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const Kind *kind = caller->kind;
        Pending *pending = malloc(sizeof(Pending));
        int r;

        if (!pending)
                return -ENOMEM;
        r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, kind->path, kind->interface,
                                           kind->member);
        if (r >= 0)
                r = fill(kind, m);
        *pending = (Pending){ caller, bus, clock_usec(CLOCK_MONOTONIC) };
        if (r >= 0)
                r = sd_bus_call_async(bus, NULL, m, on_answer, pending, PATIENCE_USEC);
        if (r < 0) {
                free(pending);
                return r;
        }
        caller->n_pending++;
        return 0;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static void print_result(Caller *caller)
{
        double longest = 0, p99 = 0;

        if (caller->n_latencies > 0) {
                qsort(caller->latencies, caller->n_latencies, sizeof(double), compare);
                longest = caller->latencies[caller->n_latencies - 1];
                p99 = caller->latencies[(caller->n_latencies - 1) * 99 / 100];
        }
        printf("%zu %zu %zu %zu %.2f %.2f %s\n", caller->n_answered, caller->n_refused,
               caller->n_failed, caller->bytes, longest, p99, caller->error);
}

/* Opens the connections, sends n calls and runs until the last answer. */
static int run(Caller *caller, size_t n)
{
        sd_bus *buses[64] = { NULL };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n && i / PER_CONNECTION < ARRAY_SIZE(buses); i++) {
                sd_bus **bus = &buses[i / PER_CONNECTION];

                if (!*bus && (r = sd_bus_open_system(bus)) >= 0)
                        r = sd_bus_attach_event(*bus, caller->event, SD_EVENT_PRIORITY_NORMAL);
                if (r >= 0)
                        r = send_one(caller, *bus);
        }
        if (r >= 0)
                r = sd_event_loop(caller->event);
        for (size_t i = 0; i < ARRAY_SIZE(buses); i++)
                sd_bus_flush_close_unref(buses[i]);
        return r;
}

/* Calls on each connection before a pause. The agent queues this number of calls of one user
 * (BUS_CALLS_PER_USER) and rejects further ones. */
#define UNREAD_LOT        16
#define UNREAD_PAUSE_USEC 20000

/* Sends one call, and does not wait for its answer. Sends none if sd-bus could not yet write an
 * earlier call to the socket. */
static int send_unread(const Kind *kind, sd_bus *bus)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint64_t n_queued, cookie;
        int r = sd_bus_get_n_queued_write(bus, &n_queued);

        if (r < 0 || n_queued > 0)
                return r;
        r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, kind->path, kind->interface,
                                           kind->member);
        if (r >= 0)
                r = fill(kind, m);
        /* A call without a cookie would request no answer. */
        return r < 0 ? r : sd_bus_send(bus, m, &cookie);
}

/* Sends calls without reading their answers, and prints the number of calls. */
static int run_unread(const Caller *caller, size_t n)
{
        sd_bus *buses[256] = { NULL };
        size_t n_sent = 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < MIN(n, ARRAY_SIZE(buses)); i++) {
                r = sd_bus_open_system(&buses[i]);
                while (r >= 0 && sd_bus_is_ready(buses[i]) == 0)
                        r = sd_bus_process(buses[i], NULL) == 0 ? sd_bus_wait(buses[i], UINT64_MAX)
                                                                : 0;
        }
        while (r >= 0 && clock_usec(CLOCK_MONOTONIC) < caller->end_usec) {
                for (size_t i = 0; r >= 0 && i < n * UNREAD_LOT; i++, n_sent++)
                        r = send_unread(caller->kind, buses[i / UNREAD_LOT]);
                usleep(UNREAD_PAUSE_USEC);
        }
        for (size_t i = 0; i < ARRAY_SIZE(buses); i++)
                sd_bus_close_unref(buses[i]);
        printf("%zu\n", n_sent);
        return r;
}

/* Owns the name of polkit on the bus, and answers no call. */
static int stay_silent(void)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_open_system(&bus);

        if (r >= 0)
                r = sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0);

        if (r < 0)
                return r;
        puts("ready");
        fflush(stdout);
        /* Messages to this connection are never read. */
        while (getchar() != EOF)
                ;
        return 0;
}

int main(int argc, char *argv[])
{
        double seconds = argc > 3 ? atof(argv[3]) : 0;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_free_ double *latencies = calloc(LATENCIES_MAX, sizeof(double));
        Caller caller = { .latencies = latencies, .error = "-" };
        int r;

        if (argc < 3 || !latencies || sd_event_new(&event) < 0)
                return EXIT_FAILURE;
        if (strcmp(argv[1], "silent-polkit") == 0)
                return stay_silent() < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (strcmp(argv[1], kinds[i].name) == 0)
                        caller.kind = &kinds[i];
        if (!caller.kind)
                return EXIT_FAILURE;
        caller.event = event;
        if (argc > 4 && strcmp(argv[4], "wait") == 0) {
                puts("ready");
                fflush(stdout);
                (void)getchar();
        }
        caller.end_usec = clock_usec(CLOCK_MONOTONIC) + (uint64_t)(seconds * (double)USEC_PER_SEC);
        if (argc > 4 && strcmp(argv[4], "unread") == 0)
                return run_unread(&caller, MIN((size_t)atoi(argv[2]), (size_t)256)) < 0
                               ? EXIT_FAILURE
                               : EXIT_SUCCESS;
        r = run(&caller, (size_t)atoi(argv[2]));
        if (r < 0)
                fprintf(stderr, "bus-caller: %s\n", strerror(-r));
        print_result(&caller);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

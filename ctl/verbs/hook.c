/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs computectl as libvirt's hook (hook.h describes the calls of libvirt). One call asks the
 * agent for at most one step of one guest. "prepare" then asks again and again while the guest must
 * wait for its partition of devices.
 *
 * The main structure is Policy, the options of [hook]. Invariants: the input is read to its end,
 * also by a call that does nothing. Exceptions are an input that is too long or cannot be read,
 * short memory, and the alarm. Nothing is written to standard output. The process ends within the
 * time limit, which begins after the configuration was read. With a configuration that cannot be
 * read, the agent is asked for the policy, and the limit counts once for that call and once for the
 * step. The alarm enforces the limit, because the bus library can wait longer. Its handler exits
 * directly with the code of the policy, or with a failure while the guest waits for its partition.
 * Only "prepare" can stop a guest: if the agent rejects it, if it waits in vain for its partition,
 * or if the policy is "deny" and the step fails or gets no answer. Limit: a domain's XML of XML_MAX
 * bytes or more is an error; only XML_MAX bytes of it are read. */

#include "ctl/verbs/hook.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/uuid.h"
#include "config/config.h"
#include "ctl/ask/bus.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define XML_MAX (4 * 1024 * 1024) /* bytes; an input of this length or more is an error */

/* Time limit of a call that does not know [hook] timeout. Either the call does nothing, so it does
 * not read the configuration, or the configuration cannot be read. */
#define DEFAULT_TIMEOUT_USEC (10 * USEC_PER_SEC)

#define READY_POLL_USEC (200 * USEC_PER_MSEC)

typedef struct Policy {
        bool enabled, deny;
        uint64_t timeout_usec;
} Policy;

static const char too_late[] = "compute-agent did not answer in time\n";

CtlHookStep ctl_hook_step(const char *operation, const char *sub_operation)
{
        static const struct {
                const char *operation, *sub_operation;
                CtlHookStep step;
        } steps[] = {
                { "prepare", "begin", CTL_HOOK_PREPARE },
                { "started", "begin", CTL_HOOK_STARTED },
                { "release", "end", CTL_HOOK_RELEASE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
                if (strcmp(operation, steps[i].operation) == 0 &&
                    strcmp(sub_operation, steps[i].sub_operation) == 0)
                        return steps[i].step;
        return CTL_HOOK_NOTHING;
}

/* Finds the uuid of the domain, the first <uuid> of its XML. The metadata and the devices come
 * later in the XML, and can contain more elements of this name. */
bool ctl_hook_find_uuid(const char *xml, char ret[static 37])
{
        const char *begin = strstr(xml, "<uuid>");
        char text[37];
        Uuid uuid;

        if (!begin || strlen(begin + 6) < 36)
                return false;
        memcpy(text, begin + 6, 36);
        text[36] = '\0';
        if (uuid_from_text(text, &uuid) < 0)
                return false;
        strcpy(ret, uuid.text);
        return true;
}

/* Reads the input to its end, at most XML_MAX bytes. This is done also if the hook is not enabled,
 * because libvirt reports a hook that closes its input early. The caller frees the text. */
static int read_input(char **ret, Error *reterr)
{
        _cleanup_free_ char *text = malloc(XML_MAX + 1);
        size_t n = 0;

        if (!text)
                return error_oom(reterr);
        for (;;) {
                ssize_t r = read(STDIN_FILENO, text + n, XML_MAX - n);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return error_setf(reterr, errno, "Cannot read the domain's XML: %s",
                                          strerror(errno));
                if (r == 0)
                        break;
                n += (size_t)r;
                if (n == XML_MAX)
                        return error_setf(reterr, EFBIG, "The domain's XML is longer than %d bytes",
                                          XML_MAX);
        }
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

/* Handles the alarm for the policy "allow", and for steps that cannot stop the guest: ends the
 * process with success. Both handlers of the alarm call only async-signal-safe functions. */
static void on_too_late_allow(int number)
{
        (void)!write(STDERR_FILENO, too_late, sizeof(too_late) - 1);
        _exit(EXIT_SUCCESS);
}

/* Handles the alarm of "prepare" for the policy "deny", and while the guest waits for its
 * partition: ends the process with a failure, after which libvirt does not start the guest. */
static void on_too_late_deny(int number)
{
        (void)!write(STDERR_FILENO, too_late, sizeof(too_late) - 1);
        _exit(EXIT_FAILURE);
}

/* Checks whether a step without an answer stops the guest. */
static bool is_denied(const Policy *policy, CtlHookStep step)
{
        return step == CTL_HOOK_PREPARE && policy->deny;
}

/* Sets the handler of the alarm. */
static void set_reaction(bool denied)
{
        const struct sigaction action = {
                .sa_handler = denied ? on_too_late_deny : on_too_late_allow,
        };

        (void)sigaction(SIGALRM, &action, NULL);
}

/* Starts the alarm that ends the process at the time limit. Replaces an earlier alarm. */
static void bound_time(const Policy *policy, CtlHookStep step)
{
        set_reaction(is_denied(policy, step));
        (void)alarm((unsigned)(policy->timeout_usec / USEC_PER_SEC));
}

/* Calls the agent for a step: "prepare" with the domain's XML, the others with its uuid. Returns 1
 * after "prepare" if the guest is not ready. *ret_refused is set if the agent rejects the guest.
 * extra: the reason of libvirt, "-" for none. */
static int ask(const Policy *policy, CtlHookStep step, const char *xml, const char *extra,
               const char **ret_refused, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        uint64_t timeout_usec = policy->timeout_usec;
        char uuid[37], reason[128];
        int r = ctl_bus_open(&bus, NULL, reterr);

        if (r < 0)
                return r;
        if (step == CTL_HOOK_PREPARE)
                return ctl_bus_guest(bus, "PrepareGuest", xml, NULL, timeout_usec, ret_refused,
                                     reterr);
        if (!ctl_hook_find_uuid(xml, uuid))
                return error_setf(reterr, EBADMSG, "The domain's XML has no uuid");
        if (step == CTL_HOOK_CHECK || step == CTL_HOOK_STARTED)
                return ctl_bus_guest(bus, step == CTL_HOOK_CHECK ? "CheckGuest" : "GuestStarted",
                                     uuid, NULL, timeout_usec, ret_refused, reterr);
        snprintf(reason, sizeof(reason), "its guest stopped%s%.60s",
                 strcmp(extra, "-") == 0 ? "" : ": ", strcmp(extra, "-") == 0 ? "" : extra);
        return ctl_bus_guest(bus, "GuestReleased", uuid, reason, timeout_usec, ret_refused, reterr);
}

/* Writes the refusal to the journal, as the agent does for its own ones. Standard error belongs to
 * libvirt, so base/log.h is of no use here. Without a journal nothing is written. */
static void note_refused(const char *guest, const char *xml, const char *words)
{
        Error text = ERROR_NULL; /* without control characters */
        char uuid[37] = "";

        (void)ctl_hook_find_uuid(xml, uuid);
        (void)error_setf(&text, EPERM, "Guest %s cannot start: %s.", guest, words);
        (void)sd_journal_send("MESSAGE_ID=" MESSAGE_GUEST_REFUSED, "PRIORITY=%d", LOG_WARNING,
                              LOG_FIELD_CONSUMER "=%s", uuid, "MESSAGE=%s", text.text, NULL);
}

/* Asks again until the guest is ready or rejected, or until_usec (CLOCK_MONOTONIC) has passed. The
 * policy counts no more: the guest must not start without its partition. An agent that restarts
 * answers the next question. */
static int wait_until_ready(const Policy *policy, const char *guest, const char *xml,
                            uint64_t until_usec, const char **ret_refused, Error *reterr)
{
        int r;

        set_reaction(true);
        do {
                (void)usleep(READY_POLL_USEC);
                r = ask(policy, CTL_HOOK_CHECK, xml, "-", ret_refused, reterr);
        } while (r != 0 && !*ret_refused && clock_usec(CLOCK_MONOTONIC) < until_usec);
        if (r != 0 && !*ret_refused) {
                *ret_refused = "a device is not ready for guest";
                note_refused(guest, xml, error_text(reterr, r));
        }
        return r;
}

/* Returns the exit code after a failure. For "prepare" it prints the words, which libvirt shows to
 * the person who starts the guest. */
static int judge(const Policy *policy, CtlHookStep step, const char *refused, const char *guest,
                 const char *words)
{
        Error text = ERROR_NULL; /* without control characters */

        if (step != CTL_HOOK_PREPARE)
                return EXIT_SUCCESS; /* the guest runs or has ended already, so a failure must not
                                        disturb libvirt */
        if (refused) {
                (void)error_setf(&text, EPERM, "%s %s: %s", refused, guest, words);
                fprintf(stderr, "compute-agent: %s\n", text.text);
                return EXIT_FAILURE;
        }
        fprintf(stderr, "compute-agent: %s\n", words);
        return is_denied(policy, step) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Reads the policy from a running agent, which has read the configuration before it became
 * unreadable. */
static int ask_policy(Policy *policy, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *status = NULL;
        const char *word;
        int r = ctl_bus_open(&bus, NULL, reterr);

        if (r == 0)
                r = ctl_bus_describe(bus, BUS_DOCUMENT_STATUS, STATUS_FORMAT, &status, reterr);
        if (r == 0)
                r = json_read_string(status, "hook", &word, reterr);
        if (r < 0)
                return r;
        policy->enabled = word[0];
        policy->deny = strcmp(word, "deny") == 0;
        return 0;
}

/* Reads the policy from the configuration, else from the agent. Without both the hook counts as not
 * enabled. */
static void read_policy(const char *file, Policy *policy)
{
        _cleanup_(config_freep) Config *config = NULL;
        Error words = ERROR_NULL;
        int r = config_load_hook(&config, file, &words);

        *policy = (Policy){ .timeout_usec = DEFAULT_TIMEOUT_USEC };
        if (r >= 0) {
                *policy = (Policy){ .enabled = config->hook_enabled,
                                    .deny = config->hook_when_away == CONFIG_HOOK_DENY,
                                    .timeout_usec = config->hook_timeout_usec };
                return;
        }
        fprintf(stderr, "compute-agent: %s\n", error_text(&words, r));
        bound_time(policy, CTL_HOOK_NOTHING);
        r = ask_policy(policy, &words);
        if (r != 0)
                fprintf(stderr, "compute-agent: %s\n", error_text(&words, r));
}

static int verb_hook(Ctl *ctl, Error *reterr)
{
        const char *const *arguments = ctl->options.arguments + 1;
        CtlHookStep step = ctl_hook_step(arguments[1], arguments[2]);
        _cleanup_free_ char *xml = NULL;
        Error words = ERROR_NULL;
        const char *refused = NULL;
        Policy policy = { .timeout_usec = DEFAULT_TIMEOUT_USEC };
        uint64_t until_usec;
        bool wanted;
        int r;

        /* libvirt runs the hook about five times for each start. Most of these calls need no
         * configuration. */
        if (step != CTL_HOOK_NOTHING)
                read_policy(ctl->options.config, &policy);
        wanted = policy.enabled;
        bound_time(&policy, wanted ? step : CTL_HOOK_NOTHING);
        /* The questions about the partition end about 1 s before the alarm, or half of the limit
         * before it if that is less. So the last words of the agent can be printed. */
        until_usec = clock_usec(CLOCK_MONOTONIC) + policy.timeout_usec -
                     MIN(policy.timeout_usec / 2, USEC_PER_SEC);
        r = read_input(&xml, &words);
        if (!wanted)
                return EXIT_SUCCESS;
        if (r == 0)
                r = ask(&policy, step, xml, arguments[3], &refused, &words);
        if (r > 0)
                r = wait_until_ready(&policy, arguments[0], xml, until_usec, &refused, &words);
        return r == 0 ? EXIT_SUCCESS
                      : judge(&policy, step, refused, arguments[0], error_text(&words, r));
}

const CtlVerb ctl_hook_verbs[] = {
        { "hook", "GUEST OPERATION SUB-OPERATION EXTRA", "Run by libvirt as its hook", 4,
          CTL_VERB_CHANGES | CTL_VERB_HIDDEN, NULL, verb_hook, NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};

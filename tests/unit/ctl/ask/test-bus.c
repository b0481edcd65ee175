/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A child process is the other end of the connection. It answers each method in a fixed way. */

#include "ctl/ask/bus.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "formats/interface.h"
#include "tests/fixtures/ctl-capture.h"

static sd_bus *bus;
static pid_t server;

/* Replies with a document of the call's arguments, as sd-bus dumps them. */
static int reply_dump(sd_bus_message *m, const char *format, bool with_id)
{
        char *dump = NULL, *text;
        size_t size;
        FILE *stream = open_memstream(&dump, &size);
        json_t *document;
        int r;

        (void)sd_bus_message_dump(m, stream, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY);
        fclose(stream);
        document = json_pack("{ss ss}", "format", format, "dump", dump);
        text = json_dumps(document, 0);
        r = with_id ? sd_bus_reply_method_return(m, "xs", INT64_C(7), text)
                    : sd_bus_reply_method_return(m, "s", text);
        json_decref(document);
        free(text);
        free(dump);
        return r < 0 ? r : 1;
}

static int answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        static const struct {
                const char *member, *name, *message;
        } errors[] = {
                { "Absent", SD_BUS_ERROR_SERVICE_UNKNOWN, "x" },
                { "Denied", SD_BUS_ERROR_ACCESS_DENIED, "x" },
                { "Late", SD_BUS_ERROR_NO_REPLY, "x" },
                { "Unknown", SD_BUS_ERROR_UNKNOWN_METHOD, "x" },
                { "Hard", BUS_ERROR_TOO_HARD, "It is too hard" },
                { "Refused", BUS_ERROR_NO_CAPACITY, "VGPU: asks for 1" },
                { "Search", "System.Error.ESRCH", "No such thing" },
                { "Invalid", BUS_ERROR_INVALID, "no XML" },
        };
        const char *member = sd_bus_message_get_member(m);

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (sd_bus_message_is_method_call(m, NULL, errors[i].member))
                        return sd_bus_reply_method_errorf(m, errors[i].name, "%s",
                                                          errors[i].message);
        if (!member || !sd_bus_message_is_method_call(m, BUS_INTERFACE, NULL))
                return 0;
        if (strcmp(member, "Claim") == 0)
                return reply_dump(m, "compute-agent-claim/1", true);
        if (strcmp(member, "Explain") == 0)
                return reply_dump(m, "compute-agent-explain/1", false);
        if (strcmp(member, "MoveClaim") == 0)
                return sd_bus_reply_method_return(m, "x", INT64_C(9));
        if (strcmp(member, "Describe") == 0)
                return sd_bus_reply_method_return(m, "s", "{\"format\": \"a/1\"}");
        if (strcmp(member, "Empty") == 0)
                return sd_bus_reply_method_return(m, "");
        return sd_bus_reply_method_return(m, "s", member);
}

static _Noreturn void serve(int fd)
{
        sd_bus *end = NULL;
        sd_id128_t id;

        (void)sd_id128_randomize(&id);
        if (sd_bus_new(&end) < 0 || sd_bus_set_fd(end, fd, fd) < 0 ||
            sd_bus_set_server(end, true, id) < 0 || sd_bus_set_anonymous(end, true) < 0 ||
            sd_bus_add_filter(end, NULL, answer, NULL) < 0 || sd_bus_start(end) < 0)
                _exit(EXIT_FAILURE);
        for (;;) {
                int r = sd_bus_process(end, NULL);

                if (r < 0 || (r == 0 && sd_bus_wait(end, UINT64_MAX) < 0))
                        _exit(EXIT_SUCCESS);
        }
}

static int start(void **state)
{
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        server = fork();
        assert_true(server >= 0);
        if (server == 0) {
                close(fds[0]);
                serve(fds[1]);
        }
        close(fds[1]);
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
        assert_true(sd_bus_set_anonymous(bus, true) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        return 0;
}

static int stop(void **state)
{
        sd_bus_flush_close_unref(bus);
        (void)kill(server, SIGTERM);
        return waitpid(server, NULL, 0) == server ? 0 : -1;
}

static void test_errors_have_words(void **state)
{
        static const struct {
                const char *method;
                int r;
                const char *words;
        } cases[] = {
                { "Absent", CTL_NOT_RUNNING, "compute-agent is not running. Start it with" },
                { "Denied", -EACCES, "Permission denied. Run the command as root" },
                { "Late", -ETIMEDOUT, "did not answer in time" },
                { "Unknown", -EOPNOTSUPP, "does not support this request" },
                { "Hard", -E2BIG, "It is too hard" },
                { "Search", -EIO, "No such thing" }, /* the agent runs */
                { "Empty", -EBADMSG, "Cannot parse the reply" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(ctl_bus_call(bus, cases[i].method, 0, &text, &error, ""),
                                 cases[i].r);
                assert_contains(error.text, cases[i].words);
                assert_null(text);
        }
}

static void test_answers(void **state)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_done) json_t *document = NULL;
        Error error = ERROR_NULL;
        int64_t id = 0;

        assert_int_equal(ctl_bus_call(bus, "Sync", 0, &text, NULL, ""), 0);
        assert_string_equal(text, "Sync");
        assert_int_equal(ctl_bus_call(bus, "Empty", 0, NULL, NULL, "xs", INT64_C(7), "why"), 0);
        assert_int_equal(ctl_bus_call(bus, "Empty", 0, NULL, &error, "s", "\xff"), -EINVAL);
        assert_string_equal(error.text, "An argument is not valid UTF-8");
        assert_int_equal(ctl_bus_move_claim(bus, "a", "b", NULL, &id, NULL), 0);
        assert_int_equal(id, 9);
        assert_int_equal(ctl_bus_describe(bus, "x", "a/1", &document, NULL), 0);
        assert_int_equal(ctl_bus_describe(bus, "x", "b/1", &document, &error), -EBADMSG);
        assert_int_equal(ctl_bus_describe(bus, "x", NULL, &document, &error), -EBADMSG);
}

static void test_refused_guests(void **state)
{
        static const struct {
                const char *method, *refused;
        } cases[] = {
                { "Refused", "no capacity on this host for guest" },
                { "Invalid", "cannot read the domain of guest" },
                { "Denied", NULL },
        };
        const char *refused = NULL;

        assert_int_equal(ctl_bus_guest(bus, "Empty", "a", "b", 0, &refused, NULL), 0);
        assert_null(refused);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                refused = NULL;
                assert_true(ctl_bus_guest(bus, cases[i].method, "a", NULL, 0, &refused, NULL) < 0);
                assert_true(!refused == !cases[i].refused);
                if (refused)
                        assert_string_equal(refused, cases[i].refused);
        }
}

static json_t *request(const char *consumer, const ResourceRequest *resources)
{
        static const char *const cpus[] = { "0-1", NULL };
        static const uint64_t memory_mb[] = { 512 };
        const NumaOptions numa = { .nodes = 1,
                                   .cpus = cpus,
                                   .n_cpus = 1,
                                   .memory_mb = memory_mb,
                                   .n_memory = 1,
                                   .cpu_policy = "dedicated" };
        _cleanup_(request_mappings_done) RequestMappings mappings = { 0 };
        const CtlClaim claim = { .consumer = consumer,
                                 .project = "p1",
                                 .process = consumer ? 4711 : 0,
                                 .resize_target = consumer,
                                 .request = resources,
                                 .numa = &numa,
                                 .mappings = consumer ? &mappings : NULL };
        json_t *document = NULL;
        Uuid provider = { "12345678-1234-1234-1234-123456789abc" };
        Error error = ERROR_NULL;

        assert_int_equal(request_mappings_add(&mappings, "gpu", &provider), 0);
        if (ctl_bus_request(bus, &claim, &document, &error) < 0)
                fail_msg("%s", error.text);
        return document;
}

static void test_requests(void **state)
{
        static const char *const parts[] = {
                "STRING \"gpu\"",       "STRING \"VGPU\"",      "UINT64 1",
                "STRING \"HW_A\"",      "STRING \"numa-cpus\"", "STRING \"0-1\"",
                "STRING \"numa-mem\"",  "UINT64 512",           "STRING \"cpu-policy\"",
                "STRING \"dedicated\"", "STRING \"project\"",   "STRING \"isolate\""
        };
        static const char *const of_claims[] = { "STRING \"c1\"", "STRING \"process\"",
                                                 "UINT32 4711", "STRING \"resize-target\"",
                                                 "STRING \"mappings\"" };
        _cleanup_(resource_request_done) ResourceRequest resources = { .isolate = true };
        _cleanup_(json_done) json_t *claim = NULL, *explained = NULL;
        RequestGroup *group;

        assert_int_equal(resource_request_group(&resources, "gpu", &group, NULL), 0);
        assert_int_equal(resources_set(&group->resources, "VGPU", 1), 0);
        assert_true(string_set_add(&group->required, "HW_A") >= 0);
        claim = request("c1", &resources);
        explained = request(NULL, &resources);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                assert_contains(json_string_value(json_object_get(claim, "dump")), parts[i]);
                assert_contains(json_string_value(json_object_get(explained, "dump")), parts[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(of_claims); i++) {
                assert_contains(json_string_value(json_object_get(claim, "dump")), of_claims[i]);
                assert_lacks(json_string_value(json_object_get(explained, "dump")), of_claims[i]);
        }
}

static void test_lines_of_the_progress(void **state)
{
        static const struct {
                const char *kind;
                Progress progress;
                unsigned width;
                const char *line;
        } cases[] = {
                { "sync", { "polling", 0, 0 }, 80, "sync: polling" },
                { "sync", { "polling", 3, 0 }, 80, "sync: polling" },
                { "reshape",
                  { "gathering", 12, 40 },
                  46,
                  "reshape: gathering 12/40 [=====>             ]" },
                { "reshape",
                  { "gathering", 0, 40 },
                  45,
                  "reshape: gathering 0/40 [>                  ]" },
                { "reshape",
                  { "gathering", 40, 40 },
                  46,
                  "reshape: gathering 40/40 [===================]" },
                { "reshape", { "gathering", 41, 40 }, 46, "reshape: gathering" },
                { "reshape", { "gathering", 1, 4 }, 30, "reshape: gathering 1/4" },
                { "reshape", { "gathering", 12, 40 }, 12, "reshape: gat" },
                { "sync",
                  { "publishing", 1, 2 },
                  0,
                  "sync: publishing 1/2 [====================>                   ]" },
                { "sync",
                  { "publishing", UINT64_MAX, UINT64_MAX },
                  40,
                  "sync: publishing 18446744073709551615/18" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const CtlStyle style = { .width = cases[i].width };
                char line[512];

                ctl_bus_format_progress(cases[i].kind, &cases[i].progress, &style, line,
                                        sizeof(line));
                assert_string_equal(line, cases[i].line);
                if (cases[i].width > 0)
                        assert_true(strlen(line) <= cases[i].width);
        }
}

static void test_progress_in_a_small_buffer(void **state)
{
        const CtlStyle style = { .width = 200 };
        const Progress progress = { "gathering", 1, 2 };
        char line[16];

        ctl_bus_format_progress("reshape", &progress, &style, line, sizeof(line));
        assert_string_equal(line, "reshape: gather");
}

TEST_MAIN_WITH(start, stop, test_errors_have_words, test_answers, test_refused_guests,
               test_requests, test_lines_of_the_progress, test_progress_in_a_small_buffer)

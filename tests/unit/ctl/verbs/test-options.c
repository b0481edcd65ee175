/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/options.h"

#include "base/text.h"
#include "ctl/verbs/help.h"
#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/scratch-folder.h"

#define WORDS_MAX 12
#define CONSUMER  "11111111-2222-4333-8444-555555555555"

/* Parses the words of a command line, as main() does before a verb runs. */
static int parse(const char *const *words, CtlOptions *options, const CtlVerb **verb, Error *error)
{
        static char program[] = "computectl";
        static char *argv[WORDS_MAX + 2]; /* the options point to it */
        int argc = 1, r;

        memset(argv, 0, sizeof(argv));
        argv[0] = program;
        while (words[argc - 1]) {
                argv[argc] = (char *)words[argc - 1];
                argc++;
        }
        r = ctl_options_parse(argc, argv, options, error);
        return r < 0 || options->help || options->version ? r : ctl_verb_find(options, verb, error);
}

static const struct {
        const char *words[WORDS_MAX];
        const char *verb;  /* NULL: rejected */
        const char *error; /* part of its words */
} usage_cases[] = {
        { { "status" }, "status", NULL },
        { { "-a", "tree", "--no-pager" }, "tree", NULL },
        { { "tree", "--json=short" }, "tree", NULL },
        { { "tree", "--json", "pretty" }, "tree", NULL },
        { { "tree", "--json", "--no-pager" }, "tree", NULL },
        { { "--json", "short", "tree" }, "tree", NULL },
        { { "--json", "tree" }, "tree", NULL },
        { { "claims", "--history" }, "claims", NULL },
        { { "claims", "--state", "confirmed", "--since=-2h", "--guest", "web" }, "claims", NULL },
        { { "claims", "--state=cordoned" }, NULL, "--state must be one of pending, claimed" },
        { { "history", "--state=cordoned", "--device=gpu" }, "history", NULL },
        { { "history", "--since=soon" }, NULL, "--since: \"soon\" is not a time" },
        { { "doctor", "--config-only", "--hardware-only" }, NULL, "not both" },
        { { "doctor", "--config-only" }, "doctor", NULL },
        { { "claims", "--columns=ID,STATE" }, "claims", NULL },
        { { "status", "--columns=ID" }, NULL, "--columns is only an option of" },
        { { "release", "7", "--reason", "because" }, "release", NULL },
        { { "confirm", "7" }, "confirm", NULL },
        { { "release", "7", "8", "9" }, "release", NULL },
        { { "release", "7", "x" }, NULL, "\"x\" is not the number of a claim" },
        { { "drain" }, "drain", NULL },
        { { "drain", "pci_0000_41_00_0" }, "drain", NULL },
        { { "drain", "" }, NULL, "drain: an argument is empty" },
        { { "cordon", "" }, NULL, "cordon: an argument is empty" },
        { { "who", "" }, NULL, "who: an argument is empty" },
        { { "drain", "a", "b" }, NULL, "drain: unexpected argument \"b\"" },
        { { "history" }, "history", NULL },
        { { "history", "7", "8" }, NULL, "history: unexpected argument \"8\"" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=2" }, "claim", NULL },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=2", "--xml" }, "claim", NULL },
        { { "show", "7", "--xml" }, "show", NULL },
        { { "show", "7", "--xml", "--json" }, NULL, "show: --json or --xml, not both" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=2", "--xml", "--json=short" },
          NULL,
          "claim: --json or --xml, not both" },
        { { "who", "0000:41:00.0" }, "who", NULL },
        { { "explain", "--resources", "VCPU=2", "--isolate" }, "explain", NULL },
        { { "explain", "--resources", "vcpu=1" }, NULL, "--resources" },
        { { "explain", "--group", "VGPU=1" }, NULL, "\"VGPU=1\" is not a group" },
        { { "explain", "--required", "CUSTOM_A" }, NULL, "has no resources" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=1", "--numa-nodes", "x" },
          NULL,
          "--numa-nodes: \"x\" is not a number of cells" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=1", "--mapping", "g=a" },
          NULL,
          "--mapping: the request has no group \"g\"" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=1", "--pid-file", "f" },
          "claim",
          NULL },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=1", "--pid-file", "f", "--unit",
            "u" },
          NULL,
          "--pid-file and --unit exclude each other" },
        { { "claim", "--consumer", CONSUMER, "--resources", "VCPU=1", "--pid-file", "f", "-H",
            "h" },
          NULL,
          "--pid-file needs a file of this host" },
        { { "sync" }, "sync", NULL },
        { { "sync", "--timeout", "5" }, "sync", NULL },
        { { "sync", "--timeout", "0" }, NULL, "--timeout must be 1 to 86400 seconds, not \"0\"" },
        { { "sync", "--timeout", "5s" }, NULL, "--timeout must be 1 to 86400 seconds" },
        { { "claims", "--problems" }, "claims", NULL },
        { { "claims", "--problems", "--guest=a" }, NULL, "claims: --problems excludes" },
        { { "claims", "--problems", "--device=a" }, NULL, "claims: --problems excludes" },
        { { "claims", "--problems", "--state=claimed" }, NULL, "claims: --problems excludes" },
        { { "claims", "--problems", "--since=-1h" }, NULL, "claims: --problems excludes" },
        { { "claims", "--problems", "--history" }, NULL, "claims: --problems excludes" },
        { { "discover", "-c", "x.conf" }, "discover", NULL },
        { { "-c", "x.conf" }, NULL, "is only an option of" },
        { { "verify", "--config=x.conf" }, "verify", NULL },
        { { "tree", "-c", "x" },
          NULL,
          "only an option of discover, verify, doctor, cat-config, check-config, migrate-inventory, identity, hook" },
        { { "who" }, NULL, "cell:N|GUEST is missing" },
        { { "tree", "--svg" }, "tree", NULL },
        { { "discover", "--svg" }, NULL, "only an option of tree" },
        { { "reshape", "--dry-run" }, "reshape", NULL },
        { { "reshape", "--plan", "-y" }, "reshape", NULL },
        { { "reshape", "--plan", "--undo" }, NULL, "reshape: --dry-run or --undo, not both" },
        { { "heal", "--yes" }, "heal", NULL },
        { { "release", "7", "--yes" }, NULL, "only an option of heal, reshape, retire" },
        { { "watch", "--json=short" }, "watch", NULL },
        { { "-H", "root@h", "status" }, "status", NULL },
        { { "status", "--host=h:22" }, "status", NULL },
        { { "discover", "-H", "h", "-c", "x" }, NULL, "--config" },
        { { "discover", "-H", "h", "--driver", "linux" }, NULL, "--driver" },
        { { "verify", "-H", "h" }, NULL, "ssh h computectl verify" },
        { { "doctor", "-H", "h" }, NULL, "ssh h computectl doctor" },
        { { "cat-config", "-H", "h" }, NULL, "its own host" },
        { { "check-config", "-H", "h" }, NULL, "its own host" },
        { { "status", "-H" }, NULL, "needs a value" },
        { { "show", "x" }, NULL, "not the number of a claim" },
        { { "explain" }, NULL, "--resources" },
        { { "claims", "--xml" }, NULL, "only an option of claim, show" },
        { { "sho", "--xml" }, NULL, "--xml" },
        { { NULL }, "status", NULL },
        { { "--json=short" }, "status", NULL },
        { { "--reason", "x" }, NULL, "--reason is only an option of" },
        { { "statsu" }, NULL, "Did you mean \"status\"" },
        { { "relese" }, NULL, "Unknown verb \"relese\"" },
        { { "cordn" }, NULL, "Unknown verb \"cordn\"" },
        { { "claim" }, NULL, "--consumer=GUEST is missing" },
        { { "clams" }, NULL, "Did you mean \"claims\"" },
        { { "frobnicate" }, NULL, "Unknown verb" },
        { { "status", "now" }, NULL, "unexpected argument \"now\"" },
        { { "release", "seven" }, NULL, "not the number of a claim" },
        { { "release", "" }, NULL, "release: an argument is empty" },
        { { "release", "99999999999999999999" }, NULL, "not the number of a claim" },
        { { "confirm", "7", "8" }, NULL, "unexpected argument \"8\"" },
        { { "release" }, NULL, "release: ID is missing" },
        { { "status", "--jsn" }, NULL, "Did you mean --json" },
        { { "claim", "--consumr=7" }, NULL, "option --consumr. Did you mean --consumer?" },
        { { "status", "--json=xml" }, NULL, "pretty, short or off" },
        { { "status", "--json", "x" }, NULL, "unexpected argument" },
        { { "status", "-z" }, NULL, "Unknown option -z" },
        { { "status", "--history" }, NULL, "only an option of claims" },
        { { "tree", "--consumer=x" }, NULL, "only an option of claim" },
        { { "claim" }, NULL, "--consumer" },
        { { "claim" }, NULL, "--resources or --group" },
        { { "claim", "VCPU=2" },
          NULL,
          "claim: write the resources as an option: --resources=VCPU=2. Also add --consumer=GUEST" },
        { { "claim", "--consumer", CONSUMER, "gpu:VGPU=1" },
          NULL,
          "claim: write the resources as an option: --group=gpu:VGPU=1" },
        { { "claim", "now" }, NULL, "claim: unexpected argument \"now\"" },
        { { "explain", "VCPU=2", "MEMORY_MB=1" },
          NULL,
          "explain: write the resources as an option: --resources=VCPU=2" },
        { { "claim", "--consumer", CONSUMER }, NULL, "--resources" },
};

static void test_usage_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(usage_cases); i++) {
                _cleanup_(ctl_options_done) CtlOptions options = { 0 };
                const CtlVerb *verb = NULL;
                Error error = ERROR_NULL;
                int r = parse(usage_cases[i].words, &options, &verb, &error);

                if (usage_cases[i].verb) {
                        if (r < 0)
                                fail_msg("case %zu: %s", i, error.text);
                        assert_string_equal(verb->name, usage_cases[i].verb);
                } else {
                        if (r != -EINVAL)
                                fail_msg("case %zu: %d", i, r);
                        assert_contains(error.text, usage_cases[i].error);
                }
        }
}

static void test_values(void **state)
{
        static const char *const words[] = { "-q",         "claim",     "--json=short",
                                             "--consumer", CONSUMER,    "--group",
                                             "g:VGPU=1",   "--isolate", "--project",
                                             "p",          NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;

        assert_int_equal(parse(words, &options, &verb, NULL), 0);
        assert_int_equal(options.json, CTL_JSON_SHORT);
        assert_true(options.quiet);
        assert_false(options.all);
        assert_string_equal(options.consumer, CONSUMER);
        assert_string_equal(options.project, "p");
        assert_null(options.user);
        assert_true(options.request.resources.isolate);
        assert_int_equal(options.request.resources.n_groups, 1);
        assert_int_equal(options.request.error.code, 0);
}

static void test_forms_of_json(void **state)
{
        static const struct {
                const char *word;
                CtlJson json; /* negative: rejected */
        } cases[] = {
                { "--json=off", CTL_JSON_OFF },       { "--json=short", CTL_JSON_SHORT },
                { "--json=pretty", CTL_JSON_PRETTY }, { "--json=", _CTL_JSON_INVALID },
                { "--json=yes", _CTL_JSON_INVALID },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *const words[WORDS_MAX] = { "tree", cases[i].word };
                _cleanup_(ctl_options_done) CtlOptions options = { 0 };
                const CtlVerb *verb = NULL;
                int r = parse(words, &options, &verb, NULL);

                assert_int_equal(r, (int)cases[i].json < 0 ? -EINVAL : 0);
                assert_int_equal(options.json, cases[i].json);
        }
}

static void test_the_old_spelling_of_dry_run(void **state)
{
        static const char *const words[] = { "reshape", "--plan", NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;

        assert_int_equal(parse(words, &options, &verb, NULL), 0);
        assert_true(options.dry_run);
}

/* Options are parsed before the verb is known, so the check of the verb reports their first
 * error. */
static void test_the_first_error_of_a_request_is_kept_for_the_check(void **state)
{
        static const char *const words[] = { "claim",  "--consumer",  CONSUMER, "--resources",
                                             "vcpu=1", "--resources", "VGPU=1", NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;
        Error error = ERROR_NULL;

        assert_int_equal(parse(words, &options, &verb, &error), -EINVAL);
        assert_contains(options.request.error.text, "--resources");
        assert_contains(options.request.error.text, "vcpu");
        assert_contains(error.text, "vcpu");
}

static void test_help_wins_over_everything_else(void **state)
{
        static const char *const words[] = { "status", "--history", "--help", NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;

        assert_int_equal(parse(words, &options, &verb, NULL), 0);
        assert_true(options.help);
}

/* The hint after the first error names the help of the verb. */
static void test_a_wrong_option_does_not_hide_the_verb(void **state)
{
        static const struct {
                const char *words[WORDS_MAX], *verb, *error;
        } cases[] = {
                { { "tree", "--bad" }, "tree", "Unknown option --bad" },
                { { "--bad", "tree" }, "tree", "Unknown option --bad" },
                { { "-Z", "tree", "--bad" }, "tree", "Unknown option -Z" },
                { { "tree", "--json=x", "--bad" }, "tree", "--json must be" },
                { { "claims", "--guest" }, "claims", "--guest needs a value" },
                { { "tree", "-H,", "--hosts-file=/nonexistent" }, "tree", "--host: " },
                { { "--bad" }, NULL, "Unknown option --bad" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(ctl_options_done) CtlOptions options = { 0 };
                const CtlVerb *verb;
                Error error = ERROR_NULL;

                assert_int_equal(parse(cases[i].words, &options, &verb, &error), -EINVAL);
                assert_contains(error.text, cases[i].error);
                assert_non_null(options.arguments);
                if (cases[i].verb)
                        assert_string_equal(options.arguments[0], cases[i].verb);
                else
                        assert_null(options.arguments[0]);
        }
}

static void assert_hosts(const char *option, const char *value, int r, const char *names)
{
        const char *const words[] = { "status", option, value, NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;
        char text[256] = "";
        size_t n = 0;

        assert_int_equal(parse(words, &options, &verb, NULL), r);
        for (size_t i = 0; i < options.hosts.n; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? " " : "",
                                      options.hosts.names[i]);
        assert_string_equal(text, names);
}

static void test_hosts(void **state)
{
        static const struct {
                const char *text;
                int r;
                const char *names;
        } lists[] = {
                { "a", 0, "a" },
                { "root@a,b:22,c", 0, "root@a b:22 c" },
                { "b,a,b", 0, "b a" },
                { "a,", -EINVAL, "a" },
                { "", -EINVAL, "" },
                { ",", -EINVAL, "" },
                { "-oProxyCommand=x", -EINVAL, "" },
                { "a,-x", -EINVAL, "a" },
        };
        static const __typeof__(lists[0]) files[] = {
                { "a\n  b # rack 2\n\n# c\nroot@d", 0, "a b root@d" },
                { "a\r\nb\r\n", 0, "a b" },
                { "# nothing\n", -EINVAL, "" },
                { "", -EINVAL, "" },
                { "a\n-x\n", -EINVAL, "a" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "hosts");

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                assert_hosts("-H", lists[i].text, lists[i].r, lists[i].names);
        assert_hosts("--hosts-file", path, -ENOENT, "");
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                scratch_write(folder, "hosts", files[i].text);
                assert_hosts("--hosts-file", path, files[i].r, files[i].names);
        }
}

static void test_hosts_file_can_repeat_the_hosts_of_the_command_line(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "hosts");
        const char *const words[] = { "status", "-H", "b,a", "--hosts-file", path, NULL };
        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
        const CtlVerb *verb = NULL;

        scratch_write(folder, "hosts", "a\nb\n");
        assert_int_equal(parse(words, &options, &verb, NULL), 0);
        assert_int_equal(options.hosts.n, 2);
        assert_string_equal(options.host, "b");
}

static void assert_80_columns(const char *text)
{
        while (*text) {
                size_t n = strcspn(text, "\n");

                if (n > 80)
                        fail_msg("%.*s", (int)n, text);
                text += n + 1;
        }
}

static void test_help_of_all(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlPage *page = capture_begin(&capture, STYLE_PIPE);

        ctl_help_print(NULL, page);
        capture_end(&capture);
        CTL_VERBS_FOREACH(verb)
        if (verb->flags & CTL_VERB_HIDDEN)
                assert_lacks(capture.text, verb->help);
        else
                assert_contains(capture.text, verb->help);
        assert_contains(capture.text, "--json[=pretty|short|off]");
        assert_lacks(capture.text, "--resources");
        assert_80_columns(capture.text);
}

/* An option is in the help of each verb that accepts it, and in no other. */
static void test_help_of_each_verb(void **state)
{
        size_t n_shown = 0;

        CTL_VERBS_FOREACH(verb)
        {
                _cleanup_(capture_done) Capture capture;

                ctl_help_print(verb, capture_begin(&capture, STYLE_PIPE));
                capture_end(&capture);
                assert_80_columns(capture.text);
                for (const CtlOption *option = ctl_options; option->name; option++) {
                        const char *words[] = { verb->name, NULL, "1", NULL };
                        _cleanup_(ctl_options_done) CtlOptions options = { 0 };
                        _cleanup_free_ char *word = text_format("--%s", option->name);
                        const CtlVerb *found = NULL;
                        Error error = ERROR_NULL;
                        bool shown = strstr(capture.text, option->help) != NULL;

                        words[1] = word;
                        (void)parse(words, &options, &found, &error);
                        assert_int_equal(shown,
                                         strstr(error.text, " is only an option of ") == NULL);
                        n_shown += shown && option->verb;
                }
        }
        assert_true(n_shown > 30);
}

TEST_MAIN(test_usage_table, test_values, test_forms_of_json, test_the_old_spelling_of_dry_run,
          test_the_first_error_of_a_request_is_kept_for_the_check, test_hosts,
          test_hosts_file_can_repeat_the_hosts_of_the_command_line,
          test_help_wins_over_everything_else, test_a_wrong_option_does_not_hide_the_verb,
          test_help_of_all, test_help_of_each_verb)

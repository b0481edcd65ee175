/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the command line. One table of options is the source of the parsing, of the check that an
 * option belongs to the verb, and of the help.
 *
 * The value of an option is stored in the member of CtlOptions at its offset. Options of the kinds
 * JSON, HOST and REQUEST have their own readers. Invariant: texts of OPTION_TEXT are borrowed from
 * argv. Names of hosts are copied, because they can come from a file. Without a verb the verb is
 * "status". With --help or --version, the hosts file is not read and the verb of an option is not
 * checked. Limit: the check of an option's verb compares words in a text, so names of verbs have no
 * commas and blanks. */

#include "ctl/verbs/options.h"

#include <getopt.h>
#include <string.h>

#include "base/array.h"
#include "ctl/print/text.h"

#define CODE_FIRST 0x100 /* first code of options, above letters */

#define FLAG(name, letter, verb, help, member)                                            \
        {                                                                                 \
                name, letter, NULL, verb, help, OPTION_FLAG, offsetof(CtlOptions, member) \
        }
#define TEXT(name, letter, metavar, verb, help, member)                                      \
        {                                                                                    \
                name, letter, metavar, verb, help, OPTION_TEXT, offsetof(CtlOptions, member) \
        }
#define REQUEST(name, metavar, verb, help)                      \
        {                                                       \
                name, 0, metavar, verb, help, OPTION_REQUEST, 0 \
        }

const CtlOption ctl_options[] = {
        FLAG("help", 'h', NULL, "Show this help", help),
        FLAG("version", 0, NULL, "Show the version", version),
        { "json", 0, "pretty|short|off", NULL, "Print JSON (pretty on a terminal, else short)",
          OPTION_JSON, 0 },
        { "host", 'H', "[USER@]HOST,…", NULL, "Ask the agents of other hosts over ssh", OPTION_HOST,
          0 },
        TEXT("hosts-file", 0, "FILE", NULL, "Also ask the hosts that FILE lists", hosts_file),
        FLAG("all", 'a', NULL, "Show everything in full length", all),
        FLAG("quiet", 'q', NULL, "Print only the requested output", quiet),
        FLAG("no-pager", 0, NULL, "Do not start a pager", no_pager),
        FLAG("no-legend", 0, NULL, "Print no headings and hints", no_legend),
        TEXT("config", 'c', "FILE",
             "discover, verify, doctor, cat-config, check-config, migrate-inventory, identity, hook",
             "Read the configuration from FILE", config),
        TEXT("driver", 0, "NAME", "discover", "Poll with libvirt, linux or static", driver),
        FLAG("config-only", 0, "doctor", "Check only the configuration files", config_only),
        FLAG("hardware-only", 0, "doctor", "Check only the options against the hardware",
             hardware_only),
        TEXT("os-cloud", 0, "NAME", "doctor, identity", "Use this cloud of clouds.yaml ($OS_CLOUD)",
             os_cloud),
        TEXT("consumer", 0, "GUEST", "claim", "The consumer: the guest's uuid or name", consumer),
        REQUEST("resources", "VCPU=2,VGPU=1", "claim, explain", "Resources from any provider"),
        REQUEST("group", "SUFFIX:VGPU=1", "claim, explain",
                "Resources from one provider (repeatable)"),
        REQUEST("required", "[SUFFIX:]T,!T2", "claim, explain",
                "Required and (!) forbidden traits"),
        FLAG("isolate", 0, "claim, explain", "Use a different provider for each group",
             request.resources.isolate),
        REQUEST("same-subtree", "S1,S2", "claim, explain", "Groups that must be in one subtree"),
        REQUEST("in-tree", "[SUFFIX:]UUID", "claim, explain", "Use only the tree of this provider"),
        REQUEST("mapping", "SUFFIX=PROVIDER", "claim",
                "The provider chosen for a group (repeatable)"),
        REQUEST("numa-nodes", "N", "claim, explain", "Number of NUMA cells of the guest"),
        REQUEST("numa-cpus", "CELL:0-1", "claim, explain", "Guest CPUs of a cell (repeatable)"),
        REQUEST("numa-mem", "CELL:MIB", "claim, explain", "Memory of a cell in MiB (repeatable)"),
        TEXT("cpu-policy", 0, "dedicated|shared|mixed", "claim, explain",
             "Dedicated or shared host CPUs", request.numa.cpu_policy),
        TEXT("cpu-dedicated-mask", 0, "2-3|^0-1", "claim, explain",
             "Dedicated CPUs of the policy mixed", request.numa.dedicated_mask),
        TEXT("cpu-thread-policy", 0, "prefer|isolate|require", "claim, explain",
             "Threads per core of dedicated CPUs", request.numa.thread_policy),
        TEXT("mem-page-size", 0, "small|large|any|2M", "claim, explain",
             "Page size of the guest's memory", request.numa.page_size),
        TEXT("pci-numa-affinity-policy", 0, "POLICY", "claim, explain",
             "required, preferred, legacy or socket", request.numa.affinity),
        TEXT("numa-strategy", 0, "spread|pack", "claim, explain",
             "Order in which host cells are used", request.numa.strategy),
        TEXT("project", 0, "P", "claim", "The project that owns it", project),
        TEXT("user", 0, "U", "claim", "The user that owns it", user),
        TEXT("consumer-type", 0, "TYPE", "claim, move", "Consumer type: INSTANCE, MIGRATION, …",
             consumer_type),
        TEXT("pid-file", 0, "FILE", "claim", "The guest is the process whose id is in FILE",
             pid_file),
        TEXT("unit", 0, "NAME", "claim", "The guest is this unit of systemd", unit),
        FLAG("resize-target", 0, "claim", "Add a second claim, for a resize", resize_target),
        FLAG("xml", 0, "claim, show", "Print libvirt XML for the guest", xml),
        FLAG("svg", 0, "tree", "Draw the host and its guests as SVG", svg),
        FLAG("history", 0, "claims", "Also show ended claims", history),
        TEXT("guest", 0, "GUEST", "claims, history", "Only this guest, by uuid or name",
             filter.guest),
        TEXT("device", 0, "DEVICE", "claims, history", "Only this device, address or provider",
             filter.device),
        TEXT("state", 0, "STATE", "claims, history", "Only this state of claims, or kind of events",
             filter.state),
        TEXT("since", 0, "TIME", "claims, history", "Only since: today, -2h, 2026-11-20 10:00",
             since),
        TEXT("columns", 0, "NAME,NAME", "claims, consumers, drain, history, plan",
             "Only these columns, in this order", columns),
        FLAG("full", 0, "sync", "Read everything from Placement again", full),
        TEXT("timeout", 0, "SECONDS", "sync", "Time limit in seconds. Default: 300", timeout),
        FLAG("undo", 0, "reshape, retire", "Undo the last reshape or retirement", undo),
        TEXT("direct", 0, "DIR", "migrate-inventory",
             "Start a private Placement, configured in DIR", direct),
        FLAG("dry-run", 0, "heal, identity, reshape, retire",
             "Show the changes without making them", dry_run),
        FLAG("plan", 0, "reshape", "Deprecated: use --dry-run", plan),
        FLAG("yes", 'y', "heal, reshape, retire", "Do not ask for confirmation", yes),
        FLAG("force", 0, "identity", "Replace the present uuid of this host", force),
        FLAG("problems", 0, "claims", "Show differences of claims and guests", problems),
        TEXT("reason", 0, "TEXT", "release, cordon", "Reason, which is stored and shown", reason),
        FLAG("allocations", 0, "release", "Also remove allocations by other writers", allocations),
        { .name = NULL },
};

#define N_OPTIONS (ARRAY_SIZE(ctl_options) - 1)

void ctl_options_done(CtlOptions *options)
{
        ctl_request_done(&options->request);
        for (size_t i = 0; i < options->hosts.n; i++)
                free(options->hosts.names[i]);
        free(options->hosts.names);
        options->hosts.names = NULL;
        options->hosts.n = options->hosts.n_allocated = 0;
}

/* Adds a host, unless it was added before. A name that begins with "-" would be an option of
 * ssh. */
static int add_host(CtlOptions *options, const char *name, size_t length, Error *reterr)
{
        if (length == 0 || name[0] == '-')
                return error_setf(reterr, EINVAL, "--host: \"%.*s\" is not the name of a host",
                                  (int)MIN(length, 60u), name);
        for (size_t i = 0; i < options->hosts.n; i++)
                if (strlen(options->hosts.names[i]) == length &&
                    strncmp(options->hosts.names[i], name, length) == 0)
                        return 0;
        if (array_grow(&options->hosts.names, sizeof(char *), options->hosts.n,
                       &options->hosts.n_allocated) < 0)
                return error_oom(reterr);
        options->hosts.names[options->hosts.n] = strndup(name, length);
        if (!options->hosts.names[options->hosts.n])
                return error_oom(reterr);
        options->hosts.n++;
        return 0;
}

/* Adds the names of a list that is separated by commas. */
static int add_hosts(CtlOptions *options, const char *list, Error *reterr)
{
        for (const char *name = list;; name++) {
                size_t length = strcspn(name, ",");
                int r = add_host(options, name, length, reterr);

                if (r < 0)
                        return r;
                name += length;
                if (!*name)
                        return 0;
        }
}

/* Adds the first word of each line, unless it begins a comment with "#". Returns 1 if there was a
 * name, 0, or a negative errno with words. */
static int read_lines(CtlOptions *options, FILE *file, Error *reterr)
{
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int found = 0;

        while (getline(&line, &size, file) >= 0) {
                const char *name = line + strspn(line, " \t");
                size_t length = strcspn(name, " \t\r\n#");
                int r = length > 0 ? add_host(options, name, length, reterr) : 0;

                if (r < 0)
                        return r;
                found |= length > 0;
        }
        return found;
}

/* Adds the names of a file, one on each line; "-" is standard input. "#" begins a comment. A file
 * without names is an error. */
static int read_hosts(CtlOptions *options, const char *path, Error *reterr)
{
        _cleanup_fclose_ FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
        int r;

        if (!file && strcmp(path, "-") != 0)
                return error_setf(reterr, errno, "%s: %s", path, strerror(errno));
        r = read_lines(options, file ? file : stdin, reterr);
        if (r >= 0 && ferror(file ? file : stdin))
                return error_setf(reterr, EIO, "%s cannot be read to its end", path);
        if (r != 0)
                return MIN(r, 0);
        return error_setf(reterr, EINVAL, "%s contains no host name", path);
}

/* Returns the form of "off", "short" or "pretty", else _CTL_JSON_INVALID. */
static CtlJson parse_json_form(const char *text)
{
        static const char *const names[_CTL_JSON_MAX] = {
                [CTL_JSON_OFF] = "off",
                [CTL_JSON_SHORT] = "short",
                [CTL_JSON_PRETTY] = "pretty",
        };

        for (int i = 0; i < _CTL_JSON_MAX; i++)
                if (strcmp(text, names[i]) == 0)
                        return (CtlJson)i;
        return _CTL_JSON_INVALID;
}

/* Reads the value of --json. Without a value (NULL), a terminal gets the pretty form, as with
 * "systemctl -j". */
static int store_json(CtlOptions *options, const char *value, Error *reterr)
{
        options->json = value                   ? parse_json_form(value)
                        : isatty(STDOUT_FILENO) ? CTL_JSON_PRETTY
                                                : CTL_JSON_SHORT;
        return (int)options->json >= 0
                       ? 0
                       : error_setf(reterr, EINVAL,
                                    "--json must be pretty, short or off, not \"%.40s\"", value);
}

/* Stores the value of an option in its member. */
static int store(CtlOptions *options, const CtlOption *option, const char *value, Error *reterr)
{
        void *member = (char *)options + option->offset;

        switch (option->kind) {
        case OPTION_FLAG:
                *(bool *)member = true;
                break;
        case OPTION_TEXT:
                *(const char **)member = value;
                break;
        case OPTION_JSON:
                return store_json(options, value, reterr);
        case OPTION_HOST:
                return add_hosts(options, value, reterr);
        case OPTION_REQUEST:
                ctl_request_add(&options->request, option->name, value);
                break;
        }
        return 0;
}

/* Makes the tables of getopt_long(3) from ctl_options. letters: space for two characters of each
 * option, a colon at the start and the NUL. */
static void make_getopt_tables(struct option *long_options, char *letters)
{
        *letters++ = ':'; /* reports a missing value as ":", and prints nothing */
        for (size_t i = 0; i < N_OPTIONS; i++) {
                long_options[i] = (struct option){
                        .name = ctl_options[i].name,
                        .has_arg = !ctl_options[i].metavar              ? no_argument
                                   : ctl_options[i].kind == OPTION_JSON ? optional_argument
                                                                        : required_argument,
                        .val = CODE_FIRST + (int)i,
                };
                if (ctl_options[i].letter)
                        *letters++ = ctl_options[i].letter;
                if (ctl_options[i].letter && ctl_options[i].metavar)
                        *letters++ = ':';
        }
        *letters = '\0';
}

static const CtlOption *find_option(int code)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (code == CODE_FIRST + (int)i ||
                    (ctl_options[i].letter && code == ctl_options[i].letter))
                        return &ctl_options[i];
        return NULL;
}

/* Rejects an option and suggests a similar name. code: the result of getopt_long(3). */
static int refuse(int code, const char *word, Error *reterr)
{
        const char *names[N_OPTIONS + 1] = { NULL }, *nearest = NULL;
        char name[CTL_TEXT_MAX];

        if (code == ':')
                return error_setf(reterr, EINVAL, "%.60s needs a value", word);
        for (size_t i = 0; i < N_OPTIONS; i++)
                names[i] = ctl_options[i].name;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word); /* without its value */
        if (strncmp(name, "--", 2) == 0)
                nearest = ctl_text_nearest(name + 2, names);
        if (nearest)
                return error_setf(reterr, EINVAL, "Unknown option %.60s. Did you mean --%s?", name,
                                  nearest);
        return error_setf(reterr, EINVAL, "Unknown option %.60s", name);
}

/* Checks whether the verb is one of the option's verbs. */
static bool is_of(const CtlOption *option, const char *verb)
{
        size_t n = strlen(verb);

        for (const char *word = option->verb; n > 0 && word; word = strchr(word, ' ')) {
                word += word[0] == ' ';
                if (strncmp(word, verb, n) == 0 && (word[n] == '\0' || word[n] == ','))
                        return true;
        }
        return false;
}

bool ctl_option_is_of(const char *name, const char *verb)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (strcmp(ctl_options[i].name, name) == 0)
                        return is_of(&ctl_options[i], verb);
        return false;
}

/* The arguments of a call without a verb. */
static const char *const without_verb[] = { "status", NULL };

/* Checks that each given option belongs to the verb. given: by the index of the table. */
static int check_verb(const CtlOptions *options, const bool *given, Error *reterr)
{
        const char *verb = options->arguments[0];

        for (size_t i = 0; i < N_OPTIONS; i++)
                if (given[i] && ctl_options[i].verb && !is_of(&ctl_options[i], verb))
                        return error_setf(reterr, EINVAL, "--%s is only an option of %s",
                                          ctl_options[i].name, ctl_options[i].verb);
        return 0;
}

/* Returns the value of an option. "--json short" was accepted before the value became optional, and
 * still is. */
static const char *take_value(const CtlOption *option, int argc, char *argv[])
{
        if (option->kind != OPTION_JSON || optarg || optind >= argc ||
            (int)parse_json_form(argv[optind]) < 0)
                return optarg;
        return argv[optind++];
}

int ctl_options_parse(int argc, char *argv[], CtlOptions *ret, Error *reterr)
{
        struct option long_options[N_OPTIONS + 1] = { 0 };
        char letters[2 * N_OPTIONS + 2];
        bool given[N_OPTIONS] = { false };
        int code, r;

        make_getopt_tables(long_options, letters);
        optind = 0; /* resets getopt_long(3) of glibc */
        while ((code = getopt_long(argc, argv, letters, long_options, NULL)) >= 0) {
                const CtlOption *option = find_option(code);

                if (!option)
                        return refuse(code, argv[optind - 1], reterr);
                given[option - ctl_options] = true;
                r = store(ret, option, take_value(option, argc, argv), reterr);
                if (r < 0)
                        return r;
        }
        ret->arguments = (const char *const *)argv + optind;
        if (ret->help || ret->version)
                return 0;
        if (!ret->arguments[0])
                ret->arguments = without_verb;
        ret->dry_run |= ret->plan;
        if (ret->hosts_file)
                r = read_hosts(ret, ret->hosts_file, reterr);
        if (ret->hosts_file && r < 0)
                return r;
        if (ret->hosts.n > 0)
                ret->host = ret->hosts.names[0];
        return check_verb(ret, given, reterr);
}

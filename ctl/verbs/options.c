/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the command line. One table of options is the source of the parsing, of the check that an
 * option belongs to the verb, and of the help.
 *
 * The value of an option is stored in the member of CtlOptions at its offset. Options of the kinds
 * JSON, HOST and REQUEST have their own readers. Invariant: texts of OPTION_TEXT are borrowed from
 * argv. Names of hosts are copied, because they can come from a file. After a rejected option no
 * further one is stored. Errors of a request wait for ctl_request_check(). Without a verb the verb
 * is "status". With --help or --version, the hosts file is not read and the verb of an option is
 * not checked. Limit: the check of an option's verb compares words in a text, so names of verbs
 * have no commas and blanks.
 *
 * Tests: tests/unit/ctl/verbs/test-options.c tests/unit/ctl/verbs/test-request.c */

#include "ctl/verbs/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/inventory.h"
#include "ctl/print/json.h"
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
        FLAG("force", 0, "identity", "Replace the uuid, or rename providers in use", force),
        FLAG("problems", 0, "claims", "Show differences of claims and guests", problems),
        TEXT("reason", 0, "TEXT", "release, cordon", "Reason, which is stored and shown", reason),
        FLAG("allocations", 0, "release", "Also remove allocations by other writers", allocations),
        { .name = NULL },
};

#define N_OPTIONS (ARRAY_SIZE(ctl_options) - 1)

void ctl_options_done(CtlOptions *options)
{
        resource_request_done(&options->request.resources);
        request_mappings_done(&options->request.mappings);
        string_set_done(&options->request.named);
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

/* The request of "claim" and "explain"
 *
 * Each option that is no flag or plain text has a reader. The first error of a value is stored in
 * the request, and later values are ignored. So options can be parsed before the verb is known, and
 * ctl_request_check() reports the error. Names of providers stay texts until ctl_request_resolve()
 * has the tree. Limits: a number of the layout has at most nine digits, and cells are given in
 * their order. */

/* Copies the part of text before colon, which points into text. The caller frees the copy. */
static int split_suffix(const char *text, const char *colon, char **ret_suffix, Error *reterr)
{
        char *suffix = strndup(text, (size_t)(colon - text));

        if (!suffix)
                return error_oom(reterr);
        *ret_suffix = suffix;
        return 0;
}

/* Adds amounts to the group with that suffix. A class that the group has already is an error. */
static int add_resources(ResourceRequest *request, const char *suffix, const char *text,
                         Error *reterr)
{
        _cleanup_(resources_done) Resources more = RESOURCES_INIT;
        RequestGroup *group;
        int r = resource_request_group(request, suffix, &group, reterr);

        if (r < 0)
                return r;
        r = resources_parse(text, &more, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < more.n_items; i++) {
                if (resources_get(&group->resources, more.items[i].resource_class) > 0)
                        return error_setf(reterr, EINVAL, "%s is requested twice",
                                          more.items[i].resource_class);
                if (resources_set(&group->resources, more.items[i].resource_class,
                                  more.items[i].amount) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Reads "VCPU=2,VGPU=1" for the group without a suffix. */
static int add_plain(CtlRequest *request, const char *text, Error *reterr)
{
        return add_resources(&request->resources, "", text, reterr);
}

/* Reads "1:VGPU=1": a group that one provider must satisfy alone. */
static int add_group(CtlRequest *request, const char *text, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r;

        if (!colon || colon == text)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a group. Write SUFFIX:CLASS=AMOUNT, for example gpu:VGPU=1",
                        text);
        r = split_suffix(text, colon, &suffix, reterr);
        return r < 0 ? r : add_resources(&request->resources, suffix, colon + 1, reterr);
}

/* Adds a required trait, or a forbidden one with "!". */
static int add_trait(RequestGroup *group, const char *text, Error *reterr)
{
        bool forbidden = text[0] == '!';
        const char *trait = text + forbidden;

        if (!resource_class_valid(trait))
                return error_setf(reterr, EINVAL,
                                  "\"%.60s\" is not a trait (A-Z, 0-9 and _, after an optional !)",
                                  text);
        if (string_set_contains(forbidden ? &group->required : &group->forbidden, trait))
                return error_setf(reterr, EINVAL, "%.60s is both required and forbidden", trait);
        if (string_set_add(forbidden ? &group->forbidden : &group->required, trait) < 0)
                return error_oom(reterr);
        return 0;
}

/* Finds or makes the group of "SUFFIX:REST"; for "REST", the group without a suffix. */
static int find_group(CtlRequest *request, const char *text, RequestGroup **ret,
                      const char **ret_rest, Error *reterr)
{
        _cleanup_free_ char *suffix = NULL;
        const char *colon = strchr(text, ':');
        int r = colon ? split_suffix(text, colon, &suffix, reterr) : 0;

        *ret_rest = colon ? colon + 1 : text;
        return r < 0 ? r
                     : resource_request_group(&request->resources, suffix ? suffix : "", ret,
                                              reterr);
}

/* Reads "HW_CPU_X86_AVX,!CUSTOM_OLD", or with a group: "1:CUSTOM_FAST". */
static int add_traits(CtlRequest *request, const char *text, Error *reterr)
{
        _cleanup_free_ char *traits = NULL;
        RequestGroup *group;
        char *rest, *trait;
        int r = find_group(request, text, &group, &text, reterr);

        if (r < 0)
                return r;
        rest = traits = strdup(text);
        if (!traits)
                return error_oom(reterr);
        while ((trait = strsep(&rest, ","))) {
                r = add_trait(group, trait, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads "1,2": the suffixes of groups that must be placed in the subtree of one of their
 * providers. */
static int add_subtree(CtlRequest *request, const char *text, Error *reterr)
{
        _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *suffix;

        if (!copy)
                return error_oom(reterr);
        while ((suffix = strsep(&rest, ",")))
                if (string_set_add(&suffixes, suffix) < 0)
                        return error_oom(reterr);
        return resource_request_add_subtree(&request->resources, &suffixes, reterr);
}

/* Reads "1:UUID" or "UUID": the group must be placed in the tree of that provider. */
static int add_tree(CtlRequest *request, const char *text, Error *reterr)
{
        RequestGroup *group;
        int r = find_group(request, text, &group, &text, reterr);

        if (r < 0)
                return r;
        return uuid_from_text(text, &group->in_tree) < 0
                       ? error_setf(reterr, EINVAL, "\"%.60s\" is not the uuid of a provider", text)
                       : 0;
}

/* Reads a decimal number of at most nine digits, which cannot overflow. */
static bool parse_number(const char *text, uint64_t *ret)
{
        size_t n = strlen(text);

        if (n == 0 || n > 9 || strspn(text, "0123456789") != n)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

static int set_nodes(CtlRequest *request, const char *text, Error *reterr)
{
        if (!parse_number(text, &request->numa.nodes) || request->numa.nodes == 0)
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of cells", text);
        return 0;
}

/* Splits "2:rest". Cells must be given in their order, and next is the expected number. */
static int split_cell(const char *text, size_t next, const char **ret_rest, Error *reterr)
{
        char expected[24];
        size_t n = (size_t)snprintf(expected, sizeof(expected), "%zu:", next);

        if (next >= NUMA_REQUEST_CELLS_MAX)
                return error_setf(reterr, EINVAL, "A guest has at most %d cells",
                                  NUMA_REQUEST_CELLS_MAX);
        if (strncmp(text, expected, n) != 0)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.40s\" must begin with %s. Set the option once for each cell of the guest, in order",
                        text, expected);
        *ret_rest = text + n;
        return 0;
}

/* Reads "0:0-1": the guest CPUs of a cell. The text is borrowed. */
static int add_cpus(CtlRequest *request, const char *text, Error *reterr)
{
        size_t next = request->numa.n_cpus;
        int r = split_cell(text, next, &request->cpus[next], reterr);

        if (r < 0)
                return r;
        request->numa.cpus = request->cpus;
        request->numa.n_cpus++;
        return 0;
}

/* Reads "0:512": the memory of a cell in MiB. */
static int add_memory(CtlRequest *request, const char *text, Error *reterr)
{
        size_t next = request->numa.n_memory;
        const char *rest;
        int r = split_cell(text, next, &rest, reterr);

        if (r < 0)
                return r;
        if (!parse_number(rest, &request->memory_mb[next]))
                return error_setf(reterr, EINVAL, "\"%.40s\" is not a number of MiB", rest);
        request->numa.memory_mb = request->memory_mb;
        request->numa.n_memory++;
        return 0;
}

/* Adds a provider that is known by its uuid. The suffix is the text before "=". */
static int add_known(RequestMappings *known, const char *text, const Uuid *provider, Error *reterr)
{
        _cleanup_free_ char *suffix = strndup(text, strcspn(text, "="));

        if (!suffix || request_mappings_add(known, suffix, provider) < 0)
                return error_oom(reterr);
        return 0;
}

/* Reads "1=UUID" or "1=NAME": the provider of a group. "=NAME" is for the group without a suffix. A
 * name is looked up later, in the tree of the agent. */
static int add_mapping(CtlRequest *request, const char *text, Error *reterr)
{
        const char *sign = strchr(text, '=');
        Uuid provider;

        if (!sign || !sign[1])
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a mapping. Write SUFFIX=PROVIDER, with a name or uuid of \"computectl tree\"",
                        text);
        if (uuid_from_text(sign + 1, &provider) == 0)
                return add_known(&request->mappings, text, &provider, reterr);
        return string_set_add(&request->named, text) < 0 ? error_oom(reterr) : 0;
}

/* Adds the value of an option (its name without dashes) to the request. */
static void add_to_request(CtlRequest *request, const char *option, const char *text)
{
        static const struct {
                const char *option;
                int (*add)(CtlRequest *request, const char *text, Error *reterr);
        } readers[] = {
                { "resources", add_plain },  { "group", add_group },
                { "required", add_traits },  { "same-subtree", add_subtree },
                { "in-tree", add_tree },     { "mapping", add_mapping },
                { "numa-nodes", set_nodes }, { "numa-cpus", add_cpus },
                { "numa-mem", add_memory },
        };

        for (size_t i = 0; i < ARRAY_SIZE(readers) && !request->error.code; i++) {
                int r = strcmp(readers[i].option, option) == 0
                                ? readers[i].add(request, text, &request->error)
                                : 0;

                if (r < 0)
                        error_prefixf(&request->error, r, "--%s", option);
        }
}

/* Checks that each group has resources, or is in a list of --same-subtree. */
static int check_resources(const ResourceRequest *request, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (request->groups[i].resources.n_items == 0 &&
                    !resource_request_in_subtree(request, request->groups[i].suffix))
                        return error_setf(reterr, EINVAL,
                                          "A group with required traits has no resources%s%s",
                                          request->groups[i].suffix[0] ? ": " : "",
                                          request->groups[i].suffix);
        return 0;
}

/* Checks that a mapping names a group of the request. n: length of the suffix. */
static int check_group(const ResourceRequest *request, const char *suffix, size_t n, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (strlen(request->groups[i].suffix) == n &&
                    strncmp(request->groups[i].suffix, suffix, n) == 0)
                        return 0;
        return error_setf(reterr, EINVAL, "--mapping: the request has no group \"%.*s\"",
                          (int)MIN(n, (size_t)60), suffix);
}

int ctl_request_check(const CtlRequest *request, Error *reterr)
{
        int r = request->error.code ? error_setf(reterr, EINVAL, "%s", request->error.text)
                                    : check_resources(&request->resources, reterr);

        for (size_t i = 0; r == 0 && i < request->mappings.n_items; i++) {
                const char *suffix = request->mappings.items[i].suffix;

                r = check_group(&request->resources, suffix, strlen(suffix), reterr);
        }
        for (size_t i = 0; r == 0 && i < request->named.n_items; i++) {
                const char *text = request->named.items[i];

                r = check_group(&request->resources, text, strcspn(text, "="), reterr);
        }
        return r;
}

/* Yields the uuid of the provider with this name. Returns -EINVAL with words if the tree has none,
 * and without words if its uuid is not valid. */
static int find_provider(const json_t *tree, const char *name, Uuid *ret, Error *reterr)
{
        const json_t *provider = ctl_json_find(json_object_get(tree, "providers"), "name", name);

        if (provider)
                return uuid_from_text(ctl_json_text(provider, "uuid"), ret);
        return error_setf(
                reterr, EINVAL,
                "--mapping: this host has no provider \"%.100s\". See \"computectl tree\"", name);
}

int ctl_request_resolve(CtlRequest *request, const json_t *tree, Error *reterr)
{
        for (size_t i = 0; i < request->named.n_items; i++) {
                const char *text = request->named.items[i];
                Uuid provider;
                int r = find_provider(tree, strchr(text, '=') + 1, &provider, reterr);

                if (r == 0)
                        r = add_known(&request->mappings, text, &provider, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The command line */

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
                add_to_request(&options->request, option->name, value);
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
        int code, r = 0;

        make_getopt_tables(long_options, letters);
        optind = 0; /* resets getopt_long(3) of glibc */
        while ((code = getopt_long(argc, argv, letters, long_options, NULL)) >= 0) {
                const CtlOption *option = find_option(code);

                if (r < 0)
                        continue; /* only the verb is still needed */
                if (!option) {
                        r = refuse(code, argv[optind - 1], reterr);
                        continue;
                }
                given[option - ctl_options] = true;
                r = store(ret, option, take_value(option, argc, argv), reterr);
        }
        ret->arguments = (const char *const *)argv + optind;
        if (r < 0)
                return r;
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

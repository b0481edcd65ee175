/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a verb for several hosts: "computectl -H host1,host2" and "--hosts-file". For each host a
 * child process runs the whole verb with its own connection over ssh, at most AT_ONCE at the same
 * time. A child cannot ask a person, so the parent asks once for all hosts before a verb with the
 * option --yes. The parent collects the outputs and prints them in the order of the command line,
 * as sections or as one JSON document. The exit code is the worst one of the hosts (worse()). If a
 * child cannot be started, or its output cannot be read, the run fails. It kills the children that
 * still run, and prints no outputs, also of hosts where the verb ran. Limit: output that is no
 * JSON, and all output after it, is left out of the JSON document. */

#include "ctl/verbs/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ask/children.h"
#include "ctl/print/text.h"
#include "ctl/verbs/common.h"

#define AT_ONCE 32 /* children that run at the same time, each with a session of ssh */

/* Returns the worse of two exit codes. The order from good to bad is 0, 4 (a finding), 5 (the agent
 * could not decide within its limit of work), 3 (the agent is down, or something is left), and all
 * others (the verb failed). */
static int worse(int a, int b)
{
        static const int order[] = { 0, 4, 5, 3 };
        size_t i = 0, j = 0;

        while (i < ARRAY_SIZE(order) && order[i] != a)
                i++;
        while (j < ARRAY_SIZE(order) && order[j] != b)
                j++;
        return j > i ? b : a;
}

/* The verb and the host that one child process runs. */
typedef struct HostWork {
        Ctl *ctl;
        const CtlVerb *verb;
        int (*run)(const CtlVerb *verb, Ctl *ctl);
        const char *host; /* borrowed */
} HostWork;

/* Runs in the child. Changes its copy of the options: one host, no pager, no terminal. */
static int run_child(void *data)
{
        HostWork *work = data;

        work->ctl->options.host = work->host;
        work->ctl->options.no_pager = true;
        work->ctl->page.style.terminal = false;
        return work->run(work->verb, work->ctl);
}

/* Parses the output of a child: one document, a list if there are several, null if there is none.
 * Text that is no JSON ends the parsing. */
static json_t *read_documents(const char *text)
{
        json_t *documents = json_array(), *document;
        size_t n = 0;

        while (documents && text[n += strspn(text + n, " \t\n")]) {
                json_error_t error;

                document = json_loads(text + n, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &error);
                if (!document || error.position <= 0) {
                        json_decref(document);
                        break;
                }
                n += (size_t)error.position;
                if (json_array_append_new(documents, document) < 0)
                        break;
        }
        if (json_array_size(documents) > 1)
                return documents;
        document = json_array_size(documents) == 1 ? json_incref(json_array_get(documents, 0))
                                                   : json_null();
        json_decref(documents);
        return document;
}

/* Makes the document of all hosts (HOSTS_FORMAT). */
static json_t *make_document(const CtlChild *children, size_t n)
{
        json_t *hosts = json_array();

        for (size_t i = 0; i < n; i++) {
                const HostWork *work = children[i].data;

                if (json_array_append_new(
                            hosts, json_pack("{so si so so}", "host", ctl_json_foreign(work->host),
                                             "code", children[i].code, "output",
                                             read_documents(children[i].output), "error",
                                             ctl_json_foreign(children[i].errors))) < 0) {
                        json_decref(hosts);
                        return NULL;
                }
        }
        return json_pack("{ss so}", "format", HOSTS_FORMAT, "hosts", hosts);
}

/* Prints the output of each host below a line with its name. Errors go to standard error. With
 * --quiet, omits a host that has neither output nor errors, whatever its exit code is. */
static void print_texts(Ctl *ctl, const CtlChild *children, size_t n)
{
        FILE *output = ctl->page.output;
        bool any = false;

        for (size_t i = 0; i < n; i++) {
                const HostWork *work = children[i].data;

                if (ctl->options.quiet && !children[i].output[0] && !children[i].errors[0])
                        continue;
                if (any)
                        fputc('\n', output);
                any = true;
                ctl_page_write(&ctl->page, CTL_BOLD, "==> %s", work->host);
                if (children[i].code != 0)
                        fprintf(output, " (exit code %d)", children[i].code);
                ctl_page_write(&ctl->page, CTL_BOLD, " <==");
                fprintf(output, "\n%s", children[i].output);
                fflush(output);
                fputs(children[i].errors, stderr);
        }
}

/* Asks a person for confirmation, once for all hosts. Asks nothing if the verb has no option --yes,
 * or if ctl_must_ask() does not require it. */
static int ask(Ctl *ctl, const CtlVerb *verb, Error *reterr)
{
        char question[CTL_TEXT_MAX];

        if (!ctl_option_is_of("yes", verb->name) || !ctl_must_ask(ctl))
                return 0;
        snprintf(question, sizeof(question), "Run \"%s\" on %zu host%s?", verb->name,
                 ctl->options.hosts.n, text_plural(ctl->options.hosts.n));
        return ctl_ask(ctl, NULL, NULL, question, reterr);
}

int ctl_hosts_run(Ctl *ctl, const CtlVerb *verb, int (*run)(const CtlVerb *verb, Ctl *ctl),
                  Error *reterr)
{
        size_t n = ctl->options.hosts.n;
        _cleanup_free_ CtlChild *children = calloc(n, sizeof(CtlChild));
        _cleanup_free_ HostWork *works = calloc(n, sizeof(HostWork));
        int code = 0, r;

        if (!children || !works)
                return error_oom(reterr);
        r = ask(ctl, verb, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                works[i] = (HostWork){ ctl, verb, run, ctl->options.hosts.names[i] };
                children[i].data = &works[i];
        }
        r = ctl_children_run(children, n, run_child, AT_ONCE, 0, reterr);
        if (r >= 0 && ctl->options.json) {
                _cleanup_json_ json_t *document = make_document(children, n);

                ctl_json_print(document, ctl->options.json, &ctl->page);
        } else if (r >= 0) {
                print_texts(ctl, children, n);
        }
        for (size_t i = 0; i < n; i++)
                code = worse(code, children[i].code);
        ctl_children_done(children, n);
        return r < 0 ? r : code;
}

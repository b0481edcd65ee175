/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the completion of computectl for bash or zsh. Runs at build time only.
 *
 * Verbs and options come from the tables ctl_verb_tables and ctl_options, which computectl itself
 * uses. The fixed parts of the bash function are the texts bash_head to bash_tail. Between them are
 * a branch for each verb with options, and a branch for each verb whose arguments can be completed.
 * Words that are known only at run time, such as ids of claims, are read by calling computectl. The
 * bash script keeps only numbers, and names whose characters have no meaning for a shell: bash
 * expands the words, and another writer of Placement can choose the name of a provider. Both
 * complete the values of --json, --config and --host. Limit: zsh completes no arguments of verbs,
 * and offers each option for each verb.
 *
 * Tests: tests/integration/ctl/test_completion.py */

#include <string.h>

#include "ctl/verbs/verbs.h"

static const char bash_head[] =
        "# SPDX-License-Identifier: LGPL-2.1-or-later\n"
        "# Completion of computectl for bash; made from its tables of verbs and options.\n"
        "\n"
        "_computectl_claims() {\n"
        "        computectl claims \"$@\" --no-pager --no-legend 2>/dev/null | sed -n 's/^ *\\([0-9][0-9]*\\) .*/\\1/p'\n"
        "}\n"
        "_computectl_history() {\n"
        "        _computectl_claims --history\n"
        "}\n"
        "_computectl_devices() {\n"
        "        computectl tree --json=short 2>/dev/null | LC_ALL=C grep -o '\"name\":\"[A-Za-z0-9_.:][A-Za-z0-9_.:-]*\"' | cut -d '\"' -f 4\n"
        "}\n"
        "\n"
        "_computectl() {\n"
        "        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' word words=''\n"
        "        local verbs='";

static const char bash_middle[] =
        "        if [[ $prev == = ]]; then\n"
        "                prev=${COMP_WORDS[COMP_CWORD-2]}\n"
        "        fi\n"
        "        [[ $cur != = ]] || cur=''\n"
        "        for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        "                if [[ \" $verbs \" == *\" $word \"* ]]; then\n"
        "                        verb=$word\n"
        "                        break\n"
        "                fi\n"
        "        done\n"
        "        case $prev in\n"
        "        --json)\n"
        "                mapfile -t COMPREPLY < <(compgen -W 'pretty short off' -- \"$cur\")\n"
        "                return\n"
        "                ;;\n"
        "        -c | --config)\n"
        "                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
        "                return\n"
        "                ;;\n"
        "        -H | --host)\n"
        "                mapfile -t COMPREPLY < <(compgen -A hostname -- \"$cur\")\n"
        "                return\n"
        "                ;;\n"
        "        esac\n"
        "        case $verb in\n";

static const char bash_words[] = "        esac\n"
                                 "        [[ $cur == -* ]] || case $verb in\n";

static const char bash_tail[] =
        "        esac\n"
        "        if [[ $cur == -* ]]; then\n"
        "                mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
        "        elif [[ -z $verb ]]; then\n"
        "                mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$cur\")\n"
        "        else\n"
        "                mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
        "        fi\n"
        "}\n"
        "complete -F _computectl computectl\n";

/* Prints the options of a verb; NULL: those that each verb has. */
static void print_options_of(const char *verb)
{
        for (const CtlOption *option = ctl_options; option->name; option++)
                if (verb ? ctl_option_is_of(option->name, verb) : !option->verb)
                        printf(" --%s", option->name);
}

static bool has_options(const char *verb)
{
        for (const CtlOption *option = ctl_options; option->name; option++)
                if (ctl_option_is_of(option->name, verb))
                        return true;
        return false;
}

/* Prints the bash branch with the words that complete an argument of the verb. The name of a list
 * becomes a call of a shell function, which reads the items of the list when they are needed. */
static void print_words_of(const CtlVerb *verb)
{
        static const char *const lists[] = { "claims", "history", "devices" };

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                if (strcmp(verb->completed, lists[i]) == 0) {
                        printf("        %s) words=$(_computectl_%s) ;;\n", verb->name, lists[i]);
                        return;
                }
        printf("        %s) words='%s' ;;\n", verb->name, verb->completed);
}

static void print_bash(void)
{
        fputs(bash_head, stdout);
        CTL_VERBS_FOREACH(verb)
        if (!(verb->flags & CTL_VERB_HIDDEN))
                printf("%s%s", verb == ctl_verb_tables[0] ? "" : " ", verb->name);
        fputs("' options='", stdout);
        print_options_of(NULL);
        fputs("'\n", stdout);
        fputs(bash_middle, stdout);
        CTL_VERBS_FOREACH(verb)
        {
                if (!has_options(verb->name))
                        continue;
                printf("        %s) options+='", verb->name);
                print_options_of(verb->name);
                fputs("' ;;\n", stdout);
        }
        fputs(bash_words, stdout);
        CTL_VERBS_FOREACH(verb)
        if (verb->completed)
                print_words_of(verb);
        fputs(bash_tail, stdout);
}

/* Prints a text inside single quotes of the shell. special: characters that _arguments or _describe
 * of zsh would interpret; they get a backslash. */
static void print_quoted(const char *text, const char *special)
{
        for (; *text; text++) {
                if (strchr(special, *text))
                        putchar('\\');
                if (*text == '\'')
                        fputs("'\\'", stdout);
                putchar(*text);
        }
}

/* Prints an option for _arguments: its name, its help, and the completion of its value. */
static void print_zsh_option(const CtlOption *option)
{
        printf("                '--%s%s[", option->name, option->metavar ? "=" : "");
        print_quoted(option->help, "[]:");
        putchar(']');
        if (option->metavar && strcmp(option->name, "json") == 0)
                fputs(":format:(pretty short off)", stdout);
        else if (option->metavar && strcmp(option->name, "config") == 0)
                fputs(":file:_files", stdout);
        else if (option->metavar && strcmp(option->name, "host") == 0)
                fputs(":host:_hosts", stdout);
        else if (option->metavar)
                printf(":%s:", "value");
        fputs("' \\\n", stdout);
}

static void print_zsh(void)
{
        puts("#compdef computectl\n"
             "# SPDX-License-Identifier: LGPL-2.1-or-later\n"
             "# Completion of computectl for zsh; made from its tables of verbs and options.\n"
             "\n"
             "_computectl() {\n"
             "        local -a verbs\n"
             "        verbs=(");
        CTL_VERBS_FOREACH(verb)
        {
                if (verb->flags & CTL_VERB_HIDDEN)
                        continue;
                printf("                '%s:", verb->name);
                print_quoted(verb->help, ":");
                puts("'");
        }
        puts("        )\n"
             "        _arguments \\");
        for (const CtlOption *option = ctl_options; option->name; option++)
                print_zsh_option(option);
        puts("                '1:verb:{_describe verb verbs}' \\\n"
             "                '2:claim:'\n"
             "}\n"
             "\n"
             "_computectl \"$@\"");
}

int main(int argc, char *argv[])
{
        if (argc == 2 && strcmp(argv[1], "bash") == 0)
                print_bash();
        else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
                print_zsh();
        else
                return EXIT_FAILURE;
        return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}

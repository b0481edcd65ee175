/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/consent.h"

#include <string.h>
#include <strings.h>

#include "base/macros.h"

#define BLANKS " \t\r\n"

bool ctl_consent_is_needed(const CtlOptions *options, bool on_terminal)
{
        return on_terminal && !options->yes && !options->dry_run;
}

bool ctl_consent_is_given(const char *answer)
{
        static const char *const words[] = { "y", "yes" };
        size_t start, length;

        if (!answer)
                return false;
        start = strspn(answer, BLANKS);
        length = strcspn(answer + start, BLANKS);
        if (answer[start + length + strspn(answer + start + length, BLANKS)])
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (length == strlen(words[i]) &&
                    strncasecmp(answer + start, words[i], length) == 0)
                        return true;
        return false;
}

int ctl_consent_ask(const char *question, Error *reterr)
{
        _cleanup_fclose_ FILE *terminal = fopen("/dev/tty", "we");
        FILE *output = terminal ? terminal : stderr;
        _cleanup_free_ char *answer = NULL;
        size_t size = 0;

        fflush(stdout);
        fprintf(output, "%s [y/N] ", question);
        fflush(output);
        if (getline(&answer, &size, stdin) < 0) {
                fputc('\n', output);
                return error_setf(reterr, ECANCELED, "Nothing was changed");
        }
        return ctl_consent_is_given(answer) ? 0
                                            : error_setf(reterr, ECANCELED, "Nothing was changed");
}

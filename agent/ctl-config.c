/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl-config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "agent/config-file.h"
#include "agent/config-search.h"
#include "agent/config-table.h"

#define HIDDEN "(not shown)"

/* Where a reader of lines is. */
typedef struct Place {
        char section[128];
        bool in_secret; /* lines that go on with the value are not shown either */
} Place;

static void enter_section(Place *place, const char *line)
{
        size_t n = strcspn(line + 1, "]\n");

        snprintf(place->section, sizeof(place->section), "%.*s", (int)n, line + 1);
}

/* Whether the line, without its white space in front, sets a secret; ret_key is its length. */
static bool sets_secret(const Place *place, const char *line, size_t *ret_key)
{
        const ConfigOption *options, *option;
        char key[128];
        size_t n, n_key = strcspn(line, "= \t\n");

        options = config_get_options(&n);
        snprintf(key, sizeof(key), "%.*s", (int)n_key, line);
        option = config_find_option(options, n, place->section, key);
        *ret_key = n_key;
        return option && option->secret;
}

static void print_line(Place *place, const char *line, FILE *output)
{
        const char *text = line + strspn(line, " \t");
        size_t n_key;

        if (text != line && place->in_secret)
                return;
        place->in_secret = false;
        if (text[0] == '[')
                enter_section(place, text);
        else if (isalpha((unsigned char)text[0]) && sets_secret(place, text, &n_key)) {
                place->in_secret = true;
                fprintf(output, "%.*s = " HIDDEN "\n", (int)n_key, text);
                return;
        }
        fputs(line, output);
        if (line[0] && line[strlen(line) - 1] != '\n')
                fputc('\n', output);
}

static int cat_file(const char *path, FILE *output, Error *reterr)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        _cleanup_free_ char *line = NULL;
        Place place = { 0 };
        size_t size = 0;

        if (!file)
                return error_setf(reterr, errno, "%s: cannot be read: %s", path, strerror(errno));
        fprintf(output, "# %s\n", path);
        while (getline(&line, &size, file) >= 0)
                print_line(&place, line, output);
        if (ferror(file))
                return error_setf(reterr, EIO, "%s: cannot be read", path);
        return 0;
}

int ctl_config_cat(const char *config, FILE *output, Error *reterr)
{
        _cleanup_(strings_freep) char **paths = NULL;
        int r = config_find_files(config, NULL, NULL, &paths, reterr);

        if (r < 0)
                return r;
        if (!paths[0])
                fputs("# There is no configuration file: the defaults apply.\n", output);
        for (char **path = paths; *path; path++) {
                if (path != paths)
                        fputc('\n', output);
                r = cat_file(*path, output, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void on_warning(const char *text, void *userdata)
{
        fprintf(userdata, "Warning: %s\n", text);
}

int ctl_config_check(const char *config, FILE *output, size_t *ret_n_files, Error *reterr)
{
        _cleanup_(config_freep) Config *loaded = NULL;
        size_t n = 0;
        int r = config_load(&loaded, config, on_warning, output, reterr);

        if (r < 0)
                return r;
        while (loaded->files[n])
                n++;
        if (ret_n_files)
                *ret_n_files = n;
        return 0;
}

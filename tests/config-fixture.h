/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Configurations that are written as text and loaded. */

#include "agent/config/config.h"

#include "tests/scratch-folder.h"
#include "tests/test.h"

/* A folder with x.conf, and all warnings of the last load, one in a line. */
typedef struct Fixture {
        char *folder, *file;
        char warnings[4096];
} Fixture;

static int setup(void **state)
{
        Fixture *f = calloc(1, sizeof(Fixture));

        assert_non_null(f);
        f->folder = scratch_folder_make();
        f->file = scratch_path(f->folder, "x.conf");
        unsetenv("CREDENTIALS_DIRECTORY");
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        Fixture *f = *state;

        scratch_folder_remove(f->folder);
        free(f->file);
        free(f);
        return 0;
}

/* The place of x.conf is shown as "x.conf". */
static void on_warning(const char *text, void *userdata)
{
        Fixture *f = userdata;
        size_t n = strlen(f->warnings), n_folder = strlen(f->folder);
        const char *place = strstr(text, f->folder);

        if (place)
                snprintf(f->warnings + n, sizeof(f->warnings) - n, "%.*s%s\n", (int)(place - text),
                         text, place + n_folder + 1);
        else
                snprintf(f->warnings + n, sizeof(f->warnings) - n, "%s\n", text);
}

static int load(Fixture *f, Config **ret, Error *reterr)
{
        f->warnings[0] = '\0';
        return config_load(ret, f->file, on_warning, f, reterr);
}

static Config *load_text(Fixture *f, const char *text)
{
        Error error = ERROR_NULL;
        Config *config = NULL;

        scratch_write(f->folder, "x.conf", text);
        if (load(f, &config, &error) < 0)
                fail_msg("\"%s\": %s", text, error.text);
        return config;
}

static void expect_refused(Fixture *f, const char *text, const char *expected)
{
        Config *config = NULL;
        Error error = ERROR_NULL;
        int r;

        scratch_write(f->folder, "x.conf", text);
        r = load(f, &config, &error);
        if (r != -EINVAL)
                fail_msg("\"%s\": %d, expected \"%s\"", text, r, expected);
        assert_null(config);
        assert_int_equal(strncmp(error.text, f->folder, strlen(f->folder)), 0);
        assert_string_equal(error.text + strlen(f->folder) + 1, expected);
}

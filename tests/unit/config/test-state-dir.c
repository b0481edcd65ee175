/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <stdlib.h>

#include "tests/fixtures/config.h"

#define DEFAULT_DIR LOCALSTATEDIR "/lib/compute-agent"

/* Writes x.conf, in which the folder replaces the word FOLDER. */
static void write_config(const Fixture *f, const char *config, const char *folder)
{
        const char *place = strstr(config, "FOLDER");
        char text[400];

        snprintf(text, sizeof(text), "%.*s%s%s",
                 (int)(place ? place - config : (long)strlen(config)), config, place ? folder : "",
                 place ? place + strlen("FOLDER") : "");
        scratch_write(f->folder, "x.conf", text);
}

/* The folder that is chosen. own, nova and unit are below the scratch folder; files: existing
 * files. */
static void test_choice(void **state)
{
        static const struct {
                const char *name, *config, *unit, *files, *chosen, *warning, *error;
        } cases[] = {
                { "nothing is set", "", NULL, NULL, DEFAULT_DIR, NULL, NULL },
                { "the unit has a folder", "", "unit", NULL, "unit", NULL, NULL },
                { "the unit has two", "", "unit:/other", NULL, "unit", NULL, NULL },
                { "state_dir is set", "[agent]\nstate_dir = FOLDER/own\n", "unit", NULL, "own",
                  NULL, NULL },
                { "Nova's folder", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit", NULL, "unit",
                  NULL, NULL },
                { "it holds Nova's identity only", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit",
                  "nova/compute_id unit/x", "unit", NULL, NULL },
                { "it holds a claim database", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit",
                  "nova/claim.sqlite", "nova", "Set state_dir = ", NULL },
                { "the folder of the unit is not there", "[DEFAULT]\nstate_path = FOLDER/nova\n",
                  "unit", "nova/x", "nova", "Set state_dir = ", NULL },
                { "and Nova has instances", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit",
                  "nova/instances/x", "unit", NULL, NULL },
                { "neither is there", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit", NULL, "unit",
                  NULL, NULL },
                { "and state_dir is set",
                  "[DEFAULT]\nstate_path = FOLDER/nova\n[agent]\nstate_dir = /own\n", "unit",
                  "nova/claim.sqlite", "/own", NULL, NULL },
                { "both hold one", "[DEFAULT]\nstate_path = FOLDER/nova\n", "unit",
                  "nova/claim.sqlite unit/claim.sqlite", NULL, NULL, "have a claim database" },
                { "another name of the database",
                  "[DEFAULT]\nstate_path = FOLDER/nova\nclaim_db = x.db\n", "unit",
                  "nova/claim.sqlite unit/x", "unit", NULL, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fixture *f = *state;
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_(config_freep) Config *c = NULL;
                char unit[300], chosen[300], *files = strdup(cases[i].files ?: ""), *rest = files,
                                             *file;
                Error error = ERROR_NULL;
                int r;

                write_config(f, cases[i].config, folder);
                while ((file = strsep(&rest, " ")))
                        if (*file)
                                scratch_write(folder, file, "x");
                free(files);
                snprintf(unit, sizeof(unit), "%s/%s", folder, cases[i].unit ?: "");
                if (cases[i].unit)
                        setenv("STATE_DIRECTORY", unit, true);
                else
                        unsetenv("STATE_DIRECTORY");
                r = load(f, &c, &error);
                unsetenv("STATE_DIRECTORY");
                if (r != (cases[i].error ? -EINVAL : 0))
                        fail_msg("%s: %d %s", cases[i].name, r, error.text);
                if (cases[i].error) {
                        assert_non_null(strstr(error.text, cases[i].error));
                        continue;
                }
                snprintf(chosen, sizeof(chosen), "%s%s%s", cases[i].chosen[0] == '/' ? "" : folder,
                         cases[i].chosen[0] == '/' ? "" : "/", cases[i].chosen);
                if (strcmp(c->state_dir, chosen) != 0)
                        fail_msg("%s: %s", cases[i].name, c->state_dir);
                if (cases[i].warning ? !strstr(f->warnings, cases[i].warning) : f->warnings[0])
                        fail_msg("%s: \"%s\"", cases[i].name, f->warnings);
        }
}

static void test_refused_elsewhere(void **state)
{
        expect_refused(*state, "[agent]\nstate_dir = x\n",
                       "x.conf:2: [agent] state_dir: \"x\": must be an absolute path");
        config_free(load_text(*state, ""));
}

TEST_MAIN_WITH(setup, teardown, test_choice, test_refused_elsewhere)

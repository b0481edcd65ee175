/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/service-access.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_CELL 4711 /* a user id without a name */

static void note(const char *text, void *userdata)
{
        snprintf(userdata, ERROR_TEXT_MAX, "%s", text);
}

static void test_unknown_user(void **state)
{
        ServiceRights rights = { 0 };
        Error error = ERROR_NULL;

        assert_int_equal(service_rights_find(&rights, "no-such-user-here", NULL, &error), -ENOENT);
        assert_string_equal(
                error.text,
                "The user no-such-user-here does not exist, so the access rights of the service were not checked");
        assert_int_equal(rights.n_groups, 0);
}

/* Root takes the rights of another user. Other users find only missing files. */
static void test_files_of_a_start(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *conf = scratch_path(folder, "x.conf"),
                            *ca = scratch_path(folder, "ca");
        _cleanup_(service_rights_done) ServiceRights rights = { 0 };
        bool root = geteuid() == 0;
        char words[ERROR_TEXT_MAX] = "";
        Config config = { .state_dir = folder,
                          .claim_db = (char *)"x.sqlite",
                          .provider_config_location = (char *)"/nonexistent",
                          .cafile = ca };
        Error error = ERROR_NULL;

        scratch_write(folder, "x.conf", "[agent]\n");
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(chmod(conf, 0600), 0);
        if (root)
                assert_int_equal(service_rights_find_id(&rights, NO_CELL, NO_CELL, NULL), 0);
        else
                rights.name = strdup("me");
        assert_int_equal(service_access_check_config(&rights, conf, &error), root ? -EACCES : 0);
        assert_int_equal(strstr(error.text, "x.conf: the service's user 4711 cannot read it: "
                                            "Permission denied") != NULL,
                         root);
        assert_int_equal(chmod(conf, 0644), 0);
        assert_int_equal(service_access_check_config(&rights, conf, NULL), 0);
        /* the state folder belongs to another user */
        error = ERROR_NULL;
        assert_int_equal(service_access_check_rest(&rights, &config, note, words, &error),
                         root ? -EACCES : 0);
        assert_int_equal(strstr(error.text, "[agent] state_dir: ") == error.text, root);
        assert_non_null(strstr(words, "[placement] cafile: "));
        assert_non_null(strstr(words, "cannot read it: No such file or directory"));
        /* the state folder now belongs to the service */
        scratch_write(folder, "ca", "x");
        assert_int_equal(chmod(ca, 0644), 0);
        assert_int_equal(root ? chown(folder, NO_CELL, NO_CELL) : 0, 0);
        words[0] = '\0';
        assert_int_equal(service_access_check_rest(&rights, &config, note, words, NULL), 0);
        assert_string_equal(words, "");
        assert_int_equal(root ? chown(folder, 0, 0) : 0, 0);
}

/* Root can read the credential, but the service does not receive it. */
static void test_credential_without_a_line_in_the_unit(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        const ServiceRights rights = { 0 }; /* those of the caller */
        char *gone = scratch_path(folder, "placement-token");
        Config config = { .state_dir = folder,
                          .claim_db = (char *)"x.sqlite",
                          .provider_config_location = (char *)"/nonexistent",
                          .credential_files = { .items = &gone, .n_items = 1 } };
        Error error = ERROR_NULL;

        assert_int_equal(service_access_check_rest(&rights, &config, NULL, NULL, &error), -ENOENT);
        assert_ptr_equal(strstr(error.text, "The unit has no LoadCredential= for this file: "),
                         error.text);
        assert_non_null(strstr(error.text, ": the service cannot read it: No such file"));
        free(gone);
}

TEST_MAIN(test_unknown_user, test_files_of_a_start, test_credential_without_a_line_in_the_unit)

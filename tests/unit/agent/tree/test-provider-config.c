/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/provider-config.h"
#include "base/log.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/fixtures/tree.h"

#define FILE_TEXT                                                                   \
        "meta: {schema_version: '1.0'}\n"                                           \
        "providers: [{identification: {uuid: $COMPUTE_NODE}, traits: {additional: " \
        "[CUSTOM_%s]}}]\n"

/* Runs one cycle of a daemon that was started for it. */
static void apply_from(const char *location, const char *state_dir, bool read_only,
                       ProviderTree *tree, const ProviderTree *base)
{
        _cleanup_(provider_config_freep) ProviderConfig *config = NULL;

        assert_int_equal(provider_config_new(&config, location, state_dir, "", read_only, NULL), 0);
        assert_int_equal(provider_config_apply(config, tree, base, true, NULL), 0);
}

static void apply(const char *folder, bool read_only, ProviderTree *tree)
{
        apply_from(folder, folder, read_only, tree, tree);
}

static bool has(const ProviderTree *tree, const char *trait)
{
        return string_set_contains(&tree->providers[0]->traits, trait);
}

static void write_yaml(const char *folder, const char *name, const char *trait)
{
        char text[256];

        snprintf(text, sizeof(text), FILE_TEXT, trait);
        scratch_write(folder, name, text);
}

static void test_g2_13_over_restarts(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");

        apply(folder, false, tree);
        write_yaml(folder, "a.yaml", "A");
        write_yaml(folder, "not-yaml.txt", "X");
        apply(folder, false, tree);
        assert_true(has(tree, "CUSTOM_A"));
        assert_false(has(tree, "CUSTOM_X"));
        write_yaml(folder, "a.yaml", "B");
        apply(folder, true, tree);
        assert_false(has(tree, "CUSTOM_A"));
        assert_true(has(tree, "CUSTOM_B"));
}

/* The first file wins. */
static void test_a12_files_in_order(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");

        log_set_level(LOG_ERR);
        write_yaml(folder, "b.yaml", "B");
        write_yaml(folder, "a.yaml", "A");
        apply(folder, false, tree);
        assert_true(has(tree, "CUSTOM_A"));
        assert_false(has(tree, "CUSTOM_B"));
}

/* A file or folder that cannot be read or parsed is not an absent one. No addition leaves, also
 * after a restart, until all files can be read. Other files are merged, also if they are new. A bad
 * entry affects no other, and a missing folder has no additions. */
static void test_a_bad_file_leaves_the_additions(void **state)
{
        static const char entry[] = "meta: {schema_version: '1.0'}\nproviders: [5]\n";
        static const struct {
                const char *name,
                        *text; /* text NULL: a folder; name NULL: no folder at the location */
                bool stays;
        } rows[] = {
                { "0.yaml", "{", true },    { "0.yaml", "", true },
                { "0.yaml", NULL, true },   { NULL, "a file at the location", true },
                { "0.yaml", entry, false }, { "0.yml", "{", false },
                { ".0.yaml", "{", false },  { NULL, NULL, false },
        };

        log_set_level(LOG_ERR);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_(provider_tree_freep) ProviderTree *base = make_tree("cn1 +COMPUTE_NODE"),
                                                            *tree = make_tree("cn1 +COMPUTE_NODE");
                _cleanup_free_ char *location = scratch_path(folder, "config"),
                                    *file = scratch_path(folder, "config/a.yaml");

                scratch_mkdir(folder, "config");
                write_yaml(folder, "config/a.yaml", "A");
                apply_from(location, folder, false, base, base);
                assert_true(has(base, "CUSTOM_A"));
                if (rows[i].name)
                        write_yaml(folder, "config/a.yaml", "B");
                else
                        assert_true(unlink(file) == 0 && rmdir(location) == 0);
                if (rows[i].name && rows[i].text)
                        scratch_write(location, rows[i].name, rows[i].text);
                else if (rows[i].name)
                        scratch_mkdir(location, rows[i].name);
                else if (rows[i].text)
                        scratch_write(folder, "config", rows[i].text);
                apply_from(location, folder, false, tree, base);
                if (has(tree, "CUSTOM_A") != rows[i].stays ||
                    has(tree, "CUSTOM_B") != (rows[i].name != NULL))
                        fail_msg("row %zu", i);
        }
}

/* A link without a target is a bad file. Good files are published on a new host, and again after
 * Placement has lost the provider. */
static void test_good_files_beside_a_bad_one(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *link = scratch_path(folder, "0.yaml"),
                            *file = scratch_path(folder, "a.yaml");
        _cleanup_(provider_tree_freep) ProviderTree *base = make_tree("cn1 +COMPUTE_NODE"),
                                                    *lost = make_tree("cn1 +COMPUTE_NODE");

        log_set_level(LOG_ERR);
        assert_int_equal(symlink("missing", link), 0);
        write_yaml(folder, "a.yaml", "A");
        apply_from(folder, folder, false, base, NULL);
        assert_true(has(base, "CUSTOM_A"));
        apply_from(folder, folder, false, lost, NULL);
        assert_true(has(lost, "CUSTOM_A"));
        assert_int_equal(unlink(file), 0);
        for (int i = 0; i < 2; i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");

                apply_from(folder, folder, false, tree, base);
                assert_true(has(tree, "CUSTOM_A"));
        }
        assert_int_equal(unlink(link), 0);
        apply_from(folder, folder, false, base, base);
        assert_false(has(base, "CUSTOM_A"));
}

static void test_corrupt_state(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");
        _cleanup_free_ char *aside = NULL;

        log_set_level(LOG_ERR);
        scratch_write(folder, "provider-config.json",
                      "{\"format\": \"compute-agent-additions/1\", \"added\": [1]}");
        write_yaml(folder, "a.yaml", "A");
        apply(folder, false, tree);
        assert_true(has(tree, "CUSTOM_A"));
        aside = scratch_read(folder, "provider-config.json.corrupt");
        assert_non_null(strstr(aside, "[1]"));
        aside = (free(aside), scratch_read(folder, "provider-config.json"));
        assert_non_null(strstr(aside, "CUSTOM_A"));
}

/* An unreadable file is not an absent one: the next write would replace it. */
static void test_an_unreadable_file_is_an_error(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_config_freep) ProviderConfig *config = NULL;
        Error error = ERROR_NULL;

        scratch_mkdir(folder, "provider-config.json");
        assert_int_equal(provider_config_new(&config, folder, folder, "", false, &error), -EISDIR);
        assert_non_null(strstr(error.text, "provider-config.json"));
}

/* A failed write of the additions is repeated, although they have not changed. */
static void test_a_failed_write_is_repeated(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");
        _cleanup_(provider_config_freep) ProviderConfig *config = NULL;
        _cleanup_free_ char *path = scratch_path(folder, "provider-config.json"), *text = NULL;

        log_set_level(LOG_ERR);
        assert_int_equal(provider_config_new(&config, folder, folder, "", false, NULL), 0);
        write_yaml(folder, "a.yaml", "A");
        scratch_mkdir(folder, "provider-config.json");
        assert_int_equal(provider_config_apply(config, tree, tree, true, NULL), 0);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(provider_config_apply(config, tree, tree, true, NULL), 0);
        text = scratch_read(folder, "provider-config.json");
        assert_non_null(text);
        assert_non_null(strstr(text, "CUSTOM_A"));
}

static void test_dry_run_writes_nothing(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 +COMPUTE_NODE");
        _cleanup_free_ char *path = scratch_path(folder, "provider-config.json");

        write_yaml(folder, "a.yaml", "A");
        apply(folder, true, tree);
        assert_true(has(tree, "CUSTOM_A"));
        assert_int_equal(access(path, F_OK), -1);
}

TEST_MAIN(test_g2_13_over_restarts, test_a12_files_in_order, test_a_bad_file_leaves_the_additions,
          test_good_files_beside_a_bad_one, test_corrupt_state, test_an_unreadable_file_is_an_error,
          test_a_failed_write_is_repeated, test_dry_run_writes_nothing)

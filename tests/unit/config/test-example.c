/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The installed example systemd/compute-agent.conf names each option of the table with its default,
 * and no other option. It can be used with the "#" before its options and without. */

#include "config/file.h"
#include "config/table.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define MDEV_SECTION    "mdev_nvidia-35"
#define PREPARE_SECTION "device_prepare NAME"
#define CLEAN_SECTION   "device_clean NAME"
#define SHAPES_SECTION  "device_shapes NAME"

static void on_warning(const char *text, void *userdata)
{
        fail_msg("%s", text);
}

/* Returns the example with each "#[section]" and "#option = value" in use. */
static char *uncomment(void)
{
        _cleanup_fclose_ FILE *in = fopen(EXAMPLE, "re");
        _cleanup_free_ char *line = NULL;
        char *text = NULL;
        size_t size = 0, n_text = 0;
        FILE *out = open_memstream(&text, &n_text);

        assert_non_null(in);
        assert_non_null(out);
        while (getline(&line, &size, in) > 0)
                fputs(line[0] == '#' && !strchr("# \n", line[1]) ? line + 1 : line, out);
        assert_int_equal(fclose(out), 0);
        return text;
}

static void test_example_is_valid(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_(config_settings_done) ConfigSettings file = {};
        _cleanup_(config_freep) Config *config = NULL;
        Error error = ERROR_NULL;

        scratch_link(folder, "x.conf", EXAMPLE);
        if (config_load(&config, path, on_warning, NULL, &error) < 0)
                fail_msg("%s", error.text);
        assert_false(config->has_placement);
        assert_int_equal(config_file_read(&file, EXAMPLE, NULL), 0);
        assert_int_equal(file.n_sections, 0);
        assert_int_equal(file.n_entries, 0);
}

/* The operator renames the section of the type. As it is, it would belong to a type that is not
 * enabled. The endpoint and the cards have no useful default. */
static void test_uncommented(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_free_ char *text = uncomment();
        _cleanup_(config_freep) Config *config = NULL;
        Error error = ERROR_NULL;

        scratch_write(folder, "x.conf", text);
        scratch_write(folder, "x.conf.d/needed.conf",
                      "[devices]\nenabled_mdev_types = nvidia-35\n"
                      "[placement]\nendpoint_override = http://placement/\n"
                      "[" PREPARE_SECTION "]\ndevice_addresses = 0000:c1:00.0\n"
                      "[pci]\nreport_in_placement = true\n[" CLEAN_SECTION
                      "]\ndevice_addresses = 0000:c2:00.0\nclean = reset@.service\n[" SHAPES_SECTION
                      "]\nresource_class = CUSTOM_GPU\nmembers = 0000:c3:00.0\npartitions = a=1\n");
        if (config_load(&config, path, on_warning, NULL, &error) < 0)
                fail_msg("%s", error.text);
        assert_true(config->has_placement);
        assert_int_equal(config->driver.host.n_mdev_types, 1);
        assert_int_equal(config->driver.host.n_prepares, 1);
        assert_int_equal(config->driver.host.n_cleans, 1);
        assert_int_equal(config->driver.host.n_shapes, 1);
        assert_null(config->keystone.auth_url);
}

static const ConfigEntry *find(const ConfigSettings *file, const ConfigOption *option)
{
        const char *section =
                strcmp(option->section, CONFIG_MDEV_SECTION) == 0 ? MDEV_SECTION : option->section;

        for (size_t i = 0; i < file->n_entries; i++)
                if (strcmp(file->entries[i].section, section) == 0 &&
                    strcmp(file->entries[i].key, option->key) == 0)
                        return &file->entries[i];
        return NULL;
}

/* Checks each option and returns their number. */
static size_t check_options(const ConfigSettings *file, const ConfigOption *options)
{
        size_t n = 0;

        for (const ConfigOption *o = options; o->key; o++) {
                const ConfigEntry *entry = find(file, o);

                if (o->type == CONFIG_UNUSED)
                        continue;
                if (!entry)
                        fail_msg("[%s] %s is missing", o->section, o->key);
                if (strcmp(entry->value, o->default_value ?: "") != 0)
                        fail_msg("[%s] %s = %s, but the default is %s", o->section, o->key,
                                 entry->value, o->default_value ?: "not set");
                n++;
        }
        return n;
}

static void test_every_option(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");
        _cleanup_free_ char *text = uncomment();
        _cleanup_(config_settings_done) ConfigSettings file = {};

        scratch_write(folder, "x.conf", text);
        assert_int_equal(config_file_read(&file, path, NULL), 0);
        assert_int_equal(check_options(&file, config_options) +
                                 check_options(&file, config_mdev_options) +
                                 check_options(&file, config_prepare_options) +
                                 check_options(&file, config_clean_options) +
                                 check_options(&file, config_shapes_options),
                         file.n_entries);
}

TEST_MAIN(test_example_is_valid, test_uncommented, test_every_option)

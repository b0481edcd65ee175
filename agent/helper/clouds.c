/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads one cloud of clouds.yaml and puts it in the place of the configured access to Keystone and
 * Placement. A Cloud has two parsed files, clouds.yaml and secure.yaml. A value of the second file
 * overrides that of the first, which must have the cloud. The values are copied into the options of
 * the configuration, with the same checks as for the configuration file, except "verify" and
 * "insecure". A value that is a list or a mapping counts as not set.
 *
 * All options about Keystone, the endpoint, the token and the TLS files are cleared before the
 * copy. Otherwise a password of the configuration file could be sent to the Keystone of the cloud.
 * The environment variables OS_* of a login are ignored. */

#include "agent/helper/clouds.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "agent/state/yaml-text.h"
#include "base/read-file.h"
#include "base/text.h"
#include "config/table.h"
#include "report/keystone/config.h"

/* A parsed file. */
typedef struct CloudsFile {
        char path[PATH_MAX];
        bool parsed;
        yaml_document_t document;
        yaml_node_t *cloud; /* the node of the cloud; NULL: the file lacks it */
} CloudsFile;

static void clouds_file_done(CloudsFile *file)
{
        if (file->parsed)
                yaml_document_delete(&file->document);
        file->parsed = false;
}

/* Files */

static bool is_file(const char *path)
{
        return access(path, F_OK) == 0;
}

/* Writes the folder number i of the openstack client's search to path; "": the folder is not known.
 * Returns false after the last one. */
static bool folder_at(size_t i, char path[static PATH_MAX])
{
        const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

        path[0] = '\0';
        if (i == 0)
                snprintf(path, PATH_MAX, ".");
        else if (i == 1 && config && config[0])
                snprintf(path, PATH_MAX, "%s/openstack", config);
        else if (i == 1 && home && home[0])
                snprintf(path, PATH_MAX, "%s/.config/openstack", home);
        else if (i == 2)
                snprintf(path, PATH_MAX, "/etc/openstack");
        return i <= 2;
}

/* Finds a file by its environment variable or in the folders. A file that the variable names is not
 * checked; the read reports it. */
static bool find_file(const char *variable, const char *name, char path[static PATH_MAX])
{
        static const char *const suffixes[] = { "yaml", "yml", "json" };
        const char *named = getenv(variable);
        char folder[PATH_MAX];

        if (named && named[0]) {
                snprintf(path, PATH_MAX, "%s", named);
                return true;
        }
        for (size_t i = 0; folder_at(i, folder); i++)
                for (size_t j = 0; folder[0] && j < ARRAY_SIZE(suffixes); j++)
                        if (snprintf(path, PATH_MAX, "%s/%s.%s", folder, name, suffixes[j]) <
                                    PATH_MAX &&
                            is_file(path))
                                return true;
        return false;
}

/* Reads and parses a file, and finds the cloud in it. A file without the cloud is not an error;
 * file->cloud is NULL then. */
static int read_clouds(CloudsFile *file, const char *cloud, Error *reterr)
{
        _cleanup_(text_free_secretp) char *text = NULL;
        size_t n;
        int r = read_file_text(file->path, YAML_TEXT_MAX_BYTES, &text, &n, NULL);

        if (r < 0)
                return error_setf(reterr, r, "%s: %s", file->path, strerror(-r));
        r = yaml_text_parse(text, n, &file->document, reterr);
        explicit_bzero(text, n); /* a secret can follow a NUL */
        if (r < 0)
                return error_prefixf(reterr, r, "%s", file->path);
        file->parsed = true;
        file->cloud = yaml_text_member(
                &file->document,
                yaml_text_member(&file->document, yaml_document_get_root_node(&file->document),
                                 "clouds"),
                cloud);
        return 0;
}

/* The cloud */

/* A cloud in both files. The second file overrides the first. */
typedef struct Cloud {
        CloudsFile files[2]; /* clouds.yaml and secure.yaml */
} Cloud;

static void cloud_done(Cloud *cloud)
{
        for (size_t i = 0; i < ARRAY_SIZE(cloud->files); i++)
                clouds_file_done(&cloud->files[i]);
}

/* Returns a value of the cloud, borrowed; NULL: not set. group NULL: a value of the cloud
 * itself. */
static const char *value_of(Cloud *cloud, const char *group, const char *key)
{
        for (size_t i = ARRAY_SIZE(cloud->files); i > 0; i--) {
                CloudsFile *file = &cloud->files[i - 1];
                const yaml_node_t *node = file->cloud;
                const char *text;

                if (node && group)
                        node = yaml_text_member(&file->document, node, group);
                text = node ? yaml_text_scalar(yaml_text_member(&file->document, node, key)) : NULL;
                if (text)
                        return text;
        }
        return NULL;
}

/* Reads both files. clouds.yaml must exist and have the cloud; secure.yaml is optional, unless its
 * variable names it. Rejects a cloud with a profile. */
static int load_cloud(Cloud *cloud, const char *name, Error *reterr)
{
        static const struct {
                const char *variable, *name;
        } files[] = {
                { "OS_CLIENT_CONFIG_FILE", "clouds" },
                { "OS_CLIENT_SECURE_FILE", "secure" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                if (!find_file(files[i].variable, files[i].name, cloud->files[i].path)) {
                        if (i == 0)
                                return error_setf(
                                        reterr, ENOENT,
                                        "There is no clouds.yaml in this folder, ~/.config/openstack or /etc/openstack");
                        continue;
                }
                int r = read_clouds(&cloud->files[i], name, reterr);

                if (r < 0)
                        return r;
        }
        if (!cloud->files[0].cloud)
                return error_setf(reterr, ENOENT, "%s: there is no cloud \"%.60s\"",
                                  cloud->files[0].path, name);
        if (value_of(cloud, NULL, "profile"))
                return error_setf(
                        reterr, EINVAL,
                        "%s: cloud \"%.60s\" has a profile, which is not supported. Write its auth_url here",
                        cloud->files[0].path, name);
        return 0;
}

/* The configuration */

static int set_option(Config *config, const char *key, const char *text, Error *reterr)
{
        const ConfigOption *option = config_find_option(config_options, "placement", key);
        int r = config_option_set(option, config, text, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", key) : 0;
}

/* Clears all options that Keystone or Placement would receive, so that no value of the
 * configuration file remains. */
static void clear_keystone(Config *config)
{
        static const char *const others[] = { "endpoint_override", "endpoint", "token", "cafile",
                                              "certfile",          "keyfile" };

        for (const ConfigOption *o = config_options; o->key; o++) {
                size_t from = offsetof(Config, keystone), to = from + sizeof(config->keystone);
                bool goes = o->offset >= from && o->offset < to && o->type != CONFIG_UNUSED;

                for (size_t j = 0; j < ARRAY_SIZE(others); j++)
                        goes |= strcmp(o->section, "placement") == 0 &&
                                strcmp(o->key, others[j]) == 0;
                if (goes)
                        config_option_done(o, config);
        }
}

/* Copies the members of "auth". They have the names of the options that [placement] auth_section
 * can move to another section (of_auth). The endpoint and auth_type are such options, but no
 * members of "auth". */
static int set_auth(Config *config, Cloud *cloud, Error *reterr)
{
        for (const ConfigOption *o = config_options; o->key; o++) {
                bool taken =
                        o->of_auth && o->type == CONFIG_STRING && strcmp(o->key, "endpoint") != 0;
                const char *text = taken ? value_of(cloud, "auth", o->key) : NULL;
                int r = text ? set_option(config, o->key, text, reterr) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Returns true if text is one of the words, without regard to case. NULL is none of them. */
static bool is_word(const char *text, const char *const words[static 3])
{
        for (size_t i = 0; text && i < 3; i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

/* Copies the other members of the cloud that have an option, with the defaults of the openstack
 * client. As there, "verify: false" or "insecure: true" switches the check of certificates off. */
static int set_rest(Config *config, Cloud *cloud, Error *reterr)
{
        static const struct {
                const char *key, *option, *otherwise;
        } keys[] = {
                { "auth_type", "auth_type", "password" },
                { "region_name", "region_name", NULL },
                { "interface", "interface", "public" },
                { "placement_endpoint_override", "endpoint_override", NULL },
                { "placement_service_type", "service_type", NULL },
                { "cacert", "cafile", NULL },
                { "cert", "certfile", NULL },
                { "key", "keyfile", NULL },
        };
        static const char *const yes[] = { "true", "yes", "on" }, *const no[] = { "false", "no",
                                                                                  "off" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const char *text = value_of(cloud, NULL, keys[i].key) ?: keys[i].otherwise;
                int r = text ? set_option(config, keys[i].option, text, reterr) : 0;

                if (r < 0)
                        return r;
        }
        config->reporter.http.insecure = is_word(value_of(cloud, NULL, "verify"), no) ||
                                         is_word(value_of(cloud, NULL, "insecure"), yes);
        return 0;
}

int clouds_apply(Config *config, const char *name, Error *reterr)
{
        _cleanup_(cloud_done) Cloud cloud = { 0 };
        const char *option = NULL;
        int r = load_cloud(&cloud, name, reterr);

        if (r < 0)
                return r;
        clear_keystone(config);
        r = set_auth(config, &cloud, reterr);
        if (r == 0)
                r = set_rest(config, &cloud, reterr);
        if (r == 0 && config->reporter.auth.kind > REPORTER_AUTH_ADMIN_TOKEN) {
                r = keystone_config_check(&config->keystone, config->reporter.auth.kind, &option,
                                          reterr);
                if (r < 0)
                        (void)error_prefixf(reterr, r, "%s", option);
        }
        if (r < 0)
                return error_prefixf(reterr, r, "%s: cloud \"%.60s\"", cloud.files[0].path, name);
        config->has_placement = true;
        config_lend_strings(config);
        return 0;
}

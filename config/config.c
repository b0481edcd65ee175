/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes a Config from the configuration files: config_load() finds, reads and expands the files
 * (search.h, settings.h), and config_make() sets the members. First each option of the table is set
 * alone. Then follow the steps that depend on several options: the state folder, the driver,
 * [mdev_TYPE], [pci], [device_prepare NAME], [device_clean NAME], [device_shapes NAME] and
 * [placement]. At the end the structs of other modules borrow the strings, and the driver's rules
 * are checked. Two programs need less: config_load_offline() leaves out the checks of [placement],
 * and config_load_hook() does only the part for [hook].
 *
 * Invariants: each value was checked when config_load() returns, so no other module checks it
 * again. A Config is made completely or not at all. A value from a credential wins over all files.
 * An error about a value in a file begins with its file and line. An error of the driver's rules
 * begins with those of the first option that it names and that a file sets. An error about a
 * missing option of Keystone begins with the place of auth_type, and one about another missing
 * option of [placement] with that of the section. Limit: [mdev_TYPE] sections are read only for the
 * types in enabled_mdev_types.
 *
 * Tests: tests/unit/config/test-config.c tests/unit/config/test-state-dir.c
 * tests/unit/config/test-auth.c */

#include "config/config.h"

#include "base/read-file.h"
#include "base/text.h"
#include "config/search.h"
#include "config/sections.h"
#include "config/settings.h"
#include "drivers/driver-config.h"
#include "report/keystone/config.h"
#include "report/session/nova-mode.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

#define CREDENTIAL_MAX_BYTES (16 * 1024)
#define CREDENTIAL_FOLDER    SYSCONFDIR "/compute-agent" /* without systemd */
#define SECTION_MAX          264 /* bytes of a section's name; the form of a type limits it */

static void free_type(HostMdevType *type)
{
        for (const ConfigOption *o = config_mdev_options; o->key; o++)
                config_option_done(o, type);
        free(type->type);
}

static void free_mdev_types(HostConfig *host)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                free_type(&host->mdev_types[i]);
        free(host->mdev_types);
        host->mdev_types = NULL;
        host->n_mdev_types = 0;
}

Config *config_free(Config *config)
{
        if (!config)
                return NULL;
        for (const ConfigOption *o = config_options; o->key; o++)
                config_option_done(o, config);
        free_mdev_types(&config->driver.host);
        config_sections_done(&config->driver.host);
        pci_specs_done(&config->driver.host.pci_specs);
        strings_free(config->files);
        string_set_done(&config->warnings);
        string_set_done(&config->credential_files);
        free(config);
        return NULL;
}

/* Sets a secret from the file of its credential. Returns 1 if it was set, 0 if there is no such
 * file. Newlines at the end of the file are not part of the value, and an empty file is an
 * error. */
static int set_from_credential(const ConfigOption *option, Config *config, const char *path,
                               Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        size_t n;
        int r;

        r = read_file_text(path, CREDENTIAL_MAX_BYTES, &text, &n, NULL);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_setf(reterr, r, "Cannot read %s: %s", path, strerror(-r));
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
                text[--n] = '\0';
        if (n == 0 || strlen(text) != n)
                r = error_setf(reterr, EINVAL, "%s", n == 0 ? "is empty" : "contains a NUL byte");
        else
                r = config_option_set(option, config, text, reterr);
        explicit_bzero(text, n);
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 1;
}

/* Sets an option from its credential. Returns 1 if there is one, 0 if not or if the option has no
 * credential. Without $CREDENTIALS_DIRECTORY, as in a terminal, it reads the file of that name in
 * CREDENTIAL_FOLDER, if the caller can read it. The path of such a file is added to
 * credential_files. */
static int try_credential(const ConfigOption *option, Config *config, Error *reterr)
{
        const char *folder = getenv("CREDENTIALS_DIRECTORY");
        bool given = folder && folder[0];
        _cleanup_free_ char *path = NULL;

        if (!option->credential)
                return 0;
        path = text_format("%s/%s", given ? folder : CREDENTIAL_FOLDER, option->credential);
        if (!path)
                return error_oom(reterr);
        if (!given && access(path, R_OK) < 0)
                return 0;
        if (!given && string_set_add(&config->credential_files, path) < 0)
                return error_oom(reterr);
        return set_from_credential(option, config, path, reterr);
}

/* Reads the entries of [pci] device_spec. Each entry is checked before the next one is read, so
 * that an error begins with the place of the faulty entry. */
static int load_pci_specs(Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigOption *option = config_find_option(config_options, "pci", "device_spec");
        HostConfig *host = &config->driver.host;
        _cleanup_free_ const ConfigEntry **list = NULL;
        size_t n;

        list = config_settings_list(settings, option, &n);
        if (!list)
                return error_oom(reterr);
        for (size_t i = 0; i < n; i++) {
                int r;

                if (list[i]->value[0] == '\0')
                        continue;
                r = pci_specs_add(&host->pci_specs, list[i]->value, reterr);
                if (r == 0)
                        r = pci_specs_check(&host->pci_specs, host->report_in_placement, reterr);
                if (r < 0)
                        return config_entry_prefix(list[i], r, reterr);
        }
        return 0;
}

/* Sets each option of a section from its credential, else from the files, else to its default.
 * section NULL: all sections. */
static int set_options(Config *config, ConfigSettings *settings, const char *section, Error *reterr)
{
        int r;

        for (const ConfigOption *o = config_options; o->key; o++) {
                if (section && strcmp(o->section, section) != 0)
                        continue;
                r = try_credential(o, config, reterr);
                if (r == 0)
                        r = config_set_from_settings(o, config, settings, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The state folder. */

/* Replaces the built-in folder by the first folder of $STATE_DIRECTORY, if its path is absolute. */
static int follow_unit(Config *config)
{
        const char *folders = getenv("STATE_DIRECTORY");
        char *folder;

        if (!folders || folders[0] != '/')
                return 0;
        folder = strndup(folders, strcspn(folders, ":"));
        if (!folder)
                return -ENOMEM;
        free(config->state_dir);
        config->state_dir = folder;
        return 0;
}

/* Returns 1 if the folder has a file of that name. With the name "" returns 1 if the folder exists.
 * Returns 0 if not, or -ENOMEM. */
static int has_file(const char *folder, const char *name)
{
        _cleanup_free_ char *path = text_format("%s/%s", folder, name);

        return path ? access(path, F_OK) == 0 : -ENOMEM;
}

/* Returns 1 if state_path can only be the agent's folder of an older configuration: state_path
 * exists and has no folder "instances" of Nova, and the folder in config->state_dir does not exist.
 * Returns 0 if not, or -ENOMEM. */
static int is_only_folder(const Config *config)
{
        int other = has_file(config->state_dir, ""), former = has_file(config->state_path, ""),
            nova = has_file(config->state_path, "instances");

        if (other < 0 || former < 0 || nova < 0)
                return -ENOMEM;
        return !other && former && !nova;
}

/* Chooses the state folder of the agent: [agent] state_dir, else the first folder of the unit's
 * StateDirectory= ($STATE_DIRECTORY), else /var/lib/compute-agent.
 *
 * Up to version 0.1 [DEFAULT] state_path named this folder. If a configuration still sets
 * state_path, but not state_dir, and state_path has a claim database, the agent uses state_path
 * with a warning. The same holds if is_only_folder() is true. It is an error if both state_path and
 * the folder that the agent would use otherwise have a claim database. Blocks on the disk. */
static int choose_state_dir(Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry = config_settings_find(settings, "DEFAULT", "state_path");
        int r, own, former;
        char *folder;

        if (config_settings_find(settings, "agent", "state_dir"))
                return 0;
        r = follow_unit(config);
        if (r < 0)
                return error_oom(reterr);
        if (!entry || strcmp(config->state_path, config->state_dir) == 0)
                return 0;
        former = has_file(config->state_path, config->claim_db);
        own = has_file(config->state_dir, config->claim_db);
        if (former < 0 || own < 0)
                return error_oom(reterr);
        if (former > 0 && own > 0)
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: [DEFAULT] state_path: both %s and %s have a claim database. Set [agent] state_dir to the right folder",
                        entry->file, entry->line, config->state_path, config->state_dir);
        if (former == 0)
                former = is_only_folder(config);
        if (former <= 0)
                return former < 0 ? error_oom(reterr) : 0;
        folder = strdup(config->state_path);
        if (!folder)
                return error_oom(reterr);
        free(config->state_dir);
        config->state_dir = folder;
        config_warn(
                settings,
                "%s:%u: [DEFAULT] state_path is now Nova's folder, but %s has files of the agent. Set state_dir = %s in [agent]",
                entry->file, entry->line, folder, folder);
        return 0;
}

/* Types of mediated devices. */

/* Finds the entry of an option in [mdev_TYPE]. device_addresses is also found in [vgpu_TYPE], the
 * old name of the section, if [mdev_TYPE] does not set it. */
static const ConfigEntry *find_entry(const ConfigSettings *settings, const char *type,
                                     const ConfigOption *option)
{
        char name[SECTION_MAX];
        const ConfigEntry *entry;

        snprintf(name, sizeof(name), "mdev_%s", type);
        entry = config_settings_find(settings, name, option->key);
        if (entry || strcmp(option->key, "device_addresses") != 0)
                return entry;
        snprintf(name, sizeof(name), "vgpu_%s", type);
        return config_settings_find(settings, name, option->key);
}

static const HostMdevType *find_type(const HostConfig *host, const char *type)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (strcasecmp(host->mdev_types[i].type, type) == 0)
                        return &host->mdev_types[i];
        return NULL;
}

/* Checks whether one of the first n addresses of the type is this one. */
static bool has_address(const HostMdevType *type, size_t n, const char *address)
{
        for (size_t i = 0; i < n && type->device_addresses[i]; i++)
                if (strcmp(type->device_addresses[i], address) == 0)
                        return true;
        return false;
}

/* Checks whether both types can list one device. That needs a PCI address and different resource
 * classes: the virtual functions of such a card can have different types. Whether the card supports
 * that is known only after a poll (drivers/verify.h). */
static bool can_share(const HostMdevType *a, const HostMdevType *b, const char *address)
{
        return address[0] != '/' && strcmp(a->mdev_class, b->mdev_class) != 0;
}

/* Writes PCI addresses in small letters, as libvirt does. An address must appear only once in a
 * type, and in several types only if can_share() permits it. */
static int check_addresses(const HostConfig *host, HostMdevType *type, Error *reterr)
{
        for (size_t i = 0; type->device_addresses && type->device_addresses[i]; i++) {
                char *address = type->device_addresses[i];

                for (char *c = address; address[0] != '/' && *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (has_address(type, i, address))
                        return error_setf(reterr, EINVAL, "%s is listed twice", address);
                for (size_t j = 0; j < host->n_mdev_types; j++)
                        if (host->mdev_types[j].device_addresses &&
                            has_address(&host->mdev_types[j], SIZE_MAX, address) &&
                            !can_share(&host->mdev_types[j], type, address))
                                return error_setf(
                                        reterr, EINVAL,
                                        "%s already belongs to the type %s, which has the same mdev_class",
                                        address, host->mdev_types[j].type);
        }
        return 0;
}

/* Sets the options of a type from its section, or to their defaults. */
static int load_type(const Config *config, const ConfigSettings *settings, HostMdevType *type,
                     Error *reterr)
{
        const ConfigEntry *addresses;
        int r;

        for (const ConfigOption *o = config_mdev_options; o->key; o++) {
                r = config_set_from_entry(o, type, find_entry(settings, type->type, o), reterr);
                if (r < 0)
                        return r;
        }
        r = check_addresses(&config->driver.host, type, reterr);
        addresses = find_entry(settings, type->type, config_mdev_options);
        if (r < 0 && addresses)
                return config_entry_prefix(addresses, r, reterr);
        return r;
}

static bool takes_other_devices(const HostMdevType *type)
{
        return !type->device_addresses || !type->device_addresses[0];
}

/* Returns the first type without addresses, or NULL. Borrowed. */
static const HostMdevType *find_default(const HostConfig *host)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (takes_other_devices(&host->mdev_types[i]))
                        return &host->mdev_types[i];
        return NULL;
}

/* Reads a type and appends it to the list, which has space for all enabled types. A second type
 * without addresses is not appended. */
static int add_type(Config *config, const ConfigSettings *settings, const char *name, Error *reterr)
{
        _cleanup_(free_type) HostMdevType type = {};
        const HostMdevType *fallback;
        int r;

        type.type = strdup(name);
        if (!type.type)
                return error_oom(reterr);
        r = load_type(config, settings, &type, reterr);
        if (r < 0)
                return r;

        fallback = find_default(&config->driver.host);
        if (fallback && takes_other_devices(&type)) {
                config_warn(
                        settings,
                        "[mdev_%.59s] device_addresses is not set, but the type %.64s already takes all other devices, ignoring the type",
                        name, fallback->type);
                return 0;
        }
        config->driver.host.mdev_types[config->driver.host.n_mdev_types++] = type;
        type = (HostMdevType){};
        return 0;
}

static bool is_enabled(const Config *config, const char *type)
{
        for (char **t = config->enabled_mdev_types; t && *t; t++)
                if (strcasecmp(*t, type) == 0)
                        return true;
        return false;
}

/* Warns about sections of types that are not enabled. */
static void warn_not_enabled(const Config *config, const ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];
                const char *type = config_section_name(section->name, config_mdev_options);

                if (type && !is_enabled(config, type))
                        config_warn(
                                settings,
                                "%s:%u: [devices] enabled_mdev_types does not list the type of [%.64s], ignoring",
                                section->file, section->line, section->name);
        }
}

/* Reads the sections [mdev_TYPE] by Nova's rules (facts C4). A type without addresses takes all
 * remaining devices. A second such type is ignored with a warning. */
static int load_mdev_types(Config *config, const ConfigSettings *settings, Error *reterr)
{
        size_t n = 0;
        int r;

        warn_not_enabled(config, settings);
        for (char **t = config->enabled_mdev_types; t && *t; t++)
                n++;
        if (n == 0)
                return 0;
        config->driver.host.mdev_types = calloc(n, sizeof(HostMdevType));
        if (!config->driver.host.mdev_types)
                return error_oom(reterr);

        for (char **t = config->enabled_mdev_types; *t; t++) {
                if (find_type(&config->driver.host, *t))
                        continue;
                r = add_type(config, settings, *t, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Checks of several options. */

/* Completes the options of the agent: the log level of "debug", [hook] as one word, and the short
 * name of the driver. Rejects compute_driver = static without [static] path. */
static int finish_agent(Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *driver = config_settings_find(settings, "DEFAULT", "compute_driver");

        if (config->debug && !config_settings_find(settings, "agent", "log_level"))
                config->log_level = LOG_DEBUG;
        if (!config->hook_enabled)
                config->hook = "";
        else
                config->hook = config->hook_when_away == CONFIG_HOOK_DENY ? "deny" : "allow";
        if (strcmp(config->compute_driver, "libvirt.LibvirtDriver") == 0)
                config->compute_driver[strlen("libvirt")] = '\0';
        if (strcmp(config->compute_driver, "static") == 0 && !config->driver.static_path && driver)
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: compute_driver = static needs [static] path, the JSON file of a host",
                        driver->file, driver->line);
        return 0;
}

/* Finds the entry of the option whose name comes first in the words, among the options that a file
 * sets. NULL: the words name none of them. */
static const ConfigEntry *find_named(const ConfigSettings *settings, const char *words)
{
        const ConfigEntry *ret = NULL;
        const char *first = NULL;

        for (const ConfigOption *o = config_options; o->key; o++) {
                const char *place = strstr(words, o->key);
                const ConfigEntry *entry;

                if (!place || (first && place >= first))
                        continue;
                entry = config_settings_find_option(settings, o);
                if (entry) {
                        first = place;
                        ret = entry;
                }
        }
        return ret;
}

/* Checks the rules that hold for every driver (driver_config_check()). Before the words of an error
 * it puts the place of the first option that they name and that a file sets. */
static int check_driver(const Config *config, const ConfigSettings *settings, Error *reterr)
{
        Error error = ERROR_NULL;
        int r = driver_config_check(&config->driver.host, &error);
        const ConfigEntry *entry;

        if (r >= 0)
                return 0;
        entry = find_named(settings, error.text);
        return entry ? error_setf(reterr, -r, "%s:%u: %s", entry->file, entry->line, error.text)
                     : error_setf(reterr, -r, "%s", error.text);
}

/* Warns about vcpu_pin_set, which Nova has deprecated. */
static void warn_old_options(const ConfigSettings *settings)
{
        const ConfigEntry *entry = config_settings_find(settings, "DEFAULT", "vcpu_pin_set");

        if (entry && entry->value[0])
                config_warn(
                        settings,
                        "%s:%u: vcpu_pin_set is deprecated. Use [compute] cpu_shared_set or cpu_dedicated_set",
                        entry->file, entry->line);
}

static const ConfigEntry *find_of_placement(const ConfigSettings *settings, const char *key)
{
        return config_settings_find_option(settings,
                                           config_find_option(config_options, "placement", key));
}

/* Checks the options of Keystone. The place of an error is the option's entry, else that of
 * auth_type. */
static int check_keystone(const Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry;
        const char *option = NULL;
        int r = keystone_config_check(&config->keystone, config->reporter.auth.kind, &option,
                                      reterr);

        if (r == 0)
                return 0;
        entry = find_of_placement(settings, option);
        if (!entry)
                entry = find_of_placement(settings, "auth_type");
        if (!entry)
                return error_prefixf(reterr, r, "[placement] %s", option);
        return error_prefixf(reterr, r, "%s:%u: [%s] %s", entry->file, entry->line, entry->section,
                             option);
}

/* Checks that the authentication has all options that auth_type needs. The form of each value was
 * checked before. place: "FILE:LINE" of the section. */
static int check_placement(const Config *config, const ConfigSettings *settings, const char *place,
                           Error *reterr)
{
        bool named = find_of_placement(settings, "auth_type");
        ReporterAuth auth = config->reporter.auth.kind;

        if (!named && config->keystone.auth_url)
                return error_setf(
                        reterr, EINVAL,
                        "%s: [placement] auth_url is set, but auth_type is not. Set it to password or v3applicationcredential",
                        place);
        if (auth != REPORTER_AUTH_NONE && auth != REPORTER_AUTH_ADMIN_TOKEN)
                return check_keystone(config, settings, reterr);
        if (!config->placement_endpoint)
                return error_setf(
                        reterr, EINVAL,
                        "%s: [placement] endpoint_override is not set. The auth_type %s needs it (http://HOST…, https://HOST… or unix:///PATH)",
                        place, auth == REPORTER_AUTH_NONE ? "none" : "admin_token");
        if (auth == REPORTER_AUTH_ADMIN_TOKEN && !config->placement_token)
                return error_setf(
                        reterr, EINVAL,
                        "%s: [placement] token is not set, and there is no credential placement-token. The auth_type admin_token needs one of them. Restart the service after you add LoadCredential= to the unit",
                        place);
        return 0;
}

/* Completes [placement]: endpoint is used if endpoint_override is not set. Without the section the
 * agent is standalone. offline: no request is sent, so nothing is checked. */
static int finish_placement(Config *config, const ConfigSettings *settings, bool offline,
                            Error *reterr)
{
        const ConfigSection *section = config_settings_find_section(settings, "placement");
        _cleanup_free_ char *place = NULL;

        if (!config->placement_endpoint)
                config->placement_endpoint = TAKE_PTR(config->placement_fallback);
        config->has_placement = section;
        if (!section || offline)
                return 0;
        place = text_format("%s:%u", section->file, section->line);
        if (!place)
                return error_oom(reterr);
        if (config->reporter.http.insecure)
                config_warn(
                        settings,
                        "%s: [placement] insecure = true: the server's certificate is not verified",
                        place);
        return check_placement(config, settings, place, reterr);
}

bool config_leaves_unclean(const Config *config)
{
        return config->has_placement &&
               nova_mode_refuses(config->reporter.nova, NOVA_ACTION_RESERVE);
}

/* Warns if the mode of [agent] nova prevents all cleaning. */
static void warn_left_unclean(const Config *config, const ConfigSettings *settings)
{
        if (config->driver.host.n_cleans > 0 && config_leaves_unclean(config))
                config_warn(
                        settings,
                        "No device of [device_clean NAME] is cleaned, because [agent] nova = %s forbids its reservation. Its next guest gets it as the last one left it. Set [agent] nova to beside or top, or remove the section",
                        nova_mode_to_text(config->reporter.nova));
}

/* Returns when the agent leaves local DISK_GB to a shared storage. This is SHARING_USE_NEVER in
 * each mode of [agent] nova in which the agent does not write the tree. */
static SharingUse choose_disk_use(const Config *config)
{
        static const SharingUse uses[] = {
                [HOST_LOCAL_DISK_AUTO] = SHARING_USE_WITH_POOL,
                [HOST_LOCAL_DISK_YES] = SHARING_USE_NEVER,
                [HOST_LOCAL_DISK_NO] = SHARING_USE_ALWAYS,
        };

        return nova_mode_refuses(config->reporter.nova, NOVA_ACTION_PUBLISH)
                       ? SHARING_USE_NEVER
                       : uses[config->driver.host.report_local_disk];
}

void config_lend_strings(Config *config)
{
        config->reporter.disk_use = choose_disk_use(config);
        config->reporter.http.endpoint = config->placement_endpoint;
        config->reporter.auth.token = config->placement_token;
        config->reporter.auth.keystone = &config->keystone;
        config->reporter.http.cafile = config->cafile;
        config->reporter.http.certfile = config->certfile;
        config->reporter.http.keyfile = config->keyfile;
        config->reporter.http.user_agent = "compute-agent/" PACKAGE_VERSION;
}

/* Makes a Config from settings whose references are replaced. The order of the steps matters,
 * because later steps use members that earlier ones set. */
static int config_make(Config **ret, ConfigSettings *settings, bool offline, Error *reterr)
{
        _cleanup_(config_freep) Config *config = calloc(1, sizeof(Config));
        int r;

        if (!config)
                return error_oom(reterr);
        r = set_options(config, settings, NULL, reterr);
        if (r >= 0)
                r = choose_state_dir(config, settings, reterr);
        if (r >= 0)
                r = finish_agent(config, settings, reterr);
        if (r < 0)
                return r;
        warn_old_options(settings);
        r = load_mdev_types(config, settings, reterr);
        if (r >= 0)
                r = load_pci_specs(config, settings, reterr);
        if (r >= 0)
                r = config_load_sections(&config->driver.host, settings, reterr);
        if (r >= 0)
                r = finish_placement(config, settings, offline, reterr);
        if (r < 0)
                return r;
        warn_left_unclean(config, settings);
        config_lend_strings(config);
        r = check_driver(config, settings, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(config);
        return 0;
}

static int read_files(ConfigSettings *settings, char *const paths[], Error *reterr)
{
        int r = 0;

        for (char *const *path = paths; *path && r >= 0; path++)
                r = config_file_read(settings, *path, reterr);
        return r;
}

int config_load_hook(Config **ret, const char *file, Error *reterr)
{
        _cleanup_(config_settings_done) ConfigSettings settings = {};
        _cleanup_(config_freep) Config *config = calloc(1, sizeof(Config));
        int r;

        if (!config)
                return error_oom(reterr);
        r = config_search(NULL, file, NULL, NULL, &config->files, reterr);
        if (r >= 0)
                r = read_files(&settings, config->files, reterr);
        if (r >= 0)
                r = config_expand(&settings, "hook", reterr);
        if (r >= 0)
                r = set_options(config, &settings, "hook", reterr);
        if (r >= 0)
                *ret = TAKE_PTR(config);
        return r;
}

/* Receives the warnings of config_load(): stores each one and passes it to the caller's
 * function. */
typedef struct Collector {
        StringSet texts;
        ConfigWarning warning;
        void *userdata;
        bool failed; /* memory ran out for a warning */
} Collector;

static void collector_done(Collector *collector)
{
        string_set_done(&collector->texts);
}

static void collect(const char *text, void *userdata)
{
        Collector *collector = userdata;

        collector->failed |= string_set_add(&collector->texts, text) < 0;
        if (collector->warning)
                collector->warning(text, collector->userdata);
}

/* Follows [placement] auth_section, the reference of keystoneauth: the options of authentication
 * are read from that section, which can belong to another service. Returns -EINVAL with words if
 * there is no such section. */
static int follow_auth(ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry = config_settings_find(settings, "placement", "auth_section");

        if (!entry || entry->value[0] == '\0')
                return 0;
        if (!config_settings_find_section(settings, entry->value))
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: [placement] auth_section: the section [%.64s] does not exist",
                        entry->file, entry->line, entry->value);
        settings->auth_section = strdup(entry->value);
        return settings->auth_section ? 0 : error_oom(reterr);
}

static int load(Config **ret, const char *file, ConfigWarning warning, void *userdata, bool offline,
                Error *reterr)
{
        _cleanup_(collector_done)
                Collector collector = { .warning = warning, .userdata = userdata };
        _cleanup_(config_settings_done)
                ConfigSettings settings = { .warning = collect, .userdata = &collector };
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(strings_freep) char **paths = NULL;
        size_t n_ignored;
        int r;

        r = config_search(NULL, file, collect, &collector, &paths, reterr);
        if (r >= 0)
                r = read_files(&settings, paths, reterr);
        if (r >= 0)
                r = follow_auth(&settings, reterr);
        if (r >= 0)
                r = config_expand(&settings, NULL, reterr);
        if (r < 0)
                return r;
        n_ignored = config_warn_entries(&settings);
        r = config_make(&config, &settings, offline, reterr);
        if (r < 0)
                return r;
        if (collector.failed)
                return error_oom(reterr);
        config->files = TAKE_PTR(paths);
        config->n_ignored = n_ignored;
        config->warnings = TAKE_STRUCT(collector.texts);
        *ret = TAKE_PTR(config);
        return 0;
}

int config_load(Config **ret, const char *file, ConfigWarning warning, void *userdata,
                Error *reterr)
{
        return load(ret, file, warning, userdata, false, reterr);
}

int config_load_offline(Config **ret, const char *file, Error *reterr)
{
        return load(ret, file, NULL, NULL, true, reterr);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of all options, and the functions that set one of them from its text.
 *
 * A row has the section, name, old names, type and default of an option. It also has the limits or
 * the form of the value, the allowed values in words, and the offset of the member. The member is
 * in Config, or in the struct of the section's kind. The macros below are the usual kinds of rows.
 * Invariants: a text that is not allowed never reaches a member. A secret is wiped when it is
 * freed, and no message quotes it. Types of mediated devices, groups of cards, groups of cleaned
 * devices and sets of devices have tables of their own, because each has a struct of its own.
 * Limits and forms are those of single values. Rules about several options are in config.c and
 * sections.c. Texts and lists without a form take any text here. Later config.c parses device_spec,
 * sections.c parses partitions, and driver_config_check() checks lists of CPUs and
 * reserved_huge_pages.
 *
 * Tests: tests/unit/config/test-config.c tests/unit/config/test-example.c */

#include "config/table.h"

#include "base/secret.h"
#include "base/text.h"
#include "config/value.h"

#include <string.h>
#include <strings.h>
#include <syslog.h>

#define DEFAULT_POLL_INTERVAL_SEC 60

/* The words of each enumeration, with their values. Words of the same value are synonyms. */
static const ConfigWord log_levels[] = {
        { "debug", LOG_DEBUG },   { "info", LOG_INFO },
        { "notice", LOG_NOTICE }, { "warning", LOG_WARNING },
        { "err", LOG_ERR },       { "error", LOG_ERR },
        { "crit", LOG_CRIT },     {},
};

static const ConfigWord claim_modes[] = {
        { "auto", CLAIM_MODE_AUTO },
        { "verify", CLAIM_MODE_VERIFY },
        { "write", CLAIM_MODE_WRITE },
        { 0 },
};

static const ConfigWord nova_modes[] = {
        { "none", NOVA_NONE },
        { "observe", NOVA_OBSERVE },
        { "beside", NOVA_BESIDE },
        { "top", NOVA_TOP },
        {},
};

/* The words of numa_in_placement. It was a boolean in an earlier version, so all words of a boolean
 * are accepted. */
static const ConfigWord numa_forms[] = {
        { "false", HOST_NUMA_FLAT }, { "true", HOST_NUMA_CELLS },
        { "0", HOST_NUMA_FLAT },     { "1", HOST_NUMA_CELLS },
        { "no", HOST_NUMA_FLAT },    { "yes", HOST_NUMA_CELLS },
        { "off", HOST_NUMA_FLAT },   { "on", HOST_NUMA_CELLS },
        { "root", HOST_NUMA_ROOT },  {},
};

static const ConfigWord local_disks[] = {
        { "auto", HOST_LOCAL_DISK_AUTO },
        { "yes", HOST_LOCAL_DISK_YES },
        { "no", HOST_LOCAL_DISK_NO },
        {},
};

static const ConfigWord startup_failures[] = {
        { "degraded", CONFIG_STARTUP_DEGRADED },
        { "exit", CONFIG_STARTUP_EXIT },
        {},
};

static const ConfigWord hook_aways[] = {
        { "allow", CONFIG_HOOK_ALLOW },
        { "deny", CONFIG_HOOK_DENY },
        {},
};

static const ConfigWord auth_types[] = {
        { "none", REPORTER_AUTH_NONE },
        { "admin_token", REPORTER_AUTH_ADMIN_TOKEN },
        { "password", REPORTER_AUTH_PASSWORD },
        { "v3password", REPORTER_AUTH_PASSWORD },
        { "v3applicationcredential", REPORTER_AUTH_V3APPLICATIONCREDENTIAL },
        {},
};

static const ConfigWord virt_types[] = {
        { "kvm", HOST_VIRT_KVM },
        { "qemu", HOST_VIRT_QEMU },
        { "lxc", HOST_VIRT_LXC },
        { "parallels", HOST_VIRT_PARALLELS },
        {},
};

static const ConfigWord cpu_modes[] = {
        { "host-model", HOST_CPU_HOST_MODEL },
        { "host-passthrough", HOST_CPU_HOST_PASSTHROUGH },
        { "custom", HOST_CPU_CUSTOM },
        { "none", HOST_CPU_NONE },
        {},
};

static const ConfigWord images_types[] = {
        { "default", HOST_IMAGES_FILES }, { "raw", HOST_IMAGES_FILES },
        { "flat", HOST_IMAGES_FILES },    { "qcow2", HOST_IMAGES_FILES },
        { "ploop", HOST_IMAGES_FILES },   { "lvm", HOST_IMAGES_LVM },
        { "rbd", HOST_IMAGES_RBD },       {},
};

/* Begins the row of an option that is a member of Config. */
#define OPTION(s, k, t, m) .section = s, .key = k, .type = t, .offset = offsetof(Config, m)

/* The macros of the other types. value: the default as in a file; NULL: none. words_: the allowed
 * values in a sentence. */
#define BOOL(s, k, m, value)                                                                     \
        {                                                                                        \
                OPTION(s, k, CONFIG_BOOL, m), .default_value = value, .allowed = "true or false" \
        }
/* A whole number. The limits are in the unit of the file, before a conversion to microseconds. */
#define NUMBER(s, k, t, m, value, from, to)                                            \
        {                                                                              \
                OPTION(s, k, t, m), .default_value = value, .min = from, .max = to,    \
                                    .allowed = "a whole number from " #from " to " #to \
        }
#define RESERVED(k, m, value) NUMBER("DEFAULT", k, CONFIG_U64, m, value, 0, 2147483647)
/* An allocation ratio; NULL as its default means that it is not set. */
#define RATIO(k, m, value, from)                                         \
        {                                                                \
                OPTION("DEFAULT", k, CONFIG_DOUBLE, m),                  \
                        .default_value = value, .min = from, .max = 1e6, \
                        .allowed = "a number from " #from " to 1000000"  \
        }
#define WORD(s, k, m, value, all, words_)                                           \
        {                                                                           \
                OPTION(s, k, CONFIG_ENUM, m), .default_value = value, .words = all, \
                                              .allowed = words_                     \
        }
#define TEXT(s, k, m, value, check, words_)                                            \
        {                                                                              \
                OPTION(s, k, CONFIG_STRING, m), .default_value = value, .form = check, \
                                                .allowed = words_                      \
        }
#define PATH(s, k, m, value)                                                                      \
        {                                                                                         \
                OPTION(s, k, CONFIG_STRING, m), .default_value = value, .form = CONFIG_FORM_PATH, \
                                                .allowed = "an absolute path"                     \
        }
#define LIST(s, k, old_name, m, check, words_)                                              \
        {                                                                                   \
                OPTION(s, k, CONFIG_LIST, m), .old = { { NULL, old_name } }, .form = check, \
                                              .allowed = words_                             \
        }
/* A list of CPUs. Its syntax is checked by the driver's configuration check. */
#define CPUS(s, k, m)                                                                           \
        {                                                                                       \
                OPTION(s, k, CONFIG_STRING, m), .allowed = "a list of CPUs such as 4-12,^8,15", \
        }
/* A secret of [placement], also found as a credential of that name. */
#define SECRET(k, m, check, words_, name)                                                   \
        {                                                                                   \
                OPTION("placement", k, CONFIG_STRING, m), .form = check, .allowed = words_, \
                                                          .secret = true, .of_auth = true,  \
                                                          .credential = name                \
        }
/* An option of Keystone. auth: auth_section applies to it. */
#define KEYSTONE(k, old_name, m, auth)                                                        \
        {                                                                                     \
                OPTION("placement", k, CONFIG_STRING, keystone.m),                            \
                        .old = { { NULL, old_name } }, .allowed = "any text", .of_auth = auth \
        }
/* An option that Nova's [placement] has and this agent ignores. */
#define UNUSED(k)                                                                              \
        {                                                                                      \
                .section = "placement", .key = k, .type = CONFIG_UNUSED, .allowed = "any text" \
        }

#define HTTP_WORDS     "http://HOST… or https://HOST… without user name, query and fragment"
#define ENDPOINT_WORDS "unix:///PATH, or " HTTP_WORDS

/* The options of Config, by section. The example systemd/compute-agent.conf has the same sections
 * in the same order. */
const ConfigOption config_options[] = {
        PATH("DEFAULT", "state_path", state_path, "/var/lib/nova"),
        TEXT("DEFAULT", "claim_db", claim_db, "claim.sqlite", CONFIG_FORM_FILE_BELOW,
             "the path of a file, relative to [agent] state_dir"),
        PATH("DEFAULT", "instances_path", driver.host.instances_path, "$state_path/instances"),
        TEXT("DEFAULT", "host", host, "", CONFIG_FORM_HOST_NAME,
             "a name of up to 255 printable characters without spaces"),
        TEXT("DEFAULT", "compute_driver", compute_driver, "libvirt", CONFIG_FORM_DRIVER_NAME,
             "libvirt, libvirt.LibvirtDriver, linux or static"),
        BOOL("DEFAULT", "debug", debug, "false"),
        NUMBER("DEFAULT", "claim_expiry_time", CONFIG_SECONDS, claim_expiry_usec, "300", 0,
               2147483647),
        { OPTION("DEFAULT", "update_resources_interval", CONFIG_INTERVAL, update_interval_usec),
          .default_value = "0", .min = -2147483647, .max = 2147483647,
          .allowed = "a whole number of seconds up to 2147483647, 0 for 60, or -1 for never" },
        RESERVED("reserved_host_cpus", driver.host.reserved_host_cpus, "0"),
        RESERVED("reserved_host_memory_mb", driver.host.reserved_host_memory_mb, "512"),
        RESERVED("reserved_host_disk_mb", driver.host.reserved_host_disk_mb, "0"),
        { OPTION("DEFAULT", "reserved_huge_pages", CONFIG_MULTI, driver.host.reserved_huge_pages),
          .allowed = "of the form node:0,size:2048,count:64" },
        CPUS("DEFAULT", "vcpu_pin_set", driver.host.vcpu_pin_set),
        BOOL("DEFAULT", "force_raw_images", driver.host.force_raw_images, "true"),
        RATIO("cpu_allocation_ratio", driver.host.cpu_allocation_ratio, NULL, 0),
        RATIO("ram_allocation_ratio", driver.host.ram_allocation_ratio, NULL, 0),
        RATIO("disk_allocation_ratio", driver.host.disk_allocation_ratio, NULL, 0),
        RATIO("initial_cpu_allocation_ratio", driver.host.initial_cpu_allocation_ratio, "4.0",
              0.001),
        RATIO("initial_ram_allocation_ratio", driver.host.initial_ram_allocation_ratio, "1.0",
              0.001),
        RATIO("initial_disk_allocation_ratio", driver.host.initial_disk_allocation_ratio, "1.0",
              0.001),

        PATH("compute", "provider_config_location", provider_config_location,
             "/etc/nova/provider_config/"),

        PATH("agent", "state_dir", state_dir, LOCALSTATEDIR "/lib/compute-agent"),
        NUMBER("agent", "device_settle_sec", CONFIG_SECONDS, device_settle_usec, "30", 0, 3600),
        NUMBER("agent", "device_hold_sec", CONFIG_SECONDS, device_hold_usec, "30", 0, 3600),
        NUMBER("agent", "quiet_interval_max_sec", CONFIG_SECONDS, quiet_max_usec, "240", 0, 600),
        NUMBER("agent", "start_jitter_sec", CONFIG_SECONDS, start_jitter_usec, "5", 0, 3600),
        WORD("agent", "log_level", log_level, "info", log_levels,
             "debug, info, notice, warning, err or crit"),
        TEXT("agent", "owner_trait", driver.host.owner_trait, "OWNER_NOVA", CONFIG_FORM_TRAIT,
             "the name of a trait (up to 255 of A-Z, 0-9 and _), or empty"),
        PATH("agent", "metrics_file", metrics_file, NULL),
        LIST("agent", "renamed_resource_classes", NULL, driver.host.renamed_classes,
             CONFIG_FORM_RENAMING, "a comma-separated list of CUSTOM_OLD:NEW pairs"),
        NUMBER("agent", "reshape_timeout", CONFIG_SECONDS, reshape_patience_usec, "300", 1, 86400),
        NUMBER("agent", "heal_each_cycles", CONFIG_U64, heal_cycles, "0", 0, 2147483647),
        WORD("agent", "claim_mode", claim_mode, "auto", claim_modes, "auto, verify or write"),
        LIST("agent", "foreign_traits", NULL, foreign_traits, CONFIG_FORM_TRAIT,
             "a comma-separated list of traits"),
        WORD("agent", "nova", reporter.nova, "none", nova_modes, "none, observe, beside or top"),
        WORD("agent", "on_startup_failure", on_startup_failure, "degraded", startup_failures,
             "degraded or exit"),

        BOOL("hook", "enabled", hook_enabled, "false"),
        NUMBER("hook", "timeout", CONFIG_SECONDS, hook_timeout_usec, "10", 1, 300),
        WORD("hook", "when_agent_is_away", hook_when_away, "allow", hook_aways, "allow or deny"),

        CPUS("compute", "cpu_shared_set", driver.host.cpu_shared_set),
        CPUS("compute", "cpu_dedicated_set", driver.host.cpu_dedicated_set),
        WORD("compute", "numa_in_placement", driver.host.numa_in_placement, "false", numa_forms,
             "true, false or root"),
        WORD("compute", "report_local_disk", driver.host.report_local_disk, "auto", local_disks,
             "auto, yes or no"),
        LIST("compute", "image_type_exclude_list", NULL, driver.host.image_type_exclude_list,
             CONFIG_FORM_WORD, "a comma-separated list such as vmdk, raw"),

        { OPTION("libvirt", "connection_uri", CONFIG_STRING, driver.libvirt.connection_uri),
          .default_value = "qemu:///system", .form = CONFIG_FORM_DRIVER_URI,
          .empty_is_default = true, .allowed = "a libvirt URI such as qemu:///system" },
        NUMBER("libvirt", "keepalive_interval", CONFIG_U64, driver.libvirt.keepalive_interval_sec,
               "5", 0, 3600),
        NUMBER("libvirt", "keepalive_count", CONFIG_U64, driver.libvirt.keepalive_count, "5", 0,
               1000),

        WORD("libvirt", "virt_type", driver.host.virt_type, "kvm", virt_types,
             "kvm, qemu, lxc or parallels"),
        WORD("libvirt", "cpu_mode", driver.host.cpu_mode, NULL, cpu_modes,
             "host-model, host-passthrough, custom or none"),
        LIST("libvirt", "cpu_models", "cpu_model", driver.host.cpu_models, CONFIG_FORM_WORD,
             "a comma-separated list of libvirt's CPU models"),
        LIST("libvirt", "cpu_model_extra_flags", NULL, driver.host.cpu_model_extra_flags,
             CONFIG_FORM_WORD,
             "a comma-separated list of CPU features, each with an optional + or -"),
        BOOL("libvirt", "cpu_power_management", driver.host.cpu_power_management, "false"),
        WORD("libvirt", "images_type", driver.host.images_type, "default", images_types,
             "default, raw, flat, qcow2, ploop, lvm or rbd"),
        TEXT("libvirt", "images_storage_pool", driver.host.images_storage_pool, NULL,
             CONFIG_FORM_WORD, "the name of a libvirt storage pool"),
        TEXT("libvirt", "images_rbd_pool", driver.host.images_rbd_pool, "rbd", CONFIG_FORM_WORD,
             "the name of a Ceph pool"),
        TEXT("libvirt", "images_rbd_ceph_conf", driver.host.images_rbd_ceph_conf, "",
             CONFIG_FORM_ANY, "a path, or empty for the default file of Ceph"),
        TEXT("libvirt", "rbd_user", driver.host.rbd_user, "", CONFIG_FORM_ANY,
             "the name of a Ceph user"),
        NUMBER("libvirt", "file_backed_memory", CONFIG_U64, driver.host.file_backed_memory, "0", 0,
               2147483647),
        BOOL("libvirt", "swtpm_enabled", driver.host.swtpm_enabled, "false"),
        LIST("libvirt", "supported_tpm_secret_security", NULL,
             driver.host.supported_tpm_secret_security, CONFIG_FORM_TPM_SECURITY,
             "a comma-separated list of user, host and deployment"),

        PATH("static", "path", driver.static_path, NULL),

        { OPTION("pci", "device_spec", CONFIG_MULTI, device_specs),
          .old = { { NULL, "passthrough_whitelist" }, { "DEFAULT", "pci_passthrough_whitelist" } },
          .allowed = "a JSON object such as {\"vendor_id\": \"10de\"}, or a list of them" },
        BOOL("pci", "report_in_placement", driver.host.report_in_placement, "false"),

        LIST("devices", "enabled_mdev_types", "enabled_vgpu_types", enabled_mdev_types,
             CONFIG_FORM_MDEV_TYPE, "a comma-separated list of mdev types such as nvidia-35"),

        TEXT("placement", "auth_section", auth_section, NULL, CONFIG_FORM_ANY,
             "the name of a section"),
        { OPTION("placement", "auth_type", CONFIG_ENUM, reporter.auth.kind),
          .old = { { NULL, "auth_plugin" } }, .default_value = "none", .words = auth_types,
          .of_auth = true, .allowed = "none, admin_token, password or v3applicationcredential" },
        TEXT("placement", "endpoint_override", placement_endpoint, NULL, CONFIG_FORM_ENDPOINT,
             ENDPOINT_WORDS),
        { OPTION("placement", "endpoint", CONFIG_STRING, placement_fallback),
          .form = CONFIG_FORM_ENDPOINT, .of_auth = true, .allowed = ENDPOINT_WORDS },
        SECRET("token", placement_token, CONFIG_FORM_TOKEN, "printable ASCII without spaces",
               "placement-token"),
        PATH("placement", "cafile", cafile, NULL),
        PATH("placement", "certfile", certfile, NULL),
        PATH("placement", "keyfile", keyfile, NULL),
        BOOL("placement", "insecure", reporter.http.insecure, "false"),
        NUMBER("placement", "max_connections", CONFIG_U64, reporter.http.max_connections, "4", 1,
               64),
        NUMBER("placement", "connect_timeout", CONFIG_SECONDS, reporter.http.connect_timeout_usec,
               "10", 1, 3600),
        NUMBER("placement", "timeout", CONFIG_SECONDS, reporter.http.timeout_usec, "60", 1, 3600),

        { OPTION("placement", "auth_url", CONFIG_STRING, keystone.auth_url),
          .form = CONFIG_FORM_HTTP_URL, .of_auth = true, .allowed = HTTP_WORDS },
        KEYSTONE("username", "user_name", username, true),
        KEYSTONE("user_id", NULL, user_id, true),
        KEYSTONE("user_domain_name", NULL, user_domain_name, true),
        KEYSTONE("user_domain_id", NULL, user_domain_id, true),
        SECRET("password", keystone.password, CONFIG_FORM_ANY, "any text", "placement-password"),
        KEYSTONE("project_name", "tenant_name", project_name, true),
        KEYSTONE("project_id", "tenant_id", project_id, true),
        KEYSTONE("project_domain_name", NULL, project_domain_name, true),
        KEYSTONE("project_domain_id", NULL, project_domain_id, true),
        KEYSTONE("domain_name", NULL, domain_name, true),
        KEYSTONE("domain_id", NULL, domain_id, true),
        KEYSTONE("default_domain_name", NULL, default_domain_name, true),
        KEYSTONE("default_domain_id", NULL, default_domain_id, true),
        KEYSTONE("system_scope", NULL, system_scope, true),
        KEYSTONE("trust_id", NULL, trust_id, true),
        KEYSTONE("application_credential_id", NULL, application_credential_id, true),
        KEYSTONE("application_credential_name", NULL, application_credential_name, true),
        SECRET("application_credential_secret", keystone.application_credential_secret,
               CONFIG_FORM_ANY, "any text", "placement-application-credential-secret"),
        KEYSTONE("region_name", "os_region_name", region_name, false),
        KEYSTONE("service_type", NULL, service_type, false),
        KEYSTONE("service_name", NULL, service_name, false),
        KEYSTONE("interface", "os_interface", interface, false),
        LIST("placement", "valid_interfaces", NULL, keystone.valid_interfaces, CONFIG_FORM_ANY,
             "a comma-separated list such as internal, public"),
        UNUSED("collect_timing"),
        UNUSED("connect_retries"),
        UNUSED("connect_retry_delay"),
        UNUSED("max_version"),
        UNUSED("min_version"),
        UNUSED("retriable_status_codes"),
        UNUSED("split_loggers"),
        UNUSED("status_code_retries"),
        UNUSED("status_code_retry_delay"),
        {},
};

/* The options of a type of mediated devices, which are members of HostMdevType. */
const ConfigOption config_mdev_options[] = {
        { .section = CONFIG_MDEV_SECTION,
          .key = "device_addresses",
          .type = CONFIG_LIST,
          .offset = offsetof(HostMdevType, device_addresses),
          .form = CONFIG_FORM_DEVICE_ADDRESS,
          .allowed =
                  "a comma-separated list of PCI addresses (0000:41:00.0) or paths below /sys/devices/" },
        { .section = CONFIG_MDEV_SECTION,
          .key = "mdev_class",
          .type = CONFIG_STRING,
          .offset = offsetof(HostMdevType, mdev_class),
          .default_value = "VGPU",
          .form = CONFIG_FORM_MDEV_CLASS,
          .allowed = "VGPU, or CUSTOM_ with A-Z, 0-9 and _ (up to 255)" },
        { .section = CONFIG_MDEV_SECTION,
          .key = "max_instances",
          .type = CONFIG_U64,
          .offset = offsetof(HostMdevType, max_instances),
          .min = 1,
          .max = 2147483647,
          .allowed = "a whole number from 1 to 2147483647" },
        {},
};

#define PREPARE(k, t, m) \
        .section = CONFIG_PREPARE_SECTION, .key = k, .type = t, .offset = offsetof(HostPrepare, m)

/* The options of a group of cards, which are members of HostPrepare. */
const ConfigOption config_prepare_options[] = {
        { PREPARE("device_addresses", CONFIG_LIST, device_addresses),
          .form = CONFIG_FORM_PCI_ADDRESS,
          .allowed = "a comma-separated list of PCI addresses such as 0000:c1:00.0" },
        { PREPARE("virtual_functions", CONFIG_U64, virtual_functions), .default_value = "0",
          .min = 0, .max = 65535, .allowed = "a whole number from 0 to 65535" },
        { PREPARE("vgpu_types", CONFIG_BOOL, vgpu_types), .default_value = "false",
          .allowed = "true or false" },
        { PREPARE("driver_override", CONFIG_STRING, driver_override),
          .form = CONFIG_FORM_KERNEL_DRIVER,
          .allowed = "a kernel driver such as vfio-pci, or empty" },
        { PREPARE("unit", CONFIG_STRING, unit), .form = CONFIG_FORM_UNIT_TEMPLATE,
          .allowed = "a template such as mig-layout@.service, or empty" },
        {},
};

#define CLEAN(k, t, m) \
        .section = CONFIG_CLEAN_SECTION, .key = k, .type = t, .offset = offsetof(HostClean, m)

/* The options of a group of devices that are cleaned, which are members of HostClean. */
const ConfigOption config_clean_options[] = {
        { CLEAN("device_addresses", CONFIG_LIST, device_addresses), .form = CONFIG_FORM_PCI_ADDRESS,
          .allowed = "a comma-separated list of PCI addresses such as 0000:c1:00.0" },
        { CLEAN("resource_classes", CONFIG_LIST, resource_classes), .form = CONFIG_FORM_MDEV_CLASS,
          .allowed = "a comma-separated list of resource classes such as CUSTOM_NVME" },
        { CLEAN("clean", CONFIG_STRING, clean), .form = CONFIG_FORM_UNIT_TEMPLATE,
          .allowed = "a template such as compute-agent-clean-nvme@.service" },
        { CLEAN("prove", CONFIG_STRING, prove), .form = CONFIG_FORM_UNIT_TEMPLATE,
          .allowed = "a template such as compute-agent-prove-nvme@.service, or empty" },
        { CLEAN("timeout_sec", CONFIG_SECONDS, timeout_usec), .default_value = "3600", .min = 1,
          .max = 604800, .allowed = "a number of seconds from 1 to 604800" },
        {},
};

#define SHAPES(k, t, m) \
        .section = CONFIG_SHAPES_SECTION, .key = k, .type = t, .offset = offsetof(HostShapes, m)

/* The options of devices that are given out in partitions, which are members of HostShapes. */
const ConfigOption config_shapes_options[] = {
        { SHAPES("resource_class", CONFIG_STRING, resource_class), .form = CONFIG_FORM_MDEV_CLASS,
          .allowed = "a resource class such as CUSTOM_HGX_GPU" },
        { SHAPES("members", CONFIG_LIST, members), .form = CONFIG_FORM_WORD,
          .allowed = "a comma-separated list of PCI addresses, or a number of slots" },
        { SHAPES("partitions", CONFIG_LIST, partitions),
          .allowed = "a comma-separated list of partitions such as 0=1-4" },
        { SHAPES("managed", CONFIG_BOOL, managed), .default_value = "true",
          .allowed = "true or false" },
        { SHAPES("activate", CONFIG_STRING, activate), .form = CONFIG_FORM_UNIT_TEMPLATE,
          .allowed = "a template such as fabric-partition@.service, or empty" },
        { SHAPES("deactivate", CONFIG_STRING, deactivate), .form = CONFIG_FORM_UNIT_TEMPLATE,
          .allowed = "a template such as fabric-partition-off@.service, or empty" },
        { SHAPES("timeout_sec", CONFIG_SECONDS, timeout_usec), .default_value = "60", .min = 1,
          .max = 604800, .allowed = "a number of seconds from 1 to 604800" },
        {},
};

#define KIND(p, s, o, list, type, n)                                                  \
        .prefix = p, .section = s, .options = o, .items = offsetof(HostConfig, list), \
        .n_items = offsetof(HostConfig, n_##list), .item_size = sizeof(type),         \
        .item_name = offsetof(type, n)

const ConfigKind config_kinds[] = {
        { KIND("mdev_", CONFIG_MDEV_SECTION, config_mdev_options, mdev_types, HostMdevType, type) },
        { .prefix = "vgpu_",
          .section = CONFIG_MDEV_SECTION,
          .options = config_mdev_options,
          .only_key = "device_addresses" },
        { KIND("device_prepare ", CONFIG_PREPARE_SECTION, config_prepare_options, prepares,
               HostPrepare, name) },
        { KIND("device_clean ", CONFIG_CLEAN_SECTION, config_clean_options, cleans, HostClean,
               name) },
        { KIND("device_shapes ", CONFIG_SHAPES_SECTION, config_shapes_options, shapes, HostShapes,
               set.name) },
        {},
};

/* Returns the part of a section after the prefix, and after all blanks if the prefix ends with one.
 * NULL: the section has another prefix, or no name after it. */
static const char *name_after(const char *section, const char *prefix)
{
        size_t n = strlen(prefix);

        if (strncasecmp(section, prefix, n) != 0)
                return NULL;
        if (prefix[n - 1] == ' ')
                n += strspn(section + n, " ");
        return section[n] ? section + n : NULL;
}

const ConfigKind *config_find_kind(const char *section, const char **ret_name)
{
        for (const ConfigKind *kind = config_kinds; kind->prefix; kind++) {
                const char *name = name_after(section, kind->prefix);

                if (!name)
                        continue;
                if (ret_name)
                        *ret_name = name;
                return kind;
        }
        return NULL;
}

const char *config_section_name(const char *section, const ConfigOption *options)
{
        const char *name;
        const ConfigKind *kind = config_find_kind(section, &name);

        return kind && kind->options == options ? name : NULL;
}

const ConfigOption *config_find_option(const ConfigOption *options, const char *section,
                                       const char *key)
{
        for (const ConfigOption *o = options; o->key; o++) {
                if (strcasecmp(o->section, section) == 0 && strcasecmp(o->key, key) == 0)
                        return o;
                for (size_t i = 0; o->old[i].key; i++)
                        if (strcasecmp(o->old[i].section ?: o->section, section) == 0 &&
                            strcasecmp(o->old[i].key, key) == 0)
                                return o;
        }
        return NULL;
}

/* Wipes strings that are no secret too, because a URL can have a password. Numbers are
 * unchanged. */
void config_option_done(const ConfigOption *option, void *base)
{
        void *member = (char *)base + option->offset;

        switch (option->type) {
        case CONFIG_STRING:
                if (option->secret)
                        *(char **)member = secret_free(*(char **)member);
                else
                        *(char **)member = text_free_secret(*(char **)member);
                break;
        case CONFIG_LIST:
        case CONFIG_MULTI:
                *(char ***)member = strings_free(*(char ***)member);
                break;
        default:
                break;
        }
}

/* Checks the limits and converts a number to the unit of its member. */
static int set_number(const ConfigOption *option, uint64_t *member, const char *text)
{
        int64_t value;
        int r;

        r = config_value_i64(text, &value);
        if (r < 0 || (double)value < option->min || (double)value > option->max)
                return -EINVAL;
        if (option->type == CONFIG_U64)
                *member = (uint64_t)value;
        else if (option->type == CONFIG_INTERVAL && value < 0)
                *member = UINT64_MAX;
        else if (option->type == CONFIG_INTERVAL && value == 0)
                *member = DEFAULT_POLL_INTERVAL_SEC * USEC_PER_SEC;
        else
                *member = (uint64_t)value * USEC_PER_SEC;
        return 0;
}

static int set_double(const ConfigOption *option, double *member, const char *text)
{
        double value;
        int r;

        r = config_value_double(text, &value);
        if (r < 0)
                return r;
        if (value < option->min || value > option->max)
                return -EINVAL;
        *member = value;
        return 0;
}

/* Finds the value of a word, in letters of either case. */
static int set_word(const ConfigOption *option, int *member, const char *text)
{
        for (const ConfigWord *w = option->words; w->word; w++) {
                if (strcasecmp(w->word, text) == 0) {
                        *member = w->value;
                        return 0;
                }
        }
        return -EINVAL;
}

/* Copies a secret into memory that is wiped when it is freed. */
static int set_secret(const ConfigOption *option, char **member, const char *text)
{
        char *value;

        if (!config_value_has_form(text, option->form))
                return -EINVAL;
        value = secret_copy(text);
        if (!value)
                return -ENOMEM;
        secret_free(*member);
        *member = value;
        return 0;
}

static int set_string(const ConfigOption *option, char **member, const char *text)
{
        char *value;

        if (!config_value_has_form(text, option->form))
                return -EINVAL;
        value = strdup(text);
        if (!value)
                return -ENOMEM;
        free(*member);
        *member = value;
        return 0;
}

/* Sets a member that holds one value. Lists are set by set_list() and add_item(), because their
 * errors name an item. An option without effect changes nothing. */
static int set_member(const ConfigOption *option, void *member, const char *text)
{
        switch (option->type) {
        case CONFIG_BOOL:
                return config_value_bool(text, member);
        case CONFIG_U64:
        case CONFIG_SECONDS:
        case CONFIG_INTERVAL:
                return set_number(option, member, text);
        case CONFIG_DOUBLE:
                return set_double(option, member, text);
        case CONFIG_ENUM:
                return set_word(option, member, text);
        case CONFIG_STRING:
                return option->secret ? set_secret(option, member, text)
                                      : set_string(option, member, text);
        default:
                return 0;
        }
}

/* Returns the length in bytes of the start of a text: at most 40, in whole characters. So a long
 * value leaves space for the words of a message. */
static int excerpt_length(const char *text)
{
        size_t n = strnlen(text, 40);

        while (text[n] && ((unsigned char)text[n] & 0xc0) == 0x80)
                n--;
        return (int)n;
}

/* Stores that a value is not allowed, and which values are. */
static int refuse(const ConfigOption *option, const char *text, Error *reterr)
{
        /* A URL can have a password before its @. */
        if (option->secret || strchr(text, '@'))
                return error_setf(reterr, EINVAL, "the value must be %s", option->allowed);
        return error_setf(reterr, EINVAL, "\"%.*s\"%s: must be %s", excerpt_length(text), text,
                          strlen(text) > 40 ? "…" : "", option->allowed);
}

/* Replaces a list. Each item must have the form of the option. */
static int set_list(const ConfigOption *option, char ***member, const char *text, Error *reterr)
{
        _cleanup_(strings_freep) char **items = NULL;

        if (config_value_list(text, &items) < 0)
                return error_oom(reterr);
        for (char **item = items; *item; item++)
                if (!config_value_has_form(*item, option->form))
                        return refuse(option, *item, reterr);
        strings_free(*member);
        *member = TAKE_PTR(items);
        return 0;
}

/* Appends an item to the value of an option that can appear several times. */
static int add_item(const ConfigOption *option, char ***member, const char *text, Error *reterr)
{
        size_t n = 0;
        char **grown;

        if (!config_value_has_form(text, option->form))
                return refuse(option, text, reterr);
        while (*member && (*member)[n])
                n++;
        grown = reallocarray(*member, n + 2, sizeof(char *));
        if (!grown)
                return error_oom(reterr);
        *member = grown;
        grown[n + 1] = NULL;
        grown[n] = strdup(text);
        return grown[n] ? 0 : error_oom(reterr);
}

/* Checks whether the text is empty and means that the option is not set. The option then gets its
 * default, if it has one. For a string with a default, an empty text means that only with
 * empty_is_default. Otherwise it is a value like others, which the form can reject. */
static bool is_not_set(const ConfigOption *option, const char *text)
{
        if (text[0] != '\0')
                return false;
        return !option->default_value || option->type != CONFIG_STRING || option->empty_is_default;
}

/* Sets an option. An option that can appear several times ignores an empty text. Other options take
 * it by the rule of is_not_set(). */
int config_option_set(const ConfigOption *option, void *base, const char *text, Error *reterr)
{
        void *member = (char *)base + option->offset;
        int r;

        if (option->type == CONFIG_MULTI)
                return text[0] ? add_item(option, member, text, reterr) : 0;
        if (is_not_set(option, text)) {
                config_option_done(option, base);
                text = option->default_value;
                if (!text)
                        return 0;
        }
        if (option->type == CONFIG_LIST)
                return set_list(option, member, text, reterr);
        r = set_member(option, member, text);
        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? refuse(option, text, reterr) : 0;
}

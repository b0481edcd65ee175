/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/table.h"

#include <syslog.h>

#include "tests/fixtures/config.h"
#include "tests/shims/fail-alloc.h"

static void test_defaults(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "");

        assert_string_equal(c->state_dir, LOCALSTATEDIR "/lib/compute-agent");
        assert_string_equal(c->state_path, "/var/lib/nova");
        assert_string_equal(c->claim_db, "claim.sqlite");
        assert_string_equal(c->driver.host.instances_path, "/var/lib/nova/instances");
        assert_string_equal(c->host, "");
        assert_string_equal(c->compute_driver, "libvirt");
        assert_int_equal(c->log_level, LOG_INFO);
        assert_int_equal(c->claim_expiry_usec, 300 * USEC_PER_SEC);
        assert_int_equal(c->update_interval_usec, 60 * USEC_PER_SEC);
        assert_int_equal(c->quiet_max_usec, 240 * USEC_PER_SEC);
        assert_string_equal(c->driver.host.owner_trait, "OWNER_NOVA");
        assert_string_equal(c->driver.libvirt.connection_uri, "qemu:///system");
        assert_null(c->driver.static_path);
        assert_false(c->has_placement);
        assert_string_equal(c->files[0], f->file);
        assert_null(c->files[1]);
        assert_string_equal(f->warnings, "");
}

/* Errors in other sections do not delay a guest that starts. */
static void test_hook_alone(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL, *none = NULL;
        Error error = ERROR_NULL;

        scratch_write(f->folder, "x.conf",
                      "[DEFAULT]\ncpu_allocation_ratio = many\nhost = $nothing\n"
                      "[placement]\nauth_type = x\nusername = $username\n"
                      "[hook]\nenabled = true\ntimeout = $t\nt = 7\n");
        assert_true(config_load(&none, f->file, NULL, NULL, &error) < 0);
        assert_int_equal(config_load_hook(&c, f->file, &error), 0);
        assert_true(c->hook_enabled);
        assert_int_equal(c->hook_timeout_usec, 7 * USEC_PER_SEC);
        assert_int_equal(c->hook_when_away, CONFIG_HOOK_ALLOW);
        scratch_write(f->folder, "x.conf", "[hook]\ntimeout = $nothing\n");
        assert_int_equal(config_load_hook(&none, f->file, &error), -EINVAL);
        assert_non_null(strstr(error.text, "[hook] timeout: refers to nothing"));
        scratch_write(f->folder, "x.conf", "[hook]\nenabled = perhaps\n");
        assert_int_equal(config_load_hook(&none, f->file, &error), -EINVAL);
        assert_non_null(strstr(error.text, "[hook] enabled"));
}

/* The services of compute-agent-prepare do not have the credentials of the agent's service. */
static void test_offline(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL, *none = NULL;
        Error error = ERROR_NULL;

        scratch_write(f->folder, "x.conf",
                      "[placement]\nauth_type = password\nauth_url = http://keystone/\n"
                      "username = nova\n");
        assert_int_equal(config_load(&none, f->file, NULL, NULL, &error), -EINVAL);
        assert_int_equal(config_load_offline(&c, f->file, &error), 0);
        assert_true(c->has_placement);
        scratch_write(f->folder, "x.conf", "[agent]\nheal_each_cycles = many\n");
        assert_int_equal(config_load_offline(&none, f->file, &error), -EINVAL);
}

static void test_defaults_of_host_and_reporter(void **state)
{
        _cleanup_(config_freep) Config *c = load_text(*state, "");
        const HostConfig *d = &c->driver.host;
        const ReporterConfig *p = &c->reporter;

        assert_int_equal(c->driver.libvirt.keepalive_interval_sec, 5);
        assert_int_equal(c->driver.libvirt.keepalive_count, 5);
        assert_int_equal(d->reserved_host_cpus, 0);
        assert_int_equal(d->reserved_host_memory_mb, 512);
        assert_int_equal(d->reserved_host_disk_mb, 0);
        assert_true(d->cpu_allocation_ratio == 0 && d->initial_cpu_allocation_ratio == 4.0);
        assert_true(d->ram_allocation_ratio == 0 && d->initial_ram_allocation_ratio == 1.0);
        assert_true(d->disk_allocation_ratio == 0 && d->initial_disk_allocation_ratio == 1.0);
        assert_int_equal(d->n_mdev_types, 0);
        assert_null(d->cpu_shared_set);
        assert_null(d->cpu_dedicated_set);
        assert_null(d->vcpu_pin_set);
        assert_null(d->reserved_huge_pages);
        assert_false(d->numa_in_placement);
        assert_true(d->force_raw_images);
        assert_int_equal(d->virt_type, HOST_VIRT_KVM);
        assert_int_equal(d->cpu_mode, HOST_CPU_DEFAULT);
        assert_int_equal(d->images_type, HOST_IMAGES_FILES);
        assert_int_equal(d->file_backed_memory, 0);

        assert_null(p->http.endpoint);
        assert_int_equal(p->auth.kind, REPORTER_AUTH_NONE);
        assert_null(p->auth.token);
        assert_int_equal(p->http.max_connections, 4);
        assert_int_equal(p->http.connect_timeout_usec, 10 * USEC_PER_SEC);
        assert_int_equal(p->http.timeout_usec, 60 * USEC_PER_SEC);
        assert_null(p->http.cafile);
        assert_false(p->http.insecure);
        assert_int_equal(strncmp(p->http.user_agent, "compute-agent/", 14), 0);
}

static void test_everything_set(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "[DEFAULT]\n"
                                                         "state_path = /srv/agent\n"
                                                         "claim_db = db/claims\n"
                                                         "instances_path = $state_path/instances\n"
                                                         "host = compute-7\n"
                                                         "compute_driver = libvirt.LibvirtDriver\n"
                                                         "claim_expiry_time = 0\n"
                                                         "update_resources_interval = -1\n"
                                                         "reserved_host_cpus = 2\n"
                                                         "reserved_host_memory_mb = 1024\n"
                                                         "reserved_host_disk_mb = 2048\n"
                                                         "cpu_allocation_ratio = 16.0\n"
                                                         "ram_allocation_ratio = 1.5\n"
                                                         "disk_allocation_ratio = 0.0\n"
                                                         "initial_disk_allocation_ratio = 2\n"
                                                         "[agent]\n"
                                                         "log_level = warning\n"
                                                         "state_dir = /srv/own\n"
                                                         "owner_trait =\n"
                                                         "[libvirt]\n"
                                                         "connection_uri = test:///default\n"
                                                         "keepalive_interval = 0\n"
                                                         "keepalive_count = 3\n"
                                                         "[static]\n"
                                                         "path = ${state_path}/host.json\n"
                                                         "[compute]\n");

        assert_string_equal(c->state_path, "/srv/agent");
        assert_string_equal(c->state_dir, "/srv/own");
        assert_string_equal(c->claim_db, "db/claims");
        assert_string_equal(c->driver.host.instances_path, "/srv/agent/instances");
        assert_string_equal(c->host, "compute-7");
        assert_string_equal(c->compute_driver, "libvirt");
        assert_int_equal(c->claim_expiry_usec, 0);
        assert_int_equal(c->update_interval_usec, UINT64_MAX);
        assert_int_equal(c->driver.host.reserved_host_cpus, 2);
        assert_int_equal(c->driver.host.reserved_host_memory_mb, 1024);
        assert_int_equal(c->driver.host.reserved_host_disk_mb, 2048);
        assert_true(c->driver.host.cpu_allocation_ratio == 16);
        assert_true(c->driver.host.ram_allocation_ratio == 1.5);
        assert_true(c->driver.host.disk_allocation_ratio == 0);
        assert_true(c->driver.host.initial_disk_allocation_ratio == 2);
        assert_int_equal(c->log_level, LOG_WARNING);
        assert_string_equal(c->driver.host.owner_trait, "");
        assert_string_equal(c->driver.libvirt.connection_uri, "test:///default");
        assert_int_equal(c->driver.libvirt.keepalive_interval_sec, 0);
        assert_int_equal(c->driver.libvirt.keepalive_count, 3);
        assert_string_equal(c->driver.static_path, "/srv/agent/host.json");
        assert_string_equal(f->warnings, "");
}

static void test_placement(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "[placement]\n"
                                                         "auth_type = admin_token\n"
                                                         "endpoint = http://10.0.0.1/placement\n"
                                                         "token = s3cret\n"
                                                         "cafile = /etc/ssl/ca.pem\n"
                                                         "certfile = /etc/ssl/c.pem\n"
                                                         "keyfile = /etc/ssl/k.pem\n"
                                                         "max_connections = 8\n"
                                                         "timeout = 30\n"
                                                         "connect_timeout = 3\n");

        assert_true(c->has_placement);
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_ADMIN_TOKEN);
        assert_string_equal(c->reporter.http.endpoint, "http://10.0.0.1/placement");
        assert_string_equal(c->reporter.auth.token, "s3cret");
        assert_string_equal(c->reporter.http.cafile, "/etc/ssl/ca.pem");
        assert_string_equal(c->reporter.http.certfile, "/etc/ssl/c.pem");
        assert_string_equal(c->reporter.http.keyfile, "/etc/ssl/k.pem");
        assert_int_equal(c->reporter.http.max_connections, 8);
        assert_int_equal(c->reporter.http.timeout_usec, 30 * USEC_PER_SEC);
        assert_int_equal(c->reporter.http.connect_timeout_usec, 3 * USEC_PER_SEC);
        assert_string_equal(f->warnings, "");

        config_free(c);
        c = load_text(f, "[placement]\nendpoint_override = unix:///run/placement.sock\n"
                         "endpoint = http://10.0.0.1/\n");
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_NONE);
        assert_string_equal(c->reporter.http.endpoint, "unix:///run/placement.sock");

        config_free(c);
        c = load_text(f, "[placement]\nendpoint = https://h/\ninsecure = yes\n");
        assert_true(c->reporter.http.insecure);
        assert_string_equal(
                f->warnings,
                "x.conf:1: [placement] insecure = true: the server's certificate is not verified\n");
}

/* A pasted nova.conf gives no warning for options that the agent knows or ignores. */
static void test_pasted_from_nova(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "[placement]\n"
                                                         "auth_type = password\n"
                                                         "auth_url = http://controller:5000/v3\n"
                                                         "user_name = placement\n"
                                                         "password = s3 cret$$x\n"
                                                         "project_name = service\n"
                                                         "user_domain_name = Default\n"
                                                         "project_domain_name = Default\n"
                                                         "region_name = RegionOne\n"
                                                         "valid_interfaces = internal,public\n"
                                                         "connect_retries = 3\n");

        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_PASSWORD);
        assert_null(c->reporter.http.endpoint);
        assert_string_equal(c->keystone.auth_url, "http://controller:5000/v3");
        assert_string_equal(c->keystone.username, "placement");
        assert_string_equal(c->keystone.password, "s3 cret$x");
        assert_string_equal(c->keystone.project_name, "service");
        assert_string_equal(c->keystone.user_domain_name, "Default");
        assert_string_equal(c->keystone.project_domain_name, "Default");
        assert_string_equal(c->keystone.region_name, "RegionOne");
        assert_string_equal(c->keystone.valid_interfaces[0], "internal");
        assert_string_equal(c->keystone.valid_interfaces[1], "public");
        assert_null(c->keystone.valid_interfaces[2]);
        assert_null(c->keystone.application_credential_id);
        assert_string_equal(f->warnings, "");

        config_free(c);
        c = load_text(f, "[placement]\n"
                         "auth_type = v3applicationcredential\n"
                         "auth_url = http://controller:5000/v3\n"
                         "application_credential_id = 4711\n"
                         "application_credential_secret = abc\n");
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_V3APPLICATIONCREDENTIAL);
        assert_string_equal(c->keystone.application_credential_secret, "abc");
        config_free(c);
        c = load_text(f, "[placement]\nauth_type = v3password\nauth_url = http://c:5000\n"
                         "user_id = 1\npassword = x\nsystem_scope = all\n");
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_PASSWORD);
}

static void test_log_level(void **state)
{
        static const struct {
                const char *text;
                int level;
        } cases[] = {
                { "[DEFAULT]\ndebug = true\n", LOG_DEBUG },
                { "[DEFAULT]\ndebug = false\n", LOG_INFO },
                { "[DEFAULT]\ndebug = true\n[agent]\nlog_level = err\n", LOG_ERR },
                { "[agent]\nlog_level = Debug\n", LOG_DEBUG },
                { "[agent]\nlog_level =\n", LOG_INFO },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(config_freep) Config *c = load_text(*state, cases[i].text);

                assert_int_equal(c->log_level, cases[i].level);
        }
}

/* A value in the second line that is not allowed. */
#define REFUSED(section, key, value, words)                                              \
        {                                                                                \
                "[" section "]\n" key " = " value "\n",                                  \
                        "x.conf:2: [" section "] " key ": \"" value "\": must be " words \
        }

/* Bad values of each type, with the words. */
static const struct {
        const char *text, *expected;
} refused[] = {
        { "[DEFAULT]\n\nstate_path = agent\n",
          "x.conf:3: [DEFAULT] state_path: \"agent\": must be an absolute path" },
        { "[DEFAULT]\nstate_path =\n",
          "x.conf:2: [DEFAULT] state_path: \"\": must be an absolute path" },
        { "[DEFAULT]\nstate_path = $state_path\n",
          "x.conf:2: [DEFAULT] state_path: its references form a loop" },
        REFUSED("DEFAULT", "claim_db", "/x", "the path of a file, relative to [agent] state_dir"),
        { "[DEFAULT]\ninstances_path = $pybasedir/x\n",
          "x.conf:2: [DEFAULT] instances_path: refers to pybasedir, which no file sets. Write the value, or $$ for a dollar sign" },
        REFUSED("DEFAULT", "host", "a b",
                "a name of up to 255 printable characters without spaces"),
        REFUSED("DEFAULT", "compute_driver", "fake.FakeDriver",
                "libvirt, libvirt.LibvirtDriver, linux or static"),
        REFUSED("DEFAULT", "debug", "maybe", "true or false"),
        REFUSED("DEFAULT", "claim_expiry_time", "-1", "a whole number from 0 to 2147483647"),
        REFUSED("DEFAULT", "update_resources_interval", "2147483648",
                "a whole number of seconds up to 2147483647, 0 for 60, or -1 for never"),
        REFUSED("DEFAULT", "reserved_host_memory_mb", "512 MB",
                "a whole number from 0 to 2147483647"),
        REFUSED("DEFAULT", "cpu_allocation_ratio", "-1", "a number from 0 to 1000000"),
        REFUSED("DEFAULT", "cpu_allocation_ratio", "four", "a number from 0 to 1000000"),
        REFUSED("DEFAULT", "initial_ram_allocation_ratio", "0.0", "a number from 0.001 to 1000000"),
        REFUSED("agent", "log_level", "loud", "debug, info, notice, warning, err or crit"),
        REFUSED("agent", "owner_trait", "nova",
                "the name of a trait (up to 255 of A-Z, 0-9 and _), or empty"),
        REFUSED("libvirt", "connection_uri", "system", "a libvirt URI such as qemu:///system"),
        REFUSED("agent", "quiet_interval_max_sec", "601", "a whole number from 0 to 600"),
        REFUSED("libvirt", "keepalive_interval", "3601", "a whole number from 0 to 3600"),
        { "[libvirt]\nimages_type = lvm\n",
          "x.conf:2: [libvirt] images_type = lvm needs images_storage_pool, the libvirt storage pool of "
          "the disks" },
        REFUSED("static", "path", "host.json", "an absolute path"),
        { "[DEFAULT]\ncompute_driver = static\n",
          "x.conf:2: compute_driver = static needs [static] path, the JSON file of a host" },
        REFUSED("placement", "auth_type", "kerberos",
                "none, admin_token, password or v3applicationcredential"),
        REFUSED("placement", "endpoint_override", "placement:8778",
                "unix:///PATH, or http://HOST… or https://HOST… without user name, query and fragment"),
        REFUSED("placement", "max_connections", "0", "a whole number from 1 to 64"),
        REFUSED("placement", "timeout", "1.5", "a whole number from 1 to 3600"),
        REFUSED("placement", "auth_url", "unix:///x",
                "http://HOST… or https://HOST… without user name, query and fragment"),
        { "\n[placement]\n",
          "x.conf:2: [placement] endpoint_override is not set. The auth_type none needs it "
          "(http://HOST…, https://HOST… or unix:///PATH)" },
        { "[placement]\nauth_type = admin_token\ntoken = x\n",
          "x.conf:1: [placement] endpoint_override is not set. The auth_type admin_token "
          "needs it (http://HOST…, https://HOST… or unix:///PATH)" },
        { "[placement]\nauth_type = admin_token\nendpoint = http://h/\n",
          "x.conf:1: [placement] token is not set, and there is no credential "
          "placement-token. The auth_type admin_token needs one of them. Restart the service after "
          "you add LoadCredential= to the unit" },
        { "[placement]\nauth_type = password\nauth_url = http://h/v3\n",
          "x.conf:2: [placement] auth_type: password needs username or user_id, which is not set" },
        { "[placement]\nauth_type = password\nauth_url = http://h/v3\nuser_id = 1\n"
          "password = SECRET\nproject_id = 2\nsystem_scope = all\n",
          "x.conf:7: [placement] system_scope: a token has only one scope, but project_id is also set. Remove one of them" },
        { "[placement]\nauth_type = v3applicationcredential\nauth_url = http://h/v3\n"
          "tenant_name = x\napplication_credential_id = 1\n"
          "application_credential_secret = SECRET\n",
          "x.conf:4: [placement] project_name: an application credential already has a scope. "
          "Remove this option" },
        { "[placement]\nauth_url = http://h/\n",
          "x.conf:1: [placement] auth_url is set, but auth_type is not. Set it to password or v3applicationcredential" },
        { "[devices]\nenabled_mdev_types = nvidia-35, ../x\n",
          "x.conf:2: [devices] enabled_mdev_types: \"../x\": must be a "
          "comma-separated list of mdev types such as nvidia-35" },
        { "[pci]\ndevice_spec = {}\ndevice_spec = {\"vendor_id\": 5}\n",
          "x.conf:3: [pci] device_spec: vendor_id must be a string" },
        { "[pci]\nreport_in_placement = yes\ndevice_spec = {\"devname\": \"eth0\"}\n",
          "x.conf:3: [pci] device_spec: devname \"eth0\": [pci] report_in_placement needs an address instead of a name" },
        { "[DEFAULT]\nno sense\n", "x.conf:2: the line is not of the form OPTION = VALUE" },
        /* A long value is cut between two characters. */
        { "[DEFAULT]\ndebug = \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
          "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
          "\xa9\xc3\xa9x\xe2\x82\xac\n",
          "x.conf:2: [DEFAULT] debug: "
          "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
          "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
          "\xa9\xc3\xa9\xc3\xa9x\"…: must be true or false" },
};

static void test_refused(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                expect_refused(*state, refused[i].text, refused[i].expected);
}

/* "SECRET" is in each of these files, and in no message. */
static void test_messages_have_no_secrets(void **state)
{
        static const char *const texts[] = {
                "[placement]\ntoken = SECRET word\n",
                "[placement]\nauth_type = SECRET@x\n",
                "[placement]\nendpoint = http://user:SECRET@host/\n",
                "[placement]\nauth_url = http://user:SECRET@host/\n",
                "[placement]\ntoken SECRET\n",
                "[placement]\n  token = SECRET\n",
                "[placement]\ntoken = SECRET\x01\n",
                "[placement]\ntoken = SECRET\xff\n",
                "[placement]\npassword = SECRET\ntoken = SECRET\nauth_url = http://h\n",
                "[placement]\npassword = SECRET\ntokens = SECRET\nendpoint = http://h\n",
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(config_freep) Config *config = NULL;
                Error error = ERROR_NULL;

                scratch_write(f->folder, "x.conf", texts[i]);
                scratch_chmod(f->folder, "x.conf", 0644);
                assert_int_equal(load(f, &config, &error) < 0, i + 1 < ARRAY_SIZE(texts));
                assert_null(strstr(error.text, "SECRET"));
                assert_null(strstr(f->warnings, "SECRET"));
        }
}

/* A4: the driver's options of CPUs, memory and images */
static void test_host_options_a4(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[DEFAULT]\n"
                             "reserved_huge_pages = node:0,size:2048,count:64\n"
                             "force_raw_images = false\n"
                             "reserved_huge_pages = node:1,size:1GB,count:1\n"
                             "reserved_huge_pages =\n"
                             "[compute]\n"
                             "cpu_shared_set = 0-3,^2\n"
                             "cpu_dedicated_set = 4-7\n"
                             "numa_in_placement = true\n"
                             "image_type_exclude_list = vmdk, raw\n"
                             "[libvirt]\n"
                             "virt_type = qemu\n"
                             "cpu_mode = custom\n"
                             "cpu_model = Haswell, EPYC\n"
                             "cpu_model_extra_flags = +pcid, -vmx\n"
                             "cpu_power_management = true\n"
                             "images_type = lvm\n"
                             "images_storage_pool = guests\n"
                             "file_backed_memory = 4096\n"
                             "swtpm_enabled = true\n"
                             "supported_tpm_secret_security = user, HOST\n");
        const HostConfig *d = &c->driver.host;

        assert_string_equal(d->reserved_huge_pages[0], "node:0,size:2048,count:64");
        assert_string_equal(d->reserved_huge_pages[1], "node:1,size:1GB,count:1");
        assert_null(d->reserved_huge_pages[2]);
        assert_false(d->force_raw_images);
        assert_string_equal(d->cpu_shared_set, "0-3,^2");
        assert_string_equal(d->cpu_dedicated_set, "4-7");
        assert_true(d->numa_in_placement);
        assert_string_equal(d->image_type_exclude_list[1], "raw");
        assert_int_equal(d->virt_type, HOST_VIRT_QEMU);
        assert_int_equal(d->cpu_mode, HOST_CPU_CUSTOM);
        assert_string_equal(d->cpu_models[1], "EPYC");
        assert_string_equal(d->cpu_model_extra_flags[0], "+pcid");
        assert_true(d->cpu_power_management);
        assert_int_equal(d->images_type, HOST_IMAGES_LVM);
        assert_string_equal(d->images_storage_pool, "guests");
        assert_int_equal(d->file_backed_memory, 4096);
        assert_true(d->swtpm_enabled);
        assert_string_equal(d->supported_tpm_secret_security[1], "HOST");
}

static void test_vcpu_pin_set(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "[DEFAULT]\nvcpu_pin_set = 1-2\n");

        assert_string_equal(c->driver.host.vcpu_pin_set, "1-2");
        assert_string_equal(f->warnings, "x.conf:2: vcpu_pin_set is deprecated. Use [compute] "
                                         "cpu_shared_set or cpu_dedicated_set\n");
}

/* An option that can appear several times has the values of all files, in their order. */
static void test_several_times_over_files(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL;
        char **pages;

        scratch_write(f->folder, "x.conf.d/10-a.conf",
                      "[DEFAULT]\nreserved_huge_pages = node:1,size:2048,count:2\n");
        scratch_write(f->folder, "x.conf.d/20-b.conf",
                      "[DEFAULT]\nreserved_huge_pages = node:2,size:2048,count:3\n");
        c = load_text(f, "[DEFAULT]\nreserved_huge_pages = node:0,size:2048,count:1\n");
        pages = c->driver.host.reserved_huge_pages;
        assert_string_equal(pages[0], "node:0,size:2048,count:1");
        assert_string_equal(pages[1], "node:1,size:2048,count:2");
        assert_string_equal(pages[2], "node:2,size:2048,count:3");
        assert_null(pages[3]);
}

static void test_warnings(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = load_text(f, "# remark\n"
                                                         "[DEFAULT]\n"
                                                         "transport_uri = rabbit://x\n"
                                                         "[glanze]\n"
                                                         "api_servers = http://x\n"
                                                         "more = 1\n"
                                                         "[neutrom]\n"
                                                         "[compute]\n"
                                                         "cpu_set = 0-3\n"
                                                         "[libvirt]\n"
                                                         "virt_kind = kvm\n"
                                                         "[mdev_x]\n"
                                                         "address = 0000:00:00.0\n"
                                                         "[vgpu_x]\n"
                                                         "mdev_class = VGPU\n");

        assert_string_equal(
                f->warnings,
                "x.conf:4: unknown section [glanze], ignoring\n"
                "x.conf:7: unknown section [neutrom], ignoring\n"
                "x.conf:3: unknown option [DEFAULT] transport_uri, ignoring\n"
                "x.conf:9: unknown option [compute] cpu_set, ignoring\n"
                "x.conf:11: unknown option [libvirt] virt_kind, ignoring\n"
                "x.conf:13: unknown option [mdev_x] address, ignoring\n"
                "x.conf:15: unknown option [vgpu_x] mdev_class, ignoring\n"
                "x.conf:12: [devices] enabled_mdev_types does not list the type of "
                "[mdev_x], ignoring\n"
                "x.conf:14: [devices] enabled_mdev_types does not list the type of [vgpu_x], ignoring\n");
        config_free(c);
        scratch_write(f->folder, "x.conf", "[foo]\n");
        c = NULL;
        assert_int_equal(config_load(&c, f->file, NULL, NULL, NULL), 0);
}

/* An option with a warning of its own is not counted as ignored without one. */
static void test_option_without_effect_is_warned_about(void **state)
{
        _cleanup_(config_freep) Config *c =
                load_text(*state, "[workarounds]\n"
                                  "reserve_disk_resource_for_image_cache = true\n"
                                  "disable_rootwrap = true\n");

        assert_int_equal(c->n_ignored, 1);
}

static void test_readable_secret(void **state)
{
        static const struct {
                const char *text;
                const char *expected;
        } cases[] = {
                { "[placement]\nendpoint = http://h\ntoken = x\n",
                  "x.conf:3: [placement] token is a secret, but every user can read the file. Restrict it with chmod o-r\n" },
                { "[placement]\nendpoint = http://h\npassword = x\n",
                  "x.conf:3: [placement] password is a secret, but every user can read the file. "
                  "Restrict it with chmod o-r\n" },
                { "[placement]\nendpoint = http://h\ntoken =\n", "" },
                { "[placement]\nendpoint = http://h\n", "" },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                for (mode_t mode = 0640; mode <= 0644; mode += 4) {
                        _cleanup_(config_freep) Config *c = NULL;

                        scratch_write(f->folder, "x.conf", cases[i].text);
                        scratch_chmod(f->folder, "x.conf", mode);
                        assert_int_equal(load(f, &c, NULL), 0);
                        assert_string_equal(f->warnings, mode == 0644 ? cases[i].expected : "");
                }
        }
}

/* H5: as with MultiStrOpt of oslo.config, each appearance in each file counts. */
static void test_h5_repeated_device_spec(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL;
        Error error = ERROR_NULL;

        scratch_write(f->folder, "x.conf",
                      "[pci]\ndevice_spec = {\"vendor_id\": \"10de\"}\nreport_in_placement=1\n"
                      "passthrough_whitelist = [{\"vendor_id\": \"8086\"},\n  {}]\n");
        scratch_write(f->folder, "x.conf.d/10.conf",
                      "[pci]\ndevice_spec =\nDEVICE_SPEC = {\"address\": \"*:81:00.*\"}\n");
        if (load(f, &c, &error) < 0)
                fail_msg("%s", error.text);
        assert_string_equal(f->warnings, "");
        assert_true(c->driver.host.report_in_placement);
        assert_int_equal(c->driver.host.pci_specs.n_items, 4);
        assert_string_equal(c->device_specs[1], "{\"vendor_id\": \"10de\"}");
        assert_string_equal(c->device_specs[2], "{\"address\": \"*:81:00.*\"}");
        assert_null(c->device_specs[3]);
}

/* An error that depends on two options has the place of the faulty device_spec. */
static void test_error_names_the_faulty_device_spec(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "[pci]\nreport_in_placement = true\ndevice_spec = {\"devname\": \"eth0\"}\n"
                  "device_spec = {\"vendor_id\": \"10de\"}\ndevice_spec =\n",
                  "x.conf:3: [pci] device_spec: devname \"eth0\": [pci] report_in_placement needs an "
                  "address instead of a name" },
                { "[pci]\ndevice_spec = {\"one_time_use\": true}\n"
                  "passthrough_whitelist = {\"vendor_id\": \"10de\"}\n",
                  "x.conf:2: [pci] device_spec: one_time_use needs [pci] report_in_placement = true" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_refused(*state, cases[i].text, cases[i].expected);
}

static void test_drop_ins(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL;
        Error error = ERROR_NULL;
        char expected[512];

        scratch_write(f->folder, "x.conf",
                      "[DEFAULT]\nhost = main\nreserved_host_cpus = 1\ndebug = bad\n"
                      "[devices]\nenabled_mdev_types = a\n");
        scratch_write(f->folder, "x.conf.d/10.conf",
                      "[DEFAULT]\nhost = ten\nclaim_expiry_time = 10\ndebug = false\n");
        scratch_write(f->folder, "x.conf.d/20.conf",
                      "[default]\nHOST = twenty\n[devices]\nenabled_vgpu_types = b\n");
        assert_int_equal(load(f, &c, &error), 0);
        assert_string_equal(c->host, "twenty");
        assert_int_equal(c->driver.host.reserved_host_cpus, 1);
        assert_int_equal(c->claim_expiry_usec, 10 * USEC_PER_SEC);
        assert_int_equal(c->driver.host.n_mdev_types, 1);
        assert_string_equal(c->driver.host.mdev_types[0].type, "b");
        assert_string_equal(c->files[0], f->file);
        assert_non_null(strstr(c->files[1], "/x.conf.d/10.conf"));
        assert_non_null(strstr(c->files[2], "/x.conf.d/20.conf"));
        assert_null(c->files[3]);

        config_free(TAKE_PTR(c));
        scratch_write(f->folder, "x.conf.d/30.conf", "\n[DEFAULT]\nclaim_expiry_time = soon\n");
        assert_int_equal(load(f, &c, &error), -EINVAL);
        snprintf(expected, sizeof(expected),
                 "%s.d/30.conf:3: [DEFAULT] claim_expiry_time: \"soon\": ", f->file);
        assert_int_equal(strncmp(error.text, expected, strlen(expected)), 0);
}

static void test_named_file_missing(void **state)
{
        Fixture *f = *state;
        Config *c = NULL;
        Error error = ERROR_NULL;

        assert_int_equal(load(f, &c, &error), -ENOENT);
        assert_non_null(strstr(error.text, "x.conf does not exist"));
        assert_int_equal(config_load(&c, "/dev/null", NULL, NULL, NULL), 0);
        assert_null(c->files[0]);
        config_free(c);
}

static void test_credentials(void **state)
{
        static const char *const text = "[placement]\nauth_type = admin_token\n"
                                        "endpoint = http://h\ntoken = from-file\n";
        Fixture *f = *state;
        _cleanup_free_ char *credentials = scratch_path(f->folder, "credentials");
        _cleanup_(config_freep) Config *c = NULL;

        /* A folder without that credential changes nothing. */
        scratch_write(f->folder, "credentials/other", "x");
        assert_int_equal(setenv("CREDENTIALS_DIRECTORY", credentials, 1), 0);
        c = load_text(f, text);
        assert_string_equal(c->reporter.auth.token, "from-file");

        config_free(TAKE_PTR(c));
        scratch_write(f->folder, "credentials/placement-token", "from-credential\n");
        c = load_text(f, text);
        assert_string_equal(c->reporter.auth.token, "from-credential");

        config_free(TAKE_PTR(c));
        scratch_write(f->folder, "credentials/placement-password", " pass word ");
        scratch_write(f->folder, "credentials/placement-application-credential-secret", "acs");
        c = load_text(f, "[placement]\nendpoint = http://h\n");
        assert_string_equal(c->keystone.password, " pass word ");
        assert_string_equal(c->keystone.application_credential_secret, "acs");
}

static void test_bad_credentials(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
        static const struct {
                const char *content;
                size_t n;
                const char *expected;
        } cases[] = {
                { BYTES(""), ": is empty" },
                { BYTES("\n"), ": is empty" },
                { BYTES("SECRET\0x"), ": contains a NUL byte" },
                { BYTES("SECRET x"), ": the value must be printable ASCII without spaces" },
        };
        Fixture *f = *state;
        _cleanup_free_ char *credentials = scratch_path(f->folder, "credentials");
        _cleanup_free_ char *big = calloc(1, 16 * 1024 + 1);

        assert_int_equal(setenv("CREDENTIALS_DIRECTORY", credentials, 1), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char expected[512];

                scratch_write_bytes(f->folder, "credentials/placement-token", cases[i].content,
                                    cases[i].n);
                snprintf(expected, sizeof(expected), "credentials/placement-token%s",
                         cases[i].expected);
                expect_refused(f, "", expected);
        }
        assert_non_null(big);
        memset(big, 'x', 16 * 1024 + 1);
        scratch_write_bytes(f->folder, "credentials/placement-token", big, 16 * 1024 + 1);
        assert_int_equal(config_load(&(Config *){ NULL }, f->file, NULL, NULL, NULL), -EFBIG);
}

static void test_mdev_types(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[devices]\n"
                             "enabled_mdev_types = nvidia-35, nvidia-36,\n"
                             "    mtty-2, nvidia-35\n"
                             "[mdev_nvidia-35]\n"
                             "device_addresses = 0000:41:00.0, 0000:4A:00.0\n"
                             "max_instances = 4\n"
                             "[vgpu_nvidia-36]\n"
                             "device_addresses = /sys/devices/virtual/mtty/mtty\n"
                             "[mdev_nvidia-36]\n"
                             "mdev_class = CUSTOM_SMALL\n");
        const HostMdevType *types = c->driver.host.mdev_types;

        assert_int_equal(c->driver.host.n_mdev_types, 3);
        assert_string_equal(types[0].type, "nvidia-35");
        assert_string_equal(types[0].device_addresses[0], "0000:41:00.0");
        assert_string_equal(types[0].device_addresses[1], "0000:4a:00.0");
        assert_null(types[0].device_addresses[2]);
        assert_string_equal(types[0].mdev_class, "VGPU");
        assert_int_equal(types[0].max_instances, 4);
        assert_string_equal(types[1].type, "nvidia-36");
        assert_string_equal(types[1].device_addresses[0], "/sys/devices/virtual/mtty/mtty");
        assert_string_equal(types[1].mdev_class, "CUSTOM_SMALL");
        assert_int_equal(types[1].max_instances, 0);
        assert_string_equal(types[2].type, "mtty-2");
        assert_null(types[2].device_addresses);
        assert_string_equal(f->warnings, "");
}

/* C4: the first type without addresses takes the remaining devices, and a second one none. */
static void test_mdev_default_type(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[devices]\nenabled_vgpu_types = a, b, c\n"
                             "[mdev_b]\ndevice_addresses = 0000:41:00.0\n[mdev_a]\n"
                             "[mdev_c]\ndevice_addresses = ,\n");

        assert_int_equal(c->driver.host.n_mdev_types, 2);
        assert_string_equal(c->driver.host.mdev_types[0].type, "a");
        assert_string_equal(c->driver.host.mdev_types[1].type, "b");
        assert_string_equal(
                f->warnings,
                "[mdev_c] device_addresses is not set, but the type a already takes all "
                "other devices, ignoring the type\n");
}

static void test_mdev_refused(void **state)
{
#define TYPES "[devices]\nenabled_mdev_types = a, b\n"
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { TYPES "[mdev_a]\ndevice_addresses = 41:00.0\n",
                  "x.conf:4: [mdev_a] device_addresses: \"41:00.0\": must be a "
                  "comma-separated list of PCI addresses (0000:41:00.0) or paths below /sys/devices/" },
                { TYPES "[mdev_a]\ndevice_addresses = 0000:41:00.0\n"
                        "[mdev_b]\ndevice_addresses = 0000:42:00.0,0000:41:00.0\n",
                  "x.conf:6: [mdev_b] device_addresses: 0000:41:00.0 already belongs to the type a, "
                  "which has the same mdev_class" },
                { TYPES "[mdev_a]\ndevice_addresses = 0000:4A:00.0, 0000:4a:00.0\n",
                  "x.conf:4: [mdev_a] device_addresses: 0000:4a:00.0 is listed twice" },
                { TYPES "[vgpu_a]\ndevice_addresses = x\n",
                  "x.conf:4: [vgpu_a] device_addresses: \"x\": must be a comma-separated list of "
                  "PCI addresses (0000:41:00.0) or paths below /sys/devices/" },
                { TYPES "[mdev_a]\nmdev_class = VCPU\n",
                  "x.conf:4: [mdev_a] mdev_class: \"VCPU\": must be VGPU, or "
                  "CUSTOM_ with A-Z, 0-9 and _ (up to 255)" },
                { TYPES "[mdev_a]\nmax_instances = 0\n",
                  "x.conf:4: [mdev_a] max_instances: \"0\": must be a whole number from 1 to 2147483647" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_refused(*state, cases[i].text, cases[i].expected);
}

/* Each option has words that fit into an error after its place, and no option appears twice. */
static void test_table(void **state)
{
        const ConfigOption *const tables[] = { config_options, config_mdev_options,
                                               config_prepare_options, config_clean_options,
                                               config_shapes_options };
        size_t n = 0, n_secret = 0;

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
                for (const ConfigOption *o = tables[i]; o->key; o++, n++) {
                        assert_true(strlen(o->allowed) > 0 && strlen(o->allowed) < 100);
                        assert_ptr_equal(config_find_option(tables[i], o->section, o->key), o);
                        n_secret += o->secret;
                }
        assert_true(n > 50);
        assert_int_equal(n_secret, 3);
}

/* Memory runs out in the search, in the reading and in the making of the Config. */
static void test_out_of_memory(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c = NULL;
        Error error = ERROR_NULL;
        unsigned n;
        int r;

        scratch_write(f->folder, "x.conf.d/a.conf", "[DEFAULT]\nhost='h'\ndebug=1\n");
        config_free(load_text(f, "[DEFAULT]\nstate_path=/x\n[placement]\nendpoint=http://h\n"
                                 "[devices]\nenabled_mdev_types=a,b\n"
                                 "[mdev_a]\ndevice_addresses=0000:41:00.0\n[mdev_b]\n"));
        FAIL_ALLOC_EACH(n, r = load(f, &c, &error)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(c);
                assert_true(error.text[0] != '\0');
                error = ERROR_NULL;
        }
        assert_int_equal(r, 0);
        assert_true(n > 50);
}

TEST_MAIN_WITH(setup, teardown, test_defaults, test_hook_alone, test_offline,
               test_defaults_of_host_and_reporter, test_everything_set, test_placement,
               test_pasted_from_nova, test_log_level, test_refused, test_host_options_a4,
               test_vcpu_pin_set, test_several_times_over_files, test_messages_have_no_secrets,
               test_warnings, test_option_without_effect_is_warned_about, test_readable_secret,
               test_drop_ins, test_h5_repeated_device_spec, test_error_names_the_faulty_device_spec,
               test_named_file_missing, test_credentials, test_bad_credentials, test_mdev_types,
               test_mdev_default_type, test_mdev_refused, test_table, test_out_of_memory)

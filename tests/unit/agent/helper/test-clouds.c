/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/helper/clouds.h"

#include "base/text.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define CLOUDS                                                                               \
        "clouds:\n"                                                                          \
        "  one:\n"                                                                           \
        "    auth: {auth_url: 'http://k:5000', username: nova, user_domain_name: Default,\n" \
        "           password: from-clouds, project_id: '7'}\n"                               \
        "    region_name: RegionOne\n"                                                       \
        "    cacert: /etc/ssl/ca.pem\n"                                                      \
        "  two:\n"                                                                           \
        "    auth_type: v3applicationcredential\n"                                           \
        "    auth: {auth_url: 'https://k/v3', application_credential_id: '4711'}\n"          \
        "    interface: internal\n"                                                          \
        "    verify: false\n"                                                                \
        "    placement_endpoint_override: http://p:8778\n"                                   \
        "  nothing: 5\n"                                                                     \
        "  vendor: {profile: vexxhost}\n"                                                    \
        "  bad: {auth_type: v2password, auth: {auth_url: 'http://k'}}\n"                     \
        "  short: {auth: {auth_url: 'http://k', username: nova}}\n"                          \
        "  token: {auth: {auth_url: 'http://u:SECRET@k'}}\n"
#define SECURE                                             \
        "clouds: {one: {auth: {password: from-secure}},\n" \
        "         two: {auth: {application_credential_secret: SECRET}}}\n"

typedef struct Fixture {
        char *folder;
        Config *config;
} Fixture;

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));
        _cleanup_free_ char *config = NULL;

        assert_non_null(fixture);
        fixture->folder = scratch_folder_make();
        config = scratch_path(fixture->folder, "x.conf");
        scratch_write(fixture->folder, "x.conf",
                      "[placement]\nauth_type = admin_token\ntoken = of-the-file\n"
                      "endpoint = http://of-the-file\nproject_name = of-the-file\n"
                      "valid_interfaces = admin\n");
        unsetenv("OS_CLIENT_CONFIG_FILE");
        unsetenv("OS_CLIENT_SECURE_FILE");
        unsetenv("XDG_CONFIG_HOME");
        assert_int_equal(setenv("HOME", fixture->folder, 1), 0);
        assert_int_equal(config_load(&fixture->config, config, NULL, NULL, NULL), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        config_free(fixture->config);
        scratch_folder_remove(fixture->folder);
        free(fixture);
        return 0;
}

static void test_password(void **state)
{
        Fixture *fixture = *state;
        const Config *c = fixture->config;

        scratch_write(fixture->folder, ".config/openstack/clouds.yaml", CLOUDS);
        scratch_write(fixture->folder, ".config/openstack/secure.yaml", SECURE);
        assert_int_equal(clouds_apply(fixture->config, "one", NULL), 0);
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_PASSWORD);
        assert_string_equal(c->keystone.auth_url, "http://k:5000");
        assert_string_equal(c->keystone.username, "nova");
        assert_string_equal(c->keystone.password, "from-secure");
        assert_string_equal(c->keystone.project_id, "7");
        assert_string_equal(c->keystone.region_name, "RegionOne");
        assert_string_equal(c->keystone.interface, "public");
        assert_string_equal(c->reporter.http.cafile, "/etc/ssl/ca.pem");
        /* No value of the configuration remains. */
        assert_null(c->keystone.project_name);
        assert_null(c->keystone.valid_interfaces);
        assert_null(c->reporter.auth.token);
        assert_null(c->reporter.http.endpoint);
}

static void test_application_credential(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *clouds = scratch_path(fixture->folder, "mine.yaml");
        _cleanup_free_ char *secure = scratch_path(fixture->folder, "secret.yaml");
        const Config *c = fixture->config;

        scratch_write(fixture->folder, "mine.yaml", CLOUDS);
        scratch_write(fixture->folder, "secret.yaml", SECURE);
        assert_int_equal(setenv("OS_CLIENT_CONFIG_FILE", clouds, 1), 0);
        assert_int_equal(setenv("OS_CLIENT_SECURE_FILE", secure, 1), 0);
        assert_int_equal(clouds_apply(fixture->config, "two", NULL), 0);
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_V3APPLICATIONCREDENTIAL);
        assert_string_equal(c->keystone.application_credential_secret, "SECRET");
        assert_string_equal(c->keystone.interface, "internal");
        assert_string_equal(c->reporter.http.endpoint, "http://p:8778");
        assert_true(c->reporter.http.insecure);
}

/* The words are those that PyYAML, and so openstacksdk, reads as truth values. */
static void test_words_that_switch_verification_off(void **state)
{
        static const struct {
                const char *member;
                bool insecure;
        } cases[] = {
                { "verify: false", true },    { "verify: no", true },
                { "verify: Off", true },      { "verify: true", false },
                { "verify: yes", false },     { "verify: n", false },
                { "insecure: true", true },   { "insecure: Yes", true },
                { "insecure: on", true },     { "insecure: false", false },
                { "region_name: no", false },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = text_format(
                        "clouds: {a: {auth: {auth_url: 'http://k', username: u, password: p,"
                        " user_domain_name: d, project_id: '7'}, %s}}",
                        cases[i].member);

                scratch_write(fixture->folder, ".config/openstack/clouds.yaml", text);
                assert_int_equal(clouds_apply(fixture->config, "a", NULL), 0);
                if (fixture->config->reporter.http.insecure != cases[i].insecure)
                        fail_msg("%s", cases[i].member);
        }
}

static void test_refusals(void **state)
{
        static const struct {
                const char *cloud;
                int r;
                const char *words;
        } cases[] = {
                { "three", -ENOENT, "no cloud \"three\"" },
                { "nothing", -EINVAL, "cloud \"nothing\"" },
                { "vendor", -EINVAL, "profile" },
                { "bad", -EINVAL, "auth_type" },
                { "short", -EINVAL, "user_domain_name" },
                { "token", -EINVAL, "auth_url" },
        };
        Fixture *fixture = *state;
        Error error = ERROR_NULL;

        assert_int_equal(clouds_apply(fixture->config, "one", &error), -ENOENT);
        assert_non_null(strstr(error.text, "no clouds.yaml"));
        scratch_write(fixture->folder, ".config/openstack/clouds.yaml", CLOUDS);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int r = clouds_apply(fixture->config, cases[i].cloud, &error);

                if (r != cases[i].r || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                assert_non_null(strstr(error.text, "clouds.yaml"));
                assert_null(strstr(error.text, "SECRET"));
        }
        scratch_write(fixture->folder, ".config/openstack/clouds.yaml", "clouds: [");
        assert_int_equal(clouds_apply(fixture->config, "one", &error), -EINVAL);
        assert_non_null(strstr(error.text, "not YAML"));
}

TEST_MAIN_WITH(set_up, tear_down, test_password, test_application_credential,
               test_words_that_switch_verification_off, test_refusals)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* [placement] auth_section: the section from which the options of authentication are read. */

#include "config/config.h"

#include "tests/fixtures/config.h"

#define SERVICE_USER                                                                        \
        "[service_user]\nsend_service_user_token = true\nauth_type = password\n"            \
        "auth_url = http://k/v3\nusername = nova\nuser_domain_name = d\npassword = there\n" \
        "project_name = p\nproject_domain_name = d\nregion_name = not-looked-at\n"

/* keystoneauth's rule: all options of authentication come from that section, and no others. */
static void test_auth_section(void **state)
{
        Fixture *f = *state;
        _cleanup_(config_freep) Config *c =
                load_text(f, "[placement]\nauth_section = Service_User\nregion_name = r\n"
                             "auth_type = none\nusername = here\npassword = here\nuser_id = u\n"
                             "max_connections = 7\n" SERVICE_USER);

        assert_string_equal(f->warnings, "");
        assert_int_equal(c->reporter.auth.kind, REPORTER_AUTH_PASSWORD);
        assert_string_equal(c->keystone.username, "nova");
        assert_string_equal(c->keystone.password, "there");
        assert_string_equal(c->keystone.auth_url, "http://k/v3");
        assert_null(c->keystone.user_id);
        assert_string_equal(c->keystone.region_name, "r");
        assert_int_equal(c->reporter.http.max_connections, 7);
}

static void test_auth_section_refused(void **state)
{
        Fixture *f = *state;
        Config *c;

        expect_refused(f, "[placement]\n\nauth_section = gone\n",
                       "x.conf:3: [placement] auth_section: the section [gone] does not exist");
        expect_refused(
                f,
                "[placement]\nauth_section = other\n[other]\nauth_type = password\n"
                "auth_url = http://k\npassword = x\n",
                "x.conf:4: [other] auth_type: password needs username or user_id, which is not set");
        /* An empty reference counts as not set. Nova defines the section, so there is no
         * warning. */
        c = load_text(f,
                      "[placement]\nauth_section =\nendpoint_override = http://p\n" SERVICE_USER);
        assert_string_equal(f->warnings, "");
        config_free(c);
        /* a secret in that section is a secret too */
        scratch_chmod(f->folder, "x.conf", 0644);
        scratch_write(f->folder, "x.conf",
                      "[placement]\nauth_section = service_user\n" SERVICE_USER);
        scratch_chmod(f->folder, "x.conf", 0644);
        assert_int_equal(load(f, &c, NULL), 0);
        assert_non_null(strstr(f->warnings, "x.conf:9: [service_user] password is a secret"));
        config_free(c);
}

TEST_MAIN_WITH(setup, teardown, test_auth_section, test_auth_section_refused)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/connect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print/findings.h"
#include "ctl/print/json.h"

#define CLOCK_TOLERANCE_SEC 5
#define NEWEST_MICROVERSION 38 /* of 1.x, that anything asks for */

static bool has_role(const json_t *connect, const char *name)
{
        const json_t *role;
        size_t i;

        json_array_foreach(json_object_get(connect, "roles"), i, role)
                if (json_is_string(role) && strcmp(json_string_value(role), name) == 0)
                        return true;
        return false;
}

static bool has_keystone(const json_t *connect)
{
        return json_is_true(json_object_get(connect, "keystone"));
}

/* "admin, service" */
static void list_roles(const json_t *connect, char *text, size_t size)
{
        const json_t *role;
        size_t i, n = 0;

        snprintf(text, size, "none");
        json_array_foreach(json_object_get(connect, "roles"), i, role)
                if (json_is_string(role) && n + 2 < size)
                        n += (size_t)snprintf(text + n, size - n, "%s%.40s", n > 0 ? ", " : "",
                                              json_string_value(role));
}

static const char *advice_for_token(const json_t *connect)
{
        const char *outcome = ctl_json_text(connect, "outcome");

        if (strcmp(outcome, "unauthorized") == 0)
                return "Ask for a token with the same credential (\"openstack token issue\"); then correct it in [placement] and \"systemctl reload compute-agent\", or in its file of LoadCredential= and \"systemctl restart compute-agent\"";
        if (strcmp(outcome, "unreachable") == 0)
                return "Check that auth_url is right, that Keystone runs, and that this host reaches it (and trusts its certificate: cafile)";
        return "Compare auth_url, region_name and valid_interfaces in [placement] with \"openstack endpoint list\"";
}

static int judge_token(const json_t *connect, json_t *findings)
{
        const char *error = ctl_json_text(connect, "error"),
                   *scope = ctl_json_text(connect, "scope");
        char roles[200];

        if (error[0])
                return ctl_findings_add(findings, "keystone", "bad", advice_for_token(connect),
                                        "%s", error);
        list_roles(connect, roles, sizeof(roles));
        return ctl_findings_add(findings, "keystone", "ok", NULL,
                                "It gives a token for %s; roles: %s", scope[0] ? scope : "no scope",
                                roles);
}

static int judge_read(const json_t *connect, json_t *findings)
{
        const char *error = ctl_json_text(connect, "placement_error");
        const char *outcome = ctl_json_text(connect, "placement_outcome");

        if (strcmp(outcome, "forbidden") == 0)
                return ctl_findings_add(
                        findings, "role", "bad",
                        !has_keystone(connect)
                                ? "Check that token is the one that Placement's configuration has"
                        : has_role(connect, "service")
                                ? "The user has the role service, so this Placement is older than that role, or has a policy of its own: \"openstack role add --user USER --project PROJECT admin\""
                                : "Grant it: \"openstack role add --user USER --project PROJECT service\" (or admin, where Placement is older than the role service)",
                        "%s", error);
        if (error[0])
                return ctl_findings_add(
                        findings, "endpoint", "bad",
                        has_keystone(connect)
                                ? "Check that Placement runs there, and that the catalogue is right: \"openstack endpoint list --service placement\""
                                : "Check that Placement runs there, and that endpoint_override and token are right",
                        "%s", error);
        if (has_keystone(connect) && !has_role(connect, "service") && !has_role(connect, "admin"))
                return ctl_findings_add(
                        findings, "role", "warning",
                        "Give it one of the two: a stricter policy of Placement refuses what works now",
                        "The token has neither the role service nor admin");
        return ctl_findings_add(findings, "endpoint", "ok", NULL, "Placement answers at %s",
                                ctl_json_text(connect, "endpoint"));
}

static int judge_version(const json_t *connect, json_t *findings)
{
        const char *newest = ctl_json_text(connect, "microversion");
        unsigned major, minor;

        if (sscanf(newest, "%u.%u", &major, &minor) != 2)
                return 0;
        if (major == 1 && minor < NEWEST_MICROVERSION)
                return ctl_findings_add(
                        findings, "version", "warning",
                        "Upgrade Placement when you can; until then consumers have no types (1.38), and no provider can be moved below another (1.37)",
                        "Placement speaks microversions up to %.10s", newest);
        return ctl_findings_add(findings, "version", "ok", NULL,
                                "Placement speaks microversions up to %.10s", newest);
}

static int judge_clock(const json_t *connect, json_t *findings)
{
        json_int_t ahead = json_integer_value(json_object_get(connect, "clock_ahead_sec"));

        if (llabs(ahead) <= CLOCK_TOLERANCE_SEC)
                return 0;
        return ctl_findings_add(
                findings, "clock", "warning",
                "Tokens expire by Keystone's clock, and logs are compared by both: run chrony or systemd-timesyncd on both sides",
                "It is %lld s %s that of Keystone", llabs(ahead),
                ahead > 0 ? "ahead of" : "behind");
}

int ctl_connect_judge(const json_t *connect, json_t *findings)
{
        int r = has_keystone(connect) ? judge_token(connect, findings) : 0;

        if (r == 0 && !ctl_json_text(connect, "error")[0])
                r = judge_read(connect, findings);
        if (r == 0)
                r = judge_version(connect, findings);
        return r == 0 ? judge_clock(connect, findings) : r;
}

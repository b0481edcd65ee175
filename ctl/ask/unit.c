/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the unit compute-agent.service from systemd, and explains its state. The result is the
 * struct CtlUnit.
 *
 * Properties are read one by one, each with a call. The result is complete: if one property cannot
 * be read, ctl_unit_read() fails and leaves ret unchanged. Only LoadCredential can be missing. */

#include "ctl/ask/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/string-set.h"
#include "base/text.h"

#define MANAGER      "org.freedesktop.systemd1"
#define PATH         MANAGER_PATH "/unit/compute_2dagent_2eservice"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT         MANAGER ".Unit"
#define SERVICE      MANAGER ".Service"
#define TIMEOUT_USEC (2 * USEC_PER_SEC) /* longest wait for the answer of one call */

void ctl_unit_done(CtlUnit *unit)
{
        free(unit->load_state);
        free(unit->active_state);
        free(unit->result);
        free(unit->status_text);
        free(unit->user);
        free(unit->config);
        strings_free(unit->groups);
        strings_free(unit->writable);
        for (size_t i = 0; i < unit->n_credentials; i++) {
                free(unit->credentials[i].name);
                free(unit->credentials[i].path);
        }
        free(unit->credentials);
        *unit = (CtlUnit){ 0 };
}

/* Calls Properties.Get of systemd. *ret is a message whose read position is inside the variant; the
 * caller releases it. */
static int get(sd_bus *bus, const char *interface, const char *name, const char *type,
               sd_bus_message **ret)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, MANAGER, PATH,
                                               "org.freedesktop.DBus.Properties", "Get");

        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", interface, name);
        if (r >= 0)
                r = sd_bus_call(bus, m, TIMEOUT_USEC, NULL, &reply);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_VARIANT, type);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(reply);
        return 0;
}

/* Reads a text property. *ret is owned by the caller. */
static int get_text(sd_bus *bus, const char *interface, const char *name, char **ret)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *text = "";
        int r = get(bus, interface, name, "s", &reply);

        if (r >= 0)
                r = sd_bus_message_read(reply, "s", &text);
        if (r < 0)
                return r;
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

static int get_exit_status(sd_bus *bus, CtlUnit *unit)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = get(bus, SERVICE, "ExecMainStatus", "i", &reply);

        return r < 0 ? r : sd_bus_message_read(reply, "i", &unit->exit_status);
}

static int get_groups(sd_bus *bus, CtlUnit *unit)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = get(bus, SERVICE, "SupplementaryGroups", "as", &reply);

        return r < 0 ? r : sd_bus_message_read_strv(reply, &unit->groups);
}

/* Adds the folders of a property to ret, the folders that the service can write. The folder
 * "before" (with a slash at its end) is put in front of each path. It is "" for absolute paths. The
 * characters "-" and "+" that systemd permits in front of a path are removed. */
static int get_folders(sd_bus *bus, const char *name, const char *before, StringSet *ret)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(strings_freep) char **folders = NULL;
        int r = get(bus, SERVICE, name, "as", &reply);

        if (r >= 0)
                r = sd_bus_message_read_strv(reply, &folders);
        for (char **folder = folders; r >= 0 && folder && *folder; folder++) {
                const char *path = *folder + strspn(*folder, "+-");
                _cleanup_free_ char *absolute = text_format("%s%s", before, path);

                r = absolute ? string_set_add(ret, absolute) : -ENOMEM;
        }
        return r;
}

/* Reads which folders the sandbox leaves writable: ReadWritePaths=, and the folders of state, run
 * time, cache and logs of the unit. With ProtectSystem=strict, may_write() of ctl/verbs/config.c
 * takes all of these for the only ones. Other folders that systemd leaves writable, as by
 * BindPaths=, are not read. */
static int get_sandbox(sd_bus *bus, CtlUnit *unit)
{
        _cleanup_(string_set_done) StringSet folders = { 0 };
        _cleanup_free_ char *protect = NULL;
        int r = get_text(bus, SERVICE, "ProtectSystem", &protect);

        if (r >= 0)
                r = get_folders(bus, "ReadWritePaths", "", &folders);
        if (r >= 0)
                r = get_folders(bus, "StateDirectory", LOCALSTATEDIR "/lib/", &folders);
        if (r >= 0)
                r = get_folders(bus, "RuntimeDirectory", "/run/", &folders);
        if (r >= 0)
                r = get_folders(bus, "CacheDirectory", LOCALSTATEDIR "/cache/", &folders);
        if (r >= 0)
                r = get_folders(bus, "LogsDirectory", LOCALSTATEDIR "/log/", &folders);
        if (r < 0)
                return r;
        unit->read_only = strcmp(protect, "strict") == 0;
        unit->writable = calloc(folders.n_items + 1, sizeof(char *));
        if (!unit->writable)
                return -ENOMEM;
        for (size_t i = 0; i < folders.n_items; i++)
                unit->writable[i] = TAKE_PTR(folders.items[i]);
        folders.n_items = 0;
        return 0;
}

/* Appends a credential. If a text cannot be copied (-ENOMEM), it stays in the list as NULL. */
static int add_credential(CtlUnit *unit, const char *name, const char *path)
{
        size_t i = unit->n_credentials;
        void *grown = reallocarray(unit->credentials, i + 1, sizeof(*unit->credentials));

        if (!grown)
                return -ENOMEM;
        unit->credentials = grown;
        unit->n_credentials++;
        unit->credentials[i].name = strdup(name);
        unit->credentials[i].path = strdup(path);
        return unit->credentials[i].name && unit->credentials[i].path ? 0 : -ENOMEM;
}

/* Reads LoadCredential=, pairs of a name and a path. systemd before 247 has no such property. */
static int get_credentials(sd_bus *bus, CtlUnit *unit)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name, *path;
        int r = get(bus, SERVICE, "LoadCredential", "a(ss)", &reply);

        if (r == -EBADR)
                return 0;
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(ss)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(ss)", &name, &path)) > 0)
                r = add_credential(unit, name, path);
        return r;
}

const char *ctl_unit_find_config(char *const argv[])
{
        for (; argv && *argv; argv++) {
                if (strncmp(*argv, "--config=", strlen("--config=")) == 0)
                        return *argv + strlen("--config=");
                if (strcmp(*argv, "--config") == 0 || strcmp(*argv, "-c") == 0)
                        return argv[1] ?: "";
                if (strncmp(*argv, "-c", strlen("-c")) == 0)
                        return *argv + strlen("-c");
        }
        return "";
}

/* Reads the file of --config from the first command of ExecStart=. */
static int get_config(sd_bus *bus, CtlUnit *unit)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(strings_freep) char **argv = NULL;
        const char *path;
        int r = get(bus, SERVICE, "ExecStart", "a(sasbttttuii)", &reply);

        if (r >= 0)
                r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(sasbttttuii)");
        if (r > 0)
                r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_STRUCT, "sasbttttuii");
        if (r > 0)
                r = sd_bus_message_read(reply, "s", &path);
        if (r > 0)
                r = sd_bus_message_read_strv(reply, &argv);
        if (r < 0)
                return r;
        unit->config = strdup(ctl_unit_find_config(argv));
        return unit->config ? 0 : -ENOMEM;
}

int ctl_unit_read(sd_bus *bus, CtlUnit *ret)
{
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        const struct {
                const char *interface, *name;
                char **text;
        } texts[] = {
                { UNIT, "LoadState", &unit.load_state },
                { UNIT, "ActiveState", &unit.active_state },
                { SERVICE, "Result", &unit.result },
                { SERVICE, "StatusText", &unit.status_text },
                { SERVICE, "User", &unit.user },
        };
        int (*const reads[])(sd_bus * bus, CtlUnit * unit) = { get_exit_status, get_config,
                                                               get_groups, get_sandbox,
                                                               get_credentials };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(texts) && r >= 0; i++)
                r = get_text(bus, texts[i].interface, texts[i].name, texts[i].text);
        for (size_t i = 0; i < ARRAY_SIZE(reads) && r >= 0; i++)
                r = reads[i](bus, &unit);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(unit);
        return 0;
}

/* Explains why the agent does not answer. The words of STATUS= are used only if the service exited
 * with an error and is not active now. A service that ran normally leaves another text in
 * STATUS=. */
bool ctl_unit_explain(const CtlUnit *unit, Error *reterr)
{
        bool exited = strcmp(unit->result, "exit-code") == 0;
        bool has_words = strncmp(unit->status_text, CTL_UNIT_FAILED, strlen(CTL_UNIT_FAILED)) == 0;

        if (exited && has_words && strcmp(unit->active_state, "active") != 0)
                error_setf(reterr, ESRCH, "compute-agent %s", unit->status_text);
        else if (strcmp(unit->active_state, "failed") == 0 && exited)
                error_setf(
                        reterr, ESRCH,
                        "compute-agent failed with exit code %d. See: journalctl -u compute-agent",
                        unit->exit_status);
        else if (strcmp(unit->active_state, "failed") == 0)
                error_setf(reterr, ESRCH,
                           "compute-agent failed (%s). See: journalctl -u compute-agent",
                           unit->result);
        else if (strcmp(unit->active_state, "activating") == 0)
                error_setf(reterr, ESRCH,
                           "compute-agent is starting. See: systemctl status compute-agent");
        else if (strcmp(unit->active_state, "active") == 0)
                error_setf(
                        reterr, ESRCH,
                        "compute-agent is running, but is not on the system bus. See: journalctl -u compute-agent");
        else
                return false;
        return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Asks the bus about a connection and decodes the reply. Without a reply for PATIENCE_USEC, the
 * question fails. The user comes from the standard method GetConnectionCredentials. The byte counts
 * come from the debug interface of dbus-daemon, which dbus-broker does not implement. One Asking is
 * allocated for each question. The slot of the question owns it until after the answer, or until
 * this program closes the bus.
 *
 * Tests: tests/unit/agent/bus/test-gate.c */

#include "agent/bus/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define DRIVER      "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"
#define STATISTICS  "org.freedesktop.DBus.Debug.Stats"

/* After this time the question counts as unanswered. */
#define PATIENCE_USEC (30 * USEC_PER_SEC)

typedef struct Asking {
        const char *field; /* key in the statistics; NULL: the question is about the user */
        void (*answered)(const char *name, int result, uint64_t value, void *userdata);
        void *userdata;
        char name[];
} Asking;

/* Finds an integer in a reply of type "a{sv}". Returns -ENOTSUP if the key is absent. */
static int read_field(sd_bus_message *reply, const char *field, uint64_t *ret)
{
        const char *key;
        uint32_t value;
        int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                r = sd_bus_message_read(reply, "s", &key);
                if (r >= 0 && strcmp(key, field) == 0) {
                        r = sd_bus_message_read(reply, "v", "u", &value);
                        *ret = r < 0 ? 0 : value;
                        return r;
                }
                if (r >= 0)
                        r = sd_bus_message_skip(reply, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
        }
        return r < 0 ? r : -ENOTSUP;
}

/* Reads the credentials. The reply is read twice, because the order of its keys is not defined. A
 * pid that is absent or cannot be read is 0, and no error. */
static int read_user(sd_bus_message *reply, uint64_t *ret)
{
        uint64_t uid, pid = 0;
        int r = read_field(reply, "UnixUserID", &uid);

        if (r < 0)
                return r;
        r = sd_bus_message_rewind(reply, true);
        if (r >= 0 && read_field(reply, "ProcessID", &pid) < 0)
                pid = 0;
        *ret = uid | pid << 32;
        return r;
}

/* Maps a D-Bus error to the results of bus_ask(). */
static int read_failure(const sd_bus_error *error)
{
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return -ENXIO;
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED))
                return -EACCES;
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_METHOD) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT))
                return -ENOTSUP;
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT))
                return -ETIMEDOUT;
        return -EIO;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
        const Asking *asking = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        uint64_t value = 0;
        int r;

        if (error)
                r = read_failure(error);
        else if (asking->field)
                r = read_field(reply, asking->field, &value);
        else
                r = read_user(reply, &value);
        asking->answered(asking->name, MIN(r, 0), value, asking->userdata);
        return 0;
}

int bus_ask(sd_bus *bus, BusQuestion question, const char *name,
            void (*answered)(const char *name, int result, uint64_t value, void *userdata),
            void *userdata)
{
        static const struct {
                const char *interface, *member, *field;
        } questions[] = {
                [BUS_ASK_USER] = { DRIVER, "GetConnectionCredentials", NULL },
                [BUS_ASK_UNREAD] = { STATISTICS, "GetConnectionStats", "OutgoingBytes" },
                [BUS_ASK_SENT] = { STATISTICS, "GetConnectionStats", "IncomingBytes" },
        };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        size_t size = strlen(name) + 1;
        Asking *asking;
        sd_bus_slot *slot;
        int r = sd_bus_message_new_method_call(bus, &m, DRIVER, DRIVER_PATH,
                                               questions[question].interface,
                                               questions[question].member);

        if (r >= 0)
                r = sd_bus_message_append(m, "s", name);
        if (r < 0)
                return r;
        asking = malloc(sizeof(Asking) + size);
        if (!asking)
                return -ENOMEM;
        *asking = (Asking){ .field = questions[question].field,
                            .answered = answered,
                            .userdata = userdata };
        memcpy(asking->name, name, size);
        r = sd_bus_call_async(bus, &slot, m, on_answer, asking, PATIENCE_USEC);
        if (r < 0) {
                free(asking);
                return r;
        }
        /* Let the bus own the slot, and the slot own the Asking: both are freed after the answer,
         * or when the bus is closed. */
        (void)sd_bus_slot_set_destroy_callback(slot, free);
        (void)sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        return 0;
}

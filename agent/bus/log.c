/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/log.h"

#include <string.h>

#include "base/log.h"

#define INTERFACE "org.freedesktop.LogControl1"

/* Where base/log.h writes is not for others to choose. */
static const char *target(void)
{
        return getenv("JOURNAL_STREAM") ? "journal" : "console";
}

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const char *text = "compute-agentd";

        if (strcmp(property, "LogLevel") == 0)
                text = log_level_to_text(log_get_level());
        else if (strcmp(property, "LogTarget") == 0)
                text = target();
        return sd_bus_message_append(reply, "s", text);
}

static int set_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *value, void *userdata, sd_bus_error *error)
{
        const char *text;
        int level, r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        level = log_level_from_text(text);
        if (level < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "\"%.40s\" is not a log level", text);
        log_set_level(level);
        log_info("What is %s or more important is logged now.", log_level_to_text(level));
        return 0;
}

static int set_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *value, void *userdata, sd_bus_error *error)
{
        const char *text;
        int r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        if (strcmp(text, target()) == 0 || strcmp(text, "auto") == 0)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED,
                                 "compute-agentd writes to the %s only", target());
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_text, set_level, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_text, set_target, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

int bus_log_add(BusDispatch *dispatch, sd_bus *bus)
{
        return bus_dispatch_add(
                dispatch, bus,
                &(BusPlace){ .path = BUS_LOG_PATH, .interface = INTERFACE, .vtable = vtable });
}

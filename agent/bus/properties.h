/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The properties of org.computeagent.Agent1, which agent/formats/interface.h lists: getters for its
 * vtable. Main thread; nothing blocks. */

#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "agent/placing/queue.h"

/* What they are read from: the userdata of each getter. */
typedef struct BusFacts {
        BusConfig config;
        ClaimDebts debts; /* as of the last change */
} BusFacts;

int bus_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                 sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_withheld(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_unread(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_published(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_contest(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_number(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error);
int bus_get_count(sd_bus *bus, const char *path, const char *interface, const char *property,
                  sd_bus_message *reply, void *userdata, sd_bus_error *error);

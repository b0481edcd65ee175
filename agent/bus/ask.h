/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the bus is asked of a connection, without waiting: whose it is, and how much of what was
 * sent to it lies with dbus-daemon because it does not read. Main thread only. */

#include <stdint.h>
#include <systemd/sd-bus.h>

/* 0, or -ENXIO: that connection is gone; -EACCES: the bus policy forbids the question; -ENOTSUP:
 * the bus has no answer to it; else what the bus did not answer for. value is 0 then. */
typedef void (*BusAnswered)(const char *name, int result, uint64_t value, void *userdata);

/* The question about a connection. */
typedef enum BusQuestion {
        BUS_ASK_USER,   /* its uid, and in the upper half its pid (0: not known) */
        BUS_ASK_UNREAD, /* the bytes that were sent to it, and that it has not read */
        BUS_ASK_SENT,   /* the bytes that it sent, and that others have not read */
} BusQuestion;

/* Asks about the connection of that name. Negative errno when the question cannot be sent: answered
 * is not called. It is called later, unless the bus connection is closed before. */
int bus_ask(sd_bus *bus, BusQuestion question, const char *name, BusAnswered answered,
            void *userdata);

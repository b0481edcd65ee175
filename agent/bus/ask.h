/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Questions to dbus-daemon about a connection, without waiting: its user, and how many bytes are
 * unread. Main thread only. */

#include <stdint.h>
#include <systemd/sd-bus.h>

/* result: 0; -ENXIO: the connection is gone; -EACCES: the bus policy forbids the question;
 * -ENOTSUP: the bus cannot answer it; else the error of the bus. value is 0 unless result is. */
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

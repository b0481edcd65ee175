/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Asynchronous questions to the bus about one connection: its user, and the number of unread bytes.
 * The calls do not block. Main thread only. */

#include <stdint.h>
#include <systemd/sd-bus.h>

/* The subject of a question, and the value of its answer. */
typedef enum BusQuestion {
        BUS_ASK_USER,   /* uid of the connection; the upper 32 bits are its pid (0: unknown) */
        BUS_ASK_UNREAD, /* bytes sent to it that it has not read */
        BUS_ASK_SENT,   /* bytes it sent that their receivers have not read */
} BusQuestion;

/* Asks about the connection with this unique name. Returns a negative errno if the question cannot
 * be sent; answered is not called then. Otherwise answered is called once, later, from the event
 * loop, unless this program closes the bus before. The callback answered receives the answer.
 * result is 0, -ENXIO (the connection is gone), -EACCES (the bus policy forbids the question),
 * -ENOTSUP (this bus does not implement it, or its reply lacks the value), -ETIMEDOUT (no answer
 * for 30 s, or the bus closed this program's connection), or -EIO for any other error. A reply that
 * cannot be read gives any negative errno. value is 0 unless result is 0. */
int bus_ask(sd_bus *bus, BusQuestion question, const char *name,
            void (*answered)(const char *name, int result, uint64_t value, void *userdata),
            void *userdata);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's event loop, on a thread of its own. Without it no keepalive is sent and no event
 * arrives; and it must not be the thread that makes calls, for a call waits where the loop would
 * have to run (see HACKING.md, "Threads").
 *
 * libvirt allows one event loop per process and cannot stop it: it runs until the process ends. */

#include "base/error.h"

/* Starts it the first time; must come before the first connection. Any thread. Negative errno with
 * words, every time when it failed the first time. */
int libvirt_event_loop_start(Error *reterr);

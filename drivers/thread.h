/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starting a thread that no signal ever reaches: signals are the main loop's. */

#include <pthread.h>

#include "base/macros.h"

/* name is at most 15 characters, and what "ps -T" shows. run(data) is the thread. Negative errno.
 */
int thread_start(const char *name, void *(*run)(void *data), void *data, pthread_t *ret);

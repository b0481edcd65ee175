/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The thread that libvirt's calls are made on, one after another, for one job after another.
 *
 * A call into a hypervisor's library may hang for ever. So that a job which takes the place of one
 * that hangs needs no thread of its own, it waits on the same one: however often that happens,
 * there is one thread, and one job that is not over. Main thread only. */

#include <stdbool.h>

typedef struct VirtThread VirtThread;

typedef struct VirtJob {
        void (*serve)(void *data); /* on the thread; returns when it was asked to, or when its call
                                      does after that */
        void (*drop)(void *data);  /* once, on either thread: nothing uses data any more */
        void *data;
} VirtJob;

/* Has job served when all before it are over: on before's thread (taken over by reference), or,
 * NULL, on a new one. -ENOMEM, -EAGAIN; job was not dropped then. */
int virt_thread_enter(VirtThread **ret, VirtThread *before, const VirtJob *job);

/* The job is over, or will be: it must know of that already. One whose turn did not come is
 * dropped. Where no other is left: with patience gives it two seconds to end; else, and then, the
 * thread is left behind. */
void virt_thread_leave(VirtThread *thread, const void *data, bool patience);

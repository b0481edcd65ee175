/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/event-loop.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <time.h>

#include "drivers/libvirt/error.h"
#include "drivers/poll-thread.h"

/* Once per process, as libvirt's own registration is. Written before pthread_once() returns. */
static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static int start_result;
static Error start_error;

/* libvirt writes its errors to standard error unless it is given something else to do with them. */
static void ignore_error(void *data, virErrorPtr error)
{
}

static void *run_event_loop(void *data)
{
        const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };

        for (;;)
                if (virEventRunDefaultImpl() < 0)
                        nanosleep(&pause, NULL); /* never spin */
        return NULL;
}

static void start(void)
{
        pthread_t thread;

        if (virInitialize() < 0) {
                start_result = libvirt_error(&start_error, "Cannot initialise libvirt");
                return;
        }
        virSetErrorFunc(NULL, ignore_error);
        if (virEventRegisterDefaultImpl() < 0) {
                start_result = libvirt_error(&start_error, "Cannot register libvirt's event loop");
                return;
        }
        start_result = thread_start("libvirt-events", run_event_loop, NULL, &thread);
        if (start_result < 0)
                error_setf(&start_error, start_result, "Cannot start libvirt's event thread");
        else
                pthread_detach(thread);
}

int libvirt_event_loop_start(Error *reterr)
{
        pthread_once(&start_once, start);
        if (start_result < 0 && reterr)
                *reterr = start_error;
        return start_result;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/thread.h"

#include <signal.h>

int thread_start(const char *name, void *(*run)(void *data), void *data, pthread_t *ret)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        /* the new thread inherits the mask */
        sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r > 0)
                return -r;
        r = pthread_create(&thread, NULL, run, data);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r > 0)
                return -r;
        pthread_setname_np(thread, name);
        *ret = thread;
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A terminal taken over whole: its other screen, no cursor, keys as they are typed. Text is put
 * there a page at a time, in one write and without clearing first, so that nothing flickers. */

#include <termios.h>

#include "base/macros.h"

typedef enum CtlKey {
        CTL_KEY_NONE,
        CTL_KEY_QUIT, /* q, Q, or the input has ended */
        CTL_KEY_UP,
        CTL_KEY_DOWN,
        CTL_KEY_PAGE_UP,
        CTL_KEY_PAGE_DOWN,
} CtlKey;

typedef struct CtlScreen {
        bool open;
        bool has_keys; /* standard input is a terminal, too */
        struct termios before;
        size_t first; /* the line of the text that is shown at the top */
        char *shown;  /* what was written last */
} CtlScreen;

/* Standard output must be a terminal. */
void ctl_screen_open(CtlScreen *screen);

/* Gives the terminal back as it was. */
void ctl_screen_close(CtlScreen *screen);

/* Shows as much of the text as the terminal has lines for, from screen->first on. -ENOMEM. */
int ctl_screen_draw(CtlScreen *screen, const char *text);

/* The next draw writes again, whatever stands there: the terminal has changed. */
void ctl_screen_forget(CtlScreen *screen);

/* Reads one key, when standard input can be read. */
CtlKey ctl_screen_read_key(void);

/* Scrolls; the next draw bounds it. */
void ctl_screen_scroll(CtlScreen *screen, CtlKey key);

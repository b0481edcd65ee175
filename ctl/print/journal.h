/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The last lines that the service wrote into the journal, as "systemctl status" shows them. */

#include "ctl/print/page.h"

/* Prints at most n of this boot; nothing when there are none, or the reader may not see them.
 * Blocks on the disk. */
void ctl_journal_print(unsigned n, CtlPage *page);

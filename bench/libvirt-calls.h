/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts the calls of libvirt by this program. Each function is wrapped at link time (--wrap).
 * Look-ups in a handle (names, uuids) are no calls. */

/* Return the number of all calls, and of those for one device or one domain. */
unsigned libvirt_calls_all(void);
unsigned libvirt_calls_single(void);
/* Starts counting from 0. */
void libvirt_calls_reset(void);

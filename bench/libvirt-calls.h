/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How often the program called libvirt, by function: each is wrapped at link time (--wrap). Local
 * look-ups in a handle (names, uuids) are no calls. */

/* All calls; those that ask for one device or one domain. */
unsigned libvirt_calls_all(void);
unsigned libvirt_calls_single(void);
void libvirt_calls_reset(void);

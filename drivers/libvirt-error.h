/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one place that knows libvirt's error codes. All of it speaks of the last error of the calling
 * thread. */

#include "base/error.h"

/* Translates the error into an errno and words, with advice where there is any: what was tried,
 * libvirt's own message, what to do. Returns the negative errno. */
int libvirt_error(Error *reterr, const char *what);

/* The domain or device is not there any more: normal between a listing and a look. */
bool libvirt_error_is_gone(void);

/* True when the call failed and libvirt itself does not know why: so ends a look at a device that
 * leaves /sys at that moment. */
bool libvirt_error_is_unexplained(void);

/* This hypervisor, or this version of libvirt, does not do that. */
bool libvirt_error_is_unsupported(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one place that knows libvirt's error codes. All of it speaks of the last error of the calling
 * thread. */

#include <libvirt/libvirt.h>

#include "drivers/host/snapshot.h"

/* Translates the error into an errno and words, with advice where there is any: what was tried,
 * libvirt's own message, what to do. Returns the negative errno. */
int libvirt_error(Error *reterr, const char *what);

/* The domain or device is not there any more: normal between a listing and a look. */
bool libvirt_error_is_gone(void);

/* True when the call failed and libvirt itself does not know why: so ends a look at a device that
 * leaves /sys at that moment. */
bool libvirt_error_is_unexplained(void);

/* A part of a poll failed with r and these words: it costs itself, and the snapshot notes it. 0,
 * or r with the words in reterr where the poll cannot go on: the connection broke (what libvirt
 * said last is forgotten here), or there is no memory. */
int libvirt_leave_out(virConnectPtr connection, Snapshot *snapshot, int r, const Error *error,
                      Error *reterr);

/* This hypervisor, or this version of libvirt, does not do that. */
bool libvirt_error_is_unsupported(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which inventories can go together in one POST /reshaper without consumers. Pure.
 *
 * The reshaper sets many inventories in one transaction, so one refusal refuses all of them. A
 * provider is left to a request of its own when Placement might refuse it: a class goes that may be
 * in use, or it loses all its classes. And when Placement would take from the reshaper what it
 * refuses otherwise (facts E6: more reserved than there is), so that the refusal is seen. */

#include "base/provider-tree.h"

/* Fewer inventories than this are sent one by one: it is the same number of requests, or one less,
 * and they are independent of each other. */
#define PLAN_BATCH_MIN 4

/* mirror is what Placement holds of the provider now; NULL: nothing. */
bool plan_batch_takes(const Provider *desired, const Provider *mirror);

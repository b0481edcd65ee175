/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which consumers can be migrations of guests that are still defined here. Pure.
 *
 * While a guest moves to another host, a migration of the same project holds here what the guest
 * had. The guest's own claim counts that, so the migration gets no claim beside it. One consumer is
 * marked for each such guest: the first one of the guest's size. */

#include "claims/reconcile.h"

/* input: complete answers. counted has a place for each answer, false before. */
void moved_guests_mark(const ReconcileInput *input, bool *counted);

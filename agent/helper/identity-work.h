/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl identity": gathers what identity-judge.h judges, from this host's files and from
 * Placement, and does what the operator ordered. For a program that ends; it blocks. */

#include <jansson.h>

#include "config/config.h"

typedef enum IdentityOrder {
        IDENTITY_SHOW,
        IDENTITY_ADOPT,
        IDENTITY_RENAME,
        _IDENTITY_ORDER_MAX,
        _IDENTITY_ORDER_INVALID = -EINVAL,
} IdentityOrder;

IdentityOrder identity_order_from_text(const char *text); /* "show", "adopt", "rename" */

typedef struct IdentityTask {
        const Config *config;
        const char *name; /* of this host; "": not known */
        IdentityOrder order;
        bool force, dry_run;
} IdentityTask;

/* The caller owns *ret. What does not work is in the document; negative only for files that cannot
 * be read or do not agree, a configuration that cannot work (-EINVAL), and -ENOMEM. */
int identity_work(const IdentityTask *task, json_t **ret, Error *reterr);

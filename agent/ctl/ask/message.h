/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims in D-Bus messages, as computectl writes and reads them: what a claim asks for, and what
 * became of it as a document of agent/ctl/print/claims.h. Nothing is sent here. */

#include <systemd/sd-bus.h>

#include "base/json.h"
#include "base/request-mappings.h"
#include "base/resource-request.h"

typedef struct CtlClaim {
        const char *consumer;
        const char *project, *user; /* may be NULL */
        const char *consumer_type;  /* may be NULL */
        bool resize_target;
        const ResourceRequest *request;
        const NumaOptions *numa;         /* the layout, as the options say it */
        const RequestMappings *mappings; /* of its groups; may be NULL */
} CtlClaim;

/* Groups and options of Claim() and Explain(). Negative errno, -EINVAL for a text that is not
 * UTF-8. */
int ctl_message_append_request(sd_bus_message *m, const CtlClaim *claim);

/* The answer to Claim(). -ENOMEM, or what sd-bus says of a message that is otherwise. */
int ctl_message_read_claimed(sd_bus_message *m, const char *consumer, json_t **ret);

/* Appends one claim of ListClaims() and the like, inside of its struct. The same errors. */
int ctl_message_read_claim(sd_bus_message *m, json_t *claims);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a claim asks for in D-Bus messages. Nothing is sent here. */

#include <systemd/sd-bus.h>

#include "base/resource-request.h"

typedef struct CtlClaim {
        const char *consumer;
        const char *project, *user; /* may be NULL */
        const char *consumer_type;  /* may be NULL */
        bool resize_target;
        uint32_t process;          /* that its guest is; 0: not given */
        const char *control_group; /* of the unit that it is; may be NULL */
        const ResourceRequest *request;
        const NumaOptions *numa;         /* the layout, as the options say it */
        const RequestMappings *mappings; /* of its groups; may be NULL */
} CtlClaim;

/* Groups and options of Claim() and Explain(). Negative errno, -EINVAL for a text that is not
 * UTF-8. */
int ctl_message_append_request(sd_bus_message *m, const CtlClaim *claim);

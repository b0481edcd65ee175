/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What "computectl claim" asks for, from the texts of its options. Pure. */

#include "base/resource-request.h"

/* "VCPU=2,VGPU=1" of --resources: the group without a suffix. -EINVAL with words, -ENOMEM. */
int ctl_request_add_resources(ResourceRequest *request, const char *text, Error *reterr);

/* "1:VGPU=1" of --group: a group that comes whole from one provider. */
int ctl_request_add_group(ResourceRequest *request, const char *text, Error *reterr);

/* "HW_CPU_X86_AVX,!CUSTOM_OLD" of --required, or with a group's suffix: "1:CUSTOM_FAST". */
int ctl_request_add_traits(ResourceRequest *request, const char *text, Error *reterr);

/* -EINVAL when nothing is asked for, or a group has traits but no resources. */
int ctl_request_check(const ResourceRequest *request, Error *reterr);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's XML of a CPU, as virConnectBaselineCPU() takes and gives it. Pure. */

#include "drivers/host/host-config.h"
#include "drivers/libvirt/guest-capabilities.h"

/* The XML of a model of that architecture with these features beside it; vendor and features may be
 * NULL. NULL when out of memory, and when a name is none that XML or libvirt could have. */
char *cpu_model_format(const char *arch, const char *model, const char *vendor,
                       const StringSet *features);

/* Adds the names of the features of such XML to ret. -EBADMSG with words, -ENOMEM. */
int cpu_model_read_features(const char *text, StringSet *ret, Error *reterr);

/* [libvirt] cpu_model_extra_flags: "+x" and "x" add a feature, "-x" takes it away. -ENOMEM. */
int cpu_model_apply_flags(char *const flags[], StringSet *features);

/* The model that guests of that architecture have with cpu_mode = none, or NULL. */
const char *cpu_model_of_arch(const char *arch);

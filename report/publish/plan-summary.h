/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The words of a plan's steps, for people. Pure. The caller frees; NULL when out of memory. */

#include "base/allocation.h"
#include "base/provider-tree.h"

/* "VCPU 8, MEMORY_MB 16384 (was 15872), no VGPU (was 4)". was: empty where there was nothing. */
char *plan_summarize_inventories(const Provider *want, const Provider *was);

/* "+HW_CPU_X86_AVX2 -CUSTOM_OLD" */
char *plan_summarize_set(const StringSet *want, const StringSet *was);

/* "inventories of 3 providers, allocations of 12 consumers" */
char *plan_summarize_reshape(size_t n_providers, const Allocations *allocations);

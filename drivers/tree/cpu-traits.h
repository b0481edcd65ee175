/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The traits that CPU features become (facts C8). Pure. */

#include "base/macros.h"

typedef struct CpuTrait {
        const char *trait;   /* "HW_CPU_X86_AVX2" */
        const char *feature; /* libvirt's name, "avx2" */
        const char *alias;   /* another name of the same, or NULL */
} CpuTrait;

/* Every one of them; a feature may stand for two traits. */
const CpuTrait *cpu_traits(size_t *ret_n);

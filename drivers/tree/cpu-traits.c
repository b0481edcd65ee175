/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/cpu-traits.h"

#define X86(feature_, name, alias_)                                                   \
        {                                                                             \
                .trait = "HW_CPU_X86_" name, .feature = (feature_), .alias = (alias_) \
        }

/* The map is Nova's, with the names that libvirt has beside it: where those are the only ones, Nova
 * never reports the trait. */
static const CpuTrait table[] = {
        X86("3dnow", "3DNOW", NULL),
        X86("abm", "ABM", NULL),
        X86("aes", "AESNI", NULL),
        X86("avx", "AVX", NULL),
        X86("avx2", "AVX2", NULL),
        X86("avx512-vpopcntdq", "AVX512VPOPCNTDQ", NULL),
        X86("avx512bitalg", "AVX512BITALG", NULL),
        X86("avx512bw", "AVX512BW", NULL),
        X86("avx512cd", "AVX512CD", NULL),
        X86("avx512dq", "AVX512DQ", NULL),
        X86("avx512er", "AVX512ER", NULL),
        X86("avx512f", "AVX512F", NULL),
        X86("avx512ifma", "AVX512IFMA", NULL),
        X86("avx512pf", "AVX512PF", NULL),
        X86("avx512vbmi", "AVX512VBMI", NULL),
        X86("avx512vbmi2", "AVX512VBMI2", NULL),
        X86("avx512vl", "AVX512VL", NULL),
        X86("avx512vnni", "AVX512VNNI", NULL),
        X86("bmi1", "BMI", NULL),
        X86("bmi2", "BMI2", NULL),
        X86("f16c", "F16C", NULL),
        X86("fma", "FMA3", NULL),
        X86("fma4", "FMA4", NULL),
        X86("gfni", "AVX512GFNI", NULL),
        X86("mmx", "MMX", NULL),
        X86("mpx", "MPX", NULL),
        X86("pclmuldq", "CLMUL", "pclmulqdq"),
        X86("sha-ni", "SHA", NULL),
        X86("sse", "SSE", NULL),
        X86("sse2", "SSE2", NULL),
        X86("sse3", "SSE3", "pni"),
        X86("sse4.1", "SSE41", NULL),
        X86("sse4.2", "SSE42", NULL),
        X86("sse4a", "SSE4A", NULL),
        X86("ssse3", "SSSE3", NULL),
        X86("svm", "AMD_SVM", NULL),
        X86("svm", "SVM", NULL),
        X86("tbm", "TBM", NULL),
        X86("vaes", "AVX512VAES", NULL),
        X86("vmx", "INTEL_VMX", NULL),
        X86("vmx", "VMX", NULL),
        X86("vpclmulqdq", "AVX512VPCLMULQDQ", NULL),
        X86("xop", "XOP", NULL),
};

const CpuTrait *cpu_traits(size_t *ret_n)
{
        *ret_n = ARRAY_SIZE(table);
        return table;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The common part of fuzz targets: the entry that libFuzzer calls, with the input as a text.
 *
 * A target defines fuzz_text(). "make fuzz" builds it with clang (see HACKING.md). */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fuzz_text(const char *text);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);

        assert(text);
        memcpy(text, data, size);
        text[size] = '\0';
        fuzz_text(text);
        free(text);
        return 0;
}

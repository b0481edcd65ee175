/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A temporary folder of a test, removed with all that is in it. Failures end the test. */

#include <sys/types.h>

/* Makes it below $TMPDIR or /tmp. The caller frees the path with scratch_folder_remove(). */
char *scratch_folder_make(void);
void scratch_folder_remove(char *folder);

static inline void scratch_folder_removep(char **folder)
{
        if (*folder)
                scratch_folder_remove(*folder);
}

/* A path in the folder, to be freed. */
char *scratch_path(const char *folder, const char *name);

/* Writes a file of n bytes, or a text, making the folders that its name has. */
void scratch_write_bytes(const char *folder, const char *name, const void *bytes, size_t n);
void scratch_write(const char *folder, const char *name, const char *text);
void scratch_chmod(const char *folder, const char *name, mode_t mode);
void scratch_link(const char *folder, const char *name, const char *target);
void scratch_mkdir(const char *folder, const char *name);

/* The content of a file, to be freed; NULL when there is none. */
char *scratch_read(const char *folder, const char *name);

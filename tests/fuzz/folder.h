/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fuzz_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
        (void)st;
        (void)kind;
        (void)ftw;
        (void)remove(path);
        return 0;
}

static char fuzz_folder_path[64];

static void fuzz_remove_folder(void)
{
        (void)nftw(fuzz_folder_path, fuzz_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns a folder for the files of a target, in memory if possible. It is removed at the exit and
 * stays after a crash. Borrowed. */
static const char *fuzz_folder(void)
{
        if (fuzz_folder_path[0])
                return fuzz_folder_path;
        snprintf(fuzz_folder_path, sizeof(fuzz_folder_path), "%s/fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert(mkdtemp(fuzz_folder_path));
        assert(atexit(fuzz_remove_folder) == 0);
        return fuzz_folder_path;
}

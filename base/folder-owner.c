/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/folder-owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* Returns 1 if this process is root and another user owns the folder, with the folder's stat.
 * Returns 0 if not or if the folder does not exist, else a negative errno. */
static int look(const char *folder, struct stat *ret)
{
        if (geteuid() != 0)
                return 0;
        if (stat(folder, ret) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        return ret->st_uid != 0;
}

int folder_owner_find(const char *folder, uid_t *ret_user)
{
        struct stat st;
        int r = look(folder, &st);

        if (r > 0)
                *ret_user = st.st_uid;
        return r;
}

/* Changes user and groups for good. The group comes from the user database if it has the user,
 * because a folder's group can be any group of its owner. The supplementary groups matter too:
 * one of them can permit the use of libvirt's socket. */
static int become(uid_t uid, gid_t gid_of_folder)
{
        const struct passwd *user = getpwuid(uid);
        gid_t gid = user ? user->pw_gid : gid_of_folder;
        int ends_with_parent = 0;

        (void)prctl(PR_GET_PDEATHSIG, &ends_with_parent);
        if ((user ? initgroups(user->pw_name, gid) : setgroups(0, NULL)) < 0 ||
            setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
                return -errno;
        /* The kernel clears this setting when the user changes. */
        return ends_with_parent && prctl(PR_SET_PDEATHSIG, ends_with_parent) < 0 ? -errno : 0;
}

/* Uses one message for every failure, because the caller must stop in each case. */
int folder_owner_become(const char *folder, Error *reterr)
{
        struct stat st;
        int r = look(folder, &st), changed = r;

        if (r > 0)
                r = become(st.st_uid, st.st_gid);
        return r < 0 ? error_setf(
                               reterr, r,
                               "%.150s belongs to another user, and root cannot switch to that user: %s",
                               folder, strerror(-r))
                     : changed;
}

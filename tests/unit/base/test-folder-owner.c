/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Only root can become another user. For other users the function does nothing, which is tested
 * too. */

#include "base/folder-owner.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define SOMEBODY 12345

/* Runs in a child. Returns the exit status: 0, or the number of the check that failed. */
static int become_somebody(const char *folder)
{
        gid_t groups[1];
        uid_t real, effective, saved;
        int signal = 0;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || folder_owner_become(folder, NULL) != 1)
                return 1;
        if (getresuid(&real, &effective, &saved) < 0 || real != SOMEBODY || effective != SOMEBODY ||
            saved != SOMEBODY)
                return 2;
        if (getegid() != SOMEBODY || getgroups(1, groups) != 0)
                return 3;
        if (seteuid(0) == 0)
                return 4;
        if (prctl(PR_GET_PDEATHSIG, &signal) < 0 || signal != SIGKILL)
                return 5;
        return folder_owner_become(folder, NULL) == 0 ? 0 : 6; /* a second call does nothing */
}

static void test_root_becomes_the_owner(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        uid_t user = 1;
        int status;
        pid_t pid;

        if (geteuid() != 0) {
                assert_int_equal(folder_owner_become(folder, NULL), 0);
                return;
        }
        assert_int_equal(chown(folder, SOMEBODY, SOMEBODY), 0);
        assert_int_equal(folder_owner_find(folder, &user), 1);
        assert_int_equal(user, SOMEBODY);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(become_somebody(folder));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_nothing_to_become(void **state)
{
        _cleanup_(scratch_folder_removep) char *own = scratch_folder_make();
        uid_t before = geteuid(), user;

        assert_int_equal(folder_owner_become(own, NULL), 0);
        assert_int_equal(folder_owner_become("/nowhere/at/all", NULL), 0);
        assert_int_equal(folder_owner_become("/dev/null/below", NULL), 0);
        assert_int_equal(folder_owner_find(own, &user), 0);
        assert_int_equal(geteuid(), before);
}

TEST_MAIN(test_root_becomes_the_owner, test_nothing_to_become)

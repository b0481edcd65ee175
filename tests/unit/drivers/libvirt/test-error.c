/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the translation of libvirt's errors. The test sets the last error itself. */

#include "drivers/libvirt/error.h"

#include <libvirt/virterror.h>

#include "tests/unit/test.h"

static virError last;
static bool is_alive;

virErrorPtr __wrap_virGetLastError(void);
virErrorPtr __wrap_virGetLastError(void)
{
        return &last;
}

int __wrap_virGetLastErrorCode(void);
int __wrap_virGetLastErrorCode(void)
{
        return last.code;
}

int __wrap_virConnectIsAlive(virConnectPtr connection);
int __wrap_virConnectIsAlive(virConnectPtr connection)
{
        return is_alive;
}

static void test_translation(void **state)
{
        static const struct {
                int code, domain, system_errno, result;
                const char *words;
                bool gone, unsupported, unexplained;
        } cases[] = {
                { VIR_ERR_OK, 0, 0, -EIO, "It: libvirt gives no reason", .gone = false },
                /* between the agent and the daemon */
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_RPC, ENOENT, -ECONNREFUSED, "check that libvirtd",
                  .gone = false },
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_REMOTE, EACCES, -EACCES, "group libvirt",
                  .gone = false },
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_RPC, EPIPE, -ECONNRESET, "next poll",
                  .gone = false },
                /* in the daemon, which reads /sys */
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_NODEDEV, ENOENT, -EIO, "It: m", .gone = true },
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_NODEDEV, ENODEV, -EIO, "It: m", .gone = true },
                { VIR_ERR_SYSTEM_ERROR, VIR_FROM_NODEDEV, EACCES, -EIO, "It: m", .gone = false },
                { VIR_ERR_NO_DOMAIN, VIR_FROM_QEMU, 0, -EIO, "It: m", .gone = true },
                { VIR_ERR_NO_NODE_DEVICE, VIR_FROM_NODEDEV, 0, -EIO, "It: m", .gone = true },
                { VIR_ERR_AUTH_FAILED, VIR_FROM_RPC, 0, -EACCES, "group libvirt", .gone = false },
                { VIR_ERR_OPERATION_DENIED, 0, 0, -EACCES, "read-only", .gone = false },
                { VIR_ERR_NO_CONNECT, 0, 0, -EINVAL, "connection_uri", .gone = false },
                { VIR_ERR_NO_MEMORY, 0, 0, -ENOMEM, "It: m", .gone = false },
                { VIR_ERR_OPERATION_TIMEOUT, 0, 0, -ETIMEDOUT, "It: m", .gone = false },
                { VIR_ERR_NO_SUPPORT, 0, 0, -EOPNOTSUPP, "It: m", .unsupported = true },
                { VIR_ERR_INVALID_ARG, 0, 0, -EINVAL, "It: m", .unsupported = true },
                { VIR_ERR_INTERNAL_ERROR, VIR_FROM_NONE, 0, -EIO, "It: m", .unexplained = true },
                { VIR_ERR_INTERNAL_ERROR, VIR_FROM_QEMU, 0, -EIO, "It: m", .unexplained = false },
        };
        char message[] = "m";

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;

                last = (virError){ .code = cases[i].code,
                                   .domain = cases[i].domain,
                                   .int1 = cases[i].system_errno,
                                   .message = message };
                if (libvirt_error(&error, "It") != cases[i].result ||
                    !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d %s", i, error.code, error.text);
                if (libvirt_error_is_gone() != cases[i].gone ||
                    libvirt_error_is_unsupported() != cases[i].unsupported ||
                    libvirt_error_is_unexplained() != cases[i].unexplained)
                        fail_msg("case %zu: %s", i, error.text);
        }
}

/* A part that fails is a problem, unless the connection broke or memory is short. */
static void test_failed_part_is_left_out(void **state)
{
        static const struct {
                int r;
                bool is_alive;
                int result;
        } cases[] = { { -EIO, true, 0 }, { -EIO, false, -EIO }, { -ENOMEM, true, -ENOMEM } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                Error error = ERROR_NULL, reason;

                assert_int_equal(snapshot_new(&snapshot), 0);
                is_alive = cases[i].is_alive;
                error_setf(&reason, cases[i].r, "why");
                assert_int_equal(libvirt_leave_out(NULL, snapshot, cases[i].r, &reason, &error),
                                 cases[i].result);
                assert_int_equal(snapshot->problems.n_items, cases[i].result == 0);
                assert_string_equal(error.text, cases[i].result ? "why" : "");
        }
}

TEST_MAIN(test_translation, test_failed_part_is_left_out)

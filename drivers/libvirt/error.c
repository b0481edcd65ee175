/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Translates libvirt's errors. A table has an errno and advice for each known code. An error of the
 * system (VIR_ERR_SYSTEM_ERROR) also has an errno. The table uses it only if the error occurred
 * between the agent and the daemon: it then says whether the daemon can be reached.
 * libvirt_error_is_gone() uses the errno only of the daemon's own errors. An unknown code becomes
 * EIO without advice.
 *
 * Tests: tests/unit/drivers/libvirt/test-error.c */

#include "drivers/libvirt/error.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

static const char advice_daemon[] = "; check that libvirtd (or virtqemud) runs";
static const char advice_group[] = "; add the agent's user to the group libvirt";
static const char advice_uri[] = "; check [libvirt] connection_uri";
static const char advice_retry[] = "; the next poll connects again";

/* One row of the table. Rows with a system_errno apply to transport errors only. */
typedef struct Translation {
        int code;         /* libvirt's code, VIR_ERR_… */
        int system_errno; /* errno of a VIR_ERR_SYSTEM_ERROR of the transport; 0: any error */
        int result;       /* errno for the caller, positive */
        const char *advice;
} Translation;

static const Translation translations[] = {
        { VIR_ERR_SYSTEM_ERROR, ENOENT, ECONNREFUSED, advice_daemon },
        { VIR_ERR_SYSTEM_ERROR, ECONNREFUSED, ECONNREFUSED, advice_daemon },
        { VIR_ERR_SYSTEM_ERROR, EACCES, EACCES, advice_group },
        { VIR_ERR_SYSTEM_ERROR, EPERM, EACCES, advice_group },
        { VIR_ERR_SYSTEM_ERROR, ECONNRESET, ECONNRESET, advice_retry },
        { VIR_ERR_SYSTEM_ERROR, EPIPE, ECONNRESET, advice_retry },
        { VIR_ERR_AUTH_FAILED, 0, EACCES, advice_group },
        { VIR_ERR_AUTH_UNAVAILABLE, 0, EACCES, advice_group },
        { VIR_ERR_AUTH_CANCELLED, 0, EACCES, advice_group },
        { VIR_ERR_ACCESS_DENIED, 0, EACCES, advice_group },
        { VIR_ERR_OPERATION_DENIED, 0, EACCES, "; the connection is read-only" },
        { VIR_ERR_NO_CONNECT, 0, EINVAL, advice_uri },
        { VIR_ERR_XML_ERROR, 0, EBADMSG, "" },
        { VIR_ERR_NO_MEMORY, 0, ENOMEM, "" },
        { VIR_ERR_OPERATION_TIMEOUT, 0, ETIMEDOUT, "" },
        { VIR_ERR_AGENT_UNRESPONSIVE, 0, ETIMEDOUT, "" },
        { VIR_ERR_NO_SUPPORT, 0, EOPNOTSUPP, "" },
        { VIR_ERR_ARGUMENT_UNSUPPORTED, 0, EOPNOTSUPP, "" },
        { VIR_ERR_CONFIG_UNSUPPORTED, 0, EOPNOTSUPP, "" },
        { VIR_ERR_OPERATION_UNSUPPORTED, 0, EOPNOTSUPP, "" },
        { VIR_ERR_INVALID_ARG, 0, EINVAL, "" },
};

/* Returns whether the error occurred between the agent and the daemon. The daemon also sends its
 * own errors. */
static bool is_of_transport(const virError *error)
{
        return error->domain == VIR_FROM_RPC || error->domain == VIR_FROM_REMOTE;
}

static const Translation *find_translation(const virError *error)
{
        for (size_t i = 0; i < ARRAY_SIZE(translations); i++)
                if (translations[i].code == error->code &&
                    (!translations[i].system_errno ||
                     (is_of_transport(error) && translations[i].system_errno == error->int1)))
                        return &translations[i];
        return NULL;
}

int libvirt_error(Error *reterr, const char *what)
{
        const virError *error = virGetLastError();
        const Translation *translation;

        if (!error || error->code == VIR_ERR_OK)
                return error_setf(reterr, EIO, "%s: libvirt gives no reason", what);
        translation = find_translation(error);
        return error_setf(reterr, translation ? translation->result : EIO, "%s: %s%s", what,
                          error->message ? error->message : "no message",
                          translation ? translation->advice : "");
}

bool libvirt_error_is_gone(void)
{
        const virError *error = virGetLastError();

        if (!error)
                return false;
        /* The daemon reads /sys, from which a device can vanish before the daemon removes it from
         * its list. The errno of that read then shows that the device is gone. */
        if (error->code == VIR_ERR_SYSTEM_ERROR && !is_of_transport(error))
                return error->int1 == ENOENT || error->int1 == ENODEV;
        return error->code == VIR_ERR_NO_DOMAIN || error->code == VIR_ERR_NO_NODE_DEVICE;
}

bool libvirt_error_is_unexplained(void)
{
        const virError *error = virGetLastError();

        return error && error->code == VIR_ERR_INTERNAL_ERROR && error->domain == VIR_FROM_NONE;
}

int libvirt_leave_out(virConnectPtr connection, Snapshot *snapshot, int r, const Error *error,
                      Error *reterr)
{
        if (r != -ENOMEM && virConnectIsAlive(connection) == 1)
                return snapshot_add_problem(snapshot, error->text) < 0 ? error_oom(reterr) : 0;
        if (reterr)
                *reterr = *error;
        return r;
}

bool libvirt_error_is_unsupported(void)
{
        int code = virGetLastErrorCode();

        /* VIR_ERR_INVALID_ARG counts too, because libvirt reports unsupported flags with it. */
        return code == VIR_ERR_NO_SUPPORT || code == VIR_ERR_ARGUMENT_UNSUPPORTED ||
               code == VIR_ERR_CONFIG_UNSUPPORTED || code == VIR_ERR_OPERATION_UNSUPPORTED ||
               code == VIR_ERR_INVALID_ARG;
}

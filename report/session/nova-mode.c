/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session/nova-mode.h"

#include <string.h>

#define OBSERVE "[agent] nova is observe, so nothing is written to Placement"
#define BESIDE  "[agent] nova is beside, so nova-compute manages "

const char *nova_mode_to_text(NovaMode mode)
{
        static const char *const names[] = {
                [NOVA_NONE] = "none",
                [NOVA_OBSERVE] = "observe",
                [NOVA_BESIDE] = "beside",
                [NOVA_TOP] = "top",
        };

        return names[mode];
}

/* Reasons for rejected actions in NOVA_BESIDE, with advice; an action without a text is allowed. */
static const char *const beside[_NOVA_ACTION_MAX] = {
        [NOVA_ACTION_PUBLISH] = BESIDE
        "the tree of providers. \"computectl plan\" shows the changes that the agent would make",
        [NOVA_ACTION_RESHAPE] =
                BESIDE "the tree of providers. Set [agent] nova = top to let the agent reshape it",
        [NOVA_ACTION_CORDON_HOST] = BESIDE
        "the trait that disables this host. Run \"openstack compute service set --disable --disable-reason WHY HOST nova-compute\", or set [agent] nova = top",
        [NOVA_ACTION_CORDON_DEVICE] = BESIDE
        "the inventory of this device and resets reserved to 0. Remove the device from nova-compute's configuration, disable the compute service, or set [agent] nova = top",
        [NOVA_ACTION_RENAME] =
                BESIDE "the provider of this host. Set [agent] nova = top to rename it",
};

/* Applies the rule of the mode: observe rejects all actions, beside those of its table, and none
 * and top no action. */
const char *nova_mode_refuses(NovaMode mode, NovaAction action)
{
        if (mode == NOVA_OBSERVE)
                return OBSERVE;
        return mode == NOVA_BESIDE ? beside[action] : NULL;
}

static bool begins(const char *path, const char *prefix)
{
        return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Maps a request to an action. In NOVA_BESIDE a PUT of inventories passes, because reserved is a
 * part of them. */
const char *nova_mode_refuses_request(NovaMode mode, const char *method, const char *path)
{
        const char *end = strrchr(path, '/');

        if (strcmp(method, "GET") == 0)
                return NULL;
        if (begins(path, "/allocations"))
                return nova_mode_refuses(mode, NOVA_ACTION_CLAIM);
        if (begins(path, "/reshaper"))
                return nova_mode_refuses(mode, NOVA_ACTION_RESHAPE);
        if (strcmp(method, "PUT") == 0 && end && strcmp(end, "/inventories") == 0)
                return nova_mode_refuses(mode, NOVA_ACTION_RESERVE);
        return nova_mode_refuses(mode, NOVA_ACTION_PUBLISH);
}

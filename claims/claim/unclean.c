/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds and describes unclean devices. The caller sorts a list by address. A description has the
 * time of the last change of the state in UTC; it has no name of a device.
 *
 * Tests: tests/unit/claims/test-claims-unclean.c */

#include "claims/claim/unclean.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"

const char *unclean_state_to_text(int state)
{
        static const char *const texts[_UNCLEAN_STATE_MAX] = {
                [UNCLEAN_HELD] = "held",
                [UNCLEAN_DIRTY] = "dirty",
                [UNCLEAN_FAILED] = "failed",
        };

        return state >= 0 && state < _UNCLEAN_STATE_MAX ? texts[state] : NULL;
}

static int order_address(const void *key, const void *item)
{
        return strcmp(key, ((const UncleanDevice *)item)->address);
}

const UncleanDevice *unclean_devices_find(const UncleanDevices *devices, const char *address)
{
        bool found;
        size_t i = array_find(devices->items, sizeof(UncleanDevice), devices->n_items, address,
                              order_address, &found);

        return found ? &devices->items[i] : NULL;
}

/* Leaves the date empty if the time is beyond the years of gmtime_r(). */
void unclean_describe(const UncleanDevice *device, char ret[static UNCLEAN_WORDS_SIZE])
{
        time_t seconds = (time_t)(device->since_usec / USEC_PER_SEC);
        char date[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &utc);
        switch (device->state) {
        case UNCLEAN_DIRTY:
                snprintf(ret, UNCLEAN_WORDS_SIZE, "not clean: cleaning since %s%s%s", date,
                         device->reason[0] ? ": " : "", device->reason);
                break;
        case UNCLEAN_FAILED:
                snprintf(ret, UNCLEAN_WORDS_SIZE, "not clean: cleaning failed at %s: %s", date,
                         device->reason);
                break;
        default:
                if (device->reason[0])
                        snprintf(ret, UNCLEAN_WORDS_SIZE, "not clean: %s", device->reason);
                else
                        snprintf(ret, UNCLEAN_WORDS_SIZE,
                                 "not clean: its guest is not proved to be gone since %s", date);
        }
}

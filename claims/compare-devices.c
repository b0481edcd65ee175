/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/compare-devices.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "claims/fit/device-choice.h"

bool claim_lacks_identity(const HostFacts *facts, const Claim *claim)
{
        for (size_t i = 0; i < claim->n_devices; i++)
                if (device_lacks_identity(facts, &claim->devices[i]))
                        return true;
        return false;
}

int compare_identities(const HostFacts *facts, const Claim *claim, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];
                const char *now = host_facts_identity(facts, device->address);

                if (!device_identity_differs(device->identity, now) ||
                    (i > 0 && strcmp(device[-1].address, device->address) == 0))
                        continue;
                if (reconcile_add_problem(problems, &claim->consumer, claim->id,
                                          "another device is at %s (%s): claim %" PRId64
                                          " was given %s",
                                          device->address, now, claim->id, device->identity) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench/libvirt-calls.h"

#include <libvirt/libvirt.h>

static unsigned n_all, n_single;

unsigned libvirt_calls_all(void)
{
        return __atomic_load_n(&n_all, __ATOMIC_RELAXED);
}

unsigned libvirt_calls_single(void)
{
        return __atomic_load_n(&n_single, __ATOMIC_RELAXED);
}

void libvirt_calls_reset(void)
{
        __atomic_store_n(&n_all, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&n_single, 0, __ATOMIC_RELAXED);
}

static void count(unsigned single)
{
        __atomic_add_fetch(&n_all, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&n_single, single, __ATOMIC_RELAXED);
}

#define WRAP(single_, type_, name_, parameters_, arguments_) \
        type_ __real_##name_ parameters_;                    \
        type_ __wrap_##name_ parameters_;                    \
        type_ __wrap_##name_ parameters_                     \
        {                                                    \
                count(single_);                              \
                return __real_##name_ arguments_;            \
        }

WRAP(0, char *, virConnectGetHostname, (virConnectPtr c), (c))
WRAP(0, int, virConnectGetVersion, (virConnectPtr c, unsigned long *version), (c, version))
WRAP(0, const char *, virConnectGetType, (virConnectPtr c), (c))
WRAP(0, int, virNodeGetInfo, (virConnectPtr c, virNodeInfoPtr info), (c, info))
WRAP(0, char *, virConnectGetCapabilities, (virConnectPtr c), (c))
WRAP(0, int, virNodeGetCPUMap,
     (virConnectPtr c, unsigned char **map, unsigned *online, unsigned flags),
     (c, map, online, flags))
WRAP(0, int, virConnectListAllNodeDevices,
     (virConnectPtr c, virNodeDevicePtr **devices, unsigned flags), (c, devices, flags))
WRAP(0, int, virConnectListAllDomains, (virConnectPtr c, virDomainPtr **domains, unsigned flags),
     (c, domains, flags))
WRAP(1, virNodeDevicePtr, virNodeDeviceLookupByName, (virConnectPtr c, const char *name), (c, name))
WRAP(1, char *, virNodeDeviceGetXMLDesc, (virNodeDevicePtr device, unsigned flags), (device, flags))
WRAP(1, int, virDomainGetState, (virDomainPtr domain, int *state, int *reason, unsigned flags),
     (domain, state, reason, flags))
WRAP(1, int, virDomainIsPersistent, (virDomainPtr domain), (domain))
WRAP(1, char *, virDomainGetXMLDesc, (virDomainPtr domain, unsigned flags), (domain, flags))

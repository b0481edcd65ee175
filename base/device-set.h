/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A set of devices that is given out in partitions, such as NVLink partitions of 8, 4, 2 and 1
 * GPUs or the positions of MIG instances. Each partition has members and devices. A guest gets all
 * devices of one partition, and no member is in use twice. Pure; any thread.
 *
 * In a set of devices each member is a device, and the devices of a partition are its members. In a
 * set of slots a member is a part of a device, and each partition has devices of its own. The
 * amount of a partition is the number of its members. Nothing stores the partition of a guest: its
 * devices name it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DEVICE_SET_MEMBERS_MAX    64  /* the bits of a mask of members */
#define DEVICE_SET_PARTITIONS_MAX 256 /* partitions of one set */
#define DEVICE_SET_ID_MAX         32  /* characters of a partition's id, and of a set's name */

typedef struct DevicePartition {
        char id[DEVICE_SET_ID_MAX + 1];
        uint64_t members; /* bit i stands for member i + 1; not 0 */
        char **devices;   /* PCI addresses in small letters; NULL-terminated, owned */
} DevicePartition;

typedef struct DeviceSet {
        char *name;           /* owned */
        char *resource_class; /* owned */
        char **members;       /* addresses in small letters, the first is member 1; NULL-terminated,
                                 owned; NULL: slots */
        size_t n_members;
        DevicePartition *partitions; /* in the order of the configuration */
        size_t n_partitions;
} DeviceSet;

/* The parts of a set that no guest can get now. All zeros: everything is free. */
typedef struct DeviceSetUse {
        uint64_t taken;                         /* members; bits as in DevicePartition */
        bool is_out[DEVICE_SET_PARTITIONS_MAX]; /* partitions of slots that lack a device */
} DeviceSetUse;

/* Makes a set of the texts of its options. members: addresses, or one number of slots. partitions:
 * texts such as "0=1-4", "3=1+3" and, for slots, "a=1-4@ADDRESS+ADDRESS". The texts are copied.
 * The caller checks the name, the class and the addresses. Each member must be in a partition, and
 * no two partitions have the same id or the same devices. A device of slots is in one partition,
 * which has at most one for each slot. Returns -EINVAL with words or -ENOMEM. */
int device_set_parse(DeviceSet *ret, const char *name, const char *resource_class,
                     char *const *members, char *const *partitions, Error *reterr);

/* Makes a copy. Returns -ENOMEM. */
int device_set_copy(const DeviceSet *set, DeviceSet *ret);

/* Frees everything that the set owns, and zeroes it. */
void device_set_done(DeviceSet *set);

/* Returns the device at the index, borrowed: those of all partitions, each once. NULL: there are no
 * more. O(devices) for slots. */
const char *device_set_device(const DeviceSet *set, size_t index);

/* Returns the members that this device takes. In a set of devices it is only its own member,
 * although the guest has a whole partition. In a set of slots it is those of its partition. 0: the
 * device is not in the set. Here and in the functions below, an address has small letters. */
uint64_t device_set_members_of(const DeviceSet *set, const char *address);

/* Marks a device that a guest or a claim has: its members (device_set_members_of()) are taken. The
 * caller marks each device of the guest. A device of another set is ignored. */
void device_set_take(const DeviceSet *set, DeviceSetUse *use, const char *address);

/* Marks a device that cannot be given out, because it is missing or withheld. A device that is a
 * member counts as taken. A device of slots excludes its partition and leaves the slots to other
 * partitions. */
void device_set_exclude(const DeviceSet *set, DeviceSetUse *use, const char *address);

/* Returns the amounts that fit, bit n - 1 for the amount n. use: NULL means that all is free. */
uint64_t device_set_amounts(const DeviceSet *set, const DeviceSetUse *use);

/* Returns the largest of such amounts, 0 if there is none. */
unsigned device_amounts_largest(uint64_t amounts);

/* Returns the smallest of such amounts, and in *ret_step the greatest common divisor of all. Both
 * are 0 if there is none. */
unsigned device_amounts_smallest(uint64_t amounts, unsigned *ret_step);

/* Returns whether the amount is one of them. */
bool device_amounts_have(uint64_t amounts, uint64_t amount);

/* Returns the number of members of a mask. */
unsigned device_members_count(uint64_t members);

/* Chooses a partition of the amount, borrowed: the one after which the most partitions of the
 * largest amount fit, then of the next smaller amount, and so on. use is not NULL here. The first
 * of equal ones. NULL if none fits. O(partitions squared). */
const DevicePartition *device_set_choose(const DeviceSet *set, const DeviceSetUse *use,
                                         uint64_t amount);

/* Returns the partition whose devices are exactly these n different addresses, borrowed; NULL:
 * none. */
const DevicePartition *device_set_find(const DeviceSet *set, const char *const *addresses,
                                       size_t n);

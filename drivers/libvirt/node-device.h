/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's node device XML. Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

typedef enum NodeDeviceKind {
        NODE_DEVICE_OTHER,  /* nothing that guests are given */
        NODE_DEVICE_DEVICE, /* a PCI function or a parent of mediated devices: device is set */
        NODE_DEVICE_MDEV,   /* a mediated device: mdev is set */
        NODE_DEVICE_VDPA,   /* a vDPA device: parent is set */
        _NODE_DEVICE_KIND_MAX,
} NodeDeviceKind;

typedef struct NodeDevice {
        NodeDeviceKind kind;
        SnapshotDevice device;
        SnapshotMdev mdev;
        char *parent;
} NodeDevice;

void node_device_done(NodeDevice *device);

/* Whether something of it that guests are given may change without an event of libvirt's: a driver
 * that is bound late brings mdev types and virtual functions, and an mdev less is one more to have.
 * True of parents of mediated devices, of graphics cards and accelerators, and of physical
 * functions. Not of network cards, of which there are many (their functions come and go with
 * events), nor of a virtual function that has its driver. */
bool node_device_changes_silently(const NodeDevice *device);

/* -EBADMSG with words, -ENOMEM. */
int node_device_parse(const char *text, NodeDevice *ret, Error *reterr);

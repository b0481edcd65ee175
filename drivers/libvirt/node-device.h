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

/* Whether snapshot_device_changes_silently(), of what is one. */
bool node_device_changes_silently(const NodeDevice *device);

/* -EBADMSG with words, -ENOMEM. */
int node_device_parse(const char *text, NodeDevice *ret, Error *reterr);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses libvirt's node device XML. Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

/* A node device. The kind says which member is valid. */
typedef struct NodeDevice {
        enum {
                NODE_DEVICE_OTHER,  /* nothing that guests can have */
                NODE_DEVICE_DEVICE, /* a PCI function or a parent of mdevs: device is set */
                NODE_DEVICE_MDEV,   /* a mediated device: mdev is set */
                NODE_DEVICE_VDPA,   /* a vDPA device: parent is set */
                _NODE_DEVICE_KIND_MAX,
        } kind;
        SnapshotDevice device;
        SnapshotMdev mdev;
        char *parent;
} NodeDevice;

void node_device_done(NodeDevice *device);

/* Parses the XML. The caller frees ret with node_device_done(). -EBADMSG with an error text,
 * -ENOMEM. */
int node_device_parse(const char *text, NodeDevice *ret, Error *reterr);

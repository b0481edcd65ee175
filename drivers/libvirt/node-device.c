/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the XML of a node device into a NodeDevice, whose kind says which member is valid. The
 * kinds are a PCI function or parent of mdevs, an mdev, and a vDPA device. Any other device has the
 * kind "other" and is no error.
 *
 * Optional elements of newer versions of libvirt (VPD, the uuid of an mdev) have fallbacks or stay
 * empty. Lists and texts have the limits of a snapshot. A malformed number, or a necessary element
 * that is missing, fails the device (-EBADMSG).
 *
 * Tests: tests/unit/drivers/libvirt/test-node-device.c */
#include "drivers/libvirt/node-device.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/xml.h"

void node_device_done(NodeDevice *device)
{
        snapshot_device_done(&device->device);
        snapshot_mdev_done(&device->mdev);
        free(device->parent);
        *device = (NodeDevice){ 0 };
}

/* Parses an id and a name, as in <vendor id='0x10de'>NVIDIA Corporation</vendor>. */
static int read_id(const XmlNode *node, const char *what, uint32_t *ret_id, char **ret_name,
                   Error *reterr)
{
        uint64_t id = 0;
        int r;

        r = xml_optional_number(xml_attribute(node, "id"), UINT32_MAX, what, &id, reterr);
        if (r < 0)
                return r;
        *ret_id = (uint32_t)id;
        return xml_copy(xml_text(node), what, ret_name, reterr);
}

/* Returns the text of <capability type='vpd'><fields access='readonly'><serial_number>, or "". */
static const char *find_serial(const XmlNode *pci)
{
        XML_FOREACH(fields, xml_child_of_type(pci, "capability", "vpd"), "fields")
                if (strcmp(xml_attribute(fields, "access"), "readonly") == 0 &&
                    xml_child_text(fields, "serial_number")[0])
                        return xml_child_text(fields, "serial_number");
        return "";
}

/* Reads whether the device has virtual functions or is one. */
static int read_functions(const XmlNode *pci, SnapshotDevice *device, Error *reterr)
{
        const XmlNode *virtual = xml_child_of_type(pci, "capability", "virt_functions");
        const XmlNode *physical = xml_child_of_type(pci, "capability", "phys_function");
        int r;

        if (virtual) {
                device->is_physical_function = true;
                r = xml_optional_number(xml_attribute(virtual, "maxCount"), UINT32_MAX, "maxCount",
                                        &device->max_virtual_functions, reterr);
                if (r < 0)
                        return r;
        }
        if (!xml_child(physical, "address"))
                return 0;
        return xml_pci_address(xml_child(physical, "address"), xml_attribute,
                               device->physical_function, reterr);
}

/* Reads a PCI function. If a number of its address is valid but too large for the kernel's form
 * DDDD:BB:SS.F, is_pci stays false. The device is then of the kind "other", unless it is a parent
 * of mdevs. */
static int read_pci(const XmlNode *pci, SnapshotDevice *device, Error *reterr)
{
        uint64_t class_code = 0;
        int r;

        r = xml_optional_number(xml_child_text(pci, "class"), UINT32_MAX, "class", &class_code,
                                reterr);
        if (r < 0)
                return r;
        device->class_code = (uint32_t)class_code;
        device->has_card_serial = find_serial(pci)[0] != '\0';
        if (snapshot_device_set_serial(device, find_serial(pci)) < 0)
                return error_oom(reterr);
        if ((r = xml_pci_address(pci, xml_child_text, device->address, reterr)) < 0 ||
            (r = read_id(xml_child(pci, "vendor"), "vendor", &device->vendor_id, &device->vendor,
                         reterr)) < 0 ||
            (r = read_id(xml_child(pci, "product"), "product", &device->product_id,
                         &device->product, reterr)) < 0 ||
            (r = xml_optional_int(xml_attribute(xml_child(pci, "numa"), "node"), "numa node",
                                  &device->numa_node, reterr)) < 0)
                return r;
        device->is_pci = device->address[0] != '\0';
        return read_functions(pci, device, reterr);
}

static int read_mdev_type(const XmlNode *node, MdevType *type, Error *reterr)
{
        int r;

        if ((r = xml_copy(xml_attribute(node, "id"), "mdev type", &type->id, reterr)) < 0 ||
            (r = xml_copy_child(node, "name", &type->name, reterr)) < 0)
                return r;
        if (!type->id[0])
                return error_setf(reterr, EBADMSG, "An mdev type has no id");
        return xml_number(xml_child_text(node, "availableInstances"), INT64_MAX,
                          "availableInstances", &type->available_instances, reterr);
}

static int read_mdev_types(const XmlNode *types, SnapshotDevice *device, Error *reterr)
{
        size_t n_allocated = 0;

        XML_FOREACH(type, types, "type") {
                int r;

                if (device->n_mdev_types >= SNAPSHOT_LIST_MAX)
                        return error_setf(reterr, EBADMSG, "More than %d mdev types",
                                          SNAPSHOT_LIST_MAX);
                if (array_grow(&device->mdev_types, sizeof(MdevType), device->n_mdev_types,
                               &n_allocated) < 0)
                        return error_oom(reterr);
                device->mdev_types[device->n_mdev_types] = (MdevType){ 0 };
                r = read_mdev_type(type, &device->mdev_types[device->n_mdev_types++], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads a PCI function, a parent of mediated devices, or both. */
static int read_device(const XmlNode *root, NodeDevice *node_device, Error *reterr)
{
        const XmlNode *capability = xml_child(root, "capability");
        const XmlNode *types = xml_child_of_type(root, "capability", "mdev_types");
        SnapshotDevice *device = &node_device->device;
        bool is_pci = strcmp(xml_attribute(capability, "type"), "pci") == 0;
        int r;

        /* mtty has the capability at the top; PCI, channel and crypto devices have it within
         * theirs */
        if (!types)
                types = xml_child_of_type(capability, "capability", "mdev_types");
        if (!is_pci && !types)
                return 0;
        device->numa_node = NUMA_NODE_NONE;
        r = xml_copy(xml_child_text(xml_child(root, "driver"), "name"), "driver", &device->driver,
                     reterr);
        if (r < 0)
                return r;
        if (is_pci) {
                r = read_pci(capability, device, reterr);
                if (r < 0)
                        return r;
        }
        r = read_mdev_types(types, device, reterr);
        if (r < 0)
                return r;
        if (device->is_pci || types)
                node_device->kind = NODE_DEVICE_DEVICE;
        return 0;
}

/* Parses libvirt's name of a mediated device: "mdev_UUID", since 7.7 "mdev_UUID_PARENT". Each
 * '-' of the uuid is '_' (facts G4.8). */
static int uuid_from_name(const char *name, Uuid *ret)
{
        static const char prefix[] = "mdev_";
        char text[UUID_TEXT_LENGTH + 1];
        size_t n = strlen(prefix);

        if (strncmp(name, prefix, n) != 0 || strlen(name) < n + UUID_TEXT_LENGTH)
                return -EINVAL;
        memcpy(text, name + n, UUID_TEXT_LENGTH);
        text[UUID_TEXT_LENGTH] = '\0';
        if (name[n + UUID_TEXT_LENGTH] && name[n + UUID_TEXT_LENGTH] != '_')
                return -EINVAL;
        for (char *c = text; *c; c++)
                if (*c == '_')
                        *c = '-';
        return uuid_from_text(text, ret);
}

/* Reads an mdev. Older versions of libvirt have its uuid only in the name. */
static int read_mdev(const XmlNode *mdev, const char *name, NodeDevice *device, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r;

        r = xml_copy_child(mdev, "uuid", &text, reterr);
        if (r < 0)
                return r;
        if (uuid_from_text(text, &device->mdev.uuid) < 0 &&
            uuid_from_name(name, &device->mdev.uuid) < 0)
                return error_setf(reterr, EBADMSG, "No uuid");
        r = xml_copy(xml_attribute(xml_child(mdev, "type"), "id"), "type", &device->mdev.type,
                     reterr);
        if (r < 0)
                return r;
        if (!device->mdev.type[0])
                return error_setf(reterr, EBADMSG, "No type");
        if (!device->parent[0])
                return error_setf(reterr, EBADMSG, "No parent");
        device->mdev.parent = TAKE_PTR(device->parent);
        device->kind = NODE_DEVICE_MDEV;
        return 0;
}

/* Reads the name, the parent, and the parts of one kind. */
static int read_node_device(const XmlNode *root, NodeDevice *device, Error *reterr)
{
        _cleanup_free_ char *name = NULL;
        const XmlNode *capability = xml_child(root, "capability");
        int r;

        if ((r = xml_copy_child(root, "name", &name, reterr)) < 0 ||
            (r = xml_copy_child(root, "parent", &device->parent, reterr)) < 0)
                return r;
        if (!name[0])
                return error_setf(reterr, EBADMSG, "It has no name");
        if (strcmp(xml_attribute(capability, "type"), "mdev") == 0)
                r = read_mdev(capability, name, device, reterr);
        else if (strcmp(xml_attribute(capability, "type"), "vdpa") == 0)
                device->kind = NODE_DEVICE_VDPA;
        else
                r = read_device(root, device, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%.60s", name);
        if (device->kind != NODE_DEVICE_DEVICE)
                return 0;
        device->device.name = TAKE_PTR(name);
        device->device.parent = TAKE_PTR(device->parent);
        return snapshot_device_complete(&device->device) < 0 ? error_oom(reterr) : 0;
}

int node_device_parse(const char *text, NodeDevice *ret, Error *reterr)
{
        _cleanup_(node_device_done) NodeDevice device = { 0 };
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        int r;

        r = xml_parse(text, "device", &document, reterr);
        if (r == 0)
                r = read_node_device(xml_root(document), &device, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Node device");
        *ret = TAKE_STRUCT(device);
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/domain-placement.h"
#include "drivers/libvirt/xml.h"

/* Counts what the arrays have room for; the snapshot itself does not. */
typedef struct Reader {
        SnapshotDomain domain;
        size_t n_mdevs_allocated;
        size_t n_pci_addresses_allocated;
} Reader;

static int add_mdev(const XmlNode *address, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        Uuid uuid;

        if (uuid_from_text(xml_attribute(address, "uuid"), &uuid) < 0)
                return error_setf(reterr, EBADMSG, "A mediated device has no uuid: \"%.40s\"",
                                  xml_attribute(address, "uuid"));
        if (domain->n_mdevs >= SNAPSHOT_LIST_MAX)
                return error_setf(reterr, EBADMSG, "Too many devices");
        if (array_grow(&domain->mdevs, sizeof(Uuid), domain->n_mdevs, &reader->n_mdevs_allocated) <
            0)
                return error_oom(reterr);
        domain->mdevs[domain->n_mdevs++] = uuid;
        return 0;
}

static int add_pci(const XmlNode *node, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        char address[PCI_ADDRESS_SIZE];
        int r = xml_pci_address(node, xml_attribute, address, reterr);

        if (r < 0 || !address[0])
                return r;
        if (domain->n_pci_addresses >= SNAPSHOT_LIST_MAX)
                return error_setf(reterr, EBADMSG, "Too many devices");
        if (array_grow(&domain->pci_addresses, PCI_ADDRESS_SIZE, domain->n_pci_addresses,
                       &reader->n_pci_addresses_allocated) < 0)
                return error_oom(reterr);
        memcpy(domain->pci_addresses[domain->n_pci_addresses++], address, PCI_ADDRESS_SIZE);
        return 0;
}

static int read_devices(const XmlNode *devices, Reader *reader, Error *reterr)
{
        XML_FOREACH(hostdev, devices, "hostdev") {
                const XmlNode *address = xml_child(xml_child(hostdev, "source"), "address");
                const char *type = xml_attribute(hostdev, "type");
                int r = 0;

                if (address && strcmp(type, "mdev") == 0)
                        r = add_mdev(address, reader, reterr);
                else if (address && strcmp(type, "pci") == 0)
                        r = add_pci(address, reader, reterr);
                if (r < 0)
                        return r;
        }
        /* a PCI device again, which libvirt lists as a network interface */
        XML_FOREACH(interface, devices, "interface") {
                const XmlNode *address = xml_child(xml_child(interface, "source"), "address");
                int r;

                if (!address || strcmp(xml_attribute(interface, "type"), "hostdev") != 0)
                        continue;
                r = add_pci(address, reader, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_domain(const XmlNode *root, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        _cleanup_free_ char *uuid = NULL;
        int r;

        if ((r = xml_copy_child(root, "name", &domain->name, reterr)) < 0 ||
            (r = xml_copy_child(root, "uuid", &uuid, reterr)) < 0)
                return r;
        if (uuid_from_text(uuid, &domain->uuid) < 0)
                return error_setf(reterr, EBADMSG, "%.60s: not a uuid: \"%.40s\"", domain->name,
                                  uuid);
        if ((r = xml_optional_number(xml_child_text(root, "vcpu"), INT32_MAX, "vcpu",
                                     &domain->vcpus, reterr)) < 0 ||
            (r = xml_memory_kib(xml_child(root, "memory"), &domain->memory_kib, reterr)) < 0 ||
            (r = domain_read_placement(root, domain, reterr)) < 0 ||
            (r = read_devices(xml_child(root, "devices"), reader, reterr)) < 0)
                return error_prefixf(reterr, r, "%s", domain->uuid.text);
        return 0;
}

int domain_parse(const char *text, SnapshotDomain *ret, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        Reader reader = { 0 };
        int r;

        r = xml_parse(text, "domain", &document, reterr);
        if (r == 0)
                r = read_domain(xml_root(document), &reader, reterr);
        if (r < 0) {
                snapshot_domain_done(&reader.domain);
                return error_prefixf(reterr, r, "Domain");
        }
        *ret = reader.domain;
        return 0;
}

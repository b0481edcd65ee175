/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads attributes of PCI devices from sysfs. Each attribute is a small text. A file that cannot be
 * read, or a text without the value, is no evidence: its reader returns -ENODATA, or -ENODEV for
 * the address of a controller. Only the list of devices fails with the errno of its folder. Nothing
 * is kept between two calls. The port above a device is its parent folder, so a device without a
 * port above it has no expected link and gives -ENODATA.
 *
 * Tests: tests/unit/agent/health/test-sysfs.c */

#include "agent/health/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/read-file.h"
#include "base/text.h"

#define ATTRIBUTE_MAX 4096
#define PORT          "/.." /* folder of the port above a device */

DEFINE_CLEANUP(DIR *, closedir);

/* Reads an attribute into text. below: a path behind the folder of the device. */
static int read_attribute(const char *sysfs, const char *address, const char *below,
                          const char *name, char text[static ATTRIBUTE_MAX])
{
        _cleanup_free_ char *path =
                text_format("%s/bus/pci/devices/%s%s/%s", sysfs, address, below, name);
        size_t n = 0;
        int r;

        if (!path)
                return -ENOMEM;
        r = read_file_start(path, text, ATTRIBUTE_MAX - 1, &n, NULL);
        text[r < 0 ? 0 : n] = '\0';
        return r;
}

int health_sysfs_list(const char *sysfs, char (**ret)[PCI_ADDRESS_SIZE])
{
        _cleanup_free_ char *path = text_format("%s/bus/pci/devices", sysfs);
        _cleanup_(closedirp) DIR *dir = path ? opendir(path) : NULL;
        char(*list)[PCI_ADDRESS_SIZE] = NULL;
        size_t n = 0, n_allocated = 0;
        const struct dirent *entry;

        if (!dir)
                return path ? -errno : -ENOMEM;
        while (n < HEALTH_DEVICES_MAX && (entry = readdir(dir))) {
                if (array_grow(&list, PCI_ADDRESS_SIZE, n, &n_allocated) < 0) {
                        free(list);
                        return -ENOMEM;
                }
                if (pci_address_parse(entry->d_name, list[n]) >= 0)
                        n++;
        }
        *ret = list;
        return (int)n;
}

int health_sysfs_read_aer(const char *sysfs, const char *address, HealthEvidence kind,
                          uint64_t *ret)
{
        const char *total = kind == HEALTH_AER_FATAL ? "TOTAL_ERR_FATAL " : "TOTAL_ERR_NONFATAL ";
        char text[ATTRIBUTE_MAX], *found, *end;
        int r = read_attribute(sysfs, address, "",
                               kind == HEALTH_AER_FATAL ? "aer_dev_fatal" : "aer_dev_nonfatal",
                               text);

        if (r < 0)
                return r == -ENOMEM ? r : -ENODATA;
        found = strstr(text, total);
        if (!found)
                return -ENODATA;
        found += strlen(total);
        if (strspn(found, "0123456789") == 0 || strspn(found, "0123456789") > 18)
                return -ENODATA;
        *ret = strtoull(found, &end, 10);
        return 0;
}

/* Reads a number of lanes ("16"), or a speed ("8.0 GT/s PCIe", "2.5 GT/s") in tenths. Returns
 * -ENODATA for a text that does not begin with one, such as "Unknown". Returns it also for numbers
 * that no link has, such as the width 63 of a device that does not answer. */
static int read_amount(const char *sysfs, const char *address, const char *below, const char *name,
                       HealthEvidence kind, unsigned *ret)
{
        char text[ATTRIBUTE_MAX];
        unsigned whole = 0, tenth = 0;
        int r = read_attribute(sysfs, address, below, name, text);

        if (r < 0)
                return r == -ENOMEM ? r : -ENODATA;
        if (kind == HEALTH_LINK_WIDTH) {
                if (sscanf(text, "%3u", &whole) != 1 || whole < 1 || whole > 32)
                        return -ENODATA;
                *ret = whole;
                return 0;
        }
        if (sscanf(text, "%3u.%1u GT/s", &whole, &tenth) != 2 || whole > 256)
                return -ENODATA;
        *ret = 10 * whole + tenth;
        return *ret > 0 ? 0 : -ENODATA;
}

int health_sysfs_read_link(const char *sysfs, const char *address, HealthEvidence kind,
                           unsigned *ret_current, unsigned *ret_expected)
{
        bool width = kind == HEALTH_LINK_WIDTH;
        const char *current = width ? "current_link_width" : "current_link_speed";
        const char *max = width ? "max_link_width" : "max_link_speed";
        unsigned value, own, port;
        int r = read_amount(sysfs, address, "", current, kind, &value);

        if (r == 0)
                r = read_amount(sysfs, address, "", max, kind, &own);
        if (r == 0)
                r = read_amount(sysfs, address, PORT, max, kind, &port);
        if (r < 0)
                return r;
        *ret_current = value;
        *ret_expected = MIN(own, port);
        return 0;
}

int health_sysfs_find_nvme(const char *sysfs, const char *name, char ret[static PCI_ADDRESS_SIZE])
{
        _cleanup_free_ char *path = text_format("%s/class/nvme/%s/address", sysfs, name);
        char text[PCI_ADDRESS_SIZE + 1] = "";
        size_t n = 0;

        if (!path)
                return -ENOMEM;
        if (read_file_start(path, text, sizeof(text) - 1, &n, NULL) < 0)
                return -ENODEV;
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
        return pci_address_parse(text, ret) < 0 ? -ENODEV : 0;
}

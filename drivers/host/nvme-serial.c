/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/nvme-serial.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "drivers/host/sysfs.h"

#define CLASS_NVME 0x0108

/* Returns the path of the file of the first controller; NULL without one or without memory. */
static char *find_file(const char *folder, const char *address)
{
        _cleanup_free_ char *path = text_format("%s/%s/nvme", folder, address);
        DIR *dir = path ? opendir(path) : NULL;
        struct dirent *entry;
        char *file = NULL;

        while (dir && !file && (entry = readdir(dir)))
                if (strncmp(entry->d_name, "nvme", strlen("nvme")) == 0)
                        file = text_format("%s/%s/serial", path, entry->d_name);
        if (dir)
                closedir(dir);
        return file;
}

int nvme_serial_read(const char *folder, SnapshotDevice *device)
{
        _cleanup_free_ char *file = NULL, *serial = NULL;

        if (device->class_code >> 8 != CLASS_NVME || device->serial[0])
                return 0;
        file = find_file(folder, device->address);
        if (!file || sysfs_read(file, &serial) < 0)
                return 0;
        return snapshot_device_set_serial(device, serial);
}

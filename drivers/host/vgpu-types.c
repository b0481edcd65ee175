/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/vgpu-types.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "drivers/host/sysfs.h"

#define VENDOR_NVIDIA 0x10de
#define NAME_MAX_     255

/* The number that text begins with, and where it ends; 0 when it begins with none, or with one that
 * is no type. */
static uint32_t parse_number(const char *text, const char **ret_end)
{
        uint64_t number = 0;

        while (*text == ' ' || *text == '\t')
                text++;
        for (; isdigit((unsigned char)*text); text++) {
                number = number * 10 + (uint64_t)(*text - '0');
                if (number > UINT32_MAX)
                        return 0;
        }
        *ret_end = text;
        return (uint32_t)number;
}

/* The type of that number, added unless it is there. name is NULL when it is not known. */
static int ensure_type(SnapshotDevice *device, uint32_t number, const char *name, size_t length,
                       size_t *n_allocated, MdevType **ret)
{
        MdevType type = { 0 };
        char id[32];

        snprintf(id, sizeof(id), "nvidia-%u", number);
        *ret = snapshot_find_mdev_type(device, id);
        if (*ret)
                return 0;
        type.id = strdup(id);
        type.name = name ? strndup(name, length) : strdup("");
        if (!type.id || !type.name ||
            array_grow(&device->mdev_types, sizeof(MdevType), device->n_mdev_types, n_allocated) <
                    0) {
                free(type.id);
                free(type.name);
                return -ENOMEM;
        }
        text_sanitize(type.name, '?');
        device->mdev_types[device->n_mdev_types] = type;
        *ret = &device->mdev_types[device->n_mdev_types++];
        return 0;
}

/* "1428  : NVIDIA L40S-2Q" */
static int parse_line(const char *line, size_t length, SnapshotDevice *device, size_t *n_allocated)
{
        const char *end = line + length, *text;
        uint32_t number = parse_number(line, &text);
        MdevType *type;

        if (number == 0)
                return 0;
        while (text < end && (*text == ' ' || *text == '\t'))
                text++;
        if (text >= end || *text != ':')
                return 0;
        for (text++; text < end && isspace((unsigned char)*text);)
                text++;
        while (end > text && isspace((unsigned char)end[-1]))
                end--;
        if (ensure_type(device, number, text, MIN((size_t)(end - text), (size_t)NAME_MAX_),
                        n_allocated, &type) < 0)
                return -ENOMEM;
        type->available_instances = 1;
        return 0;
}

static int set_current(const char *text, SnapshotDevice *device, size_t *n_allocated)
{
        const char *end;
        uint32_t number = parse_number(text, &end);
        MdevType *type;

        if (number == 0)
                return 0;
        if (ensure_type(device, number, NULL, 0, n_allocated, &type) < 0)
                return -ENOMEM;
        type->created_instances = 1;
        for (size_t i = 0; i < device->n_mdev_types; i++)
                device->mdev_types[i].available_instances = 0;
        return 0;
}

int vgpu_types_parse(const char *creatable, const char *current, SnapshotDevice *device)
{
        size_t n_allocated = device->n_mdev_types;

        device->is_vgpu_function = true;
        while (*creatable) {
                size_t length = strcspn(creatable, "\n");

                if (parse_line(creatable, length, device, &n_allocated) < 0)
                        return -ENOMEM;
                creatable += length + (creatable[length] == '\n');
        }
        return set_current(current, device, &n_allocated);
}

/* NULL when it is not there, or the driver does not answer. */
static int read_file(const char *folder, const char *address, const char *name, char **ret,
                     Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/%s/nvidia/%s", folder, address, name);
        int r;

        if (!path)
                return error_oom(reterr);
        r = sysfs_read(path, ret);
        if (r == 0 || sysfs_is_gone(r))
                return 0;
        return r == -ENOMEM ? error_oom(reterr)
                            : error_setf(reterr, r, "Cannot read %s: %s", path, strerror(-r));
}

int vgpu_types_read(const char *folder, SnapshotDevice *device, Error *reterr)
{
        _cleanup_free_ char *creatable = NULL, *current = NULL;
        int r;

        if (device->vendor_id != VENDOR_NVIDIA || !device->physical_function[0] ||
            device->n_mdev_types > 0)
                return 0;
        r = read_file(folder, device->address, "creatable_vgpu_types", &creatable, reterr);
        if (r < 0 || !creatable)
                return r;
        r = read_file(folder, device->address, "current_vgpu_type", &current, reterr);
        if (r < 0)
                return r;
        return vgpu_types_parse(creatable, current ? current : "", device) < 0 ? error_oom(reterr)
                                                                               : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the two sysfs files of a virtual function that becomes a vGPU without an mdev. Each valid
 * line of creatable_vgpu_types is one MdevType with one available instance. If current_vgpu_type
 * has a type, that has one created instance, and no type has an available one.
 *
 * Type names are untrusted text: they are shortened and sanitized. Lines that cannot be parsed
 * are ignored, because the format belongs to NVIDIA's driver and can change.
 *
 * Tests: tests/unit/drivers/host/test-vgpu-types.c */
#include "drivers/host/vgpu-types.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "drivers/host/sysfs.h"

/* PCI vendor id of NVIDIA, whose driver has these files. */
#define VENDOR_NVIDIA 0x10de
/* Bytes of a type's name that are kept; a longer name is cut. */
#define NAME_MAX_ 255

/* Parses the number at the start of text and sets *ret_end behind it. Returns 0 if there is none,
 * or if it is too large for a type. In the second case *ret_end stays unset: callers ignore a text
 * without a number. */
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

/* Returns the type with this number, and adds it if it is missing. name is NULL if unknown. */
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

/* Parses a line such as "1428 : NVIDIA L40S-2Q", and adds its type. Ignores any other line. */
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

/* Marks the current type as created. Only creatable_vgpu_types has names, so a current type that is
 * not in that file has the name "". */
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

/* Reads one file. *ret stays NULL if it is missing. Any other failure, for example of a driver that
 * does not answer, is an error: the virtual function might be a vGPU. vgpu_types_read() then marks
 * the device as unread, except after -ENOMEM. */
static int read_file(const char *folder, const char *address, const char *name, char **ret,
                     Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/%s/nvidia/%s", folder, address, name);
        int r;

        if (!path)
                return error_oom(reterr);
        r = sysfs_read(path, ret);
        if (r == 0 || r == -ENOENT || r == -ENOTDIR)
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
        device->vgpu_unread = false;
        r = read_file(folder, device->address, "creatable_vgpu_types", &creatable, reterr);
        if (r == 0 && creatable)
                r = read_file(folder, device->address, "current_vgpu_type", &current, reterr);
        if (r < 0 && r != -ENOMEM)
                device->is_vgpu_function = device->vgpu_unread = true;
        if (r < 0 || !creatable)
                return r;
        return vgpu_types_parse(creatable, current ? current : "", device) < 0 ? error_oom(reterr)
                                                                               : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim with devices, as computectl reads it from the bus. */

#define MDEV_1 "33333333-2222-4333-8444-555555555501"
#define MDEV_2 "33333333-2222-4333-8444-555555555502"
#define DEVICE(name, mdev, exists)                                                       \
        "{\"provider\": \"p\", \"group\": \"\", \"device\": \"" name "\", \"address\": " \
        "\"0000:41:00.0\", \"mdev_type\": \"nvidia-35\", \"mdev\": \"" mdev              \
        "\", \"exists\": " exists "}"
#define CLAIM(devices)                                                                         \
        "{\"id\": 7, \"consumer\": \"c\", \"state\": \"confirmed\", \"created_usec\": "        \
        "1699999940000000, \"expires_usec\": 0, \"ended_usec\": 0, \"end_reason\": \"\", "     \
        "\"boot_id\": \"b\", \"allocations\": [{\"provider\": \"p\", \"name\": \"host_gpu\", " \
        "\"resources\": {\"VGPU\": 2}}], \"devices\": [" devices "]}"

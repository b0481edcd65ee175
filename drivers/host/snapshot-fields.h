/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a snapshot is made of: one table of fields per struct. The JSON form, copies and the freeing
 * all walk these tables, so a new field of the snapshot is a new line in a table, but for plain
 * values that the JSON form does not have. */

#include "drivers/host/snapshot.h"

typedef enum FieldType {
        FIELD_TEXT,    /* char *; "" when missing */
        FIELD_U64,     /* uint64_t */
        FIELD_U32,     /* uint32_t, unsigned */
        FIELD_INT,     /* int; -1 when missing */
        FIELD_BOOL,    /* bool */
        FIELD_UUID,    /* Uuid */
        FIELD_ADDRESS, /* char[PCI_ADDRESS_SIZE]; "" when missing */
        FIELD_CPU_SET, /* CpuSet */
        FIELD_STATE,   /* DomainState */
        FIELD_STRINGS, /* StringSet; in order only after snapshot_seal() */
        FIELD_ARRAY,   /* a pointer and a count */
} FieldType;

typedef struct FieldList FieldList;

typedef struct Field {
        const char *key; /* NULL: the value itself, in a list of plain values */
        FieldType type;
        bool required;
        size_t offset;
        uint64_t max; /* of numbers */

        /* FIELD_STRINGS and FIELD_ARRAY */
        size_t count_offset;
        const FieldList *of;
} Field;

/* A struct, or the plain value that a list has. */
struct FieldList {
        const Field *fields;
        size_t n_fields, size;
};

extern const FieldList snapshot_field_list;

/* What a field is when nothing gives it. -ENOMEM. */
int field_set_default(const Field *field, void *base);

/* Frees what the struct at base owns and leaves it zeroed. */
void fields_done(const FieldList *list, void *base);

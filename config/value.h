/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the values of options by the rules of oslo.config for types, and checks the forms of texts.
 * Pure. Readers return -EINVAL and leave *ret unchanged if a text is not allowed. */

#include "base/macros.h"

/* Reads true, 1, yes, on, false, 0, no or off, in letters of either case. */
int config_value_bool(const char *text, bool *ret);

/* Reads a whole decimal number with an optional sign. Returns -ERANGE if it does not fit. */
int config_value_i64(const char *text, int64_t *ret);

/* Reads a finite decimal number, independent of the locale. Returns -EINVAL or -ENOMEM. */
int config_value_double(const char *text, double *ret);

/* Reads items between commas, trimmed and without empty ones. An empty text is an empty list. The
 * result is NULL-terminated; the caller frees with strings_free(). Returns -ENOMEM on failure. */
int config_value_list(const char *text, char ***ret);

/* The forms of texts. The "allowed" text of an option describes its form. */
typedef enum ConfigForm {
        CONFIG_FORM_ANY,
        CONFIG_FORM_PATH,
        CONFIG_FORM_HOST_NAME, /* can be empty */
        CONFIG_FORM_TRAIT,     /* can be empty */
        CONFIG_FORM_TOKEN,
        CONFIG_FORM_DRIVER_URI,
        CONFIG_FORM_ENDPOINT,
        CONFIG_FORM_HTTP_URL,
        CONFIG_FORM_WORD, /* printable ASCII without white space, 1 to 255 bytes */
        CONFIG_FORM_MDEV_CLASS,
        CONFIG_FORM_MDEV_TYPE,
        CONFIG_FORM_DEVICE_ADDRESS,
        CONFIG_FORM_PCI_ADDRESS,
        CONFIG_FORM_KERNEL_DRIVER, /* name of a driver, or empty */
        CONFIG_FORM_UNIT_TEMPLATE, /* "NAME@.service", or empty */
        CONFIG_FORM_DRIVER_NAME,
        CONFIG_FORM_TPM_SECURITY,
        CONFIG_FORM_FILE_BELOW, /* relative */
        CONFIG_FORM_RENAMING,   /* OLD:NEW, two resource classes */
        _CONFIG_FORM_MAX,
} ConfigForm;

/* Checks whether a text has a form. */
bool config_value_has_form(const char *text, ConfigForm form);

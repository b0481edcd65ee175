/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From an option's text to its value, by oslo.config's rules for types, and what the texts of
 * single options must look like. Pure. Readers return -EINVAL, *ret untouched, for what they do not
 * take. */

#include "base/macros.h"

/* true, 1, yes, on; false, 0, no, off; any case. */
int config_value_bool(const char *text, bool *ret);

/* A whole decimal number, with a sign or without. -ERANGE when it does not fit. */
int config_value_i64(const char *text, int64_t *ret);

/* A finite decimal number, whatever the locale. */
int config_value_double(const char *text, double *ret);

/* Items between commas, trimmed, empty ones left out; NULL-terminated, strings_free(). -ENOMEM. */
int config_value_list(const char *text, char ***ret);

/* The forms of texts; the "allowed" text of an option describes its form. */
typedef enum ConfigForm {
        CONFIG_FORM_ANY,
        CONFIG_FORM_PATH,
        CONFIG_FORM_HOST_NAME, /* or empty */
        CONFIG_FORM_TRAIT,     /* or empty */
        CONFIG_FORM_TOKEN,
        CONFIG_FORM_DRIVER_URI,
        CONFIG_FORM_ENDPOINT,
        CONFIG_FORM_HTTP_URL,
        CONFIG_FORM_WORD, /* printable, no white space */
        CONFIG_FORM_MDEV_CLASS,
        CONFIG_FORM_MDEV_TYPE,
        CONFIG_FORM_DEVICE_ADDRESS,
        CONFIG_FORM_DRIVER_NAME,
        CONFIG_FORM_TPM_SECURITY,
        CONFIG_FORM_FILE_BELOW, /* relative */
        CONFIG_FORM_RENAMING,   /* OLD:NEW, two resource classes */
        _CONFIG_FORM_MAX,
} ConfigForm;

bool config_value_has_form(const char *text, ConfigForm form);

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

/* What the checks take is said by the "allowed" text of the table. */
bool config_is_absolute_path(const char *text);
bool config_is_host_name(const char *text); /* "" too */
bool config_is_trait(const char *text);     /* "" too */
bool config_is_token(const char *text);
bool config_is_driver_uri(const char *text);
bool config_is_endpoint(const char *text);
bool config_is_http_url(const char *text);
bool config_is_word(const char *text); /* printable, no white space */
bool config_is_mdev_class(const char *text);
bool config_is_mdev_type(const char *text);
bool config_is_device_address(const char *text);

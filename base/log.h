/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Log messages: native journal entries when standard error is the journal's stream. Otherwise, and
 * when the journal does not accept an entry, they are text on standard error.
 *
 * Levels are syslog's. The least important level that is shown is a global variable. Any thread can
 * log. drivers/, claims/ and report/ log at LOG_DEBUG only and return errors; agent/ logs where it
 * decides. A message must not contain a token or a password. */

#include <syslog.h>

#include "base/macros.h"

/* Names of journal fields that the message catalogue documents. */
#define LOG_FIELD_PROVIDER   "AGENT_PROVIDER_UUID"
#define LOG_FIELD_CLAIM      "AGENT_CLAIM_ID"
#define LOG_FIELD_CONSUMER   "AGENT_CONSUMER"
#define LOG_FIELD_CALLER     "AGENT_CALLER"
#define LOG_FIELD_DEVICE     "AGENT_DEVICE"
#define LOG_FIELD_STATUS     "AGENT_HTTP_STATUS"
#define LOG_FIELD_REQUEST_ID "AGENT_REQUEST_ID"

/* Sets the least important level that is shown; LOG_INFO at the start. */
void log_set_level(int level);
int log_get_level(void);

/* Returns the level of "debug", "info", "notice", "warning", "err" and so on, or of "0" to "7";
 * -EINVAL. */
int log_level_from_text(const char *text);
/* Returns the name of a level, NULL: there is no such level. */
const char *log_level_to_text(int level);

/* Returns true if standard error is the journal's stream. */
bool log_is_to_journal(void);

/* Writes one message, also at a level that is not shown: log_event() compares the level. Can block
 * on the journal or on standard error. Failures are not reported. The id (of base/message-ids.h)
 * and the fields can be NULL. The fields are name, value, …, NULL; a NULL value omits its field,
 * and at most 8 fields count. Text on standard error has no id and no fields. */
void log_write(int level, const char *file, int line, const char *func, const char *message_id,
               const char *const fields[], const char *format, ...) _printf_(7, 8);

#define log_full(level, ...) log_event((level), NULL, NULL, __VA_ARGS__)

#define log_debug(...)   log_full(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_full(LOG_INFO, __VA_ARGS__)
#define log_notice(...)  log_full(LOG_NOTICE, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_full(LOG_ERR, __VA_ARGS__)

/* Use: log_event(LOG_WARNING, MESSAGE_ID, LOG_FIELDS(LOG_FIELD_DEVICE, name), "…", …) */
#define LOG_FIELDS(...) ((const char *const[]){ __VA_ARGS__, NULL, NULL })
#define log_event(level, id, fields, ...)                                                \
        do {                                                                             \
                if ((level) <= log_get_level())                                          \
                        log_write((level), __FILE__, __LINE__, __func__, (id), (fields), \
                                  __VA_ARGS__);                                          \
        } while (0)

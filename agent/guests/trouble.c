/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/trouble.h"

#include <errno.h>

#include "base/log.h"
#include "base/message-ids.h"

void database_trouble_set(DatabaseTrouble *trouble, const char *path, int result,
                          const Error *words)
{
        if (result == 0) {
                if (trouble->is_logged)
                        log_notice("The claim database %s can be used again.", path);
                *trouble = (DatabaseTrouble){ 0 };
                return;
        }
        trouble->is_of_write = false;
        error_setf(&trouble->error, result < 0 ? result : EBUSY, "%s",
                   error_text(words, result < 0 ? result : -EBUSY));
        if (!trouble->is_logged)
                log_event(
                        LOG_ERR, MESSAGE_CLAIM_STORE_LOST, NULL,
                        "Claims cannot be taken: %s. Everything else goes on; trying again with every cycle.",
                        trouble->error.text);
        trouble->is_logged = true;
}

void database_trouble_note(DatabaseTrouble *trouble, const char *path, int result,
                           const Error *words)
{
        if (result >= 0 || result == -EINVAL || result == -ENOMEM || database_is_lost(result))
                return;
        database_trouble_set(trouble, path, result, words);
        trouble->is_of_write = true;
}

bool database_is_lost(int result)
{
        return result == -ESTALE || result == -EUCLEAN;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/audit/evidence.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* Times of Placement are whole seconds, and both of a difference are cut. */
#define PLACEMENT_SLACK_USEC (2 * USEC_PER_SEC)

/* Yields by Placement's clock how long ago the consumer was written. False: it is unknown. */
static bool get_written_usec(const AuditInput *input, const Consumer *consumer, uint64_t *ret)
{
        if (consumer->modified_sec == 0 || input->placement_sec == 0)
                return false;
        *ret = input->placement_sec > consumer->modified_sec
                       ? (input->placement_sec - consumer->modified_sec) * USEC_PER_SEC
                       : 0;
        return true;
}

static bool is_alive(const AuditPicture *picture, const Consumer *consumer,
                     char text[static AUDIT_EVIDENCE_SIZE])
{
        const AuditInput *input = picture->input;
        uint64_t written_usec;
        const char *why = NULL;

        if (host_facts_has_folder(input->facts, &consumer->uuid))
                why = "Nova has a folder of it in [DEFAULT] instances_path";
        else if (audit_picture_may_be_migration(picture, consumer))
                why = "it can be the migration of a guest of this host";
        else if (audit_picture_has_migration(picture, consumer))
                why = "a migration of its project and user holds allocations here";
        else if (get_written_usec(input, consumer, &written_usec) &&
                 written_usec < input->grace_usec)
                why = "its allocations were written a moment ago";
        if (why)
                snprintf(text, AUDIT_EVIDENCE_SIZE, "%s", why);
        return why;
}

static const Event *find_newest(const EventList *history, const Uuid *consumer)
{
        for (size_t i = 0; history && i < history->n_events; i++)
                if (strcmp(history->events[i].consumer, consumer->text) == 0)
                        return &history->events[i];
        return NULL;
}

/* A claim that expired, was resized, or that this program gave up, says nothing of its server. */
static bool is_end(const Event *event)
{
        return strcmp(event->kind, EVENT_RELEASED) == 0 &&
               (event->author[0] || strcmp(event->reason, CLAIM_ORPHAN) == 0);
}

static void write_end(const Event *event, char text[static AUDIT_EVIDENCE_SIZE])
{
        time_t seconds = (time_t)(event->usec / USEC_PER_SEC);
        char when[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                (void)strftime(when, sizeof(when), " at %Y-%m-%d %H:%M:%S UTC", &utc);
        snprintf(text, AUDIT_EVIDENCE_SIZE,
                 "claim %" PRId64
                 " was released%s%s%s (%s), and its allocations were written before that",
                 event->claim, when, event->author[0] ? " by " : "", event->author, event->reason);
        text_trim_cut(text);
}

/* Returns why there is no evidence; NULL: there is. */
static const char *find_doubt(const AuditInput *input, const Consumer *consumer,
                              const Event *newest)
{
        uint64_t written_usec;

        if (input->facts->folders_unknown)
                return input->facts->folders_unknown;
        if (!newest || !is_end(newest))
                return "this host has no record that its server was deleted or left";
        if (!get_written_usec(input, consumer, &written_usec))
                return "Placement does not say when its allocations were written";
        if (newest->usec > input->now_usec ||
            written_usec < input->now_usec - newest->usec + PLACEMENT_SLACK_USEC)
                return "its allocations were written after its claim ended here";
        return NULL;
}

AuditLife audit_judge_life(const AuditPicture *picture, const Consumer *consumer,
                           char text[static AUDIT_EVIDENCE_SIZE])
{
        const AuditInput *input = picture->input;
        const Event *newest = find_newest(input->history, &consumer->uuid);
        const char *doubt;

        if (is_alive(picture, consumer, text))
                return AUDIT_LIFE_ALIVE;
        doubt = find_doubt(input, consumer, newest);
        if (!doubt) {
                write_end(newest, text);
                return AUDIT_LIFE_ENDED;
        }
        snprintf(text, AUDIT_EVIDENCE_SIZE,
                 "left as it is: %s; if its server is deleted, run \"computectl heal %s\"", doubt,
                 consumer->uuid.text);
        return AUDIT_LIFE_UNKNOWN;
}

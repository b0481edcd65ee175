/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keeps a Track for each pair of rule and device: the times of its last cases, as many as are a
 * finding. A case makes a finding if there are as many times, and the first of them is within the
 * time of the rule, or later than the case. A quiet case makes none. The finding can be taken when
 * HEALTH_REPEAT_USEC have passed since the last one was taken. The times stay then, so one more
 * case can repeat the finding.
 *
 * Tests: tests/unit/agent/health/test-history.c */

#include "agent/health/history.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define TRACK_LINE_SIZE 256
#define BOOT_ID_SIZE    40

/* The cases of one pair of rule and device. */
typedef struct Track {
        const HealthRule *rule;
        char address[PCI_ADDRESS_SIZE];
        uint64_t *times;         /* the last cases, the oldest first */
        unsigned n_times, count; /* number of times, and how many are a finding */
        uint64_t order;          /* larger than that of each track whose last case is older */
        uint64_t sent_usec;      /* CLOCK_MONOTONIC when the last finding was taken; 0: never */
        bool is_due;             /* there is a finding that was not taken */
        char line[TRACK_LINE_SIZE], boot_id[BOOT_ID_SIZE];
} Track;

struct HealthHistory {
        Track *tracks;
        size_t n_tracks, n_allocated;
        uint64_t order;
};

int health_history_new(HealthHistory **ret)
{
        *ret = calloc(1, sizeof(HealthHistory));
        return *ret ? 0 : -ENOMEM;
}

HealthHistory *health_history_free(HealthHistory *history)
{
        if (!history)
                return NULL;
        for (size_t i = 0; i < history->n_tracks; i++)
                free(history->tracks[i].times);
        free(history->tracks);
        free(history);
        return NULL;
}

static Track *find(const HealthHistory *history, const HealthRule *rule, const char *address)
{
        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].rule == rule &&
                    strcmp(history->tracks[i].address, address) == 0)
                        return &history->tracks[i];
        return NULL;
}

static void drop(HealthHistory *history, size_t i)
{
        free(history->tracks[i].times);
        array_close(history->tracks, sizeof(Track), &history->n_tracks, i);
}

/* Makes space for a new track. */
static void drop_oldest(HealthHistory *history)
{
        size_t oldest = 0;

        for (size_t i = 1; i < history->n_tracks; i++)
                if (history->tracks[i].order < history->tracks[oldest].order)
                        oldest = i;
        drop(history, oldest);
}

/* Adds a track without cases. NULL: out of memory. */
static Track *add(HealthHistory *history, const HealthCase *new_case)
{
        Track *track;

        if (history->n_tracks == HEALTH_TRACKS_MAX)
                drop_oldest(history);
        if (array_grow(&history->tracks, sizeof(Track), history->n_tracks, &history->n_allocated) <
            0)
                return NULL;
        track = &history->tracks[history->n_tracks];
        *track = (Track){ 0 };
        track->rule = new_case->rule;
        track->count = new_case->count;
        track->times = calloc(new_case->count, sizeof(uint64_t));
        if (!track->times)
                return NULL;
        snprintf(track->address, sizeof(track->address), "%s", new_case->address);
        history->n_tracks++;
        return track;
}

int health_history_add(HealthHistory *history, const HealthCase *new_case)
{
        Track *track = find(history, new_case->rule, new_case->address);

        if (!track)
                track = add(history, new_case);
        if (!track)
                return -ENOMEM;
        if (track->n_times == track->count)
                memmove(track->times, track->times + 1, --track->n_times * sizeof(uint64_t));
        track->times[track->n_times++] = new_case->usec;
        track->order = ++history->order;
        snprintf(track->line, sizeof(track->line), "%s", new_case->line);
        text_trim_cut(track->line);
        text_sanitize(track->line, '?');
        snprintf(track->boot_id, sizeof(track->boot_id), "%s", new_case->boot_id);
        if (!new_case->quiet && track->n_times == track->count &&
            (new_case->usec < track->times[0] ||
             new_case->usec - track->times[0] <= track->rule->within_usec))
                track->is_due = true;
        return 0;
}

static void forget(Track *track)
{
        track->n_times = 0;
        track->is_due = false;
}

void health_history_forget(HealthHistory *history, const HealthRule *rule, const char *address)
{
        Track *track = find(history, rule, address);

        if (track)
                forget(track);
}

void health_history_forget_lines(HealthHistory *history)
{
        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].rule->evidence == HEALTH_LINE)
                        forget(&history->tracks[i]);
}

/* Returns the time from which the track's finding can be taken. */
static uint64_t due_usec(const Track *track)
{
        return track->sent_usec ? track->sent_usec + HEALTH_REPEAT_USEC : 0;
}

bool health_history_take(HealthHistory *history, uint64_t now_usec, HealthCases *ret)
{
        for (size_t i = 0; i < history->n_tracks; i++) {
                Track *track = &history->tracks[i];

                if (!track->is_due || due_usec(track) > now_usec)
                        continue;
                track->is_due = false;
                track->sent_usec = MAX(now_usec, 1U);
                *ret = (HealthCases){ .rule = track->rule,
                                      .first_usec = track->times[0],
                                      .last_usec = track->times[track->n_times - 1],
                                      .line = track->line,
                                      .boot_id = track->boot_id };
                memcpy(ret->address, track->address, sizeof(ret->address));
                return true;
        }
        return false;
}

uint64_t health_history_due_in_usec(const HealthHistory *history, uint64_t now_usec)
{
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].is_due)
                        first = MIN(first, MAX(due_usec(&history->tracks[i]), now_usec));
        return first == UINT64_MAX ? first : first - now_usec;
}

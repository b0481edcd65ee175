/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Applies health rules. Two histories keep the results until they are taken: one has the evidence
 * against devices, the other one the evidence that they work again. A history keeps a Track for
 * each pair of rule and device: the times of its last cases, at most the number that a result
 * needs. A finding needs the number of the rule, and a recovery one case. A case makes the result
 * if the track has this number of times, and the first time is within the time of the rule. A first
 * time after that of the case counts, too (add_case()). A case makes none if the caller of
 * health_observer_line() marks its line as quiet. The result can be taken when HEALTH_REPEAT_USEC
 * have passed since the last one of the track was taken. The times stay then, so one more case can
 * repeat the result. At HEALTH_TRACKS_MAX pairs in a history, the pair whose last case was added
 * first is forgotten, with a result that was not taken. Its next result does not wait for
 * HEALTH_REPEAT_USEC. Evidence of one kind removes a result of the other kind that was not taken,
 * so the last evidence counts. It also forgets the cases of the other kind, so after a recovery the
 * count of a rule begins at 0.
 *
 * An AER counter is evidence only if it grew between two readings: the first reading has errors of
 * any age. Each new error is one case, up to HEALTH_COUNT_MAX for one reading. A bad link is one
 * case at each reading. A good one is a recovery at its first reading and after a bad reading, if
 * the rule ends with a recovery. A driver that finds its controller dead removes it from sysfs, so
 * the addresses of up to CONTROLLERS_MAX NVMe controllers are remembered. The addresses are read at
 * the start, at each reading of links (if there are rules about links), and when a line that
 * matches a rule names a controller. The address of a controller is unknown if it left sysfs before
 * the start, or came and left between two of these readings, or came after CONTROLLERS_MAX others.
 *
 * LIMITATIONS: the kernel reuses names. A line counts for the controller that has the name when the
 * line is read, or else had it last. A line of an earlier boot counts only with an address, and if
 * the rule does not end with the boot.
 *
 * Tests: tests/unit/agent/health/test-observer.c */

#include "agent/health/observer.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/health/sysfs.h"
#include "base/array.h"
#include "base/text.h"

#define CONTROLLERS_MAX 1024 /* remembered names of NVMe controllers */

/* The cases of one pair of rule and device. */
typedef struct Track {
        const HealthRule *rule;
        char address[PCI_ADDRESS_SIZE];
        uint64_t *times;         /* the last cases, the oldest first */
        unsigned n_times, count; /* number of times, and how many make a result */
        uint64_t order;          /* larger than that of each track whose last case is older */
        uint64_t sent_usec;      /* CLOCK_MONOTONIC when the last result was taken; 0: never */
        bool is_due;             /* there is a result that was not taken */
        char line[HEALTH_TEXT_SIZE], boot_id[HEALTH_BOOT_SIZE]; /* text and boot of the last case */
} Track;

typedef struct History {
        Track *tracks;
        size_t n_tracks, n_allocated;
        uint64_t order;
} History;

/* One case of a rule. Everything is borrowed; the rule as long as the history. */
typedef struct Case {
        const HealthRule *rule;
        const char *address, *line, *boot_id;
        uint64_t usec;  /* CLOCK_REALTIME */
        unsigned count; /* number of cases that make a result; the same for all cases of a track */
        bool quiet;     /* the receiver knows it: it counts, but makes no result */
} Case;

/* The last reading of a rule about a device. */
typedef struct Reading {
        const HealthRule *rule;
        char address[PCI_ADDRESS_SIZE];
        uint64_t value; /* an AER counter; a link: 1 if it is as it should be */
} Reading;

typedef struct Controller {
        char name[HEALTH_NAME_SIZE], address[PCI_ADDRESS_SIZE];
} Controller;

/* The arguments of health_observer_line(). */
typedef struct Line {
        const char *text;
        bool quiet;
        int (*locate)(void *userdata, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE]);
        void *userdata;
} Line;

struct HealthObserver {
        const HealthRules *rules;
        const char *sysfs, *boot_id;
        History bad, good;
        Reading *readings; /* sorted: compare_readings() */
        size_t n_readings, n_readings_allocated;
        Controller *controllers;
        size_t n_controllers, n_controllers_allocated;
        bool reads_aer, reads_links;          /* there are rules of this kind */
        uint64_t aer_due_usec, link_due_usec; /* CLOCK_MONOTONIC */
};

static void history_done(History *history)
{
        for (size_t i = 0; i < history->n_tracks; i++)
                free(history->tracks[i].times);
        free(history->tracks);
}

HealthObserver *health_observer_free(HealthObserver *observer)
{
        if (!observer)
                return NULL;
        history_done(&observer->bad);
        history_done(&observer->good);
        free(observer->readings);
        free(observer->controllers);
        free(observer);
        return NULL;
}

static bool is_aer(const HealthRule *rule)
{
        return rule->evidence == HEALTH_AER_FATAL || rule->evidence == HEALTH_AER_NONFATAL;
}

/* NVMe controllers */

/* Stores the address of a controller. A known name can get another address. A new name is not
 * stored without memory or at CONTROLLERS_MAX. Then only the evidence about a controller that
 * disappears is lost. */
static void remember(HealthObserver *observer, const char *name, const char *address)
{
        size_t i = 0;

        while (i < observer->n_controllers && strcmp(observer->controllers[i].name, name) != 0)
                i++;
        if (i == CONTROLLERS_MAX)
                return;
        if (i == observer->n_controllers) {
                if (array_grow(&observer->controllers, sizeof(Controller), i,
                               &observer->n_controllers_allocated) < 0)
                        return;
                observer->n_controllers++;
        }
        snprintf(observer->controllers[i].name, HEALTH_NAME_SIZE, "%s", name);
        snprintf(observer->controllers[i].address, PCI_ADDRESS_SIZE, "%s", address);
}

DEFINE_CLEANUP(DIR *, closedir);

/* Remembers all controllers that sysfs has now. */
static void remember_all(HealthObserver *observer)
{
        _cleanup_free_ char *path = text_format("%s/class/nvme", observer->sysfs);
        _cleanup_(closedirp) DIR *dir = path ? opendir(path) : NULL;
        const struct dirent *entry;
        char address[PCI_ADDRESS_SIZE];

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < HEALTH_NAME_SIZE &&
                    health_sysfs_find_nvme(observer->sysfs, entry->d_name, address) == 0)
                        remember(observer, entry->d_name, address);
}

/* Adds the address of a controller to its name. Returns false if it is unknown. */
static bool resolve(HealthObserver *observer, HealthSubject *subject)
{
        if (!subject->nvme[0])
                return true;
        if (health_sysfs_find_nvme(observer->sysfs, subject->nvme, subject->address) == 0) {
                remember(observer, subject->nvme, subject->address);
                return true;
        }
        for (size_t i = 0; i < observer->n_controllers; i++)
                if (strcmp(observer->controllers[i].name, subject->nvme) == 0) {
                        memcpy(subject->address, observer->controllers[i].address,
                               PCI_ADDRESS_SIZE);
                        return true;
                }
        return false;
}

int health_observer_new(HealthObserver **ret, const HealthRules *rules, const char *sysfs,
                        const char *boot_id)
{
        HealthObserver *observer = calloc(1, sizeof(HealthObserver));

        if (!observer)
                return -ENOMEM;
        observer->rules = rules;
        observer->sysfs = sysfs;
        observer->boot_id = boot_id;
        for (size_t i = 0; i < rules->n_items; i++) {
                observer->reads_aer |= is_aer(rules->items[i]);
                observer->reads_links |=
                        !is_aer(rules->items[i]) && rules->items[i]->evidence != HEALTH_LINE;
        }
        remember_all(observer);
        *ret = observer;
        return 0;
}

/* Histories */

static Track *find_track(const History *history, const HealthRule *rule, const char *address)
{
        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].rule == rule &&
                    strcmp(history->tracks[i].address, address) == 0)
                        return &history->tracks[i];
        return NULL;
}

static void drop_track(History *history, size_t i)
{
        free(history->tracks[i].times);
        array_close(history->tracks, sizeof(Track), &history->n_tracks, i);
}

/* Makes space for a new track. */
static void drop_oldest(History *history)
{
        size_t oldest = 0;

        for (size_t i = 1; i < history->n_tracks; i++)
                if (history->tracks[i].order < history->tracks[oldest].order)
                        oldest = i;
        drop_track(history, oldest);
}

/* Adds a track without cases. NULL: out of memory. */
static Track *add_track(History *history, const Case *new_case)
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

/* Adds one case. A case before the last one of its track is accepted, because the clock of the host
 * can jump. Returns -ENOMEM on failure. */
static int add_case(History *history, const Case *new_case)
{
        Track *track = find_track(history, new_case->rule, new_case->address);

        if (!track)
                track = add_track(history, new_case);
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

/* Forgets the cases of a track and a result that was not taken. The time of its last result
 * stays. */
static void forget(Track *track)
{
        track->n_times = 0;
        track->is_due = false;
}

/* Forgets the cases of a rule about a device, because there is evidence of the other kind. */
static void forget_device(History *history, const HealthRule *rule, const char *address)
{
        Track *track = find_track(history, rule, address);

        if (track)
                forget(track);
}

/* Forgets all cases of rules whose evidence is lines. */
static void forget_lines(History *history)
{
        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].rule->evidence == HEALTH_LINE)
                        forget(&history->tracks[i]);
}

/* Returns the time from which the track's result can be taken. */
static uint64_t due_usec(const Track *track)
{
        return track->sent_usec ? track->sent_usec + HEALTH_REPEAT_USEC : 0;
}

/* Takes the next result that is due. now_usec is CLOCK_MONOTONIC. Returns its track, borrowed
 * until the next change; NULL: there is none. */
static const Track *take(History *history, uint64_t now_usec)
{
        for (size_t i = 0; i < history->n_tracks; i++) {
                Track *track = &history->tracks[i];

                if (!track->is_due || due_usec(track) > now_usec)
                        continue;
                track->is_due = false;
                track->sent_usec = MAX(now_usec, 1U);
                return track;
        }
        return NULL;
}

/* Returns the microseconds until the next result can be taken; UINT64_MAX: never. */
static uint64_t due_in_usec(const History *history, uint64_t now_usec)
{
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].is_due)
                        first = MIN(first, MAX(due_usec(&history->tracks[i]), now_usec));
        return first == UINT64_MAX ? first : first - now_usec;
}

/* Evidence */

static int note_bad(HealthObserver *observer, const Case *evidence)
{
        forget_device(&observer->good, evidence->rule, evidence->address);
        return add_case(&observer->bad, evidence);
}

/* Notes that the device works again: a result of one case. */
static int note_good(HealthObserver *observer, Case evidence)
{
        forget_device(&observer->bad, evidence.rule, evidence.address);
        evidence.count = 1;
        return add_case(&observer->good, &evidence);
}

/* Matches a line with one pattern, and notes the evidence. */
static int apply_pattern(HealthObserver *observer, const HealthRule *rule, const Line *line,
                         bool recovers)
{
        char boot_id[HEALTH_BOOT_SIZE];
        HealthSubject subject;
        uint64_t usec;

        if (!health_pattern_match(recovers ? rule->recovery : rule->pattern, line->text,
                                  &subject) ||
            line->locate(line->userdata, &usec, boot_id) < 0)
                return 0;
        /* The names of controllers can differ between boots. */
        if (strcmp(boot_id, observer->boot_id) != 0 &&
            (rule->lift == HEALTH_LIFT_BOOT || subject.nvme[0]))
                return 0;
        if (!resolve(observer, &subject))
                return 0;
        const Case evidence = { .rule = rule,
                                .address = subject.address,
                                .line = line->text,
                                .boot_id = boot_id,
                                .usec = usec,
                                .count = rule->count,
                                .quiet = line->quiet };

        return recovers ? note_good(observer, evidence) : note_bad(observer, &evidence);
}

int health_observer_line(HealthObserver *observer, const char *text, bool quiet,
                         int (*locate)(void *userdata, uint64_t *ret_usec,
                                       char ret_boot_id[HEALTH_BOOT_SIZE]),
                         void *userdata)
{
        const Line line = { text, quiet, locate, userdata };
        int r = 0;

        for (size_t i = 0; r == 0 && i < observer->rules->n_items; i++) {
                const HealthRule *rule = observer->rules->items[i];

                if (rule->pattern)
                        r = apply_pattern(observer, rule, &line, false);
                if (r == 0 && rule->recovery)
                        r = apply_pattern(observer, rule, &line, true);
        }
        return r;
}

void health_observer_forget_lines(HealthObserver *observer)
{
        forget_lines(&observer->bad);
        forget_lines(&observer->good);
}

/* Readings */

static int compare_readings(const void *key, const void *item)
{
        const Reading *a = key, *b = item;

        if (a->rule != b->rule)
                return a->rule < b->rule ? -1 : 1;
        return strcmp(a->address, b->address);
}

/* Returns the stored reading, and whether it is a new one in *ret_new. NULL: out of memory. */
static Reading *find_reading(HealthObserver *observer, const HealthRule *rule, const char *address,
                             bool *ret_new)
{
        Reading key = { .rule = rule };
        bool found;
        size_t at;

        snprintf(key.address, sizeof(key.address), "%s", address);
        at = array_find(observer->readings, sizeof(Reading), observer->n_readings, &key,
                        compare_readings, &found);
        *ret_new = !found;
        if (found)
                return &observer->readings[at];
        if (array_grow(&observer->readings, sizeof(Reading), observer->n_readings,
                       &observer->n_readings_allocated) < 0)
                return NULL;
        array_open(observer->readings, sizeof(Reading), &observer->n_readings, at);
        observer->readings[at] = key;
        return &observer->readings[at];
}

/* Compares a counter with its last reading. A counter that fell is that of another device. */
static int read_counter(HealthObserver *observer, Case evidence)
{
        uint64_t value, before;
        Reading *reading;
        char words[160];
        bool is_new;
        int r = health_sysfs_read_aer(observer->sysfs, evidence.address, evidence.rule->evidence,
                                      &value);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        reading = find_reading(observer, evidence.rule, evidence.address, &is_new);
        if (!reading)
                return -ENOMEM;
        before = is_new ? value : reading->value;
        reading->value = value;
        if (value <= before)
                return 0;
        snprintf(words, sizeof(words),
                 "%s: the counter of %s PCIe errors grew from %" PRIu64 " to %" PRIu64,
                 evidence.address,
                 evidence.rule->evidence == HEALTH_AER_FATAL ? "fatal" : "non-fatal", before,
                 value);
        evidence.line = words;
        for (uint64_t i = 0; r == 0 && i < MIN(value - before, (uint64_t)HEALTH_COUNT_MAX); i++)
                r = note_bad(observer, &evidence);
        return r;
}

/* Compares a link with its capability. A link that was good at the last reading and is good now is
 * no news. */
static int read_link(HealthObserver *observer, Case evidence)
{
        bool width = evidence.rule->evidence == HEALTH_LINK_WIDTH, is_new, was_good;
        unsigned current, expected;
        Reading *reading;
        char words[160];
        int r = health_sysfs_read_link(observer->sysfs, evidence.address, evidence.rule->evidence,
                                       &current, &expected);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        reading = find_reading(observer, evidence.rule, evidence.address, &is_new);
        if (!reading)
                return -ENOMEM;
        was_good = !is_new && reading->value;
        reading->value = current >= expected;
        if (width)
                snprintf(words, sizeof(words), "%s: the PCIe link has %u of %u lanes",
                         evidence.address, current, expected);
        else
                snprintf(words, sizeof(words), "%s: the PCIe link runs at %u.%u of %u.%u GT/s",
                         evidence.address, current / 10, current % 10, expected / 10,
                         expected % 10);
        evidence.line = words;
        if (!reading->value)
                return note_bad(observer, &evidence);
        return was_good || evidence.rule->lift != HEALTH_LIFT_RECOVERY
                       ? 0
                       : note_good(observer, evidence);
}

/* Applies the rules of the kinds that are due to one device. */
static int read_device(HealthObserver *observer, const char *address, bool aer, bool links,
                       uint64_t real_usec)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < observer->rules->n_items; i++) {
                const HealthRule *rule = observer->rules->items[i];
                Case evidence = { .rule = rule,
                                  .address = address,
                                  .boot_id = observer->boot_id,
                                  .usec = real_usec,
                                  .count = rule->count };

                if (rule->evidence == HEALTH_LINE || !(is_aer(rule) ? aer : links))
                        continue;
                r = is_aer(rule) ? read_counter(observer, evidence) : read_link(observer, evidence);
        }
        return r;
}

int health_observer_read(HealthObserver *observer, uint64_t now_usec, uint64_t real_usec)
{
        bool aer = observer->reads_aer && observer->aer_due_usec <= now_usec;
        bool links = observer->reads_links && observer->link_due_usec <= now_usec;
        _cleanup_free_ char(*list)[PCI_ADDRESS_SIZE] = NULL;
        int n, r = 0;

        if (!aer && !links)
                return 0;
        if (aer)
                observer->aer_due_usec = now_usec + HEALTH_AER_USEC;
        if (links) {
                observer->link_due_usec = now_usec + HEALTH_LINK_USEC;
                remember_all(observer);
        }
        n = health_sysfs_list(observer->sysfs, &list);
        for (int i = 0; r == 0 && i < n; i++)
                r = read_device(observer, list[i], aer, links, real_usec);
        return n == -ENOMEM ? n : r;
}

/* Messages */

/* Returns true if a message was not taken, whether it is due or not. */
static bool is_left(const HealthObserver *observer)
{
        return due_in_usec(&observer->bad, 0) != UINT64_MAX ||
               due_in_usec(&observer->good, 0) != UINT64_MAX;
}

int health_observer_take(HealthObserver *observer, uint64_t now_usec, HealthMessage *ret)
{
        const Track *good = take(&observer->good, now_usec);
        const Track *track = good ? good : take(&observer->bad, now_usec);

        if (!track)
                return is_left(observer) ? -EAGAIN : 0;
        *ret = (HealthMessage){ .kind = good ? HEALTH_RECOVERED : HEALTH_FINDING,
                                .last_usec = track->times[track->n_times - 1] };
        snprintf(ret->rule, sizeof(ret->rule), "%s", track->rule->name);
        memcpy(ret->address, track->address, sizeof(ret->address));
        memcpy(ret->line, track->line, sizeof(ret->line));
        memcpy(ret->boot_id, track->boot_id, sizeof(ret->boot_id));
        if (good)
                return 1;
        ret->first_usec = track->times[0];
        ret->within_usec = track->rule->within_usec;
        ret->guests = track->rule->guests;
        ret->lift = track->rule->lift;
        ret->reports = track->rule->reports;
        return 1;
}

uint64_t health_observer_due_in_usec(const HealthObserver *observer, uint64_t now_usec)
{
        uint64_t first =
                MIN(due_in_usec(&observer->bad, now_usec), due_in_usec(&observer->good, now_usec));

        if (observer->reads_aer)
                first = MIN(first, observer->aer_due_usec - MIN(observer->aer_due_usec, now_usec));
        if (observer->reads_links)
                first = MIN(first,
                            observer->link_due_usec - MIN(observer->link_due_usec, now_usec));
        return first;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes prepare-wanted and prepare-retry, and reads prepared.json. For the cleaner it only writes
 * clean-wanted. A stamp is the time since the boot in microseconds, so no two runs of the agent in
 * one boot write the same one. A failure to write is logged once, and a later cycle tries again if
 * work is unfinished. A failure to write prepare-retry is only a debug message. No function here
 * waits for the program. Without a folder in /run (path NULL) nothing is written. A record that
 * cannot be read or parsed counts as missing, so that another stamp follows.
 *
 * Tests: tests/unit/agent/guests/test-prepare-wanted.c */

#include "agent/guests/prepare-wanted.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/read-file.h"
#include "base/text.h"

#define RECORD_MAX ((size_t)4 << 20)
#define AGAIN_USEC (3 * USEC_PER_SEC)

int prepare_wanted_init(PrepareWanted *wanted, const char *runtime, const char *verb,
                        const char *record)
{
        *wanted = (PrepareWanted){ 0 };
        if (!runtime || runtime[0] != '/')
                return 0;
        wanted->path = text_format("%.*s/%s-wanted", (int)strcspn(runtime, ":"), runtime, verb);
        wanted->record_path =
                text_format("%.*s-%s/%s.json", (int)strcspn(runtime, ":"), runtime, verb, record);
        if (wanted->path && wanted->record_path)
                return 0;
        prepare_wanted_done(wanted);
        return -ENOMEM;
}

void prepare_wanted_done(PrepareWanted *wanted)
{
        sd_event_source_disable_unref(wanted->timer);
        free(wanted->path);
        free(wanted->record_path);
        *wanted = (PrepareWanted){ 0 };
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
        PrepareWanted *wanted = userdata;

        if (*wanted->config)
                prepare_wanted_tend(wanted, *wanted->config);
        return 0;
}

int prepare_wanted_watch(PrepareWanted *wanted, sd_event *event, const HostConfig *const *config)
{
        int r = sd_event_add_time(event, &wanted->timer, CLOCK_MONOTONIC, 0, 0, on_again, wanted);

        wanted->config = config;
        return r < 0 ? r : sd_event_source_set_enabled(wanted->timer, SD_EVENT_OFF);
}

/* Returns the first section [device_prepare NAME] that has the card, or NULL. */
static const HostPrepare *find_section(const HostConfig *config, const char *card)
{
        for (size_t i = 0; i < config->n_prepares; i++)
                for (char **address = config->prepares[i].device_addresses; *address; address++)
                        if (strcmp(*address, card) == 0)
                                return &config->prepares[i];
        return NULL;
}

bool prepare_wanted_has_units(const HostConfig *config, const char *address)
{
        for (size_t i = 0; i < config->n_shapes; i++)
                if (config->shapes[i].activate &&
                    device_set_members_of(&config->shapes[i].set, address))
                        return true;
        return false;
}

static bool has_vgpu_types(const HostConfig *config)
{
        for (size_t i = 0; i < config->n_prepares; i++)
                if (config->prepares[i].vgpu_types)
                        return true;
        return false;
}

/* Returns true if prepare_wanted_note() writes a stamp for a changed claim of this device. */
static bool is_concerned(const HostConfig *config, const Snapshot *snapshot,
                         const ClaimDevice *device)
{
        const HostPrepare *section;

        if (!device->address || !device->address[0] || !uuid_empty(&device->mdev))
                return false;
        if (prepare_wanted_has_units(config, device->address))
                return true;
        if (!has_vgpu_types(config))
                return false;
        for (size_t i = 0; snapshot && i < snapshot->n_devices; i++) {
                const SnapshotDevice *there = &snapshot->devices[i];

                if (strcmp(there->address, device->address) != 0)
                        continue;
                section = find_section(config, there->physical_function);
                return section && section->vgpu_types;
        }
        return true;
}

/* Replaces the content of the file, which every user can read. A symbolic link is an error. The
 * write is not atomic, which does no harm: a stamp that was read in part only causes another run.
 */
static int write_stamp(const char *path, const char *stamp)
{
        _cleanup_close_ int fd =
                open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        size_t n = strlen(stamp);

        if (fd < 0 || fchmod(fd, 0644) < 0)
                return -errno;
        return write(fd, stamp, n) == (ssize_t)n ? 0 : -EIO;
}

/* Writes a new stamp to prepare-retry. */
static void write_retry(const PrepareWanted *wanted)
{
        _cleanup_free_ char *path =
                text_format("%.*s/prepare-retry", (int)(strrchr(wanted->path, '/') - wanted->path),
                            wanted->path);
        char stamp[PREPARE_STAMP_SIZE];

        snprintf(stamp, sizeof(stamp), "%" PRIx64, clock_usec(CLOCK_BOOTTIME));
        if (!path || write_stamp(path, stamp) < 0)
                log_debug("Cannot write prepare-retry. Retrying.");
}

void prepare_wanted_write(PrepareWanted *wanted, bool retries)
{
        int r;

        if (retries)
                write_retry(wanted);
        snprintf(wanted->stamp, sizeof(wanted->stamp), "%" PRIx64, clock_usec(CLOCK_BOOTTIME));
        r = write_stamp(wanted->path, wanted->stamp);
        if (r < 0 && !wanted->logged)
                log_warning("Cannot write %s, so compute-agent-prepare is not started: %s. "
                            "Retrying in each cycle.",
                            wanted->path, strerror(-r));
        wanted->logged = r < 0;
}

void prepare_wanted_note(PrepareWanted *wanted, const HostConfig *config, const Snapshot *snapshot,
                         const Claim *claim)
{
        if (!wanted->path || !config)
                return;
        for (size_t i = 0; i < claim->n_devices; i++)
                if (is_concerned(config, snapshot, &claim->devices[i])) {
                        prepare_wanted_write(wanted, false);
                        if (wanted->timer) {
                                (void)sd_event_source_set_time(
                                        wanted->timer, clock_usec(CLOCK_MONOTONIC) + AGAIN_USEC);
                                (void)sd_event_source_set_enabled(wanted->timer, SD_EVENT_ONESHOT);
                        }
                        return;
                }
}

/* record NULL: there is none, or it cannot be read. */
static bool is_unfinished(const json_t *record, const char *stamp)
{
        const char *text;
        const json_t *item;
        size_t i;

        if (!record || json_read_string(record, "wanted", &text, NULL) < 0 ||
            strcmp(text, stamp) != 0)
                return true;
        if (json_read_string(record, "error", &text, NULL) == 0 && text[0])
                return true;
        json_array_foreach(json_object_get(record, "functions"), i, item)
                if (json_read_string(item, "waiting", &text, NULL) == 0 && text[0])
                        return true;
        return false;
}

void prepare_wanted_tend(PrepareWanted *wanted, const HostConfig *config)
{
        _cleanup_json_ json_t *record = NULL;
        _cleanup_free_ char *text = NULL;
        size_t n;

        if (!wanted->path || !has_vgpu_types(config))
                return;
        if (read_file_text(wanted->record_path, RECORD_MAX, &text, &n, NULL) == 0)
                (void)json_parse(text, n, &record, NULL);
        if (is_unfinished(record, wanted->stamp))
                prepare_wanted_write(wanted, false);
}

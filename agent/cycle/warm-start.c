/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes and reads the file of a warm start: the state of Placement as the last process knew it,
 * with which a start need not read everything (warm-start.h). The member "content" has this state.
 * The member "checksum" is the digest of the text of "content". jansson writes equal values as
 * equal texts if keys are sorted. So the reader writes the content as text again, and compares the
 * digests. A file with another digest is damaged: it is set aside, and nothing of it is used. A
 * file that was read without an error is removed before its content is used.
 *
 * Two pure functions decide by the content whether the start needs no audit, and when the next full
 * read of Placement is due. */

#include "agent/cycle/warm-start.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/pace.h"
#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"

#define WARM_FORMAT "compute-agent-placement/1"

void warm_start_done(WarmStart *warm)
{
        json_decref(warm->reporter);
        *warm = (WarmStart){ 0 };
}

/* Makes the digest of a value as text. Returns the size of the text, 0 when out of memory. */
static size_t make_checksum(const json_t *content, char text[static DIGEST_TEXT_MAX])
{
        _cleanup_free_ char *dump = json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS);
        Digest digest;

        if (!dump)
                return 0;
        digest = digest_make(dump, strlen(dump));
        digest_to_text(&digest, text);
        return digest.size;
}

/* Returns the member "content", with another reference to warm->reporter. NULL: out of memory. */
static json_t *content_to_json(const WarmStart *warm)
{
        return json_pack("{ss sI sI ss sI sI sI sO}", "root", warm->root.text, "saved_usec",
                         (json_int_t)warm->saved.real_usec, "saved_boottime_usec",
                         (json_int_t)warm->saved.boot_usec, "boot_id", warm->saved.boot_id,
                         "full_at_usec", (json_int_t)warm->full_at_usec, "audited_usec",
                         (json_int_t)warm->audited_usec, "held_stamp", (json_int_t)warm->held_stamp,
                         "reporter", warm->reporter);
}

static char *make_path(const char *state_dir)
{
        return text_format("%s/placement.json", state_dir);
}

int warm_start_write(const WarmStart *warm, const char *state_dir, Error *reterr)
{
        _cleanup_json_ json_t *content = content_to_json(warm), *file = NULL;
        _cleanup_free_ char *path = make_path(state_dir);
        char checksum[DIGEST_TEXT_MAX];
        size_t size = content ? make_checksum(content, checksum) : 0;

        if (!path || size == 0)
                return error_oom(reterr);
        if (size > WARM_SIZE_MAX)
                return 0;
        file = json_pack("{ss ss sO}", "format", WARM_FORMAT, "checksum", checksum, "content",
                         content);
        return file ? state_file_write(path, file, reterr) : error_oom(reterr);
}

/* Reads the member "content". A file of an earlier program has no held_stamp. */
static int read_content(const json_t *content, WarmStart *ret, Error *reterr)
{
        const char *boot_id;
        json_t *reporter;
        int r;

        if ((r = json_read_uuid(content, "root", &ret->root, reterr)) < 0 ||
            (r = json_read_u64(content, "saved_usec", &ret->saved.real_usec, reterr)) < 0 ||
            (r = json_read_u64(content, "saved_boottime_usec", &ret->saved.boot_usec, reterr)) <
                    0 ||
            (r = json_read_string(content, "boot_id", &boot_id, reterr)) < 0 ||
            (r = json_read_u64(content, "full_at_usec", &ret->full_at_usec, reterr)) < 0 ||
            (r = json_read_u64(content, "audited_usec", &ret->audited_usec, reterr)) < 0 ||
            (r = json_read_object(content, "reporter", &reporter, reterr)) < 0)
                return r;
        if (json_object_get(content, "held_stamp") &&
            (r = json_read_u64(content, "held_stamp", &ret->held_stamp, reterr)) < 0)
                return r;
        if (strlen(boot_id) >= sizeof(ret->saved.boot_id))
                return error_setf(reterr, EBADMSG, "boot_id is too long");
        strcpy(ret->saved.boot_id, boot_id);
        ret->reporter = json_incref(reporter);
        return 0;
}

/* Checks the checksum, and then reads the content. Any error makes state_file_load() set the file
 * aside, except a lack of memory. */
static int read_file(const json_t *json, void *userdata, Error *reterr)
{
        char checksum[DIGEST_TEXT_MAX];
        const char *expected;
        json_t *content;
        int r;

        if ((r = json_read_string(json, "checksum", &expected, reterr)) < 0 ||
            (r = json_read_object(json, "content", &content, reterr)) < 0)
                return r;
        if (make_checksum(content, checksum) == 0)
                return error_oom(reterr);
        if (strcmp(checksum, expected) != 0)
                return error_setf(reterr, EBADMSG, "its checksum is wrong");
        return read_content(content, userdata, reterr);
}

static bool is_audited(const WarmStart *warm, const WarmMoment *now)
{
        return warm->saved.boot_id[0] != '\0' && strcmp(warm->saved.boot_id, now->boot_id) == 0 &&
               warm->saved.boot_usec <= now->boot_usec &&
               now->boot_usec - warm->saved.boot_usec <= WARM_STOP_MAX_USEC &&
               warm->audited_usec > 0 && warm->audited_usec <= now->real_usec &&
               now->real_usec - warm->audited_usec < WARM_AUDIT_AGE_USEC;
}

static uint64_t find_full_read(const WarmStart *warm, const WarmMoment *now)
{
        uint64_t in_usec;

        if (warm->saved.real_usec > now->real_usec || warm->full_at_usec <= now->real_usec)
                return 0;
        in_usec = warm->full_at_usec - now->real_usec;
        return in_usec > CYCLE_FULL_USEC / 2 * 3 ? 0 : in_usec;
}

int warm_start_take(const char *state_dir, const Uuid *root, const WarmMoment *now, WarmStart *ret,
                    Error *reterr)
{
        _cleanup_(warm_start_done) WarmStart warm = { 0 };
        _cleanup_free_ char *path = make_path(state_dir);
        int r, removed;

        if (!path)
                return error_oom(reterr);
        r = state_file_load(path, WARM_FORMAT, false, read_file, &warm, reterr);
        if (r <= 0)
                return r;
        /* Remove the file before its content is used. If it stayed and this process were killed,
         * the next start would trust it, although its content is old. */
        removed = state_file_remove(path);
        if (removed < 0)
                return error_setf(reterr, removed, "Cannot remove %.120s: %s", path,
                                  strerror(-removed));
        if (!uuid_equal(&warm.root, root))
                return error_setf(reterr, ESTALE, "It has the tree of another host, %s",
                                  warm.root.text);
        warm.full_in_usec = find_full_read(&warm, now);
        warm.is_audited = is_audited(&warm, now);
        *ret = TAKE_STRUCT(warm);
        return 1;
}

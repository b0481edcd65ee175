/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the living claims of PCI functions, and the dirty devices, in a child process. The child
 * writes this document to a pipe, and the parent parses it:
 *
 *   {"code": 0 or an errno, "text": words of the error, "complete": bool,
 *    "claims": [{"id", "state", "address", "type"}],
 *    "dirty": [{"row", "since", "address"}]}
 *
 * "complete" is false after an error, and with Placement until it was read for a new database.
 *
 * The child becomes the owner of the state folder before it opens anything below it, so files that
 * SQLite makes belong to the agent. The size of the document and the time of the child are limited,
 * because the agent's user could replace the database and stop the child. At a limit, or after
 * another error of the read, the child is killed, and the read fails.
 *
 * Tests: tests/unit/prepare/test-claims.c */

#include "prepare/claims.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/folder-owner.h"
#include "base/json.h"
#include "base/text.h"
#include "claims/claims.h"

#define CHILD_USEC   (30 * USEC_PER_SEC)
#define BUSY_USEC    (5 * USEC_PER_SEC)
#define DOCUMENT_MAX ((size_t)16 << 20)

/* Adds the devices of a claim that have an address. For a mediated device this is the address of
 * the function above it, which has no type of its own. */
static int add_devices(json_t *array, const Claim *claim)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];
                json_t *item;

                if (!device->address || !device->address[0])
                        continue;
                item = json_pack(
                        "{sI ss ss ss}", "id", (json_int_t)claim->id, "state",
                        claim_state_to_text(claim->state), "address", device->address, "type",
                        device->mdev_type && uuid_empty(&device->mdev) ? device->mdev_type : "");
                if (json_array_append_new(array, item) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Makes the list of the devices that the agent wants cleaned. All of them are PCI functions. */
static json_t *list_dirty(const UncleanDevices *devices)
{
        json_t *array = json_array();

        for (size_t i = 0; array && i < devices->n_items; i++) {
                const UncleanDevice *device = &devices->items[i];
                json_t *item =
                        json_pack("{sI sI ss}", "row", (json_int_t)device->id, "since",
                                  (json_int_t)device->since_usec, "address", device->address);

                if (device->state != UNCLEAN_DIRTY) {
                        json_decref(item);
                } else if (json_array_append_new(array, item) < 0) {
                        json_decref(array);
                        return NULL;
                }
        }
        return array;
}

/* Makes the document of a database. */
static int describe_claims(const char *path, bool with_placement, json_t **ret, Error *reterr)
{
        _cleanup_(unclean_devices_done) UncleanDevices unclean = { 0 };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        _cleanup_(claims_freep) Claims *claims = NULL;
        _cleanup_json_ json_t *array = json_array(), *dirty = NULL;
        int r = claims_open_copy(&claims, path, BUSY_USEC, reterr);

        if (r == 0)
                r = claims_list(claims, CLAIMS_LIVING, NULL, &list, reterr);
        for (size_t i = 0; i < list.n_claims && r == 0; i++)
                r = add_devices(array, list.claims[i]) < 0 ? error_oom(reterr) : 0;
        if (r == 0)
                r = claims_list_unclean(claims, &unclean, reterr);
        if (r < 0)
                return r;
        dirty = list_dirty(&unclean);
        *ret = json_pack("{si ss sb sO sO}", "code", 0, "text", "", "complete",
                         !(with_placement && claims_is_unread(claims)), "claims", array, "dirty",
                         dirty);
        return *ret ? 0 : error_oom(reterr);
}

/* Becomes the owner of the state folder, reads the database and writes the document. */
static int run_child(const Config *config, int fd)
{
        _cleanup_free_ char *path = text_format("%s/%s", config->state_dir, config->claim_db);
        _cleanup_json_ json_t *document = NULL;
        Error error = ERROR_NULL;
        int r = path ? folder_owner_become(config->state_dir, &error) : error_oom(&error);

        if (r >= 0)
                r = describe_claims(path, config->has_placement, &document, &error);
        if (r < 0)
                document = json_pack("{si ss sb s[] s[]}", "code", -r, "text",
                                     error_text(&error, r), "complete", 0, "claims", "dirty");
        return document && json_dumpfd(document, fd, JSON_COMPACT) == 0 ? 0 : 1;
}

/* Reads until the end of the pipe, the limit or the deadline. The caller frees the text. */
static int read_document(int fd, char **ret, size_t *ret_n, Error *reterr)
{
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + CHILD_USEC;
        _cleanup_free_ char *text = NULL;
        size_t n = 0, n_allocated = 0;

        for (;;) {
                struct pollfd descriptor = { .fd = fd, .events = POLLIN };
                uint64_t now = clock_usec(CLOCK_MONOTONIC);
                ssize_t length;

                if (now >= until ||
                    poll(&descriptor, 1, (int)((until - now) / USEC_PER_MSEC) + 1) == 0)
                        return error_setf(reterr, ETIMEDOUT,
                                          "The claim database was not read within 30 s");
                if (n + 4096 > n_allocated) {
                        char *grown = realloc(text, n_allocated + 65536);

                        if (!grown)
                                return error_oom(reterr);
                        text = grown;
                        n_allocated += 65536;
                }
                length = read(fd, text + n, 4096);
                if (length < 0 && errno != EINTR && errno != EAGAIN)
                        return error_setf(reterr, errno, "Cannot read the claims: %s",
                                          strerror(errno));
                if (length == 0)
                        break;
                n += (size_t)MAX(length, 0);
                if (n > DOCUMENT_MAX)
                        return error_setf(reterr, EFBIG, "The list of claims is too long");
        }
        *ret = TAKE_PTR(text);
        *ret_n = n;
        return 0;
}

/* Returns the number in "nvidia-1428". Returns 0 for another text, which names no type of a virtual
 * function. */
static uint64_t parse_type(const char *text)
{
        static const char prefix[] = "nvidia-";
        uint64_t type = 0;

        if (strncmp(text, prefix, strlen(prefix)) != 0 || strlen(text) > strlen(prefix) + 9)
                return 0;
        for (text += strlen(prefix); isdigit((unsigned char)*text); text++)
                type = type * 10 + (uint64_t)(*text - '0');
        return *text ? 0 : type;
}

/* Adds a function that a claim has. Skips a device of another bus. */
static int parse_claim(const json_t *item, PrepareClaims *ret, Error *reterr)
{
        const char *state, *address, *type;
        PrepareClaim claim = { 0 };
        int r = json_read_i64(item, "id", &claim.id, reterr);

        if (r == 0)
                r = json_read_string(item, "state", &state, reterr);
        if (r == 0)
                r = json_read_string(item, "address", &address, reterr);
        if (r == 0)
                r = json_read_string(item, "type", &type, reterr);
        if (r < 0)
                return r;
        if (claim.id <= 0)
                return error_setf(reterr, EBADMSG, "A claim has the id %" PRIi64, claim.id);
        if (pci_address_parse(address, claim.address) < 0)
                return 0; /* a device of another bus */
        claim.is_pending = strcmp(state, claim_state_to_text(CLAIM_STATE_PENDING)) == 0;
        claim.is_confirmed = strcmp(state, claim_state_to_text(CLAIM_STATE_CONFIRMED)) == 0;
        claim.type = parse_type(type);
        if (array_grow(&ret->items, sizeof(PrepareClaim), ret->n_items, &ret->n_allocated) < 0)
                return error_oom(reterr);
        ret->items[ret->n_items++] = claim;
        return 0;
}

/* Adds a dirty device. Only PCI functions are cleaned, so one without a PCI address is an error. */
static int parse_dirty(const json_t *item, PrepareClaims *ret, Error *reterr)
{
        PrepareDirty dirty = { 0 };
        const char *address;
        int r = json_read_i64(item, "row", &dirty.row, reterr);

        if (r == 0)
                r = json_read_i64(item, "since", &dirty.since_usec, reterr);
        if (r == 0)
                r = json_read_string(item, "address", &address, reterr);
        if (r < 0)
                return r;
        if (dirty.row <= 0 || pci_address_parse(address, dirty.address) < 0)
                return error_setf(reterr, EBADMSG, "An unclean device has no row or no address");
        if (array_grow(&ret->dirty, sizeof(PrepareDirty), ret->n_dirty, &ret->n_dirty_allocated) <
            0)
                return error_oom(reterr);
        ret->dirty[ret->n_dirty++] = dirty;
        return 0;
}

int prepare_parse_claims(const char *text, size_t n, PrepareClaims *ret, Error *reterr)
{
        _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };
        _cleanup_json_ json_t *document = NULL;
        const char *words;
        json_t *array, *dirty;
        int64_t code;
        size_t i;
        int r = json_parse(text, n, &document, reterr);

        if (r == 0)
                r = json_read_i64(document, "code", &code, reterr);
        if (r == 0)
                r = json_read_string(document, "text", &words, reterr);
        if (r == 0)
                r = json_read_bool(document, "complete", &claims.complete, reterr);
        if (r == 0)
                r = json_read_array(document, "claims", &array, reterr);
        if (r < 0)
                return r;
        if (code == ENOENT) {
                ret->complete = false;
                ret->missing = true;
                return 0;
        }
        if (code != 0)
                return error_setf(reterr, (int)MIN(MAX(code, 1), 4095), "%s",
                                  words[0] ? words : "The claims cannot be read");
        r = json_read_array(document, "dirty", &dirty, reterr);
        for (i = 0; r == 0 && i < json_array_size(array); i++)
                r = parse_claim(json_array_get(array, i), &claims, reterr);
        for (i = 0; r == 0 && i < json_array_size(dirty); i++)
                r = parse_dirty(json_array_get(dirty, i), &claims, reterr);
        if (r == 0)
                *ret = TAKE_STRUCT(claims);
        return r;
}

int prepare_read_claims(const Config *config, PrepareClaims *ret, Error *reterr)
{
        _cleanup_close_ int reader = -EBADF;
        _cleanup_free_ char *text = NULL;
        size_t n = 0;
        pid_t pid;
        int ends[2], r;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return error_setf(reterr, errno, "Cannot make a pipe: %s", strerror(errno));
        reader = ends[0];
        (void)fcntl(reader, F_SETFL, O_NONBLOCK);
        pid = fork();
        if (pid == 0) {
                close(reader);
                _exit(run_child(config, ends[1]));
        }
        close(ends[1]);
        if (pid < 0)
                return error_setf(reterr, errno, "Cannot start a process: %s", strerror(errno));
        r = read_document(reader, &text, &n, reterr);
        if (r < 0)
                (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        if (r < 0)
                return r;
        if (n == 0)
                return error_setf(reterr, EIO, "The process that reads the claims failed");
        r = prepare_parse_claims(text, n, ret, reterr);
        return r == -EBADMSG ? error_prefixf(reterr, r, "The list of claims is invalid") : r;
}

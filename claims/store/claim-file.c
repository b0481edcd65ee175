/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opens the database file: creates it, upgrades it, and sets it aside if two opens find it damaged.
 * An open checks the sizes, the version, all pages, the schema (of a file that it neither made nor
 * upgraded), the rows and the statements, in this order. A file that the disk does not read, or of
 * another program or an unknown version, keeps its name, and the open fails. Blocks for the disk,
 * and up to busy_usec for each lock of another process. Also opens a copy of the file in memory,
 * and records whether Placement was read for a new database.
 *
 * One process at a time opens files of a folder, by a lock on the folder (flock, where the file
 * system has it). Names beside FILE:
 *
 *   FILE.v1-20250820T120000Z       A copy of FILE before an upgrade from version 1.
 *   FILE.corrupt-20250820T120000Z  A file that was found damaged, with -wal and -shm.
 *   FILE.copying                   An unfinished copy. A crash leaves it, and the next upgrade
 *                                  replaces it.
 *
 * A name that exists gets ".2" and so on. Files and folder are fsynced before the next step relies
 * on a name. */

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "claims/store/frame.h"
#include "claims/store/schema.h"

#define LOCK_POLL_USEC UINT64_C(5000)

/* The smallest page of SQLite, in bytes. */
#define PAGE_SIZE_MIN 512

typedef struct ClaimFile {
        const char *path;
        uint64_t busy_usec;
        int folder; /* descriptor of the folder of the file, locked by lock_folder() */
} ClaimFile;

static int open_folder(const char *path, Error *reterr)
{
        _cleanup_free_ char *copy = strdup(path);
        int fd;

        if (!copy)
                return error_oom(reterr);
        fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? sqlite_system_error(errno, path, "open", reterr) : fd;
}

/* Locks the folder, and waits up to busy_usec, then returns -EBUSY. On a file system without
 * flock() it returns 0 without a lock, and only SQLite's own locks protect the file. These are
 * enough unless two openers find the file damaged at the same time. */
static int lock_folder(const ClaimFile *file, Error *reterr)
{
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + file->busy_usec;

        while (flock(file->folder, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return 0;
                if (clock_usec(CLOCK_MONOTONIC) >= until)
                        return error_setf(
                                reterr, EBUSY,
                                "The claim database %s is being opened by another process",
                                file->path);
                usleep(LOCK_POLL_USEC);
        }
        return 0;
}

static int sync_folder(const ClaimFile *file, Error *reterr)
{
        if (fsync(file->folder) < 0 && errno != EINVAL && errno != EROFS)
                return sqlite_system_error(errno, file->path, "sync the folder of", reterr);
        return 0;
}

static int sync_copy(const char *path, Error *reterr)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return sqlite_system_error(errno, path, "sync", reterr);
        return 0;
}

/* Makes a name "PATH.KIND-20250820T120000Z", with a number if that exists. Returns NULL without
 * memory. */
static char *make_name(const char *path, const char *kind)
{
        time_t now = (time_t)(clock_usec(CLOCK_REALTIME) / USEC_PER_SEC);
        char stamp[32] = "", number[16] = "";
        struct tm utc;

        if (gmtime_r(&now, &utc))
                strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
        for (int i = 2;; i++) {
                _cleanup_free_ char *name = text_format("%s.%s-%s%s", path, kind, stamp, number);

                if (!name)
                        return NULL;
                if (access(name, F_OK) < 0)
                        return TAKE_PTR(name);
                snprintf(number, sizeof(number), ".%d", i);
        }
}

/* Creates an empty file that only its owner can read. A file that exists keeps its mode. */
static int make_file(const ClaimFile *file, Error *reterr)
{
        _cleanup_close_ int fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0)
                return sqlite_system_error(errno, file->path, "create", reterr);
        return sync_folder(file, reterr);
}

/* Yields the size of a regular file; 0 if it is missing. */
static int read_size(const char *path, uint64_t *ret_size, Error *reterr)
{
        struct stat st;

        *ret_size = 0;
        if (stat(path, &st) < 0)
                return errno == ENOENT ? 0 : sqlite_system_error(errno, path, "open", reterr);
        if (!S_ISREG(st.st_mode))
                return error_setf(reterr, EINVAL, "The claim database %s is not a regular file",
                                  path);
        *ret_size = (uint64_t)st.st_size;
        return 0;
}

/* Returns -EUCLEAN for a file that was cut off below the smallest page: it has 1 to 511 bytes, or
 * it is empty or missing but has a log. SQLite would treat it as empty and delete its log. The
 * claims would then be lost without an error. */
static int check_size(const ClaimFile *file, uint64_t size, uint64_t log_size, Error *reterr)
{
        if (size < PAGE_SIZE_MIN && (size > 0 || log_size > 0))
                return error_setf(reterr, EUCLEAN,
                                  "The claim database %s is damaged (cut off at %" PRIu64 " bytes)",
                                  file->path, size);
        return 0;
}

/* Calls check_size() with the sizes of the file and its log (-wal), and creates the file if it is
 * missing. */
static int prepare_file(const ClaimFile *file, bool *ret_has_log, Error *reterr)
{
        _cleanup_free_ char *log = text_format("%s-wal", file->path);
        uint64_t size, log_size;
        int r;

        if (!log)
                return error_oom(reterr);
        r = read_size(file->path, &size, reterr);
        if (r == 0)
                r = read_size(log, &log_size, reterr);
        if (r < 0)
                return r;
        r = check_size(file, size, log_size, reterr);
        if (r < 0)
                return r;
        *ret_has_log = log_size > 0;
        return size == 0 ? make_file(file, reterr) : 0;
}

/* Checks the structure of the file with SQLite's quick_check. Returns -EUCLEAN with words at the
 * first finding. */
static int check_pages(Sqlite *sqlite, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        const char *text;
        int r = sqlite_prepare(sqlite, "PRAGMA quick_check(1)", &statement, reterr);

        if (r == 0)
                r = sqlite_step(sqlite, statement, reterr);
        if (r >= 0)
                r = sqlite_column(sqlite, statement, 0, &text, reterr);
        if (r < 0)
                return r;
        return strcmp(text, "ok") == 0 ? 0 : sqlite_damaged(sqlite, text, reterr);
}

/* Checks that the file belongs to this program: its application_id, or a table of versions. Yields
 * true for an empty file, which has no tables and no other program's application_id. */
static int check_owner(Sqlite *sqlite, bool *ret_empty, Error *reterr)
{
        int64_t application_id, n_tables, n_columns;
        int r = sqlite_query_integer(sqlite, "PRAGMA application_id", &application_id, reterr);

        if (r < 0)
                return r;
        r = sqlite_query_integer(sqlite, "SELECT count(*) FROM sqlite_master", &n_tables, reterr);
        if (r < 0)
                return r;
        r = sqlite_query_integer(sqlite,
                                 "SELECT count(*) FROM pragma_table_info('versions')"
                                 " WHERE name IN ('table_name', 'version')",
                                 &n_columns, reterr);
        if (r < 0)
                return r;
        if ((application_id != 0 && application_id != SCHEMA_APPLICATION_ID) ||
            (application_id == 0 && n_tables > 0 && n_columns == 0))
                return error_setf(
                        reterr, EMEDIUMTYPE,
                        "%s is a database of another program. claim_db must name a file that only the agent uses",
                        sqlite->path);
        if (n_tables > 0 && n_columns != 2)
                return schema_unknown(sqlite, "no table of versions", reterr);
        *ret_empty = n_tables == 0;
        return 0;
}

/* Reads the version of the file; 0 for an empty file. Returns -EUCLEAN for a damaged file, and
 * -EMEDIUMTYPE for a database of another program. Returns -EPROTONOSUPPORT for a file of this
 * program without a readable version. */
static int read_version(Sqlite *sqlite, int64_t *ret_version, Error *reterr)
{
        int64_t version;
        bool empty;
        int r = check_owner(sqlite, &empty, reterr);

        if (r < 0)
                return r;
        if (empty) {
                *ret_version = 0;
                return 0;
        }
        /* The table must have exactly one row: table_name is "claims", and version is an integer.
         * The query yields 0 for any other content. */
        r = sqlite_query_integer(sqlite,
                                 "SELECT iif(count(*) = 1 AND min(table_name) = 'claims'"
                                 " AND typeof(min(version)) = 'integer', min(version), 0)"
                                 " FROM versions",
                                 &version, reterr);
        if (r < 0)
                return r;
        if (version <= 0)
                return schema_unknown(sqlite, "its version cannot be read", reterr);
        *ret_version = version;
        return 0;
}

static int check_version(Sqlite *sqlite, int64_t *ret_version, Error *reterr)
{
        int r = read_version(sqlite, ret_version, reterr);

        /* If the version cannot be read, only the pages show whether the file is damaged. */
        if (r == -EPROTONOSUPPORT && check_pages(sqlite, NULL) == -EUCLEAN)
                return check_pages(sqlite, reterr);
        if (r < 0)
                return r;
        if (*ret_version > SCHEMA_NEWEST)
                return error_setf(
                        reterr, EPROTONOSUPPORT,
                        "The claim database %s has version %" PRIi64
                        ", but this program supports versions up to %d. Install the version that wrote it, or move the file away to start without claims",
                        sqlite->path, *ret_version, SCHEMA_NEWEST);
        return 0;
}

/* Returns true if the log has a version that this SQLite does not open. SQLite has no error text
 * for that. */
static bool has_other_log(const ClaimFile *file)
{
        static const unsigned char version[4] = { 0x00, 0x2d, 0xe2, 0x18 }; /* version 3007000 */
        _cleanup_free_ char *log = text_format("%s-wal", file->path);
        _cleanup_close_ int fd = -1;
        unsigned char bytes[8];

        if (!log)
                return false;
        fd = open(log, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) &&
               memcmp(bytes + 4, version, sizeof(version)) != 0;
}

static int open_and_read_version(const ClaimFile *file, bool has_log, Sqlite **ret,
                                 int64_t *ret_version, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        int r = sqlite_open(&sqlite, file->path, file->busy_usec, reterr);

        if (r >= 0) {
                /* Closing must not move the log of a newer program into the file. Without a log,
                 * closing removes the files of SQLite. */
                sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)has_log, NULL);
                r = check_version(sqlite, ret_version, reterr);
        }
        if (r < 0)
                return has_log && r != -EPROTONOSUPPORT && has_other_log(file)
                               ? error_setf(
                                         reterr, EPROTONOSUPPORT,
                                         "The log %s-wal was written by another version of SQLite. Install that version, or move both files away to start without claims",
                                         file->path)
                               : r;
        *ret = TAKE_PTR(sqlite);
        return 0;
}

/* Makes the schema of a new file in one transaction. */
static int create_schema(Sqlite *sqlite, Error *reterr)
{
        _cleanup_(sqlite_rollbackp) Sqlite *transaction = NULL;
        int r = sqlite_begin_write(sqlite, reterr);

        if (r < 0)
                return r;
        transaction = sqlite;
        r = schema_create(sqlite, reterr);
        return r == 0 ? sqlite_commit(TAKE_PTR(transaction), reterr) : r;
}

static int backup_errno(sqlite3 *db, int rc)
{
        if (rc == SQLITE_FULL)
                return ENOSPC;
        if (rc == SQLITE_NOMEM || !db)
                return ENOMEM;
        return sqlite3_system_errno(db) != 0 ? sqlite3_system_errno(db) : EIO;
}

/* Copies all pages with SQLite's backup API, including those in the log. Returns a result code. */
static int back_up(sqlite3 *from, sqlite3 *to)
{
        sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

        if (!backup)
                return sqlite3_errcode(to);
        sqlite3_backup_step(backup, -1);
        return sqlite3_backup_finish(backup);
}

/* Writes a copy of the open database to the new file "to". Returns errors that name this file. */
static int copy_pages(Sqlite *from, const char *to, Error *reterr)
{
        sqlite3 *db = NULL;
        int rc, r = 0;

        rc = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
        if (rc == SQLITE_OK)
                rc = back_up(from->db, db);
        if (rc != SQLITE_OK)
                r = sqlite_system_error(backup_errno(db, rc), to, "write the copy", reterr);
        sqlite3_close(db);
        return r;
}

/* Writes FILE.copying, a copy of the old file, through a second connection, since the first one is
 * about to write. */
static int write_copy(const ClaimFile *file, const char *temporary, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *reader = NULL;
        int r;

        if (unlink(temporary) < 0 && errno != ENOENT)
                return sqlite_system_error(errno, temporary, "remove", reterr);
        r = sqlite_open(&reader, file->path, file->busy_usec, reterr);
        if (r == 0)
                r = copy_pages(reader, temporary, reterr);
        if (r == 0)
                r = sync_copy(temporary, reterr);
        if (r == 0 && chmod(temporary, 0600) < 0)
                r = sqlite_system_error(errno, temporary, "write the copy", reterr);
        return r;
}

/* Renames the copy to its final name, which contains the version. */
static int name_copy(const ClaimFile *file, const char *temporary, int64_t version, char **ret_name,
                     Error *reterr)
{
        _cleanup_free_ char *name = NULL;
        char kind[32];
        int r;

        snprintf(kind, sizeof(kind), "v%" PRIi64, version);
        name = make_name(file->path, kind);
        if (!name)
                return error_oom(reterr);
        if (rename(temporary, name) < 0)
                return sqlite_system_error(errno, name, "write the copy", reterr);
        r = sync_folder(file, reterr);
        if (r == 0)
                *ret_name = TAKE_PTR(name);
        return r;
}

/* Writes a copy of the old file, upgrades, and names the copy before the caller commits. So no
 * upgrade is committed without the copy. A failed upgrade can leave the copy. */
static int upgrade_with_copy(const ClaimFile *file, Sqlite *sqlite, int64_t version,
                             char **ret_copy, Error *reterr)
{
        _cleanup_free_ char *temporary = text_format("%s.copying", file->path);
        int r = temporary ? write_copy(file, temporary, reterr) : error_oom(reterr);

        if (r == 0)
                r = schema_upgrade(sqlite, version, reterr);
        if (r == 0)
                r = name_copy(file, temporary, version, ret_copy, reterr);
        if (r < 0 && temporary)
                unlink(temporary);
        return r;
}

/* Counts the claims. A file with sound pages but without a table of claims has an unknown shape. */
static int count_claims(Sqlite *sqlite, int64_t *ret, Error *reterr)
{
        int r = sqlite_query_integer(sqlite, "SELECT count(*) FROM claims", ret, reterr);

        return r == -EUCLEAN ? schema_unknown(sqlite, "claims", reterr) : r;
}

/* Upgrades the file in one transaction. On success, reterr gets the words of CLAIMS_UPGRADED: the
 * numbers of claims before and after, or that another process upgraded it. */
static int upgrade(const ClaimFile *file, Sqlite *sqlite, int64_t version, Error *reterr)
{
        _cleanup_(sqlite_rollbackp) Sqlite *transaction = NULL;
        _cleanup_free_ char *copy = NULL;
        int64_t before, after, now;
        int r = sqlite_begin_write(sqlite, reterr);

        if (r < 0)
                return r;
        transaction = sqlite;
        /* Another process can have upgraded it already, where folders cannot be locked. */
        r = check_version(sqlite, &now, reterr);
        if (r == 0 && now != version) {
                error_setf(reterr, EIO,
                           "Another process upgraded it from version %" PRIi64 " to %" PRIi64,
                           version, now);
                if (reterr)
                        reterr->code = 0;
        }
        if (r < 0 || now != version)
                return r;
        r = count_claims(sqlite, &before, reterr);
        if (r == 0)
                r = upgrade_with_copy(file, sqlite, version, &copy, reterr);
        if (r == 0)
                r = count_claims(sqlite, &after, reterr);
        if (r == 0)
                r = sqlite_commit(TAKE_PTR(transaction), reterr);
        if (r < 0)
                return r;
        error_setf(reterr, EIO,
                   "Upgraded from version %" PRIi64 " to %d with %" PRIi64 " of %" PRIi64
                   " claims; the old file is %s",
                   version, SCHEMA_NEWEST, after, before, copy);
        if (reterr)
                reterr->code = 0;
        return 0;
}

static int read_events(Claims *claims, Error *reterr)
{
        int64_t before = INT64_MAX;
        size_t n;

        do {
                _cleanup_(event_list_done) EventList list = { 0 };
                int r = claims_list_events(claims, before, &list, reterr);

                if (r < 0)
                        return r;
                n = list.n_events;
                before = n > 0 ? list.events[n - 1].id : before;
        } while (n > 0);
        return 0;
}

static int read_pending_writes(Claims *claims, Error *reterr)
{
        StoreUnplaced claim;
        ClaimRemoval removal;
        ClaimMove move;
        int r;

        for (int64_t after = 0;; after = removal.id)
                if ((r = claims_next_removal(claims, after, NULL, &removal, reterr)) != 0)
                        break;
        for (int64_t after = 0; r >= 0; after = move.id, claim_move_done(&move))
                if ((r = claims_next_move(claims, after, &move, reterr)) != 0)
                        break;
        for (int64_t after = 0; r >= 0; after = claim.id, store_unplaced_done(&claim))
                if ((r = store_next_unplaced(claims, after, &claim, reterr)) != 0)
                        break;
        return MIN(r, 0);
}

/* Reads the rows of the host, of claims, unclean devices, pending writes and events, so that damage
 * is found when the file is opened. */
static int read_everything(Claims *claims, Error *reterr)
{
        _cleanup_(unclean_devices_done) UncleanDevices unclean = { 0 };
        _cleanup_(claimed_devices_done) ClaimedDevices devices = { 0 };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_load_view(claims, reterr);

        claims->view = host_view_free(claims->view);
        if (r >= 0)
                r = claims_list(claims, CLAIMS_ALL, NULL, &list, reterr);
        if (r >= 0)
                r = claims_list_identities(claims, &devices, reterr);
        if (r >= 0)
                r = claims_list_unclean(claims, &unclean, reterr);
        if (r >= 0)
                r = read_pending_writes(claims, reterr);
        return r < 0 ? r : read_events(claims, reterr);
}

/* Takes over the open database, reads its rows, and checks all statements. Closes it on failure. */
static int check_contents(Claims **ret, Sqlite *sqlite, Error *reterr)
{
        _cleanup_(claims_freep) Claims *claims = calloc(1, sizeof(Claims));
        int r;

        if (!claims) {
                sqlite_close(sqlite);
                return error_oom(reterr);
        }
        claims->sqlite = sqlite;
        r = read_everything(claims, reterr);
        if (r == 0)
                r = store_check_statements(claims, reterr);
        if (r == 0)
                *ret = TAKE_PTR(claims);
        return r;
}

/* Returns 1 if the database has a part with exactly this SQL, 0 if not. */
static int has_part(Sqlite *sqlite, const char *name, const char *sql, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        int r = sqlite_prepare(sqlite, "SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql = ?2",
                               &statement, reterr);

        if (r == 0)
                r = sqlite_bind(sqlite, statement, 1, SQLITE_VALUE(name), reterr);
        if (r == 0)
                r = sqlite_bind(sqlite, statement, 2, SQLITE_VALUE(sql), reterr);
        if (r == 0)
                r = sqlite_step(sqlite, statement, reterr);
        return r;
}

/* Checks that the database "in" has each part of "from" that the query names. One of the two is
 * the file; the other one is the model. */
static int check_parts(Sqlite *from, const char *query, Sqlite *in, Sqlite *file, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *parts = NULL;
        const char *name, *sql;
        int r = sqlite_prepare(from, query, &parts, reterr);

        while (r == 0 && (r = sqlite_step(from, parts, reterr)) > 0) {
                r = sqlite_column(from, parts, 0, &name, reterr);
                if (r == 0)
                        r = sqlite_column(from, parts, 1, &sql, reterr);
                if (r == 0)
                        r = has_part(in, name, sql, reterr);
                if (r == 0)
                        return schema_unknown(file, name, reterr);
                r = MIN(r, 0);
        }
        return r;
}

/* Compares the SQL of each table, index and trigger with the file. The expected SQL is read from a
 * model: an empty database in memory with the newest schema. An operator's indexes and tables,
 * which the model lacks, are ignored. A trigger that the model lacks is an error, because it would
 * run with the agent's writes. */
static int check_schema(Sqlite *sqlite, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *model = NULL;
        int r = sqlite_open(&model, ":memory:", 0, reterr);

        if (r == 0)
                r = schema_create(model, reterr);
        if (r == 0)
                r = check_parts(model, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL",
                                sqlite, sqlite, reterr);
        if (r == 0)
                r = check_parts(sqlite,
                                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'", model,
                                sqlite, reterr);
        return r;
}

/* Opens or creates the file, with all checks. Returns the ClaimsOpened, -EUCLEAN if the file is
 * damaged, or another negative errno. */
static int try_open(const ClaimFile *file, Claims **ret, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        ClaimsOpened opened = CLAIMS_OPENED;
        int64_t version;
        bool has_log;
        int r = prepare_file(file, &has_log, reterr);

        if (r == 0)
                r = open_and_read_version(file, has_log, &sqlite, &version, reterr);
        if (r == 0)
                r = check_pages(sqlite, reterr);
        if (r < 0)
                return r;
        if (version < SCHEMA_NEWEST)
                opened = version > 0 ? CLAIMS_UPGRADED : CLAIMS_CREATED;
        r = opened == CLAIMS_UPGRADED ? upgrade(file, sqlite, version, reterr)
            : opened == CLAIMS_OPENED ? check_schema(sqlite, reterr)
                                      : 0;
        if (r == 0)
                r = sqlite_accept(sqlite, reterr);
        if (r == 0 && opened == CLAIMS_CREATED)
                r = create_schema(sqlite, reterr);
        /* Sync the folder: an upgrade has renamed the copy of the old file, and the journal of a
         * new file was created and removed. */
        if (r == 0 && opened != CLAIMS_OPENED)
                r = sync_folder(file, reterr);
        if (r == 0)
                r = check_contents(ret, TAKE_PTR(sqlite), reterr);
        return r < 0 ? r : (int)opened;
}

/* Returns the system's error, such as -EIO, if the disk does not yield every byte. A missing file,
 * of which only the log exists, has no bytes. */
static int read_through(const ClaimFile *file, Error *reterr)
{
        _cleanup_close_ int fd = open(file->path, O_RDONLY | O_CLOEXEC);
        char bytes[16384];
        ssize_t n;

        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0)
                return sqlite_system_error(errno, file->path, "read", reterr);
        do
                n = read(fd, bytes, sizeof(bytes));
        while (n > 0);
        return n < 0 ? sqlite_system_error(errno, file->path, "read", reterr) : 0;
}

/* Renames the damaged file, its log first. After a crash or an error between the renames, the file
 * still has its name. It is found damaged again, unless only its log showed the damage. */
static int set_aside(const ClaimFile *file, char **ret_name, Error *reterr)
{
        static const char *const suffixes[] = { "-wal", "-shm", "" };
        _cleanup_free_ char *name = make_name(file->path, "corrupt");
        int r;

        if (!name)
                return error_oom(reterr);
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                _cleanup_free_ char *from = text_format("%s%s", file->path, suffixes[i]);
                _cleanup_free_ char *to = text_format("%s%s", name, suffixes[i]);

                if (!from || !to)
                        return error_oom(reterr);
                if (rename(from, to) < 0 && errno != ENOENT)
                        return sqlite_system_error(errno, from, "set aside", reterr);
        }
        r = sync_folder(file, reterr);
        if (r < 0)
                return r;
        *ret_name = TAKE_PTR(name);
        return 0;
}

/* Opens the file, and sets it aside if it is damaged. Before that, it reads all bytes of the file
 * and opens it a second time. SQLite's check also reports damage if the disk fails to read a page.
 * The claims are then still on the disk, so the function returns the error of the read, such as
 * -EIO, and the file keeps its name. */
static int open_locked(const ClaimFile *file, Claims **ret, Error *reterr)
{
        _cleanup_free_ char *name = NULL;
        Error damage = ERROR_NULL;
        int r = try_open(file, ret, &damage);

        if (r == -EUCLEAN) {
                r = read_through(file, &damage);
                if (r == 0)
                        r = try_open(file, ret, &damage);
        }
        if (r != -EUCLEAN) {
                if (reterr && r != CLAIMS_OPENED && r != CLAIMS_CREATED)
                        *reterr = damage;
                return r;
        }
        r = set_aside(file, &name, reterr);
        if (r == 0)
                r = try_open(file, ret, reterr);
        if (r < 0)
                return r;
        error_setf(reterr, EUCLEAN, "Set aside as %s: %s", name, damage.text);
        return CLAIMS_SET_ASIDE;
}

/* Loads is_unread (claims_is_unread()) from SQLite's user_version, which no schema uses. It is 1
 * from the first open of a new file until claims_note_read(). This function writes the 1 to a file
 * without a host and claims, because the process that created it might have ended before it wrote
 * this. */
static int load_unread(Claims *claims, Error *reterr)
{
        static const char is_empty[] = "SELECT NOT EXISTS (SELECT 1 FROM resource_providers)"
                                       " AND NOT EXISTS (SELECT 1 FROM claims)";
        int64_t empty = 0, unread = 0;
        int r = sqlite_query_integer(claims->sqlite, is_empty, &empty, reterr);

        if (r == 0)
                r = sqlite_query_integer(claims->sqlite, "PRAGMA user_version", &unread, reterr);
        if (r == 0 && empty && !unread)
                r = sqlite_exec(claims->sqlite, "PRAGMA user_version = 1", reterr);
        claims->is_unread = unread || empty;
        return r;
}

bool claims_is_unread(const Claims *claims)
{
        return claims->is_unread;
}

int claims_note_read(Claims *claims, Error *reterr)
{
        int r = claims->is_unread ? sqlite_exec(claims->sqlite, "PRAGMA user_version = 0", reterr)
                                  : 0;

        if (r == 0)
                claims->is_unread = false;
        return r;
}

/* Opens the file while its folder is locked. If load_unread() fails, *ret is set, too: the caller
 * frees it. */
static int open_file(const char *path, uint64_t busy_usec, Claims **ret, Error *reterr)
{
        _cleanup_close_ int folder = open_folder(path, reterr);
        ClaimFile file = { .path = path, .busy_usec = busy_usec, .folder = folder };
        int opened, r;

        if (folder < 0)
                return folder;
        r = lock_folder(&file, reterr);
        if (r < 0)
                return r;
        opened = open_locked(&file, ret, reterr);
        r = opened < 0 ? opened : load_unread(*ret, reterr);
        return r < 0 ? r : opened;
}

int claims_open(Claims **ret, const ClaimsConfig *config, Error *reterr)
{
        _cleanup_(claims_freep) Claims *claims = NULL;
        uint64_t busy_usec = config->busy_usec > 0 ? config->busy_usec : CLAIMS_BUSY_USEC;
        sd_id128_t boot;
        int opened = open_file(config->path, busy_usec, &claims, reterr);

        if (opened < 0)
                return opened;
        claims->host = strdup(config->host);
        claims->node = strdup(config->node);
        if (!claims->host || !claims->node)
                return error_oom(reterr);
        claims->has_devices = config->has_devices;
        if (sd_id128_get_boot(&boot) >= 0)
                sd_id128_to_string(boot, claims->boot_id);
        *ret = TAKE_PTR(claims);
        return opened;
}

/* Returns -ENOENT if the file does not exist or was never used. */
static int check_exists(const ClaimFile *file, bool *ret_has_log, Error *reterr)
{
        _cleanup_free_ char *log = text_format("%s-wal", file->path);
        uint64_t size, log_size;
        int r;

        if (!log)
                return error_oom(reterr);
        r = read_size(file->path, &size, reterr);
        if (r == 0)
                r = read_size(log, &log_size, reterr);
        if (r == 0 && size == 0 && log_size == 0)
                return error_setf(reterr, ENOENT, "The claim database %s does not exist",
                                  file->path);
        if (r == 0)
                r = check_size(file, size, log_size, reterr);
        *ret_has_log = r == 0 && log_size > 0;
        return r;
}

/* Copies the file into memory. The copy has the path of the file, for messages. */
static int load_copy(const ClaimFile *file, Sqlite **ret, int64_t *ret_version, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *source = NULL, *copy = NULL;
        bool has_log;
        char *path;
        int rc, r = check_exists(file, &has_log, reterr);

        if (r == 0)
                r = open_and_read_version(file, has_log, &source, ret_version, reterr);
        if (r == 0 && *ret_version == 0)
                r = error_setf(reterr, ENOENT, "The claim database %s is empty", file->path);
        if (r == 0)
                r = check_pages(source, reterr);
        if (r == 0)
                r = sqlite_open(&copy, ":memory:", 0, reterr);
        if (r < 0)
                return r;
        path = strdup(file->path);
        if (!path)
                return error_oom(reterr);
        free(copy->path);
        copy->path = path;
        rc = back_up(source->db, copy->db);
        if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
                return error_setf(reterr, EBUSY,
                                  "The claim database %s is locked by another process", file->path);
        if (rc != SQLITE_OK)
                return sqlite_system_error(backup_errno(copy->db, rc), file->path, "read", reterr);
        *ret = TAKE_PTR(copy);
        return 0;
}

/* Upgrades the copy in memory, so that a file of an older version can be read without a change of
 * it. */
static int upgrade_copy(Sqlite *copy, int64_t version, Error *reterr)
{
        _cleanup_(sqlite_rollbackp) Sqlite *transaction = NULL;
        int r = sqlite_begin_write(copy, reterr);

        if (r < 0)
                return r;
        transaction = copy;
        r = schema_upgrade(copy, version, reterr);
        return r == 0 ? sqlite_commit(TAKE_PTR(transaction), reterr) : r;
}

int claims_open_copy(Claims **ret, const char *path, uint64_t busy_usec, Error *reterr)
{
        _cleanup_close_ int folder = open_folder(path, reterr);
        ClaimFile file = { .path = path,
                           .busy_usec = busy_usec > 0 ? busy_usec : CLAIMS_BUSY_USEC,
                           .folder = folder };
        _cleanup_(claims_freep) Claims *claims = NULL;
        _cleanup_(sqlite_closep) Sqlite *copy = NULL;
        int64_t version;
        int r;

        if (folder < 0)
                return folder;
        r = lock_folder(&file, reterr);
        if (r == 0)
                r = load_copy(&file, &copy, &version, reterr);
        if (r == 0 && version < SCHEMA_NEWEST)
                r = upgrade_copy(copy, version, reterr);
        if (r == 0)
                r = check_schema(copy, reterr);
        if (r == 0)
                r = check_contents(&claims, TAKE_PTR(copy), reterr);
        if (r == 0)
                r = load_unread(claims, reterr);
        if (r == 0)
                *ret = TAKE_PTR(claims);
        return r;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A claim database and its log (-wal) with changed bytes. Each line of the input has an offset and
 * the new values from there on. "!" cuts the file at the offset, and "w" continues with the log.
 * "s" makes the checksums of the log valid, as an attacker with write access could. Both files are
 * opened and used as at a start. The agent gets a database in all cases. */

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "claims/claims.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

#define FILE_MAX (1024 * 1024)

#define LOG_HEADER   32
#define FRAME_HEADER 24
#define PAGE         4096

typedef struct File {
        const char *suffix;
        unsigned char pristine[FILE_MAX], bytes[FILE_MAX];
        size_t n_pristine, n;
} File;

static char path[96];
static File database = { .suffix = "" }, wal = { .suffix = "-wal" };

static const ClaimsConfig *get_config(void)
{
        static ClaimsConfig config = { .host = "host", .node = "host", .busy_usec = 1000 };

        config.path = path;
        return &config;
}

static void name_file(const File *file, char name[static 128])
{
        snprintf(name, 128, "%s%s", path, file->suffix);
}

static void read_pristine(File *file)
{
        char name[128];
        int fd;

        name_file(file, name);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        assert(fd >= 0);
        file->n_pristine = (size_t)read(fd, file->pristine, FILE_MAX);
        assert(file->n_pristine > 0 && file->n_pristine < FILE_MAX);
        close(fd);
}

static void write_changed(const File *file)
{
        char name[128];
        int fd;

        name_file(file, name);
        fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert(fd >= 0 && write(fd, file->bytes, file->n) == (ssize_t)file->n);
        close(fd);
}

static void claim_one(Claims *claims)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        ClaimRequest request = { .consumer = uuid_make_random() };
        RequestGroup *group;

        assert(resource_request_group(&request.resources, "", &group, NULL) == 0);
        assert(resources_set(&group->resources, "VCPU", 1) == 0);
        assert(claims_claim(claims, &request, NULL, &claim, NULL, NULL) == 0);
        resource_request_done(&request.resources);
}

/* Makes a database with two claims in the file and one in the log. */
static void make_claims(void)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const Inventory cpus = INVENTORY_DEFAULT(8);
        const Uuid root = uuid_make_random(), null = { 0 };
        Provider *host;
        Claims *claims;

        assert(provider_tree_new(&tree) == 0);
        assert(provider_tree_add(tree, &root, "host", &null, &host, NULL) == 0);
        assert(provider_set_inventory(host, "VCPU", &cpus) == 0);
        assert(claims_open(&claims, get_config(), NULL) >= 0);
        assert(claims_set_providers(claims, tree, NULL) == 0);
        claim_one(claims);
        claim_one(claims);
        claims_free(claims);
        assert(claims_open(&claims, get_config(), NULL) >= 0);
        claim_one(claims);
        read_pristine(&database);
        read_pristine(&wal);
        claims_free(claims);
}

static void empty_folder(void)
{
        DIR *directory = opendir(fuzz_folder());
        struct dirent *entry;

        assert(directory);
        while ((entry = readdir(directory)))
                (void)unlinkat(dirfd(directory), entry->d_name, 0);
        closedir(directory);
}

/* Adds bytes to a checksum of SQLite's log, which sums 32-bit words. The log's magic number defines
 * their byte order. */
static void sum(const unsigned char *data, size_t n, bool big_endian, uint32_t sums[static 2])
{
        for (size_t i = 0; i + 8 <= n; i += 8) {
                uint32_t words[2];

                memcpy(words, data + i, sizeof(words));
                for (size_t j = 0; j < 2; j++) {
                        words[j] = big_endian ? be32toh(words[j]) : le32toh(words[j]);
                        sums[j] += words[j] + sums[1 - j];
                }
        }
}

static void write_sums(unsigned char *place, const uint32_t sums[static 2])
{
        const uint32_t words[] = { htobe32(sums[0]), htobe32(sums[1]) };

        memcpy(place, words, sizeof(words));
}

/* Makes all checksums of the changed log valid, as SQLite computes them. */
static void seal_log(void)
{
        bool big_endian = wal.bytes[3] & 1;
        uint32_t sums[2] = { 0 };

        if (wal.n < LOG_HEADER)
                return;
        sum(wal.bytes, 24, big_endian, sums);
        write_sums(wal.bytes + 24, sums);
        for (size_t i = LOG_HEADER; i + FRAME_HEADER + PAGE <= wal.n; i += FRAME_HEADER + PAGE) {
                sum(wal.bytes + i, 8, big_endian, sums);
                sum(wal.bytes + i + FRAME_HEADER, PAGE, big_endian, sums);
                write_sums(wal.bytes + i + 16, sums);
        }
}

static void restore(File *file)
{
        memcpy(file->bytes, file->pristine, file->n_pristine);
        file->n = file->n_pristine;
}

/* Changes bytes according to the input. */
static void change(const char *text)
{
        bool sealed = false;
        File *file = &database;

        restore(&database);
        restore(&wal);
        while (*text) {
                char *end;
                size_t offset = strtoul(text, &end, 10);

                if (end == text) {
                        file = *text == 'w' ? &wal : file;
                        sealed = sealed || *text == 's';
                        text++;
                        continue;
                }
                for (text = end; *text == ' '; text = end) {
                        unsigned long value = strtoul(text, &end, 10);

                        if (end == text)
                                break;
                        file->bytes[offset++ % file->n] = (unsigned char)value;
                }
                if (*text == '!')
                        file->n = MAX(offset % file->n, 1u);
        }
        if (sealed)
                seal_log();
}

static void set_up(void)
{
        log_set_level(LOG_EMERG);
        snprintf(path, sizeof(path), "%s/claim.sqlite", fuzz_folder());
        make_claims();
        /* The computed checksums equal those of SQLite. */
        change("s");
        assert(memcmp(wal.bytes, wal.pristine, wal.n) == 0);
}

static void use(Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 }, history = { 0 };
        const HostView *view;
        uint64_t n;

        (void)claims_list(claims, CLAIMS_LIVING, NULL, &list, NULL);
        (void)claims_list(claims, CLAIMS_ALL, NULL, &history, NULL);
        (void)claims_host(claims, &view, NULL);
        (void)claims_expire(claims, UINT64_MAX / 2, &n, NULL);
        (void)claims_count(claims, &n, NULL);
        for (size_t i = 0; i < list.n_claims; i++)
                (void)claims_release(claims, list.claims[i]->id, "fuzz", NULL);
}

void fuzz_text(const char *text)
{
        Error error = ERROR_NULL;
        Claims *claims;
        int r;

        if (database.n_pristine == 0)
                set_up();
        empty_folder();
        change(text);
        write_changed(&database);
        write_changed(&wal);
        r = claims_open(&claims, get_config(), &error);
        if (r < 0) {
                /* The file belongs to a newer or another program, so it is left unchanged, with
                 * words. */
                assert((r == -EPROTONOSUPPORT || r == -EMEDIUMTYPE) && error.text[0]);
                return;
        }
        use(claims);
        claims_free(claims);
}

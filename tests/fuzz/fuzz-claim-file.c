/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A claim database with bytes of it changed: lines "OFFSET VALUE…", the offset in 4096ths of the
 * file. It is opened and used as at a start; whatever it holds, the agent gets a database. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "claims/claims.h"
#include "tests/fuzz/fuzz.h"

#define FILE_MAX (1024 * 1024)

static char folder[64], path[96];
static unsigned char pristine[FILE_MAX], bytes[FILE_MAX];
static size_t n_pristine;

static const ClaimsConfig *get_config(void)
{
        static ClaimsConfig config = { .host = "host", .node = "host", .busy_usec = 1000 };

        config.path = path;
        return &config;
}

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
        for (int i = 0; i < 3; i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                ClaimRequest request = { .consumer = uuid_make_random() };
                RequestGroup *group;

                assert(resource_request_group(&request.resources, "", &group, NULL) == 0);
                assert(resources_set(&group->resources, "VCPU", 1) == 0);
                assert(claims_claim(claims, &request, &claim, NULL) == 0);
                resource_request_done(&request.resources);
        }
        claims_free(claims);
}

static void set_up(void)
{
        int fd;

        log_set_level(LOG_EMERG);
        snprintf(folder, sizeof(folder), "%s/fuzz-claims-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/claim.sqlite", folder);
        make_claims();
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert(fd >= 0);
        n_pristine = (size_t)read(fd, pristine, FILE_MAX);
        assert(n_pristine > 0 && n_pristine < FILE_MAX);
        close(fd);
}

static void empty_folder(void)
{
        DIR *directory = opendir(folder);
        struct dirent *entry;

        assert(directory);
        while ((entry = readdir(directory)))
                (void)unlinkat(dirfd(directory), entry->d_name, 0);
        closedir(directory);
}

/* Changes bytes as the text says, and yields how many of them there are then. */
static size_t change(const char *text)
{
        size_t n = n_pristine;

        memcpy(bytes, pristine, n);
        while (*text) {
                char *end;
                size_t offset = strtoul(text, &end, 10);

                if (end == text) {
                        text++;
                        continue;
                }
                for (text = end; *text == ' '; text = end) {
                        unsigned long value = strtoul(text, &end, 10);

                        if (end == text)
                                break;
                        bytes[offset++ % n] = (unsigned char)value;
                }
                if (*text == '!')
                        n = MAX(offset % n, 1u); /* cut off */
        }
        return n;
}

static void use(Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 }, history = { 0 };
        _cleanup_(allocations_freep) Allocations *usage = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const HostView *view;
        uint64_t n;

        (void)claims_list(claims, false, &list, NULL);
        (void)claims_list(claims, true, &history, NULL);
        (void)claims_usage(claims, &usage, NULL);
        (void)claims_get_providers(claims, &tree, NULL);
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
        size_t n;
        int fd, r;

        if (n_pristine == 0)
                set_up();
        empty_folder();
        n = change(text);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
        close(fd);
        r = claims_open(&claims, get_config(), &error);
        if (r < 0) {
                /* of a newer program, or of another one: left alone, and said so */
                assert((r == -EPROTONOSUPPORT || r == -EMEDIUMTYPE) && error.text[0]);
                return;
        }
        use(claims);
        claims_free(claims);
}

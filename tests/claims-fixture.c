/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/claims-fixture.h"

#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/test.h"

#define EXPIRY_USEC (300 * USEC_PER_SEC)

Uuid make_uuid(const char *name)
{
        Uuid space;

        assert_int_equal(uuid_from_text("5f0e6d0a-8c0f-4a53-9a36-2f2e7f1f0d11", &space), 0);
        return uuid_make_child(&space, name);
}

static void add_inventory(Provider *provider, char *word)
{
        Inventory inventory = INVENTORY_DEFAULT(0);
        uint64_t *fields[] = { &inventory.total, &inventory.reserved, &inventory.min_unit,
                               &inventory.max_unit, &inventory.step_size };
        char *save = NULL, *number = strchr(word, '=');
        size_t i = 0;

        *number++ = '\0';
        for (char *n = strtok_r(number, "/", &save); n; n = strtok_r(NULL, "/", &save), i++) {
                if (i < ARRAY_SIZE(fields))
                        *fields[i] = strtoull(n, NULL, 10);
                else
                        inventory.allocation_ratio = strtod(n, NULL);
        }
        assert_int_equal(provider_set_inventory(provider, word, &inventory), 0);
}

static void add_word(Provider *provider, char *word)
{
        if (word[0] == '+')
                assert_true(string_set_add(&provider->traits, word + 1) >= 0);
        else if (word[0] == '@')
                assert_true(string_set_add(&provider->aggregates, make_uuid(word + 1).text) >= 0);
        else
                add_inventory(provider, word);
}

static void add_provider(ProviderTree *tree, char *text)
{
        char *save = NULL, *name = strtok_r(text, " \n", &save), *parent = strchr(name, '<');
        Provider *provider;
        Uuid uuid, parent_uuid = UUID_NULL;
        Error error = ERROR_NULL;

        if (parent) {
                *parent++ = '\0';
                parent_uuid = make_uuid(parent);
        }
        uuid = make_uuid(name);
        if (provider_tree_add(tree, &uuid, name, &parent_uuid, &provider, &error) < 0)
                fail_msg("%s", error.text);
        for (char *word; (word = strtok_r(NULL, " \n", &save));)
                add_word(provider, word);
}

ProviderTree *make_tree(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        ProviderTree *tree;
        char *save = NULL;

        assert_int_equal(provider_tree_new(&tree), 0);
        for (char *p = strtok_r(copy, ";", &save); p; p = strtok_r(NULL, ";", &save))
                if (p[strspn(p, " \n")] != '\0')
                        add_provider(tree, p);
        return tree;
}

HostView *make_view(const char *text)
{
        HostView *view;

        assert_int_equal(host_view_new(&view, make_tree(text)), 0);
        for (size_t i = 0; i < view->n_providers; i++)
                view->providers[i].id = (int64_t)i + 1;
        return view;
}

void use_some(HostView *view, const char *provider, const char *resource_class, uint64_t amount)
{
        Uuid uuid = make_uuid(provider);
        size_t index;

        assert_true(host_view_find(view, &uuid, &index));
        assert_int_equal(resources_add(&view->providers[index].used, resource_class, amount), 0);
}

static void add_traits(RequestGroup *group, char *traits)
{
        char *save = NULL;

        for (char *t = strtok_r(traits, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
                StringSet *set = t[0] == '!' ? &group->forbidden : &group->required;

                assert_true(string_set_add(set, t[0] == '!' ? t + 1 : t) >= 0);
        }
}

static void add_group(ResourceRequest *request, char *word)
{
        char *suffix = (char *)"", *traits;
        RequestGroup *group;

        if (word[0] == '_') {
                suffix = word;
                word = strchr(word, ':');
                assert_non_null(word);
                *word++ = '\0';
        }
        traits = strchr(word, ':');
        if (traits)
                *traits++ = '\0';
        assert_int_equal(resource_request_group(request, suffix, &group, NULL), 0);
        assert_int_equal(resources_parse(word, &group->resources, NULL), 0);
        if (traits)
                add_traits(group, traits);
}

void make_request(ResourceRequest *ret, const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        char *save = NULL;

        *ret = RESOURCE_REQUEST_INIT;
        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
                if (strcmp(word, "isolate") == 0)
                        ret->isolate = true;
                else
                        add_group(ret, word);
}

char *format_fit(const HostView *view, const ResourceRequest *request, const Fit *fit)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                const char *suffix = request->groups[piece->group].suffix;

                fprintf(file, "%s%s%s%s=%" PRIu64 " on %s", i > 0 ? ", " : "", suffix,
                        suffix[0] ? " " : "", piece->resource_class, piece->amount,
                        view->tree->providers[piece->provider]->name);
        }
        fclose(file);
        return text;
}

int fixture_setup(void **state)
{
        char folder[] = "/tmp/claims-test-XXXXXX";
        Fixture *fixture = calloc(1, sizeof(Fixture));

        if (!fixture || !mkdtemp(folder))
                return -1;
        fixture->folder = strdup(folder);
        if (asprintf(&fixture->path, "%s/claim.sqlite", folder) < 0)
                return -1;
        *state = fixture;
        return 0;
}

int fixture_teardown(void **state)
{
        Fixture *fixture = *state;
        struct dirent *entry;
        DIR *dir;

        fixture_close(fixture);
        dir = opendir(fixture->folder);
        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        unlinkat(dirfd(dir), entry->d_name, 0);
        if (dir)
                closedir(dir);
        rmdir(fixture->folder);
        free(fixture->folder);
        free(fixture->path);
        free(fixture);
        return 0;
}

int fixture_open(Fixture *fixture)
{
        const ClaimsConfig config = {
                .path = fixture->path,
                .host = "compute1",
                .node = "host",
                .expiry_usec = EXPIRY_USEC,
                .busy_usec = 20 * USEC_PER_SEC,
        };

        fixture_close(fixture);
        fixture->error = ERROR_NULL;
        return claims_open(&fixture->claims, &config, &fixture->error);
}

void fixture_close(Fixture *fixture)
{
        fixture->claims = claims_free(fixture->claims);
}

void fixture_set_host(Fixture *fixture, const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(text);
        int r;

        fixture->error = ERROR_NULL;
        r = claims_set_providers(fixture->claims, tree, &fixture->error);
        if (r != 0)
                fail_msg("claims_set_providers(): %d %s", r, fixture->error.text);
}

static int claim(Fixture *fixture, const char *consumer, bool resize_target, const char *text,
                 Claim **ret)
{
        ClaimRequest request = { .consumer = make_uuid(consumer), .resize_target = resize_target };
        Claim *made = NULL;
        int r;

        make_request(&request.resources, text);
        fixture->error = ERROR_NULL;
        r = claims_claim(fixture->claims, &request, &made, &fixture->error);
        resource_request_done(&request.resources);
        if (r == CLAIM_DONE)
                assert_non_null(made);
        else
                assert_null(made);
        if (ret)
                *ret = made;
        else
                claim_free(made);
        return r;
}

int fixture_claim(Fixture *fixture, const char *consumer, const char *text, Claim **ret)
{
        return claim(fixture, consumer, false, text, ret);
}

int fixture_claim_target(Fixture *fixture, const char *consumer, const char *text, Claim **ret)
{
        return claim(fixture, consumer, true, text, ret);
}

char *format_claim(const Claim *claim)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        bool first = true;

        for (size_t i = 0; i < claim->n_allocations; i++)
                for (size_t j = 0; j < claim->allocations[i].resources.n_items; j++) {
                        const ResourceAmount *item = &claim->allocations[i].resources.items[j];

                        fprintf(file, "%s%s=%" PRIu64 " on %s", first ? "" : ", ",
                                item->resource_class, item->amount, claim->provider_names[i]);
                        first = false;
                }
        fclose(file);
        return text;
}

uint64_t fixture_used(Fixture *fixture, const char *provider, const char *resource_class)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        Uuid uuid = make_uuid(provider);
        uint64_t used = 0;

        assert_int_equal(claims_usage(fixture->claims, &allocations, NULL), 0);
        for (size_t i = 0; i < allocations->n_consumers; i++) {
                const Resources *resources = consumer_find(allocations->consumers[i], &uuid);

                used += resources ? resources_get(resources, resource_class) : 0;
        }
        return used;
}

size_t fixture_count_files(const Fixture *fixture, const char *prefix, char **ret_path)
{
        struct dirent *entry;
        DIR *dir = opendir(fixture->folder);
        size_t n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
                        continue;
                if (n++ == 0 && ret_path)
                        assert_true(asprintf(ret_path, "%s/%s", fixture->folder, entry->d_name) >
                                    0);
        }
        closedir(dir);
        return n;
}

char *run_sql(const char *path, const char *sql)
{
        sqlite3_stmt *statement = NULL;
        const char *rest = sql;
        sqlite3 *db = NULL;
        char *value = NULL;

        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
            SQLITE_OK)
                fail_msg("%s: %s", path, sqlite3_errmsg(db));
        sqlite3_busy_timeout(db, 10000);
        while (rest[strspn(rest, " \n;")]) {
                int rc;

                if (sqlite3_prepare_v2(db, rest, -1, &statement, &rest) != SQLITE_OK)
                        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
                while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
                        if (!value) {
                                const void *text = sqlite3_column_text(statement, 0);

                                value = strdup(text ? text : "NULL");
                        }
                if (rc != SQLITE_DONE)
                        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
                sqlite3_finalize(statement);
        }
        sqlite3_close(db);
        return value ? value : strdup("");
}

void assert_sql(const char *path, const char *sql, const char *expected)
{
        _cleanup_free_ char *value = run_sql(path, sql);

        if (strcmp(value, expected) != 0)
                fail_msg("%s\n  yields    %s\n  expected  %s", sql, value, expected);
}

void assert_store_sane(const char *path)
{
        assert_sql(path,
                   "SELECT (SELECT group_concat(integrity_check) FROM pragma_integrity_check)"
                   " || ' ' || (SELECT count(*) FROM pragma_foreign_key_check)"
                   " || ' ' || (SELECT count(*) FROM (SELECT * FROM usages EXCEPT"
                   "  SELECT resource_provider_id, resource_class, sum(used) FROM allocations"
                   "  GROUP BY 1, 2))"
                   " || ' ' || (SELECT count(*) FROM (SELECT resource_provider_id, resource_class,"
                   "  sum(used) FROM allocations GROUP BY 1, 2 EXCEPT SELECT * FROM usages))"
                   " || ' ' || (SELECT count(*) FROM allocations a LEFT JOIN claims c"
                   "  ON c.id = a.claim_id WHERE c.id IS NULL OR c.instance_uuid <> a.consumer_id)"
                   " || ' ' || (SELECT count(*) FROM claims c WHERE placed = 1 AND vcpus <>"
                   "  (SELECT ifnull(sum(used), 0) FROM allocations WHERE claim_id = c.id"
                   "   AND resource_class IN ('VCPU', 'PCPU')))"
                   " || ' ' || (SELECT count(*) FROM claims"
                   "  WHERE id IN (SELECT id FROM ended_claims))"
                   " || ' ' || (SELECT claims - (SELECT count(*) FROM claims) FROM claim_counts)",
                   "ok 0 0 0 0 0 0 0");
}

static int sync_nothing(sqlite3_file *file, int flags)
{
        return SQLITE_OK;
}

static sqlite3_vfs *real_vfs;

/* Each kind of file of SQLite's own VFS (main with locks, journal, WAL) has its method table. */
static const sqlite3_io_methods *without_sync(const sqlite3_io_methods *methods)
{
        static struct {
                const sqlite3_io_methods *real;
                sqlite3_io_methods copy;
        } known[8];

        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                if (known[i].real == methods)
                        return &known[i].copy;
                if (known[i].real)
                        continue;
                known[i].real = methods;
                known[i].copy = *methods;
                known[i].copy.xSync = sync_nothing;
                return &known[i].copy;
        }
        abort();
}

static int open_without_sync(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                             int *ret_flags)
{
        int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);

        if (rc == SQLITE_OK && file->pMethods)
                file->pMethods = without_sync(file->pMethods);
        return rc;
}

void use_vfs_without_sync(void)
{
        static sqlite3_vfs vfs;

        if (real_vfs)
                return;
        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs;
        vfs.zName = "without-sync";
        vfs.pNext = NULL;
        vfs.xOpen = open_without_sync;
        assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

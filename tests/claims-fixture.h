/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of claims/ share: hosts and requests written as one line of text, a folder that is
 * removed, and a store on a file in it. Every failure in here fails the test. */

#include "claims/claims.h"

/* "host VCPU=8 MEMORY_MB=1024/64 +HW_X; gpu1<host VGPU=8/0/1/4/1/1.5 @AGGREGATE"
 * NAME[<PARENT] [CLASS=total[/reserved[/min[/max[/step[/ratio]]]]]]… [+TRAIT]… [@AGGREGATE]…,
 * providers separated by ";". The uuid follows from the name; an aggregate is a word. */
ProviderTree *make_tree(const char *text);
Uuid make_uuid(const char *name);

/* The view of such a host with nothing used; use_some() adds usage. */
HostView *make_view(const char *text);
void use_some(HostView *view, const char *provider, const char *resource_class, uint64_t amount);

/* "VCPU=2,MEMORY_MB=64:TRAIT,!TRAIT _A:VGPU=1:TRAIT isolate": groups separated by blanks; a group
 * that begins with "_" has that suffix. */
void make_request(ResourceRequest *ret, const char *text);

/* "VCPU=2 on host, _A VGPU=1 on gpu1": the pieces of a fit in its order. The caller frees. */
char *format_fit(const HostView *view, const ResourceRequest *request, const Fit *fit);

typedef struct Fixture {
        char *folder;
        char *path; /* of the database in it */
        Claims *claims;
        Error error; /* of the last call of the helpers below */
} Fixture;

int fixture_setup(void **state);
int fixture_teardown(void **state); /* removes the folder with all that is in it */

/* claims_open() with expiry 300 s. Yields its result. */
int fixture_open(Fixture *fixture);
void fixture_close(Fixture *fixture);

/* claims_set_providers(); must be 0. */
void fixture_set_host(Fixture *fixture, const char *tree);

/* claims_claim() for the consumer of that name. ret may be NULL; else the caller frees. */
int fixture_claim(Fixture *fixture, const char *consumer, const char *request, Claim **ret);
int fixture_claim_target(Fixture *fixture, const char *consumer, const char *request, Claim **ret);

/* "VCPU=2 on host, VGPU=1 on gpu1" of a claim. The caller frees. */
char *format_claim(const Claim *claim);

/* What living claims use of a class on a provider, by claims_usage(). */
uint64_t fixture_used(Fixture *fixture, const char *provider, const char *resource_class);

/* Entries of the folder whose name begins with prefix; the first one's path in *ret_path (may be
 * NULL, the caller frees). */
size_t fixture_count_files(const Fixture *fixture, const char *prefix, char **ret_path);

/* Runs SQL on a database file with a connection of its own; yields the first column of the first
 * row ("" when there is none) for the caller to free. */
char *run_sql(const char *path, const char *sql);
void assert_sql(const char *path, const char *sql, const char *expected);

/* Sums of the tables that must agree: usages and allocations, claims and allocations, capacity.
 * And PRAGMA integrity_check. */
void assert_store_sane(const char *path);

/* Makes a VFS the default that never syncs: for tests of what a killed process leaves behind, which
 * do not need the disk. Once a process. */
void use_vfs_without_sync(void);

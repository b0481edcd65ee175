/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Contains the text of the newest schema, and creates it (claim-file.c compares a file of the
 * newest version with it). Each part of the text is one constant below, and "newest" lists them in
 * the order of their creation. Triggers keep usages, cell_usages and claim_counts, so no statement
 * of statements.h writes these. They also keep the column pci, which the program only inserts. The
 * database enforces rules that must hold for every writer: one claim for each consumer and role,
 * unique devices and host CPUs, positive amounts, and removals for ended claims. A change of any
 * part needs a new version number (claims/store/schema.h).
 *
 * Tests: tests/unit/claims/store/test-schema.c */

#include "claims/store/schema.h"

/* The table and the row with the version of the file. The specification of version 1 leaves the
 * name of the table open. */
static const char newest_versions[] =
        "PRAGMA application_id = 1129074003;" /* value of SCHEMA_APPLICATION_ID */
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"
        "INSERT INTO versions VALUES ('claims', 10);"; /* value of SCHEMA_NEWEST */

/* The tables of living claims, and of the removals and moves that Placement does not have yet.
 *
 * The table claims has only living claims, as in version 1. The columns vcpus, memory_mb and
 * disk_gb are the sums of the allocations when these were claimed or completed (PCPU counts as
 * vcpus). A claim of version 1 has its own amounts in them. The column pci has the addresses of the
 * claim's whole devices, "0000:41:00.1, 0000:41:00.2". Triggers keep it; the specification leaves
 * its form open. A claim of version 1 has its own text in it until it gets devices. The column
 * guest is the consumer of the guest itself. It is empty unless a migration gave the claim another
 * consumer. See ClaimWriteState for write_state, and ClaimReported for reported_*.
 *
 * The table claim_counts has the number of living claims. Without it, each report of the agent's
 * status (n_claims) would count up to 10,000 rows. AUTOINCREMENT: an id is never used again.
 *
 * A claim that ends while Placement has or can have allocations that the agent wrote for it leaves
 * a removal. A trigger makes it, so every way to end a claim does. claims_withdraw() resets the
 * write state first, so that its claim leaves none. The column unsure says that it is unknown
 * whether the allocations were written. The table moves has claims that are about to get another
 * consumer.
 *
 * No table is WITHOUT ROWID. The integrity check of SQLite 3.40 reads columns after a primary key
 * that is not first as NULL, and such a file would be set aside. */
static const char newest_claims[] =
        "CREATE TABLE claims ("
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " host TEXT NOT NULL,"
        " node TEXT NOT NULL,"
        " instance_uuid TEXT NOT NULL,"
        " vcpus INTEGER NOT NULL,"
        " memory_mb INTEGER NOT NULL,"
        " disk_gb INTEGER NOT NULL,"
        " pci TEXT NOT NULL,"
        " resize_target INTEGER NOT NULL CHECK (resize_target IN (0, 1)),"
        " created_at TEXT NOT NULL,"
        " created_usec INTEGER NOT NULL,"
        " state TEXT NOT NULL CHECK (state IN ('claimed', 'confirmed')),"
        " expires_usec INTEGER NOT NULL DEFAULT 0,"
        " project_id TEXT NOT NULL DEFAULT '',"
        " user_id TEXT NOT NULL DEFAULT '',"
        " consumer_type TEXT NOT NULL DEFAULT '',"
        " request TEXT NOT NULL,"
        " boot_id TEXT NOT NULL DEFAULT '',"
        " placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)),"
        " write_state TEXT NOT NULL DEFAULT ''"
        "  CHECK (write_state IN ('', 'pending', 'written', 'owed', 'sent')),"
        " reported_generation INTEGER NOT NULL DEFAULT 0,"
        " reported_elsewhere TEXT NOT NULL DEFAULT '',"
        " reported_until INTEGER NOT NULL DEFAULT 0,"
        " guest TEXT NOT NULL DEFAULT '',"
        " life TEXT NOT NULL DEFAULT '',"
        " UNIQUE (instance_uuid, resize_target));"
        "CREATE INDEX claims_expires ON claims (expires_usec)"
        " WHERE state = 'claimed' AND expires_usec > 0;"
        "CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;"
        "CREATE INDEX claims_write_state ON claims (write_state)"
        " WHERE write_state IN ('pending', 'owed', 'sent');"
        "CREATE INDEX claims_unheld ON claims (reported_generation)"
        " WHERE write_state = '' AND reported_generation < 0;"
        "CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0));"
        "INSERT INTO claim_counts VALUES (0);"
        "CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN"
        " UPDATE claim_counts SET claims = claims + 1;"
        "END;"
        "CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN"
        " UPDATE claim_counts SET claims = claims - 1;"
        "END;"
        "CREATE TABLE removals ("
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " claim_id INTEGER NOT NULL,"
        " consumer TEXT NOT NULL,"
        " reported_generation INTEGER NOT NULL DEFAULT 0,"
        " reported_elsewhere TEXT NOT NULL DEFAULT '',"
        " reported_until INTEGER NOT NULL DEFAULT 0,"
        " unsure INTEGER NOT NULL DEFAULT 0);"
        "CREATE TRIGGER claims_leave_removal AFTER DELETE ON claims"
        " WHEN OLD.write_state IN ('pending', 'written', 'sent') BEGIN"
        " INSERT INTO removals (claim_id, consumer, reported_generation, reported_elsewhere, reported_until,"
        "  unsure)"
        "  VALUES (OLD.id, OLD.instance_uuid, OLD.reported_generation, OLD.reported_elsewhere,"
        "  OLD.reported_until, OLD.write_state <> 'written');"
        "END;"
        "CREATE TABLE moves ("
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " claim_id INTEGER NOT NULL DEFAULT 0,"
        " from_consumer TEXT NOT NULL UNIQUE,"
        " to_consumer TEXT NOT NULL UNIQUE,"
        " to_type TEXT NOT NULL);";

/* The table of ended claims. They have a table of their own, so no reader mistakes them for living
 * ones, and the cost of a claim does not grow with the history. The parts of an ended claim are
 * lists of lists in JSON, since they are only read together with the claim. */
static const char newest_ended[] = "CREATE TABLE ended_claims ("
                                   " number INTEGER PRIMARY KEY AUTOINCREMENT,"
                                   " id INTEGER NOT NULL UNIQUE,"
                                   " host TEXT NOT NULL,"
                                   " node TEXT NOT NULL,"
                                   " instance_uuid TEXT NOT NULL,"
                                   " resize_target INTEGER NOT NULL,"
                                   " created_usec INTEGER NOT NULL,"
                                   " expires_usec INTEGER NOT NULL,"
                                   " project_id TEXT NOT NULL,"
                                   " user_id TEXT NOT NULL,"
                                   " request TEXT NOT NULL,"
                                   " boot_id TEXT NOT NULL,"
                                   " ended_usec INTEGER NOT NULL,"
                                   " end_reason TEXT NOT NULL,"
                                   " consumer_type TEXT NOT NULL DEFAULT '',"
                                   " allocations TEXT NOT NULL DEFAULT '[]',"
                                   " devices TEXT NOT NULL DEFAULT '[]',"
                                   " cells TEXT NOT NULL DEFAULT '[]',"
                                   " cpus TEXT NOT NULL DEFAULT '[]');";

/* The tables of providers. The column resource_class is the name of a class. The specification's
 * resource_class_id refers to a table of names that a single host does not need. The column
 * withheld is 1 if no new claim fits there: the provider is gone from the host, or another writer
 * renamed it. The column can_host is 0 for sharing providers. The epoch changes whenever the tree
 * changes. */
static const char newest_providers[] =
        "CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);"
        "INSERT INTO provider_epoch VALUES (0);"
        "CREATE TABLE resource_providers ("
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " uuid TEXT NOT NULL UNIQUE,"
        " name TEXT NOT NULL,"
        " generation INTEGER NOT NULL DEFAULT 0,"
        " can_host INTEGER NOT NULL CHECK (can_host IN (0, 1)),"
        " parent INTEGER REFERENCES resource_providers (id),"
        " withheld INTEGER NOT NULL CHECK (withheld IN (0, 1)),"
        " position INTEGER NOT NULL);"
        "CREATE INDEX resource_providers_parent ON resource_providers (parent);"
        "CREATE TABLE inventories ("
        " id INTEGER PRIMARY KEY,"
        " resource_provider_id INTEGER NOT NULL"
        "  REFERENCES resource_providers (id) ON DELETE CASCADE,"
        " resource_class TEXT NOT NULL,"
        " total INTEGER NOT NULL,"
        " reserved INTEGER NOT NULL,"
        " min_unit INTEGER NOT NULL,"
        " max_unit INTEGER NOT NULL,"
        " step_size INTEGER NOT NULL,"
        " allocation_ratio REAL NOT NULL,"
        " UNIQUE (resource_provider_id, resource_class));"
        "CREATE TABLE provider_traits ("
        " resource_provider_id INTEGER NOT NULL"
        "  REFERENCES resource_providers (id) ON DELETE CASCADE,"
        " trait TEXT NOT NULL,"
        " PRIMARY KEY (resource_provider_id, trait));"
        "CREATE TABLE provider_aggregates ("
        " resource_provider_id INTEGER NOT NULL"
        "  REFERENCES resource_providers (id) ON DELETE CASCADE,"
        " aggregate TEXT NOT NULL,"
        " PRIMARY KEY (resource_provider_id, aggregate));";

/* The table usages has the sums of allocations. Triggers keep it, so that every write is counted,
 * and a claim need not add up 10,000 rows. The consumer of an allocation can change, and nothing
 * else. */
static const char newest_allocations[] =
        "CREATE TABLE allocations ("
        " id INTEGER PRIMARY KEY,"
        " resource_provider_id INTEGER NOT NULL REFERENCES resource_providers (id),"
        " consumer_id TEXT NOT NULL,"
        " resource_class TEXT NOT NULL,"
        " used INTEGER NOT NULL CHECK (used > 0),"
        " claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,"
        " request_group TEXT NOT NULL DEFAULT '',"
        " UNIQUE (claim_id, resource_provider_id, resource_class, request_group));"
        "CREATE INDEX allocations_provider"
        " ON allocations (resource_provider_id, resource_class, used);"
        "CREATE TABLE usages ("
        " resource_provider_id INTEGER NOT NULL REFERENCES resource_providers (id),"
        " resource_class TEXT NOT NULL,"
        " used INTEGER NOT NULL CHECK (used >= 0),"
        " PRIMARY KEY (resource_provider_id, resource_class));"
        "CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN"
        " INSERT INTO usages VALUES (NEW.resource_provider_id, NEW.resource_class, NEW.used)"
        "  ON CONFLICT (resource_provider_id, resource_class)"
        "  DO UPDATE SET used = used + excluded.used;"
        "END;"
        "CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN"
        " UPDATE usages SET used = used - OLD.used"
        "  WHERE resource_provider_id = OLD.resource_provider_id"
        "  AND resource_class = OLD.resource_class;"
        " DELETE FROM usages WHERE used = 0"
        "  AND resource_provider_id = OLD.resource_provider_id"
        "  AND resource_class = OLD.resource_class;"
        "END;"
        "CREATE TRIGGER allocations_update BEFORE UPDATE OF"
        " id, resource_provider_id, resource_class, used, claim_id, request_group"
        " ON allocations BEGIN"
        " SELECT RAISE(ABORT, 'allocations are inserted and deleted, never updated');"
        "END;";

/* The tables of devices and layouts of claims.
 *
 * The table claim_devices has the devices that one claim has alone. With mdev_uuid '' it is a whole
 * PCI function, for passthrough or as a vGPU. Two living claims never have the same mdev or
 * function. provider_uuid has no reference, because the name of a device outlives its provider. The
 * column identity tells the device apart from another one at its address (base/device-identity.h).
 * '' means that it is not recorded.
 *
 * The tables claim_cells and claim_cpus have the places of a guest's memory and CPUs. Sets of CPUs
 * are text, "0-3,8". The table claim_pins has host CPUs that one claim has alone. The table
 * cell_usages has sums over claim_cells, which triggers keep like usages. */
static const char newest_parts[] =
        "CREATE TABLE claim_devices ("
        " id INTEGER PRIMARY KEY,"
        " claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,"
        " provider_uuid TEXT NOT NULL,"
        " request_group TEXT NOT NULL,"
        " device TEXT NOT NULL,"
        " address TEXT NOT NULL,"
        " mdev_type TEXT NOT NULL,"
        " mdev_uuid TEXT NOT NULL,"
        " identity TEXT NOT NULL DEFAULT '');"
        "CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid)"
        " WHERE mdev_uuid <> '';"
        "CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device)"
        " WHERE mdev_uuid = '';"
        "CREATE INDEX claim_devices_claim ON claim_devices (claim_id);"
        "CREATE INDEX claim_devices_device ON claim_devices (device);"
        "CREATE INDEX claim_devices_address ON claim_devices (address);"
        "CREATE TRIGGER claim_devices_insert AFTER INSERT ON claim_devices"
        " WHEN NEW.mdev_uuid = '' BEGIN"
        " UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM"
        "  (SELECT address FROM claim_devices WHERE claim_id = NEW.claim_id AND mdev_uuid = ''"
        "  ORDER BY address)) WHERE id = NEW.claim_id;"
        "END;"
        "CREATE TRIGGER claim_devices_delete AFTER DELETE ON claim_devices"
        " WHEN OLD.mdev_uuid = '' BEGIN"
        " UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM"
        "  (SELECT address FROM claim_devices WHERE claim_id = OLD.claim_id AND mdev_uuid = ''"
        "  ORDER BY address)) WHERE id = OLD.claim_id;"
        "END;"
        "CREATE TABLE claim_cells ("
        " id INTEGER PRIMARY KEY,"
        " claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,"
        " cell INTEGER NOT NULL,"
        " host_cell INTEGER NOT NULL,"
        " memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0),"
        " page_kib INTEGER NOT NULL CHECK (page_kib >= 0),"
        " vcpus TEXT NOT NULL,"
        " n_shared INTEGER NOT NULL CHECK (n_shared >= 0),"
        " UNIQUE (claim_id, cell));"
        "CREATE INDEX claim_cells_host ON claim_cells (host_cell);"
        "CREATE TABLE claim_cpus ("
        " id INTEGER PRIMARY KEY,"
        " claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE,"
        " vcpu INTEGER NOT NULL,"
        " dedicated INTEGER NOT NULL CHECK (dedicated IN (0, 1)),"
        " cpus TEXT NOT NULL,"
        " UNIQUE (claim_id, vcpu));"
        "CREATE TABLE claim_pins ("
        " cpu INTEGER PRIMARY KEY,"
        " claim_id INTEGER NOT NULL REFERENCES claims (id) ON DELETE CASCADE);"
        "CREATE INDEX claim_pins_claim ON claim_pins (claim_id);"
        "CREATE TABLE cell_usages ("
        " host_cell INTEGER NOT NULL,"
        " page_kib INTEGER NOT NULL,"
        " memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0),"
        " n_shared INTEGER NOT NULL CHECK (n_shared >= 0),"
        " n_cells INTEGER NOT NULL CHECK (n_cells >= 0),"
        " PRIMARY KEY (host_cell, page_kib));"
        "CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN"
        " INSERT INTO cell_usages VALUES"
        "  (NEW.host_cell, NEW.page_kib, NEW.memory_mb, NEW.n_shared, 1)"
        "  ON CONFLICT (host_cell, page_kib)"
        "  DO UPDATE SET memory_mb = memory_mb + excluded.memory_mb,"
        "   n_shared = n_shared + excluded.n_shared, n_cells = n_cells + 1;"
        "END;"
        "CREATE TRIGGER claim_cells_delete AFTER DELETE ON claim_cells BEGIN"
        " UPDATE cell_usages SET memory_mb = memory_mb - OLD.memory_mb,"
        "  n_shared = n_shared - OLD.n_shared, n_cells = n_cells - 1"
        "  WHERE host_cell = OLD.host_cell AND page_kib = OLD.page_kib;"
        " DELETE FROM cell_usages WHERE n_cells = 0"
        "  AND host_cell = OLD.host_cell AND page_kib = OLD.page_kib;"
        "END;"
        "CREATE TRIGGER claim_cells_update BEFORE UPDATE ON claim_cells BEGIN"
        " SELECT RAISE(ABORT, 'cells are inserted and deleted, never updated');"
        "END;";

/* Devices that a guest had, or can have had, and that were not proved to be clean since
 * (claims/claim/unclean.h). The insert of a claim's device that must be cleaned adds or replaces
 * its row in the same transaction. The row can outlive the claim, so claim_id (0: no claim) and
 * consumer (UncleanDevice) have no reference. fresh: the device had no row before this one.
 * AUTOINCREMENT: a result of an earlier cleaning never counts for a later row. */
static const char newest_unclean[] =
        "CREATE TABLE unclean_devices ("
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " address TEXT NOT NULL UNIQUE,"
        " device TEXT NOT NULL,"
        " identity TEXT NOT NULL,"
        " consumer TEXT NOT NULL,"
        " claim_id INTEGER NOT NULL,"
        " since_usec INTEGER NOT NULL,"
        " state TEXT NOT NULL CHECK (state IN ('held', 'dirty', 'failed')),"
        " reason TEXT NOT NULL,"
        " fresh INTEGER NOT NULL CHECK (fresh IN (0, 1)));";

/* Events of claims and of the host, as in claims/claim/event.h. allocations and devices are JSON in
 * the form in which they are read. */
static const char newest_events[] = "CREATE TABLE events ("
                                    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
                                    " usec INTEGER NOT NULL,"
                                    " kind TEXT NOT NULL,"
                                    " uid INTEGER NOT NULL,"
                                    " author TEXT NOT NULL,"
                                    " claim_id INTEGER NOT NULL,"
                                    " consumer TEXT NOT NULL,"
                                    " guest TEXT NOT NULL,"
                                    " allocations TEXT NOT NULL,"
                                    " devices TEXT NOT NULL,"
                                    " reason TEXT NOT NULL);";

static const char *const newest[] = { newest_versions,  newest_claims,      newest_ended,
                                      newest_providers, newest_allocations, newest_parts,
                                      newest_unclean,   newest_events };

int schema_create(Sqlite *sqlite, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(newest); i++)
                r = sqlite_exec(sqlite, newest[i], reterr);
        return r;
}

int schema_unknown(const Sqlite *sqlite, const char *what, Error *reterr)
{
        return error_setf(
                reterr, EPROTONOSUPPORT,
                "The claim database %s has an unknown schema (%.100s). Install the version that wrote it, or move the file away to start without claims",
                sqlite->path, what);
}

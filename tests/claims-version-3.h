/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A database of schema version 3, as the program of that version made it, without
 * claims. Never to be changed. */

#define VERSION_3                                                                  \
        "PRAGMA application_id = 1129074003;"                                      \
        "CREATE TABLE allocations ( id INTEGER PRIMARY KEY, resource_provider_id " \
        "INTEGER NOT NULL REFERENCES resource_providers (id), consumer_id TEXT "   \
        "NOT NULL, resource_class TEXT NOT NULL, used INTEGER NOT NULL CHECK "     \
        "(used > 0), claim_id INTEGER NOT NULL REFERENCES claims (id), "           \
        "request_group TEXT NOT NULL DEFAULT '', UNIQUE (claim_id, "               \
        "resource_provider_id, resource_class, request_group));"                   \
        "CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0));" \
        "CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER "   \
        "NOT NULL REFERENCES claims (id), provider_uuid TEXT NOT NULL, "           \
        "request_group TEXT NOT NULL, device TEXT NOT NULL, address TEXT NOT "     \
        "NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);"                 \
        "CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT "   \
        "NOT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER" \
        " NOT NULL, memory_mb INTEGER NOT NULL, disk_gb INTEGER NOT NULL, pci "    \
        "TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN "   \
        "(0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state " \
        "TEXT NOT NULL CHECK (state IN ('claimed', 'confirmed')), expires_usec "   \
        "INTEGER NOT NULL DEFAULT 0, project_id TEXT NOT NULL DEFAULT '', user_id" \
        " TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT NULL " \
        "DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), " \
        "UNIQUE (instance_uuid, resize_target));"                                  \
        "CREATE TABLE ended_allocations ( claim_id INTEGER NOT NULL REFERENCES "   \
        "ended_claims (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, "       \
        "provider_name TEXT NOT NULL, resource_class TEXT NOT NULL, used INTEGER " \
        "NOT NULL, request_group TEXT NOT NULL, PRIMARY KEY (claim_id, "           \
        "provider_uuid, resource_class, request_group));"                          \
        "CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id" \
        " INTEGER NOT NULL UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, "       \
        "instance_uuid TEXT NOT NULL, resize_target INTEGER NOT NULL, "            \
        "created_usec INTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id" \
        " TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id "   \
        "TEXT NOT NULL, ended_usec INTEGER NOT NULL, end_reason TEXT NOT NULL);"   \
        "CREATE TABLE ended_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER "   \
        "NOT NULL REFERENCES ended_claims (id) ON DELETE CASCADE, provider_uuid "  \
        "TEXT NOT NULL, request_group TEXT NOT NULL, device TEXT NOT NULL, "       \
        "address TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT "      \
        "NULL);"                                                                   \
        "CREATE TABLE inventories ( id INTEGER PRIMARY KEY, resource_provider_id " \
        "INTEGER NOT NULL  REFERENCES resource_providers (id) ON DELETE CASCADE, " \
        "resource_class TEXT NOT NULL, total INTEGER NOT NULL, reserved INTEGER "  \
        "NOT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT NULL, "         \
        "step_size INTEGER NOT NULL, allocation_ratio REAL NOT NULL, UNIQUE "      \
        "(resource_provider_id, resource_class));"                                 \
        "CREATE TABLE provider_aggregates ( resource_provider_id INTEGER NOT NULL" \
        "  REFERENCES resource_providers (id) ON DELETE CASCADE, aggregate TEXT "  \
        "NOT NULL, PRIMARY KEY (resource_provider_id, aggregate));"                \
        "CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);"                    \
        "CREATE TABLE provider_traits ( resource_provider_id INTEGER NOT NULL  "   \
        "REFERENCES resource_providers (id) ON DELETE CASCADE, trait TEXT NOT "    \
        "NULL, PRIMARY KEY (resource_provider_id, trait));"                        \
        "CREATE TABLE resource_providers ( id INTEGER PRIMARY KEY AUTOINCREMENT, " \
        "uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, generation INTEGER NOT "   \
        "NULL DEFAULT 0, can_host INTEGER NOT NULL CHECK (can_host IN (0, 1)), "   \
        "parent INTEGER REFERENCES resource_providers (id), withheld INTEGER NOT " \
        "NULL CHECK (withheld IN (0, 1)), position INTEGER NOT NULL);"             \
        "CREATE TABLE usages ( resource_provider_id INTEGER NOT NULL REFERENCES "  \
        "resource_providers (id), resource_class TEXT NOT NULL, used INTEGER NOT " \
        "NULL CHECK (used >= 0), PRIMARY KEY (resource_provider_id, "              \
        "resource_class));"                                                        \
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"                \
        "CREATE INDEX allocations_provider ON allocations (resource_provider_id, " \
        "resource_class, used);"                                                   \
        "CREATE INDEX claim_devices_address ON claim_devices (address);"           \
        "CREATE INDEX claim_devices_claim ON claim_devices (claim_id);"            \
        "CREATE INDEX claim_devices_device ON claim_devices (device);"             \
        "CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) "     \
        "WHERE mdev_uuid <> '';"                                                   \
        "CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE " \
        "mdev_uuid = '';"                                                          \
        "CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = "      \
        "'claimed' AND expires_usec > 0;"                                          \
        "CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;"            \
        "CREATE INDEX ended_devices_claim ON ended_devices (claim_id);"            \
        "CREATE INDEX resource_providers_parent ON resource_providers (parent);"   \
        "CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN "     \
        "UPDATE usages SET used = used - OLD.used  WHERE resource_provider_id = "  \
        "OLD.resource_provider_id  AND resource_class = OLD.resource_class; "      \
        "DELETE FROM usages WHERE used = 0  AND resource_provider_id = "           \
        "OLD.resource_provider_id  AND resource_class = OLD.resource_class;END;"   \
        "CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN "     \
        "INSERT INTO usages VALUES (NEW.resource_provider_id, NEW.resource_class," \
        " NEW.used)  ON CONFLICT DO UPDATE SET used = used + excluded.used;END;"   \
        "CREATE TRIGGER allocations_update BEFORE UPDATE ON allocations BEGIN "    \
        "SELECT RAISE(ABORT, 'allocations are inserted and deleted, never "        \
        "updated');END;"                                                           \
        "CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE "        \
        "claim_counts SET claims = claims - 1;END;"                                \
        "CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE "        \
        "claim_counts SET claims = claims + 1;END;"                                \
        "INSERT INTO versions VALUES ('claims', 3);"                               \
        "INSERT INTO provider_epoch VALUES (0);"                                   \
        "INSERT INTO claim_counts VALUES (0);"

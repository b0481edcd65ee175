/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A database of schema version 7, as the program of that version made it, without
 * claims. Never to be changed. */

#define VERSION_7                                                                  \
        "PRAGMA application_id = 1129074003;"                                      \
        "CREATE TABLE allocations ( id INTEGER PRIMARY KEY, resource_provider_id " \
        "INTEGER NOT NULL REFERENCES resource_providers (id), consumer_id TEXT NO" \
        "T NULL, resource_class TEXT NOT NULL, used INTEGER NOT NULL CHECK (used " \
        "> 0), claim_id INTEGER NOT NULL REFERENCES claims (id), request_group TE" \
        "XT NOT NULL DEFAULT '', UNIQUE (claim_id, resource_provider_id, resource" \
        "_class, request_group));"                                                 \
        "CREATE TABLE cell_usages ( host_cell INTEGER NOT NULL, page_kib INTEGER " \
        "NOT NULL, memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0), n_shared IN" \
        "TEGER NOT NULL CHECK (n_shared >= 0), n_cells INTEGER NOT NULL CHECK (n_" \
        "cells >= 0), PRIMARY KEY (host_cell, page_kib));"                         \
        "CREATE TABLE claim_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT " \
        "NULL REFERENCES claims (id), cell INTEGER NOT NULL, host_cell INTEGER NO" \
        "T NULL, memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0), page_kib INTE" \
        "GER NOT NULL CHECK (page_kib >= 0), vcpus TEXT NOT NULL, n_shared INTEGE" \
        "R NOT NULL CHECK (n_shared >= 0), UNIQUE (claim_id, cell));"              \
        "CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0));" \
        "CREATE TABLE claim_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT N" \
        "ULL REFERENCES claims (id), vcpu INTEGER NOT NULL, dedicated INTEGER NOT" \
        " NULL CHECK (dedicated IN (0, 1)), cpus TEXT NOT NULL, UNIQUE (claim_id," \
        " vcpu));"                                                                 \
        "CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NO" \
        "T NULL REFERENCES claims (id), provider_uuid TEXT NOT NULL, request_grou" \
        "p TEXT NOT NULL, device TEXT NOT NULL, address TEXT NOT NULL, mdev_type " \
        "TEXT NOT NULL, mdev_uuid TEXT NOT NULL);"                                 \
        "CREATE TABLE claim_pins ( cpu INTEGER PRIMARY KEY, claim_id INTEGER NOT " \
        "NULL REFERENCES claims (id));"                                            \
        "CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NO" \
        "T NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER N" \
        "OT NULL, memory_mb INTEGER NOT NULL, disk_gb INTEGER NOT NULL, pci TEXT " \
        "NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN (0, 1))" \
        ", created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NO" \
        "T NULL CHECK (state IN ('claimed', 'confirmed')), expires_usec INTEGER N" \
        "OT NULL DEFAULT 0, project_id TEXT NOT NULL DEFAULT '', user_id TEXT NOT" \
        " NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT NULL DEFAULT '" \
        "', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_" \
        "type TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT '' CHECK (" \
        "standing IN ('', 'pending', 'written', 'owed', 'sent')), told_generation" \
        " INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT NOT NULL DEFAULT '', gu" \
        "est TEXT NOT NULL DEFAULT '', told_until INTEGER NOT NULL DEFAULT 0, UNI" \
        "QUE (instance_uuid, resize_target));"                                     \
        "CREATE TABLE consumer_moves ( id INTEGER PRIMARY KEY AUTOINCREMENT, from" \
        "_consumer TEXT NOT NULL UNIQUE, to_consumer TEXT NOT NULL UNIQUE, to_typ" \
        "e TEXT NOT NULL);"                                                        \
        "CREATE TABLE departures ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id" \
        " INTEGER NOT NULL, consumer TEXT NOT NULL, told_generation INTEGER NOT N" \
        "ULL DEFAULT 0, told_elsewhere TEXT NOT NULL DEFAULT '', unsure INTEGER N" \
        "OT NULL DEFAULT 0, told_until INTEGER NOT NULL DEFAULT 0);"               \
        "CREATE TABLE ended_allocations ( claim_id INTEGER NOT NULL REFERENCES en" \
        "ded_claims (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, provider" \
        "_name TEXT NOT NULL, resource_class TEXT NOT NULL, used INTEGER NOT NULL" \
        ", request_group TEXT NOT NULL, PRIMARY KEY (claim_id, provider_uuid, res" \
        "ource_class, request_group));"                                            \
        "CREATE TABLE ended_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT " \
        "NULL REFERENCES ended_claims (id) ON DELETE CASCADE, cell INTEGER NOT NU" \
        "LL, host_cell INTEGER NOT NULL, memory_mb INTEGER NOT NULL, page_kib INT" \
        "EGER NOT NULL, vcpus TEXT NOT NULL, n_shared INTEGER NOT NULL);"          \
        "CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id" \
        " INTEGER NOT NULL UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, instan" \
        "ce_uuid TEXT NOT NULL, resize_target INTEGER NOT NULL, created_usec INTE" \
        "GER NOT NULL, expires_usec INTEGER NOT NULL, project_id TEXT NOT NULL, u" \
        "ser_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL, ende" \
        "d_usec INTEGER NOT NULL, end_reason TEXT NOT NULL, consumer_type TEXT NO" \
        "T NULL DEFAULT '');"                                                      \
        "CREATE TABLE ended_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT N" \
        "ULL REFERENCES ended_claims (id) ON DELETE CASCADE, vcpu INTEGER NOT NUL" \
        "L, dedicated INTEGER NOT NULL, cpus TEXT NOT NULL);"                      \
        "CREATE TABLE ended_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NO" \
        "T NULL REFERENCES ended_claims (id) ON DELETE CASCADE, provider_uuid TEX" \
        "T NOT NULL, request_group TEXT NOT NULL, device TEXT NOT NULL, address T" \
        "EXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);"         \
        "CREATE TABLE inventories ( id INTEGER PRIMARY KEY, resource_provider_id " \
        "INTEGER NOT NULL  REFERENCES resource_providers (id) ON DELETE CASCADE, " \
        "resource_class TEXT NOT NULL, total INTEGER NOT NULL, reserved INTEGER N" \
        "OT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT NULL, step_size" \
        " INTEGER NOT NULL, allocation_ratio REAL NOT NULL, UNIQUE (resource_prov" \
        "ider_id, resource_class));"                                               \
        "CREATE TABLE provider_aggregates ( resource_provider_id INTEGER NOT NULL" \
        "  REFERENCES resource_providers (id) ON DELETE CASCADE, aggregate TEXT N" \
        "OT NULL, PRIMARY KEY (resource_provider_id, aggregate));"                 \
        "CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);"                    \
        "CREATE TABLE provider_traits ( resource_provider_id INTEGER NOT NULL  RE" \
        "FERENCES resource_providers (id) ON DELETE CASCADE, trait TEXT NOT NULL," \
        " PRIMARY KEY (resource_provider_id, trait));"                             \
        "CREATE TABLE resource_providers ( id INTEGER PRIMARY KEY AUTOINCREMENT, " \
        "uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, generation INTEGER NOT NU" \
        "LL DEFAULT 0, can_host INTEGER NOT NULL CHECK (can_host IN (0, 1)), pare" \
        "nt INTEGER REFERENCES resource_providers (id), withheld INTEGER NOT NULL" \
        " CHECK (withheld IN (0, 1)), position INTEGER NOT NULL);"                 \
        "CREATE TABLE usages ( resource_provider_id INTEGER NOT NULL REFERENCES r" \
        "esource_providers (id), resource_class TEXT NOT NULL, used INTEGER NOT N" \
        "ULL CHECK (used >= 0), PRIMARY KEY (resource_provider_id, resource_class" \
        "));"                                                                      \
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"                \
        "CREATE INDEX allocations_provider ON allocations (resource_provider_id, " \
        "resource_class, used);"                                                   \
        "CREATE INDEX claim_cells_host ON claim_cells (host_cell);"                \
        "CREATE INDEX claim_devices_address ON claim_devices (address);"           \
        "CREATE INDEX claim_devices_claim ON claim_devices (claim_id);"            \
        "CREATE INDEX claim_devices_device ON claim_devices (device);"             \
        "CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) WHER" \
        "E mdev_uuid <> '';"                                                       \
        "CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE " \
        "mdev_uuid = '';"                                                          \
        "CREATE INDEX claim_pins_claim ON claim_pins (claim_id);"                  \
        "CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'clai" \
        "med' AND expires_usec > 0;"                                               \
        "CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pe" \
        "nding', 'owed', 'sent');"                                                 \
        "CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;"            \
        "CREATE INDEX ended_cells_claim ON ended_cells (claim_id);"                \
        "CREATE INDEX ended_cpus_claim ON ended_cpus (claim_id);"                  \
        "CREATE INDEX ended_devices_claim ON ended_devices (claim_id);"            \
        "CREATE INDEX resource_providers_parent ON resource_providers (parent);"   \
        "CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN UPDA" \
        "TE usages SET used = used - OLD.used  WHERE resource_provider_id = OLD.r" \
        "esource_provider_id  AND resource_class = OLD.resource_class; DELETE FRO" \
        "M usages WHERE used = 0  AND resource_provider_id = OLD.resource_provide" \
        "r_id  AND resource_class = OLD.resource_class;END;"                       \
        "CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN INSE" \
        "RT INTO usages VALUES (NEW.resource_provider_id, NEW.resource_class, NEW" \
        ".used)  ON CONFLICT DO UPDATE SET used = used + excluded.used;END;"       \
        "CREATE TRIGGER allocations_update BEFORE UPDATE OF id, resource_provider" \
        "_id, resource_class, used, claim_id, request_group ON allocations BEGIN " \
        "SELECT RAISE(ABORT, 'allocations are inserted and deleted, never updated" \
        "');END;"                                                                  \
        "CREATE TRIGGER claim_cells_delete AFTER DELETE ON claim_cells BEGIN UPDA" \
        "TE cell_usages SET memory_mb = memory_mb - OLD.memory_mb,  n_shared = n_" \
        "shared - OLD.n_shared, n_cells = n_cells - 1  WHERE host_cell = OLD.host" \
        "_cell AND page_kib = OLD.page_kib; DELETE FROM cell_usages WHERE n_cells" \
        " = 0  AND host_cell = OLD.host_cell AND page_kib = OLD.page_kib;END;"     \
        "CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN INSE" \
        "RT INTO cell_usages VALUES  (NEW.host_cell, NEW.page_kib, NEW.memory_mb," \
        " NEW.n_shared, 1)  ON CONFLICT DO UPDATE SET memory_mb = memory_mb + exc" \
        "luded.memory_mb,   n_shared = n_shared + excluded.n_shared, n_cells = n_" \
        "cells + 1;END;"                                                           \
        "CREATE TRIGGER claim_cells_update BEFORE UPDATE ON claim_cells BEGIN SEL" \
        "ECT RAISE(ABORT, 'cells are inserted and deleted, never updated');END;"   \
        "CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_c" \
        "ounts SET claims = claims - 1;END;"                                       \
        "CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing IN" \
        " ('pending', 'written', 'sent') BEGIN INSERT INTO departures (claim_id, " \
        "consumer, told_generation, told_elsewhere, told_until,  unsure)  VALUES " \
        "(OLD.id, OLD.instance_uuid, OLD.told_generation, OLD.told_elsewhere,  OL" \
        "D.told_until, OLD.standing <> 'written');END;"                            \
        "CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_c" \
        "ounts SET claims = claims + 1;END;"                                       \
        "INSERT INTO versions VALUES ('claims', 7);"                               \
        "INSERT INTO provider_epoch VALUES (0);"                                   \
        "INSERT INTO claim_counts VALUES (0);"

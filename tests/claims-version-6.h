/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A database of schema version 6, as the program of that version made it, without
 * claims. Never to be changed. */

#define VERSION_6                                                                 \
        "PRAGMA application_id = 1129074003;"                                     \
        "CREATE TABLE allocations ( id INTEGER PRIMARY KEY, resource_provider_id" \
        " INTEGER NOT NULL REFERENCES resource_providers (id), consumer_id TEXT " \
        "NOT NULL, resource_class TEXT NOT NULL, used INTEGER NOT NULL CHECK (us" \
        "ed > 0), claim_id INTEGER NOT NULL REFERENCES claims (id), request_grou" \
        "p TEXT NOT NULL DEFAULT '', UNIQUE (claim_id, resource_provider_id, res" \
        "ource_class, request_group));"                                           \
        "CREATE TABLE cell_usages ( host_cell INTEGER NOT NULL, page_kib INTEGER" \
        " NOT NULL, memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0), n_shared " \
        "INTEGER NOT NULL CHECK (n_shared >= 0), n_cells INTEGER NOT NULL CHECK " \
        "(n_cells >= 0), PRIMARY KEY (host_cell, page_kib));"                     \
        "CREATE TABLE claim_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT" \
        " NULL REFERENCES claims (id), cell INTEGER NOT NULL, host_cell INTEGER " \
        "NOT NULL, memory_mb INTEGER NOT NULL CHECK (memory_mb >= 0), page_kib I" \
        "NTEGER NOT NULL CHECK (page_kib >= 0), vcpus TEXT NOT NULL, n_shared IN" \
        "TEGER NOT NULL CHECK (n_shared >= 0), UNIQUE (claim_id, cell));"         \
        "CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0))" \
        ";"                                                                       \
        "CREATE TABLE claim_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT " \
        "NULL REFERENCES claims (id), vcpu INTEGER NOT NULL, dedicated INTEGER N" \
        "OT NULL CHECK (dedicated IN (0, 1)), cpus TEXT NOT NULL, UNIQUE (claim_" \
        "id, vcpu));"                                                             \
        "CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER N" \
        "OT NULL REFERENCES claims (id), provider_uuid TEXT NOT NULL, request_gr" \
        "oup TEXT NOT NULL, device TEXT NOT NULL, address TEXT NOT NULL, mdev_ty" \
        "pe TEXT NOT NULL, mdev_uuid TEXT NOT NULL);"                             \
        "CREATE TABLE claim_pins ( cpu INTEGER PRIMARY KEY, claim_id INTEGER NOT" \
        " NULL REFERENCES claims (id));"                                          \
        "CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT N" \
        "OT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER" \
        " NOT NULL, memory_mb INTEGER NOT NULL, disk_gb INTEGER NOT NULL, pci TE" \
        "XT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN (0," \
        " 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TE" \
        "XT NOT NULL CHECK (state IN ('claimed', 'confirmed')), expires_usec INT" \
        "EGER NOT NULL DEFAULT 0, project_id TEXT NOT NULL DEFAULT '', user_id T" \
        "EXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT NULL D" \
        "EFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), " \
        "consumer_type TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT " \
        "'' CHECK (standing IN ('', 'pending', 'written', 'owed', 'sent')), told" \
        "_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT NOT NULL DE" \
        "FAULT '', guest TEXT NOT NULL DEFAULT '', UNIQUE (instance_uuid, resize" \
        "_target));"                                                              \
        "CREATE TABLE consumer_moves ( id INTEGER PRIMARY KEY AUTOINCREMENT, fro" \
        "m_consumer TEXT NOT NULL UNIQUE, to_consumer TEXT NOT NULL UNIQUE, to_t" \
        "ype TEXT NOT NULL);"                                                     \
        "CREATE TABLE departures ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_i" \
        "d INTEGER NOT NULL, consumer TEXT NOT NULL, told_generation INTEGER NOT" \
        " NULL DEFAULT 0, told_elsewhere TEXT NOT NULL DEFAULT '', unsure INTEGE" \
        "R NOT NULL DEFAULT 0);"                                                  \
        "CREATE TABLE ended_allocations ( claim_id INTEGER NOT NULL REFERENCES e" \
        "nded_claims (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, provid" \
        "er_name TEXT NOT NULL, resource_class TEXT NOT NULL, used INTEGER NOT N" \
        "ULL, request_group TEXT NOT NULL, PRIMARY KEY (claim_id, provider_uuid," \
        " resource_class, request_group));"                                       \
        "CREATE TABLE ended_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT" \
        " NULL REFERENCES ended_claims (id) ON DELETE CASCADE, cell INTEGER NOT " \
        "NULL, host_cell INTEGER NOT NULL, memory_mb INTEGER NOT NULL, page_kib " \
        "INTEGER NOT NULL, vcpus TEXT NOT NULL, n_shared INTEGER NOT NULL);"      \
        "CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, i" \
        "d INTEGER NOT NULL UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, inst" \
        "ance_uuid TEXT NOT NULL, resize_target INTEGER NOT NULL, created_usec I" \
        "NTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id TEXT NOT NUL" \
        "L, user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL," \
        " ended_usec INTEGER NOT NULL, end_reason TEXT NOT NULL, consumer_type T" \
        "EXT NOT NULL DEFAULT '');"                                               \
        "CREATE TABLE ended_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT " \
        "NULL REFERENCES ended_claims (id) ON DELETE CASCADE, vcpu INTEGER NOT N" \
        "ULL, dedicated INTEGER NOT NULL, cpus TEXT NOT NULL);"                   \
        "CREATE TABLE ended_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER N" \
        "OT NULL REFERENCES ended_claims (id) ON DELETE CASCADE, provider_uuid T" \
        "EXT NOT NULL, request_group TEXT NOT NULL, device TEXT NOT NULL, addres" \
        "s TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);"     \
        "CREATE TABLE inventories ( id INTEGER PRIMARY KEY, resource_provider_id" \
        " INTEGER NOT NULL  REFERENCES resource_providers (id) ON DELETE CASCADE" \
        ", resource_class TEXT NOT NULL, total INTEGER NOT NULL, reserved INTEGE" \
        "R NOT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT NULL, step_" \
        "size INTEGER NOT NULL, allocation_ratio REAL NOT NULL, UNIQUE (resource" \
        "_provider_id, resource_class));"                                         \
        "CREATE TABLE provider_aggregates ( resource_provider_id INTEGER NOT NUL" \
        "L  REFERENCES resource_providers (id) ON DELETE CASCADE, aggregate TEXT" \
        " NOT NULL, PRIMARY KEY (resource_provider_id, aggregate));"              \
        "CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);"                   \
        "CREATE TABLE provider_traits ( resource_provider_id INTEGER NOT NULL  R" \
        "EFERENCES resource_providers (id) ON DELETE CASCADE, trait TEXT NOT NUL" \
        "L, PRIMARY KEY (resource_provider_id, trait));"                          \
        "CREATE TABLE resource_providers ( id INTEGER PRIMARY KEY AUTOINCREMENT," \
        " uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, generation INTEGER NOT " \
        "NULL DEFAULT 0, can_host INTEGER NOT NULL CHECK (can_host IN (0, 1)), p" \
        "arent INTEGER REFERENCES resource_providers (id), withheld INTEGER NOT " \
        "NULL CHECK (withheld IN (0, 1)), position INTEGER NOT NULL);"            \
        "CREATE TABLE usages ( resource_provider_id INTEGER NOT NULL REFERENCES " \
        "resource_providers (id), resource_class TEXT NOT NULL, used INTEGER NOT" \
        " NULL CHECK (used >= 0), PRIMARY KEY (resource_provider_id, resource_cl" \
        "ass));"                                                                  \
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"               \
        "CREATE INDEX allocations_provider ON allocations (resource_provider_id," \
        " resource_class, used);"                                                 \
        "CREATE INDEX claim_cells_host ON claim_cells (host_cell);"               \
        "CREATE INDEX claim_devices_address ON claim_devices (address);"          \
        "CREATE INDEX claim_devices_claim ON claim_devices (claim_id);"           \
        "CREATE INDEX claim_devices_device ON claim_devices (device);"            \
        "CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) WHE" \
        "RE mdev_uuid <> '';"                                                     \
        "CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE" \
        " mdev_uuid = '';"                                                        \
        "CREATE INDEX claim_pins_claim ON claim_pins (claim_id);"                 \
        "CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'cla" \
        "imed' AND expires_usec > 0;"                                             \
        "CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('p" \
        "ending', 'owed', 'sent');"                                               \
        "CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;"           \
        "CREATE INDEX ended_cells_claim ON ended_cells (claim_id);"               \
        "CREATE INDEX ended_cpus_claim ON ended_cpus (claim_id);"                 \
        "CREATE INDEX ended_devices_claim ON ended_devices (claim_id);"           \
        "CREATE INDEX resource_providers_parent ON resource_providers (parent);"  \
        "CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN UPD" \
        "ATE usages SET used = used - OLD.used  WHERE resource_provider_id = OLD" \
        ".resource_provider_id  AND resource_class = OLD.resource_class; DELETE " \
        "FROM usages WHERE used = 0  AND resource_provider_id = OLD.resource_pro" \
        "vider_id  AND resource_class = OLD.resource_class;END;"                  \
        "CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN INS" \
        "ERT INTO usages VALUES (NEW.resource_provider_id, NEW.resource_class, N" \
        "EW.used)  ON CONFLICT DO UPDATE SET used = used + excluded.used;END;"    \
        "CREATE TRIGGER allocations_update BEFORE UPDATE OF id, resource_provide" \
        "r_id, resource_class, used, claim_id, request_group ON allocations BEGI" \
        "N SELECT RAISE(ABORT, 'allocations are inserted and deleted, never upda" \
        "ted');END;"                                                              \
        "CREATE TRIGGER claim_cells_delete AFTER DELETE ON claim_cells BEGIN UPD" \
        "ATE cell_usages SET memory_mb = memory_mb - OLD.memory_mb,  n_shared = " \
        "n_shared - OLD.n_shared, n_cells = n_cells - 1  WHERE host_cell = OLD.h" \
        "ost_cell AND page_kib = OLD.page_kib; DELETE FROM cell_usages WHERE n_c" \
        "ells = 0  AND host_cell = OLD.host_cell AND page_kib = OLD.page_kib;END" \
        ";"                                                                       \
        "CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN INS" \
        "ERT INTO cell_usages VALUES  (NEW.host_cell, NEW.page_kib, NEW.memory_m" \
        "b, NEW.n_shared, 1)  ON CONFLICT DO UPDATE SET memory_mb = memory_mb + " \
        "excluded.memory_mb,   n_shared = n_shared + excluded.n_shared, n_cells " \
        "= n_cells + 1;END;"                                                      \
        "CREATE TRIGGER claim_cells_update BEFORE UPDATE ON claim_cells BEGIN SE" \
        "LECT RAISE(ABORT, 'cells are inserted and deleted, never updated');END;" \
        "CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_" \
        "counts SET claims = claims - 1;END;"                                     \
        "CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing I" \
        "N ('pending', 'written', 'sent') BEGIN INSERT INTO departures (claim_id" \
        ", consumer, told_generation, told_elsewhere, unsure)  VALUES (OLD.id, O" \
        "LD.instance_uuid, OLD.told_generation, OLD.told_elsewhere,  OLD.standin" \
        "g <> 'written');END;"                                                    \
        "CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_" \
        "counts SET claims = claims + 1;END;"                                     \
        "INSERT INTO versions VALUES ('claims', 6);"                              \
        "INSERT INTO provider_epoch VALUES (0);"                                  \
        "INSERT INTO claim_counts VALUES (0);"

-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The schema of each version of the claim database that was ever written, in the order of
-- history. A section begins with "-- VERSION NAME", NAME as in test-upgrade.c. Its statements follow
-- those of the sections above it, up to the last one that begins with an empty file.

-- 2 cb2b939, of an empty file
PRAGMA application_id = 1129074003;
CREATE TABLE versions (table_name TEXT, version INTEGER);
INSERT INTO versions VALUES ('claims', 2);
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), UNIQUE
  (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL
  UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, resize_target
  INTEGER NOT NULL, created_usec INTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id
  TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL, ended_usec
  INTEGER NOT NULL, end_reason TEXT NOT NULL);
CREATE TABLE ended_allocations ( claim_id INTEGER NOT NULL REFERENCES ended_claims (id) ON
  DELETE CASCADE, provider_uuid TEXT NOT NULL, provider_name TEXT NOT NULL, resource_class TEXT
  NOT NULL, used INTEGER NOT NULL, request_group TEXT NOT NULL, PRIMARY KEY (claim_id,
  provider_uuid, resource_class, request_group));
CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);
INSERT INTO provider_epoch VALUES (0);
CREATE TABLE resource_providers ( id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL
  UNIQUE, name TEXT NOT NULL, generation INTEGER NOT NULL DEFAULT 0, can_host INTEGER NOT NULL
  CHECK (can_host IN (0, 1)), parent INTEGER REFERENCES resource_providers (id), withheld
  INTEGER NOT NULL CHECK (withheld IN (0, 1)), position INTEGER NOT NULL);
CREATE INDEX resource_providers_parent ON resource_providers (parent);
CREATE TABLE inventories ( id INTEGER PRIMARY KEY, resource_provider_id INTEGER NOT NULL
  REFERENCES resource_providers (id) ON DELETE CASCADE, resource_class TEXT NOT NULL, total
  INTEGER NOT NULL, reserved INTEGER NOT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT
  NULL, step_size INTEGER NOT NULL, allocation_ratio REAL NOT NULL, UNIQUE
  (resource_provider_id, resource_class));
CREATE TABLE provider_traits ( resource_provider_id INTEGER NOT NULL REFERENCES
  resource_providers (id) ON DELETE CASCADE, trait TEXT NOT NULL, PRIMARY KEY
  (resource_provider_id, trait));
CREATE TABLE provider_aggregates ( resource_provider_id INTEGER NOT NULL REFERENCES
  resource_providers (id) ON DELETE CASCADE, aggregate TEXT NOT NULL, PRIMARY KEY
  (resource_provider_id, aggregate));
CREATE TABLE allocations ( id INTEGER PRIMARY KEY, resource_provider_id INTEGER NOT NULL
  REFERENCES resource_providers (id), consumer_id TEXT NOT NULL, resource_class TEXT NOT NULL,
  used INTEGER NOT NULL CHECK (used > 0), claim_id INTEGER NOT NULL REFERENCES claims (id),
  request_group TEXT NOT NULL DEFAULT '', UNIQUE (claim_id, resource_provider_id,
  resource_class, request_group));
CREATE INDEX allocations_provider ON allocations (resource_provider_id, resource_class, used);
CREATE TABLE usages ( resource_provider_id INTEGER NOT NULL REFERENCES resource_providers (id),
  resource_class TEXT NOT NULL, used INTEGER NOT NULL CHECK (used >= 0), PRIMARY KEY
  (resource_provider_id, resource_class));
CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN INSERT INTO usages VALUES
  (NEW.resource_provider_id, NEW.resource_class, NEW.used) ON CONFLICT DO UPDATE SET used = used
  + excluded.used;END;
CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN UPDATE usages SET used =
  used - OLD.used WHERE resource_provider_id = OLD.resource_provider_id AND resource_class =
  OLD.resource_class; DELETE FROM usages WHERE used = 0 AND resource_provider_id =
  OLD.resource_provider_id AND resource_class = OLD.resource_class;END;
CREATE TRIGGER allocations_update BEFORE UPDATE ON allocations BEGIN SELECT RAISE(ABORT,
  'allocations are inserted and deleted, never updated');END;

-- 3 ae0b27b
CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0));
INSERT INTO claim_counts VALUES (0);
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id), provider_uuid TEXT NOT NULL, request_group TEXT NOT NULL, device TEXT NOT NULL, address
  TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL UNIQUE);
CREATE INDEX claim_devices_claim ON claim_devices (claim_id);
CREATE INDEX claim_devices_device ON claim_devices (device);
CREATE INDEX claim_devices_address ON claim_devices (address);
CREATE TABLE ended_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES
  ended_claims (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, request_group TEXT NOT NULL,
  device TEXT NOT NULL, address TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);
CREATE INDEX ended_devices_claim ON ended_devices (claim_id);
UPDATE versions SET version = 3;

-- 3 f303d7d
DROP TABLE claim_devices;
CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id), provider_uuid TEXT NOT NULL, request_group TEXT NOT NULL, device TEXT NOT NULL, address
  TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);
CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) WHERE mdev_uuid <> '';
CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE mdev_uuid = '';
CREATE INDEX claim_devices_claim ON claim_devices (claim_id);
CREATE INDEX claim_devices_device ON claim_devices (device);
CREATE INDEX claim_devices_address ON claim_devices (address);
UPDATE versions SET version = 3;

-- 4 6915a25
DROP TABLE ended_claims;
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_type
  TEXT NOT NULL DEFAULT '', UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL
  UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, resize_target
  INTEGER NOT NULL, created_usec INTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id
  TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL, ended_usec
  INTEGER NOT NULL, end_reason TEXT NOT NULL, consumer_type TEXT NOT NULL DEFAULT '');
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE TABLE claim_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id), cell INTEGER NOT NULL, host_cell INTEGER NOT NULL, memory_mb INTEGER NOT NULL CHECK
  (memory_mb >= 0), page_kib INTEGER NOT NULL CHECK (page_kib >= 0), vcpus TEXT NOT NULL,
  n_shared INTEGER NOT NULL CHECK (n_shared >= 0), UNIQUE (claim_id, cell));
CREATE INDEX claim_cells_host ON claim_cells (host_cell);
CREATE TABLE claim_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id), vcpu INTEGER NOT NULL, dedicated INTEGER NOT NULL CHECK (dedicated IN (0, 1)), cpus TEXT
  NOT NULL, UNIQUE (claim_id, vcpu));
CREATE TABLE claim_pins ( cpu INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id));
CREATE INDEX claim_pins_claim ON claim_pins (claim_id);
CREATE TABLE cell_usages ( host_cell INTEGER NOT NULL, page_kib INTEGER NOT NULL, memory_mb
  INTEGER NOT NULL CHECK (memory_mb >= 0), n_shared INTEGER NOT NULL CHECK (n_shared >= 0),
  n_cells INTEGER NOT NULL CHECK (n_cells >= 0), PRIMARY KEY (host_cell, page_kib));
CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN INSERT INTO cell_usages
  VALUES (NEW.host_cell, NEW.page_kib, NEW.memory_mb, NEW.n_shared, 1) ON CONFLICT DO UPDATE SET
  memory_mb = memory_mb + excluded.memory_mb, n_shared = n_shared + excluded.n_shared, n_cells =
  n_cells + 1;END;
CREATE TRIGGER claim_cells_delete AFTER DELETE ON claim_cells BEGIN UPDATE cell_usages SET
  memory_mb = memory_mb - OLD.memory_mb, n_shared = n_shared - OLD.n_shared, n_cells = n_cells -
  1 WHERE host_cell = OLD.host_cell AND page_kib = OLD.page_kib; DELETE FROM cell_usages WHERE
  n_cells = 0 AND host_cell = OLD.host_cell AND page_kib = OLD.page_kib;END;
CREATE TRIGGER claim_cells_update BEFORE UPDATE ON claim_cells BEGIN SELECT RAISE(ABORT,
  'cells are inserted and deleted, never updated');END;
CREATE TABLE ended_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES
  ended_claims (id) ON DELETE CASCADE, cell INTEGER NOT NULL, host_cell INTEGER NOT NULL,
  memory_mb INTEGER NOT NULL, page_kib INTEGER NOT NULL, vcpus TEXT NOT NULL, n_shared INTEGER
  NOT NULL);
CREATE INDEX ended_cells_claim ON ended_cells (claim_id);
CREATE TABLE ended_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES
  ended_claims (id) ON DELETE CASCADE, vcpu INTEGER NOT NULL, dedicated INTEGER NOT NULL, cpus
  TEXT NOT NULL);
CREATE INDEX ended_cpus_claim ON ended_cpus (claim_id);
UPDATE versions SET version = 4;

-- 5 7397624
DROP TRIGGER allocations_update;
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_type
  TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed')), UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed');
CREATE TABLE departures ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id INTEGER NOT NULL,
  consumer TEXT NOT NULL);
CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing IN ('pending', 'written')
  BEGIN INSERT INTO departures (claim_id, consumer) VALUES (OLD.id, OLD.instance_uuid);END;
CREATE TABLE consumer_moves ( id INTEGER PRIMARY KEY AUTOINCREMENT, from_consumer TEXT NOT NULL
  UNIQUE, to_consumer TEXT NOT NULL UNIQUE, to_type TEXT NOT NULL);
CREATE TRIGGER allocations_update BEFORE UPDATE OF id, resource_provider_id, resource_class,
  used, claim_id, request_group ON allocations BEGIN SELECT RAISE(ABORT,
  'allocations are inserted and deleted, never updated');END;
UPDATE versions SET version = 5;

-- 5 18edf21
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_type
  TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed', 'sent')), UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed', 'sent');
CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing IN ('pending', 'written',
  'sent') BEGIN INSERT INTO departures (claim_id, consumer) VALUES (OLD.id,
  OLD.instance_uuid);END;
UPDATE versions SET version = 5;

-- 6 1b4f837
DROP TABLE departures;
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_type
  TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed', 'sent')), told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT
  NOT NULL DEFAULT '', guest TEXT NOT NULL DEFAULT '', UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed', 'sent');
CREATE TABLE departures ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id INTEGER NOT NULL,
  consumer TEXT NOT NULL, told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT NOT
  NULL DEFAULT '', unsure INTEGER NOT NULL DEFAULT 0);
CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing IN ('pending', 'written',
  'sent') BEGIN INSERT INTO departures (claim_id, consumer, told_generation, told_elsewhere,
  unsure) VALUES (OLD.id, OLD.instance_uuid, OLD.told_generation, OLD.told_elsewhere,
  OLD.standing <> 'written');END;
UPDATE versions SET version = 6;

-- 7 4a80e93
DROP TABLE departures;
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', request TEXT NOT NULL, boot_id TEXT NOT
  NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1 CHECK (placed IN (0, 1)), consumer_type
  TEXT NOT NULL DEFAULT '', standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed', 'sent')), told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT
  NOT NULL DEFAULT '', guest TEXT NOT NULL DEFAULT '', told_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed', 'sent');
CREATE TABLE departures ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id INTEGER NOT NULL,
  consumer TEXT NOT NULL, told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT NOT
  NULL DEFAULT '', unsure INTEGER NOT NULL DEFAULT 0, told_until INTEGER NOT NULL DEFAULT 0);
CREATE TRIGGER claims_depart AFTER DELETE ON claims WHEN OLD.standing IN ('pending', 'written',
  'sent') BEGIN INSERT INTO departures (claim_id, consumer, told_generation, told_elsewhere,
  told_until, unsure) VALUES (OLD.id, OLD.instance_uuid, OLD.told_generation,
  OLD.told_elsewhere, OLD.told_until, OLD.standing <> 'written');END;
UPDATE versions SET version = 7;

-- 8 88a1340
CREATE TRIGGER claim_devices_insert AFTER INSERT ON claim_devices WHEN NEW.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = NEW.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE
  id = NEW.claim_id;END;
CREATE TRIGGER claim_devices_delete AFTER DELETE ON claim_devices WHEN OLD.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = OLD.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE
  id = OLD.claim_id;END;
UPDATE versions SET version = 8;

-- 8 1ff5903
DROP TRIGGER allocations_insert;
DROP TRIGGER claim_cells_insert;
CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN INSERT INTO usages VALUES
  (NEW.resource_provider_id, NEW.resource_class, NEW.used) ON CONFLICT (resource_provider_id,
  resource_class) DO UPDATE SET used = used + excluded.used;END;
CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN INSERT INTO cell_usages
  VALUES (NEW.host_cell, NEW.page_kib, NEW.memory_mb, NEW.n_shared, 1) ON CONFLICT (host_cell,
  page_kib) DO UPDATE SET memory_mb = memory_mb + excluded.memory_mb, n_shared = n_shared +
  excluded.n_shared, n_cells = n_cells + 1;END;
UPDATE versions SET version = 8;

-- 2 6819ac6, of an empty file
PRAGMA application_id = 1129074003;
CREATE TABLE versions (table_name TEXT, version INTEGER);
INSERT INTO versions VALUES ('claims', 2);
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', consumer_type TEXT NOT NULL DEFAULT '',
  request TEXT NOT NULL, boot_id TEXT NOT NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1
  CHECK (placed IN (0, 1)), standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed', 'sent')), told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT
  NOT NULL DEFAULT '', told_until INTEGER NOT NULL DEFAULT 0, guest TEXT NOT NULL DEFAULT '',
  UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed', 'sent');
CREATE INDEX claims_unheld ON claims (told_generation) WHERE standing = '' AND told_generation <
  0;
CREATE TABLE claim_counts (claims INTEGER NOT NULL CHECK (claims >= 0));
INSERT INTO claim_counts VALUES (0);
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE TABLE removals ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id INTEGER NOT NULL,
  consumer TEXT NOT NULL, told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT NOT
  NULL DEFAULT '', told_until INTEGER NOT NULL DEFAULT 0, unsure INTEGER NOT NULL DEFAULT 0);
CREATE TRIGGER claims_leave_removal AFTER DELETE ON claims WHEN OLD.standing IN ('pending',
  'written', 'sent') BEGIN INSERT INTO removals (claim_id, consumer, told_generation,
  told_elsewhere, told_until, unsure) VALUES (OLD.id, OLD.instance_uuid, OLD.told_generation,
  OLD.told_elsewhere, OLD.told_until, OLD.standing <> 'written');END;
CREATE TABLE moves ( id INTEGER PRIMARY KEY AUTOINCREMENT, from_consumer TEXT NOT NULL UNIQUE,
  to_consumer TEXT NOT NULL UNIQUE, to_type TEXT NOT NULL);
CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL
  UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, resize_target
  INTEGER NOT NULL, created_usec INTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id
  TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL, ended_usec
  INTEGER NOT NULL, end_reason TEXT NOT NULL, consumer_type TEXT NOT NULL, allocations TEXT NOT
  NULL, devices TEXT NOT NULL, cells TEXT NOT NULL, cpus TEXT NOT NULL);
CREATE TABLE provider_epoch (epoch INTEGER NOT NULL);
INSERT INTO provider_epoch VALUES (0);
CREATE TABLE resource_providers ( id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL
  UNIQUE, name TEXT NOT NULL, generation INTEGER NOT NULL DEFAULT 0, can_host INTEGER NOT NULL
  CHECK (can_host IN (0, 1)), parent INTEGER REFERENCES resource_providers (id), withheld
  INTEGER NOT NULL CHECK (withheld IN (0, 1)), position INTEGER NOT NULL);
CREATE INDEX resource_providers_parent ON resource_providers (parent);
CREATE TABLE inventories ( id INTEGER PRIMARY KEY, resource_provider_id INTEGER NOT NULL
  REFERENCES resource_providers (id) ON DELETE CASCADE, resource_class TEXT NOT NULL, total
  INTEGER NOT NULL, reserved INTEGER NOT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT
  NULL, step_size INTEGER NOT NULL, allocation_ratio REAL NOT NULL, UNIQUE
  (resource_provider_id, resource_class));
CREATE TABLE provider_traits ( resource_provider_id INTEGER NOT NULL REFERENCES
  resource_providers (id) ON DELETE CASCADE, trait TEXT NOT NULL, PRIMARY KEY
  (resource_provider_id, trait));
CREATE TABLE provider_aggregates ( resource_provider_id INTEGER NOT NULL REFERENCES
  resource_providers (id) ON DELETE CASCADE, aggregate TEXT NOT NULL, PRIMARY KEY
  (resource_provider_id, aggregate));
CREATE TABLE allocations ( id INTEGER PRIMARY KEY, resource_provider_id INTEGER NOT NULL
  REFERENCES resource_providers (id), consumer_id TEXT NOT NULL, resource_class TEXT NOT NULL,
  used INTEGER NOT NULL CHECK (used > 0), claim_id INTEGER NOT NULL REFERENCES claims (id) ON
  DELETE CASCADE, request_group TEXT NOT NULL DEFAULT '', UNIQUE (claim_id,
  resource_provider_id, resource_class, request_group));
CREATE INDEX allocations_provider ON allocations (resource_provider_id, resource_class, used);
CREATE TABLE usages ( resource_provider_id INTEGER NOT NULL REFERENCES resource_providers (id),
  resource_class TEXT NOT NULL, used INTEGER NOT NULL CHECK (used >= 0), PRIMARY KEY
  (resource_provider_id, resource_class));
CREATE TRIGGER allocations_insert AFTER INSERT ON allocations BEGIN INSERT INTO usages VALUES
  (NEW.resource_provider_id, NEW.resource_class, NEW.used) ON CONFLICT (resource_provider_id,
  resource_class) DO UPDATE SET used = used + excluded.used;END;
CREATE TRIGGER allocations_delete AFTER DELETE ON allocations BEGIN UPDATE usages SET used =
  used - OLD.used WHERE resource_provider_id = OLD.resource_provider_id AND resource_class =
  OLD.resource_class; DELETE FROM usages WHERE used = 0 AND resource_provider_id =
  OLD.resource_provider_id AND resource_class = OLD.resource_class;END;
CREATE TRIGGER allocations_update BEFORE UPDATE OF id, resource_provider_id, resource_class,
  used, claim_id, request_group ON allocations BEGIN SELECT RAISE(ABORT,
  'allocations are inserted and deleted, never updated');END;
CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, request_group TEXT NOT NULL, device TEXT
  NOT NULL, address TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL);
CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) WHERE mdev_uuid <> '';
CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE mdev_uuid = '';
CREATE INDEX claim_devices_claim ON claim_devices (claim_id);
CREATE INDEX claim_devices_device ON claim_devices (device);
CREATE INDEX claim_devices_address ON claim_devices (address);
CREATE TRIGGER claim_devices_insert AFTER INSERT ON claim_devices WHEN NEW.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = NEW.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE
  id = NEW.claim_id;END;
CREATE TRIGGER claim_devices_delete AFTER DELETE ON claim_devices WHEN OLD.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = OLD.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE
  id = OLD.claim_id;END;
CREATE TABLE claim_cells ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id) ON DELETE CASCADE, cell INTEGER NOT NULL, host_cell INTEGER NOT NULL, memory_mb INTEGER
  NOT NULL CHECK (memory_mb >= 0), page_kib INTEGER NOT NULL CHECK (page_kib >= 0), vcpus TEXT
  NOT NULL, n_shared INTEGER NOT NULL CHECK (n_shared >= 0), UNIQUE (claim_id, cell));
CREATE INDEX claim_cells_host ON claim_cells (host_cell);
CREATE TABLE claim_cpus ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id) ON DELETE CASCADE, vcpu INTEGER NOT NULL, dedicated INTEGER NOT NULL CHECK (dedicated IN
  (0, 1)), cpus TEXT NOT NULL, UNIQUE (claim_id, vcpu));
CREATE TABLE claim_pins ( cpu INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id) ON DELETE CASCADE);
CREATE INDEX claim_pins_claim ON claim_pins (claim_id);
CREATE TABLE cell_usages ( host_cell INTEGER NOT NULL, page_kib INTEGER NOT NULL, memory_mb
  INTEGER NOT NULL CHECK (memory_mb >= 0), n_shared INTEGER NOT NULL CHECK (n_shared >= 0),
  n_cells INTEGER NOT NULL CHECK (n_cells >= 0), PRIMARY KEY (host_cell, page_kib));
CREATE TRIGGER claim_cells_insert AFTER INSERT ON claim_cells BEGIN INSERT INTO cell_usages
  VALUES (NEW.host_cell, NEW.page_kib, NEW.memory_mb, NEW.n_shared, 1) ON CONFLICT (host_cell,
  page_kib) DO UPDATE SET memory_mb = memory_mb + excluded.memory_mb, n_shared = n_shared +
  excluded.n_shared, n_cells = n_cells + 1;END;
CREATE TRIGGER claim_cells_delete AFTER DELETE ON claim_cells BEGIN UPDATE cell_usages SET
  memory_mb = memory_mb - OLD.memory_mb, n_shared = n_shared - OLD.n_shared, n_cells = n_cells -
  1 WHERE host_cell = OLD.host_cell AND page_kib = OLD.page_kib; DELETE FROM cell_usages WHERE
  n_cells = 0 AND host_cell = OLD.host_cell AND page_kib = OLD.page_kib;END;
CREATE TRIGGER claim_cells_update BEFORE UPDATE ON claim_cells BEGIN SELECT RAISE(ABORT,
  'cells are inserted and deleted, never updated');END;

-- 3 5039db0
CREATE TABLE events ( id INTEGER PRIMARY KEY AUTOINCREMENT, usec INTEGER NOT NULL, kind TEXT NOT
  NULL, uid INTEGER NOT NULL, author TEXT NOT NULL, claim_id INTEGER NOT NULL, consumer TEXT NOT
  NULL, guest TEXT NOT NULL, allocations TEXT NOT NULL, devices TEXT NOT NULL, reason TEXT NOT
  NULL);
UPDATE versions SET version = 3;

-- 3 a70aebe
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', consumer_type TEXT NOT NULL DEFAULT '',
  request TEXT NOT NULL, boot_id TEXT NOT NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1
  CHECK (placed IN (0, 1)), standing TEXT NOT NULL DEFAULT '' CHECK (standing IN ('', 'pending',
  'written', 'owed', 'sent')), told_generation INTEGER NOT NULL DEFAULT 0, told_elsewhere TEXT
  NOT NULL DEFAULT '', told_until INTEGER NOT NULL DEFAULT 0, guest TEXT NOT NULL DEFAULT '',
  life TEXT NOT NULL DEFAULT '', UNIQUE (instance_uuid, resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE INDEX claims_standing ON claims (standing) WHERE standing IN ('pending', 'owed', 'sent');
CREATE INDEX claims_unheld ON claims (told_generation) WHERE standing = '' AND told_generation <
  0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE TRIGGER claims_leave_removal AFTER DELETE ON claims WHEN OLD.standing IN ('pending',
  'written', 'sent') BEGIN INSERT INTO removals (claim_id, consumer, told_generation,
  told_elsewhere, told_until, unsure) VALUES (OLD.id, OLD.instance_uuid, OLD.told_generation,
  OLD.told_elsewhere, OLD.told_until, OLD.standing <> 'written');END;
UPDATE versions SET version = 3;

-- 2 79ced10
DROP TABLE removals;
DROP TABLE claims;
CREATE TABLE claims ( id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, node TEXT NOT
  NULL, instance_uuid TEXT NOT NULL, vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb
  INTEGER NOT NULL, pci TEXT NOT NULL, resize_target INTEGER NOT NULL CHECK (resize_target IN
  (0, 1)), created_at TEXT NOT NULL, created_usec INTEGER NOT NULL, state TEXT NOT NULL CHECK
  (state IN ('claimed', 'confirmed')), expires_usec INTEGER NOT NULL DEFAULT 0, project_id TEXT
  NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', consumer_type TEXT NOT NULL DEFAULT '',
  request TEXT NOT NULL, boot_id TEXT NOT NULL DEFAULT '', placed INTEGER NOT NULL DEFAULT 1
  CHECK (placed IN (0, 1)), write_state TEXT NOT NULL DEFAULT '' CHECK (write_state IN ('',
  'pending', 'written', 'owed', 'sent')), reported_generation INTEGER NOT NULL DEFAULT 0,
  reported_elsewhere TEXT NOT NULL DEFAULT '', reported_until INTEGER NOT NULL DEFAULT 0, guest
  TEXT NOT NULL DEFAULT '', life TEXT NOT NULL DEFAULT '', UNIQUE (instance_uuid,
  resize_target));
CREATE INDEX claims_expires ON claims (expires_usec) WHERE state = 'claimed' AND expires_usec >
  0;
CREATE INDEX claims_unplaced ON claims (id) WHERE placed = 0;
CREATE INDEX claims_write_state ON claims (write_state) WHERE write_state IN ('pending', 'owed',
  'sent');
CREATE INDEX claims_unheld ON claims (reported_generation) WHERE write_state = '' AND
  reported_generation < 0;
CREATE TRIGGER claims_insert AFTER INSERT ON claims BEGIN UPDATE claim_counts SET claims =
  claims + 1;END;
CREATE TRIGGER claims_delete AFTER DELETE ON claims BEGIN UPDATE claim_counts SET claims =
  claims - 1;END;
CREATE TABLE removals ( id INTEGER PRIMARY KEY AUTOINCREMENT, claim_id INTEGER NOT NULL,
  consumer TEXT NOT NULL, reported_generation INTEGER NOT NULL DEFAULT 0, reported_elsewhere
  TEXT NOT NULL DEFAULT '', reported_until INTEGER NOT NULL DEFAULT 0, unsure INTEGER NOT NULL
  DEFAULT 0);
CREATE TRIGGER claims_leave_removal AFTER DELETE ON claims WHEN OLD.write_state IN ('pending',
  'written', 'sent') BEGIN INSERT INTO removals (claim_id, consumer, reported_generation,
  reported_elsewhere, reported_until, unsure) VALUES (OLD.id, OLD.instance_uuid,
  OLD.reported_generation, OLD.reported_elsewhere, OLD.reported_until, OLD.write_state <>
  'written');END;
UPDATE versions SET version = 2;

-- 9 8e2a5d1
DROP TABLE ended_claims;
DROP TABLE claim_devices;
CREATE TABLE ended_claims ( number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL UNIQUE,
  host TEXT NOT NULL, node TEXT NOT NULL, instance_uuid TEXT NOT NULL, resize_target INTEGER NOT
  NULL, created_usec INTEGER NOT NULL, expires_usec INTEGER NOT NULL, project_id TEXT NOT NULL,
  user_id TEXT NOT NULL, request TEXT NOT NULL, boot_id TEXT NOT NULL, ended_usec INTEGER NOT
  NULL, end_reason TEXT NOT NULL, consumer_type TEXT NOT NULL DEFAULT '', allocations TEXT NOT
  NULL DEFAULT '[]', devices TEXT NOT NULL DEFAULT '[]', cells TEXT NOT NULL DEFAULT '[]', cpus
  TEXT NOT NULL DEFAULT '[]');
CREATE TABLE claim_devices ( id INTEGER PRIMARY KEY, claim_id INTEGER NOT NULL REFERENCES claims
  (id) ON DELETE CASCADE, provider_uuid TEXT NOT NULL, request_group TEXT NOT NULL, device TEXT
  NOT NULL, address TEXT NOT NULL, mdev_type TEXT NOT NULL, mdev_uuid TEXT NOT NULL, identity
  TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX claim_devices_mdev ON claim_devices (mdev_uuid) WHERE mdev_uuid <> '';
CREATE UNIQUE INDEX claim_devices_whole ON claim_devices (device) WHERE mdev_uuid = '';
CREATE INDEX claim_devices_claim ON claim_devices (claim_id);
CREATE INDEX claim_devices_device ON claim_devices (device);
CREATE INDEX claim_devices_address ON claim_devices (address);
CREATE TRIGGER claim_devices_insert AFTER INSERT ON claim_devices WHEN NEW.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = NEW.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE id
  = NEW.claim_id;END;
CREATE TRIGGER claim_devices_delete AFTER DELETE ON claim_devices WHEN OLD.mdev_uuid = '' BEGIN
  UPDATE claims SET pci = (SELECT ifnull(group_concat(address, ', '), '') FROM (SELECT address
  FROM claim_devices WHERE claim_id = OLD.claim_id AND mdev_uuid = '' ORDER BY address)) WHERE id
  = OLD.claim_id;END;
UPDATE versions SET version = 9;

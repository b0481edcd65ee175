/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every statement of the store: its name, its SQL, and the row types (declared in frame.h) that its
 * SQL refers to, in their order. In the SQL, "%" is the columns of a row, "#" the same as items of
 * a JSON list, and "$" a "?" for each column so far (columns_format()). This is no ordinary header.
 * It is included where STATEMENT is defined, for the numbers (object.h) and for the texts
 * (frame.c). */

#define LIVING      "SELECT %, %, %, % FROM claims c"
#define LIVING_ROWS &owner_row, &claim_row, &living_row, &reported_row
#define ENDED       "SELECT %, %, % FROM ended_claims c"
#define ENDED_ROWS  &owner_row, &claim_row, &ended_row

/* Parts of claims, by a range of claim ids. The "+" keeps SQLite from a scan of all ended claims in
 * the order of numbers when one claim is read. */
#define OF_CLAIMS " WHERE claim_id BETWEEN ?1 AND ?2 ORDER BY claim_id"
#define ENDED_ITEMS(list)                                              \
        "SELECT ended_claims.id, # FROM ended_claims, json_each(" list \
        ") WHERE ended_claims.id BETWEEN ?1 AND ?2 ORDER BY +ended_claims.number DESC, key"

/* Allocations of one claim, provider and class. */
#define OF_PROVIDER                                                   \
        " JOIN resource_providers p ON p.id = a.resource_provider_id" \
        " WHERE a.claim_id = ?1 AND p.uuid = ?2 AND a.resource_class = ?3"

/* Largest number of allocations, and of devices, that an event of a claim contains. */
#define EVENT_PARTS "64"

STATEMENT(BEGIN_READ, "BEGIN")
STATEMENT(END_READ, "ROLLBACK")
STATEMENT(BEGIN_PART, "SAVEPOINT part")
STATEMENT(END_PART, "RELEASE part")
STATEMENT(UNDO_PART, "ROLLBACK TO part")
STATEMENT(READ_VERSION, "PRAGMA data_version")
STATEMENT(READ_EPOCH, "SELECT epoch FROM provider_epoch")
STATEMENT(READ_PROVIDERS,
          "SELECT % FROM resource_providers p LEFT JOIN resource_providers above"
          " ON above.id = p.parent ORDER BY p.position, p.id",
          &provider_row)
STATEMENT(READ_INVENTORIES, "SELECT resource_provider_id, % FROM inventories", &inventory_row)
STATEMENT(READ_TRAITS, "SELECT resource_provider_id, % FROM provider_traits", &trait_row)
STATEMENT(READ_AGGREGATES, "SELECT resource_provider_id, % FROM provider_aggregates",
          &aggregate_row)
STATEMENT(READ_GENERATIONS, "SELECT id, % FROM resource_providers", &generation_row)
STATEMENT(READ_USAGES, "SELECT resource_provider_id, % FROM usages", &usage_row)
STATEMENT(BUMP_EPOCH, "UPDATE provider_epoch SET epoch = epoch + 1 WHERE epoch = ?1")
STATEMENT(INSERT_PROVIDER,
          "INSERT INTO resource_providers"
          " (uuid, name, parent, can_host, withheld, position)"
          " VALUES (?1, ?2, (SELECT id FROM resource_providers WHERE uuid = ?3), ?4, ?5, ?6)")
STATEMENT(UPDATE_PROVIDER,
          "UPDATE resource_providers SET generation = generation + 1, name = ?3,"
          " parent = (SELECT id FROM resource_providers WHERE uuid = ?4), can_host = ?5,"
          " withheld = ?6, uuid = ?7 WHERE id = ?1 AND generation = ?2")
/* Comes before an update of the provider that changes its uuid. */
STATEMENT(RENAME_OF_DEVICES,
          "UPDATE claim_devices SET provider_uuid = ?2"
          " WHERE provider_uuid = (SELECT uuid FROM resource_providers WHERE id = ?1)")
STATEMENT(DELETE_PROVIDER, "DELETE FROM resource_providers WHERE id = ?1 AND generation = ?2")
STATEMENT(SET_POSITION,
          "UPDATE resource_providers SET position = ?1 WHERE uuid = ?2 AND position <> ?1")
STATEMENT(DELETE_INVENTORIES, "DELETE FROM inventories WHERE resource_provider_id = ?1")
STATEMENT(INSERT_INVENTORY, "INSERT INTO inventories (%, resource_provider_id) VALUES ($, ?)",
          &inventory_row)
STATEMENT(DELETE_TRAITS, "DELETE FROM provider_traits WHERE resource_provider_id = ?1")
STATEMENT(INSERT_TRAIT, "INSERT INTO provider_traits VALUES (?1, ?2)")
STATEMENT(DELETE_AGGREGATES, "DELETE FROM provider_aggregates WHERE resource_provider_id = ?1")
STATEMENT(INSERT_AGGREGATE, "INSERT INTO provider_aggregates VALUES (?1, ?2)")
STATEMENT(BUMP_PROVIDER, "UPDATE resource_providers SET generation = generation + 1"
                         " WHERE id = ?1 AND generation = ?2")
STATEMENT(INSERT_CLAIM,
          "INSERT INTO claims (%, %, instance_uuid, created_at, reported_generation,"
          " reported_elsewhere, reported_until, vcpus, memory_mb, disk_gb, pci)"
          " VALUES ($, ?, ?, ?, ?, ?, 0, 0, 0, '')",
          &claim_row, &living_row)
STATEMENT(INSERT_ALLOCATION,
          "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class, used,"
          " claim_id, request_group) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT(FILL_CLAIM, "UPDATE claims SET vcpus = ?2, memory_mb = ?3, disk_gb = ?4,"
                      " placed = 1 WHERE id = ?1 AND placed <= ?5")
STATEMENT(NEXT_UNPLACED, "SELECT % FROM claims WHERE placed = 0 AND id > ?1 ORDER BY id LIMIT 1",
          &unplaced_row)
STATEMENT(CONFIRM, "UPDATE claims SET state = 'confirmed', expires_usec = 0 WHERE id = ?1"
                   " AND write_state <> 'pending'")
STATEMENT(EXTEND, "UPDATE claims SET expires_usec = ?2 WHERE id = ?1 AND state = 'claimed'")
STATEMENT(SET_REQUEST, "UPDATE claims SET request = ?2 WHERE id = ?1")
STATEMENT(SET_PROCESS, "UPDATE claims SET life = ?2 WHERE id = ?1")
STATEMENT(PROMOTE, "UPDATE claims SET resize_target = 0 WHERE resize_target = 1"
                   " AND state = 'confirmed' AND instance_uuid = ?1 AND NOT EXISTS"
                   " (SELECT 1 FROM claims WHERE instance_uuid = ?1 AND resize_target = 0)")
STATEMENT(FIND, LIVING " WHERE c.instance_uuid = ?1 AND c.resize_target = ?2", LIVING_ROWS)
STATEMENT(GET, LIVING " WHERE c.id = ?1", LIVING_ROWS)
STATEMENT(GET_ENDED, ENDED " WHERE c.id = ?1", ENDED_ROWS)
STATEMENT(LIST, LIVING " ORDER BY c.id", LIVING_ROWS)
STATEMENT(LIST_ENDED, ENDED " ORDER BY c.number DESC", ENDED_ROWS)
/* Yields 0 if no claim has expired. */
STATEMENT(NEXT_EXPIRED, "SELECT ifnull((SELECT id FROM claims WHERE state = 'claimed'"
                        " AND expires_usec > 0 AND expires_usec <= ?1"
                        " ORDER BY expires_usec, id LIMIT 1), 0)")
STATEMENT(END_CLAIM,
          "INSERT INTO ended_claims (id, instance_uuid, ended_usec, end_reason, %,"
          " allocations, devices, cells, cpus)"
          " SELECT id, instance_uuid, ?2, ?3, %,"
          " (SELECT json_group_array(json_array(%)) FROM allocations a JOIN resource_providers p"
          "  ON p.id = a.resource_provider_id WHERE a.claim_id = ?1),"
          " (SELECT json_group_array(json_array(%)) FROM"
          "  (SELECT * FROM claim_devices WHERE claim_id = ?1 ORDER BY id)),"
          " (SELECT json_group_array(json_array(%)) FROM"
          "  (SELECT * FROM claim_cells WHERE claim_id = ?1 ORDER BY cell)),"
          " (SELECT json_group_array(json_array(%)) FROM"
          "  (SELECT * FROM claim_cpus WHERE claim_id = ?1 ORDER BY vcpu))"
          " FROM claims WHERE id = ?1 AND (?4 = 0 OR state = 'claimed')",
          &claim_row, &claim_row, &allocation_row, &device_row, &cell_row, &cpu_row)
STATEMENT(BUMP_OF_CLAIM, "UPDATE resource_providers SET generation = generation + 1 WHERE id IN"
                         " (SELECT resource_provider_id FROM allocations WHERE claim_id = ?1)")
STATEMENT(DELETE_ALLOCATIONS, "DELETE FROM allocations WHERE claim_id = ?1")
STATEMENT(DELETE_CLAIM, "DELETE FROM claims WHERE id = ?1")
STATEMENT(TRIM_HISTORY, "DELETE FROM ended_claims"
                        " WHERE number <= (SELECT max(number) FROM ended_claims) - ?1")
STATEMENT(COUNT, "SELECT claims FROM claim_counts")
STATEMENT(INSERT_DEVICE, "INSERT INTO claim_devices (%, claim_id) VALUES ($, ?)", &device_row)
/* An identity is recorded once, and never replaced. One of vendor and product alone, such as
 * "10de:20b0", gets its serial number. */
STATEMENT(SET_IDENTITY, "UPDATE claim_devices SET identity = ?3"
                        " WHERE claim_id = ?1 AND address = ?2"
                        " AND identity IN ('', substr(?3, 1, 9))")
STATEMENT(LIST_IDENTITIES,
          "SELECT DISTINCT % FROM claim_devices"
          " WHERE address <> '' AND identity <> '' ORDER BY address, identity",
          &identity_row)
STATEMENT(READ_ALLOCATIONS,
          "SELECT claim_id, % FROM allocations a LEFT JOIN resource_providers p"
          " ON p.id = a.resource_provider_id" OF_CLAIMS,
          &allocation_row)
STATEMENT(READ_ENDED_ALLOCATIONS, ENDED_ITEMS("allocations"), &allocation_row)
STATEMENT(READ_DEVICES, "SELECT claim_id, % FROM claim_devices" OF_CLAIMS ", id", &device_row)
STATEMENT(READ_ENDED_DEVICES, ENDED_ITEMS("devices"), &device_row)
STATEMENT(TAKEN, "SELECT % FROM claim_devices ORDER BY mdev_uuid, address", &taken_row)
/* Devices of no living claim that were not proved to be clean. */
STATEMENT(TAKEN_UNCLEAN,
          "SELECT % FROM (SELECT '' AS mdev_uuid, device, address, '' AS mdev_type"
          " FROM unclean_devices WHERE address NOT IN (SELECT address FROM claim_devices))",
          &taken_row)
STATEMENT(LIST_UNCLEAN, "SELECT % FROM unclean_devices ORDER BY address", &unclean_row)
/* The row gets a new id, so no earlier result counts for it. */
STATEMENT(MARK_UNCLEAN,
          "INSERT OR REPLACE INTO unclean_devices (address, device, identity, consumer, claim_id,"
          " since_usec, state, reason, fresh) SELECT ?1, ?2, ?3,"
          " ifnull((SELECT instance_uuid FROM claims WHERE id = ?4), ?8), ?4, ?5, ?6, ?7,"
          " NOT EXISTS (SELECT 1 FROM unclean_devices WHERE address = ?1)")
/* A device of a living claim stays held. */
STATEMENT(SET_UNCLEAN, "UPDATE unclean_devices SET state = ?3, reason = ?4, since_usec = ?5"
                       " WHERE id = ?1 AND state = ?2 AND NOT EXISTS (SELECT 1 FROM claim_devices d"
                       " WHERE d.address = unclean_devices.address)")
STATEMENT(END_UNCLEAN, "DELETE FROM unclean_devices WHERE id = ?1 AND state = ?2 AND NOT EXISTS"
                       " (SELECT 1 FROM claim_devices d WHERE d.address = unclean_devices.address)")
/* Only a poll that began after the end of the claim shows that its guest is gone. */
STATEMENT(NOTE_END_UNCLEAN, "UPDATE unclean_devices SET since_usec = ?2"
                            " WHERE claim_id = ?1 AND state = 'held'")
STATEMENT(FORGET_UNCLEAN, "DELETE FROM unclean_devices WHERE claim_id = ?1 AND fresh = 1")
STATEMENT(LIST_DEVICE,
          LIVING " WHERE c.id IN (SELECT claim_id FROM claim_devices"
                 " WHERE device = ?1 OR address = ?1 OR (mdev_uuid = ?1 AND mdev_uuid <> ''))"
                 " ORDER BY c.id",
          LIVING_ROWS)
STATEMENT(LIST_WITH_DEVICES,
          "SELECT % FROM claim_devices d JOIN claims c ON c.id = d.claim_id GROUP BY d.claim_id"
          " ORDER BY d.claim_id",
          &owner_row)
STATEMENT(LIST_GUEST, LIVING " WHERE c.instance_uuid = ?1 OR c.guest = ?1 ORDER BY c.id",
          LIVING_ROWS)
STATEMENT(READ_SHARE, "SELECT % FROM allocations a" OF_PROVIDER " ORDER BY a.request_group LIMIT 1",
          &share_row)
/* Sums one allocation or none, so that there is always one row. */
STATEMENT(READ_PART, "SELECT ifnull(sum(a.used), 0) FROM allocations a" OF_PROVIDER
                     " AND a.request_group = ?4")
STATEMENT(DELETE_PART, "DELETE FROM allocations WHERE claim_id = ?1 AND resource_class = ?3"
                       " AND request_group = ?4 AND resource_provider_id ="
                       " (SELECT id FROM resource_providers WHERE uuid = ?2)")
STATEMENT(INSERT_PART,
          "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class, used,"
          " claim_id, request_group) SELECT p.id, c.instance_uuid, ?3, ?5, c.id, ?4"
          " FROM claims c, resource_providers p WHERE c.id = ?1 AND p.uuid = ?2")
/* Moves the devices whose provider is one of the two. The name of such a provider ends with the
 * device's name or address. */
STATEMENT(SHIFT_DEVICES, "UPDATE claim_devices SET provider_uuid = ?3 WHERE id IN"
                         " (SELECT DISTINCT d.id FROM claim_devices d, resource_providers p"
                         " WHERE d.claim_id = ?1 AND d.provider_uuid = ?2 AND d.request_group = ?4"
                         " AND p.uuid IN (?2, ?3) AND (substr(p.name, -length(d.device)) = d.device"
                         " OR (d.address <> '' AND substr(p.name, -length(d.address)) = d.address))"
                         " ORDER BY d.id LIMIT ?5)")
/* Finds the provider by its name, as SHIFT_DEVICES does, among the allocations of the claim. */
STATEMENT(FIND_PROVIDERS,
          "UPDATE claim_devices AS d SET provider_uuid = p.uuid"
          " FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id"
          " WHERE d.claim_id = ?1 AND a.claim_id = ?1 AND a.request_group = d.request_group"
          " AND d.provider_uuid NOT IN (SELECT uuid FROM resource_providers)"
          " AND (substr(p.name, -length(d.device)) = d.device"
          " OR (d.address <> '' AND substr(p.name, -length(d.address)) = d.address))")
STATEMENT(LIST_SOME,
          LIVING " WHERE c.id IN (SELECT id FROM claims WHERE id > ?1"
                 " ORDER BY id LIMIT ?2) ORDER BY c.id",
          LIVING_ROWS)
STATEMENT(INSERT_CELL, "INSERT INTO claim_cells (%, claim_id) VALUES ($, ?)", &cell_row)
STATEMENT(INSERT_CPU, "INSERT INTO claim_cpus (%, claim_id) VALUES ($, ?)", &cpu_row)
STATEMENT(DELETE_PIN, "DELETE FROM claim_pins WHERE cpu = ?1 AND claim_id = ?2")
STATEMENT(INSERT_PIN, "INSERT INTO claim_pins (cpu, claim_id) VALUES (?1, ?2)")
STATEMENT(HAS_CELLS, "SELECT EXISTS (SELECT 1 FROM claim_cells WHERE claim_id = ?1)")
STATEMENT(READ_CELLS, "SELECT claim_id, % FROM claim_cells" OF_CLAIMS ", cell", &cell_row)
STATEMENT(READ_CPUS, "SELECT claim_id, % FROM claim_cpus" OF_CLAIMS ", vcpu", &cpu_row)
STATEMENT(READ_HELD,
          "SELECT claim_id, % FROM claim_pins WHERE claim_id BETWEEN ?1 AND ?2 GROUP BY claim_id"
          " ORDER BY claim_id",
          &held_row)
STATEMENT(READ_ENDED_CELLS, ENDED_ITEMS("cells"), &cell_row)
STATEMENT(READ_ENDED_CPUS, ENDED_ITEMS("cpus"), &cpu_row)
STATEMENT(READ_CELL_USAGES, "SELECT % FROM cell_usages", &cell_usage_row)
STATEMENT(READ_ALL_HELD, "SELECT % FROM claim_pins", &held_row)
STATEMENT(SET_BOOT, "UPDATE claims SET boot_id = ?2 WHERE id = ?1")
STATEMENT(SET_WRITE_STATE, "UPDATE claims SET write_state = ?3,"
                           " reported_generation = iif(?5 = '', reported_generation, ?4),"
                           " reported_elsewhere = iif(?5 = '', reported_elsewhere, ?5),"
                           " reported_until = iif(?5 = '', reported_until, ?6)"
                           " WHERE id = ?1 AND write_state = ?2")
STATEMENT(FORGET_REPORTED, "UPDATE claims SET reported_elsewhere = ''")
STATEMENT(FORGET_REMOVALS, "UPDATE removals SET reported_elsewhere = ''")
STATEMENT(LIST_PENDING,
          LIVING " WHERE c.write_state = 'pending'"
                 " AND " IS_UNDER_WAY " ORDER BY c.id",
          LIVING_ROWS)
STATEMENT(NEXT_WRITE,
          LIVING " WHERE c.id = (SELECT min(id) FROM"
                 " (SELECT min(id) AS id FROM claims WHERE write_state = 'owed'"
                 " AND " IS_UNDER_WAY " AND id > ?1 UNION ALL"
                 " SELECT min(id) FROM claims WHERE write_state = 'sent'"
                 " AND " IS_UNDER_WAY " AND id > ?1))",
          LIVING_ROWS)
STATEMENT(COUNT_PENDING_WRITES, "SELECT %", &pending_writes_row)
STATEMENT(NEXT_REMOVAL,
          "SELECT % FROM removals WHERE id > ?1 AND (?2 = '' OR consumer = ?2) ORDER BY id LIMIT 1",
          &removal_row)
STATEMENT(END_REMOVAL, "DELETE FROM removals WHERE id = ?1")
STATEMENT(BEGIN_MOVE, "INSERT INTO moves (claim_id, from_consumer, to_consumer, to_type)"
                      " SELECT id, instance_uuid, ?2, ?3 FROM claims WHERE id = ?1"
                      " AND write_state <> 'pending'")
STATEMENT(NEXT_MOVE, "SELECT % FROM moves WHERE id > ?1 ORDER BY id LIMIT 1", &move_row)
STATEMENT(END_MOVE, "DELETE FROM moves WHERE id = ?1")
STATEMENT(HAND_OVER,
          "UPDATE claims SET instance_uuid = ?2, consumer_type = ?3,"
          " guest = CASE guest WHEN ?2 THEN '' WHEN '' THEN instance_uuid ELSE guest"
          " END, reported_generation = ?4, reported_elsewhere = ?5,"
          " reported_until = ?7, write_state = iif(?6 AND write_state = '', 'written', write_state)"
          " WHERE id = (SELECT claim_id FROM moves WHERE id = ?1)")
STATEMENT(ADD_REMOVAL, "INSERT INTO removals (claim_id, consumer, reported_generation,"
                       " reported_elsewhere, reported_until) VALUES (0, ?1, ?2, ?3, ?4)")
STATEMENT(HAND_OVER_ALLOCATIONS, "UPDATE allocations SET consumer_id = ?2"
                                 " WHERE claim_id = (SELECT claim_id FROM moves WHERE id = ?1)")
STATEMENT(PASS_MOVE, "UPDATE moves SET claim_id = ?2 WHERE claim_id = ?1")
STATEMENT(PROBE, "UPDATE versions SET version = version + ?1")
STATEMENT(NOTE, "INSERT INTO events (usec, kind, uid, author, claim_id, consumer, guest,"
                " allocations, devices, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', '[]',"
                " iif(?7 = '', '[]', json_array(json_object('device', ?7))), ?8)")
STATEMENT(NOTE_CLAIM,
          "INSERT INTO events (usec, kind, uid, author, claim_id, consumer, guest,"
          " allocations, devices, reason) SELECT ?2, ?3, ?4, ?5, id, instance_uuid, guest,"
          " (SELECT json_group_array(json_object('name', name, 'class', class,"
          "  'amount', amount)) FROM (SELECT p.name AS name, a.resource_class AS class,"
          "  sum(a.used) AS amount FROM allocations a JOIN resource_providers p"
          "  ON p.id = a.resource_provider_id WHERE a.claim_id = ?1"
          "  GROUP BY p.id, a.resource_class ORDER BY p.position, a.resource_class"
          "  LIMIT " EVENT_PARTS ")),"
          " (SELECT json_group_array(json_object('device', device, 'address', address,"
          "  'mdev', mdev_uuid)) FROM (SELECT * FROM claim_devices WHERE claim_id = ?1"
          "  ORDER BY id LIMIT " EVENT_PARTS ")), ?6 FROM claims WHERE id = ?1")
STATEMENT(FORGET_EVENTS, "DELETE FROM events WHERE claim_id = ?1")
STATEMENT(TRIM_EVENTS, "DELETE FROM events WHERE id <= max((SELECT max(id) FROM events) - ?1,"
                       " (SELECT id FROM events WHERE usec >= ?2 ORDER BY id LIMIT 1) - 1)")
STATEMENT(LAST_EVENT, "SELECT ifnull(max(id), 0) FROM events")
STATEMENT(LIST_RELEASES,
          "SELECT % FROM events e WHERE kind = '" EVENT_RELEASED "' AND usec > ?1"
          " ORDER BY id DESC",
          &event_row)
STATEMENT(LIST_EVENTS,
          "SELECT % FROM events e WHERE id < ?1 AND NOT EXISTS (SELECT 1 FROM claims c"
          " WHERE c.id = e.claim_id AND c.write_state = 'pending') ORDER BY id DESC LIMIT ?2",
          &event_row)

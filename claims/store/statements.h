/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every statement of the store: its name and its text. No header of the usual kind: it is included
 * where STATEMENT(name, sql) is defined, for the numbers (store-internal.h) and the texts
 * (store.c).
 */

/* With that of the index claims_unheld: read, and not there. */
#define IS_UNHELD(c) c "write_state = '' AND " c "reported_generation < 0"

/* The columns that store-claims.c reads, in its order. */
#define CLAIM_COLUMNS                                                                       \
        "c.id, c.instance_uuid, c.state, c.resize_target, c.host, c.node, c.project_id,"    \
        " c.user_id, c.request, c.boot_id, c.created_usec, c.expires_usec, 0, '',"          \
        " c.consumer_type, c.write_state, c.guest, c.reported_elsewhere <> '', " IS_UNHELD( \
                "c.") ", c.life,"                                                           \
                      " p.uuid, a.used, p.name, a.resource_class, a.request_group"          \
                      " FROM claims c LEFT JOIN allocations a ON a.claim_id = c.id"         \
                      " LEFT JOIN resource_providers p ON p.id = a.resource_provider_id"
#define ENDED_COLUMNS                                                                       \
        "c.id, c.instance_uuid, 'released', c.resize_target, c.host, c.node, c.project_id," \
        " c.user_id, c.request, c.boot_id, c.created_usec, c.expires_usec, c.ended_usec,"   \
        " c.end_reason, c.consumer_type, '', '', 1, 0, '', json_extract(a.value, '$[0]'),"  \
        " json_extract(a.value, '$[3]'), json_extract(a.value, '$[1]'),"                    \
        " json_extract(a.value, '$[2]'), json_extract(a.value, '$[4]')"                     \
        " FROM ended_claims c LEFT JOIN json_each(c.allocations) a"

/* The items of a list, in the columns in which a living claim has them. */
#define THREE_ITEMS                                                        \
        "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')," \
        " json_extract(value, '$[2]')"
#define SEVEN_ITEMS SIX_ITEMS ", json_extract(value, '$[6]')"
#define SIX_ITEMS                                                                 \
        THREE_ITEMS ", json_extract(value, '$[3]'), json_extract(value, '$[4]')," \
                    " json_extract(value, '$[5]')"

/* Allocations of a claim, a provider and a class. */
#define OF_PROVIDER                                                   \
        " JOIN resource_providers p ON p.id = a.resource_provider_id" \
        " WHERE a.claim_id = ?1 AND p.uuid = ?2 AND a.resource_class = ?3"

/* The condition of the index claims_write_state, without which it serves no query. */
#define IS_UNDER_WAY "write_state IN ('pending', 'owed', 'sent')"

/* Of what a claim holds, so many pieces are written down, and as many devices: an event is no
 * larger. */
#define EVENT_PARTS "64"

STATEMENT(READ_VERSION, "PRAGMA data_version")
STATEMENT(READ_EPOCH, "SELECT epoch FROM provider_epoch")
STATEMENT(READ_PROVIDERS, "SELECT p.id, p.generation, p.withheld, p.uuid, p.name, above.uuid"
                          " FROM resource_providers p LEFT JOIN resource_providers above"
                          " ON above.id = p.parent ORDER BY p.position, p.id")
STATEMENT(READ_INVENTORIES,
          "SELECT resource_provider_id, resource_class, total, reserved, min_unit, max_unit,"
          " step_size, allocation_ratio FROM inventories")
STATEMENT(READ_TRAITS, "SELECT resource_provider_id, trait FROM provider_traits")
STATEMENT(READ_AGGREGATES, "SELECT resource_provider_id, aggregate FROM provider_aggregates")
STATEMENT(READ_GENERATIONS, "SELECT id, generation FROM resource_providers")
STATEMENT(READ_USAGES, "SELECT resource_provider_id, resource_class, used FROM usages")
STATEMENT(BUMP_EPOCH, "UPDATE provider_epoch SET epoch = epoch + 1 WHERE epoch = ?1")
STATEMENT(INSERT_PROVIDER,
          "INSERT INTO resource_providers"
          " (uuid, name, parent, can_host, withheld, position)"
          " VALUES (?1, ?2, (SELECT id FROM resource_providers WHERE uuid = ?3), ?4, ?5, ?6)")
STATEMENT(UPDATE_PROVIDER,
          "UPDATE resource_providers SET generation = generation + 1, name = ?3,"
          " parent = (SELECT id FROM resource_providers WHERE uuid = ?4), can_host = ?5,"
          " withheld = ?6, uuid = ?7 WHERE id = ?1 AND generation = ?2")
STATEMENT(DELETE_PROVIDER, "DELETE FROM resource_providers WHERE id = ?1 AND generation = ?2")
STATEMENT(SET_POSITION,
          "UPDATE resource_providers SET position = ?1 WHERE uuid = ?2 AND position <> ?1")
STATEMENT(DELETE_INVENTORIES, "DELETE FROM inventories WHERE resource_provider_id = ?1")
STATEMENT(INSERT_INVENTORY,
          "INSERT INTO inventories (resource_provider_id, resource_class, total, reserved,"
          " min_unit, max_unit, step_size, allocation_ratio)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
STATEMENT(DELETE_TRAITS, "DELETE FROM provider_traits WHERE resource_provider_id = ?1")
STATEMENT(INSERT_TRAIT, "INSERT INTO provider_traits VALUES (?1, ?2)")
STATEMENT(DELETE_AGGREGATES, "DELETE FROM provider_aggregates WHERE resource_provider_id = ?1")
STATEMENT(INSERT_AGGREGATE, "INSERT INTO provider_aggregates VALUES (?1, ?2)")
STATEMENT(BUMP_PROVIDER, "UPDATE resource_providers SET generation = generation + 1"
                         " WHERE id = ?1 AND generation = ?2")
STATEMENT(INSERT_CLAIM,
          "INSERT INTO claims (host, node, instance_uuid, vcpus, memory_mb, disk_gb, pci,"
          " resize_target, created_at, created_usec, state, expires_usec, project_id,"
          " user_id, request, boot_id, consumer_type, write_state, reported_generation,"
          " reported_elsewhere, reported_until, life)"
          " VALUES (?1, ?2, ?3, 0, 0, 0, '', ?4, ?5, ?6, ?12, ?7, ?8, ?9, ?10, ?11, ?13,"
          " ?14, ?15, ?16, ?17, ?18)")
STATEMENT(INSERT_ALLOCATION,
          "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class, used,"
          " claim_id, request_group) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT(FILL_CLAIM, "UPDATE claims SET vcpus = ?2, memory_mb = ?3, disk_gb = ?4,"
                      " placed = 1 WHERE id = ?1")
STATEMENT(NEXT_UNPLACED,
          "SELECT id, instance_uuid, node, vcpus, memory_mb, disk_gb, pci FROM claims"
          " WHERE placed = 0 AND id > ?1 ORDER BY id LIMIT 1")
STATEMENT(CONFIRM, "UPDATE claims SET state = 'confirmed', expires_usec = 0 WHERE id = ?1"
                   " AND write_state <> 'pending'")
STATEMENT(EXTEND, "UPDATE claims SET expires_usec = ?2 WHERE id = ?1 AND state = 'claimed'")
STATEMENT(SET_LIFE, "UPDATE claims SET life = ?2 WHERE id = ?1")
STATEMENT(PROMOTE, "UPDATE claims SET resize_target = 0 WHERE resize_target = 1"
                   " AND state = 'confirmed' AND instance_uuid = ?1 AND NOT EXISTS"
                   " (SELECT 1 FROM claims WHERE instance_uuid = ?1 AND resize_target = 0)")
STATEMENT(FIND, "SELECT " CLAIM_COLUMNS " WHERE c.instance_uuid = ?1 AND c.resize_target = ?2")
STATEMENT(GET, "SELECT " CLAIM_COLUMNS " WHERE c.id = ?1")
STATEMENT(GET_ENDED, "SELECT " ENDED_COLUMNS " WHERE c.id = ?1")
STATEMENT(LIST, "SELECT " CLAIM_COLUMNS " ORDER BY c.id")
STATEMENT(LIST_ENDED, "SELECT " ENDED_COLUMNS " ORDER BY c.number DESC")
STATEMENT(NEXT_EXPIRED, "SELECT id FROM claims WHERE state = 'claimed' AND expires_usec > 0"
                        " AND expires_usec <= ?1 ORDER BY expires_usec, id LIMIT 1")
STATEMENT(END_CLAIM,
          "INSERT INTO ended_claims (id, host, node, instance_uuid, resize_target,"
          " created_usec, expires_usec, project_id, user_id, request, boot_id, ended_usec,"
          " end_reason, consumer_type, allocations, devices, cells, cpus)"
          " SELECT id, host, node, instance_uuid, resize_target, created_usec, expires_usec,"
          " project_id, user_id, request, boot_id, ?2, ?3, consumer_type,"
          " (SELECT json_group_array(json_array(p.uuid, p.name, a.resource_class, a.used,"
          "  a.request_group)) FROM allocations a JOIN resource_providers p"
          "  ON p.id = a.resource_provider_id WHERE a.claim_id = ?1),"
          " (SELECT json_group_array(json_array(provider_uuid, request_group, device,"
          "  address, mdev_type, mdev_uuid, identity)) FROM"
          "  (SELECT * FROM claim_devices WHERE claim_id = ?1 ORDER BY id)),"
          " (SELECT json_group_array(json_array(cell, host_cell, memory_mb, page_kib, vcpus,"
          "  n_shared)) FROM (SELECT * FROM claim_cells WHERE claim_id = ?1 ORDER BY cell)),"
          " (SELECT json_group_array(json_array(vcpu, dedicated, cpus)) FROM"
          "  (SELECT * FROM claim_cpus WHERE claim_id = ?1 ORDER BY vcpu))"
          " FROM claims WHERE id = ?1 AND (?4 = 0 OR state = 'claimed')")
STATEMENT(BUMP_OF_CLAIM, "UPDATE resource_providers SET generation = generation + 1 WHERE id IN"
                         " (SELECT resource_provider_id FROM allocations WHERE claim_id = ?1)")
STATEMENT(DELETE_ALLOCATIONS, "DELETE FROM allocations WHERE claim_id = ?1")
STATEMENT(DELETE_CLAIM, "DELETE FROM claims WHERE id = ?1")
STATEMENT(TRIM_HISTORY, "DELETE FROM ended_claims"
                        " WHERE number <= (SELECT max(number) FROM ended_claims) - ?1")
STATEMENT(COUNT, "SELECT claims FROM claim_counts")
STATEMENT(INSERT_DEVICE,
          "INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device,"
          " address, mdev_type, mdev_uuid, identity) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
/* An identity is recorded once, and never replaced. */
STATEMENT(SET_IDENTITY, "UPDATE claim_devices SET identity = ?3"
                        " WHERE claim_id = ?1 AND address = ?2 AND identity = ''")
STATEMENT(LIST_IDENTITIES, "SELECT DISTINCT address, identity FROM claim_devices"
                           " WHERE address <> '' AND identity <> '' ORDER BY address, identity")
STATEMENT(READ_DEVICES, "SELECT provider_uuid, request_group, device, address,"
                        " mdev_type, mdev_uuid, identity, claim_id FROM claim_devices"
                        " WHERE claim_id >= ?1 ORDER BY claim_id, id")
STATEMENT(READ_ENDED_DEVICES, SEVEN_ITEMS ", ended_claims.id FROM ended_claims, json_each(devices)"
                                          " WHERE ended_claims.id = ?1")
STATEMENT(TAKEN, "SELECT mdev_uuid, device, address FROM claim_devices"
                 " ORDER BY mdev_uuid, address")
STATEMENT(LIST_DEVICE, "SELECT " CLAIM_COLUMNS " WHERE c.id IN (SELECT claim_id FROM claim_devices"
                       " WHERE device = ?1 OR address = ?1 OR (mdev_uuid = ?1 AND mdev_uuid <> ''))"
                       " ORDER BY c.id")
STATEMENT(LIST_WITH_DEVICES,
          "SELECT d.provider_uuid, d.request_group, d.device, d.address, d.mdev_type,"
          " d.mdev_uuid, d.identity, d.claim_id, c.instance_uuid FROM claim_devices d"
          " JOIN claims c ON c.id = d.claim_id ORDER BY d.claim_id, d.id")
STATEMENT(LIST_GUEST,
          "SELECT " CLAIM_COLUMNS " WHERE c.instance_uuid = ?1 OR c.guest = ?1 ORDER BY c.id")
STATEMENT(READ_SHARE, "SELECT a.request_group, a.used FROM allocations a" OF_PROVIDER
                      " ORDER BY a.request_group LIMIT 1")
STATEMENT(READ_PART, "SELECT a.used FROM allocations a" OF_PROVIDER " AND a.request_group = ?4")
STATEMENT(DELETE_PART, "DELETE FROM allocations WHERE claim_id = ?1 AND resource_class = ?3"
                       " AND request_group = ?4 AND resource_provider_id ="
                       " (SELECT id FROM resource_providers WHERE uuid = ?2)")
STATEMENT(INSERT_PART,
          "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class, used,"
          " claim_id, request_group) SELECT p.id, c.instance_uuid, ?3, ?5, c.id, ?4"
          " FROM claims c, resource_providers p WHERE c.id = ?1 AND p.uuid = ?2")
/* of one of the two providers it is the device: a name ends with its device's */
STATEMENT(SHIFT_DEVICES, "UPDATE claim_devices SET provider_uuid = ?3 WHERE id IN"
                         " (SELECT DISTINCT d.id FROM claim_devices d, resource_providers p"
                         " WHERE d.claim_id = ?1 AND d.provider_uuid = ?2 AND d.request_group = ?4"
                         " AND p.uuid IN (?2, ?3) AND (substr(p.name, -length(d.device)) = d.device"
                         " OR (d.address <> '' AND substr(p.name, -length(d.address)) = d.address))"
                         " ORDER BY d.id LIMIT ?5)")
STATEMENT(LIST_SOME, "SELECT " CLAIM_COLUMNS " WHERE c.id IN (SELECT id FROM claims WHERE id > ?1"
                     " ORDER BY id LIMIT ?2) ORDER BY c.id")
STATEMENT(INSERT_CELL,
          "INSERT INTO claim_cells (claim_id, cell, host_cell, memory_mb, page_kib, vcpus,"
          " n_shared) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
STATEMENT(INSERT_CPU, "INSERT INTO claim_cpus (claim_id, vcpu, dedicated, cpus)"
                      " VALUES (?1, ?2, ?3, ?4)")
STATEMENT(DELETE_PIN, "DELETE FROM claim_pins WHERE cpu = ?1 AND claim_id = ?2")
STATEMENT(INSERT_PIN, "INSERT INTO claim_pins (cpu, claim_id) VALUES (?1, ?2)")
STATEMENT(HAS_CELLS, "SELECT 1 FROM claim_cells WHERE claim_id = ?1 LIMIT 1")
STATEMENT(READ_CELLS, "SELECT cell, host_cell, memory_mb, page_kib, vcpus, n_shared, claim_id"
                      " FROM claim_cells WHERE claim_id >= ?1 ORDER BY claim_id, cell")
STATEMENT(READ_CPUS, "SELECT vcpu, dedicated, cpus, claim_id FROM claim_cpus"
                     " WHERE claim_id >= ?1 ORDER BY claim_id, vcpu")
STATEMENT(READ_PINS, "SELECT cpu, claim_id FROM claim_pins WHERE claim_id >= ?1 ORDER BY claim_id")
STATEMENT(READ_ENDED_CELLS, SIX_ITEMS ", ended_claims.id FROM ended_claims, json_each(cells)"
                                      " WHERE ended_claims.id = ?1")
STATEMENT(READ_ENDED_CPUS, THREE_ITEMS ", ended_claims.id FROM ended_claims, json_each(cpus)"
                                       " WHERE ended_claims.id = ?1")
STATEMENT(READ_CELL_USAGES, "SELECT host_cell, page_kib, memory_mb, n_shared FROM cell_usages")
STATEMENT(READ_ALL_PINS, "SELECT cpu FROM claim_pins")
STATEMENT(SET_BOOT, "UPDATE claims SET boot_id = ?2 WHERE id = ?1")
STATEMENT(SET_WRITE_STATE, "UPDATE claims SET write_state = ?3,"
                           " reported_generation = iif(?5 = '', reported_generation, ?4),"
                           " reported_elsewhere = iif(?5 = '', reported_elsewhere, ?5),"
                           " reported_until = iif(?5 = '', reported_until, ?6)"
                           " WHERE id = ?1 AND write_state = ?2")
STATEMENT(FORGET_REPORTED, "UPDATE claims SET reported_elsewhere = ''")
STATEMENT(FORGET_REMOVALS, "UPDATE removals SET reported_elsewhere = ''")
STATEMENT(LIST_PENDING, "SELECT " CLAIM_COLUMNS " WHERE c.write_state = 'pending'"
                        " AND c." IS_UNDER_WAY " ORDER BY c.id")
STATEMENT(NEXT_WRITE, "SELECT " CLAIM_COLUMNS " WHERE c.id = (SELECT min(id) FROM"
                      " (SELECT min(id) AS id FROM claims WHERE write_state = 'owed'"
                      " AND " IS_UNDER_WAY " AND id > ?1 UNION ALL"
                      " SELECT min(id) FROM claims WHERE write_state = 'sent'"
                      " AND " IS_UNDER_WAY " AND id > ?1))")
STATEMENT(COUNT_OWED, "SELECT (SELECT COUNT(*) FROM claims WHERE " IS_UNDER_WAY
                      " AND write_state <> 'pending'),"
                      " (SELECT COUNT(*) FROM removals), (SELECT COUNT(*) FROM moves),"
                      " (SELECT ifnull(max(id), 0) FROM removals),"
                      " (SELECT COUNT(*) FROM claims WHERE " IS_UNHELD("") ")")
STATEMENT(NEXT_REMOVAL, "SELECT id, claim_id, consumer, unsure, reported_generation,"
                        " reported_elsewhere, reported_until FROM removals"
                        " WHERE id > ?1"
                        " AND (?2 = '' OR consumer = ?2) ORDER BY id LIMIT 1")
STATEMENT(END_REMOVAL, "DELETE FROM removals WHERE id = ?1")
STATEMENT(BEGIN_MOVE, "INSERT INTO moves (from_consumer, to_consumer, to_type)"
                      " SELECT instance_uuid, ?2, ?3 FROM claims WHERE instance_uuid = ?1"
                      " AND resize_target = 0 AND write_state <> 'pending'")
STATEMENT(NEXT_MOVE, "SELECT id, from_consumer, to_consumer, to_type FROM moves"
                     " WHERE id > ?1 ORDER BY id LIMIT 1")
STATEMENT(END_MOVE, "DELETE FROM moves WHERE id = ?1")
STATEMENT(HAND_OVER,
          "UPDATE claims SET instance_uuid = ?2, consumer_type = ?3,"
          " guest = CASE guest WHEN ?2 THEN '' WHEN '' THEN ?1 ELSE guest"
          " END, reported_generation = ?4, reported_elsewhere = ?5,"
          " reported_until = ?7, write_state = iif(?6 AND write_state = '', 'written', write_state)"
          " WHERE instance_uuid = ?1 AND resize_target = 0")
STATEMENT(ADD_REMOVAL, "INSERT INTO removals (claim_id, consumer, reported_generation,"
                       " reported_elsewhere, reported_until) VALUES (0, ?1, ?2, ?3, ?4)")
STATEMENT(HAND_OVER_ALLOCATIONS,
          "UPDATE allocations SET consumer_id = ?1 WHERE claim_id IN"
          " (SELECT id FROM claims WHERE instance_uuid = ?1 AND resize_target = 0)")
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
STATEMENT(LIST_EVENTS,
          "SELECT id, usec, uid, claim_id, kind, author, consumer, guest, allocations,"
          " devices, reason FROM events e WHERE id < ?1 AND NOT EXISTS (SELECT 1 FROM claims c"
          " WHERE c.id = e.claim_id AND c.write_state = 'pending') ORDER BY id DESC LIMIT ?2")

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests: the mechanism in test-columns, the tables in all tests of claims. */

#include "claims/store/rows.h"

#include "claims/store/object.h"

#define MEMORY_MAX UINT64_C(0x7fffffffff) /* MiB; more is damage */

ROW(owner, Claim, "claim", COLUMN("c.id", Claim, id), COLUMN("instance_uuid", Claim, consumer));

ROW(claim, Claim, "claim", COLUMN("resize_target", Claim, resize_target),
    COLUMN("host", Claim, host), COLUMN("node", Claim, node),
    COLUMN("project_id", Claim, project_id), COLUMN("user_id", Claim, user_id),
    COLUMN("request", Claim, request), COLUMN("boot_id", Claim, boot_id),
    COLUMN("created_usec", Claim, created_usec), COLUMN("expires_usec", Claim, expires_usec),
    COLUMN("consumer_type", Claim, consumer_type));

ROW(living, Claim, "claim", COLUMN_ENUM("state", Claim, state, claim_state),
    COLUMN_ENUM("write_state", Claim, write_state, claim_write_state),
    COLUMN_OPTIONAL("guest", Claim, guest), COLUMN("life", Claim, life));

ROW(reported, Claim, "claim", COLUMN("reported_elsewhere <> ''", Claim, was_read),
    COLUMN(IS_UNHELD, Claim, is_unheld));

ROW(ended, Claim, "claim", COLUMN("ended_usec", Claim, ended_usec),
    COLUMN("end_reason", Claim, end_reason));

ROW(allocation, AllocationRow, "an allocation of claim", COLUMN("uuid", AllocationRow, provider),
    COLUMN("name", AllocationRow, provider_name),
    COLUMN("resource_class", AllocationRow, resource_class), COLUMN("used", AllocationRow, used),
    COLUMN("request_group", AllocationRow, group));

ROW(device, ClaimDevice, "a device of claim", COLUMN("provider_uuid", ClaimDevice, provider),
    COLUMN_BORROW("request_group", ClaimDevice, suffix), COLUMN_BORROW("device", ClaimDevice, name),
    COLUMN_BORROW("address", ClaimDevice, address),
    COLUMN_BORROW("mdev_type", ClaimDevice, mdev_type),
    COLUMN_OPTIONAL("mdev_uuid", ClaimDevice, mdev),
    COLUMN_BORROW("identity", ClaimDevice, identity, .optional = true));

ROW(cell, LayoutCell, "a cell of claim", COLUMN("cell", LayoutCell, cell),
    COLUMN("host_cell", LayoutCell, host_cell),
    COLUMN_WITH("memory_mb", LayoutCell, memory_mb, .max = MEMORY_MAX),
    COLUMN_WITH("page_kib", LayoutCell, page_kib, .max = MEMORY_MAX),
    COLUMN("vcpus", LayoutCell, vcpus),
    COLUMN_WITH("n_shared", LayoutCell, n_shared, .max = CPU_SET_MAX));

ROW(cpu, LayoutCpu, "a CPU of claim", COLUMN_WITH("vcpu", LayoutCpu, vcpu, .max = CPU_SET_MAX),
    COLUMN("dedicated", LayoutCpu, dedicated), COLUMN("cpus", LayoutCpu, cpus));

ROW(held, HeldRow, "held host CPUs", COLUMN("ifnull(group_concat(cpu), '')", HeldRow, cpus));

ROW(share, ShareRow, "an allocation", COLUMN("a.request_group", ShareRow, group),
    COLUMN("a.used", ShareRow, used));

ROW(taken, TakenRow, "a claimed device", COLUMN_OPTIONAL("mdev_uuid", TakenRow, mdev),
    COLUMN("device", TakenRow, device), COLUMN("address", TakenRow, address));

ROW(identity, ClaimedDevice, "a claimed device", COLUMN("address", ClaimedDevice, address),
    COLUMN("identity", ClaimedDevice, identity));

ROW(unplaced, StoreUnplaced, "claim", COLUMN("id", StoreUnplaced, id),
    COLUMN("instance_uuid", StoreUnplaced, consumer), COLUMN("node", StoreUnplaced, node),
    COLUMN("vcpus", StoreUnplaced, vcpus), COLUMN("memory_mb", StoreUnplaced, memory_mb),
    COLUMN("disk_gb", StoreUnplaced, disk_gb), COLUMN("pci", StoreUnplaced, pci));

ROW(provider, ProviderRow, "provider", COLUMN("p.id", ProviderRow, provider.id),
    COLUMN("p.generation", ProviderRow, provider.generation),
    COLUMN("p.withheld", ProviderRow, provider.withheld), COLUMN("p.uuid", ProviderRow, uuid),
    COLUMN("p.name", ProviderRow, name), COLUMN_OPTIONAL("above.uuid", ProviderRow, parent));

ROW(generation, HostProvider, "provider", COLUMN("generation", HostProvider, generation));

ROW(inventory, InventoryRow, "an inventory of provider",
    COLUMN("resource_class", InventoryRow, resource_class),
    COLUMN("total", InventoryRow, inventory.total),
    COLUMN("reserved", InventoryRow, inventory.reserved),
    COLUMN("min_unit", InventoryRow, inventory.min_unit),
    COLUMN("max_unit", InventoryRow, inventory.max_unit),
    COLUMN("step_size", InventoryRow, inventory.step_size),
    COLUMN("allocation_ratio", InventoryRow, inventory.allocation_ratio));

ROW(trait, TextRow, "a trait of provider", COLUMN("trait", TextRow, text));

ROW(aggregate, TextRow, "an aggregate of provider", COLUMN("aggregate", TextRow, text));

ROW(usage, UsageRow, "a usage of provider", COLUMN("resource_class", UsageRow, resource_class),
    COLUMN("used", UsageRow, used));

ROW(cell_usage, HostCellUsage, "host cell", COLUMN("host_cell", HostCellUsage, host_cell),
    COLUMN_WITH("page_kib", HostCellUsage, page_kib, .max = MEMORY_MAX),
    COLUMN("memory_mb", HostCellUsage, memory_mb), COLUMN("n_shared", HostCellUsage, n_shared));

ROW(event, Event, "event", COLUMN("id", Event, id), COLUMN("usec", Event, usec),
    COLUMN("uid", Event, uid), COLUMN("claim_id", Event, claim), COLUMN("kind", Event, kind),
    COLUMN("author", Event, author), COLUMN("consumer", Event, consumer),
    COLUMN("guest", Event, guest), COLUMN("allocations", Event, allocations),
    COLUMN("devices", Event, devices), COLUMN("reason", Event, reason));

ROW(removal, ClaimRemoval, "removal", COLUMN("id", ClaimRemoval, id),
    COLUMN("claim_id", ClaimRemoval, claim), COLUMN("consumer", ClaimRemoval, consumer),
    COLUMN("unsure", ClaimRemoval, unsure),
    COLUMN("reported_generation", ClaimRemoval, reported.generation),
    COLUMN_OPTIONAL("reported_elsewhere", ClaimRemoval, reported.elsewhere),
    COLUMN("reported_until", ClaimRemoval, reported.until_sec));

ROW(move, ClaimMove, "move", COLUMN("id", ClaimMove, id), COLUMN("from_consumer", ClaimMove, from),
    COLUMN("to_consumer", ClaimMove, to), COLUMN("to_type", ClaimMove, to_type));

ROW(owed, ClaimsOwed, "the pending writes",
    COLUMN("(SELECT COUNT(*) FROM claims WHERE " IS_UNDER_WAY " AND write_state <> 'pending')",
           ClaimsOwed, n_writes),
    COLUMN("(SELECT COUNT(*) FROM removals)", ClaimsOwed, n_removals),
    COLUMN("(SELECT COUNT(*) FROM moves)", ClaimsOwed, n_moves),
    COLUMN("(SELECT ifnull(max(id), 0) FROM removals)", ClaimsOwed, last_removal),
    COLUMN("(SELECT COUNT(*) FROM claims WHERE " IS_UNHELD ")", ClaimsOwed, n_unheld));

/* Of a statement whose SQL yields one number. */
ROW(integer, IntegerRow, "a query", COLUMN("the number", IntegerRow, value));

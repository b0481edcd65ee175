/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses libvirt's capabilities in both ways, and makes a tree of NUMA cells from the result. */

#include "drivers/libvirt/capabilities.h"
#include "drivers/update.h"
#include "tests/fuzz/fuzz.h"

static void make_tree(Snapshot *snapshot)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const HostConfig config = { .numa_in_placement = true, .owner_trait = "" };
        Uuid root;

        if (provider_tree_new(&tree) < 0 ||
            uuid_from_text("aaaaaaaa-0000-4000-8000-000000000001", &root) < 0 ||
            provider_tree_add(tree, &root, "host", NULL, NULL, NULL) < 0)
                abort();
        if (snapshot->n_cells > 0 && snapshot->cells[0].n_cpus > 0 &&
            cpu_set_add(&snapshot->online_cpus, snapshot->cells[0].cpus[0].id) < 0)
                abort();
        if (snapshot_seal(snapshot, NULL) == 0)
                (void)provider_update(&config, snapshot, NULL, tree, "host", NULL, NULL);
}

void fuzz_text(const char *text)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_(guest_capabilities_done) GuestCapabilities guests = { 0 };
        _cleanup_free_ char *xml = NULL;

        if (snapshot_new(&snapshot) < 0)
                abort();
        if (capabilities_parse(text, snapshot, NULL) == 0)
                make_tree(snapshot);
        if (guest_capabilities_parse(text, "qemu", &guests, NULL) == 0)
                (void)cpu_model_format(guests.cpu_arch, guests.cpu_model, guests.cpu_vendor,
                                       &guests.cpu_features, &xml);
}

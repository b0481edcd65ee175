/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-facts.h"

#include "drivers/mdev-plan.h"

static void add_devices(const MdevPlan *plan, HostFacts *facts)
{
        for (size_t i = 0; i < plan->n_offers; i++) {
                const MdevOffer *offer = &plan->offers[i];

                /* no mdev is to be named for it */
                if (offer->device->is_vgpu_function)
                        continue;
                facts->devices[facts->n_devices++] = (HostDevice){
                        .name = offer->device->name,
                        .address = offer->device->address,
                        .mdev_type = offer->type->type,
                        .resource_class = offer->type->mdev_class,
                        .available = offer->total - offer->existing,
                };
        }
}

static void add_mdevs(const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                facts->mdevs[facts->n_mdevs++] = (HostMdev){
                        .uuid = snapshot->mdevs[i].uuid,
                        .device = snapshot->mdevs[i].parent,
                        .type = snapshot->mdevs[i].type,
                };
}

static void add_domains(const Snapshot *snapshot, HostFacts *facts)
{
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &snapshot->domains[i];

                facts->domains[facts->n_domains++] = (HostDomain){
                        .uuid = domain->uuid,
                        .name = domain->name,
                        .running = domain->state != DOMAIN_SHUTOFF,
                        .vcpus = domain->vcpus,
                        .memory_mb = domain->memory_kib / 1024 + (domain->memory_kib % 1024 > 0),
                        .mdevs = domain->mdevs,
                        .n_mdevs = domain->n_mdevs,
                };
        }
}

int claim_facts_make(const DriverConfig *config, const Snapshot *snapshot, HostFacts *ret)
{
        _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };

        if (mdev_plan_make(config, snapshot, &plan) < 0)
                return -ENOMEM;
        ret->devices = calloc(plan.n_offers + 1, sizeof(HostDevice));
        ret->mdevs = calloc(snapshot->n_mdevs + 1, sizeof(HostMdev));
        ret->domains = calloc(snapshot->n_domains + 1, sizeof(HostDomain));
        if (!ret->devices || !ret->mdevs || !ret->domains) {
                claim_facts_done(ret);
                return -ENOMEM;
        }
        ret->taken_usec = snapshot->taken_realtime_usec;
        add_devices(&plan, ret);
        add_mdevs(snapshot, ret);
        add_domains(snapshot, ret);
        return 0;
}

void claim_facts_done(HostFacts *facts)
{
        free(facts->devices);
        free(facts->mdevs);
        free(facts->domains);
        *facts = (HostFacts){ 0 };
}

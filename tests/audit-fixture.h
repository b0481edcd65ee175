/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For the tests of audits: consumers and claims written as one line of text. Holdings are
 * "VCPU=2@host VGPU=1@gpu"; the uuid of a provider follows from its name (tests/claims-fixture.h),
 * that of a consumer from its letter (tests/host-facts-fixture.h). */

#include "base/allocation.h"
#include "tests/claims-fixture.h"
#include "tests/host-facts-fixture.h"
#include "tests/test.h"

/* Calls add(provider, class, amount, userdata) for each word. */
static inline void audit_each(const char *text,
                              void (*add)(const char *provider, const char *resource_class,
                                          uint64_t amount, void *userdata),
                              void *userdata)
{
        while (*text) {
                char resource_class[64], provider[64];
                unsigned amount;
                int n = 0;

                assert_int_equal(sscanf(text, " %63[^=]=%u@%63[^ ]%n", resource_class, &amount,
                                        provider, &n),
                                 3);
                add(provider, resource_class, amount, userdata);
                text += n;
        }
}

static inline void audit_add_held(const char *provider, const char *resource_class, uint64_t amount,
                                  void *userdata)
{
        const Uuid uuid = make_uuid(provider);

        assert_int_equal(consumer_add(userdata, &uuid, resource_class, amount), 0);
}

static inline void audit_add_claimed(const char *provider, const char *resource_class,
                                     uint64_t amount, void *userdata)
{
        const Uuid uuid = make_uuid(provider);

        assert_int_equal(claim_add(userdata, &uuid, provider, "", resource_class, amount), 0);
}

static inline Consumer *audit_consumer(Allocations *allocations, char letter, const char *type,
                                       const char *held)
{
        const Uuid uuid = make_guest(letter);
        Consumer *consumer;

        assert_int_equal(allocations_ensure(allocations, &uuid, &consumer), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->type = strdup(type);
        consumer->generation = 7;
        audit_each(held, audit_add_held, consumer);
        return consumer;
}

/* Confirmed; the caller frees or gives it to a list. */
static inline Claim *audit_claim(char letter, const char *held)
{
        Claim *claim;

        assert_int_equal(claim_new(&claim), 0);
        claim->id = letter;
        claim->consumer = make_guest(letter);
        claim->state = CLAIM_STATE_CONFIRMED;
        audit_each(held, audit_add_claimed, claim);
        return claim;
}

/* "VCPU=2@host VGPU=1@gpu" of providers of the tree, in its order; "?" for others. */
static inline void audit_format(const Consumer *consumer, const ProviderTree *tree,
                                char text[static 256])
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < tree->n_providers; i++) {
                const Resources *held = consumer_find(consumer, &tree->providers[i]->uuid);

                for (size_t j = 0; held && j < held->n_items; j++)
                        n += (size_t)snprintf(text + n, 256 - n, "%s%s=%u@%s", n > 0 ? " " : "",
                                              held->items[j].resource_class,
                                              (unsigned)held->items[j].amount,
                                              tree->providers[i]->name);
        }
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (!provider_tree_find(tree, &consumer->allocations[i].provider))
                        n += (size_t)snprintf(text + n, 256 - n, " ?");
}

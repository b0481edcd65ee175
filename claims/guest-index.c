/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sorted arrays of keys that point to claims, guests and devices. A claim has a key for its
 * consumer, and one for its guest if a migration took it over. Keys of one uuid are in the order of
 * claim ids. Everything that keys point to is borrowed, and must live as long as the picture. The
 * functions of a picture that was not made find nothing. */

#include "claims/picture.h"

#include <string.h>

#include "base/text.h"

void picture_done(Picture *picture)
{
        free(picture->known.items);
        free(picture->guests.items);
        free(picture->mdevs.items);
        free(picture->pci);
        *picture = (Picture){ 0 };
}

static int order_keys(const void *a, const void *b)
{
        return uuid_order(&((const PictureKey *)a)->uuid, &((const PictureKey *)b)->uuid);
}

/* Orders keys of one uuid by the ids of their claims, so that the first one is the oldest claim. */
static int order_claims(const void *a, const void *b)
{
        const Claim *x = ((const PictureKey *)a)->of, *y = ((const PictureKey *)b)->of;
        int r = order_keys(a, b);

        return r != 0 ? r : x->id < y->id ? -1 : x->id > y->id;
}

static void add_key(PictureKeys *keys, const Uuid *uuid, const void *of)
{
        keys->items[keys->n_items++] = (PictureKey){ .uuid = *uuid, .of = of };
}

/* Fills the arrays, which picture_make() allocated large enough. */
static void add_keys(Picture *picture)
{
        const HostFacts *facts = picture->facts;

        for (size_t i = 0; i < picture->claims->n_claims; i++) {
                const Claim *claim = picture->claims->claims[i];

                add_key(&picture->known, &claim->consumer, claim);
                if (!uuid_empty(&claim->guest))
                        add_key(&picture->known, &claim->guest, claim);
        }
        for (size_t i = 0; i < facts->n_domains; i++)
                add_key(&picture->guests, &facts->domains[i].uuid, &facts->domains[i]);
        for (size_t i = 0; i < picture->n_lives; i++)
                add_key(&picture->guests, &picture->lives[i].uuid, &picture->lives[i]);
        for (size_t i = 0; i < facts->n_mdevs; i++)
                add_key(&picture->mdevs, &facts->mdevs[i].uuid, &facts->mdevs[i]);
        for (size_t i = 0; i < facts->n_pci; i++)
                picture->pci[picture->n_pci++] = facts->pci[i].address;
}

int picture_make(Picture *picture)
{
        const HostFacts *facts = picture->facts;

        picture->known.items = calloc(2 * picture->claims->n_claims + 1, sizeof(PictureKey));
        picture->guests.items = calloc(facts->n_domains + picture->n_lives + 1, sizeof(PictureKey));
        picture->mdevs.items = calloc(facts->n_mdevs + 1, sizeof(PictureKey));
        picture->pci = calloc(facts->n_pci + 1, sizeof(char *));
        if (!picture->known.items || !picture->guests.items || !picture->mdevs.items ||
            !picture->pci)
                return -ENOMEM;
        add_keys(picture);
        qsort(picture->known.items, picture->known.n_items, sizeof(PictureKey), order_claims);
        qsort(picture->guests.items, picture->guests.n_items, sizeof(PictureKey), order_keys);
        qsort(picture->mdevs.items, picture->mdevs.n_items, sizeof(PictureKey), order_keys);
        qsort(picture->pci, picture->n_pci, sizeof(char *), text_order);
        return 0;
}

/* Returns the first of *ret_n keys with this uuid. The result must not be read if *ret_n is 0. */
static const PictureKey *find(const PictureKeys *keys, const Uuid *uuid, size_t *ret_n)
{
        size_t low = 0, high = keys->n_items, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (uuid_order(&keys->items[middle].uuid, uuid) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < keys->n_items && uuid_equal(&keys->items[end].uuid, uuid);)
                end++;
        *ret_n = end - low;
        return keys->items + low;
}

const PictureKey *picture_claims(const Picture *picture, const Uuid *uuid, size_t *ret_n)
{
        return find(&picture->known, uuid, ret_n);
}

/* Returns a claim of the consumer by its position in the order of ids. */
static const Claim *claim_at(const Picture *picture, const Uuid *consumer, size_t place)
{
        size_t n;
        const PictureKey *keys = picture_claims(picture, consumer, &n);

        for (size_t i = 0; i < n; i++) {
                const Claim *claim = keys[i].of;

                if (uuid_equal(&claim->consumer, consumer) && place-- == 0)
                        return claim;
        }
        return NULL;
}

const Claim *picture_claim(const Picture *picture, const Uuid *consumer)
{
        return claim_at(picture, consumer, 0);
}

const Claim *picture_second_claim(const Picture *picture, const Uuid *consumer)
{
        return claim_at(picture, consumer, 1);
}

bool picture_has_claim(const Picture *picture, const Uuid *guest, const Claim *but)
{
        size_t n;
        const PictureKey *keys = picture_claims(picture, guest, &n);

        for (size_t i = 0; i < n; i++)
                if (keys[i].of != but)
                        return true;
        return false;
}

const HostDomain *picture_domain(const Picture *picture, const Uuid *uuid)
{
        size_t n;
        const PictureKey *keys = find(&picture->guests, uuid, &n);

        return n > 0 ? keys[0].of : NULL;
}

const HostDomain *picture_guest(const Picture *picture, const Claim *claim)
{
        return picture_domain(picture,
                              uuid_empty(&claim->guest) ? &claim->consumer : &claim->guest);
}

bool picture_has_mdev(const Picture *picture, const Uuid *mdev)
{
        size_t n;

        (void)find(&picture->mdevs, mdev, &n);
        return n > 0;
}

bool picture_has_pci(const Picture *picture, const char *address)
{
        return picture->n_pci > 0 &&
               bsearch(&address, picture->pci, picture->n_pci, sizeof(char *), text_order);
}

static int order_consumers(const void *a, const void *b)
{
        return uuid_order(&((const PictureConsumer *)a)->consumer,
                          &((const PictureConsumer *)b)->consumer);
}

const PictureConsumer *picture_find(const PictureConsumer *consumers, size_t n,
                                    const Uuid *consumer)
{
        const PictureConsumer key = { .consumer = *consumer };

        return n > 0 ? bsearch(&key, consumers, n, sizeof(key), order_consumers) : NULL;
}

PicturePlace picture_place(const Picture *picture, const Uuid *consumer)
{
        const PictureConsumer *found =
                picture_find(picture->consumers, picture->n_consumers, consumer);

        if (!found)
                return PICTURE_UNREAD;
        if (found->here)
                return PICTURE_HERE;
        return found->holding && found->holding->n_allocations > 0 ? PICTURE_ELSEWHERE
                                                                   : PICTURE_NOWHERE;
}

bool picture_can_be_migration(const Picture *picture, const Consumer *consumer)
{
        const char *type = consumer->type ? consumer->type : "unknown";

        return (strcmp(type, "unknown") == 0 || strcmp(type, "MIGRATION") == 0) &&
               !picture_domain(picture, &consumer->uuid);
}

GuestSize guest_size_of_claim(const Claim *claim)
{
        return (GuestSize){ .cpus = claim_sum(claim, "VCPU") + claim_sum(claim, "PCPU"),
                            .memory_mb = claim_sum(claim, "MEMORY_MB") };
}

GuestSize guest_size_of_consumer(const Consumer *consumer)
{
        return (GuestSize){ .cpus = consumer_sum(consumer, "VCPU") + consumer_sum(consumer, "PCPU"),
                            .memory_mb = consumer_sum(consumer, "MEMORY_MB") };
}

bool guest_size_covers(GuestSize size, const HostDomain *domain)
{
        return size.cpus >= domain->vcpus && size.memory_mb >= domain->memory_mb;
}

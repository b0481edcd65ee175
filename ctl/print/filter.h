/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Selects the claims and events that are shown. Documents are those of CLAIMS_FORMAT and
 * EVENTS_FORMAT. The functions are pure, except for the time zone. They change the document that
 * they get. */

#include "base/error.h"
#include "ctl/print/json.h"

/* A filter. All members must match. A member that is NULL or 0 matches everything. Texts are
 * borrowed. */
typedef struct CtlFilter {
        const char *guest;   /* uuid of the consumer or of a migration's guest; name of the guest's
                                domain */
        const char *device;  /* name, PCI address or mdev of a device; name of a provider, and for
                                claims its uuid, which events do not have */
        const char *state;   /* the state of a claim, or the kind of an event */
        uint64_t since_usec; /* CLOCK_REALTIME */
} CtlFilter;

/* Returns true if the filter has a member. */
static inline bool ctl_filter_selects(const CtlFilter *filter)
{
        return filter->guest || filter->device || filter->state || filter->since_usec > 0;
}

/* Sets since_usec from the text of --since (NULL: none): "today", "yesterday", "-2h" (s, sec, min,
 * m, h, d, day, days, w; also "2h ago") or "2026-11-20[ 10:00[:00]]" in the local time zone. A span
 * that begins before 1970 becomes 1 µs. Then checks the state against the states of claims, or the
 * kinds of events. Returns -EINVAL with words, also for a date before 1970. */
int ctl_filter_complete(CtlFilter *filter, const char *since, bool events, uint64_t now_usec,
                        Error *reterr);

/* Removes the claims of a document of CLAIMS_FORMAT, or the events of one of EVENTS_FORMAT, that do
 * not match. A claim matches since_usec if it was created or ended since then. */
void ctl_filter_apply(const CtlFilter *filter, json_t *document);

/* Adds the member "guests" of a drain of the host: guests of the host's document that are not shut
 * off and have no claim in the document of CLAIMS_FORMAT. Each has a uuid and a name. Returns
 * -ENOMEM if memory ran out. */
int ctl_claims_add_guests(json_t *document, const json_t *host);

/* Removes the claims that have neither the device (libvirt's name, PCI address, uuid of an mdev)
 * nor an allocation of the provider (name or uuid). A claim has a card also by one of its virtual
 * functions, or by an allocation of its provider. Then adds the member "guests" of
 * ctl_claims_find(), and with only uuid and name the guests without any claim that might use it:
 * for a device or set those that cannot be read, for another provider those that are not shut off.
 * host, tree: the documents of the host. An unknown name is an error, because a typing error would
 * look like a free device. Returns -ENODEV if the host has neither such a device (libvirt's name,
 * PCI address) nor such a provider, or -ENOMEM, with words. */
int ctl_claims_keep(json_t *document, const json_t *host, const json_t *tree, const char *name,
                    Error *reterr);

/* Removes the claims that do not match the word: a host CPU ("cpu:5"), a host cell ("cell:1"), or
 * any other word. For that, a claim matches if ctl_claims_keep() would keep it, or by the uuid of
 * its consumer, or the uuid or name of its guest. Then adds a member "guests": guests of the host's
 * document that have the device, or a virtual function or an mdev of the card, and no claim in the
 * list. Both definitions of a domain count, live and persistent. For that, the word is an mdev's
 * uuid, a PCI address, the name of a device, or its provider. The provider of a set stands for its
 * devices. host or tree NULL: it is unknown. Returns -ENOMEM if memory ran out. */
int ctl_claims_find(json_t *document, const json_t *host, const json_t *tree, const char *what);

/* Checks whether claims can be searched for that word: a device, the name of a domain, or cpu:N or
 * cell:N of the cells in the host's document. Any uuid counts too, because ended guests are not in
 * the document. */
bool ctl_host_has(const json_t *host, const char *what);

/* Keeps the events of that claim (number), guest (name or uuid), consumer, provider (name alone) or
 * device (libvirt's name, address, uuid of the mdev). An event whose reason contains a uuid that is
 * sought stays too. host NULL: the functions and the provider of a card are unknown. Returns
 * -ENOMEM if memory ran out. */
int ctl_events_find(json_t *document, const json_t *host, const char *what);

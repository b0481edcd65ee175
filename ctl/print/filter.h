/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which claims and events are shown. Documents are those of CLAIMS_FORMAT and EVENTS_FORMAT.
 * Besides the time zone, the functions are pure. */

#include "base/error.h"
#include "ctl/print/json.h"

/* A member that is NULL or 0 lets everything pass. Texts are borrowed. */
typedef struct CtlFilter {
        const char *guest;   /* uuid of the consumer, or name of its domain */
        const char *device;  /* name, PCI address or mdev of a device; name or uuid of a provider */
        const char *state;   /* the state of a claim, or the kind of an event */
        uint64_t since_usec; /* CLOCK_REALTIME */
} CtlFilter;

/* Parses "today", "yesterday", "-2h" (s, min, h, d, w; also "2h ago") or "2026-11-20[ 10:00[:00]]"
 * in the local time zone. -EINVAL with words. */
int ctl_filter_parse_time(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *reterr);

/* Checks the state against those of claims, or the kinds of events. -EINVAL with words. */
int ctl_filter_check_state(const CtlFilter *filter, bool events, Error *reterr);

/* Removes the claims of a document of CLAIMS_FORMAT that do not pass. A claim passes since_usec if
 * it was made or ended since then. */
void ctl_filter_claims(const CtlFilter *filter, json_t *document);

/* Removes the events of a document of EVENTS_FORMAT that do not pass. */
void ctl_filter_events(const CtlFilter *filter, json_t *document);

/* Removes the claims that neither have the device (libvirt's name, uuid of an mdev) nor hold
 * anything of the provider (name or uuid) of that name. */
void ctl_claims_keep(json_t *document, const char *name);

/* Removes the claims that ctl_claims_keep() would remove, unless they belong to the consumer or
 * guest, have the PCI address, or use the host CPU or part of the host cell ("cpu:5", "cell:1"). */
void ctl_claims_find(json_t *document, const char *what);

/* Adds a member "guests" to the claims: the guests of the host's document that have the device by
 * one of their definitions, and that no claim of the list belongs to. what is an mdev's uuid, a PCI
 * address or libvirt's name of a PCI device. -ENOMEM. */
int ctl_claims_add_guests(json_t *document, const json_t *host, const char *what);

/* Finds the device of the host's document with that name of libvirt's or PCI address, in letters of
 * either case. Borrowed, or NULL. */
const json_t *ctl_host_find_device(const json_t *host, const char *what);

/* Checks whether claims can be searched for that word: a device, guest, cpu:N or cell:N of the
 * host's document, or any uuid, since guests that ended are not in the document. */
bool ctl_host_has(const json_t *host, const char *what);

/* Keeps the events of that claim (by its number), guest (name or uuid), consumer, provider or
 * device (libvirt's name, address, uuid of the mdev). */
void ctl_events_find(json_t *document, const char *what);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl claims" and "claim": claims as tables, and finding some of them. Pure. The documents
 * are those of CLAIMS_FORMAT and CLAIM_FORMAT; what a claim has is said in
 * formats/claim-json.h. */

#include <jansson.h>

#include "base/error.h"
#include "ctl/print/page.h"

/* history: with the columns of ended claims. */
void ctl_claims_print(const json_t *document, bool history, CtlPage *page);

/* Drops the claims that neither have the device (libvirt's name, uuid of an mdev) nor hold anything
 * of the provider (name or uuid) that name is. */
void ctl_claims_keep(json_t *document, const char *name);

/* Drops those that neither ctl_claims_keep() keeps, nor are of the consumer or guest, nor have the
 * PCI address, nor use the host CPU or part of the host cell ("cpu:5", "cell:1") that what is. */
void ctl_claims_find(json_t *document, const char *what);

/* Adds a member "guests" to the claims: the guests of the host's document that have the device by
 * one of their definitions, and that no claim of the list belongs to. what is an mdev's uuid, a PCI
 * address or libvirt's name of a PCI device. -ENOMEM. */
int ctl_claims_add_guests(json_t *document, const json_t *host, const char *what);

/* Prints that member, a line for each guest. */
void ctl_claims_print_guests(const json_t *document, CtlPage *page);

/* The device of the host's document with that name of libvirt's or PCI address, in letters of
 * either case. Borrowed, or NULL. */
const json_t *ctl_host_find_device(const json_t *host, const char *what);

/* Whether that may be looked for in claims: a device, guest, cpu:N or cell:N of the host's
 * document. A UUID always, for those that ended are not in it. */
bool ctl_host_has(const json_t *host, const char *what);

/* Borrowed, or NULL. */
const json_t *ctl_claims_get(const json_t *document, uint64_t id);

/* A claim that was just made. */
void ctl_claim_print(const json_t *document, CtlPage *page);

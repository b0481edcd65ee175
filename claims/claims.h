/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims of this host's resources.
 *
 * This is the interface of the folder: callers use Claims, which fits the request
 * (claims/fit/fit.h, pure) and writes it. Functions that decide nothing, such as to list and to end
 * claims, are in claims/store/store.h, which this header includes. The folder uses no hypervisor,
 * no HTTP and no D-Bus.
 *
 * A claim is committed to disk before claims_claim() returns CLAIM_DONE (in a group, before the end
 * of the group returns 0). The transaction compares the generation of every provider that it uses
 * with the one that the fit saw (specification 1, "compare and update"). So two writers of one file
 * cannot allocate the same amount twice. After a lost race the request is fitted again, a bounded
 * number of times.
 *
 * Every call is synchronous on the main thread. A call that writes takes as long as the disk's
 * fsync. Each transaction of a call waits at most busy_usec longer if another process locks the
 * file, and the call then returns -EBUSY. It also returns -EBUSY after CLAIM_ATTEMPTS_MAX lost
 * races. Results above 0 are of ClaimOutcome (but for claims_open()), and have words in reterr,
 * with the exceptions of claims/store/store.h.
 *
 * A negative result leaves the stored data as it was, with two exceptions. Calls of several
 * transactions (claims_set_providers(), claims_check_again(), and claims_claim() for an existing
 * claim) keep those that were committed before the error. If the disk fails in the fsync of a
 * claim, that claim can exist after a crash, and is then treated as any other one. A new claim that
 * is not confirmed expires only if the rules have an expiry time. */

#include "claims/claim/claim-request.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/outcome.h"
#include "claims/fit/fit.h"
#include "claims/store/store.h"

#include "base/provider-tree.h"
#include "base/resource-request.h"
#include "base/string-set.h"

/* Longest CPU time on the main thread for fitting a claim, and for explaining a request. Every user
 * can ask for an explanation, so reading, explaining and answering together must take less than 50
 * ms. */
#define CLAIM_PATIENCE_USEC   (500 * USEC_PER_MSEC)
#define EXPLAIN_PATIENCE_USEC (25 * USEC_PER_MSEC)

/* Makes tree the host that claims are fitted to. Providers that tree lacks, but that claims still
 * use, are kept with their inventory, and no new claim fits there. An unchanged host is not
 * written. A changed provider gets the next generation. Claims of schema version 1 get their
 * providers afterwards, once the root and their PCI devices are known. Returns -EBUSY if the file
 * is locked. */
int claims_set_providers(Claims *claims, const ProviderTree *tree, Error *reterr);

/* Sets the node of new claims and of the fit (copied): the name of the host's root provider, which
 * is known only after the first poll. Returns -ENOMEM on failure. */
int claims_set_node(Claims *claims, const char *node);

/* Makes tree the host, and moves amounts between providers in the same transaction. Unlike
 * claims_set_providers() it does not place claims of schema version 1. Ignores the moves of claims
 * that have ended, and amounts that a claim no longer holds. All shifts of one claim must be
 * neighbours. Writes also if nothing changed. Returns -EBUSY if the file is locked, and -EINVAL if
 * the host lacks a provider that would get an amount. */
int claims_shift(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                 size_t n_shifts, Error *reterr);

/* Replaces the allocations of a living claim by those of share on this host's providers. Devices
 * and layout stay. Providers and classes that the host does not have are left out. The amounts are
 * stored whether they fit or not, all for the group without a suffix. Returns CLAIM_E_NOT_FOUND or
 * -EBUSY. */
int claims_complete(Claims *claims, int64_t id, const Consumer *share, Error *reterr);

/* Adds the shifts that change the allocations of one claim from before to after. Decreases are
 * paired with increases, first within a class and then between classes. An amount without a partner
 * gets no shift. The array (grown) borrows names from both. Returns -ENOMEM on failure; shifts that
 * were added before stay. */
int claims_make_shifts(int64_t claim, const Consumer *before, const Consumer *after,
                       StoreShift **shifts, size_t *n_shifts, size_t *n_allocated);

/* Replaces the rules. Initially they are all zero. */
void claims_set_rules(Claims *claims, const ClaimsRules *rules);

/* Sets the results of a poll, beside the providers. They are borrowed until the next call. NULL:
 * unknown. */
void claims_set_facts(Claims *claims, const HostFacts *facts);

/* Facts about a claim beside its request. */
typedef struct ClaimPlacing {
        const Consumer *holding; /* allocations that were chosen for it, and that it must get; NULL:
                                    the fit chooses */
        const RequestMappings *mappings; /* with holding: providers of groups; NULL: unknown */
        const Consumer *capacity; /* capacity that other consumers leave in the host's tree, an
                                 upper bound for a free fit; NULL: all that no claim has */
        bool others_full;         /* with capacity: the sharing providers have no capacity left */
        ClaimWriteState write_state;
        ClaimReported reported;
} ClaimPlacing;

/* Makes a claim. An equal request of the same consumer and role yields its existing claim
 * (idempotent). It renews the time of a claim that expired unconfirmed, and stores the identity of
 * a guest if given. A claim without a request text has an equal request if the amounts are equal. A
 * different request yields CLAIM_E_CONFLICT. A project or user that is not given is not compared.
 * Neither are the consumer type and the providers that the caller chose. The rules can reject a new
 * claim with CLAIM_E_NO_CAPACITY, but never an existing one.
 *
 * With placing NULL nothing is known, and the fit chooses. The fits of all attempts together take
 * at most CLAIM_PATIENCE_USEC and FIT_WORK_MAX; then the result is CLAIM_E_TOO_HARD. Allocations of
 * placing that are not on this host are no part of the claim (claims/fit/placed.h). The claim,
 * ret_claim, is owned by the caller, and written on CLAIM_DONE alone. If ret_ambiguous is not NULL,
 * it says on CLAIM_DONE whether groups could be exchanged, because nothing says which provider
 * serves which group. It is false for an existing claim. Returns CLAIM_E_OTHER if the allocations
 * do not match the request. Returns -EINVAL with words for a request that no host can serve
 * (claim_request_check()). */
int claims_claim(Claims *claims, const ClaimRequest *request, const ClaimPlacing *placing,
                 Claim **ret_claim, bool *ret_ambiguous, Error *reterr);

/* Checks whether a request would fit now, and which answer each provider with a requested class
 * gives to it. Returns an outcome as claims_claim() does, with its words, but looks for no claim of
 * a consumer. The rules reject here, too, as for a claim that is not placed. writes: a claim of the
 * request would be written to Placement. The fit takes at most patience_usec of CPU time; with 0
 * only FIT_WORK_MAX bounds it. Writes nothing. ret must be zeroed. */
int claims_explain(Claims *claims, const ResourceRequest *request, bool writes,
                   uint64_t patience_usec, FitVerdicts *ret, Error *reterr);

/* Makes a claim for a guest that exists and has none. The claim is of CLAIM_TYPE_GUEST and
 * confirmed. It is made whether it fits or not, and whatever the rules say, because the guest uses
 * its resources already. The new claim, ret_claim, is owned by the caller and set with the first
 * three results:
 *
 *   CLAIM_DONE           The guest has its claim.
 *   CLAIM_E_NO_CAPACITY  It has its claim, and the host has less than all claims need.
 *   CLAIM_E_CONFLICT     It has a claim without the devices and host CPUs that another claim has.
 *                        The claim also lacks mdevs that belong to no device of this host, and
 *                        devices of a set that are no partition. PCI devices that the host does not
 *                        count are left out without a conflict. But ret_claim is not set if nothing
 *                        can be counted, or if the guest has a claim already.
 *   Below 0 (-EBUSY, …)  It has no claim.
 *
 * A domain with devices needs claims_set_facts() before. */
int claims_adopt(Claims *claims, const HostDomain *domain, Claim **ret_claim, Error *reterr);

/* Makes a claim from the allocations that a consumer with neither claim nor guest has on this host,
 * whether they fit or not. The original request is unknown: the claim's request is "", and
 * claims_claim() answers a request of the same amounts with it. The claim expires unless it is
 * confirmed. The rules do not reject it. placing->holding has all allocations of the consumer, and
 * must not be NULL.
 *
 * Returns CLAIM_E_NO_CAPACITY with words if a device was not free, or cannot be chosen before the
 * first facts. The claim was made then, but names only the devices that were chosen before that
 * one. Returns CLAIM_E_OTHER if the consumer has no allocation on this host, CLAIM_E_CONFLICT if it
 * has a claim, or -EBUSY. ret_claim (owned by the caller) is set on CLAIM_DONE and
 * CLAIM_E_NO_CAPACITY. */
int claims_claim_placed(Claims *claims, const ClaimPlacing *placing, Claim **ret_claim,
                        Error *reterr);

/* Makes a claim from the allocations on this host of a server that is about to start, before its
 * domain exists. It names the devices of the given classes. Devices of other classes follow from
 * the domain. The claim is of CLAIM_TYPE_GUEST, like one that is made of the domain later, and
 * expires unless it is confirmed. The rules do not reject it. placing->holding has all allocations
 * of the consumer.
 *
 * Makes no claim and returns CLAIM_E_NO_CAPACITY with words if a device of the classes is not free,
 * or cannot be chosen before the first facts. Returns CLAIM_E_OTHER if the consumer has no
 * allocation on this host, CLAIM_E_CONFLICT if it has a claim, or -EBUSY. ret_claim (owned by the
 * caller) is set on CLAIM_DONE alone. */
int claims_claim_starting(Claims *claims, const ClaimPlacing *placing, const StringSet *classes,
                          Claim **ret_claim, Error *reterr);

/* Confirms the claim of a guest that runs, as claims_confirm() does. The request of a claim of
 * claims_claim_starting() first gets the CPUs and the memory of the domain. Placement can have more
 * of them (claim_beyond_domain()). */
int claims_confirm_guest(Claims *claims, int64_t id, const HostDomain *domain, Error *reterr);

/* Makes a claim for a guest that is about to start, from its domain. It counts as claims_adopt()
 * does, but only if all of it fits, with exactly the devices and host CPUs that the domain names.
 * PCI devices that the host does not count are left out. All terms of the inventories count, and
 * each class must be counted here (CLAIM_E_UNKNOWN_CLASS). A PCI device that is not clean is
 * CLAIM_E_CONFLICT. But while its cleaning is not due, the guest that had it last can have it, and
 * with gives_unclean any guest. A device that is reserved as a whole is refused, with three
 * exceptions. A cordon stops no guest: cordoned has the uuids of the providers with cordons (NULL:
 * none). A guest can have the device that it had last, or that the ended claim names. Nova reserves
 * devices for a server that it builds, which has a folder in instances_path; while the folders are
 * unknown, any guest can be such a server. The claim is of CLAIM_TYPE_GUEST, and expires unless it
 * is confirmed. The rules do not reject it, but decide whether it must be written to Placement.
 *
 * If another caller made a claim for the consumer, that claim is kept and yielded. So is the claim
 * of a running guest, and a claim of claims_claim_starting() that has the devices of the domain.
 * Any other claim of CLAIM_TYPE_GUEST is left over from an earlier start. It is ended in the same
 * transaction, and yielded in ret_ended (owned by the caller). It stays unless the result is
 * CLAIM_DONE. ret_ended is unchanged or NULL if no claim was ended, and ret_claim is unchanged
 * unless the result is CLAIM_DONE. Returns -EAGAIN before claims_set_facts(). Cannot be called in a
 * group. */
int claims_prepare(Claims *claims, const HostDomain *domain, const StringSet *cordoned,
                   Claim **ret_claim, Claim **ret_ended, Error *reterr);

/* Checks a living claim again. Candidates are claims of another boot, without the devices or
 * identities that they should have, without the cells of their guest, or with other host CPUs than
 * their guest. Afterwards the claim belongs to this boot, and names the devices that it lacked:
 * those of the guest, or free ones if domain is NULL (no guest yet). One of CLAIM_TYPE_GUEST gets
 * none without a domain. Known identities of its devices are recorded. Before the first facts no
 * device and no identity is. A claim without cells gets those of the guest. The claim holds the
 * host CPUs of the guest's layout that no other claim holds. A claim of CLAIM_TYPE_GUEST releases
 * host CPUs to which its guest's threads were pinned before. The layout stays if the domain was not
 * read, if a migration took the claim over, or if the guest has two claims.
 *
 * Returns CLAIM_E_NOT_FOUND or -EBUSY. Returns CLAIM_E_NO_CAPACITY with words if no device is free
 * for it, or its guest has none; it still belongs to this boot then. Sets *ret_changed to whether
 * the claim was written, beside any result. */
int claims_check_again(Claims *claims, int64_t id, const HostDomain *domain, bool *ret_changed,
                       Error *reterr);

/* Returns the boot ("": unknown) and the node of new claims, borrowed. */
const char *claims_boot_id(const Claims *claims);
const char *claims_node(const Claims *claims);

/* Yields the host as the last claims_set_providers() or claims_shift() stored it, also before this
 * start. A host without Placement thereby keeps the values that an operator set in it. Includes
 * withheld providers and the usage of each. Borrowed until the next call on claims. */
int claims_host(Claims *claims, const HostView **ret, Error *reterr);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims: what is promised on this host, on disk before it is promised.
 *
 * This is the face of the folder: whoever claims talks to Claims, which fits the request
 * (claims/fit/fit.h, pure) and writes it. What needs no decision, such as to list and to end
 * claims, is in claims/store/store.h, which comes with this. It knows no hypervisor, no HTTP and no
 * D-Bus.
 *
 * A claim is committed before claims_claim() returns. The transaction compares the generation of
 * every provider it uses with the one that the fit saw (specification 1, "compare and update"), so
 * that two writers of one file can never promise the same amount twice; a lost race is fitted
 * again, a bounded number of times.
 *
 * Every call is synchronous on the main thread and takes as long as the disk's fsync, and at most
 * busy_usec longer when another process holds the file: -EBUSY then, as after races that were lost
 * too often. Results above 0 are of ClaimOutcome (but for claims_open()); each has words in reterr.
 * A negative result leaves what is stored as it was, with one exception that no program can
 * exclude: when the disk fails in the very fsync of a claim, that claim may turn up after a crash,
 * and then expires. */

#include "claims/claim/claim-request.h"
#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/outcome.h"
#include "claims/fit/fit.h"
#include "claims/store/store.h"

#include "base/provider-tree.h"
#include "base/resource-request.h"

typedef struct ClaimsConfig {
        const char *path;   /* the database file; its folder must exist */
        const char *host;   /* "host" of the specification's table */
        const char *node;   /* "node" of it: the root provider's name */
        bool has_devices;   /* claims_set_facts() will be called, and what is claimed of a device's
                               provider names the device; until then nothing of one is promised */
        uint64_t busy_usec; /* how long to wait for another process; 0: CLAIMS_BUSY_USEC */
} ClaimsConfig;

#define CLAIMS_BUSY_USEC (2 * USEC_PER_SEC)

/* What fitting a claim, and explaining a request, may take of the main thread. Reading and
 * answering what everybody may ask comes on top, and is to stay below 50 ms in all. */
#define CLAIM_PATIENCE_USEC   (500 * USEC_PER_MSEC)
#define EXPLAIN_PATIENCE_USEC (25 * USEC_PER_MSEC)

/* Opens or makes the database. Positive results are of ClaimsOpened, and the store is usable.
 * -EPROTONOSUPPORT: written by a newer program, -EMEDIUMTYPE: a database of another program; the
 * file is left untouched. -EBUSY, -ENOENT (no such folder), -EROFS, -EACCES, -ENOSPC, -EIO as the
 * system says, with words. The strings of config are copied. */
int claims_open(Claims **ret, const ClaimsConfig *config, Error *reterr);

Claims *claims_free(Claims *claims);
DEFINE_CLEANUP(Claims *, claims_free);

/* Makes tree the host that claims are fitted to. Providers that claims still hold something of are
 * kept, with the inventory they had, when tree lacks them, and nothing new fits there. Writes
 * nothing when nothing changed; a changed provider gets the next generation. Claims of schema
 * version 1 get their providers here, the first time. -EBUSY. */
int claims_set_providers(Claims *claims, const ProviderTree *tree, Error *reterr);

/* From now on claims are of this node (copied): the name of the host's root provider, which is
 * known only after the first poll. -ENOMEM. */
int claims_set_node(Claims *claims, const char *node);

/* Makes tree the host, as claims_set_providers() does, and moves. Moves of claims that ended
 * meanwhile, and what they no longer hold, are passed over. -EBUSY. */
int claims_shift(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                 size_t n_shifts, Error *reterr);

/* A living claim holds what share has of this host's providers from now on, in place of what it
 * held; devices and layout stay. What the host does not have is left out. CLAIM_E_NOT_FOUND,
 * -EBUSY. */
int claims_complete(Claims *claims, int64_t id, const Consumer *share, Error *reterr);

/* What leads from before to after, of one claim: first within a class, then from class to class.
 * The array (grown) borrows names from both. -ENOMEM. */
int claims_make_shifts(int64_t claim, const Consumer *before, const Consumer *after,
                       StoreShift **shifts, size_t *n_shifts, size_t *n_allocated);

/* Replaces the rules, which are zeros at first. */
void claims_set_rules(Claims *claims, const ClaimsRules *rules);

/* What a poll found, beside the providers. Borrowed until the next call; NULL: not known. */
void claims_set_facts(Claims *claims, const HostFacts *facts);

/* What is known of a claim beside its request. */
typedef struct ClaimPlacing {
        const Consumer *holding;         /* what was chosen for it: nothing else will do; NULL: the
                                            fit chooses */
        const RequestMappings *mappings; /* which group got what of it; NULL: not known */
        const Consumer *room;            /* all that others leave of the host's tree, as far as the
                                            fit chooses; NULL: what no claim has */
        bool others_full;                /* with room: nothing of sharing providers is left */
        ClaimWriteState write_state;
        ClaimReported reported;
} ClaimPlacing;

/* Promises. The same consumer with an equal request yields the claim that it has (idempotent; one
 * that should have expired lives on as if it were new); with another one CLAIM_E_CONFLICT. A
 * project or user that is not given is not compared. placing NULL: nothing is known, and the fit
 * chooses; what of its holding is not of this host is no part of the claim (claims/fit/placed.h).
 * ret_claim (owned by the caller) is written on CLAIM_DONE alone. ret_ambiguous (may be NULL):
 * groups that nobody distinguished could have each other's providers. CLAIM_E_OTHER. -EINVAL with
 * words for a request that no host could take (claim_request_check()). */
int claims_claim(Claims *claims, const ClaimRequest *request, const ClaimPlacing *placing,
                 Claim **ret_claim, bool *ret_ambiguous, Error *reterr);

/* Whether a request would fit now (an outcome of claims_claim(), with its words), and what each
 * provider says to it, within that time (0: FIT_WORK_MAX alone is the bound). Promises nothing. ret
 * must be zeroed. */
int claims_explain(Claims *claims, const ResourceRequest *request, uint64_t patience_usec,
                   FitVerdicts *ret, Error *reterr);

/* A guest that is there and has no claim gets one, of CLAIM_TYPE_GUEST and confirmed, whether it
 * fits or not: what runs takes its part, whoever promised it. CLAIM_E_NO_CAPACITY with words: it
 * has its claim, and the host has less than all that is on it; CLAIM_E_CONFLICT: it has its claim
 * but for the devices and host CPUs that another claim has and the mdevs that are of no device of
 * this host, or none when nothing of it can be counted. -EBUSY: it has none. ret_claim (owned
 * by the caller) is set with the first three.
 */
int claims_adopt(Claims *claims, const HostDomain *domain, Claim **ret_claim, Error *reterr);

/* Makes a claim of what Placement allocates to a consumer that has neither claim nor guest, whether
 * it fits or not. What was asked for is not known: the claim's request is "", and claims_claim()
 * answers a request of the same amounts with it. It expires unless it is confirmed. placing has the
 * consumer whole. CLAIM_E_NO_CAPACITY with words: it has its claim, without the devices that are
 * not free. CLAIM_E_OTHER: the consumer holds nothing of this host; CLAIM_E_CONFLICT: it has a
 * claim. -EBUSY. ret_claim (owned by the caller) is set on CLAIM_DONE and CLAIM_E_NO_CAPACITY. */
int claims_claim_placed(Claims *claims, const ClaimPlacing *placing, Claim **ret_claim,
                        Error *reterr);

/* Promises what a guest that is about to start has in its domain: counted as claims_adopt() does
 * it, but only when all of it fits, with the very devices and host CPUs that the domain names. The
 * claim is of CLAIM_TYPE_GUEST, and expires unless it is confirmed. A consumer that somebody else
 * claimed for keeps that claim, and it is yielded; one that was left over from an earlier start of
 * the guest is ended, and yielded in ret_ended (owned by the caller; written whatever is returned).
 * -EAGAIN before claims_set_facts(). */
int claims_prepare(Claims *claims, const HostDomain *domain, Claim **ret_claim, Claim **ret_ended,
                   Error *reterr);

/* Checks a living claim again: one of another boot, without the devices that it should name,
 * without the cells of its guest, or that holds other host CPUs than its guest. From then on it is
 * of this boot, names the devices of the guest (NULL: there is none yet) or free ones, and holds
 * the dedicated host CPUs of the guest that no other claim holds. A claim of CLAIM_TYPE_GUEST
 * releases the host CPUs that its guest's threads were pinned to before. CLAIM_E_NOT_FOUND, -EBUSY;
 * CLAIM_E_NO_CAPACITY with words when there is no device for it, it is of this boot then all the
 * same. */
int claims_check_again(Claims *claims, int64_t id, const HostDomain *domain, Error *reterr);

/* Borrowed: the boot and the node that new claims are of. */
const char *claims_boot_id(const Claims *claims);
const char *claims_node(const Claims *claims);

/* The host as claims_set_providers() left it, also before this start, so that one without Placement
 * need not guess what an operator had set there: providers, withheld ones included, with what is
 * used. Borrowed until the next call on claims. */
int claims_host(Claims *claims, const HostView **ret, Error *reterr);

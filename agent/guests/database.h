/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The claim database as the daemon uses it. It is opened at the start, and each cycle tries again
 * to open it while it is closed.
 *
 * A read-only folder or a full disk must not prevent the agent from reporting the host's inventory.
 * Until the database can be opened and written, new claims are rejected with words. Main thread
 * only; blocks on the disk.
 *
 * This header declares the functions about the file, and about the tree of the host that claims are
 * fitted to. Polls, answers of Placement and their comparison with the claims are in
 * agent/guests/comparison.h. */

#include <errno.h>

#include "agent/guests/prepare-wanted.h"
#include "base/provider-tree.h"
#include "claims/claims.h"
#include "claims/reconcile.h"
#include "drivers/driver.h"
#include "drivers/tree/mdev-plan.h"

typedef enum ClaimEvent {
        CLAIM_EVENT_ADDED,
        CLAIM_EVENT_CHANGED,
        CLAIM_EVENT_REMOVED,
} ClaimEvent;

/* Settings that a reload can change. */
typedef struct ClaimSettings {
        const HostConfig *driver; /* the configured devices; borrowed */
        uint64_t expiry_usec;     /* [DEFAULT] claim_expiry_time; existing claims keep theirs */
        bool with_placement;      /* a new database needs a complete read of Placement */
        bool started_only;        /* guests claim when they start (claims/reconcile.h) */
        bool writes_guests;       /* claims of guests are reported to Placement (ClaimsRules) */
        bool gives_unclean;       /* [agent] nova forbids reservations (ClaimsRules) */
} ClaimSettings;

/* The inputs of a comparison of claims and guests, and the state between two of them. Only
 * agent/guests sets the members. */
typedef struct ClaimComparison {
        /* One poll or two: the guests can be those of a newer poll, before a cycle takes all of
         * it. */
        Snapshot *snapshot; /* poll that facts borrows from; NULL before the first */
        Snapshot *guests;   /* poll of the domains alone: the same or a newer one */
        HostFacts facts;
        DeviceFacts known; /* sizes of vGPUs and withheld members of sets that facts are made with
                            */
        /* The devices that claims had when they ended after the begin of the poll. The poll can
         * lack the type of a vGPU, and was taken before the partition of the device was left. */
        struct ReleasedDevice {
                char address[HOST_ADDRESS_SIZE];
                char *type;         /* "nvidia-1428"; owned; NULL: a device of a partition */
                uint64_t when_usec; /* CLOCK_REALTIME of the end */
        } * released;
        size_t n_released, n_released_allocated;
        bool driver_is_new;      /* the settings changed since the facts were made */
        ReconcileRecent *recent; /* claims that were made or returned since the begin of the poll,
                                    which might not show their guests */
        size_t n_recent, n_recent_allocated;

        bool is_due; /* a comparison must begin: the poll was not compared yet, or not completely */
        bool wants_answers; /* the last comparison left differences that need answers of
                               Placement */
        ReconcileMemory memory;
        ReconcileProblems problems;
        Uuid *away; /* guests that other hosts have */
        size_t n_away;
        uint64_t urgent_usec;  /* CLOCK_REALTIME of a request: the comparison of a poll that began
                                  later reads all claims without a guest; 0: none */
        Allocations *holding;  /* Placement's allocations of the consumers that were read */
        ConsumerRead *answers; /* the same by consumer; borrows from holding */
        size_t n_answers;
        bool complete;     /* all consumers of the host were read */
        bool absent;       /* Placement does not have the tree yet, so it has no consumer of the
                              host */
        Allocations *held; /* allocations from some providers, for the next comparison alone; NULL:
                              not read */
        uint64_t held_stamp; /* stamp of these providers (comparison.c) when they were read last; 0:
                                they were not, or no comparison could use what was read */
        /* The clocks of this host at the last look; 0: there was none. */
        struct {
                uint64_t real_usec, boot_usec;
        } clock;
        int64_t known_id; /* id of the newest claim at the last look at the clock */
} ClaimComparison;

/* The claim database of the daemon. */
typedef struct ClaimService {
        /* Members that every user can read. */
        Claims *claims; /* the open database, or NULL */
        Error error; /* reason why there is no database, or why a change could not be stored; code
                        0: neither */
        const HostFacts *facts;   /* facts of the last poll; NULL: there was none */
        uint64_t n_facts;         /* how often the content of facts was replaced */
        uint64_t built_usec;      /* CLOCK_REALTIME when this program last created an empty
                                     database, possibly in place of a damaged one; 0: it did not */
        ProviderTree *remembered; /* the host in the database when it was opened, or NULL; an
                                     operator's ratios are taken from it until Placement answers */
        ProviderTree *tree;       /* host that claims are fitted to; NULL before the first one */
        ClaimSettings settings;
        ClaimComparison comparison;
        bool is_adopting; /* a comparison that runs can make claims of guests; until its end, the
                             amounts of these guests look free */
        PrepareWanted wanted; /* the file that starts compute-agent-prepare */

        /* Members for agent/guests alone. */
        char *path, *name,
                *node; /* path of the database, name of the host, name of its root provider */
        bool error_is_of_write;     /* the file is open, and each cycle tries a write */
        bool lost;                  /* replaced or damaged file; claim_service_tend() closes it */
        char *closed, *hint;        /* see claim_service_set_closed(); NULL: none */
        bool tree_is_stored;        /* the database has the tree */
        bool tree_is_absent;        /* the last comparison with answers found no tree in Placement,
                                       and none was published since */
        StringSet locked_consumers; /* consumers that a claim or a healer works on */
        int64_t last_id;            /* newest claim that was announced or was in the file */
        uint64_t n_opened;          /* number of attempts to open the file */
        uint64_t n_changes; /* counter that rises when a change of a claim is announced, or a claim
                               is returned to a caller */
        void (*watch)(ClaimEvent event, const Claim *claim, void *userdata);
        void (*watch_cards)(void *userdata);
        void *watch_cards_userdata;
        void *watch_userdata;
        void (*adopted)(void *userdata); /* see claim_service_on_adopted() */
        void *adopted_userdata;
} ClaimService;

/* Creates the service and opens the database. A failure to open is logged and becomes the error of
 * the service. path (copied) is that of the database; NULL: there is none, and that is no error
 * (--dry-run). host (copied) is the name of this host. Returns -ENOMEM on failure. */
int claim_service_new(ClaimService **ret, const char *path, const char *host,
                      const ClaimSettings *settings);
ClaimService *claim_service_free(ClaimService *service);
DEFINE_CLEANUP(ClaimService *, claim_service_free);

/* Opens the database if it is not open or was lost, and stores the tree of the last
 * claim_service_set_tree() if the file lacks it. After a rejected write, tries another one. Called
 * once per cycle. Logs changes. */
void claim_service_tend(ClaimService *service);

/* Applies new settings. The next claim_service_set_snapshot() makes the facts again. */
void claim_service_set(ClaimService *service, const ClaimSettings *settings);

/* Sets the tree of the host that claims are fitted to, and stores it in the database. Takes a
 * reference. Does nothing if an equal tree is stored. A failure is the error of the service, and
 * claim_service_tend() tries again. */
void claim_service_set_tree(ClaimService *service, const ProviderTree *tree);

/* Rejects new claims with reason (NULL: does not), and sets the hint that is added to refusals
 * (NULL: none): see ClaimsRules. Both are copied. Without memory the old ones stay. */
void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint);

/* Sets the name of the host's root provider, once it is known. It is copied. */
void claim_service_set_node(ClaimService *service, const char *node);

/* Returns the open database, or NULL with words. */
static inline Claims *claim_service_require(ClaimService *service, Error *reterr)
{
        if (!service->claims)
                error_setf(reterr, EIO, "Claims cannot be used: %s", service->error.text);
        return service->claims;
}

/* Returns true if all consumers of this host must be read from Placement, because the database is
 * new and can replace a lost one. Also passes this to the database, which rejects claims of devices
 * and dedicated CPUs until then (ClaimsRules.unknown). */
bool claim_service_is_unread(ClaimService *service);

/* Records that a claim was made or returned to a caller: a poll that began before might not show
 * its guest. If memory is short, only n_changes rises. claim_service_notify() does the same, except
 * for CLAIM_EVENT_REMOVED. */
void claim_service_touch(ClaimService *service, int64_t claim);

/* Reserves a consumer for one worker at a time: a claim that was read and is not answered yet, a
 * pending write that is being settled, or a healer that writes the consumer or ends its claim.
 * Returns false if another worker has it, or if
 * memory is short. The worker releases it with claim_service_unlock_consumer(), which must follow
 * exactly once. The database does not know the reservation. */
bool claim_service_lock_consumer(ClaimService *service, const Uuid *consumer);
void claim_service_unlock_consumer(ClaimService *service, const Uuid *consumer);

/* Checks a result of claims.h, after the last use of its data. A file that was moved away or is
 * damaged (-ESTALE, -EUCLEAN) is closed, and this call tries to open it again. */
void claim_service_check(ClaimService *service, int result);

/* Checks a result like claim_service_check(), with the words of a result below 0. A result below 0
 * counts as a write that the disk rejects. It is an error of the service until a write succeeds,
 * and each cycle tries one. -EBUSY, -EINVAL and -ENOMEM are ignored. */
void claim_service_note(ClaimService *service, int result, const Error *words);

/* Checks a result like claim_service_note(), but only closes a file that was lost: the next
 * claim_service_tend() opens it. */
void claim_service_note_step(ClaimService *service, int result, const Error *words);

/* Writes an event into the history (claims_note()). Without a database, or if the write fails, the
 * history lacks the event. */
void claim_service_record(ClaimService *service, const EventNote *note);

/* Sets the watcher of the changes that claim_service_notify() announces; NULL: none. A pending
 * claim and a write of another process are not announced. The watcher can count and read claims. It
 * must not call a function that closes the database (claim_service_check(), claim_service_note(),
 * claim_service_tend()), because its caller uses the database. The callback watch receives a claim
 * after the change, borrowed. */
void claim_service_watch(ClaimService *service,
                         void (*watch)(ClaimEvent event, const Claim *claim, void *userdata),
                         void *userdata);

/* Sets the function that is called after a change of a claim with a vGPU function, if the change
 * can change what the card offers. This is so if the card has several types, because each vGPU
 * reduces the capacity of all of them. It is also so if the claim ended, because only a new poll
 * can show that the function is free. The function is also called after each change of a claim with
 * a device of a set, or with one that must be cleaned. A new function replaces the one before.
 * NULL as watch removes the function with this userdata. service can be NULL. */
void claim_service_watch_cards(ClaimService *service, void (*watch)(void *userdata),
                               void *userdata);

/* Calls that function, because the state of a device that must be cleaned or of a partition has
 * changed, or a cordon of one. */
void claim_service_note_cards(ClaimService *service);

/* Marks the functions of ended claims in the facts, and withholds their devices of partitions.
 * Forgets those that ended before the poll began. */
void claim_service_mark_released(ClaimComparison *comparison);

/* Announces a change of a claim, which the caller has written, to the watchers, and starts
 * compute-agent-prepare if the claim concerns it (prepare_wanted_note()). Clears an error of an
 * earlier write. claim is borrowed, and has the state after the change; for CLAIM_EVENT_REMOVED
 * also its devices. */
void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim);

/* Sets a function that is called when is_adopting becomes false; NULL: none. It must not use the
 * database. */
void claim_service_on_adopted(ClaimService *service, void (*adopted)(void *userdata),
                              void *userdata);

/* Returns the number of living claims; 0 if the database is not open or cannot be read. It is
 * cheap, and only marks a lost file, so that a watcher can call it. */
size_t claim_service_count(ClaimService *service);

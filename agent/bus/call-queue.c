/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Orders the waiting calls of all senders. Senders are sorted by name. Each has the number of its
 * own last turn and of the last turn of its user. Senders that cannot be served now are left out.
 * Privileged ones are served first, then the one with the smallest pair (user's turn, own turn).
 * All connections of a known user carry the same user_turn, so a new connection gains nothing. A
 * sender gets no turn while its user is unknown. An unprivileged sender also gets none while its
 * user, on all connections together, does not read the answers, or while too many bytes of all
 * users are unread (bus_call_queue_reading()). For this the queue has the unread bytes that the bus
 * reported last. It also counts, by weight, the answers that are not in such a report yet. Counts
 * of a user are sums over its connections: at most BUS_SENDERS_MAX, so the sums are computed at
 * each use. */

#include "agent/bus/call-queue.h"

#include <string.h>

#include "base/array.h"
#include "base/macros.h"

static void sender_free(BusSender *sender)
{
        free(sender->name);
        free(sender->calls);
        free(sender);
}

void bus_call_queue_done(BusCallQueue *queue)
{
        for (size_t i = 0; i < queue->n_senders; i++)
                sender_free(queue->senders[i]);
        free(queue->senders);
        *queue = (BusCallQueue){ 0 };
}

static int order_name(const void *key, const void *item)
{
        return strcmp(key, (*(BusSender *const *)item)->name);
}

static size_t find_place(const BusCallQueue *queue, const char *name, bool *ret_found)
{
        return array_find(queue->senders, sizeof(BusSender *), queue->n_senders, name, order_name,
                          ret_found);
}

BusSender *bus_call_queue_find(const BusCallQueue *queue, const char *name)
{
        bool found;
        size_t place = find_place(queue, name, &found);

        return found ? queue->senders[place] : NULL;
}

/* Returns true if the sender counts as having read all answers: the last report of the bus, if any,
 * was 0 bytes, and no answer was counted since. */
static bool has_read_all(const BusSender *sender)
{
        return sender->n_answers == 0 && sender->unread == 0;
}

/* Returns true if sender is removed before other: senders that have read everything first, then the
 * one whose turn was longest ago. */
static bool is_forgotten_before(const BusSender *sender, const BusSender *other)
{
        if (has_read_all(sender) != has_read_all(other))
                return has_read_all(sender);
        return sender->turn < other->turn;
}

/* Removes a sender without calls, to free its place. Returns -EBUSY if there is none. */
static int forget_one(BusCallQueue *queue)
{
        size_t oldest = SIZE_MAX;

        for (size_t i = 0; i < queue->n_senders; i++)
                if (queue->senders[i]->n_calls == 0 &&
                    (oldest == SIZE_MAX ||
                     is_forgotten_before(queue->senders[i], queue->senders[oldest])))
                        oldest = i;
        if (oldest == SIZE_MAX)
                return -EBUSY;
        sender_free(queue->senders[oldest]);
        array_close(queue->senders, sizeof(BusSender *), &queue->n_senders, oldest);
        return 0;
}

int bus_call_queue_sender(BusCallQueue *queue, const char *name, BusSender **ret)
{
        BusSender *sender = bus_call_queue_find(queue, name);
        bool found;
        size_t place;
        int r = 0;

        if (sender) {
                *ret = sender;
                return 0;
        }
        if (queue->n_senders >= BUS_SENDERS_MAX)
                r = forget_one(queue);
        if (r >= 0)
                r = array_grow(&queue->senders, sizeof(BusSender *), queue->n_senders,
                               &queue->n_allocated);
        if (r < 0)
                return r;
        sender = calloc(1, sizeof(BusSender));
        if (!sender || !(sender->name = strdup(name))) {
                free(sender);
                return -ENOMEM;
        }
        sender->turn = queue->turn;
        place = find_place(queue, name, &found);
        array_open(queue->senders, sizeof(BusSender *), &queue->n_senders, place);
        *ret = queue->senders[place] = sender;
        return 0;
}

bool bus_call_queue_same_user(const BusSender *sender, const BusSender *other)
{
        return sender == other ||
               (sender->is_known && other->is_known && sender->uid == other->uid);
}

void bus_call_queue_set_user(BusCallQueue *queue, BusSender *sender, uid_t uid, bool privileged)
{
        sender->uid = uid;
        sender->is_known = true;
        sender->is_privileged = privileged;
        for (size_t i = 0; i < queue->n_senders; i++)
                if (bus_call_queue_same_user(sender, queue->senders[i]))
                        sender->user_turn = MAX(sender->user_turn, queue->senders[i]->user_turn);
}

/* The waiting calls that the limits of a sender concern. See count(). */
typedef struct Waiting {
        size_t n_user, n_all, size;
} Waiting;

/* Counts waiting calls. Those of privileged senders are left out of all three members. The member
 * n_user has the calls of the sender's user. The members n_all and size have the calls and bytes of
 * all senders with a known user. If the sender's user is unknown, they have those of all such
 * senders instead. */
static Waiting count(const BusCallQueue *queue, const BusSender *sender)
{
        Waiting waiting = { 0 };

        for (size_t i = 0; i < queue->n_senders; i++) {
                const BusSender *other = queue->senders[i];

                if (other->is_privileged || other->is_known != sender->is_known)
                        continue;
                if (bus_call_queue_same_user(sender, other))
                        waiting.n_user += other->n_calls;
                waiting.n_all += other->n_calls;
                for (size_t j = 0; j < other->n_calls; j++)
                        waiting.size += other->calls[j].size;
        }
        return waiting;
}

/* Returns true if the limits permit this number of additional calls, with this additional size. */
static bool is_within(const BusCallQueue *queue, const BusSender *sender, size_t more, size_t size)
{
        Waiting waiting;

        if (sender->is_privileged)
                return true;
        /* A small first call is always within the limits while its user is unknown. The user can be
         * root, and waiting calls of other senders must not cause a refusal of root. */
        if (!sender->is_known && sender->n_calls == 0 && size <= BUS_CALL_FIRST_SIZE)
                return true;
        waiting = count(queue, sender);
        if (waiting.size + size > BUS_CALLS_SIZE)
                return false;
        return sender->is_known ? waiting.n_user + more <= BUS_CALLS_PER_USER &&
                                          waiting.n_all + more <= BUS_CALLS_OF_ALL
                                : waiting.n_all + more <= BUS_CALLS_HELD;
}

bool bus_call_queue_has_capacity(const BusCallQueue *queue, const BusSender *sender, size_t size)
{
        return is_within(queue, sender, 1, size);
}

bool bus_call_queue_take_over(const BusCallQueue *queue, BusSender *sender, BusCall *ret)
{
        if (sender->n_calls == 0 || is_within(queue, sender, 0, 0))
                return false;
        *ret = sender->calls[--sender->n_calls];
        return true;
}

int bus_call_queue_add(BusSender *sender, const BusCall *call)
{
        if (array_grow(&sender->calls, sizeof(BusCall), sender->n_calls, &sender->n_allocated) < 0)
                return -ENOMEM;
        sender->calls[sender->n_calls++] = *call;
        return 0;
}

/* Returns the number of answers, by weight, to the sender's user that are in no report of the bus
 * yet. *ret_unread has the unread bytes that the bus reported last. */
static unsigned count_answers(const BusCallQueue *queue, const BusSender *sender,
                              uint64_t *ret_unread)
{
        unsigned n = 0;

        *ret_unread = 0;
        for (size_t i = 0; i < queue->n_senders; i++)
                if (bus_call_queue_same_user(sender, queue->senders[i])) {
                        n += queue->senders[i]->n_answers;
                        *ret_unread += queue->senders[i]->unread;
                }
        return n;
}

BusReading bus_call_queue_reading(const BusCallQueue *queue, const BusSender *sender)
{
        uint64_t unread;
        unsigned n;

        if (sender->is_privileged || queue->no_unread_counts)
                return BUS_READS;
        n = count_answers(queue, sender, &unread);
        if (unread > BUS_UNREAD_MAX || queue->unread > BUS_UNREAD_OF_ALL)
                return BUS_READS_NOT;
        return n >= BUS_ANSWERS_MAX ? BUS_READS_PERHAPS : BUS_READS;
}

bool bus_call_queue_answered(const BusCallQueue *queue, BusSender *sender, unsigned n)
{
        uint64_t unread;

        if (sender->is_privileged || queue->no_unread_counts)
                return false;
        sender->n_answers += n;
        return count_answers(queue, sender, &unread) >= BUS_ANSWERS_ASK;
}

static bool is_earlier(const BusSender *sender, const BusSender *other)
{
        if (sender->is_privileged != other->is_privileged)
                return sender->is_privileged;
        if (sender->user_turn != other->user_turn)
                return sender->user_turn < other->user_turn;
        return sender->turn < other->turn;
}

bool bus_call_queue_next(BusCallQueue *queue, bool allow_long, BusCall *ret)
{
        BusSender *next = NULL;

        for (size_t i = 0; i < queue->n_senders; i++) {
                BusSender *sender = queue->senders[i];

                if (!sender->is_known || sender->n_calls == 0 ||
                    (sender->calls[0].is_long && !allow_long && !sender->is_privileged))
                        continue;
                if ((!next || is_earlier(sender, next)) &&
                    bus_call_queue_reading(queue, sender) == BUS_READS)
                        next = sender;
        }
        if (!next)
                return false;
        *ret = next->calls[0];
        array_close(next->calls, sizeof(BusCall), &next->n_calls, 0);
        next->turn = ++queue->turn;
        for (size_t i = 0; i < queue->n_senders; i++)
                if (bus_call_queue_same_user(next, queue->senders[i]))
                        queue->senders[i]->user_turn = queue->turn;
        return true;
}

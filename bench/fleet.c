/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Simulates the pacing of a fleet: N agents on a simulated clock, and their requests to one
 * Placement.
 *
 *   fleet [AGENTS [PROVIDERS]]
 *
 * The agents start together, run, and have no change for more than an hour. Then they meet an
 * outage of Placement, and run again. At last all processes start again at once, with the state of
 * Placement that the last ones saved. Before that hour and after it, each agent has an event of its
 * host (the start or end of a guest) every five minutes. A cycle without a change, or a rejected
 * one, is one request; the first cycle reads everything, but that of a second start is one request.
 * Fails if the fleet sends more requests during the outage
 * than before the checks of Placement slowed down. Fails also if it sends more than 0.25 requests a
 * minute and agent after that. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/cycle/pace.h"
#include "base/jitter.h"

#define SECONDS       USEC_PER_SEC
#define MINUTES       (60 * SECONDS)
#define EVERY_EVENT   (5 * MINUTES)
#define STEP          (SECONDS / 10)
#define START_JITTER  (5 * SECONDS)
#define INTERVAL      (60 * SECONDS)
#define QUIET_MAX     (4 * MINUTES)
#define QUIET_BEGINS  (5 * MINUTES)
#define EVENTS_END    (25 * MINUTES)
#define SLOW_BEGINS   (65 * MINUTES)
#define OUTAGE_BEGINS (125 * MINUTES)
#define OUTAGE_ENDS   (135 * MINUTES)
#define MINUTE_AFTER  (136 * MINUTES)
#define RESTART_ENDS  (138 * MINUTES)
#define REQUESTS(n)   (1 + 3 * (n))

typedef struct SimulatedAgent {
        CyclePace pace;
        uint64_t due_usec, event_usec;
        uint64_t n_first; /* requests of its next cycle with Placement */
} SimulatedAgent;

enum { START, QUIET, PAUSE, SLOW, OUTAGE, AFTER, RESTART, N_PHASES };

/* Requests of one phase, and the largest number in one second. */
typedef struct Count {
        uint64_t n, second_usec, n_second, n_second_max;
} Count;

static uint64_t random_bits(void)
{
        return (uint64_t)random() << 32 ^ (uint64_t)random();
}

static void count(Count *counted, uint64_t n, uint64_t now_usec)
{
        uint64_t second_usec = now_usec - now_usec % SECONDS;

        if (second_usec != counted->second_usec) {
                counted->second_usec = second_usec;
                counted->n_second = 0;
        }
        counted->n += n;
        counted->n_second += n;
        counted->n_second_max = MAX(counted->n_second_max, counted->n_second);
}

/* Runs a cycle of one agent. Returns its number of requests. event: an event of the host began it.
 * away: Placement does not answer. */
static uint64_t cycle(SimulatedAgent *agent, size_t n_providers, bool event, bool away,
                      uint64_t retry_usec, uint64_t now_usec)
{
        uint64_t n = 0;

        if (cycle_pace_quiet_usec(&agent->pace, REQUESTS(n_providers), true, now_usec) == 0 &&
            (event || now_usec >= agent->pace.check_at_usec)) {
                n = away ? 1 : agent->n_first;
                if (!away)
                        agent->n_first = 1;
                cycle_pace_note_placement(&agent->pace, away, away ? retry_usec : 0, now_usec);
        }
        agent->due_usec = now_usec + cycle_pace_next_usec(&agent->pace, true, now_usec);
        return n;
}

static int find_phase(uint64_t now_usec)
{
        static const uint64_t begins[] = { QUIET_BEGINS,  EVENTS_END,  SLOW_BEGINS,
                                           OUTAGE_BEGINS, OUTAGE_ENDS, MINUTE_AFTER };
        int phase = START;

        while (phase < RESTART && now_usec >= begins[phase])
                phase++;
        return phase;
}

/* Starts the processes of all agents at once. */
static void start(SimulatedAgent *agents, size_t n_agents, uint64_t n_first, uint64_t event_usec)
{
        for (size_t i = 0; i < n_agents; i++) {
                agents[i] = (SimulatedAgent){
                        .event_usec = jitter_between(0, EVERY_EVENT, random_bits()) + event_usec,
                        .n_first = n_first,
                        .pace = { .interval_usec = INTERVAL,
                                  .quiet_max_usec = QUIET_MAX,
                                  .start_jitter_usec = START_JITTER },
                };
        }
}

/* Simulates all phases in steps of a tenth of a second. */
static void run(SimulatedAgent *agents, size_t n_agents, size_t n_providers, uint64_t retry_usec,
                Count counts[N_PHASES])
{
        start(agents, n_agents, REQUESTS(n_providers), QUIET_BEGINS);
        for (uint64_t now = STEP; now < RESTART_ENDS; now += STEP) {
                int phase = find_phase(now);

                if (now == MINUTE_AFTER)
                        start(agents, n_agents, 1, now);
                for (size_t i = 0; i < n_agents; i++) {
                        SimulatedAgent *agent = &agents[i];
                        bool event = now >= agent->event_usec;

                        if (event)
                                agent->event_usec += EVERY_EVENT;
                        event &= phase != PAUSE && phase != SLOW;
                        if (event || now >= agent->due_usec)
                                count(&counts[phase],
                                      cycle(agent, n_providers, event, phase == OUTAGE, retry_usec,
                                            now),
                                      now);
                }
        }
}

static double per_second(const Count *counted, uint64_t from_usec, uint64_t to_usec)
{
        return (double)counted->n * SECONDS / (double)(to_usec - from_usec);
}

int main(int argc, char *argv[])
{
        static const uint64_t retries[] = { 0, 30 * SECONDS };
        size_t n_agents = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
        size_t n_providers = argc > 2 ? strtoul(argv[2], NULL, 10) : 17;
        SimulatedAgent *agents = calloc(n_agents, sizeof(SimulatedAgent));
        bool less = true;

        if (!agents)
                return 1;
        printf("%zu agents of %zu providers; requests a second\n", n_agents, n_providers);
        printf("%-11s %17s %6s %21s %7s %14s %16s\n", "Retry-After", "start (most)", "quiet",
               "after an hour (most)", "outage", "after (most)", "restart (most)");
        for (size_t i = 0; i < ARRAY_SIZE(retries); i++) {
                Count counts[N_PHASES] = { 0 };
                double quiet, slow, outage;

                run(agents, n_agents, n_providers, retries[i], counts);
                quiet = per_second(&counts[QUIET], QUIET_BEGINS, EVENTS_END);
                slow = per_second(&counts[SLOW], SLOW_BEGINS, OUTAGE_BEGINS);
                outage = per_second(&counts[OUTAGE], OUTAGE_BEGINS, OUTAGE_ENDS);
                less &= outage < quiet && slow * 60 / (double)n_agents < 0.255;
                printf("%9" PRIu64 " s %9.1f (%5" PRIu64 ") %6.1f %13.2f (%5" PRIu64
                       ") %7.1f %6.1f (%5" PRIu64 ") %8.1f (%5" PRIu64 ")\n",
                       retries[i] / SECONDS, per_second(&counts[START], 0, MINUTES),
                       counts[START].n_second_max, quiet, slow, counts[SLOW].n_second_max, outage,
                       per_second(&counts[AFTER], OUTAGE_ENDS, MINUTE_AFTER),
                       counts[AFTER].n_second_max,
                       per_second(&counts[RESTART], MINUTE_AFTER, RESTART_ENDS),
                       counts[RESTART].n_second_max);
        }
        free(agents);
        if (!less)
                fprintf(stderr,
                        "The fleet sends too many requests in the outage, or when quiet.\n");
        return less ? 0 : 1;
}

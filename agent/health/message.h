/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The messages of compute-agent-health to the agent: one JSON object in each line of a pipe. The
 * agent treats each line as untrusted. Pure. */

#include <jansson.h>

#include "agent/health/rule.h"

#define HEALTH_MESSAGE_MAX  8192 /* bytes of a line, with the newline */
#define HEALTH_TEXT_SIZE    256  /* bytes of a line of the kernel, cut, with the NUL */
#define HEALTH_BOOT_SIZE    40
#define HEALTH_CURSOR_SIZE  512
#define HEALTH_PROBLEM_SIZE 512

typedef enum HealthMessageKind {
        HEALTH_FINDING,   /* there is enough evidence against a device */
        HEALTH_RECOVERED, /* there is evidence that a device works again */
        HEALTH_PROBLEM,   /* a rule is not used, for example; text has words */
        HEALTH_STATE,     /* the helper works, and has read up to cursor */
        _HEALTH_MESSAGE_MAX,
        _HEALTH_MESSAGE_INVALID = -EINVAL,
} HealthMessageKind;

/* A message. Members of other kinds are zero. */
typedef struct HealthMessage {
        HealthMessageKind kind;
        /* HEALTH_FINDING and HEALTH_RECOVERED */
        char rule[HEALTH_RULE_NAME_MAX + 1];
        char address[PCI_ADDRESS_SIZE];
        char line[HEALTH_TEXT_SIZE];    /* evidence in words */
        char boot_id[HEALTH_BOOT_SIZE]; /* boot of the host in which the evidence arose */
        uint64_t last_usec;             /* CLOCK_REALTIME of the last case */
        /* HEALTH_FINDING */
        uint64_t first_usec; /* CLOCK_REALTIME of the first case that counts */
        uint64_t within_usec;
        unsigned guests;
        HealthLift lift;
        bool reports;
        /* HEALTH_PROBLEM; HEALTH_STATE: why kernel lines are not read, or "" */
        char text[HEALTH_PROBLEM_SIZE];
        /* HEALTH_STATE */
        uint64_t n_rules;
        char cursor[HEALTH_CURSOR_SIZE]; /* "": none */
} HealthMessage;

/* Returns the message as one line without its newline, which the caller frees. NULL: out of memory,
 * or a text is not UTF-8. */
char *health_message_to_text(const HealthMessage *message);

/* Reads a line of n bytes. A text that is longer than its member, a bad address and an unknown word
 * make the whole line no message. Control characters are replaced. Returns -EBADMSG with words if
 * it is not a message, or -ENOMEM; ret is unchanged then. */
int health_message_from_text(const char *text, size_t n, HealthMessage *ret, Error *reterr);

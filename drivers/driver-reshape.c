/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory of DriverReshape, and searches in it. Tests: tests/unit/drivers/test-driver-reshape.c */
#include "drivers/driver-reshape.h"

#include <string.h>

#include "base/array.h"

void driver_reshape_clear(DriverReshape *reshape)
{
        for (size_t i = 0; i < reshape->n_problems; i++) {
                free(reshape->problems[i].resource_class);
                free(reshape->problems[i].reason);
        }
        free(reshape->problems);
        reshape->problems = NULL;
        reshape->n_problems = reshape->n_problems_allocated = 0;
        string_set_done(&reshape->classes);
}

void driver_reshape_done(DriverReshape *reshape)
{
        driver_reshape_clear(reshape);
        string_set_done(&reshape->kept);
        *reshape = (DriverReshape){ 0 };
}

/* Compares texts, because the creator of the aliases sorts them in this order. */
static int compare_alias(const void *key, const void *member)
{
        return strcmp(((const Uuid *)key)->text, ((const ReshapeAlias *)member)->consumer.text);
}

const Uuid *driver_reshape_guest(const DriverReshape *reshape, const Uuid *consumer)
{
        const ReshapeAlias *alias = NULL;

        if (reshape->n_aliases > 0)
                alias = bsearch(consumer, reshape->aliases, reshape->n_aliases,
                                sizeof(ReshapeAlias), compare_alias);
        return alias ? &alias->guest : consumer;
}

int driver_reshape_add_problem(DriverReshape *reshape, const Uuid *consumer,
                               const char *resource_class, const char *reason)
{
        ReshapeProblem problem = { .consumer = *consumer };

        if (array_grow(&reshape->problems, sizeof(ReshapeProblem), reshape->n_problems,
                       &reshape->n_problems_allocated) < 0)
                return -ENOMEM;
        problem.resource_class = strdup(resource_class);
        problem.reason = strdup(reason);
        if (!problem.resource_class || !problem.reason) {
                free(problem.resource_class);
                free(problem.reason);
                return -ENOMEM;
        }
        reshape->problems[reshape->n_problems++] = problem;
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claim/event.h"

#include <stdlib.h>

#include "base/array.h"

int event_list_add(EventList *list, Event **ret)
{
        if (array_grow(&list->events, sizeof(Event), list->n_events, &list->n_allocated) < 0)
                return -ENOMEM;
        *ret = &list->events[list->n_events++];
        **ret = (Event){ 0 };
        return 0;
}

static void event_done(Event *event)
{
        free(event->kind);
        free(event->author);
        free(event->consumer);
        free(event->guest);
        free(event->allocations);
        free(event->devices);
        free(event->reason);
}

void event_list_done(EventList *list)
{
        for (size_t i = 0; i < list->n_events; i++)
                event_done(&list->events[i]);
        free(list->events);
        *list = (EventList){ 0 };
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/dispatch.h"

#include <errno.h>
#include <string.h>

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define MANAGER    "org.freedesktop.DBus.ObjectManager"

int bus_dispatch_add(BusDispatch *dispatch, sd_bus *bus, const BusPlace *place)
{
        int r = place->find
                        ? sd_bus_add_fallback_vtable(bus, NULL, place->path, place->interface,
                                                     place->vtable, place->find, place->userdata)
                        : sd_bus_add_object_vtable(bus, NULL, place->path, place->interface,
                                                   place->vtable, place->userdata);

        if (r >= 0 && place->introspect)
                r = sd_bus_add_node_enumerator(bus, NULL, place->path, place->introspect,
                                               place->userdata);
        if (r >= 0)
                dispatch->places[dispatch->n_places++] = *place;
        return r;
}

/* Finding */

/* What a handler or getter of the place is given for the object; 0 when it is not there. */
static int find_object(const BusPlace *place, sd_bus *bus, const char *path, void **ret,
                       sd_bus_error *error)
{
        size_t length = strlen(place->path);

        *ret = place->userdata;
        if (!place->find)
                return strcmp(path, place->path) == 0;
        if (strncmp(path, place->path, length) != 0 || path[length] != '/')
                return 0;
        return place->find(bus, path, place->interface, place->userdata, ret, error);
}

static bool is_interface(const BusPlace *place, const char *interface)
{
        return !interface || !interface[0] || strcmp(place->interface, interface) == 0;
}

/* The next place of the object that has such an interface (NULL or "": any), from *place on. */
static int find_place(BusDispatch *dispatch, sd_bus_message *call, const char *interface,
                      size_t *place, void **ret, sd_bus_error *error)
{
        for (; *place < dispatch->n_places; ++*place) {
                int r = is_interface(&dispatch->places[*place], interface)
                                ? find_object(&dispatch->places[*place],
                                              sd_bus_message_get_bus(call),
                                              sd_bus_message_get_path(call), ret, error)
                                : 0;

                if (r != 0)
                        return r;
        }
        return 0;
}

static const sd_bus_vtable *find_method(const sd_bus_vtable *vtable, const char *member)
{
        for (const sd_bus_vtable *v = vtable; v->type != _SD_BUS_VTABLE_END; v++)
                if (v->type == _SD_BUS_VTABLE_METHOD && strcmp(v->x.method.member, member) == 0)
                        return v;
        return NULL;
}

static bool is_property(const sd_bus_vtable *v)
{
        return v->type == _SD_BUS_VTABLE_PROPERTY || v->type == _SD_BUS_VTABLE_WRITABLE_PROPERTY;
}

static const sd_bus_vtable *find_property(const sd_bus_vtable *vtable, const char *member)
{
        for (const sd_bus_vtable *v = vtable; v->type != _SD_BUS_VTABLE_END; v++)
                if (is_property(v) && strcmp(v->x.property.member, member) == 0)
                        return v;
        return NULL;
}

static int has_arguments(sd_bus_message *call, const char *signature, sd_bus_error *error)
{
        const char *given = sd_bus_message_get_signature(call, true);

        if (sd_bus_message_has_signature(call, signature))
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                 "%s() takes \"%s\", not \"%.100s\"",
                                 sd_bus_message_get_member(call), signature, given ? given : "");
}

/* Properties */

static int append_value(const BusPlace *place, const sd_bus_vtable *v, void *object, sd_bus *bus,
                        const char *path, sd_bus_message *reply, sd_bus_error *error)
{
        int r = sd_bus_message_open_container(reply, 'v', v->x.property.signature);

        if (r >= 0)
                r = v->x.property.get(bus, path, place->interface, v->x.property.member, reply,
                                      object, error);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_properties(const BusPlace *place, void *object, sd_bus *bus, const char *path,
                             sd_bus_message *reply, sd_bus_error *error)
{
        int r = 0;

        for (const sd_bus_vtable *v = place->vtable; r >= 0 && v->type != _SD_BUS_VTABLE_END; v++) {
                if (!is_property(v))
                        continue;
                r = sd_bus_message_open_container(reply, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(reply, "s", v->x.property.member);
                if (r >= 0)
                        r = append_value(place, v, object, bus, path, reply, error);
                if (r >= 0)
                        r = sd_bus_message_close_container(reply);
        }
        return r;
}

static int no_object(sd_bus_message *call, sd_bus_error *error)
{
        return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_OBJECT,
                                 "There is no such object, or it lacks that interface: %s",
                                 sd_bus_message_get_path(call));
}

/* The property that the message names, and what its getter is given. */
static int read_property(BusDispatch *dispatch, sd_bus_message *call, const BusPlace **ret_place,
                         const sd_bus_vtable **ret, void **ret_object, sd_bus_error *error)
{
        const char *interface, *name;
        size_t i = 0;
        int r = sd_bus_message_read(call, "ss", &interface, &name);

        if (r >= 0)
                r = find_place(dispatch, call, interface, &i, ret_object, error);
        if (r <= 0)
                return r < 0 ? r : no_object(call, error);
        *ret_place = &dispatch->places[i];
        *ret = find_property(dispatch->places[i].vtable, name);
        return *ret ? 0
                    : sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_PROPERTY,
                                        "There is no property \"%.60s\"", name);
}

static int get_property(BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const sd_bus_vtable *v;
        const BusPlace *place;
        void *object;
        int r = has_arguments(call, "ss", error);

        if (r >= 0)
                r = read_property(dispatch, call, &place, &v, &object, error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_value(place, v, object, sd_bus_message_get_bus(call),
                                 sd_bus_message_get_path(call), reply, error);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int append_all(BusDispatch *dispatch, sd_bus_message *call, const char *interface,
                      sd_bus_message *reply, sd_bus_error *error)
{
        bool found = false;
        void *object;
        int r = 0;

        for (size_t i = 0; (r = find_place(dispatch, call, interface, &i, &object, error)) > 0;
             i++) {
                found = true;
                r = append_properties(&dispatch->places[i], object, sd_bus_message_get_bus(call),
                                      sd_bus_message_get_path(call), reply, error);
                if (r < 0)
                        break;
        }
        return r < 0 || found ? r : no_object(call, error);
}

static int get_all_properties(BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *interface;
        int r = has_arguments(call, "s", error);

        if (r >= 0)
                r = sd_bus_message_read(call, "s", &interface);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = append_all(dispatch, call, interface, reply, error);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* Those that can be written are root's, and the agent's own user's. */
static int set_property(BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        const sd_bus_vtable *v;
        const BusPlace *place;
        bool privileged;
        void *object;
        uid_t uid;
        int r = has_arguments(call, "ssv", error);

        if (r >= 0)
                r = read_property(dispatch, call, &place, &v, &object, error);
        if (r < 0)
                return r;
        if (v->type != _SD_BUS_VTABLE_WRITABLE_PROPERTY)
                return sd_bus_error_setf(error, SD_BUS_ERROR_PROPERTY_READ_ONLY,
                                         "The property %s cannot be set", v->x.property.member);
        if (!bus_gate_get_user(dispatch->gate, call, &uid, &privileged) || !privileged)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Access denied");
        r = sd_bus_message_enter_container(call, 'v', v->x.property.signature);
        if (r >= 0)
                r = v->x.property.set(sd_bus_message_get_bus(call), sd_bus_message_get_path(call),
                                      place->interface, v->x.property.member, call, object, error);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

/* All objects */

typedef struct Listing {
        BusJob job;
        BusDispatch *dispatch;
        sd_bus_message *reply;
        size_t place;
        int64_t cursor;
        size_t n_left; /* objects that may follow */
} Listing;

static void listing_free(BusJob *job)
{
        Listing *listing = (Listing *)job;

        sd_bus_message_unref(listing->reply);
        free(listing);
}

static int append_object(Listing *listing, const BusPlace *place, const char *path,
                         sd_bus_error *error)
{
        sd_bus *bus = sd_bus_message_get_bus(listing->job.call);
        sd_bus_message *reply = listing->reply;
        void *object;
        int r = find_object(place, bus, path, &object, error);

        /* It may have gone since it was listed. */
        if (r <= 0)
                return r;
        if (listing->n_left == 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                         "There are more than %d objects: ListClaims() has all "
                                         "claims",
                                         BUS_OBJECTS_MAX);
        listing->n_left--;
        if ((r = sd_bus_message_open_container(reply, 'e', "oa{sa{sv}}")) < 0 ||
            (r = sd_bus_message_append(reply, "o", path)) < 0 ||
            (r = sd_bus_message_open_container(reply, 'a', "{sa{sv}}")) < 0 ||
            (r = sd_bus_message_open_container(reply, 'e', "sa{sv}")) < 0 ||
            (r = sd_bus_message_append(reply, "s", place->interface)) < 0 ||
            (r = sd_bus_message_open_container(reply, 'a', "{sv}")) < 0 ||
            (r = append_properties(place, object, bus, path, reply, error)) < 0)
                return r;
        for (int i = 0; r >= 0 && i < 4; i++)
                r = sd_bus_message_close_container(reply);
        return r;
}

/* One lot of one kind. */
static int list_some(BusJob *job, sd_bus_error *error)
{
        Listing *listing = (Listing *)job;
        const BusPlace *place = &listing->dispatch->places[listing->place];
        char **paths = NULL;
        size_t n = 0;
        int r = 0;

        if (listing->place >= listing->dispatch->n_places) {
                r = sd_bus_message_close_container(listing->reply);
                r = r < 0 ? r : sd_bus_send(NULL, listing->reply, NULL);
                return MIN(r, 0);
        }
        if (place->enumerate)
                r = place->enumerate(place->userdata, &listing->cursor, &paths);
        for (; paths && paths[n]; n++) {
                if (r >= 0)
                        r = append_object(listing, place, paths[n], error);
                free(paths[n]);
        }
        free(paths);
        if (r >= 0 && n == 0) {
                listing->place++;
                listing->cursor = 0;
        }
        return r < 0 ? r : 1;
}

static int list_objects(BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        Listing *listing;
        bool privileged;
        uid_t uid;
        int r = has_arguments(call, "", error);

        if (r < 0)
                return r;
        listing = calloc(1, sizeof(Listing));
        if (!listing)
                return -ENOMEM;
        listing->job = (BusJob){ list_some, listing_free, sd_bus_message_ref(call), NULL };
        listing->dispatch = dispatch;
        listing->n_left = bus_gate_get_user(dispatch->gate, call, &uid, &privileged) && privileged
                                  ? SIZE_MAX
                                  : BUS_OBJECTS_MAX;
        r = sd_bus_message_new_method_return(call, &listing->reply);
        if (r >= 0)
                r = sd_bus_message_open_container(listing->reply, 'a', "{oa{sa{sv}}}");
        if (r < 0) {
                sd_bus_message_unref(call);
                listing_free(&listing->job);
                return r;
        }
        bus_gate_begin(dispatch->gate, &listing->job);
        return 1;
}

/* Serving */

static int call_method(BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        const char *interface = sd_bus_message_get_interface(call),
                   *member = sd_bus_message_get_member(call);
        bool found = false;
        void *object;
        int r;

        for (size_t i = 0; (r = find_place(dispatch, call, interface, &i, &object, error)) > 0;
             i++) {
                const sd_bus_vtable *v = find_method(dispatch->places[i].vtable, member);

                found = true;
                if (!v)
                        continue;
                r = has_arguments(call, v->x.method.signature, error);
                return r < 0 ? r : v->x.method.handler(call, object, error);
        }
        if (r < 0)
                return r;
        return found ? sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_METHOD,
                                         "There is no method \"%.60s\"", member)
                     : no_object(call, error);
}

int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusDispatch *dispatch = userdata;

        if (sd_bus_message_is_method_call(call, PROPERTIES, "Get"))
                return get_property(dispatch, call, error);
        if (sd_bus_message_is_method_call(call, PROPERTIES, "GetAll"))
                return get_all_properties(dispatch, call, error);
        if (sd_bus_message_is_method_call(call, PROPERTIES, "Set"))
                return set_property(dispatch, call, error);
        if (sd_bus_message_is_method_call(call, MANAGER, "GetManagedObjects") &&
            strcmp(sd_bus_message_get_path(call), dispatch->manager) == 0)
                return list_objects(dispatch, call, error);
        return call_method(dispatch, call, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the handler of a method, and answers the methods of org.freedesktop.DBus.Properties.
 * Handlers and properties come from the vtables that are registered with sd-bus. sd-bus checks the
 * signature of a call before it runs a handler, and so does this file. A call of an unknown object,
 * interface, method or property gets an error. This file checks no rights for a method: its handler
 * does. Only root and the agent's own user can set a property. This file ignores the offsets and
 * flags in a vtable. Each property needs a getter, and each writable one a setter. */

#include "agent/bus/dispatch.h"

#include <errno.h>
#include <string.h>

#define PROPERTIES "org.freedesktop.DBus.Properties"

/* Finding */

/* Finds an interface of the object that the call names. With interface NULL or "", finds the first
 * interface that was added for the object. Returns NULL with error set if there is none. */
static const BusPlace *find_place(const BusDispatch *dispatch, sd_bus_message *call,
                                  const char *interface, sd_bus_error *error)
{
        const char *path = sd_bus_message_get_path(call);

        for (const BusPlace *p = dispatch->places; p < dispatch->places + dispatch->n_places; p++)
                if (strcmp(p->path, path) == 0 &&
                    (!interface || !interface[0] || strcmp(p->interface, interface) == 0))
                        return p;
        (void)sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_OBJECT,
                                "There is no such object, or it does not have that interface: %s",
                                path);
        return NULL;
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

/* Returns 0 if the arguments of the call have the signature. Otherwise sets the bus error and
 * returns a negative errno. */
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

/* Appends the value of a property as a variant. */
static int append_value(const BusPlace *place, const sd_bus_vtable *v, sd_bus_message *call,
                        sd_bus_message *reply, sd_bus_error *error)
{
        int r = sd_bus_message_open_container(reply, 'v', v->x.property.signature);

        if (r >= 0)
                r = v->x.property.get(sd_bus_message_get_bus(call), place->path, place->interface,
                                      v->x.property.member, reply, place->userdata, error);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Reads interface and name of a property from the message, and finds both. Returns a negative errno
 * with error set if either is unknown. */
static int read_property(const BusDispatch *dispatch, sd_bus_message *call,
                         const BusPlace **ret_place, const sd_bus_vtable **ret, sd_bus_error *error)
{
        const char *interface, *name;
        int r = sd_bus_message_read(call, "ss", &interface, &name);

        if (r < 0)
                return r;
        *ret_place = find_place(dispatch, call, interface, error);
        if (!*ret_place)
                return -ENOENT;
        *ret = find_property((*ret_place)->vtable, name);
        return *ret ? 0
                    : sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_PROPERTY,
                                        "There is no property \"%.60s\"", name);
}

static int get_property(const BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const sd_bus_vtable *v;
        const BusPlace *place;
        int r = has_arguments(call, "ss", error);

        if (r >= 0)
                r = read_property(dispatch, call, &place, &v, error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_value(place, v, call, reply, error);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* Appends all properties of the interface, as an "a{sv}". */
static int append_properties(const BusPlace *place, sd_bus_message *call, sd_bus_message *reply,
                             sd_bus_error *error)
{
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        for (const sd_bus_vtable *v = place->vtable; r >= 0 && v->type != _SD_BUS_VTABLE_END; v++) {
                if (!is_property(v))
                        continue;
                r = sd_bus_message_open_container(reply, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append(reply, "s", v->x.property.member);
                if (r >= 0)
                        r = append_value(place, v, call, reply, error);
                if (r >= 0)
                        r = sd_bus_message_close_container(reply);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_all_properties(const BusDispatch *dispatch, sd_bus_message *call,
                              sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const BusPlace *place;
        const char *interface;
        int r = has_arguments(call, "s", error);

        if (r >= 0)
                r = sd_bus_message_read(call, "s", &interface);
        if (r < 0)
                return r;
        place = find_place(dispatch, call, interface, error);
        if (!place)
                return -ENOENT;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_properties(place, call, reply, error);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* Handles Set(). Only root and the agent's own user can set a property. */
static int set_property(const BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        const sd_bus_vtable *v;
        const BusPlace *place;
        const BusSender *sender = bus_gate_get_sender(dispatch->gate, call);
        int r = has_arguments(call, "ssv", error);

        if (r >= 0)
                r = read_property(dispatch, call, &place, &v, error);
        if (r < 0)
                return r;
        if (v->type != _SD_BUS_VTABLE_WRITABLE_PROPERTY)
                return sd_bus_error_setf(error, SD_BUS_ERROR_PROPERTY_READ_ONLY,
                                         "The property %s cannot be set", v->x.property.member);
        if (!sender || !sender->is_privileged)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Access denied");
        r = sd_bus_message_enter_container(call, 'v', v->x.property.signature);
        if (r >= 0)
                r = v->x.property.set(sd_bus_message_get_bus(call), place->path, place->interface,
                                      v->x.property.member, call, place->userdata, error);
        return r < 0 ? r : sd_bus_reply_method_return(call, NULL);
}

/* Serving */

/* Runs the handler of a method, and returns its result. Returns a negative errno with error set if
 * there is no such method, or if the arguments do not fit. */
static int call_method(const BusDispatch *dispatch, sd_bus_message *call, sd_bus_error *error)
{
        const char *member = sd_bus_message_get_member(call);
        const BusPlace *place =
                find_place(dispatch, call, sd_bus_message_get_interface(call), error);
        const sd_bus_vtable *v = place ? find_method(place->vtable, member) : NULL;
        int r;

        if (!place)
                return -ENOENT;
        if (!v)
                return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_METHOD,
                                         "There is no method \"%.60s\"", member);
        r = has_arguments(call, v->x.method.signature, error);
        return r < 0 ? r : v->x.method.handler(call, place->userdata, error);
}

int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const BusDispatch *dispatch = userdata;

        if (sd_bus_message_is_method_call(call, PROPERTIES, "Get"))
                return get_property(dispatch, call, error);
        if (sd_bus_message_is_method_call(call, PROPERTIES, "GetAll"))
                return get_all_properties(dispatch, call, error);
        if (sd_bus_message_is_method_call(call, PROPERTIES, "Set"))
                return set_property(dispatch, call, error);
        return call_method(dispatch, call, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Paths below BUS_PATH: provider/UUID with "_" for "-", device/NAME as sd_bus_path_encode() has it,
 * claim/NUMBER.
 *
 * The vtables are fallbacks: an object is looked up when it is asked for, so ten thousand claims
 * cost nothing while nobody asks. sd-bus calls find and then the getters of that object, so that
 * what was found is kept in one place until the next find. Claims that a lot of an enumeration has
 * listed are kept until the loop runs again, so that they are not read one by one. */

#include "agent/bus/objects.h"

#include <inttypes.h>
#include <string.h>

#include "agent/bus/claims-internal.h"
#include "agent/bus/object-changes.h"
#include "agent/formats/interface.h"
#include "base/array.h"
#include "base/log.h"

#define PROVIDER_PREFIX BUS_PATH "/provider"
#define DEVICE_PREFIX   BUS_PATH "/device"
#define CLAIM_PREFIX    BUS_PATH "/claim"
#define CLAIM_KEY_SIZE  24
#define PROPERTIES_MAX  8
#define ENUMERATE_FROM  16 /* changes that are worth reading all claims at once */

struct BusObjects {
        ClaimService *claims;
        sd_bus *bus;              /* NULL while there is none */
        sd_event_source *idle;    /* sends, and forgets what was listed */
        ProviderTree *tree;       /* as told, NULL before the first cycle */
        ObjectDevices devices;    /* as told */
        ObjectChanges changes;    /* to be told */
        ClaimList listed;         /* by the last enumeration */
        Claim *found_alone;       /* that found_claim is, when it is not of listed */
        const Claim *found_claim; /* what the last find found */
        const Provider *found_provider;
        const ObjectDevice *found_device;
};

/* Paths */

static const char *const prefixes[_OBJECT_KIND_MAX] = {
        [OBJECT_PROVIDER] = PROVIDER_PREFIX,
        [OBJECT_DEVICE] = DEVICE_PREFIX,
        [OBJECT_CLAIM] = CLAIM_PREFIX,
};
static const char *const interfaces[_OBJECT_KIND_MAX] = {
        [OBJECT_PROVIDER] = BUS_INTERFACE_PROVIDER,
        [OBJECT_DEVICE] = BUS_INTERFACE_DEVICE,
        [OBJECT_CLAIM] = BUS_INTERFACE_CLAIM,
};

static char *make_path(ObjectKind kind, const char *key)
{
        char *path = NULL;

        if (kind == OBJECT_DEVICE)
                return sd_bus_path_encode(DEVICE_PREFIX, key, &path) < 0 ? NULL : path;
        if (asprintf(&path, "%s/%s", prefixes[kind], key) < 0)
                return NULL;
        for (char *c = path; *c; c++)
                if (*c == '-')
                        *c = '_';
        return path;
}

/* The last element of a path of that kind, or NULL. */
static const char *path_element(ObjectKind kind, const char *path)
{
        size_t length = strlen(prefixes[kind]);

        return strncmp(path, prefixes[kind], length) == 0 && path[length] == '/' && path[length + 1]
                       ? path + length + 1
                       : NULL;
}

static char *claim_key(int64_t id, char key[static CLAIM_KEY_SIZE])
{
        snprintf(key, CLAIM_KEY_SIZE, "%" PRId64, id);
        return key;
}

/* Finding */

static int find_provider(sd_bus *bus, const char *path, const char *interface, void *userdata,
                         void **ret, sd_bus_error *error)
{
        BusObjects *objects = userdata;
        const char *element = path_element(OBJECT_PROVIDER, path);
        char text[64];
        Uuid uuid;

        if (!element || strlen(element) >= sizeof(text) || !objects->tree)
                return 0;
        strcpy(text, element);
        for (char *c = text; *c; c++)
                if (*c == '_')
                        *c = '-';
        if (uuid_from_text(text, &uuid) < 0 || strcmp(uuid.text, text) != 0)
                return 0;
        objects->found_provider = provider_tree_find(objects->tree, &uuid);
        *ret = objects;
        return objects->found_provider ? 1 : 0;
}

static int find_device(sd_bus *bus, const char *path, const char *interface, void *userdata,
                       void **ret, sd_bus_error *error)
{
        BusObjects *objects = userdata;
        _cleanup_free_ char *name = NULL;

        if (sd_bus_path_decode(path, DEVICE_PREFIX, &name) <= 0)
                return 0;
        objects->found_device = object_devices_find(&objects->devices, name);
        *ret = objects;
        return objects->found_device ? 1 : 0;
}

static int order_claim(const void *key, const void *item)
{
        int64_t a = *(const int64_t *)key, b = (*(Claim *const *)item)->id;

        return (a > b) - (a < b);
}

static const Claim *find_listed(const BusObjects *objects, int64_t id)
{
        bool found;
        size_t i = array_find(objects->listed.claims, sizeof(Claim *), objects->listed.n_claims,
                              &id, order_claim, &found);

        return found ? objects->listed.claims[i] : NULL;
}

static int find_claim_alone(BusObjects *objects, int64_t id)
{
        Claims *claims = claim_service_get(objects->claims);

        objects->found_alone = claim_free(objects->found_alone);
        if (!claims || claims_get(claims, id, &objects->found_alone, NULL) != 0 ||
            objects->found_alone->state == CLAIM_STATE_RELEASED)
                return 0;
        objects->found_claim = objects->found_alone;
        return 1;
}

static int find_claim(sd_bus *bus, const char *path, const char *interface, void *userdata,
                      void **ret, sd_bus_error *error)
{
        BusObjects *objects = userdata;
        const char *element = path_element(OBJECT_CLAIM, path);
        char key[CLAIM_KEY_SIZE];
        int64_t id;

        if (!element || strlen(element) > 18 || strspn(element, "0123456789") != strlen(element))
                return 0;
        id = strtoll(element, NULL, 10);
        if (strcmp(claim_key(id, key), element) != 0)
                return 0;
        *ret = objects;
        objects->found_claim = find_listed(objects, id);
        return objects->found_claim ? 1 : find_claim_alone(objects, id);
}

/* Enumerating */

static int add_path(char **paths, size_t i, ObjectKind kind, const char *key)
{
        paths[i] = make_path(kind, key);
        return paths[i] ? 0 : -ENOMEM;
}

static void free_paths(char ***paths)
{
        for (char **path = *paths; path && *path; path++)
                free(*path);
        free(*paths);
}

static int list_providers(BusObjects *objects, size_t first, size_t end, char ***ret)
{
        _cleanup_(free_paths) char **paths = calloc(end - first + 1, sizeof(char *));

        if (!paths)
                return -ENOMEM;
        for (size_t i = first; i < end; i++)
                if (add_path(paths, i - first, OBJECT_PROVIDER,
                             objects->tree->providers[i]->uuid.text) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(paths);
        return 0;
}

static int list_devices(BusObjects *objects, size_t first, size_t end, char ***ret)
{
        _cleanup_(free_paths) char **paths = calloc(end - first + 1, sizeof(char *));

        if (!paths)
                return -ENOMEM;
        for (size_t i = first; i < end; i++)
                if (add_path(paths, i - first, OBJECT_DEVICE, objects->devices.items[i].name) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(paths);
        return 0;
}

/* So many at a time, so that others are served between. */
#define LOT 64

static int introspect_providers(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
                                sd_bus_error *error)
{
        BusObjects *objects = userdata;
        size_t n = objects->tree ? objects->tree->n_providers : 0;

        return list_providers(objects, 0, n, ret);
}

static int enumerate_providers(void *userdata, int64_t *cursor, char ***ret)
{
        BusObjects *objects = userdata;
        size_t n = objects->tree ? objects->tree->n_providers : 0, first = MIN((size_t)*cursor, n);

        *cursor = (int64_t)MIN(first + LOT, n);
        return list_providers(objects, first, (size_t)*cursor, ret);
}

static int introspect_devices(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
                              sd_bus_error *error)
{
        BusObjects *objects = userdata;

        return list_devices(objects, 0, objects->devices.n_items, ret);
}

static int enumerate_devices(void *userdata, int64_t *cursor, char ***ret)
{
        BusObjects *objects = userdata;
        size_t n = objects->devices.n_items, first = MIN((size_t)*cursor, n);

        *cursor = (int64_t)MIN(first + LOT, n);
        return list_devices(objects, first, (size_t)*cursor, ret);
}

static int compare_claims(const void *a, const void *b)
{
        int64_t id_a = (*(Claim *const *)a)->id, id_b = (*(Claim *const *)b)->id;

        return id_a < id_b ? -1 : id_a > id_b;
}

/* Keeps them until the loop runs again. */
static void keep_listed(BusObjects *objects, int r)
{
        if (r != 0)
                claim_list_done(&objects->listed);
        if (objects->listed.n_claims > 0)
                qsort(objects->listed.claims, objects->listed.n_claims, sizeof(Claim *),
                      compare_claims);
        (void)sd_event_source_set_enabled(objects->idle, SD_EVENT_ONESHOT);
}

static void forget_listed(BusObjects *objects)
{
        objects->found_claim = NULL;
        claim_list_done(&objects->listed);
}

static void list_all_claims(BusObjects *objects)
{
        Claims *claims = claim_service_get(objects->claims);

        forget_listed(objects);
        keep_listed(objects, claims ? claims_list(claims, false, &objects->listed, NULL) : 0);
}

static int enumerate_claims(void *userdata, int64_t *cursor, char ***ret)
{
        BusObjects *objects = userdata;
        Claims *claims = claim_service_get(objects->claims);
        _cleanup_(free_paths) char **paths = NULL;
        char key[CLAIM_KEY_SIZE];

        forget_listed(objects);
        keep_listed(objects,
                    claims ? claims_list_some(claims, *cursor, &objects->listed, NULL) : 0);
        paths = calloc(objects->listed.n_claims + 1, sizeof(char *));
        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < objects->listed.n_claims; i++) {
                *cursor = objects->listed.claims[i]->id;
                if (add_path(paths, i, OBJECT_CLAIM, claim_key(*cursor, key)) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(paths);
        return 0;
}

/* Properties of providers */

static int append_texts(sd_bus_message *reply, const StringSet *set)
{
        int r = sd_bus_message_open_container(reply, 'a', "s");

        for (size_t i = 0; r >= 0 && i < set->n_items; i++)
                r = sd_bus_message_append(reply, "s", set->items[i]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_inventories(sd_bus_message *reply, const Provider *provider)
{
        int r = sd_bus_message_open_container(reply, 'a', "{s" BUS_INVENTORY "}");

        for (size_t i = 0; r >= 0 && i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                const Inventory *inventory = &record->inventory;

                r = sd_bus_message_append(reply, "{s" BUS_INVENTORY "}", record->resource_class,
                                          inventory->total, inventory->reserved,
                                          inventory->min_unit, inventory->max_unit,
                                          inventory->step_size, inventory->allocation_ratio,
                                          inventory_capacity(inventory));
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_usage(sd_bus_message *reply, BusObjects *objects, const Provider *provider)
{
        Claims *claims = claim_service_get(objects->claims);
        const Resources *used = NULL;
        const HostView *view;
        size_t place;
        int r;

        if (claims && claims_host(claims, &view, NULL) == 0 &&
            host_view_find(view, &provider->uuid, &place))
                used = &view->providers[place].used;
        r = sd_bus_message_open_container(reply, 'a', "{st}");
        for (size_t i = 0; r >= 0 && used && i < used->n_items; i++)
                r = sd_bus_message_append(reply, "{st}", used->items[i].resource_class,
                                          used->items[i].amount);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_provider(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        BusObjects *objects = userdata;
        const Provider *provider = objects->found_provider;

        switch (property[0]) {
        case 'N': /* Name */
                return sd_bus_message_append(reply, "s", provider->name);
        case 'P': /* Parent */
                return sd_bus_message_append(reply, "s", provider->parent.text);
        case 'I': /* Inventories */
                return append_inventories(reply, provider);
        case 'T': /* Traits */
                return append_texts(reply, &provider->traits);
        case 'A': /* Aggregates */
                return append_texts(reply, &provider->aggregates);
        default:
                return strcmp(property, "Usage") == 0
                               ? append_usage(reply, objects, provider)
                               : sd_bus_message_append(reply, "s", provider->uuid.text);
        }
}

/* Properties of devices */

static int append_holders(sd_bus_message *reply, BusObjects *objects, const ObjectDevice *device)
{
        Claims *claims = claim_service_get(objects->claims);
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r;

        if (claims && claims_list_device(claims, device->name, &list, NULL) != 0)
                list.n_claims = 0;
        r = sd_bus_message_open_container(reply, 'a', "x");
        for (size_t i = 0; r >= 0 && i < list.n_claims; i++)
                r = sd_bus_message_append(reply, "x", list.claims[i]->id);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_device(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        BusObjects *objects = userdata;
        const ObjectDevice *device = objects->found_device;
        const struct {
                const char *property, *text;
        } texts[] = {
                { "Name", device->name },          { "Address", device->address },
                { "MdevType", device->mdev_type }, { "ResourceClass", device->resource_class },
                { "Driver", device->driver },      { "Vendor", device->vendor },
                { "Product", device->product }
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (strcmp(property, texts[i].property) == 0)
                        return sd_bus_message_append(reply, "s", texts[i].text);
        return strcmp(property, "Claims") == 0
                       ? append_holders(reply, objects, device)
                       : sd_bus_message_append(reply, "i", (int32_t)device->numa_node);
}

/* Properties of claims */

static int get_claim_text(sd_bus *bus, const char *path, const char *interface,
                          const char *property, sd_bus_message *reply, void *userdata,
                          sd_bus_error *error)
{
        const Claim *claim = ((BusObjects *)userdata)->found_claim;
        const struct {
                const char *property, *text;
        } texts[] = { { "Consumer", claim->consumer.text },
                      { "State", claim_state_to_text(claim->state) },
                      { "Project", claim->project_id },
                      { "User", claim->user_id },
                      { "ConsumerType", claim->consumer_type } };
        size_t i = 0;

        while (strcmp(property, texts[i].property) != 0)
                i++;
        return sd_bus_message_append(reply, "s", texts[i].text);
}

static int get_claim_number(sd_bus *bus, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error)
{
        const Claim *claim = ((BusObjects *)userdata)->found_claim;

        if (strcmp(property, "Id") == 0)
                return sd_bus_message_append(reply, "x", claim->id);
        if (strcmp(property, "ResizeTarget") == 0)
                return sd_bus_message_append(reply, "b", (int)claim->resize_target);
        return sd_bus_message_append(reply, "t",
                                     strcmp(property, "CreatedUSec") == 0 ? claim->created_usec
                                                                          : claim->expires_usec);
}

static int get_claim_list(sd_bus *bus, const char *path, const char *interface,
                          const char *property, sd_bus_message *reply, void *userdata,
                          sd_bus_error *error)
{
        BusObjects *objects = userdata;
        const Claim *claim = objects->found_claim;

        switch (property[0]) {
        case 'A':
                return bus_append_allocations(reply, claim);
        case 'D':
                return bus_append_devices(reply, objects->claims, claim);
        case 'M':
                return bus_append_mappings(reply, claim);
        default:
                return strcmp(property, "Cells") == 0 ? bus_append_cells(reply, &claim->layout)
                                                      : bus_append_cpus(reply, &claim->layout);
        }
}

#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable provider_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Uuid", "s", get_provider, 0, CONSTANT),
        SD_BUS_PROPERTY("Name", "s", get_provider, 0, CHANGES),
        SD_BUS_PROPERTY("Parent", "s", get_provider, 0, CHANGES),
        SD_BUS_PROPERTY("Inventories", "a{s" BUS_INVENTORY "}", get_provider, 0, CHANGES),
        SD_BUS_PROPERTY("Usage", "a{st}", get_provider, 0, CHANGES),
        SD_BUS_PROPERTY("Traits", "as", get_provider, 0, CHANGES),
        SD_BUS_PROPERTY("Aggregates", "as", get_provider, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable device_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", get_device, 0, CONSTANT),
        SD_BUS_PROPERTY("Address", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("ResourceClass", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("MdevType", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("Driver", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("Vendor", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("Product", "s", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("NumaNode", "i", get_device, 0, CHANGES),
        SD_BUS_PROPERTY("Claims", "ax", get_device, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable claim_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "x", get_claim_number, 0, CONSTANT),
        SD_BUS_PROPERTY("Consumer", "s", get_claim_text, 0, CONSTANT),
        SD_BUS_PROPERTY("Project", "s", get_claim_text, 0, CONSTANT),
        SD_BUS_PROPERTY("User", "s", get_claim_text, 0, CONSTANT),
        SD_BUS_PROPERTY("ConsumerType", "s", get_claim_text, 0, CONSTANT),
        SD_BUS_PROPERTY("CreatedUSec", "t", get_claim_number, 0, CONSTANT),
        SD_BUS_PROPERTY("State", "s", get_claim_text, 0, CHANGES),
        SD_BUS_PROPERTY("ResizeTarget", "b", get_claim_number, 0, CHANGES),
        SD_BUS_PROPERTY("ExpiresUSec", "t", get_claim_number, 0, CHANGES),
        SD_BUS_PROPERTY("Allocations", "a" BUS_ALLOCATION, get_claim_list, 0, CHANGES),
        SD_BUS_PROPERTY("Devices", "a" BUS_DEVICE, get_claim_list, 0, CHANGES),
        SD_BUS_PROPERTY("Cells", "a" BUS_CELL, get_claim_list, 0, CHANGES),
        SD_BUS_PROPERTY("Cpus", "a" BUS_CPU, get_claim_list, 0, CHANGES),
        SD_BUS_PROPERTY("Mappings", BUS_MAPPINGS, get_claim_list, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

/* Telling */

static void tell_changed(const BusObjects *objects, const ObjectChange *change, const char *path)
{
        const char *names[PROPERTIES_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < PROPERTIES_MAX; i++) {
                const char *name = object_property_name(change->kind, i);

                if (name && change->properties & (1U << i))
                        names[n++] = name;
        }
        (void)sd_bus_emit_properties_changed_strv(objects->bus, path, interfaces[change->kind],
                                                  (char **)names);
}

static void tell(const BusObjects *objects, const ObjectChange *change)
{
        _cleanup_free_ char *path = make_path(change->kind, change->key);

        if (!path)
                return;
        switch (change->fate) {
        case OBJECT_ADDED:
                (void)sd_bus_emit_interfaces_added(objects->bus, path, interfaces[change->kind],
                                                   NULL);
                break;
        case OBJECT_REMOVED:
                (void)sd_bus_emit_interfaces_removed(objects->bus, path, interfaces[change->kind],
                                                     NULL);
                break;
        default:
                tell_changed(objects, change, path);
        }
}

static int on_idle(sd_event_source *source, void *userdata)
{
        BusObjects *objects = userdata;
        ObjectChanges changes = objects->changes;

        objects->changes = (ObjectChanges){ 0 };
        if (objects->bus && sd_bus_is_ready(objects->bus) > 0) {
                /* One reading for a flock of them. */
                if (changes.n_items > ENUMERATE_FROM)
                        list_all_claims(objects);
                for (size_t i = 0; i < changes.n_items; i++)
                        tell(objects, &changes.items[i]);
        }
        object_changes_done(&changes);
        objects->found_claim = NULL;
        claim_list_done(&objects->listed);
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static void arm(BusObjects *objects, int r)
{
        if (r < 0)
                log_warning("Out of memory: not all changes are told on D-Bus, ignoring.");
        (void)sd_event_source_set_enabled(objects->idle, SD_EVENT_ONESHOT);
}

void bus_objects_note_claim(BusObjects *objects, ClaimEvent event, const Claim *claim)
{
        static const ObjectFate fates[] = {
                [CLAIM_EVENT_ADDED] = OBJECT_ADDED,
                [CLAIM_EVENT_CHANGED] = OBJECT_CHANGED,
                [CLAIM_EVENT_REMOVED] = OBJECT_REMOVED,
        };
        char key[CLAIM_KEY_SIZE];
        int r = object_changes_add(&objects->changes, OBJECT_CLAIM, claim_key(claim->id, key),
                                   fates[event], OBJECT_PROPERTIES_ALL);

        /* What it has, others have no more, or again. */
        for (size_t i = 0; r >= 0 && i < claim->n_allocations; i++)
                r = object_changes_add(&objects->changes, OBJECT_PROVIDER,
                                       claim->allocations[i].provider.text, OBJECT_CHANGED,
                                       PROVIDER_PROPERTY_USAGE);
        for (size_t i = 0; r >= 0 && i < claim->n_devices; i++)
                r = object_changes_add(&objects->changes, OBJECT_DEVICE, claim->devices[i].name,
                                       OBJECT_CHANGED, DEVICE_PROPERTY_CLAIMS);
        arm(objects, r);
}

static int update_tree(BusObjects *objects, const ProviderTree *tree)
{
        ProviderTree *copy;
        int r = provider_tree_copy(&copy, tree);

        if (r < 0)
                return r;
        r = object_changes_compare_trees(&objects->changes, objects->tree, copy);
        provider_tree_free(objects->tree);
        objects->tree = copy;
        return r;
}

static int update_devices(BusObjects *objects, const HostFacts *facts, const Snapshot *snapshot)
{
        ObjectDevices devices = { 0 };
        int r = object_devices_make(facts, snapshot, &devices);

        if (r < 0)
                return r;
        r = object_changes_compare_devices(&objects->changes, &objects->devices, &devices);
        object_devices_done(&objects->devices);
        objects->devices = devices;
        return r;
}

void bus_objects_update(BusObjects *objects, const ProviderTree *tree, const Snapshot *snapshot)
{
        const HostFacts *facts = claim_service_facts(objects->claims);
        int r = tree ? update_tree(objects, tree) : 0;

        if (r >= 0 && facts && snapshot)
                r = update_devices(objects, facts, snapshot);
        arm(objects, r);
}

/* Life */

int bus_objects_attach(BusObjects *objects, BusDispatch *dispatch, sd_bus *bus)
{
        const BusPlace places[_OBJECT_KIND_MAX] = {
                [OBJECT_PROVIDER] = { .vtable = provider_vtable,
                                      .find = find_provider,
                                      .enumerate = enumerate_providers,
                                      .introspect = introspect_providers },
                [OBJECT_DEVICE] = { .vtable = device_vtable,
                                    .find = find_device,
                                    .enumerate = enumerate_devices,
                                    .introspect = introspect_devices },
                /* Introspect answers at once, and claims may be very many. */
                [OBJECT_CLAIM] = { .vtable = claim_vtable,
                                   .find = find_claim,
                                   .enumerate = enumerate_claims },
        };
        int r = sd_bus_add_object_manager(bus, NULL, BUS_PATH);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(places); i++) {
                BusPlace place = places[i];

                place.path = prefixes[i];
                place.interface = interfaces[i];
                place.userdata = objects;
                r = bus_dispatch_add(dispatch, bus, &place);
        }
        if (r >= 0)
                objects->bus = bus;
        return r;
}

void bus_objects_detach(BusObjects *objects)
{
        objects->bus = NULL;
}

int bus_objects_new(BusObjects **ret, sd_event *event, ClaimService *claims)
{
        _cleanup_(bus_objects_freep) BusObjects *objects = calloc(1, sizeof(BusObjects));
        int r;

        if (!objects)
                return -ENOMEM;
        objects->claims = claims;
        r = sd_event_add_defer(event, &objects->idle, on_idle, objects);
        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(objects->idle, SD_EVENT_OFF);
        *ret = TAKE_PTR(objects);
        return 0;
}

BusObjects *bus_objects_free(BusObjects *objects)
{
        if (!objects)
                return NULL;
        sd_event_source_disable_unref(objects->idle);
        object_changes_done(&objects->changes);
        object_devices_done(&objects->devices);
        claim_list_done(&objects->listed);
        claim_free(objects->found_alone);
        provider_tree_free(objects->tree);
        free(objects);
        return NULL;
}

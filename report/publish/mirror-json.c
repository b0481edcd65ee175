/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes a mirror as JSON and makes it again. An item of the list of providers has the members of
 * Placement's list, and those of the answers about the three parts: "resource_provider_generation",
 * "inventories", "traits" and "aggregates". The mirror is made as in a refresh: from the list, and
 * then part by part. Only the names that Placement lacked are written. Names of the providers'
 * classes and traits become known with their parts. Any other name is looked up again when it is
 * needed. A document of another form is -EBADMSG. */

#include "report/publish/mirror-json.h"

#include <errno.h>

#include "base/json.h"

static json_t *inventories_to_json(const Provider *provider)
{
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; object && i < provider->n_inventories; i++)
                if (json_object_set_new(object, provider->inventories[i].resource_class,
                                        inventory_to_json(&provider->inventories[i].inventory)) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

/* Writes a provider. Its generation is there twice: as in Placement's list, and as in the answers
 * about the parts. NULL: memory ran out, also in a part. */
static json_t *provider_to_json(const Mirror *mirror, const Provider *provider)
{
        json_int_t generation = mirror_get_generation(mirror, &provider->uuid);
        const char *parent = uuid_empty(&provider->parent) ? NULL : provider->parent.text;

        return json_pack("{ss ss ss? sI sI so so so}", "uuid", provider->uuid.text, "name",
                         provider->name, "parent_provider_uuid", parent, "generation", generation,
                         "resource_provider_generation", generation, "inventories",
                         inventories_to_json(provider), "traits",
                         string_set_to_json(&provider->traits), "aggregates",
                         string_set_to_json(&provider->aggregates));
}

static json_t *providers_to_json(const Mirror *mirror)
{
        const ProviderTree *tree = mirror->tree;
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < tree->n_providers; i++)
                if (json_array_append_new(array, provider_to_json(mirror, tree->providers[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

json_t *mirror_to_json(const Mirror *mirror)
{
        const MirrorNames *names = &mirror->names;

        return json_pack("{sI so so so}", "modified_sec", (json_int_t)mirror->list->modified_sec,
                         "resource_providers", providers_to_json(mirror), "missing_classes",
                         string_set_to_json(&names->missing_classes), "missing_traits",
                         string_set_to_json(&names->missing_traits));
}

/* Checks that the two generations are equal, and reads the three parts of a provider that the list
 * already added. */
static int read_provider(Mirror *mirror, const json_t *item, Error *reterr)
{
        int64_t listed, generation;
        Uuid uuid;
        int r;

        if ((r = json_read_uuid(item, "uuid", &uuid, reterr)) < 0 ||
            (r = json_read_i64(item, "generation", &listed, reterr)) < 0 ||
            (r = placement_read_generation(item, PLACEMENT_GENERATION_OF_PART, &generation,
                                           reterr)) < 0)
                return r;
        if (listed != generation)
                return error_setf(reterr, EBADMSG, "Provider %s has two generations", uuid.text);
        for (size_t part = 0; r == 0 && part < _PLACEMENT_PART_MAX; part++)
                r = mirror_read(mirror, &uuid, (PlacementPart)part, item, reterr);
        return r;
}

/* Reads a list of names that Placement lacks, and tells each one to the mirror. */
static int read_missing(Mirror *mirror, const json_t *json, const char *key, PlacementPart part,
                        Error *reterr)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        json_t *array;
        int r = json_read_array(json, key, &array, reterr);

        if (r >= 0)
                r = string_set_from_json(array, &names, reterr);
        for (size_t i = 0; r >= 0 && i < names.n_items; i++)
                if (mirror_learn(mirror, part, names.items[i], false) < 0)
                        r = error_oom(reterr);
        return r;
}

static int read_providers(Mirror *mirror, const json_t *json, Error *reterr)
{
        json_t *array, *item;
        size_t i;
        int r = json_read_array(json, "resource_providers", &array, reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item)
                if ((r = read_provider(mirror, item, reterr)) < 0)
                        return r;
        return 0;
}

int mirror_from_json(const json_t *json, Mirror **ret, Error *reterr)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_(mirror_freep) Mirror *empty = NULL, *mirror = NULL;
        PlacementSeen seen = { 0 };
        int r;

        if ((r = json_read_u64(json, "modified_sec", &seen.modified_sec, reterr)) < 0 ||
            (r = placement_read_tree(json, &providers, reterr)) < 0)
                return r;
        if (mirror_new(&empty) < 0)
                return error_oom(reterr);
        if ((r = mirror_make_next(empty, NULL, &providers, &mirror, reterr)) < 0 ||
            (r = read_providers(mirror, json, reterr)) < 0 ||
            (r = read_missing(mirror, json, "missing_classes", PLACEMENT_INVENTORIES, reterr)) <
                    0 ||
            (r = read_missing(mirror, json, "missing_traits", PLACEMENT_TRAITS, reterr)) < 0)
                return r;
        mirror_set_list(mirror, &seen);
        *ret = TAKE_PTR(mirror);
        return 0;
}

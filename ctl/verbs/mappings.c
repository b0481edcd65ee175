/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/mappings.h"

#include <string.h>

#include "ctl/print/json.h"

void ctl_mappings_done(CtlMappings *mappings)
{
        request_mappings_done(&mappings->known);
        string_set_done(&mappings->named);
        mappings->named = STRING_SET_INIT;
}

static int add_known(RequestMappings *known, const char *text, const Uuid *provider, Error *reterr)
{
        _cleanup_free_ char *suffix = strndup(text, strcspn(text, "="));

        if (!suffix || request_mappings_add(known, suffix, provider) < 0)
                return error_oom(reterr);
        return 0;
}

int ctl_mappings_add(CtlMappings *mappings, const char *text, Error *reterr)
{
        const char *sign = strchr(text, '=');
        Uuid provider;

        if (!sign || !sign[1])
                return error_setf(
                        reterr, EINVAL,
                        "\"%.60s\" is not a mapping: SUFFIX=PROVIDER, the name or the uuid of one that \"computectl tree\" shows",
                        text);
        if (uuid_from_text(sign + 1, &provider) == 0)
                return add_known(&mappings->known, text, &provider, reterr);
        return string_set_add(&mappings->named, text) < 0 ? error_oom(reterr) : 0;
}

static int check_group(const ResourceRequest *request, const char *suffix, size_t n, Error *reterr)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (strlen(request->groups[i].suffix) == n &&
                    strncmp(request->groups[i].suffix, suffix, n) == 0)
                        return 0;
        return error_setf(reterr, EINVAL, "--mapping: no group \"%.*s\" is asked for",
                          (int)MIN(n, (size_t)60), suffix);
}

int ctl_mappings_check(const CtlMappings *mappings, const ResourceRequest *request, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < mappings->known.n_items; i++) {
                const char *suffix = mappings->known.items[i].suffix;

                r = check_group(request, suffix, strlen(suffix), reterr);
        }
        for (size_t i = 0; r == 0 && i < mappings->named.n_items; i++) {
                const char *text = mappings->named.items[i];

                r = check_group(request, text, strcspn(text, "="), reterr);
        }
        return r;
}

static int find_provider(const json_t *tree, const char *name, Uuid *ret, Error *reterr)
{
        const json_t *provider = ctl_json_find(json_object_get(tree, "providers"), "name", name);

        if (provider)
                return uuid_from_text(ctl_json_text(provider, "uuid"), ret);
        return error_setf(
                reterr, EINVAL,
                "--mapping: this host has no provider \"%.100s\"; \"computectl tree\" shows them",
                name);
}

int ctl_mappings_resolve(CtlMappings *mappings, const json_t *tree, Error *reterr)
{
        for (size_t i = 0; i < mappings->named.n_items; i++) {
                const char *text = mappings->named.items[i];
                Uuid provider;
                int r = find_provider(tree, strchr(text, '=') + 1, &provider, reterr);

                if (r == 0)
                        r = add_known(&mappings->known, text, &provider, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/cpu-model.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "drivers/libvirt/xml.h"

/* Letters, digits and what libvirt's names have between them: nothing that XML would take
 * otherwise.
 */
static bool is_name(const char *text)
{
        for (const char *c = text; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("._+- ", *c))
                        return false;
        return text[0] != '\0';
}

static bool are_names(const StringSet *set)
{
        for (size_t i = 0; set && i < set->n_items; i++)
                if (!is_name(set->items[i]))
                        return false;
        return true;
}

char *cpu_model_format(const char *arch, const char *model, const char *vendor,
                       const StringSet *features)
{
        char *text = NULL;
        size_t size;
        FILE *stream;
        bool failed;

        if (!is_name(arch) || !is_name(model) || !are_names(features))
                return NULL;
        stream = open_memstream(&text, &size);
        if (!stream)
                return NULL;
        fprintf(stream, "<cpu><arch>%s</arch><model>%s</model>", arch, model);
        if (vendor && is_name(vendor))
                fprintf(stream, "<vendor>%s</vendor>", vendor);
        for (size_t i = 0; features && i < features->n_items; i++)
                fprintf(stream, "<feature name='%s'/>", features->items[i]);
        fprintf(stream, "</cpu>");
        failed = ferror(stream) != 0;
        if (fclose(stream) != 0 || failed) {
                free(text);
                return NULL;
        }
        return text;
}

int cpu_model_read_features(const char *text, StringSet *ret, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        int r = xml_parse(text, "cpu", &document, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "CPU");
        XML_FOREACH(feature, xml_root(document), "feature") {
                _cleanup_free_ char *name = NULL;

                if (strcmp(xml_attribute(feature, "policy"), "disable") == 0 ||
                    strcmp(xml_attribute(feature, "policy"), "forbid") == 0)
                        continue;
                r = xml_copy(xml_attribute(feature, "name"), "feature", &name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "CPU");
                if (name[0] && string_set_add(ret, name) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int cpu_model_apply_flags(char *const flags[], StringSet *features)
{
        for (; flags && *flags; flags++) {
                _cleanup_free_ char *name = strdup(*flags + (**flags == '+' || **flags == '-'));

                if (!name)
                        return -ENOMEM;
                for (char *c = name; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (**flags == '-')
                        string_set_remove(features, name);
                else if (string_set_add(features, name) < 0)
                        return -ENOMEM;
        }
        return 0;
}

const char *cpu_model_of_arch(const char *arch)
{
        static const struct {
                const char *arch, *model;
        } models[] = {
                { "x86_64", "qemu64" },
                { "i686", "qemu32" },
                { "ppc64le", "POWER8" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(models); i++)
                if (strcmp(models[i].arch, arch) == 0)
                        return models[i].model;
        return NULL;
}

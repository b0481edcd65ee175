/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads booleans, numbers and lists from the texts of options, by the rules of oslo.config, and
 * checks the forms of strings. Each form (ConfigForm) but CONFIG_FORM_ANY, which each text has, has
 * a function in the table of config_value_has_form(). Forms are strict where a text becomes part of
 * something else: a header of HTTP, a path in /sys, a name in Placement. Pure. Limit: a relative
 * path of a file (CONFIG_FORM_FILE_BELOW) can contain "..". */

#include "config/value.h"

#include "base/device-set.h"
#include "base/inventory.h"
#include "base/text.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define NAME_MAX_LENGTH 255  /* bytes */
#define URL_MAX_LENGTH  2048 /* bytes */

int config_value_bool(const char *text, bool *ret)
{
        static const struct {
                const char *text;
                bool value;
        } words[] = {
                { "true", true },   { "1", true },  { "yes", true }, { "on", true },
                { "false", false }, { "0", false }, { "no", false }, { "off", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                if (strcasecmp(text, words[i].text) == 0) {
                        *ret = words[i].value;
                        return 0;
                }
        }
        return -EINVAL;
}

int config_value_i64(const char *text, int64_t *ret)
{
        const char *digits = text + (text[0] == '-' || text[0] == '+');
        long long value;

        if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
                return -EINVAL;
        errno = 0;
        value = strtoll(text, NULL, 10);
        if (errno != 0)
                return -errno;
        *ret = value;
        return 0;
}

int config_value_double(const char *text, double *ret)
{
        locale_t locale;
        double value;
        char *end;

        /* Rejects "nan", "inf" and hexadecimal numbers. */
        if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
                return -EINVAL;
        locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
        if (!locale)
                return -ENOMEM;
        value = strtod_l(text, &end, locale);
        freelocale(locale);
        if (end == text || *end != '\0' || !isfinite(value))
                return -EINVAL;
        *ret = value;
        return 0;
}

/* Allocates space for one item more than there are commas, and for the NULL at the end. */
int config_value_list(const char *text, char ***ret)
{
        _cleanup_(strings_freep) char **items = NULL;
        size_t n = 0, n_max = 2;

        for (const char *c = text; *c; c++)
                n_max += *c == ',';
        items = calloc(n_max, sizeof(char *));
        if (!items)
                return -ENOMEM;

        for (const char *item = text;; item++) {
                size_t length;

                item += strspn(item, " \t\r\n\v\f");
                length = strcspn(item, ",");
                for (text = item + length; length > 0 && isspace((unsigned char)item[length - 1]);)
                        length--;
                if (length > 0) {
                        items[n] = strndup(item, length);
                        if (!items[n++])
                                return -ENOMEM;
                }
                item = text;
                if (*item == '\0')
                        break;
        }
        *ret = TAKE_PTR(items);
        return 0;
}

static bool is_absolute_path(const char *text)
{
        return text[0] == '/';
}

/* Checks for printable ASCII without white space. */
static bool is_plain(const char *text)
{
        for (; *text; text++)
                if (*text <= 0x20 || *text > 0x7e)
                        return false;
        return true;
}

/* Checks a hostname; the empty text means the hostname of the system. */
static bool is_host_name(const char *text)
{
        return is_plain(text) && strlen(text) <= NAME_MAX_LENGTH;
}

static bool is_trait(const char *text)
{
        return text[0] == '\0' || resource_class_valid(text);
}

/* Checks a token, which becomes a line of an HTTP header. */
static bool is_token(const char *text)
{
        return text[0] != '\0' && is_plain(text);
}

/* Checks for SCHEME:/…, as libvirt's URIs begin. */
static bool is_driver_uri(const char *text)
{
        const char *end = strstr(text, ":");

        return is_plain(text) && islower((unsigned char)text[0]) && end && end[1] == '/' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == (size_t)(end - text);
}

/* Checks for unix:///PATH. The path must fit an address of a socket. */
static bool is_unix_url(const char *text)
{
        static const char scheme[] = "unix://";
        size_t skip = strlen(scheme), n;

        if (strncmp(text, scheme, skip) != 0 || text[skip] != '/')
                return false;
        n = strlen(text + skip);
        return n > 1 && n < sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

static bool is_http_url(const char *text)
{
        const char *host;
        size_t n;

        if (strncasecmp(text, "http://", 7) == 0)
                host = text + 7;
        else if (strncasecmp(text, "https://", 8) == 0)
                host = text + 8;
        else
                return false;
        n = strcspn(host, "/?#");
        /* A name or password in a URL would appear in logs. */
        return n > 0 && host[0] != ':' && !memchr(host, '@', n) && is_plain(text) &&
               !strpbrk(text, "?#") && strlen(text) <= URL_MAX_LENGTH;
}

static bool is_endpoint(const char *text)
{
        return is_http_url(text) || is_unix_url(text);
}

static bool is_word(const char *text)
{
        return text[0] != '\0' && is_plain(text) && strlen(text) <= NAME_MAX_LENGTH;
}

/* Checks a class for mdevs: VGPU or a custom class. */
static bool is_mdev_class(const char *text)
{
        return strcmp(text, "VGPU") == 0 ||
               (resource_class_valid(text) && resource_class_is_custom(text) &&
                strcmp(text, "CUSTOM_") != 0);
}

/* Checks an mdev type, which becomes the name of a folder in /sys. */
static bool is_mdev_type(const char *text)
{
        return text[0] != '\0' && text[0] != '.' && is_plain(text) && !strchr(text, '/') &&
               strlen(text) <= NAME_MAX_LENGTH;
}

/* Checks for an address such as 0000:41:00.0. In the form, "x" stands for a hexadecimal digit and
 * "7" for a function. */
static bool is_pci_address(const char *text)
{
        static const char form[] = "xxxx:xx:xx.7";

        if (strlen(text) != strlen(form))
                return false;
        for (size_t i = 0; form[i]; i++) {
                char c = text[i];

                if (form[i] == 'x'   ? !isxdigit((unsigned char)c)
                    : form[i] == '7' ? c < '0' || c > '7'
                                     : c != form[i])
                        return false;
        }
        return true;
}

/* Checks for a PCI address, or a path below /sys/devices/ that does not leave it. */
static bool is_device_address(const char *text)
{
        static const char devices[] = "/sys/devices/";
        size_t skip = strlen(devices), n = strlen(text);

        if (strncmp(text, devices, skip) != 0)
                return is_pci_address(text);
        return n > skip && is_plain(text) && !strstr(text, "/../") &&
               (n < 3 || strcmp(text + n - 3, "/..") != 0);
}

/* Checks for the name of a kernel driver, which becomes the name of a folder in /sys, or an empty
 * text. */
static bool is_kernel_driver(const char *text)
{
        return strlen(text) <= NAME_MAX_LENGTH &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                       strlen(text);
}

/* Checks for NAME@.service with characters of names of units, or an empty text. The name must not
 * begin with "-", because it becomes an argument. Its length leaves space for the longest instance,
 * the id of a partition: systemd limits the name of a unit to NAME_MAX_LENGTH. */
static bool is_unit_template(const char *text)
{
        static const char end[] = "@.service";
        size_t n = strlen(text), n_name;

        if (n == 0)
                return true;
        if (n <= strlen(end) || n > NAME_MAX_LENGTH - DEVICE_SET_ID_MAX)
                return false;
        n_name = n - strlen(end);
        return text[0] != '-' && strcmp(text + n_name, end) == 0 &&
               strspn(text,
                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.-\\") ==
                       n_name;
}

/* Checks for "libvirt" (in Nova also "libvirt.LibvirtDriver"), "linux" or "static". */
static bool is_driver_name(const char *text)
{
        return strcmp(text, "libvirt") == 0 || strcmp(text, "libvirt.LibvirtDriver") == 0 ||
               strcmp(text, "linux") == 0 || strcmp(text, "static") == 0;
}

static bool is_tpm_secret_security(const char *text)
{
        return strcasecmp(text, "user") == 0 || strcasecmp(text, "host") == 0 ||
               strcasecmp(text, "deployment") == 0;
}

/* Checks a relative path of a file. A "$" is not allowed. */
static bool is_file_below(const char *text)
{
        return text[0] != '\0' && text[0] != '/' && text[strlen(text) - 1] != '/' &&
               !strchr(text, '$');
}

/* Checks for "OLD:NEW", two different resource classes. The first one must be a custom class. */
static bool is_renaming(const char *text)
{
        const char *colon = strchr(text, ':');
        char name[RESOURCE_CLASS_MAX + 1];

        if (!colon || (size_t)(colon - text) >= sizeof(name))
                return false;
        snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
        return resource_class_valid(name) && resource_class_is_custom(name) &&
               resource_class_valid(colon + 1) && strcmp(name, colon + 1) != 0;
}

bool config_value_has_form(const char *text, ConfigForm form)
{
        static bool (*const checks[_CONFIG_FORM_MAX])(const char *text) = {
                [CONFIG_FORM_PATH] = is_absolute_path,
                [CONFIG_FORM_HOST_NAME] = is_host_name,
                [CONFIG_FORM_TRAIT] = is_trait,
                [CONFIG_FORM_TOKEN] = is_token,
                [CONFIG_FORM_DRIVER_URI] = is_driver_uri,
                [CONFIG_FORM_ENDPOINT] = is_endpoint,
                [CONFIG_FORM_HTTP_URL] = is_http_url,
                [CONFIG_FORM_WORD] = is_word,
                [CONFIG_FORM_MDEV_CLASS] = is_mdev_class,
                [CONFIG_FORM_MDEV_TYPE] = is_mdev_type,
                [CONFIG_FORM_DEVICE_ADDRESS] = is_device_address,
                [CONFIG_FORM_PCI_ADDRESS] = is_pci_address,
                [CONFIG_FORM_KERNEL_DRIVER] = is_kernel_driver,
                [CONFIG_FORM_UNIT_TEMPLATE] = is_unit_template,
                [CONFIG_FORM_DRIVER_NAME] = is_driver_name,
                [CONFIG_FORM_TPM_SECURITY] = is_tpm_secret_security,
                [CONFIG_FORM_FILE_BELOW] = is_file_below,
                [CONFIG_FORM_RENAMING] = is_renaming,
        };

        return !checks[form] || checks[form](text);
}

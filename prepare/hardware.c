/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads cards, their virtual functions, and the processes that have a function open. The files of a
 * card in SYS/bus/pci/devices are sriov_numvfs, sriov_totalvfs, sriov_offset, sriov_stride and the
 * links driver and virtfnN. Those of a function are nvidia/current_vgpu_type, the links driver and
 * iommu_group, and the folder vfio-dev. Those of a device to clean are vendor, device and the link
 * physfn. Each process has its descriptors in PROC/PID/fd, and a VFIO handle is a link to
 * /dev/vfio/GROUP, /dev/vfio/noiommu-GROUP or /dev/vfio/devices/vfioN. The mediated devices of all
 * devices are the links SYS/bus/mdev/devices/UUID to .../PARENT/UUID, and vDPA devices those of
 * SYS/bus/vdpa/devices. Network devices above that of a function are its links net/NAME/upper_NAME.
 *
 * A descriptor of an IOMMU group counts for each function of the group. A path below another mount
 * of /dev ends in the same words, so only the end is compared, from "/vfio/" on. The text proves
 * nothing: a handle is an opened device with the number in SYS/class/vfio/GROUP/dev or
 * SYS/class/vfio-dev/vfioN/dev. If this cannot be read, its functions are unknown. If /proc, the
 * descriptors of any process, or the mediated or vDPA devices cannot be read, each function that is
 * not seen in use (open, or with devices above it) is unknown. A link of a card or function that is
 * missing or cannot be read means that there is none, and a missing file of SR-IOV counts as 0. A
 * number, or vfio-dev, that cannot be read makes the card or the function unreadable, and the
 * others are still read. An unreadable function that is not seen in use is unknown, too. A card
 * with more than 65,535 functions is unreadable, too. The functions of an unreadable card are not
 * read. Only a lack of memory ends the read of a host. Limits: a handle that was received over a
 * socket and is in no table of descriptors is not seen. Neither is the use of a network device in
 * another network namespace.
 *
 * Tests: tests/unit/prepare/test-hardware.c */

#include "prepare/hardware.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/read-file.h"
#include "base/text.h"

#define DEVICES    "bus/pci/devices"
#define FILE_MAX   4096
#define TARGET_MAX 4096
#define CLASS_SIZE (PREPARE_NAME_SIZE + 16)

int prepare_read_number(const PreparePaths *paths, const char *address, const char *name,
                        uint64_t *ret)
{
        _cleanup_free_ char *path = text_format("%s/" DEVICES "/%s/%s", paths->sys, address, name);
        _cleanup_free_ char *text = NULL;
        uint64_t number = 0;
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        r = read_file_text(path, FILE_MAX, &text, &n, NULL);
        if (r < 0)
                return r;
        for (n = 0; isdigit((unsigned char)text[n]) && number <= UINT32_MAX; n++)
                number = number * 10 + (uint64_t)(text[n] - '0');
        if (n == 0 || number > UINT32_MAX || (text[n] && !isspace((unsigned char)text[n])))
                return -EBADMSG;
        *ret = number;
        return 0;
}

/* Yields the last part of the target of a link, "" without a link. A longer name than fits is cut.
 * Returns -ENOMEM. */
static int read_link(const PreparePaths *paths, const char *address, const char *name,
                     char ret[static PREPARE_NAME_SIZE])
{
        _cleanup_free_ char *path = text_format("%s/" DEVICES "/%s/%s", paths->sys, address, name);
        char target[TARGET_MAX];
        const char *slash;
        ssize_t n;

        if (!path)
                return -ENOMEM;
        n = readlink(path, target, sizeof(target) - 1);
        target[MAX(n, 0)] = '\0';
        slash = strrchr(target, '/');
        snprintf(ret, PREPARE_NAME_SIZE, "%.63s", slash ? slash + 1 : target);
        return 0;
}

/* Yields the name of the VFIO device, "" without one. Returns -ENOMEM. */
static int read_vfio(const PreparePaths *paths, PrepareFunction *function)
{
        _cleanup_free_ char *path =
                text_format("%s/" DEVICES "/%s/vfio-dev", paths->sys, function->address);
        const struct dirent *entry;
        DIR *folder;

        if (!path)
                return -ENOMEM;
        folder = opendir(path);
        while (folder && (errno = 0, entry = readdir(folder)))
                if (strncmp(entry->d_name, "vfio", 4) == 0)
                        snprintf(function->vfio, sizeof(function->vfio), "%.60s", entry->d_name);
        if (errno != 0 && errno != ENOENT)
                snprintf(function->unreadable, sizeof(function->unreadable),
                         "Cannot read vfio-dev: %s", strerror(errno));
        if (folder)
                closedir(folder);
        return 0;
}

int prepare_read_function(const PreparePaths *paths, PrepareFunction *function)
{
        int r = prepare_read_number(paths, function->address, PREPARE_TYPE, &function->type);

        if (r == -ENOMEM)
                return r;
        function->has_type = r == 0;
        if (r < 0 && r != -ENOENT && r != -ENODEV)
                snprintf(function->unreadable, sizeof(function->unreadable),
                         "Cannot read " PREPARE_TYPE ": %s", strerror(-r));
        r = read_link(paths, function->address, "driver", function->driver);
        if (r == 0)
                r = read_link(paths, function->address, "iommu_group", function->group);
        return r == 0 ? read_vfio(paths, function) : r;
}

/* Reads a hexadecimal number such as "0x10de". */
static int read_id(const PreparePaths *paths, const char *address, const char *name, uint32_t *ret)
{
        _cleanup_free_ char *path = text_format("%s/" DEVICES "/%s/%s", paths->sys, address, name);
        _cleanup_free_ char *text = NULL;
        unsigned id;
        size_t n;
        int r;

        if (!path)
                return -ENOMEM;
        r = read_file_text(path, FILE_MAX, &text, &n, NULL);
        if (r == 0 && sscanf(text, "0x%4x", &id) == 1)
                *ret = id;
        return r == -ENOMEM || r == -ENOENT ? r : 0;
}

int prepare_read_device(const PreparePaths *paths, const char *address, SnapshotDevice *ret)
{
        char card[PREPARE_NAME_SIZE];
        int r;

        if (pci_address_parse(address, ret->address) < 0)
                return -ENOENT;
        ret->is_pci = true;
        r = read_id(paths, address, "vendor", &ret->vendor_id);
        if (r == 0)
                r = read_id(paths, address, "device", &ret->product_id);
        if (r == 0)
                r = read_link(paths, address, "physfn", card);
        if (r == 0 && card[0] && pci_address_parse(card, ret->physical_function) < 0)
                r = -ENOENT;
        return r;
}

/* Reads the functions of the links virtfnN. A link without an address is skipped. */
static int read_functions(const PreparePaths *paths, PrepareCard *card)
{
        for (uint64_t i = 0; i < card->n_virtual; i++) {
                PrepareFunction function = { 0 };
                char name[32], address[PREPARE_NAME_SIZE];
                int r;

                snprintf(name, sizeof(name), "virtfn%" PRIu64, i);
                r = read_link(paths, card->address, name, address);
                if (r < 0)
                        return r;
                if (pci_address_parse(address, function.address) < 0)
                        continue;
                r = prepare_read_function(paths, &function);
                if (r == 0)
                        r = array_grow(&card->functions, sizeof(PrepareFunction), card->n_functions,
                                       &card->n_allocated);
                if (r < 0)
                        return r;
                card->functions[card->n_functions++] = function;
        }
        return 0;
}

/* Reads a number of a card. A missing file is 0: the card has no SR-IOV. */
static int read_of_card(const PreparePaths *paths, PrepareCard *card, const char *name,
                        uint64_t *ret)
{
        int r = prepare_read_number(paths, card->address, name, ret);

        if (r < 0 && r != -ENOENT && r != -ENOMEM)
                snprintf(card->unreadable, sizeof(card->unreadable), "Cannot read %s: %s", name,
                         strerror(-r));
        return r == -ENOMEM ? r : 0;
}

static int read_card(const PreparePaths *paths, PrepareCard *card)
{
        _cleanup_free_ char *path = text_format("%s/" DEVICES "/%s", paths->sys, card->address);
        char driver[PREPARE_NAME_SIZE] = "";
        int r;

        if (!path)
                return -ENOMEM;
        card->exists = access(path, F_OK) == 0;
        r = read_link(paths, card->address, "driver", driver);
        card->has_driver = driver[0];
        if (r == 0)
                r = read_of_card(paths, card, PREPARE_NUMVFS, &card->n_virtual);
        if (r == 0)
                r = read_of_card(paths, card, "sriov_totalvfs", &card->max_virtual);
        if (r == 0)
                r = read_of_card(paths, card, "sriov_offset", &card->offset);
        if (r == 0)
                r = read_of_card(paths, card, "sriov_stride", &card->stride);
        if (r == 0 && card->n_virtual > UINT16_MAX)
                snprintf(card->unreadable, sizeof(card->unreadable), PREPARE_NUMVFS " is %" PRIu64,
                         card->n_virtual);
        return r == 0 && !card->unreadable[0] ? read_functions(paths, card) : r;
}

int prepare_read_host(const PreparePaths *paths, const HostConfig *config, PrepareHost *ret,
                      Error *reterr)
{
        size_t n_allocated = 0;

        for (size_t i = 0; i < config->n_prepares; i++)
                for (char **address = config->prepares[i].device_addresses; *address; address++) {
                        PrepareCard *card;

                        if (array_grow(&ret->cards, sizeof(PrepareCard), ret->n_cards,
                                       &n_allocated) < 0)
                                return error_oom(reterr);
                        card = &ret->cards[ret->n_cards++];
                        *card = (PrepareCard){ .options = &config->prepares[i] };
                        snprintf(card->address, sizeof(card->address), "%s", *address);
                        if (read_card(paths, card) < 0)
                                return error_oom(reterr);
                }
        return 0;
}

/* Checks whether a text is this word, or begins with it and a space, as before the "(deleted)" of a
 * removed file. */
static bool is_word(const char *text, const char *word)
{
        size_t n = strlen(word);

        return n > 0 && strncmp(text, word, n) == 0 && (text[n] == '\0' || text[n] == ' ');
}

/* Returns true if a descriptor with this link target can be a VFIO handle of the function: its
 * IOMMU group or its device. Yields the name of that in SYS/class. */
static bool is_named(const PrepareFunction *function, const char *target,
                     char ret[static CLASS_SIZE])
{
        static const char devices[] = "/vfio/devices/", groups[] = "/vfio/", noiommu[] = "noiommu-";
        const char *place = strstr(target, devices);
        bool has_prefix;

        if (place) {
                snprintf(ret, CLASS_SIZE, "vfio-dev/%s", function->vfio);
                return is_word(place + strlen(devices), function->vfio);
        }
        place = strstr(target, groups);
        if (!place)
                return false;
        place += strlen(groups);
        has_prefix = strncmp(place, noiommu, strlen(noiommu)) == 0;
        snprintf(ret, CLASS_SIZE, "vfio/%s%s", has_prefix ? noiommu : "", function->group);
        return is_word(place + (has_prefix ? strlen(noiommu) : 0), function->group);
}

/* A link of a folder: a descriptor of a process, or a device that can be below a function. */
typedef struct Link {
        const PreparePaths *paths;
        PrepareOpen kind; /* use that the link shows of a function */
        int folder;
        const char *name;
        char target[TARGET_MAX];
} Link;

/* Returns whether a descriptor whose link names this device of SYS/class has it open. Each user can
 * make a file with such a name, and can get a descriptor of the device with O_PATH, which has not
 * opened it. Asks no server of the file, which could hang. A file system that does not tell the
 * type has no device: FUSE does so to other users. */
static PrepareOpen check_handle(const Link *link, const char *class)
{
        _cleanup_free_ char *path = text_format("%s/class/%s/dev", link->paths->sys, class);
        _cleanup_free_ char *text = NULL;
        struct statx descriptor, file;
        unsigned major, minor;
        size_t n;
        int r = path ? read_file_text(path, FILE_MAX, &text, &n, NULL) : -ENOMEM;

        if (r == -ENOENT)
                return PREPARE_OPEN_NO; /* there is no such device */
        if (r < 0 || sscanf(text, "%u:%u", &major, &minor) != 2)
                return PREPARE_OPEN_UNKNOWN;
        if (statx(link->folder, link->name, AT_SYMLINK_NOFOLLOW, STATX_MODE, &descriptor) < 0 ||
            statx(link->folder, link->name, AT_STATX_DONT_SYNC, 0, &file) < 0)
                return errno == ENOENT || errno == ESRCH || errno == EIO || errno == ESTALE
                               ? PREPARE_OPEN_NO
                               : PREPARE_OPEN_UNKNOWN;
        return (descriptor.stx_mode & (S_IRUSR | S_IWUSR)) && S_ISCHR(file.stx_mode) &&
                               file.stx_rdev_major == major && file.stx_rdev_minor == minor
                       ? PREPARE_OPEN_YES
                       : PREPARE_OPEN_NO;
}

/* Returns true if a mediated or vDPA device with this link target is below the function. */
static bool is_parent(const PrepareFunction *function, const char *target)
{
        char part[PCI_ADDRESS_SIZE + 2];

        snprintf(part, sizeof(part), "/%s/", function->address);
        return strstr(target, part);
}

static PrepareOpen find_use(const PrepareFunction *function, const Link *link)
{
        char class[CLASS_SIZE];

        if (link->kind == PREPARE_OPEN_PARENT)
                return is_parent(function, link->target) ? link->kind : PREPARE_OPEN_NO;
        return is_named(function, link->target, class) ? check_handle(link, class)
                                                       : PREPARE_OPEN_NO;
}

/* Marks the functions that a link concerns. An open function stays open. */
static void note_link(PrepareHost *host, const Link *link)
{
        for (size_t i = 0; i < host->n_cards; i++)
                for (size_t j = 0; j < host->cards[i].n_functions; j++) {
                        PrepareFunction *function = &host->cards[i].functions[j];
                        PrepareOpen found = function->open == PREPARE_OPEN_YES
                                                    ? function->open
                                                    : find_use(function, link);

                        if (found == PREPARE_OPEN_YES || function->open == PREPARE_OPEN_NO)
                                function->open = found;
                }
}

/* Marks each function that a link of the folder concerns: a descriptor of a process, or a mediated
 * or vDPA device. Ignores a file whose path is too long for the kernel, which each user can make.
 * Returns 0 also if the folder or a link is gone, or the negative errno of a folder or link that
 * cannot be read. */
static int read_links(const PreparePaths *paths, const char *path, PrepareHost *host,
                      PrepareOpen kind)
{
        Link link = { .paths = paths, .kind = kind };
        const struct dirent *entry;
        DIR *folder;
        int r = 0;

        folder = opendir(path);
        if (!folder)
                return errno == ENOENT || errno == ESRCH ? 0 : -errno;
        link.folder = dirfd(folder);
        while ((errno = 0, entry = readdir(folder))) {
                ssize_t n;

                if (entry->d_name[0] == '.')
                        continue;
                n = readlinkat(link.folder, entry->d_name, link.target, sizeof(link.target) - 1);
                if (n < 0 && errno != ENOENT && errno != ESRCH && errno != ENAMETOOLONG)
                        r = -errno;
                link.name = entry->d_name;
                link.target[MAX(n, 0)] = '\0';
                if (kind == PREPARE_OPEN_PARENT || strstr(link.target, "/vfio/"))
                        note_link(host, &link);
        }
        if (errno != 0 && errno != ENOENT && errno != ESRCH)
                r = -errno;
        closedir(folder);
        return r;
}

/* Returns 1 if the folder of a network device names one above it, for instance a macvtap device; 0
 * if not, or the folder is gone; or a negative errno. */
static int find_upper(const char *path)
{
        const struct dirent *entry;
        DIR *folder = opendir(path);
        int r = 0;

        if (!folder)
                return errno == ENOENT ? 0 : -errno;
        while (r == 0 && (errno = 0, entry = readdir(folder)))
                r = strncmp(entry->d_name, "upper_", 6) == 0;
        if (r == 0 && errno != 0)
                r = -errno;
        closedir(folder);
        return r;
}

/* The same for all network devices of a function. */
static int find_uppers(const PreparePaths *paths, const PrepareFunction *function)
{
        _cleanup_free_ char *path =
                text_format("%s/" DEVICES "/%s/net", paths->sys, function->address);
        const struct dirent *entry;
        DIR *folder = path ? opendir(path) : NULL;
        int r = 0;

        if (!folder)
                return path && errno == ENOENT ? 0 : path ? -errno : -ENOMEM;
        while (r == 0 && (errno = 0, entry = readdir(folder))) {
                _cleanup_free_ char *device = text_format("%s/%s", path, entry->d_name);

                if (entry->d_name[0] != '.')
                        r = device ? find_upper(device) : -ENOMEM;
        }
        if (r == 0 && errno != 0)
                r = -errno;
        closedir(folder);
        return r;
}

static int read_process(const PreparePaths *paths, const char *pid, PrepareHost *host)
{
        _cleanup_free_ char *path = text_format("%s/%s/fd", paths->proc, pid);

        return path ? read_links(paths, path, host, PREPARE_OPEN_YES) : -ENOMEM;
}

/* Sets "open" of each function as its network devices alone tell. */
static void read_uppers(const PreparePaths *paths, PrepareHost *host)
{
        for (size_t i = 0; i < host->n_cards; i++)
                for (size_t j = 0; j < host->cards[i].n_functions; j++) {
                        PrepareFunction *function = &host->cards[i].functions[j];
                        int r = find_uppers(paths, function);

                        function->open = r > 0   ? PREPARE_OPEN_PARENT
                                         : r < 0 ? PREPARE_OPEN_UNKNOWN
                                                 : PREPARE_OPEN_NO;
                }
}

/* Marks functions that are not seen in use as unknown: those that could not be read, or all. */
static void set_unknown(PrepareHost *host, bool all)
{
        for (size_t i = 0; i < host->n_cards; i++)
                for (size_t j = 0; j < host->cards[i].n_functions; j++) {
                        PrepareFunction *function = &host->cards[i].functions[j];

                        if (function->open == PREPARE_OPEN_NO && (all || function->unreadable[0]))
                                function->open = PREPARE_OPEN_UNKNOWN;
                }
}

int prepare_read_open(const PreparePaths *paths, PrepareHost *host, Error *reterr)
{
        _cleanup_free_ char *mdevs = text_format("%s/bus/mdev/devices", paths->sys);
        _cleanup_free_ char *vdpas = text_format("%s/bus/vdpa/devices", paths->sys);
        DIR *folder = mdevs && vdpas ? opendir(paths->proc) : NULL;
        const struct dirent *entry;
        bool unknown = !folder;
        int r = mdevs && vdpas ? 0 : -ENOMEM;

        read_uppers(paths, host);
        if (r == 0 && (read_links(paths, mdevs, host, PREPARE_OPEN_PARENT) < 0 ||
                       read_links(paths, vdpas, host, PREPARE_OPEN_PARENT) < 0))
                unknown = true;
        while (folder && r == 0 && (errno = 0, entry = readdir(folder))) {
                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                r = read_process(paths, entry->d_name, host);
                if (r < 0 && r != -ENOMEM) {
                        unknown = true;
                        r = 0;
                }
        }
        unknown |= folder && r == 0 && errno != 0;
        if (folder)
                closedir(folder);
        set_unknown(host, unknown);
        return r < 0 ? error_oom(reterr) : 0;
}

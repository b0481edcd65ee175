/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads NUMA cells, CPUs and their threads, memory and pages, the kind of CPU, and encrypted
 * memory. The lists of online CPUs and cells, and the CPUs, memory and pages of a cell, are
 * necessary: an error there fails the poll. A kernel without a list of cells, or with an empty one,
 * has one cell, 0, with all CPUs (read_only_cell()). If the folder of hugepages is gone
 * (sysfs_is_gone()), the cell has none. Another bad file leaves out only its own facts. It also
 * adds a problem if it is not gone.
 * The lists of CPU features and emulators are always marked as incomplete, because no emulator is
 * asked.
 *
 * In a quiet poll (LinuxReader.quiet), the topology of CPUs is copied from the last snapshot,
 * because a large host has thousands of these files. All sizes are KiB.
 *
 * Tests: tests/unit/drivers/linux/test-reader.c */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/read-file.h"
#include "base/text.h"
#include "drivers/host/sysfs.h"
#include "drivers/linux/reader.h"

/* Bytes of /proc/cpuinfo that are read, enough for the first CPU. All CPUs are of the same kind. */
#define CPUINFO_SIZE 16384
/* Longest name of a feature or model, in bytes. */
#define NAME_LENGTH_MAX 127

/* Reads a list of CPUs or nodes. -EBADMSG if it is malformed. */
static int read_set(const char *path, CpuSet *ret)
{
        _cleanup_free_ char *text = NULL;
        int r = sysfs_read(path, &text);

        if (r == 0)
                r = cpu_set_parse(text, ret, NULL);
        return r == -EINVAL ? -EBADMSG : r;
}

/* CPUs */

/* Returns the CPU in the last snapshot, or NULL. place is the smallest index that it can have:
 * the cells of a snapshot also list offline CPUs. */
static const SnapshotCpu *find_before(const LinuxReader *reader, size_t cell, size_t place,
                                      unsigned id)
{
        const Snapshot *before = reader->quiet ? reader->last : NULL;

        if (!before || cell >= before->n_cells)
                return NULL;
        for (; place < before->cells[cell].n_cpus; place++)
                if (before->cells[cell].cpus[place].id >= id)
                        break;
        return place < before->cells[cell].n_cpus && before->cells[cell].cpus[place].id == id
                       ? &before->cells[cell].cpus[place]
                       : NULL;
}

/* Reads the socket of a CPU. "-1" means none, as most kernels for POWER, s390x and RISC-V
 * report. */
static int read_socket(const char *path, int *ret_socket)
{
        _cleanup_free_ char *text = NULL;
        uint64_t socket;
        int r = linux_read_number(path, INT32_MAX, &socket);

        if (r == 0)
                *ret_socket = (int)socket;
        if (r != -EBADMSG)
                return r;
        r = sysfs_read(path, &text);
        return r < 0 || strcmp(text, "-1") == 0 ? r : -EBADMSG;
}

/* Reads the socket and the siblings of a CPU. A CPU of unknown topology is a core of its own
 * without a socket. */
static int read_topology(LinuxReader *reader, SnapshotCpu *cpu, Error *reterr)
{
        int r = read_socket(linux_path(reader,
                                       "devices/system/cpu/cpu%u/topology/physical_package_id",
                                       cpu->id),
                            &cpu->socket_id);

        if (r < 0 && (r = linux_note(reader, r, reterr)) < 0)
                return r;
        r = read_set(linux_path(reader, "devices/system/cpu/cpu%u/topology/thread_siblings_list",
                                cpu->id),
                     &cpu->siblings);
        if (r < 0 && (r = linux_note(reader, r, reterr)) < 0)
                return r;
        return cpu_set_contains(&cpu->siblings, cpu->id) ||
                               cpu_set_add(&cpu->siblings, cpu->id) == 0
                       ? 0
                       : error_oom(reterr);
}

/* Reads the CPUs of a cell, or copies them from the last snapshot. */
static int read_cpus(LinuxReader *reader, SnapshotCell *cell, const CpuSet *ids, Error *reterr)
{
        size_t place = (size_t)(cell - reader->snapshot->cells);

        if (cpu_set_count(ids) == 0)
                return 0;
        cell->cpus = calloc(cpu_set_count(ids), sizeof(SnapshotCpu));
        if (!cell->cpus)
                return error_oom(reterr);
        CPU_SET_FOREACH(id, ids) {
                const SnapshotCpu *before = find_before(reader, place, cell->n_cpus, id);
                SnapshotCpu *cpu = &cell->cpus[cell->n_cpus++];
                int r;

                *cpu = (SnapshotCpu){ .id = id, .socket_id = -1 };
                if (before) {
                        cpu->socket_id = before->socket_id;
                        r = cpu_set_copy(&cpu->siblings, &before->siblings);
                } else {
                        r = read_topology(reader, cpu, reterr);
                }
                if (r < 0)
                        return r == -ENOMEM ? error_oom(reterr) : r;
        }
        return 0;
}

/* Memory */

/* Reads the total from a line such as "Node 0 MemTotal: 65784120 kB". */
static int read_memory(const char *path, uint64_t *ret_kib)
{
        static const char key[] = "MemTotal:";
        _cleanup_free_ char *text = NULL;
        const char *at;
        char *end;
        int r = sysfs_read(path, &text);

        if (r < 0)
                return r;
        at = strstr(text, key);
        if (!at)
                return -EBADMSG;
        for (at += strlen(key); *at == ' ' || *at == '\t';)
                at++;
        errno = 0;
        *ret_kib = isdigit((unsigned char)*at) ? strtoull(at, &end, 10) : UINT64_MAX;
        return *ret_kib > INT64_MAX / 1024 || errno || strncmp(end, " kB", 3) != 0 ? -EBADMSG : 0;
}

static int order_pages(const void *a, const void *b)
{
        const PageSize *x = a, *y = b;

        return x->size_kib < y->size_kib ? -1 : x->size_kib > y->size_kib;
}

/* Reads the number of pages of one size, and adds their memory to *huge_kib. Other names in the
 * folder are ignored. */
static int read_page_size(LinuxReader *reader, const char *folder, const char *name,
                          SnapshotCell *cell, uint64_t *huge_kib, Error *reterr)
{
        PageSize *page = &cell->pages[cell->n_pages];
        uint64_t kib;
        int r;

        if (sscanf(name, "hugepages-%" SCNu64 "kB", &page->size_kib) != 1 || page->size_kib == 0)
                return 0;
        r = linux_read_number(linux_path(reader, "%s/%.100s/nr_hugepages", folder, name), INT64_MAX,
                              &page->count);
        if (r == 0 && (u64_mul_overflow(page->size_kib, page->count, &kib) ||
                       u64_add_overflow(*huge_kib, kib, huge_kib)))
                r = -EBADMSG;
        if (r < 0)
                return linux_fail(reader, r, reterr);
        cell->n_pages++;
        return 0;
}

/* Reads the hugepages of a cell. The rest of its memory is small pages. */
static int read_pages(LinuxReader *reader, const char *folder, SnapshotCell *cell, Error *reterr)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        uint64_t small_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024, huge_kib = 0;
        int r = linux_list(linux_path(reader, "%s", folder), &names);

        if (r < 0)
                return linux_fail(reader, r, reterr);
        cell->pages = calloc(names.n_items + 1, sizeof(PageSize));
        if (!cell->pages)
                return error_oom(reterr);
        for (size_t i = 0; i < names.n_items; i++) {
                r = read_page_size(reader, folder, names.items[i], cell, &huge_kib, reterr);
                if (r < 0)
                        return r;
        }
        cell->pages[cell->n_pages++] = (PageSize){
                .size_kib = small_kib,
                .count = (cell->memory_kib - MIN(huge_kib, cell->memory_kib)) / small_kib,
        };
        qsort(cell->pages, cell->n_pages, sizeof(PageSize), order_pages);
        return 0;
}

/* Cells */

static int read_cell(LinuxReader *reader, SnapshotCell *cell, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet ids = CPU_SET_INIT;
        char folder[64];
        int r = read_set(linux_path(reader, "devices/system/node/node%u/cpulist", cell->id), &ids);

        if (r == 0)
                r = read_memory(linux_path(reader, "devices/system/node/node%u/meminfo", cell->id),
                                &cell->memory_kib);
        if (r < 0)
                return linux_fail(reader, r, reterr);
        snprintf(folder, sizeof(folder), "devices/system/node/node%u/hugepages", cell->id);
        r = read_cpus(reader, cell, &ids, reterr);
        return r < 0 ? r : read_pages(reader, folder, cell, reterr);
}

/* Reads the only cell of a kernel without NUMA, which has all CPUs, online or not. If the present
 * CPUs are unknown, it has only the online ones. */
static int read_only_cell(LinuxReader *reader, SnapshotCell *cell, Error *reterr)
{
        const Snapshot *snapshot = reader->snapshot;
        bool knows_present = cpu_set_is_subset(&snapshot->online_cpus, &snapshot->present_cpus);
        int r = read_cpus(reader, cell,
                          knows_present ? &snapshot->present_cpus : &snapshot->online_cpus, reterr);

        cell->memory_kib =
                (uint64_t)sysconf(_SC_PHYS_PAGES) * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
        return r < 0 ? r : read_pages(reader, "kernel/mm/hugepages", cell, reterr);
}

/* Reads all cells, and then adds the offline CPUs to them. */
static int read_cells(LinuxReader *reader, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet nodes = CPU_SET_INIT;
        Snapshot *snapshot = reader->snapshot;
        bool numa;
        int r;

        r = read_set(linux_path(reader, "devices/system/cpu/present"), &snapshot->present_cpus);
        if (r < 0 && (r = linux_note(reader, r, reterr)) < 0)
                return r;
        r = read_set(linux_path(reader, "devices/system/cpu/online"), &snapshot->online_cpus);
        if (r == 0 && cpu_set_count(&snapshot->online_cpus) == 0)
                r = -EBADMSG;
        if (r < 0)
                return linux_fail(reader, r, reterr);
        r = read_set(linux_path(reader, "devices/system/node/online"), &nodes);
        if (r < 0 && r != -ENOENT)
                return linux_fail(reader, r, reterr);
        numa = r == 0 && cpu_set_count(&nodes) > 0;
        if (!numa && cpu_set_add(&nodes, 0) < 0)
                return error_oom(reterr);
        snapshot->cells = calloc(cpu_set_count(&nodes), sizeof(SnapshotCell));
        if (!snapshot->cells)
                return error_oom(reterr);
        CPU_SET_FOREACH(id, &nodes) {
                SnapshotCell *cell = &snapshot->cells[snapshot->n_cells++];

                cell->id = id;
                r = numa ? read_cell(reader, cell, reterr) : read_only_cell(reader, cell, reterr);
                if (r < 0)
                        return r;
                snapshot->memory_kib += cell->memory_kib;
        }
        return sysfs_complete_cells(reader->sys, snapshot) < 0 ? error_oom(reterr) : 0;
}

/* CPU features */

/* Translates Linux's name of a feature to libvirt's, in place. Both have the same length, or
 * libvirt's is shorter. */
static void translate_feature(char *name)
{
        static const struct {
                const char *linux_name, *name;
        } names[] = {
                { "sse4_1", "sse4.1" },
                { "sse4_2", "sse4.2" },
                { "sha_ni", "sha-ni" },
                { "avx512_vpopcntdq", "avx512-vpopcntdq" },
        };
        static const char prefix[] = "avx512_";

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i].linux_name) == 0)
                        strcpy(name, names[i].name); /* a name of the table keeps its length */
        if (strncmp(name, prefix, strlen(prefix)) == 0)
                memmove(name + strlen(prefix) - 1, name + strlen(prefix),
                        strlen(name + strlen(prefix)) + 1);
}

/* Returns the text behind "key<tabs>: " of a line, within text, or NULL. */
static char *find_line(char *text, const char *key)
{
        for (char *line = text; line; line = strchr(line, '\n')) {
                char *at;

                line += *line == '\n';
                if (strncmp(line, key, strlen(key)) != 0)
                        continue;
                for (at = line + strlen(key); *at == '\t' || *at == ' ';)
                        at++;
                if (*at == ':')
                        return at + 1 + (at[1] == ' ');
        }
        return NULL;
}

/* Adds the features. Names that are too long are ignored. */
static int add_features(char *flags, StringSet *ret)
{
        char *state = NULL;

        for (char *flag = strtok_r(flags, " ", &state); flag; flag = strtok_r(NULL, " ", &state)) {
                if (strlen(flag) > NAME_LENGTH_MAX)
                        continue;
                text_sanitize(flag, '?');
                translate_feature(flag);
                if (string_set_add(ret, flag) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Reads the features and the name of the first CPU. Only the x86 kernel lists them in this form. */
static int read_features(LinuxReader *reader, Error *reterr)
{
        Snapshot *snapshot = reader->snapshot;
        char text[CPUINFO_SIZE + 1], *model, *flags;
        size_t n;
        int r;

        snapshot->features_incomplete = true;
        snprintf(reader->path, sizeof(reader->path), "%s/cpuinfo", reader->proc);
        r = read_file_start(reader->path, text, CPUINFO_SIZE, &n, NULL);
        if (r < 0)
                return linux_note(reader, r, reterr);
        text[n] = '\0';
        flags = find_line(text, "flags");
        model = find_line(text, "model name");
        if (flags)
                flags[strcspn(flags, "\n")] = '\0';
        if (model) {
                model[MIN(strcspn(model, "\n"), (size_t)NAME_LENGTH_MAX)] = '\0';
                text_sanitize(model, '?');
                free(snapshot->cpu_model);
                snapshot->cpu_model = strdup(model);
        }
        if (!snapshot->cpu_model || (flags && add_features(flags, &snapshot->cpu_features) < 0))
                return error_oom(reterr);
        return 0;
}

/* Encrypted memory: AMD SEV, from the kernel's controller of such resources */

/* Parses the capacity of the controller, for example "sev 410\nsev_es 99\n". libvirt calculates
 * the same numbers from CPUID. */
static int parse_capacity(char *text, SnapshotEmulator *emulator)
{
        char *state = NULL;

        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                char name[32], rest;
                uint64_t n;

                if (sscanf(line, "%31s %19" SCNu64 "%c", name, &n, &rest) != 2 || n > INT64_MAX)
                        return -EBADMSG;
                if (strcmp(name, "sev") == 0)
                        emulator->sev_max_guests = n;
                else if (strcmp(name, "sev_es") == 0)
                        emulator->sev_es_max_guests = n;
        }
        emulator->sev = emulator->sev_max_guests > 0;
        emulator->sev_es = emulator->sev_es_max_guests > 0;
        return 0;
}

/* Reads whether KVM supports SEV-SNP, which uses the contexts of SEV-ES. */
static int read_snp(LinuxReader *reader, SnapshotEmulator *emulator, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = sysfs_read(linux_path(reader, "module/kvm_amd/parameters/sev_snp"), &text);

        if (r < 0)
                return linux_note(reader, r, reterr);
        emulator->sev_snp = emulator->sev_es && (text[0] == 'Y' || text[0] == '1');
        return 0;
}

/* Adds one emulator of the host's architecture if the host has SEV or SEV-ES: the firmware can give
 * all contexts to one of them. */
static int read_encryption(LinuxReader *reader, Error *reterr)
{
        Snapshot *snapshot = reader->snapshot;
        SnapshotEmulator emulator = { 0 };
        _cleanup_free_ char *text = NULL;
        int r = sysfs_read(linux_path(reader, "fs/cgroup/misc.capacity"), &text);

        snapshot->emulators_incomplete = true;
        if (r == 0)
                r = parse_capacity(text, &emulator);
        if (r < 0)
                return linux_note(reader, r, reterr);
        if (!emulator.sev && !emulator.sev_es)
                return 0;
        if ((r = read_snp(reader, &emulator, reterr)) < 0)
                return r;
        emulator.arch = strdup(snapshot->arch);
        emulator.machine = strdup("");
        snapshot->emulators = calloc(1, sizeof(SnapshotEmulator));
        if (!emulator.arch || !emulator.machine || !snapshot->emulators) {
                snapshot_emulator_done(&emulator);
                return error_oom(reterr);
        }
        snapshot->emulators[snapshot->n_emulators++] = emulator;
        return 0;
}

int linux_read_host(LinuxReader *reader, Error *reterr)
{
        int r;

        if ((r = read_cells(reader, reterr)) < 0 || (r = read_encryption(reader, reterr)) < 0)
                return r;
        return read_features(reader, reterr);
}

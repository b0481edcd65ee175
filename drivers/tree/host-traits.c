/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reports and sets the traits of the root, as in Nova's libvirt driver. Each function in the table
 * of host_traits_visit() reports the traits of one list with their state to a visitor.
 * host_traits_update() sets or removes the traits whose state is known. The traits of CPU features
 * are unknown without features, that of hyperthreading without cells, and all others without
 * emulators. Otherwise a trait that the snapshot or the configuration shows is on. A trait that is
 * not on is unknown while its list, the features or the emulators, is incomplete, and off
 * otherwise. That of hyperthreading has no such list.
 *
 * The tables follow Nova's code (doc/facts.md, facts C8). A trait that Nova always removes is in
 * them, and is never on.
 *
 * Tests: tests/unit/drivers/tree/test-host-traits.c */

#include "drivers/tree/host-traits.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"

/* A trait that follows from a CPU feature (facts C8). One feature can have two traits. */
typedef struct CpuTrait {
        const char *trait;   /* "HW_CPU_X86_AVX2" */
        const char *feature; /* libvirt's name, "avx2" */
        const char *alias;   /* another libvirt name of the feature, or NULL */
} CpuTrait;

#define X86(feature_, name, alias_)                                                   \
        {                                                                             \
                .trait = "HW_CPU_X86_" name, .feature = (feature_), .alias = (alias_) \
        }

/* Nova's map from CPU features to traits. The alias is libvirt's own name of a feature that Nova's
 * map has under another name. Nova does not know the alias, so it does not report the trait if
 * libvirt shows only that. This program reports the trait for both names. */
static const CpuTrait cpu_traits[] = {
        X86("3dnow", "3DNOW", NULL),
        X86("abm", "ABM", NULL),
        X86("aes", "AESNI", NULL),
        X86("avx", "AVX", NULL),
        X86("avx2", "AVX2", NULL),
        X86("avx512-vpopcntdq", "AVX512VPOPCNTDQ", NULL),
        X86("avx512bitalg", "AVX512BITALG", NULL),
        X86("avx512bw", "AVX512BW", NULL),
        X86("avx512cd", "AVX512CD", NULL),
        X86("avx512dq", "AVX512DQ", NULL),
        X86("avx512er", "AVX512ER", NULL),
        X86("avx512f", "AVX512F", NULL),
        X86("avx512ifma", "AVX512IFMA", NULL),
        X86("avx512pf", "AVX512PF", NULL),
        X86("avx512vbmi", "AVX512VBMI", NULL),
        X86("avx512vbmi2", "AVX512VBMI2", NULL),
        X86("avx512vl", "AVX512VL", NULL),
        X86("avx512vnni", "AVX512VNNI", NULL),
        X86("bmi1", "BMI", NULL),
        X86("bmi2", "BMI2", NULL),
        X86("f16c", "F16C", NULL),
        X86("fma", "FMA3", NULL),
        X86("fma4", "FMA4", NULL),
        X86("gfni", "AVX512GFNI", NULL),
        X86("mmx", "MMX", NULL),
        X86("mpx", "MPX", NULL),
        X86("pclmuldq", "CLMUL", "pclmulqdq"),
        X86("sha-ni", "SHA", NULL),
        X86("sse", "SSE", NULL),
        X86("sse2", "SSE2", NULL),
        X86("sse3", "SSE3", "pni"),
        X86("sse4.1", "SSE41", NULL),
        X86("sse4.2", "SSE42", NULL),
        X86("sse4a", "SSE4A", NULL),
        X86("ssse3", "SSSE3", NULL),
        X86("svm", "AMD_SVM", NULL),
        X86("svm", "SVM", NULL),
        X86("tbm", "TBM", NULL),
        X86("vaes", "AVX512VAES", NULL),
        X86("vmx", "INTEL_VMX", NULL),
        X86("vmx", "VMX", NULL),
        X86("vpclmulqdq", "AVX512VPCLMULQDQ", NULL),
        X86("xop", "XOP", NULL),
};

/* size of a buffer for the name of a trait, in bytes */
#define TRAIT_SIZE 128

/* A version of libvirt or of the hypervisor as libvirt's API returns it, as one number. */
#define VERSION(major, minor, micro) ((major)*1000000 + (minor)*1000 + (micro))

typedef enum TraitState {
        TRAIT_OFF = 0,
        TRAIT_ON = 1,
        TRAIT_UNKNOWN = -1,
} TraitState;

/* The inputs and the visitor of host_traits_visit(), and its result. */
typedef struct Traits {
        const HostConfig *config;
        const Snapshot *snapshot;
        int (*visit)(const char *trait, int state, void *userdata);
        void *userdata;
        int r; /* result of visit(); if it is not 0, visit() is not called again */
} Traits;

static void note(Traits *traits, const char *trait, TraitState state)
{
        if (traits->r == 0)
                traits->r = traits->visit(trait, state, traits->userdata);
}

/* Reports a trait with the state "on" if the argument is true. Otherwise it is off only if all
 * emulators were read. Without an emulator it is unknown in any case. */
static void note_emulated(Traits *traits, const char *trait, bool on)
{
        note(traits, trait,
             traits->snapshot->n_emulators == 0       ? TRAIT_UNKNOWN
             : on                                     ? TRAIT_ON
             : traits->snapshot->emulators_incomplete ? TRAIT_UNKNOWN
                                                      : TRAIT_OFF);
}

/* Reports the trait PREFIX_NAME as note_emulated() does. The name is in upper case, with '_' for
 * each character that is not a letter or digit. */
static void note_named(Traits *traits, const char *prefix, const char *name, bool on)
{
        char trait[TRAIT_SIZE];
        size_t n = (size_t)snprintf(trait, sizeof(trait), "%s", prefix);

        for (const char *c = name; *c && n + 1 < sizeof(trait); c++)
                trait[n++] = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        trait[n] = '\0';
        note_emulated(traits, trait, on);
}

/* Ignores case, because the words come from the configuration. */
static bool list_has(char **list, const char *word)
{
        for (; list && *list; list++)
                if (strcasecmp(*list, word) == 0)
                        return true;
        return false;
}

static bool is_qemu(const HostConfig *config)
{
        return config->virt_type == HOST_VIRT_KVM || config->virt_type == HOST_VIRT_QEMU;
}

static bool has_version(const Snapshot *snapshot, uint64_t libvirt, uint64_t hypervisor)
{
        return snapshot->libvirt_version >= libvirt && snapshot->hypervisor_version >= hypervisor;
}

static bool has_feature(const Snapshot *snapshot, const CpuTrait *trait)
{
        return string_set_contains(&snapshot->cpu_features, trait->feature) ||
               (trait->alias && string_set_contains(&snapshot->cpu_features, trait->alias));
}

/* Returns true if any core of the host has more than one thread (hyperthreading). */
static bool has_threads(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        if (cpu_set_count(&snapshot->cells[i].cpus[j].siblings) > 1)
                                return true;
        return false;
}

static void note_cpu(Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;

        for (size_t i = 0; i < ARRAY_SIZE(cpu_traits); i++)
                note(traits, cpu_traits[i].trait,
                     snapshot->cpu_features.n_items == 0     ? TRAIT_UNKNOWN
                     : has_feature(snapshot, &cpu_traits[i]) ? TRAIT_ON
                     : snapshot->features_incomplete         ? TRAIT_UNKNOWN
                                                             : TRAIT_OFF);
        /* Remove the trait from the root: now the child providers of memory encryption have it
         * (facts C5.3). */
        note_emulated(traits, "HW_CPU_X86_AMD_SEV", false);
        note(traits, "HW_CPU_HYPERTHREADING",
             snapshot->n_cells == 0  ? TRAIT_UNKNOWN
             : has_threads(snapshot) ? TRAIT_ON
                                     : TRAIT_OFF);
}

/* Architectures: libvirt's names, and their names in traits. */

static void note_architecture(Traits *traits)
{
        static const struct {
                const char *name, *trait;
        } archs[] = {
                { "aarch64", "AARCH64" },   { "alpha", "ALPHA" },     { "armv6l", "ARMV6" },
                { "armv7l", "ARMV7" },      { "armv7b", "ARMV7B" },   { "i686", "I686" },
                { "ia64", "IA64" },         { "mips", "MIPS" },       { "mips64", "MIPS64" },
                { "mips64el", "MIPS64EL" }, { "mipsel", "MIPSEL" },   { "ppc", "PPC" },
                { "ppc64", "PPC64" },       { "ppc64le", "PPC64LE" }, { "riscv64", "RISCV64" },
                { "s390", "S390" },         { "s390x", "S390X" },     { "sparc", "SPARC" },
                { "sparc64", "SPARC64" },   { "x86_64", "X86_64" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
                note_named(traits, "HW_ARCH_", archs[i].trait,
                           strcmp(traits->snapshot->arch, archs[i].name) == 0);
}

static bool is_emulated(const Snapshot *snapshot, const char *arch)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (strcmp(snapshot->emulators[i].arch, arch) == 0)
                        return true;
        return false;
}

static void note_emulated_architectures(Traits *traits)
{
        static const char *const archs[] = { "aarch64", "mipsel", "ppc64le",
                                             "riscv64", "s390x",  "x86_64" };

        for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
                note_named(traits, "COMPUTE_ARCH_", archs[i],
                           is_emulated(traits->snapshot, archs[i]));
}

/* Returns true if a set of words of any emulator contains the word. offset is the position of the
 * set in SnapshotEmulator, in bytes; EMULATORS_HAVE() computes it. */
static bool emulators_have(const Snapshot *snapshot, size_t offset, const char *word)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++) {
                const char *emulator = (const char *)&snapshot->emulators[i];

                if (string_set_contains((const StringSet *)(emulator + offset), word))
                        return true;
        }
        return false;
}

#define EMULATORS_HAVE(snapshot, member, word) \
        emulators_have((snapshot), offsetof(SnapshotEmulator, member), (word))

/* Reports a trait for each bus that disks can have. It is on if an emulator supports the bus. The
 * virt_types lxc and parallels have fixed buses, as in Nova. */
static void note_storage_buses(Traits *traits)
{
        static const char *const buses[] = { "fdc", "ide", "lxc", "sata",  "scsi",
                                             "uml", "usb", "xen", "virtio" };
        static const char *const parallels[] = { "ide", "scsi", NULL };

        for (size_t i = 0; i < ARRAY_SIZE(buses); i++) {
                bool on = EMULATORS_HAVE(traits->snapshot, disk_buses, buses[i]);

                if (traits->config->virt_type == HOST_VIRT_LXC)
                        on = strcmp(buses[i], "lxc") == 0;
                else if (traits->config->virt_type == HOST_VIRT_PARALLELS)
                        on = list_has((char **)parallels, buses[i]);
                note_named(traits, "COMPUTE_STORAGE_BUS_", buses[i], on);
        }
}

static void note_video_models(Traits *traits)
{
        static const char *const models[] = { "bochs", "cirrus", "gop",   "none", "qxl",
                                              "vga",   "virtio", "vmvga", "xen" };

        for (size_t i = 0; i < ARRAY_SIZE(models); i++)
                note_named(traits, "COMPUTE_GRAPHICS_MODEL_", models[i],
                           EMULATORS_HAVE(traits->snapshot, video_models, models[i]));
}

/* Reports a trait for each model of network card, which is on if Nova allows the model for the
 * virt_type, without regard to the emulator. Only "igb" also needs versions of libvirt and the
 * hypervisor. */
static void note_network_models(Traits *traits)
{
        enum {
                KVM = 1 << HOST_VIRT_KVM,
                QEMU = 1 << HOST_VIRT_QEMU,
                PARALLELS = 1 << HOST_VIRT_PARALLELS,
        };
        static const struct {
                const char *name;
                int virt_types;
        } models[] = {
                { "e1000", KVM | QEMU | PARALLELS },
                { "e1000e", KVM | QEMU },
                { "lan9118", QEMU },
                { "ne2k_pci", KVM | QEMU },
                { "pcnet", KVM | QEMU },
                { "rtl8139", KVM | QEMU | PARALLELS },
                { "spapr-vlan", KVM | QEMU },
                { "virtio", KVM | QEMU | PARALLELS },
                { "vmxnet3", KVM | QEMU },
        };
        const HostConfig *config = traits->config;

        for (size_t i = 0; i < ARRAY_SIZE(models); i++)
                note_named(traits, "COMPUTE_NET_VIF_MODEL_", models[i].name,
                           models[i].virt_types & 1 << config->virt_type);
        note_emulated(traits, "COMPUTE_NET_VIF_MODEL_IGB",
                      is_qemu(config) &&
                              has_version(traits->snapshot, VERSION(9, 3, 0), VERSION(8, 0, 0)));
        note_emulated(traits, "COMPUTE_NET_VIRTIO_PACKED", is_qemu(config));
}

static void note_sound_models(Traits *traits)
{
        static const char *const models[] = { "ac97",  "es1370", "ich6", "ich9",
                                              "pcspk", "sb16",   "usb" };

        for (size_t i = 0; i < ARRAY_SIZE(models); i++)
                note_named(traits, "COMPUTE_SOUND_MODEL_", models[i], is_qemu(traits->config));
        note_emulated(traits, "COMPUTE_SOUND_MODEL_VIRTIO",
                      is_qemu(traits->config) &&
                              has_version(traits->snapshot, VERSION(10, 4, 0), VERSION(8, 2, 0)));
}

static void note_viommus(Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;

        note_emulated(traits, "COMPUTE_VIOMMU_MODEL_AUTO", true);
        note_emulated(traits, "COMPUTE_VIOMMU_MODEL_INTEL", is_emulated(snapshot, "x86_64"));
        note_emulated(traits, "COMPUTE_VIOMMU_MODEL_SMMUV3", is_emulated(snapshot, "aarch64"));
        note_emulated(traits, "COMPUTE_VIOMMU_MODEL_VIRTIO",
                      has_version(snapshot, VERSION(8, 3, 0), 0));
}

/* Returns true if guests can have an emulated TPM of this version. If no emulator lists versions,
 * as with an older libvirt, all are possible. */
static bool has_tpm_version(const Traits *traits, const char *version)
{
        const Snapshot *snapshot = traits->snapshot;

        if (!traits->config->swtpm_enabled || !EMULATORS_HAVE(snapshot, tpm_backends, "emulator"))
                return false;
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (snapshot->emulators[i].tpm_versions.n_items > 0)
                        return EMULATORS_HAVE(snapshot, tpm_versions, version);
        return true;
}

static void note_tpm(Traits *traits)
{
        static const char *const secrets[] = { "deployment", "host", "user" };
        char **allowed = traits->config->supported_tpm_secret_security;
        bool tpm = has_tpm_version(traits, "1.2") || has_tpm_version(traits, "2.0");

        note_emulated(traits, "COMPUTE_SECURITY_TPM_1_2", has_tpm_version(traits, "1.2"));
        note_emulated(traits, "COMPUTE_SECURITY_TPM_2_0", has_tpm_version(traits, "2.0"));
        note_emulated(traits, "COMPUTE_SECURITY_TPM_TIS",
                      tpm && EMULATORS_HAVE(traits->snapshot, tpm_models, "tpm-tis"));
        note_emulated(traits, "COMPUTE_SECURITY_TPM_CRB",
                      tpm && EMULATORS_HAVE(traits->snapshot, tpm_models, "tpm-crb"));
        for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
                note_named(traits, "COMPUTE_SECURITY_TPM_SECRET_SECURITY_", secrets[i],
                           tpm && (!allowed || list_has(allowed, secrets[i])));
}

/* Capabilities of the driver: Nova's list, with the values of its libvirt driver. */

static bool has_secure_boot(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (snapshot->emulators[i].secure_boot &&
                    strcmp(snapshot->emulators[i].arch, snapshot->arch) == 0)
                        return true;
        return false;
}

static void note_capabilities(Traits *traits)
{
        const HostConfig *config = traits->config;
        const Snapshot *snapshot = traits->snapshot;
        bool address_space = has_version(snapshot, VERSION(8, 7, 0), VERSION(2, 7, 0));
        const struct {
                const char *trait;
                bool on;
        } capabilities[] = {
                { "COMPUTE_ACCELERATORS", true },
                { "COMPUTE_ADDRESS_SPACE_EMULATED", address_space },
                { "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", address_space },
                { "COMPUTE_DEVICE_TAGGING", true },
                { "COMPUTE_EPHEMERAL_ENCRYPTION", false },
                { "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS", false },
                { "COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN", false },
                { "COMPUTE_MEM_BACKING_FILE", config->file_backed_memory > 0 },
                { "COMPUTE_NET_ATTACH_INTERFACE", true },
                { "COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG", true },
                { "COMPUTE_RESCUE_BFV", true },
                { "COMPUTE_SAME_HOST_COLD_MIGRATE", false },
                { "COMPUTE_SECURITY_STATELESS_FIRMWARE",
                  has_version(snapshot, VERSION(8, 6, 0), 0) },
                { "COMPUTE_SECURITY_UEFI_SECURE_BOOT", has_secure_boot(snapshot) },
                { "COMPUTE_SOCKET_PCI_NUMA_AFFINITY", true },
                { "COMPUTE_STORAGE_VIRTIO_FS",
                  EMULATORS_HAVE(snapshot, filesystem_drivers, "virtiofs") },
                { "COMPUTE_TRUSTED_CERTS", true },
                { "COMPUTE_VOLUME_ATTACH_WITH_TAG", true },
                { "COMPUTE_VOLUME_EXTEND", true },
                { "COMPUTE_VOLUME_MULTI_ATTACH", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
                note_emulated(traits, capabilities[i].trait, capabilities[i].on);
}

/* Reports COMPUTE_REMOTE_MANAGED_PORTS. It is on if [pci] device_spec marks a device as
 * remote_managed that is not a physical function, and whose card has a serial number. libvirt
 * reports these numbers since version 7.9. */
static void note_remote_managed_ports(Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;
        bool on = false;

        for (size_t i = 0; i < snapshot->n_devices && !on; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const PciSpec *spec = device->has_card_serial && !device->is_physical_function
                                              ? pci_specs_find(&traits->config->pci_specs, device)
                                              : NULL;

                on = spec && spec->remote_managed;
        }
        note_emulated(traits, "COMPUTE_REMOTE_MANAGED_PORTS",
                      on && has_version(snapshot, VERSION(7, 9, 0), 0));
}

/* Reports the formats of images. Without conversion by Nova (force_raw_images), LVM and RBD need
 * raw images. */
static void note_image_types(Traits *traits)
{
        const HostConfig *config = traits->config;
        bool raw_only = config->images_type != HOST_IMAGES_FILES && !config->force_raw_images;
        const struct {
                const char *name;
                bool on;
        } types[] = {
                { "aki", true },
                { "ami", true },
                { "ari", true },
                { "iso", true },
                { "raw", true },
                { "vdi", false },
                { "vhd", false },
                { "vhdx", false },
                { "vmdk", false },
                { "qcow2", !raw_only },
                { "ploop", config->virt_type == HOST_VIRT_PARALLELS },
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                note_named(traits, "COMPUTE_IMAGE_TYPE_", types[i].name,
                           types[i].on &&
                                   !list_has(config->image_type_exclude_list, types[i].name));
}

int host_traits_visit(const HostConfig *config, const Snapshot *snapshot,
                      int (*visit)(const char *trait, int state, void *userdata), void *userdata)
{
        static void (*const lists[])(Traits * traits) = {
                note_cpu,
                note_architecture,
                note_emulated_architectures,
                note_storage_buses,
                note_video_models,
                note_network_models,
                note_sound_models,
                note_viommus,
                note_tpm,
                note_capabilities,
                note_remote_managed_ports,
                note_image_types,
        };
        Traits traits = {
                .config = config, .snapshot = snapshot, .visit = visit, .userdata = userdata
        };

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                lists[i](&traits);
        return traits.r;
}

/* Sets or removes the trait. An unknown state changes nothing. */
static int force(const char *trait, int state, void *userdata)
{
        Provider *root = userdata;

        if (state == TRAIT_OFF)
                string_set_remove(&root->traits, trait);
        return state == TRAIT_ON && string_set_add(&root->traits, trait) < 0 ? -ENOMEM : 0;
}

int host_traits_update(const HostConfig *config, const Snapshot *snapshot, Provider *root)
{
        return host_traits_visit(config, snapshot, force, root);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/host-traits.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "drivers/tree/cpu-traits.h"

#define TRAIT_SIZE 128

/* libvirt's form of a version. */
#define VERSION(major, minor, micro) ((major)*1000000 + (minor)*1000 + (micro))

typedef enum TraitState {
        TRAIT_OFF = 0,
        TRAIT_ON = 1,
        TRAIT_UNKNOWN = -1,
} TraitState;

typedef struct Traits {
        const HostConfig *config;
        const Snapshot *snapshot;
        HostTraitVisit visit;
        void *userdata;
} Traits;

/* A trait of what emulators tell, on where at least one says so. It is not off as long as one was
 * not read. */
static int tell_emulated(const Traits *traits, const char *trait, bool on)
{
        return traits->visit(trait,
                             traits->snapshot->n_emulators == 0       ? TRAIT_UNKNOWN
                             : on                                     ? TRAIT_ON
                             : traits->snapshot->emulators_incomplete ? TRAIT_UNKNOWN
                                                                      : TRAIT_OFF,
                             traits->userdata);
}

/* PREFIX_NAME, with '_' for everything that a trait may not have. */
static const char *make_trait(const char *prefix, const char *name, char ret[static TRAIT_SIZE])
{
        size_t n = (size_t)snprintf(ret, TRAIT_SIZE, "%s", prefix);

        for (const char *c = name; *c && n + 1 < TRAIT_SIZE; c++)
                ret[n++] = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        ret[n] = '\0';
        return ret;
}

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

/* The CPU */

static bool has_feature(const Snapshot *snapshot, const CpuTrait *trait)
{
        return string_set_contains(&snapshot->cpu_features, trait->feature) ||
               (trait->alias && string_set_contains(&snapshot->cpu_features, trait->alias));
}

static bool has_threads(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        if (cpu_set_count(&snapshot->cells[i].cpus[j].siblings) > 1)
                                return true;
        return false;
}

static int tell_cpu(const Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;
        const CpuTrait *table;
        size_t n;
        int r = 0;

        table = cpu_traits(&n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = traits->visit(table[i].trait,
                                  snapshot->cpu_features.n_items == 0 ? TRAIT_UNKNOWN
                                  : has_feature(snapshot, &table[i])  ? TRAIT_ON
                                  : snapshot->features_incomplete     ? TRAIT_UNKNOWN
                                                                      : TRAIT_OFF,
                                  traits->userdata);
        /* it is on the providers of memory encryption now (facts C5.3) */
        if (r == 0)
                r = tell_emulated(traits, "HW_CPU_X86_AMD_SEV", false);
        if (r == 0)
                r = traits->visit("HW_CPU_HYPERTHREADING",
                                  snapshot->n_cells == 0  ? TRAIT_UNKNOWN
                                  : has_threads(snapshot) ? TRAIT_ON
                                                          : TRAIT_OFF,
                                  traits->userdata);
        return r;
}

/* Architectures: libvirt's names, and what a trait calls them where that differs. */

static int tell_architecture(const Traits *traits)
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
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(archs) && r == 0; i++)
                r = tell_emulated(traits, make_trait("HW_ARCH_", archs[i].trait, trait),
                                  strcmp(traits->snapshot->arch, archs[i].name) == 0);
        return r;
}

static bool is_emulated(const Snapshot *snapshot, const char *arch)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (strcmp(snapshot->emulators[i].arch, arch) == 0)
                        return true;
        return false;
}

static int tell_emulated_architectures(const Traits *traits)
{
        static const char *const archs[] = { "aarch64", "mipsel", "ppc64le",
                                             "riscv64", "s390x",  "x86_64" };
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(archs) && r == 0; i++)
                r = tell_emulated(traits, make_trait("COMPUTE_ARCH_", archs[i], trait),
                                  is_emulated(traits->snapshot, archs[i]));
        return r;
}

/* Devices of guests */

/* True when the set at that place of some emulator has the word. */
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

static int tell_storage_buses(const Traits *traits)
{
        static const char *const buses[] = { "fdc", "ide", "lxc", "sata",  "scsi",
                                             "uml", "usb", "xen", "virtio" };
        static const char *const parallels[] = { "ide", "scsi", NULL };
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(buses) && r == 0; i++) {
                bool on = EMULATORS_HAVE(traits->snapshot, disk_buses, buses[i]);

                if (traits->config->virt_type == HOST_VIRT_LXC)
                        on = strcmp(buses[i], "lxc") == 0;
                else if (traits->config->virt_type == HOST_VIRT_PARALLELS)
                        on = list_has((char **)parallels, buses[i]);
                r = tell_emulated(traits, make_trait("COMPUTE_STORAGE_BUS_", buses[i], trait), on);
        }
        return r;
}

static int tell_video_models(const Traits *traits)
{
        static const char *const models[] = { "bochs", "cirrus", "gop",   "none", "qxl",
                                              "vga",   "virtio", "vmvga", "xen" };
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(models) && r == 0; i++)
                r = tell_emulated(traits, make_trait("COMPUTE_GRAPHICS_MODEL_", models[i], trait),
                                  EMULATORS_HAVE(traits->snapshot, video_models, models[i]));
        return r;
}

static int tell_network_models(const Traits *traits)
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
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(models) && r == 0; i++)
                r = tell_emulated(traits,
                                  make_trait("COMPUTE_NET_VIF_MODEL_", models[i].name, trait),
                                  models[i].virt_types & 1 << config->virt_type);
        if (r == 0)
                r = tell_emulated(traits, "COMPUTE_NET_VIF_MODEL_IGB",
                                  is_qemu(config) && has_version(traits->snapshot, VERSION(9, 3, 0),
                                                                 VERSION(8, 0, 0)));
        return r == 0 ? tell_emulated(traits, "COMPUTE_NET_VIRTIO_PACKED", is_qemu(config)) : r;
}

static int tell_sound_models(const Traits *traits)
{
        static const char *const models[] = { "ac97",  "es1370", "ich6", "ich9",
                                              "pcspk", "sb16",   "usb" };
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(models) && r == 0; i++)
                r = tell_emulated(traits, make_trait("COMPUTE_SOUND_MODEL_", models[i], trait),
                                  is_qemu(traits->config));
        if (r == 0)
                r = tell_emulated(
                        traits, "COMPUTE_SOUND_MODEL_VIRTIO",
                        is_qemu(traits->config) &&
                                has_version(traits->snapshot, VERSION(10, 4, 0), VERSION(8, 2, 0)));
        return r;
}

static int tell_viommus(const Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;
        int r;

        if ((r = tell_emulated(traits, "COMPUTE_VIOMMU_MODEL_AUTO", true)) ||
            (r = tell_emulated(traits, "COMPUTE_VIOMMU_MODEL_INTEL",
                               is_emulated(snapshot, "x86_64"))) ||
            (r = tell_emulated(traits, "COMPUTE_VIOMMU_MODEL_SMMUV3",
                               is_emulated(snapshot, "aarch64"))))
                return r;
        return tell_emulated(traits, "COMPUTE_VIOMMU_MODEL_VIRTIO",
                             has_version(snapshot, VERSION(8, 3, 0), 0));
}

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

static int tell_tpm(const Traits *traits)
{
        static const char *const secrets[] = { "deployment", "host", "user" };
        char **allowed = traits->config->supported_tpm_secret_security;
        bool tpm = has_tpm_version(traits, "1.2") || has_tpm_version(traits, "2.0");
        char trait[TRAIT_SIZE];
        int r;

        if ((r = tell_emulated(traits, "COMPUTE_SECURITY_TPM_1_2",
                               has_tpm_version(traits, "1.2"))) ||
            (r = tell_emulated(traits, "COMPUTE_SECURITY_TPM_2_0",
                               has_tpm_version(traits, "2.0"))) ||
            (r = tell_emulated(traits, "COMPUTE_SECURITY_TPM_TIS",
                               tpm && EMULATORS_HAVE(traits->snapshot, tpm_models, "tpm-tis"))) ||
            (r = tell_emulated(traits, "COMPUTE_SECURITY_TPM_CRB",
                               tpm && EMULATORS_HAVE(traits->snapshot, tpm_models, "tpm-crb"))))
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(secrets) && r == 0; i++)
                r = tell_emulated(
                        traits,
                        make_trait("COMPUTE_SECURITY_TPM_SECRET_SECURITY_", secrets[i], trait),
                        tpm && (!allowed || list_has(allowed, secrets[i])));
        return r;
}

/* What the driver can do: Nova's list of capabilities, with what its libvirt driver says. */

static bool has_secure_boot(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                if (snapshot->emulators[i].secure_boot &&
                    strcmp(snapshot->emulators[i].arch, snapshot->arch) == 0)
                        return true;
        return false;
}

static int tell_capabilities(const Traits *traits)
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
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(capabilities) && r == 0; i++)
                r = tell_emulated(traits, capabilities[i].trait, capabilities[i].on);
        return r;
}

/* Where there is such a device, and a libvirt that tells serial numbers. */
static int tell_remote_managed_ports(const Traits *traits)
{
        const Snapshot *snapshot = traits->snapshot;
        bool on = false;

        for (size_t i = 0; i < snapshot->n_devices && !on; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const PciSpec *spec = device->has_card_serial && !device->is_physical_function
                                              ? pci_specs_find(&traits->config->pci_specs, device)
                                              : NULL;

                on = spec && pci_spec_is_remote_managed(spec);
        }
        return tell_emulated(traits, "COMPUTE_REMOTE_MANAGED_PORTS",
                             on && has_version(snapshot, VERSION(7, 9, 0), 0));
}

static int tell_image_types(const Traits *traits)
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
        char trait[TRAIT_SIZE];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(types) && r == 0; i++)
                r = tell_emulated(
                        traits, make_trait("COMPUTE_IMAGE_TYPE_", types[i].name, trait),
                        types[i].on && !list_has(config->image_type_exclude_list, types[i].name));
        return r;
}

int host_traits_visit(const HostConfig *config, const Snapshot *snapshot, HostTraitVisit visit,
                      void *userdata)
{
        static int (*const lists[])(const Traits *traits) = {
                tell_cpu,
                tell_architecture,
                tell_emulated_architectures,
                tell_storage_buses,
                tell_video_models,
                tell_network_models,
                tell_sound_models,
                tell_viommus,
                tell_tpm,
                tell_capabilities,
                tell_remote_managed_ports,
                tell_image_types,
        };
        const Traits traits = { config, snapshot, visit, userdata };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(lists) && r == 0; i++)
                r = lists[i](&traits);
        return r;
}

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

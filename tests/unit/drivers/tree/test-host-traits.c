/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the traits of the root for each host and option. The rows follow facts C8. */
#include "base/text.h"
#include "drivers/tree/host-traits.h"
#include "tests/fixtures/host.h"

#define EMULATOR(members) "'emulators': [{'arch': 'x86_64', 'machine': 'q35'" members "}]"
#define X86(members) \
        "'arch': 'x86_64', 'libvirt_version': 9000000, 'hypervisor_version': 7002011, " members

/* Compares traits: "+TRAIT" must be there, "-TRAIT" must not. */
static void expect(const Provider *root, const char *what, const char *expected)
{
        _cleanup_free_ char *copy = strdup(expected);
        char *rest = copy, *word;

        assert_non_null(copy);
        while ((word = strtok_r(rest, " ", &rest)))
                if (string_set_contains(&root->traits, word + 1) != (word[0] == '+'))
                        fail_msg("%s: %s", what, word);
}

/* Sets the option with this short name; "" changes nothing. */
static void set_options(HostConfig *config, const char *option)
{
        static char *none[] = { NULL }, *user[] = { TEXT("USER"), NULL },
                    *qcow2[] = { TEXT("vmdk"), TEXT("qcow2"), NULL };

        if (strcmp(option, "qemu") == 0)
                config->virt_type = HOST_VIRT_QEMU;
        else if (strcmp(option, "lxc") == 0)
                config->virt_type = HOST_VIRT_LXC;
        else if (strcmp(option, "parallels") == 0)
                config->virt_type = HOST_VIRT_PARALLELS;
        else if (strcmp(option, "swtpm") == 0)
                config->swtpm_enabled = true;
        else if (strcmp(option, "lvm") == 0)
                config->images_type = HOST_IMAGES_LVM;
        else if (strcmp(option, "files") == 0)
                config->file_backed_memory = 1;
        else if (strcmp(option, "exclude") == 0)
                config->image_type_exclude_list = qcow2;
        if (strcmp(option, "swtpm user") == 0 || strcmp(option, "swtpm nobody") == 0) {
                config->swtpm_enabled = true;
                config->supported_tpm_secret_security =
                        strcmp(option, "swtpm user") == 0 ? user : none;
        }
}

/* C8 */
static const struct {
        const char *name, *host, *option;
        const char *expected; /* separated by blanks */
} cases[] = {
        { "features", X86("'cpu_features': ['avx', 'pni', 'svm', 'sha-ni']"), "",
          "+HW_CPU_X86_AVX -HW_CPU_X86_AVX2 +HW_CPU_X86_SSE3 +HW_CPU_X86_SVM "
          "+HW_CPU_X86_AMD_SVM -HW_CPU_X86_VMX +HW_CPU_X86_SHA" },
        { "features renamed", X86("'cpu_features': ['bmi1', 'fma', 'gfni', 'vmx']"), "",
          "+HW_CPU_X86_BMI +HW_CPU_X86_FMA3 +HW_CPU_X86_AVX512GFNI +HW_CPU_X86_VMX "
          "+HW_CPU_X86_INTEL_VMX -HW_CPU_X86_FMA4" },
        { "threads", X86("'cells': [{'id': 0, 'cpus': [{'id': 0, 'siblings': '0,8'}]}]"), "",
          "+HW_CPU_HYPERTHREADING" },
        { "no threads", X86("'cells': [{'id': 0, 'cpus': [{'id': 0, 'siblings': '0'}]}]"), "",
          "-HW_CPU_HYPERTHREADING" },
        { "architecture", X86(EMULATOR("")), "",
          "+HW_ARCH_X86_64 -HW_ARCH_AARCH64 +COMPUTE_ARCH_X86_64 -COMPUTE_ARCH_AARCH64 "
          "+COMPUTE_VIOMMU_MODEL_INTEL -COMPUTE_VIOMMU_MODEL_SMMUV3 +COMPUTE_VIOMMU_MODEL_VIRTIO" },
        { "another one", "'arch': 'aarch64', 'emulators': [{'arch': 'aarch64', 'machine': 'virt'}]",
          "",
          "+HW_ARCH_AARCH64 +COMPUTE_ARCH_AARCH64 +COMPUTE_VIOMMU_MODEL_SMMUV3 "
          "-COMPUTE_VIOMMU_MODEL_INTEL -COMPUTE_VIOMMU_MODEL_VIRTIO +COMPUTE_VIOMMU_MODEL_AUTO" },
        { "buses", X86(EMULATOR(", 'disk_buses': ['sata', 'virtio']")), "",
          "+COMPUTE_STORAGE_BUS_SATA +COMPUTE_STORAGE_BUS_VIRTIO "
          "-COMPUTE_STORAGE_BUS_IDE -COMPUTE_STORAGE_BUS_LXC" },
        { "buses of containers", X86(EMULATOR("")), "lxc",
          "+COMPUTE_STORAGE_BUS_LXC -COMPUTE_STORAGE_BUS_IDE "
          "-COMPUTE_NET_VIF_MODEL_VIRTIO -COMPUTE_SOUND_MODEL_USB" },
        { "buses of parallels", X86(EMULATOR("")), "parallels",
          "+COMPUTE_STORAGE_BUS_IDE +COMPUTE_STORAGE_BUS_SCSI -COMPUTE_STORAGE_BUS_LXC "
          "+COMPUTE_NET_VIF_MODEL_E1000 -COMPUTE_NET_VIF_MODEL_E1000E +COMPUTE_IMAGE_TYPE_PLOOP" },
        { "graphics", X86(EMULATOR(", 'video_models': ['qxl', 'ramfb']")), "",
          "+COMPUTE_GRAPHICS_MODEL_QXL -COMPUTE_GRAPHICS_MODEL_VGA -COMPUTE_GRAPHICS_MODEL_RAMFB" },
        { "networks of kvm", X86(EMULATOR("")), "",
          "+COMPUTE_NET_VIF_MODEL_VIRTIO +COMPUTE_NET_VIF_MODEL_SPAPR_VLAN "
          "-COMPUTE_NET_VIF_MODEL_LAN9118 -COMPUTE_NET_VIF_MODEL_IGB "
          "+COMPUTE_NET_VIRTIO_PACKED +COMPUTE_SOUND_MODEL_ICH9 -COMPUTE_SOUND_MODEL_VIRTIO" },
        { "networks of qemu", X86(EMULATOR("")), "qemu",
          "+COMPUTE_NET_VIF_MODEL_LAN9118 +COMPUTE_NET_VIF_MODEL_NE2K_PCI" },
        { "newer versions",
          "'arch': 'x86_64', 'libvirt_version': 10004000, 'hypervisor_version': 8002000, " EMULATOR(
                  ""),
          "",
          "+COMPUTE_NET_VIF_MODEL_IGB +COMPUTE_SOUND_MODEL_VIRTIO "
          "+COMPUTE_ADDRESS_SPACE_EMULATED +COMPUTE_SECURITY_STATELESS_FIRMWARE" },
        { "older versions",
          "'arch': 'x86_64', 'libvirt_version': 8000000, 'hypervisor_version': 6000000, " EMULATOR(
                  ""),
          "",
          "-COMPUTE_ADDRESS_SPACE_PASSTHROUGH -COMPUTE_SECURITY_STATELESS_FIRMWARE "
          "-COMPUTE_VIOMMU_MODEL_VIRTIO" },
        { "no TPM wanted", X86(EMULATOR(", 'tpm_backends': ['emulator']")), "",
          "-COMPUTE_SECURITY_TPM_2_0 -COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER" },
        { "no TPM there", X86(EMULATOR(", 'tpm_backends': ['passthrough']")), "swtpm",
          "-COMPUTE_SECURITY_TPM_2_0 -COMPUTE_SECURITY_TPM_1_2" },
        { "TPM, versions not told",
          X86(EMULATOR(", 'tpm_backends': ['emulator'], 'tpm_models': ['tpm-crb']")), "swtpm",
          "+COMPUTE_SECURITY_TPM_2_0 +COMPUTE_SECURITY_TPM_1_2 +COMPUTE_SECURITY_TPM_CRB "
          "-COMPUTE_SECURITY_TPM_TIS +COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER "
          "+COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT" },
        { "TPM, versions told",
          X86(EMULATOR(", 'tpm_backends': ['emulator'], 'tpm_versions': ['2.0']")), "swtpm user",
          "+COMPUTE_SECURITY_TPM_2_0 -COMPUTE_SECURITY_TPM_1_2 "
          "+COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER -COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST" },
        { "capabilities",
          X86(EMULATOR(", 'secure_boot': true, 'filesystem_drivers': ['virtiofs']")), "files",
          "+COMPUTE_SECURITY_UEFI_SECURE_BOOT +COMPUTE_STORAGE_VIRTIO_FS "
          "+COMPUTE_MEM_BACKING_FILE +COMPUTE_DEVICE_TAGGING -COMPUTE_SAME_HOST_COLD_MIGRATE" },
        { "secure boot of another architecture",
          X86("'emulators': [{'arch': 'i686', 'machine': 'pc', 'secure_boot': true}]"), "",
          "-COMPUTE_SECURITY_UEFI_SECURE_BOOT -COMPUTE_MEM_BACKING_FILE" },
        { "images", X86(EMULATOR("")), "",
          "+COMPUTE_IMAGE_TYPE_QCOW2 +COMPUTE_IMAGE_TYPE_RAW -COMPUTE_IMAGE_TYPE_VMDK "
          "-COMPUTE_IMAGE_TYPE_PLOOP" },
        { "raw images only", X86(EMULATOR("")), "lvm",
          "-COMPUTE_IMAGE_TYPE_QCOW2 +COMPUTE_IMAGE_TYPE_RAW" },
        { "excluded images", X86(EMULATOR("")), "exclude",
          "-COMPUTE_IMAGE_TYPE_QCOW2 +COMPUTE_IMAGE_TYPE_RAW" },
};

static void test_table_c8(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cases[i].host);
                Provider *root;
                _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);

                set_options(&config, cases[i].option);
                assert_int_equal(host_traits_update(&config, host, root), 0);
                expect(root, cases[i].name, cases[i].expected);
        }
}

static int check_owned(const char *trait, int state, void *userdata)
{
        StringSet *seen = userdata;

        if (string_set_add(seen, trait) != 1)
                fail_msg("%s is in two lists", trait);
        assert_true(resource_class_valid(trait));
        assert_int_equal(strncmp(trait, "CUSTOM_", 7) != 0, 1);
        return 0;
}

/* C10: each trait of the lists is set or removed, whatever another writer did. No other trait
 * changes. */
static void test_ownership_c10(void **state)
{
        static const char *const foreign[] = {
                "CUSTOM_HW_CPU_X86_AVX", "COMPUTE_STATUS_DISABLED", "COMPUTE_MANAGED_PCI_DEVICE",
                "HW_NIC_SRIOV",          "HW_CPU_X86_STIBP",        "OWNER_NOVA"
        };
        _cleanup_(snapshot_unrefp) Snapshot *host =
                host_new(X86("'cpu_features': ['avx'], 'cells': [{'id': 0}], " EMULATOR("")));
        _cleanup_(string_set_done) StringSet owned = STRING_SET_INIT;
        Provider *root, *again;
        _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root),
                                                             *clean = tree_new(&again);
        HostConfig config = config_make(NULL, 0);

        assert_int_equal(host_traits_visit(&config, host, check_owned, &owned), 0);
        assert_true(owned.n_items > 120);
        for (size_t i = 0; i < owned.n_items; i++)
                assert_int_equal(string_set_add(&root->traits, owned.items[i]), 1);
        for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
                assert_false(string_set_contains(&owned, foreign[i]));
                assert_int_equal(string_set_add(&root->traits, foreign[i]), 1);
        }
        assert_int_equal(host_traits_update(&config, host, root), 0);
        assert_int_equal(host_traits_update(&config, host, again), 0);
        for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
                assert_true(string_set_remove(&root->traits, foreign[i]));
        assert_true(string_set_equal(&root->traits, &again->traits));
}

/* As in Nova: the trait needs a matching function whose card has a serial number. */
static void test_remote_managed_ports(void **state)
{
        static const struct {
                const char *spec, *serial;
                bool is_physical, on;
        } functions[] = {
                { "{'remote_managed': 'true'}", "true", false, true },
                { "{'remote_managed': 'true'}", "false", false, false },
                { "{'remote_managed': 'true'}", "true", true, false },
                { "{'remote_managed': 'false'}", "true", false, false },
                { "{'vendor_id': '10de', 'remote_managed': 'true'}", "true", false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
                _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
                _cleanup_free_ char *text = text_format(
                        X86(EMULATOR("")) ", 'devices': [{'name': 'pci_0000_81_00_2',"
                                          " 'address': '0000:81:00.2', "
                                          "'has_card_serial': %s, 'is_physical_function': %s}]",
                        functions[i].serial, functions[i].is_physical ? "true" : "false");
                Provider *root;
                _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);

                host = host_new(text);
                assert_int_equal(specs_add(&specs, functions[i].spec, NULL), 0);
                config.pci_specs = specs;
                assert_int_equal(host_traits_update(&config, host, root), 0);
                expect(root, functions[i].spec,
                       functions[i].on ? "+COMPUTE_REMOTE_MANAGED_PORTS"
                                       : "-COMPUTE_REMOTE_MANAGED_PORTS");
        }
}

/* An incomplete list sets the traits that it has, and removes none. */
static void test_incomplete_takes_nothing(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host =
                host_new(X86("'cpu_features': ['avx'], 'features_incomplete': true, "
                             "'emulators_incomplete': true, ") EMULATOR(", 'disk_buses': ['ide']"));
        Provider *root;
        _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(NULL, 0);

        assert_int_equal(string_set_add(&root->traits, "HW_CPU_X86_AVX2"), 1);
        assert_int_equal(string_set_add(&root->traits, "COMPUTE_STORAGE_BUS_SATA"), 1);
        assert_int_equal(host_traits_update(&config, host, root), 0);
        expect(root, "incomplete",
               "+HW_CPU_X86_AVX +HW_CPU_X86_AVX2 +COMPUTE_STORAGE_BUS_IDE "
               "+COMPUTE_STORAGE_BUS_SATA -COMPUTE_STORAGE_BUS_USB");
}

/* Facts that a host does not report neither set nor remove a trait. */
static void test_unknown_is_left_alone(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(X86("'online_cpus': '0'"));
        _cleanup_(string_set_done) StringSet owned = STRING_SET_INIT;
        Provider *root;
        _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(NULL, 0);

        assert_int_equal(host_traits_update(&config, host, root), 0);
        assert_int_equal(root->traits.n_items, 0);
        assert_int_equal(host_traits_visit(&config, host, check_owned, &owned), 0);
        assert_int_equal(string_set_copy(&root->traits, &owned), 0);
        assert_int_equal(host_traits_update(&config, host, root), 0);
        assert_true(string_set_equal(&root->traits, &owned));
}

static int add_cpu_trait(const char *trait, int state, void *userdata)
{
        if (strncmp(trait, "HW_CPU_X86_", strlen("HW_CPU_X86_")) == 0)
                assert_int_equal(string_set_add(userdata, trait), 1); /* each of them once */
        return 0;
}

static void test_each_cpu_trait_is_visited_once(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("");
        _cleanup_(string_set_done) StringSet traits = STRING_SET_INIT;
        HostConfig config = config_make(NULL, 0);

        assert_int_equal(host_traits_visit(&config, host, add_cpu_trait, &traits), 0);
        assert_int_equal(traits.n_items, 43 + 1); /* SEV does not come from a feature */
}

/* For a test in another language that compares the names with os-traits. */
static int print_trait(const char *trait, int state, void *userdata)
{
        printf("%s\n", trait);
        return 0;
}

static int print_all(void)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("");
        HostConfig config = config_make(NULL, 0);

        return host_traits_visit(&config, host, print_trait, NULL);
}

int main(int argc, char *argv[])
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table_c8),
                cmocka_unit_test(test_ownership_c10),
                cmocka_unit_test(test_unknown_is_left_alone),
                cmocka_unit_test(test_incomplete_takes_nothing),
                cmocka_unit_test(test_remote_managed_ports),
                cmocka_unit_test(test_each_cpu_trait_is_visited_once),
        };

        if (argc == 2 && strcmp(argv[1], "--list") == 0)
                return print_all();
        return cmocka_run_group_tests(tests, NULL, NULL);
}

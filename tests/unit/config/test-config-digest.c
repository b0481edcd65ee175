/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Digests of configurations, compared in pairs. */

#include "config/config-digest.h"

#include "tests/fixtures/config.h"

#define PASSWORD                                              \
        "auth_type = password\nauth_url = http://keystone/\n" \
        "user_domain_id = default\nproject_id = service\n"

#define SHAPES                                                   \
        "[pci]\nreport_in_placement = true\n[device_shapes a]\n" \
        "resource_class = CUSTOM_A\n"

static Digest digest_text(Fixture *f, const char *text)
{
        _cleanup_(config_freep) Config *config = load_text(f, text);
        Digest digest;

        assert_int_equal(config_make_digest(config, &digest), 0);
        return digest;
}

static void test_pairs(void **state)
{
        static const struct {
                const char *about, *a, *b;
                bool equal;
        } cases[] = {
                { "nothing", "", "", true },
                { "a default that is written", "", "[DEFAULT]\nclaim_expiry_time = 300\n", true },
                { "a default with a unit", "", "[agent]\nquiet_interval_max_sec = 240\n", true },
                { "a comment, and the order",
                  "[DEFAULT]\ndebug = true\nclaim_expiry_time = 9\n[agent]\nnova = top\n",
                  "# x\n[agent]\nnova = TOP\n[DEFAULT]\nclaim_expiry_time = 9\ndebug = yes\n",
                  true },
                { "the name of the host", "[DEFAULT]\nhost = a\n", "[DEFAULT]\nhost = b\n", true },
                { "a number", "", "[DEFAULT]\nclaim_expiry_time = 301\n", false },
                { "a ratio", "", "[DEFAULT]\ncpu_allocation_ratio = 2.5\n", false },
                { "a word", "", "[agent]\nnova = top\n", false },
                { "a list", "[agent]\nforeign_traits = CUSTOM_A\n",
                  "[agent]\nforeign_traits = CUSTOM_A, CUSTOM_B\n", false },
                { "a set of CPUs", "[compute]\ncpu_dedicated_set = 1-3\n",
                  "[compute]\ncpu_dedicated_set = 1-4\n", false },
                { "standalone or not", "", "[placement]\nendpoint_override = unix:///x\n", false },
                { "the token", "[placement]\nendpoint_override = unix:///x\ntoken = a\n",
                  "[placement]\nendpoint_override = unix:///x\ntoken = b\n", true },
                { "the password and the user",
                  "[placement]\n" PASSWORD "username = a\npassword = b\n",
                  "[placement]\n" PASSWORD "username = c\npassword = d\n", true },
                { "the check of certificates",
                  "[placement]\n" PASSWORD "username = a\npassword = b\n",
                  "[placement]\n" PASSWORD "username = a\npassword = b\ninsecure = true\n", false },
                { "the user of a URL", "[libvirt]\nconnection_uri = qemu+tcp://a:b@localhost/x\n",
                  "[libvirt]\nconnection_uri = qemu+tcp://c:d@localhost/x\n", true },
                { "addresses of devices",
                  "[devices]\nenabled_mdev_types = nvidia-35\n"
                  "[mdev_nvidia-35]\ndevice_addresses = 0000:41:00.0\n",
                  "[devices]\nenabled_mdev_types = nvidia-35\n"
                  "[mdev_nvidia-35]\ndevice_addresses = 0000:42:00.0\n",
                  true },
                { "a class of a type", "[devices]\nenabled_mdev_types = nvidia-35\n",
                  "[devices]\nenabled_mdev_types = nvidia-35\n"
                  "[mdev_nvidia-35]\nmdev_class = CUSTOM_A\n",
                  false },
                { "the address of a specification",
                  "[pci]\ndevice_spec = {\"address\": \"0000:41:00.0\", \"resource_class\": \"A\"}\n",
                  "[pci]\ndevice_spec = {\"resource_class\": \"A\", \"address\": \"0000:42:00.0\"}\n",
                  true },
                { "a list of specifications",
                  "[pci]\ndevice_spec = [{\"address\": \"0000:41:00.0\"}]\n",
                  "[pci]\ndevice_spec = [{\"address\": \"0000:42:00.0\"}]\n", true },
                { "the class of a specification",
                  "[pci]\ndevice_spec = {\"address\": \"0000:41:00.0\", \"resource_class\": \"A\"}\n",
                  "[pci]\ndevice_spec = {\"address\": \"0000:41:00.0\", \"resource_class\": \"B\"}\n",
                  false },
                { "cards that are made ready",
                  "[device_prepare a]\ndevice_addresses = 0000:41:00.0\nvirtual_functions = 2\n",
                  "[device_prepare a]\ndevice_addresses = 0000:41:00.0\nvirtual_functions = 3\n",
                  false },
                { "addresses of a set of devices",
                  SHAPES "members = 0000:41:00.0, 0000:42:00.0\npartitions = a=1, b=2\n",
                  SHAPES "members = 0000:51:00.0, 0000:52:00.0\npartitions = a=1, b=2\n", true },
                { "partitions of a set of devices",
                  SHAPES "members = 0000:41:00.0, 0000:42:00.0\npartitions = a=1, b=2\n",
                  SHAPES "members = 0000:41:00.0, 0000:42:00.0\npartitions = a=1-2\n", false },
                { "devices of slots",
                  SHAPES "members = 2\npartitions = a=1-2@0000:41:00.4+0000:41:00.5\n",
                  SHAPES "members = 2\npartitions = a=1-2@0000:42:00.4+0000:42:00.5\n", true },
                { "the number of the devices of slots",
                  SHAPES "members = 2\npartitions = a=1-2@0000:41:00.4\n",
                  SHAPES "members = 2\npartitions = a=1-2@0000:41:00.4+0000:41:00.5\n", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Digest a = digest_text(*state, cases[i].a), b = digest_text(*state, cases[i].b);

                if ((memcmp(a.hash, b.hash, sizeof(a.hash)) == 0) != cases[i].equal)
                        fail_msg("%s", cases[i].about);
        }
}

TEST_MAIN_WITH(setup, teardown, test_pairs)

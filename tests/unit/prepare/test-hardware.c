/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The cards in sysfs, and the open handles in /proc. */

#include "prepare/hardware.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "tests/fixtures/prepare.h"

#define SECTION "[device_prepare a]\ndevice_addresses = " CARD "\n"
#define FIRST   "0000:c1:00.4"
#define SECOND  "0000:c1:00.5"

static void read_host(PrepareFixture *f, PrepareHost *ret)
{
        configure(f, SECTION);
        assert_int_equal(prepare_read_host(&f->paths, &f->config->driver.host, ret, NULL), 0);
        assert_int_equal(ret->n_cards, 1);
}

static void test_card_with_functions(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };
        const PrepareCard *card;

        put_card(f, CARD, 2, 32);
        put(f, CARD, "sriov_offset", "4\n");
        put(f, CARD, "sriov_stride", "1\n");
        put_type(f, FIRST, 1428);
        scratch_mkdir(f->claims->folder, DEVICES FIRST "/vfio-dev");
        scratch_mkdir(f->claims->folder, DEVICES FIRST "/vfio-dev/vfio7");
        read_host(f, &host);
        card = host.cards;
        assert_true(card->exists);
        assert_int_equal(card->n_virtual, 2);
        assert_int_equal(card->max_virtual, 32);
        assert_int_equal(card->offset, 4);
        assert_int_equal(card->stride, 1);
        assert_string_equal(card->unreadable, "");
        assert_int_equal(card->n_functions, 2);
        assert_string_equal(card->functions[0].address, FIRST);
        assert_true(card->functions[0].has_type);
        assert_int_equal(card->functions[0].type, 1428);
        assert_string_equal(card->functions[0].driver, "nvidia");
        assert_string_equal(card->functions[0].group, "40");
        assert_string_equal(card->functions[0].vfio, "vfio7");
        assert_string_equal(card->functions[1].address, "0000:c1:00.5");
        assert_int_equal(card->functions[1].type, 0);
        assert_string_equal(card->functions[1].vfio, "");
}

static void test_missing_files(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost none = { 0 }, host = { 0 };

        read_host(f, &none);
        assert_false(none.cards->exists);
        assert_int_equal(none.cards->n_functions, 0);

        put(f, CARD, "vendor", "0x10de\n"); /* without SR-IOV */
        read_host(f, &host);
        assert_true(host.cards->exists);
        assert_int_equal(host.cards->max_virtual, 0);
        assert_string_equal(host.cards->unreadable, "");
}

/* Text of a driver that is no number is an error of its card or function, not of the others. */
static void test_bad_files(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 }, broken = { 0 };

        put_card(f, CARD, 3, 4);
        put(f, FIRST, "nvidia/current_vgpu_type", "x\n");
        put_link(f, CARD, "virtfn1", "../somewhere");
        read_host(f, &host);
        assert_int_equal(host.cards->n_functions, 2);
        assert_text(host.cards->functions[0].unreadable, "Cannot read nvidia/current_vgpu_type");
        assert_string_equal(host.cards->functions[1].address, "0000:c1:00.6");
        assert_string_equal(host.cards->functions[1].unreadable, "");

        prepare_host_done(&host);
        put_type(f, FIRST, 1428);
        put(f, FIRST, "vfio-dev", "a file");
        read_host(f, &host);
        assert_text(host.cards->functions[0].unreadable, "Cannot read vfio-dev: Not a directory");

        put(f, CARD, "sriov_numvfs", "many\n");
        read_host(f, &broken);
        assert_text(broken.cards->unreadable, "Cannot read sriov_numvfs");
        assert_int_equal(broken.cards->n_functions, 0);
}

static void test_links_of_handles(void **state)
{
        static const struct {
                const char *target;
                bool expected;
        } cases[] = {
                { "/dev/vfio/42", true },
                { "/dev/vfio/42 (deleted)", true },
                { "/dev/vfio/noiommu-42", true },
                { "/vfio/42", true }, /* below another mount */
                { "/dev/vfio/devices/vfio7", true },
                { "/dev/vfio/vfio", false },
                { "/dev/vfio/4", false },
                { "/dev/vfio/421", false },
                { "/dev/vfio/devices/vfio71", false },
                { "/dev/vfio/devices/vfio", false },
                { "/home/vfio/readme", false },
        };
        PrepareFixture *f = *state;
        PrepareFunction functions[] = { { .group = "42", .vfio = "vfio7" }, { .open = 0 } };
        PrepareCard card = { .functions = functions, .n_functions = ARRAY_SIZE(functions) };
        PrepareHost host = { .cards = &card, .n_cards = 1 };

        scratch_write(f->claims->folder, "sys/class/vfio/42/dev", "1:3\n");
        scratch_write(f->claims->folder, "sys/class/vfio-dev/vfio7/dev", "1:3\n");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                put_handle(f, 13, cases[i].target);
                assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
                if (functions[0].open != (cases[i].expected ? PREPARE_OPEN_YES : PREPARE_OPEN_NO))
                        fail_msg("%s", cases[i].target);
                assert_int_equal(functions[1].open, PREPARE_OPEN_NO);
                end_process(f, 13);
        }
}

/* Each user can make a file with the name of a group, whose number is in sysfs. */
static void test_a_file_with_the_name_of_a_group_is_no_handle(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *path = scratch_path(f->claims->folder, "vfio/42");
        _cleanup_close_ int memory = memfd_create("/vfio/42", MFD_CLOEXEC), file = -EBADF,
                            node = -EBADF;
        PrepareFunction function = { .group = "42" };
        PrepareCard card = { .functions = &function, .n_functions = 1 };
        PrepareHost host = { .cards = &card, .n_cards = 1 };

        assert_true(memory >= 0);
        scratch_write(f->claims->folder, "vfio/42", "");
        file = open(path, O_RDWR | O_CLOEXEC);
        assert_true(file >= 0);
        scratch_mkdir(f->claims->folder, "proc/13");
        scratch_link(f->claims->folder, "proc/13/fd", "/proc/self/fd");
        for (int i = 0; i < 2; i++) {
                assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
                assert_int_equal(function.open, PREPARE_OPEN_NO);
                scratch_write(f->claims->folder, "sys/class/vfio/42/dev", "1:3\n");
        }
        /* O_PATH needs no right to open the device. Root can make one. */
        assert_int_equal(unlink(path), 0);
        if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0)
                return;
        node = open(path, O_PATH | O_CLOEXEC);
        assert_true(node >= 0);
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(function.open, PREPARE_OPEN_NO);
        close(node);
        node = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(function.open, node < 0 ? PREPARE_OPEN_NO : PREPARE_OPEN_YES);
}

/* Each user can make folders below each other until the kernel returns no path. */
static void test_a_file_with_a_long_path_is_no_handle(void **state)
{
        PrepareFixture *f = *state;
        PrepareFunction function = { .group = "42" };
        PrepareCard card = { .functions = &function, .n_functions = 1 };
        PrepareHost host = { .cards = &card, .n_cards = 1 };
        int folders[20] = { open(f->claims->folder, O_RDONLY | O_CLOEXEC) };
        char name[256];

        snprintf(name, sizeof(name), "%0255d", 0);
        for (size_t i = 1; i < ARRAY_SIZE(folders); i++) {
                assert_int_equal(mkdirat(folders[i - 1], name, 0700), 0);
                folders[i] = openat(folders[i - 1], name, O_RDONLY | O_CLOEXEC);
        }
        scratch_mkdir(f->claims->folder, "proc/13");
        scratch_link(f->claims->folder, "proc/13/fd", "/proc/self/fd");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        for (size_t i = ARRAY_SIZE(folders); i-- > 0; close(folders[i]))
                if (i + 1 < ARRAY_SIZE(folders))
                        assert_int_equal(unlinkat(folders[i], name, AT_REMOVEDIR), 0);
        assert_int_equal(function.open, PREPARE_OPEN_NO);
}

/* A process can have an opened device of another number below a mount of its own. */
static void test_the_number_of_the_device_decides(void **state)
{
        PrepareFixture *f = *state;
        PrepareFunction function = { .group = "42" };
        PrepareCard card = { .functions = &function, .n_functions = 1 };
        PrepareHost host = { .cards = &card, .n_cards = 1 };

        put_handle(f, 13, "/dev/vfio/42");
        scratch_write(f->claims->folder, "sys/class/vfio/42/dev", "1:4\n");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(function.open, PREPARE_OPEN_NO);
        scratch_write(f->claims->folder, "sys/class/vfio/42/dev", "a text\n");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(function.open, PREPARE_OPEN_UNKNOWN);
}

static void test_open_functions(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };

        put_card(f, CARD, 2, 4);
        read_host(f, &host);
        scratch_mkdir(f->claims->folder, "proc/self-made");
        scratch_mkdir(f->claims->folder, "proc/12"); /* a process that ended */
        put_handle(f, 13, "/dev/vfio/41");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_NO);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_YES);
        end_process(f, 13);
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_NO);
}

/* A guest has the VFIO group of the mediated device open, not that of the function. */
static void test_mediated_devices_are_in_use(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };

        put_card(f, CARD, 2, 4);
        read_host(f, &host);
        put_mdev(f, "a297db4a-f4c2-11e6-90f6-d3b88d6c9525", SECOND);
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_NO);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_PARENT);
        scratch_write(f->claims->folder, "sys/bus/mdev/devices/no-link", "");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_UNKNOWN);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_PARENT);
}

/* The guests of vDPA and macvtap devices open other files than those of VFIO. */
static void test_network_functions_are_in_use(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };

        put_card(f, CARD, 4, 4);
        read_host(f, &host);
        put_vdpa(f, "vdpa0", FIRST);
        put_upper(f, "macvtap0", SECOND);
        put(f, "0000:c1:00.6", "net/eth6/address", "02:00:00:00:00:01\n");
        put(f, "0000:c1:00.7", "net", "a file");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_PARENT);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_PARENT);
        assert_int_equal(host.cards->functions[2].open, PREPARE_OPEN_NO);
        assert_int_equal(host.cards->functions[3].open, PREPARE_OPEN_UNKNOWN);
}

/* A folder of descriptors that cannot be read hides handles, so each function can be open. */
static void test_unreadable_process(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };
        PreparePaths none = f->paths;

        put_card(f, CARD, 2, 4);
        read_host(f, &host);
        put_handle(f, 13, "/dev/vfio/41");
        scratch_write(f->claims->folder, "proc/14/fd", ""); /* ENOTDIR, also for root */
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_UNKNOWN);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_YES);
        none.proc = "/nonexistent";
        assert_int_equal(prepare_read_open(&none, &host, NULL), 0);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_UNKNOWN);
}

/* An unreadable vfio-dev hides the name of the handle. */
static void test_unreadable_function_can_be_open(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };

        put_card(f, CARD, 2, 4);
        put(f, FIRST, "vfio-dev", "a file");
        read_host(f, &host);
        put_handle(f, 13, "/dev/vfio/devices/vfio7");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_UNKNOWN);
        assert_int_equal(host.cards->functions[1].open, PREPARE_OPEN_NO);
        put_handle(f, 14, "/dev/vfio/40");
        assert_int_equal(prepare_read_open(&f->paths, &host, NULL), 0);
        assert_int_equal(host.cards->functions[0].open, PREPARE_OPEN_YES);
}

TEST_MAIN_WITH(prepare_setup, prepare_teardown, test_card_with_functions, test_missing_files,
               test_bad_files, test_links_of_handles,
               test_a_file_with_the_name_of_a_group_is_no_handle,
               test_a_file_with_a_long_path_is_no_handle, test_the_number_of_the_device_decides,
               test_open_functions, test_mediated_devices_are_in_use,
               test_network_functions_are_in_use, test_unreadable_process,
               test_unreadable_function_can_be_open)

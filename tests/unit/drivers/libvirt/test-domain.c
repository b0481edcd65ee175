/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain.h"
#include "tests/unit/test.h"

#define UUID_DOMAIN "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e01"
#define UUID_MDEV   "c60cc60c-c60c-4c60-8c60-c60cc60cc60c"

#define DOMAIN(inside) \
        "<domain type='kvm' id='3'><name>g</name><uuid>" UUID_DOMAIN "</uuid>" inside "</domain>"

static void test_whole(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        Error error = ERROR_NULL;
        int r;

        r = domain_parse(
                DOMAIN("<memory unit='KiB'>1048576</memory><currentMemory "
                       "unit='KiB'>1</currentMemory>"
                       "<vcpu placement='static' cpuset='0-3' current='2'>4</vcpu><devices>"
                       "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>"
                       "<source><address uuid='" UUID_MDEV "'/></source>"
                       "<address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>"
                       "</hostdev>"
                       "<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/>"
                       "<source><address domain='0x0000' bus='0x05' slot='0x1f' function='0x1'/>"
                       "</source></hostdev>"
                       "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/></source>"
                       "</hostdev><hostdev mode='capabilities' type='misc'/>"
                       "<hostdev mode='subsystem' type='pci'><source>"
                       "<address domain='0x10000' bus='0' slot='0' "
                       "function='0'/></source></hostdev>"
                       "<interface type='hostdev'><source><address type='pci' domain='0x0000'"
                       " bus='0x06' slot='0x00' function='0x2'/></source></interface>"
                       "<interface type='bridge'><source bridge='br0'/></interface></devices>"),
                &domain, &error);
        if (r < 0)
                fail_msg("%s", error.text);
        assert_string_equal(domain.uuid.text, UUID_DOMAIN);
        assert_string_equal(domain.name, "g");
        assert_int_equal(domain.vcpus, 4);
        assert_int_equal(domain.memory_kib, 1048576);
        assert_int_equal(domain.n_mdevs, 1);
        assert_string_equal(domain.mdevs[0].text, UUID_MDEV);
        assert_int_equal(domain.n_pci_addresses, 2);
        assert_string_equal(domain.pci_addresses[0], "0000:05:1f.1");
        assert_string_equal(domain.pci_addresses[1], "0000:06:00.2");
}

#define DEVICES(inside) DOMAIN("<devices>" inside "</devices>")

static void test_table(void **state)
{
        static const struct {
                const char *text;
                const char *words; /* NULL: fine */
        } cases[] = {
                { DOMAIN(""), NULL },
                { DOMAIN("<devices/>"), NULL },
                { DEVICES("<hostdev type='mdev'/>"), NULL },
                { "", "Not XML" },
                { "<network/>", "Expected <domain>" },
                { "<domain/>", "not a uuid" },
                { "<domain><name>\"><!--</name></domain>", "Not XML" },
                { "<domain><name>n</name><uuid>5d0b6c3e</uuid></domain>", "n: not a uuid" },
                { DOMAIN("<vcpu>-3</vcpu>"), UUID_DOMAIN ": vcpu is no number" },
                { DOMAIN("<memory unit='?'>3</memory>"), "Unknown unit" },
                { DEVICES("<hostdev type='mdev'><source><address uuid='../..'/></source></hostdev>"),
                  "no uuid: \"../..\"" },
                { DEVICES("<hostdev type='pci'><source><address bus='0'/></source></hostdev>"),
                  "domain is missing" },
                { DEVICES("<interface type='hostdev'><source><address type='usb'/></source>"
                          "</interface>"),
                  "domain is missing" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
                Error error = ERROR_NULL;
                int r = domain_parse(cases[i].text, &domain, &error);

                if (r != (cases[i].words ? -EBADMSG : 0))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
                if (cases[i].words && !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: \"%s\"", i, error.text);
                assert_int_equal(domain.n_mdevs, 0);
                if (r < 0)
                        assert_null(domain.name);
        }
}

TEST_MAIN(test_whole, test_table)

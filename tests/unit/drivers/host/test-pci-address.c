/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/pci-address.h"
#include "tests/unit/test.h"

static void test_parse(void **state)
{
        static const struct {
                const char *text, *address; /* NULL: refused */
        } cases[] = {
                { "0000:41:00.0", "0000:41:00.0" },
                { "ABCD:EF:1f.7", "abcd:ef:1f.7" },
                { "", NULL },
                { "0000:41:00", NULL },
                { "0000:41:00.8", NULL },
                { "0000:41:20.0", NULL },
                { "0000:41:00.00", NULL },
                { "10000:41:00.0", NULL },
                { "0000-41-00.0", NULL },
                { "0000:41:00.g", NULL },
                { "0000:41:00,0", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char address[PCI_ADDRESS_SIZE] = "untouched";
                int r = pci_address_parse(cases[i].text, address);

                assert_int_equal(r, cases[i].address ? 0 : -EINVAL);
                assert_string_equal(address, cases[i].address ? cases[i].address : "untouched");
        }
}

static void test_format(void **state)
{
        char address[PCI_ADDRESS_SIZE] = "untouched";

        assert_int_equal(pci_address_format(0x10000, 0, 0, 0, address), -ERANGE);
        assert_int_equal(pci_address_format(0, 0x100, 0, 0, address), -ERANGE);
        assert_int_equal(pci_address_format(0, 0, 0x20, 0, address), -ERANGE);
        assert_int_equal(pci_address_format(0, 0, 0, 8, address), -ERANGE);
        assert_string_equal(address, "untouched");
        assert_int_equal(pci_address_format(0xffff, 0xff, 0x1f, 7, address), 0);
        assert_string_equal(address, "ffff:ff:1f.7");
        assert_int_equal(pci_address_format(0, 0x41, 0, 0, address), 0);
        assert_string_equal(address, "0000:41:00.0");
}

TEST_MAIN(test_parse, test_format)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/draw.h"

#include <libxml/parser.h>

#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/host.h"

#define GUEST_A "11111111-0000-4000-8000-000000000001"
#define GUEST_B "22222222-0000-4000-8000-000000000002"
#define GUEST_C "33333333-0000-4000-8000-000000000003"
#define MDEV_1  "aaaaaaaa-1111-4000-8000-000000000001"
#define MDEV_2  "aaaaaaaa-2222-4000-8000-000000000002"

/* Two cells of two cores with two threads. CPU 7 is offline. A GPU has two mdevs and space for one,
 * a card has two VFs, and another card has no cell. One guest is pinned and one floats. */
#define HOST                                                                                    \
        "\"online_cpus\": \"0-6\", \"memory_kib\": 4194304, \"arch\": \"x86_64\","              \
        "\"cells\": [{\"id\": 0, \"memory_kib\": 2097152, \"cpus\": ["                          \
        "   {\"id\": 0, \"siblings\": \"0,4\"}, {\"id\": 1, \"siblings\": \"1,5\"},"            \
        "   {\"id\": 4, \"siblings\": \"0,4\"}, {\"id\": 5, \"siblings\": \"1,5\"}],"           \
        "  \"pages\": [{\"size_kib\": 4, \"count\": 1}, {\"size_kib\": 2048, \"count\": 9}]},"  \
        " {\"id\": 1, \"memory_kib\": 2097152, \"cpus\": ["                                     \
        "   {\"id\": 2, \"siblings\": \"2,6\"}, {\"id\": 3, \"siblings\": \"3,7\"},"            \
        "   {\"id\": 6, \"siblings\": \"2,6\"}, {\"id\": 7, \"siblings\": \"3,7\"}]}],"         \
        "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\","         \
        "   \"numa_node\": 1, \"product\": \"<GPU & \\\"co\\\">\\u001b\\uffff\","               \
        "   \"mdev_types\": [{\"id\": \"nvidia-35\", \"available_instances\": 1}]},"            \
        " {\"name\": \"pci_0000_51_00_0\", \"address\": \"0000:51:00.0\", \"numa_node\": 0,"    \
        "   \"is_physical_function\": true},"                                                   \
        " {\"name\": \"pci_0000_51_02_0\", \"address\": \"0000:51:02.0\", \"numa_node\": 0,"    \
        "   \"physical_function\": \"0000:51:00.0\"},"                                          \
        " {\"name\": \"pci_0000_51_02_1\", \"address\": \"0000:51:02.1\", \"numa_node\": 0,"    \
        "   \"physical_function\": \"0000:51:00.0\"},"                                          \
        " {\"name\": \"pci_0000_61_00_0\", \"address\": \"0000:61:00.0\","                      \
        "   \"class_code\": 131072}],"                                                          \
        "\"mdevs\": [{\"uuid\": \"" MDEV_1 "\", \"type\": \"nvidia-35\","                       \
        "   \"parent\": \"pci_0000_41_00_0\"},"                                                 \
        "  {\"uuid\": \"" MDEV_2                                                                \
        "\", \"type\": \"nvidia-35\", \"parent\": \"pci_0000_41_00_0\"}],"                      \
        "\"domains\": [{\"uuid\": \"" GUEST_A "\", \"name\": \"we<b\", \"state\": \"running\"," \
        "   \"vcpus\": 2, \"memory_kib\": 1048576, \"memory_cells\": \"0\","                    \
        "   \"pins\": [{\"vcpu\": 0, \"cpus\": \"1\"}, {\"vcpu\": 1, \"cpus\": \"5\"}],"        \
        "   \"mdevs\": [\"" MDEV_1 "\"], \"pci_addresses\": [\"0000:51:02.1\"]},"               \
        "  {\"uuid\": \"" GUEST_B "\", \"name\": \"db\", \"state\": \"running\","               \
        "   \"vcpus\": 1, \"memory_kib\": 1024}]"
#define TREE                                                                                      \
        "{\"sync_state\": \"synced\", \"providers\": [{\"name\": \"cn1\", \"inventories\": {"     \
        " \"VCPU\": {\"used\": 3, \"capacity\": 8}, \"DISK_GB\": {\"used\": 0, \"capacity\": 0}," \
        " \"MEMORY_MB\": {\"used\": 9223372036854775807, \"capacity\": 1},"                       \
        " \"VGPU\": {\"used\": 2, \"capacity\": 0}}}]}"
#define CLAIMS                                                                            \
        "{\"claims\": [{\"consumer\": \"" GUEST_C "\", \"allocations\": [{\"resources\":" \
        "   {\"VGPU\": 1}}], \"devices\": [{\"mdev\": \"" MDEV_2 "\","                    \
        "   \"address\": \"0000:41:00.0\"}]},"                                            \
        " {\"consumer\": \"" GUEST_B "\", \"allocations\": [], \"devices\":"              \
        "   [{\"mdev\": \"\", \"address\": \"0000:61:00.0\"}]}]}"

static void draw(Capture *capture, const char *host, const char *tree, const char *claims)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(host);
        _cleanup_json_ json_t *tree_json = parse_json(tree),
                              *claims_json = claims ? parse_json(claims) : NULL;

        ctl_draw(snapshot, tree_json, claims_json, capture_begin(capture, STYLE_PIPE));
        capture_end(capture);
}

/* Asserts the colour of the box in the group with that tooltip. */
static void assert_colour_of(const char *svg, const char *tooltip, const char *colour)
{
        char title[128], fill[32];
        const char *group, *end;

        snprintf(title, sizeof(title), "<g><title>%s</title>", tooltip);
        snprintf(fill, sizeof(fill), "fill=\"%s\"", colour);
        assert_contains(svg, title);
        group = strstr(svg, title);
        end = strstr(group, "/>");
        assert_non_null(end);
        if (!memmem(group, (size_t)(end - group), fill, strlen(fill)))
                fail_msg("%s is not %s: %.*s", tooltip, colour, (int)(end - group), group);
}

static void test_colours_of_holders(void **state)
{
        _cleanup_(capture_done) Capture capture;
        const char *svg;

        draw(&capture, HOST, TREE, CLAIMS);
        svg = capture.text;
        assert_colour_of(svg, "CPU 0: free", "#ffffff");
        assert_colour_of(svg, "CPU 1: we&lt;b", "#e16969");
        assert_colour_of(svg, "CPU 5: we&lt;b", "#e16969");
        assert_contains(svg, "<title>CPU 7: offline</title>\n<rect class=\"off\"");
        assert_colour_of(svg, "nvidia-35: we&lt;b", "#e16969");
        assert_colour_of(svg, "nvidia-35: " GUEST_C, "#ad69e1");
        assert_colour_of(svg, "free mdev: free", "#ffffff");
        assert_colour_of(svg, "0000:51:02.0: free", "#ffffff");
        assert_colour_of(svg, "0000:51:02.1: we&lt;b", "#e16969");
        assert_colour_of(svg, "pci_0000_61_00_0", "#69e18b");
        /* Half of the cell's memory; a VF is no device of its own. */
        assert_contains(svg, "<title>we&lt;b</title>\n<rect class=\"part\"");
        assert_lacks(svg, "pci_0000_51_02_0");
        assert_contains(svg, "Devices without a cell");
        assert_contains(svg, "Memory 2 GiB, 9 × 2 MiB");
        assert_contains(svg, "db  (running, not pinned)");
        assert_contains(svg, "(claimed, no domain)  VGPU=1");
        /* A cordoned device with guests. */
        assert_contains(svg, ">2 in use, none free</text>");
        assert_lacks(svg, "2 of 0");
        /* Text from the host. */
        assert_contains(svg, "&lt;GPU &amp; &quot;co&quot;&gt;\\x1b?");
}

/* A claim that a migration took over has another consumer, but the guest has its name. */
static void test_claim_of_a_migration(void **state)
{
        static const char claims[] =
                "{\"claims\": [{\"consumer\": \"" GUEST_C "\", \"guest\": \"we<b\","
                "   \"allocations\": [{\"resources\": {\"VGPU\": 1}}], \"devices\": ["
                "    {\"device\": \"pci_0000_41_00_0\", \"mdev\": \"" GUEST_B "\","
                "    \"exists\": false}]}, {\"consumer\": \"44444444-0000-4000-8000-000000000004\","
                "   \"guest\": \"process 7\", \"allocations\": [], \"devices\": []}]}";
        _cleanup_(capture_done) Capture capture;

        draw(&capture, HOST, TREE, claims);
        assert_contains(capture.text, "we&lt;b  (running)  VGPU=1");
        assert_colour_of(capture.text, "mdev, not created: we&lt;b", "#e16969");
        assert_lacks(capture.text, GUEST_C);
        assert_contains(capture.text, "000000000004  (claimed, no domain)");
}

/* A claimed mdev that does not exist takes one of the free slots. */
static void test_promised_mdevs(void **state)
{
        static const char claims[] =
                "{\"claims\": [{\"consumer\": \"" GUEST_C "\", \"allocations\": [],"
                " \"devices\": [{\"device\": \"pci_0000_41_00_0\", \"mdev\": \"" GUEST_B "\","
                " \"exists\": false}, {\"device\": \"pci_0000_41_00_0\", \"mdev\": \"" MDEV_1
                "\", \"exists\": true}]}]}";
        _cleanup_(capture_done) Capture capture;

        draw(&capture, HOST, TREE, claims);
        assert_colour_of(capture.text, "mdev, not created: " GUEST_C, "#ad69e1");
        assert_lacks(capture.text, "free mdev");
        assert_contains(capture.text, GUEST_C "  (claimed, no domain)");
}

/* The slot of a virtual function shows the guest of its mdev. */
static void test_mdevs_of_virtual_functions(void **state)
{
        static const char host[] = "\"devices\": [{\"name\": \"pf\", \"address\": \"0000:51:00.0\","
                                   "   \"is_physical_function\": true},"
                                   " {\"name\": \"vf0\", \"address\": \"0000:51:02.0\","
                                   "   \"physical_function\": \"0000:51:00.0\"},"
                                   " {\"name\": \"vf1\", \"address\": \"0000:51:02.1\","
                                   "   \"physical_function\": \"0000:51:00.0\"},"
                                   " {\"name\": \"vf2\", \"address\": \"0000:51:02.2\","
                                   "   \"physical_function\": \"0000:51:00.0\"}],"
                                   "\"mdevs\": [{\"uuid\": \"" MDEV_1
                                   "\", \"type\": \"nvidia-35\", \"parent\": \"vf0\"}],"
                                   "\"domains\": [{\"uuid\": \"" GUEST_A "\", \"name\": \"a\","
                                   "   \"state\": \"running\", \"mdevs\": [\"" MDEV_1 "\"]}]";
        static const char claims[] = "{\"claims\": [{\"consumer\": \"" GUEST_C
                                     "\", \"allocations\": [], \"devices\": [{\"device\": \"vf1\","
                                     " \"mdev\": \"" MDEV_2 "\", \"exists\": false}]}]}";
        _cleanup_(capture_done) Capture capture;

        draw(&capture, host, TREE, claims);
        assert_contains(capture.text, "<title>0000:51:02.0: a</title>");
        assert_contains(capture.text, "<title>0000:51:02.1: " GUEST_C "</title>");
        assert_contains(capture.text, "<title>0000:51:02.2: free</title>");
}

static void test_well_formed_and_the_same_again(void **state)
{
        static const struct {
                const char *host, *tree, *claims;
        } cases[] = {
                { HOST, TREE, CLAIMS },
                { HOST, TREE, NULL },
                { "", "{}", NULL },
                { "", "{\"providers\": 7}", "{\"claims\": {}}" },
                { "\"cells\": [{\"id\": 9, \"memory_kib\": 0}]", "{}", "{\"claims\": [7]}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(capture_done) Capture first, second;
                xmlDocPtr document;

                draw(&first, cases[i].host, cases[i].tree, cases[i].claims);
                draw(&second, cases[i].host, cases[i].tree, cases[i].claims);
                assert_string_equal(first.text, second.text);
                document = xmlReadMemory(first.text, (int)strlen(first.text), NULL, NULL,
                                         XML_PARSE_NONET | XML_PARSE_NOERROR);
                if (!document)
                        fail_msg("case %zu is no XML:\n%s", i, first.text);
                xmlFreeDoc(document);
        }
}

static void test_many_virtual_functions_take_rows(void **state)
{
        _cleanup_free_ char *host = NULL;
        _cleanup_(capture_done) Capture capture;
        size_t size, n = 0;
        FILE *stream = open_memstream(&host, &size);

        assert_non_null(stream);
        fputs("\"devices\": [{\"name\": \"pf\", \"address\": \"0000:51:00.0\","
              "\"is_physical_function\": true}",
              stream);
        for (unsigned i = 0; i < 64; i++)
                fprintf(stream,
                        ", {\"name\": \"v%u\", \"address\": \"0000:52:%02x.%u\","
                        "\"physical_function\": \"0000:51:00.0\"}",
                        i, i / 8, i % 8);
        fputs("]", stream);
        fclose(stream);
        draw(&capture, host, "{}", NULL);
        for (const char *c = capture.text; (c = strstr(c, "class=\"slot\"")); c++)
                n++;
        assert_int_equal(n, 64);
        assert_contains(capture.text, "<title>0000:52:07.7: free</title>");
}

TEST_MAIN(test_colours_of_holders, test_claim_of_a_migration, test_promised_mdevs,
          test_mdevs_of_virtual_functions, test_well_formed_and_the_same_again,
          test_many_virtual_functions_take_rows)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts the calls of libvirt that polls make, over its test driver, with an artificial host of
 * many domains and devices. */

#include <libvirt/libvirt.h>
#include <poll.h>

#include "bench/libvirt-calls.h"
#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/poll.h"
#include "drivers/registry.h"
#include "tests/fixtures/driver.h"
#include "tests/fixtures/host.h"

#define N_DEVICES 300
#define N_DOMAINS 500

typedef struct Host {
        char path[64];
        Mailbox *mailbox;
        int event_fd;
        LibvirtConnection *connection;
} Host;

static void write_devices(FILE *file)
{
        for (unsigned i = 0; i < N_DEVICES; i++) {
                unsigned bus = i / 32, slot = i % 32;

                fprintf(file,
                        "<device><name>pci_0000_%02x_%02x_0</name><parent>computer</parent>"
                        "<capability type='pci'><class>0x020000</class><domain>0</domain>"
                        "<bus>%u</bus><slot>%u</slot><function>0</function>"
                        "<product id='0x1572'>X710</product><vendor id='0x8086'>Intel</vendor>"
                        "<capability type='virt_functions' maxCount='64'/>"
                        "<numa node='0'/></capability></device>",
                        bus, slot, bus, slot);
        }
}

static void write_domains(FILE *file)
{
        for (unsigned i = 0; i < N_DOMAINS; i++)
                fprintf(file,
                        "<domain type='test'><name>guest%u</name>"
                        "<uuid>5d0b6c3e-8a53-4c0f-9d62-%012u</uuid>"
                        "<memory unit='MiB'>512</memory><vcpu>2</vcpu>"
                        "<os><type>hvm</type></os></domain>",
                        i, i);
}

static int write_host(Host *host)
{
        FILE *file;
        int fd;

        strcpy(host->path, "/tmp/compute-agent-poll-XXXXXX");
        fd = mkstemp(host->path);
        file = fd < 0 ? NULL : fdopen(fd, "w");
        if (!file)
                return -1;
        fputs("<node>", file);
        write_domains(file);
        fputs("<cpu><mhz>2400</mhz><model>x86_64</model><active>4</active><nodes>1</nodes>"
              "<sockets>1</sockets><cores>4</cores><threads>1</threads></cpu>"
              "<memory>8388608</memory>",
              file);
        write_devices(file);
        fputs("</node>", file);
        return fclose(file);
}

static int open_host(void **state)
{
        Host *host = calloc(1, sizeof(Host));
        Error error = ERROR_NULL;
        char uri[80];

        if (write_host(host) < 0)
                return -1;
        snprintf(uri, sizeof(uri), "test://%s", host->path);
        if (libvirt_event_loop_start(&error) < 0 ||
            mailbox_new(&host->mailbox, &host->event_fd) < 0 ||
            libvirt_connection_open(&host->connection,
                                    &(DriverConfig){ .libvirt.connection_uri = uri }, 0,
                                    host->mailbox, &error) < 0)
                fail_msg("%s", error.text);
        *state = host;
        return 0;
}

static int close_host(void **state)
{
        Host *host = *state;

        libvirt_connection_free(host->connection);
        mailbox_unref(host->mailbox);
        unlink(host->path);
        free(host);
        return 0;
}

static Snapshot *poll_host(Host *host)
{
        Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;

        libvirt_calls_reset();
        if (libvirt_poll(host->connection->handle, host->connection->cache, DRIVER_POLL_CHANGES,
                         NULL, &snapshot, &error) < 0)
                fail_msg("%s", error.text);
        snapshot->taken_realtime_usec = 0;
        return snapshot;
}

static void wait_for_change(Host *host)
{
        struct pollfd fd = { .fd = host->event_fd, .events = POLLIN };
        DriverEvent event;

        do {
                assert_true(poll(&fd, 1, 10000) > 0);
                mailbox_take(host->mailbox, &event);
        } while (event.type != DRIVER_EVENT_CHANGED);
}

static void assert_same(const Snapshot *a, const Snapshot *b)
{
        _cleanup_json_ json_t *x = snapshot_to_json(a), *y = snapshot_to_json(b);

        assert_non_null(x);
        assert_true(json_equal(x, y));
}

/* A second poll reads some persistent definitions again, and nothing else. */
static void test_second_poll_reads_only_some_definitions(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *first = poll_host(*state);
        _cleanup_(snapshot_unrefp) Snapshot *second = NULL;
        unsigned calls = libvirt_calls_all();

        assert_int_equal(first->n_devices, N_DEVICES);
        assert_int_equal(first->n_domains, N_DOMAINS);
        assert_int_equal(libvirt_calls_single(), N_DEVICES + 3 * N_DOMAINS);
        second = poll_host(*state);
        assert_same(first, second);
        assert_int_equal(libvirt_calls_single(), POLL_CACHE_REFRESH_MAX);
        assert_true(libvirt_calls_all() * 10 <= calls);
}

static unsigned count_calls(Driver *driver, DriverPollKind kind)
{
        libvirt_calls_reset();
        snapshot_unref(driver_poll_once(driver, kind));
        return libvirt_calls_all();
}

/* A poll of everything also reads the facts that are read once for each connection. */
static void test_a_poll_of_all_reads_as_the_first_one_does(void **state)
{
        Host *host = *state;
        char uri[80];
        DriverConfig config = { .libvirt.connection_uri = uri };
        _cleanup_(driver_freep) Driver *driver = NULL;
        Error error = ERROR_NULL;
        unsigned first;

        snprintf(uri, sizeof(uri), "test://%s", host->path);
        if (driver_new(&driver, "libvirt", &config, NULL, &error) < 0)
                fail_msg("%s", error.text);
        first = count_calls(driver, DRIVER_POLL_CHANGES);
        assert_true(count_calls(driver, DRIVER_POLL_CHANGES) * 10 < first);
        assert_int_equal(count_calls(driver, DRIVER_POLL_ALL), first);
}

static void test_changed_domain_is_read_again(void **state)
{
        Host *host = *state;
        _cleanup_(snapshot_unrefp) Snapshot *first = poll_host(host), *second = NULL;
        virDomainPtr guest = virDomainLookupByName(host->connection->handle, "guest7");
        const SnapshotDomain *domain;
        Uuid uuid = { "5d0b6c3e-8a53-4c0f-9d62-000000000007" };

        assert_non_null(guest);
        assert_int_equal(snapshot_find_domain(first, &uuid)->state, DOMAIN_RUNNING);
        assert_int_equal(virDomainDestroy(guest), 0);
        virDomainFree(guest);
        wait_for_change(host);
        second = poll_host(host);
        domain = snapshot_find_domain(second, &uuid);
        assert_non_null(domain);
        assert_int_equal(domain->state, DOMAIN_SHUTOFF);
        assert_int_equal(libvirt_calls_single(), 1 + POLL_CACHE_REFRESH_MAX);
}

static void test_undefined_domain_is_gone(void **state)
{
        Host *host = *state;
        _cleanup_(snapshot_unrefp) Snapshot *first = poll_host(host);
        _cleanup_(snapshot_unrefp) Snapshot *second = NULL;
        virDomainPtr guest = virDomainLookupByName(host->connection->handle, "guest8");

        assert_int_equal(first->n_domains, N_DOMAINS);
        assert_int_equal(virDomainDestroy(guest), 0);
        assert_int_equal(virDomainUndefine(guest), 0);
        virDomainFree(guest);
        wait_for_change(host);
        second = poll_host(host);
        assert_int_equal(second->n_domains, N_DOMAINS - 1);
        assert_int_equal(libvirt_calls_single(), POLL_CACHE_REFRESH_MAX);
}

TEST_MAIN_WITH(open_host, close_host, test_second_poll_reads_only_some_definitions,
               test_a_poll_of_all_reads_as_the_first_one_does, test_changed_domain_is_read_again,
               test_undefined_domain_is_gone)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the libvirt driver through its public interface, over libvirt's test driver, which needs
 * no daemon. The suite also runs them under ThreadSanitizer. */

#include <libvirt/libvirt.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "drivers/registry.h"
#include "tests/fixtures/driver.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"

#define UUID_MDEV "c60cc60c-c60c-4c60-8c60-c60cc60cc60c"

static const char host_xml[] =
        "<node>"
        "<domain type='test'><name>guest</name><memory unit='MiB'>512</memory><vcpu>2</vcpu>"
        "<uuid>5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02</uuid>"
        "<os><type>hvm</type></os></domain>"
        "<cpu><mhz>2400</mhz><model>x86_64</model><active>4</active><nodes>1</nodes>"
        "<sockets>1</sockets><cores>4</cores><threads>1</threads></cpu>"
        "<memory>8388608</memory>"
        "<device><name>pci_0000_41_00_0</name><parent>computer</parent>"
        "<capability type='pci'><class>0x030200</class><domain>0</domain><bus>65</bus>"
        "<slot>0</slot><function>0</function><product id='0x13bd'>Tesla M10</product>"
        "<vendor id='0x10de'>NVIDIA</vendor>"
        "<capability type='mdev_types'><type id='nvidia-35'><name>GRID M10-0B</name>"
        "<deviceAPI>vfio-pci</deviceAPI><availableInstances>15</availableInstances></type>"
        "</capability><iommuGroup number='27'><address domain='0x0000' bus='0x41' slot='0x00'"
        " function='0x0'/></iommuGroup><numa node='1'/></capability></device>"
        "<device><name>mdev_c60cc60c_c60c_4c60_8c60_c60cc60cc60c_0000_41_00_0</name>"
        "<parent>pci_0000_41_00_0</parent><capability type='mdev'><type id='nvidia-35'/>"
        "<uuid>" UUID_MDEV "</uuid><parent_addr>0000:41:00.0</parent_addr>"
        "<iommuGroup number='3'/></capability></device>"
        "</node>";

static HostMdevType types[] = { MDEV_TYPE("nvidia-35", NULL, "VGPU", 0) };

static double now_seconds(void)
{
        return (double)clock_usec(CLOCK_MONOTONIC) / 1e6;
}

static void open_driver_after(const char *uri, DriverConfig *config, Driver *before, Driver **ret)
{
        Error error = ERROR_NULL;

        *config = (DriverConfig){
                .host = config_make(types, ARRAY_SIZE(types)),
                .libvirt = { uri, 5, 5 }, /* keepalive, which the test driver rejects */
        };
        if (driver_new(ret, "libvirt", config, before, &error) < 0)
                fail_msg("%s", error.text);
}

static void open_driver(const char *uri, DriverConfig *config, Driver **ret)
{
        open_driver_after(uri, config, NULL, ret);
}

static void test_default_host(void **state)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        DriverConfig config;

        open_driver("test:///default", &config, &driver);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        assert_string_equal(host->driver, "libvirt");
        assert_string_equal(host->hypervisor, "TEST");
        assert_true(host->nodename[0] != '\0');
        assert_string_equal(host->arch, "i686");
        assert_int_equal(host->memory_kib, 3145728);
        assert_int_equal(host->n_cells, 2);
        assert_int_equal(host->cells[1].memory_kib, 4194304);
        assert_int_equal(host->cells[1].pages[0].size_kib, 8);
        assert_int_equal(host->cells[1].cpus[7].id, 15);
        assert_true(cpu_set_contains(&host->online_cpus, 0));
        assert_int_equal(host->n_domains, 1);
        assert_string_equal(host->domains[0].name, "test");
        assert_int_equal(host->domains[0].state, DOMAIN_RUNNING);
        assert_true(host->disk_total_bytes > 0);
        assert_true(host->taken_realtime_usec > UINT64_C(1600000000000000));
}

typedef struct File {
        char *folder, *path, *uri;
} File;

static int write_host(void **state)
{
        File *file = calloc(1, sizeof(File));

        file->folder = scratch_folder_make();
        file->path = scratch_path(file->folder, "host.xml");
        file->uri = text_format("test://%s", file->path);
        scratch_write(file->folder, "host.xml", host_xml);
        *state = file;
        return 0;
}

static int remove_host(void **state)
{
        File *file = *state;

        scratch_folder_remove(file->folder);
        free(file->path);
        free(file->uri);
        free(file);
        return 0;
}

static void test_gpu_host(void **state)
{
        const File *file = *state;
        _cleanup_(driver_freep) Driver *driver = NULL;
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        const SnapshotDevice *gpu;
        DriverConfig config;
        Uuid uuid = { UUID_MDEV };

        open_driver(file->uri, &config, &driver);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        assert_int_equal(host->n_cells, 0);
        assert_int_equal(host->n_devices, 1);
        gpu = snapshot_find_device(host, "pci_0000_41_00_0");
        assert_non_null(gpu);
        assert_string_equal(gpu->address, "0000:41:00.0");
        assert_string_equal(gpu->product, "Tesla M10");
        assert_int_equal(gpu->numa_node, 1);
        assert_int_equal(gpu->mdev_types[0].available_instances, 15);
        assert_non_null(snapshot_find_mdev(host, &uuid));
        assert_string_equal(snapshot_find_mdev(host, &uuid)->parent, "pci_0000_41_00_0");
}

/* test:///default is one host for the whole process. Changes that this thread makes to its guest
 * cause events on the driver's connection. */
static void test_domain_events(void **state)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        virConnectPtr other;
        virDomainPtr domain;
        DriverConfig config;
        DriverEvent event;
        Snapshot *host;

        open_driver("test:///default", &config, &driver);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        snapshot_unref(host);

        other = virConnectOpen("test:///default");
        assert_non_null(other);
        domain = virDomainLookupByName(other, "test");
        assert_non_null(domain);
        assert_int_equal(virDomainDestroy(domain), 0);
        driver_wait(driver, DRIVER_EVENT_CHANGED, &event);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        assert_int_equal(host->domains[0].state, DOMAIN_SHUTOFF);
        snapshot_unref(host);

        assert_int_equal(virDomainCreate(domain), 0);
        driver_wait(driver, DRIVER_EVENT_CHANGED, &event);
        assert_int_equal(virDomainSuspend(domain), 0);
        driver_wait(driver, DRIVER_EVENT_CHANGED, &event);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        assert_int_equal(host->domains[0].state, DOMAIN_PAUSED);
        snapshot_unref(host);
        assert_int_equal(virDomainResume(domain), 0);
        virDomainFree(domain);
        virConnectClose(other);
}

static void test_no_daemon(void **state)
{
        static const struct {
                const char *uri, *words;
        } cases[] = {
                { "qemu:///system?socket=/nonexistent/libvirt-sock", "check that libvirtd" },
                { "test:///nonexistent/host.xml", "/nonexistent/host.xml" },
                { "http://127.0.0.1/", "http" },
                { "::: not a uri", "uri" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(driver_freep) Driver *driver = NULL;
                DriverConfig config;
                DriverEvent event;

                open_driver(cases[i].uri, &config, &driver);
                /* every poll tries again, and reports the failure again */
                for (unsigned j = 0; j < 3; j++) {
                        assert_true(driver_poll(driver, DRIVER_POLL_CHANGES) >= 0);
                        driver_wait(driver, DRIVER_EVENT_POLL_FAILED, &event);
                        assert_true(event.error.code > 0);
                        if (!strstr(event.error.text, cases[i].words))
                                fail_msg("%s: \"%s\"", cases[i].uri, event.error.text);
                }
        }
}

/* The driver connects as soon as the host exists. A restart is not necessary. */
static void test_heals(void **state)
{
        File *file = *state;
        _cleanup_(driver_freep) Driver *driver = NULL;
        Snapshot *host;
        DriverConfig config;
        DriverEvent event;
        _cleanup_free_ char *hidden = scratch_path(file->folder, "away");

        assert_int_equal(rename(file->path, hidden), 0);
        open_driver(file->uri, &config, &driver);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
        driver_wait(driver, DRIVER_EVENT_POLL_FAILED, &event);
        assert_int_equal(rename(hidden, file->path), 0);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        assert_int_equal(host->n_devices, 1);
        snapshot_unref(host);
}

/* A hypervisor accepts the connection and never answers, so the driver hangs in its first poll. */
static void test_free_does_not_hang(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *uri = NULL;
        Driver *driver = NULL;
        DriverConfig config;
        DriverEvent event;
        char bytes[4096];
        double start;
        int fd, peer;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 16), 0);
        uri = text_format("qemu:///system?socket=%s", address.sun_path);
        open_driver(uri, &config, &driver);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
        peer = accept(fd, NULL, NULL);
        assert_true(recv(peer, bytes, sizeof(bytes), 0) > 0); /* the driver's first call */
        assert_int_equal(driver_take(driver, &event), 0);
        assert_int_equal(event.type, DRIVER_EVENT_NONE);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 1); /* the poll still runs */

        start = now_seconds();
        driver_free(driver);
        assert_true(now_seconds() - start < 3);
        assert_true(now_seconds() - start > 1.5);
        /* the thread returns from its call, and closes its connection */
        close(fd);
        assert_int_equal(shutdown(peer, SHUT_WR), 0);
        while (recv(peer, bytes, sizeof(bytes), 0) > 0)
                ;
        close(peer);
}

static void test_takes_over(void **state)
{
        Driver *before = NULL, *driver = NULL;
        DriverConfig configs[2];

        open_driver("test:///default", &configs[0], &before);
        snapshot_unref(driver_poll_once(before, DRIVER_POLL_CHANGES));
        open_driver_after("test:///default", &configs[1], before, &driver);
        assert_true(driver_poll(driver, DRIVER_POLL_CHANGES) >= 0);
        driver_free(before);
        snapshot_unref(driver_poll_once(driver, DRIVER_POLL_CHANGES));
        /* a new driver that is freed before its first poll */
        open_driver_after("test:///default", &configs[0], driver, &before);
        driver_free(before);
        snapshot_unref(driver_poll_once(driver, DRIVER_POLL_CHANGES));
        driver_free(driver);
}

static void test_idle_free_is_quick(void **state)
{
        Driver *driver = NULL;
        DriverConfig config;
        double start = now_seconds();

        for (unsigned i = 0; i < 20; i++) {
                open_driver("test:///default", &config, &driver);
                assert_true(driver_poll(driver, DRIVER_POLL_CHANGES) >= 0);
                driver_free(driver);
        }
        assert_true(now_seconds() - start < 10);
}

static void on_signal(int number)
{
        fail_msg("signal %d was delivered", number);
}

/* A signal that the main thread blocks must stay pending for its signalfd, not run on a thread. */
static void test_threads_block_signals(void **state)
{
        struct sigaction action = { .sa_handler = on_signal }, before;
        const struct timespec pause = { .tv_nsec = 200 * 1000 * 1000 };
        sigset_t set, old;
        Driver *driver = NULL;
        DriverConfig config;
        Snapshot *host;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
        open_driver("test:///default", &config, &driver);
        host = driver_poll_once(driver, DRIVER_POLL_CHANGES);
        snapshot_unref(host);
        assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
        assert_int_equal(kill(getpid(), SIGUSR1), 0);
        assert_int_equal(sigtimedwait(&set, NULL, &pause), SIGUSR1);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        sigaction(SIGUSR1, &before, NULL);
        driver_free(driver);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_default_host),
                cmocka_unit_test_setup_teardown(test_gpu_host, write_host, remove_host),
                cmocka_unit_test(test_domain_events),
                cmocka_unit_test(test_no_daemon),
                cmocka_unit_test_setup_teardown(test_heals, write_host, remove_host),
                cmocka_unit_test(test_free_does_not_hang),
                cmocka_unit_test(test_takes_over),
                cmocka_unit_test(test_idle_free_is_quick),
                cmocka_unit_test(test_threads_block_signals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs of compute-agent-prepare over a set with units and a real claim database. The unit manager
 * is a script in place of systemctl: it writes the units that it starts to "units". A file
 * FAIL-UNIT makes a unit fail, and KILL-UNIT lets it kill the run. LOST-UNIT makes only systemctl
 * fail, once. */

#include <signal.h>
#include <sys/wait.h>

#include "formats/partitions.h"
#include "prepare/run.h"
#include "tests/fixtures/prepare.h"

#define A "0000:41:00.0"
#define B "0000:42:00.0"
#define SECTION                                                                         \
        "[pci]\nreport_in_placement = true\n[device_shapes hgx]\nresource_class = "     \
        "CUSTOM_GPU\nmembers = " A ", " B "\npartitions = 0=1-2, 1=1, 2=2\nactivate = " \
        "on@.service\ndeactivate = off@.service\ntimeout_sec = 1\n"

static const char systemctl[] =
        "#!/bin/sh\n"
        "cd \"${0%/*}/..\"\n"
        "case \"$1\" in\n"
        "show) if [ -e lost ]; then rm lost; echo ActiveState=activating;"
        " else echo ActiveState=failed; fi; echo LoadState=loaded; echo Type=oneshot; echo RemainAfterExit=no;;\n"
        "is-system-running) cat system 2>/dev/null || echo running;;\n"
        "*) echo $3 >>units; if [ -e KILL-$3 ]; then rm KILL-$3; kill -9 $PPID; fi;"
        " [ ! -e LOST-$3 ] || { mv LOST-$3 lost; exit 1; };"
        " while [ -e HOLD-$3 ]; do sleep 0.02; done;"
        " [ ! -e FAIL-$3 ];;\n"
        "esac\n";

static void put_script(PrepareFixture *f, const char *name, const char *text)
{
        _cleanup_free_ char *path = scratch_path(f->claims->folder, name);

        scratch_write(f->claims->folder, name, text);
        assert_int_equal(chmod(path, 0755), 0);
}

static int set_up(void **state)
{
        _cleanup_free_ char *path = NULL, *bin = NULL;
        PrepareFixture *f;

        prepare_setup(state);
        f = *state;
        bin = scratch_path(f->claims->folder, "bin");
        put_script(f, "bin/systemctl", systemctl);
        put_script(f, "bin/busctl", "#!/bin/sh\necho 'a(sbbsi) 0'\n");
        put_script(f, "bin/journalctl", "#!/bin/sh\necho first; echo; echo second\n");
        path = text_format("%s:/usr/bin:/bin", bin);
        assert_int_equal(setenv("PATH", path, 1), 0);
        configure(f, SECTION);
        put_link(f, A, "iommu_group", "../x/7");
        put_link(f, B, "iommu_group", "../x/8");
        return 0;
}

static int run_it(PrepareFixture *f)
{
        Error error = ERROR_NULL;
        int r = prepare_run(f->config, &f->paths, false, &error);

        if (r < 0)
                fail_msg("%s", error.text);
        return r;
}

/* Runs it in a process that a unit can kill. */
static void run_killed(PrepareFixture *f)
{
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(run_it(f));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
}

/* Makes or removes an empty file. */
static void put_mark(PrepareFixture *f, const char *name, bool exists)
{
        _cleanup_free_ char *path = scratch_path(f->claims->folder, name);

        if (exists)
                scratch_write(f->claims->folder, name, "");
        else
                unlink(path);
}

/* Compares the units that were started since the last call, and the record. */
static void check(PrepareFixture *f, const char *units, const char *record)
{
        _cleanup_(partition_record_done) PartitionRecord now = { 0 };
        _cleanup_free_ char *started = scratch_read(f->claims->folder, "units");
        _cleanup_free_ char *path = text_format("%s/compute-agent-prepare/partitions.json", f->run);
        char text[256] = "";
        size_t n = 0;

        for (char *c = started; c && *c; c++)
                if (*c == '\n')
                        *c = ' ';
        assert_string_equal(started ? started : "", units);
        put_mark(f, "units", false);
        assert_int_equal(partition_record_read(path, &now, NULL), 0);
        for (size_t i = 0; i < now.n_items; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %" PRIi64 " %s%s%s ",
                                      now.items[i].partition, now.items[i].claim,
                                      partition_state_to_text(now.items[i].state),
                                      now.items[i].error[0] ? "!" : "",
                                      now.items[i].waiting[0] ? "?" : "");
        assert_string_equal(text, record);
}

static void test_a_partition_follows_its_claim(void **state)
{
        PrepareFixture *f = *state;

        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "", "");
        put_claim(f, 1, "claimed", A, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service ", "1 1 active ");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "", "1 1 active ");
        end_claims(f);
        put_claim(f, 2, "claimed", A, "");
        put_claim(f, 2, "claimed", B, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "off@1.service on@0.service ", "0 2 active ");
}

static void test_open_devices_wait(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service ", "1 1 active ");
        put_handle(f, 100, "/dev/vfio/7");
        end_claims(f);
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "", "1 1 active? ");
        end_process(f, 100);
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "off@1.service ", "");
}

/* Lets the next run start failed units again. */
static void retry(PrepareFixture *f, const char *stamp)
{
        scratch_write(f->run, "compute-agent/prepare-retry", stamp);
}

static void test_failures_wait_for_a_retry(void **state)
{
        PrepareFixture *f = *state;

        put_mark(f, "FAIL-on@1.service", true);
        put_mark(f, "FAIL-off@1.service", true);
        put_claim(f, 1, "claimed", A, "");
        put_claim(f, 2, "claimed", B, "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "on@1.service on@2.service ", "1 1 failed! 2 2 active ");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "", "1 1 failed! 2 2 active ");
        retry(f, "1");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "on@1.service ", "1 1 failed! 2 2 active ");
        end_claims(f);
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "off@1.service off@2.service ", "1 1 deactivating! ");
        put_claim(f, 3, "claimed", A, "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "", "1 1 deactivating! ");
        put_mark(f, "FAIL-off@1.service", false);
        put_mark(f, "FAIL-on@1.service", false);
        retry(f, "2");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "off@1.service on@1.service ", "1 3 active ");
}

/* A run that is killed during a unit starts it again. */
static void test_killed_runs(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        put_mark(f, "KILL-on@1.service", true);
        run_killed(f);
        check(f, "on@1.service ", "1 1 activating ");
        end_claims(f);
        put_mark(f, "KILL-off@1.service", true);
        run_killed(f);
        check(f, "on@1.service off@1.service ", "1 1 deactivating ");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "off@1.service ", "");
}

/* A unit that does not end in its time can still run. So the next try waits for it. */
static void test_a_late_unit(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        put_mark(f, "HOLD-on@1.service", true);
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "on@1.service ", "1 1 activating! ");
        put_mark(f, "HOLD-on@1.service", false);
        end_claims(f);
        assert_int_equal(run_it(f), PREPARE_FAILED);
        check(f, "", "1 1 activating! ");
        retry(f, "1");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service off@1.service ", "");
}

/* A restart of systemd cuts the connection of systemctl. The unit goes on. */
static void test_a_failure_of_systemctl(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        put_mark(f, "LOST-on@1.service", true);
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service on@1.service ", "1 1 active ");
}

static void test_the_system_stops(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        put_mark(f, "FAIL-on@1.service", true);
        scratch_write(f->claims->folder, "system", "stopping\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service ", "1 1 activating ");
}

static void test_unread_claims_change_nothing(void **state)
{
        PrepareFixture *f = *state;

        put_claim(f, 1, "claimed", A, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        check(f, "on@1.service ", "1 1 active ");
        free(run_sql(f->claims->path, "UPDATE versions SET version = 99"));
        assert_int_equal(run_it(f), PREPARE_UNTOUCHED);
        check(f, "", "1 1 active ");
}

TEST_MAIN_WITH(set_up, prepare_teardown, test_a_partition_follows_its_claim, test_open_devices_wait,
               test_failures_wait_for_a_retry, test_killed_runs, test_a_late_unit,
               test_a_failure_of_systemctl, test_the_system_stops,
               test_unread_claims_change_nothing)

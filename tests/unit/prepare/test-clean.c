/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs of compute-agent-prepare --clean over invented devices and a real claim database. The unit
 * manager is a script in place of systemctl: it writes the units that it starts to "units", and a
 * file FAIL-UNIT makes a unit fail. A file LOST-UNIT makes only systemctl fail, and is its answer
 * to the next question about the state of the unit. So is a file "lost" for any unit, and a file
 * lost-UNIT. A file busy-UNIT is the answer to each question. It writes the units that it was asked
 * about to "asked". A file RUN-UNIT is a script of the unit. */

#include <inttypes.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "prepare/clean.h"
#include "prepare/unit.h"
#include "tests/fixtures/prepare.h"

#define A "0000:81:00.0"
#define B "0000:82:00.0"
#define SECTION                                                                       \
        "[pci]\nreport_in_placement = true\ndevice_spec = {\"vendor_id\": \"144d\", " \
        "\"resource_class\": \"CUSTOM_NVME\"}\n[device_clean a]\nresource_classes = " \
        "CUSTOM_NVME\nclean = wipe@.service\nprove = prove@.service\ntimeout_sec = 60\n"

static const char systemctl[] =
        "#!/bin/sh\n"
        "cd \"${0%/*}/..\"\n"
        "case \"$1\" in\n"
        "show) if [ \"$2\" = --property=ActiveState,SubState ]; then"
        " echo $3 >>asked; cat busy-$3 2>/dev/null && exit\n"
        "mv lost-$3 lost 2>/dev/null;"
        " cat lost 2>/dev/null || echo ActiveState=failed; rm -f lost; exit; fi;"
        " echo LoadState=loaded; echo Type=$(cat type 2>/dev/null || echo oneshot);"
        " echo RemainAfterExit=no; cat exec 2>/dev/null;;\n"
        "is-system-running) cat system 2>/dev/null || echo running;;\n"
        "*) echo $3 >>units; [ ! -e LOST-$3 ] || { mv LOST-$3 lost; exit 1; };"
        " [ ! -e handle-$3 ] || ln -s $PWD/dev/vfio/7 proc/100/fd/7;"
        " [ ! -e RUN-$3 ] || . ./RUN-$3; [ ! -e FAIL-$3 ];;\n"
        "esac\n";

static void put_script(PrepareFixture *f, const char *name, const char *text)
{
        _cleanup_free_ char *path = scratch_path(f->claims->folder, name);

        scratch_write(f->claims->folder, name, text);
        assert_int_equal(chmod(path, 0755), 0);
}

static void put_device(PrepareFixture *f, const char *address, const char *group)
{
        _cleanup_free_ char *target = text_format("../x/%s", group);

        put(f, address, "vendor", "0x144d\n");
        put(f, address, "device", "0xa808\n");
        put_link(f, address, "iommu_group", target);
}

/* Makes a device dirty a long time ago, as the agent does. */
static void put_dirty(PrepareFixture *f, const char *address)
{
        _cleanup_free_ char *sql = text_format(
                "INSERT OR REPLACE INTO unclean_devices (address, device, identity, consumer,"
                " claim_id, since_usec, state, reason, fresh)"
                " VALUES ('%s', 'pci', '', '', 1, 5, 'dirty', '', 1)",
                address);

        free(run_sql(f->claims->path, sql));
}

static void put_dirty_now(PrepareFixture *f, const char *address)
{
        _cleanup_free_ char *sql = text_format("UPDATE unclean_devices SET since_usec = %" PRIu64,
                                               clock_usec(CLOCK_REALTIME));

        put_dirty(f, address);
        free(run_sql(f->claims->path, sql));
}

static int set_up(void **state)
{
        _cleanup_free_ char *path = NULL, *bin = NULL;
        PrepareFixture *f;

        prepare_setup(state);
        f = *state;
        bin = scratch_path(f->claims->folder, "bin");
        put_script(f, "bin/systemctl", systemctl);
        put_script(f, "bin/busctl", "#!/bin/sh\ncat \"${0%/*}/../conditions\"\n");
        scratch_write(f->claims->folder, "conditions", "a(sbbsi) 0\n");
        put_script(f, "bin/journalctl", "#!/bin/sh\necho first; echo; echo second\n");
        path = text_format("%s:/usr/bin:/bin", bin);
        assert_int_equal(setenv("PATH", path, 1), 0);
        configure(f, SECTION);
        put_device(f, A, "7");
        put_device(f, B, "8");
        return 0;
}

static int run_it(PrepareFixture *f)
{
        _cleanup_free_ char *path = scratch_path(f->claims->folder, "x.conf");
        Error error = ERROR_NULL;
        int r = prepare_clean_run(path, &f->paths, &error);

        if (r < 0)
                fail_msg("%s", error.text);
        return r;
}

/* Runs in a process that a unit kills. */
static void run_killed(PrepareFixture *f)
{
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(run_it(f));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
}

static void forget_results(PrepareFixture *f)
{
        _cleanup_free_ char *path = scratch_path(f->run, "compute-agent-clean/cleaned.json");

        assert_int_equal(unlink(path), 0);
}

/* Checks the units that were started since the last call. */
static void assert_units(PrepareFixture *f, const char *expected)
{
        _cleanup_free_ char *text = scratch_read(f->claims->folder, "units");
        _cleanup_free_ char *path = scratch_path(f->claims->folder, "units");

        assert_string_equal(text ? text : "", expected);
        unlink(path);
}

/* Checks the last row of a device in the record. lines: their number. */
static void assert_result(PrepareFixture *f, const char *address, const char *state,
                          const char *reason, size_t lines)
{
        _cleanup_free_ char *text = scratch_read(f->run, "compute-agent-clean/cleaned.json");
        _cleanup_json_ json_t *document = NULL;
        const json_t *devices, *item;

        assert_non_null(text);
        assert_int_equal(json_parse(text, strlen(text), &document, NULL), 0);
        devices = json_object_get(document, "devices");
        for (size_t i = json_array_size(devices); i-- > 0;) {
                item = json_array_get(devices, i);
                if (strcmp(json_string_value(json_object_get(item, "address")), address) != 0)
                        continue;
                assert_string_equal(json_string_value(json_object_get(item, "state")), state);
                assert_string_equal(json_string_value(json_object_get(item, "reason")), reason);
                assert_int_equal(json_array_size(json_object_get(item, "lines")), lines);
                return;
        }
        fail_msg("%s is not in the record: %s", address, text);
}

static void test_a_dirty_device_is_cleaned_and_proved(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
        /* The agent can read this result at any time, so no unit runs again for the row. */
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "");
        assert_result(f, A, "clean", "", 0);
        /* A run that was killed, or a reboot, leaves no result: the units run again. */
        forget_results(f);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        /* So they do for another row of the same device. */
        put_dirty(f, A);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
}

/* A database that replaced a lost one begins with the same ids. */
static void test_a_result_of_another_database_is_none(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        free(run_sql(f->claims->path, "UPDATE unclean_devices SET since_usec = 6"));
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        free(run_sql(f->claims->path, "UPDATE unclean_devices SET address = '" B "'"));
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" B ".service\nprove@" B ".service\n");
        assert_result(f, B, "clean", "", 0);
}

static void test_a_failed_unit_is_no_proof(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        put_dirty(f, B);
        scratch_write(f->claims->folder, "FAIL-wipe@" A ".service", "");
        scratch_write(f->claims->folder, "FAIL-prove@" B ".service", "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed", "wipe@" A ".service failed", 2);
        assert_result(f, B, "failed", "prove@" B ".service failed", 2);
}

/* The lines of the journal are longer than the output that is kept and the buffer of a pipe. */
static void test_long_lines_of_the_journal_are_cut(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "FAIL-wipe@" A ".service", "");
        put_script(f, "bin/journalctl",
                   "#!/bin/sh\necho first; head -c 400000 /dev/zero | tr '\\0' x\n");
        alarm(60);
        assert_int_equal(run_it(f), PREPARE_FAILED);
        alarm(0);
        assert_result(f, A, "failed", "wipe@" A ".service failed", 2);
}

/* A message of the journal can have many lines. The record has the last ones. */
static void test_last_lines_of_the_journal_are_kept(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *text = NULL;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "FAIL-wipe@" A ".service", "");
        put_script(f, "bin/journalctl", "#!/bin/sh\nseq -f 'line %g.' 14\n");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed", "wipe@" A ".service failed", 10);
        text = scratch_read(f->run, "compute-agent-clean/cleaned.json");
        assert_null(strstr(text, "line 4."));
        assert_non_null(strstr(text, "line 14."));
}

/* The next run reads a record of up to 4 MiB. */
static void test_the_record_is_limited(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *text = NULL, *item = NULL;
        _cleanup_json_ json_t *document = NULL;
        const json_t *devices;

        put_dirty(f, A);
        free(run_sql(f->claims->path,
                     "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 1000)"
                     "INSERT INTO unclean_devices (address, device, identity, consumer, claim_id,"
                     " since_usec, state, reason, fresh) SELECT"
                     " printf('0001:%02x:%02x.0', i / 32, i % 32), 'pci', '', '', 1, 5, 'dirty',"
                     " '', 1 FROM n"));
        scratch_write(f->claims->folder, "FAIL-wipe@" A ".service", "");
        put_script(f, "bin/journalctl",
                   "#!/bin/sh\nhead -c 4000 /dev/zero | tr '\\0' '\"' | fold -w 200\n");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed", "wipe@" A ".service failed", 10);
        text = scratch_read(f->run, "compute-agent-clean/cleaned.json");
        assert_int_equal(json_parse(text, strlen(text), &document, NULL), 0);
        devices = json_object_get(document, "devices");
        item = json_dumps(json_array_get(devices, 0), JSON_INDENT(1));
        assert_in_range(strlen(item), 4000, 6 << 10);
        assert_in_range(json_array_size(devices) * (6 << 10), 1, 4 << 20);
}

static void test_no_unit_without_evidence(void **state)
{
        PrepareFixture *f = *state;

        /* A process has the group open. */
        put_dirty(f, A);
        put_handle(f, 100, "/dev/vfio/7");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_result(f, A, "waiting", "it is in use, or that is not known", 0);
        end_process(f, 100);
        /* A living claim names it. */
        put_dirty(f, A);
        put_claim(f, 1, "confirmed", A, "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed", "claim 1 has it", 0);
        end_claims(f);
        /* It is a virtual function. */
        put_dirty(f, A);
        put_link(f, A, "physfn", "../0000:81:00.7");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_result(f, A, "waiting", "no section [device_clean NAME] has it", 0);
        /* The database names a device of no section: that of the host. */
        put(f, "0000:01:00.0", "vendor", "0x8086\n");
        put(f, "0000:01:00.0", "device", "0xa808\n");
        put_dirty(f, "0000:01:00.0");
        put_dirty(f, "0000:02:00.0");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_result(f, "0000:01:00.0", "waiting", "no section [device_clean NAME] has it", 0);
        assert_result(f, "0000:02:00.0", "waiting", "the host does not list it", 0);
        assert_units(f, "");
}

static void test_a_device_opened_meanwhile_is_not_clean(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        put_handle(f, 100, "/dev/vfio/7");
        end_process(f, 100);
        scratch_write(f->claims->folder, "handle-wipe@" A ".service", "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed", "it came into use during the cleaning, or that is not known",
                      2);
}

static void test_a_unit_whose_success_proves_nothing_is_refused(void **state)
{
        static const char condition[] =
                "wipe@" A ".service has a condition, so its success would prove nothing";
        static const struct {
                const char *conditions, *exec, *reason;
        } cases[] = {
                { "a(sbbsi) 1 \"ConditionPathExists\" false false \"/x\" 0\n", "", condition },
                { "a(sbbsi) 0\n", "ExecCondition={ path=/x ; argv[]=/x ; }\n", condition },
                /* busctl failed. */
                { "", "", "Cannot read the conditions of wipe@" A ".service with busctl" },
        };
        PrepareFixture *f = *state;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "type", "simple");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_result(f, A, "failed",
                      "wipe@" A ".service must have Type=oneshot, and not RemainAfterExit=yes", 2);
        scratch_write(f->claims->folder, "type", "oneshot");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                put_dirty(f, A);
                scratch_write(f->claims->folder, "conditions", cases[i].conditions);
                scratch_write(f->claims->folder, "exec", cases[i].exec);
                assert_int_equal(run_it(f), PREPARE_FAILED);
                assert_result(f, A, "failed", cases[i].reason, 2);
        }
        assert_units(f, "");
}

/* A restart of systemd cuts the connection of systemctl. The unit goes on. */
static void test_a_failure_of_systemctl_is_no_result(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *asked = scratch_path(f->claims->folder, "asked"), *questions = NULL;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "LOST-wipe@" A ".service", "ActiveState=activating\n");
        scratch_write(f->claims->folder, "LOST-prove@" A ".service", ""); /* no answer */
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nwipe@" A ".service\nprove@" A ".service\nprove@" A
                        ".service\n");
        assert_result(f, A, "clean", "", 0);
        /* A unit that was stopped has failed once its processes have ended. */
        put_dirty(f, A);
        scratch_write(f->claims->folder, "LOST-wipe@" A ".service", "ActiveState=deactivating\n");
        unlink(asked);
        assert_int_equal(run_it(f), PREPARE_FAILED);
        questions = scratch_read(f->claims->folder, "asked");
        assert_string_equal(questions, "wipe@" A ".service\nprove@" A ".service\nwipe@" A
                                       ".service\nwipe@" A ".service\n");
        assert_result(f, A, "failed", "wipe@" A ".service failed", 2);
        assert_units(f, "wipe@" A ".service\n");
        /* So has a unit with Restart=on-failure, which systemd starts again. */
        put_dirty(f, A);
        scratch_write(f->claims->folder, "LOST-wipe@" A ".service",
                      "ActiveState=activating\nSubState=auto-restart\n");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_units(f, "wipe@" A ".service\n");
        assert_result(f, A, "failed", "wipe@" A ".service failed", 2);
}

/* A unit that began before the last guest is no proof for the row of this guest. A unit of the same
 * row is waited for. */
static void test_a_unit_of_another_row_is_not_joined(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *text = NULL, *changed = NULL;
        _cleanup_json_ json_t *record = NULL;
        json_t *device;

        put_dirty_now(f, A);
        scratch_write(f->claims->folder, "lost", "ActiveState=activating\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "");
        assert_result(f, A, "waiting", "wipe@" A ".service still runs", 0);
        text = scratch_read(f->run, "compute-agent-clean/cleaned.json");
        assert_int_equal(json_parse(text, strlen(text), &record, NULL), 0);
        device = json_array_get(json_object_get(record, "devices"), 0);
        assert_int_equal(json_object_set_new(device, "state", json_string("cleaning")), 0);
        assert_int_equal(json_object_set_new(device, "unit", json_string("wipe@" A ".service")), 0);
        changed = json_dumps(record, 0);
        scratch_write(f->run, "compute-agent-clean/cleaned.json", changed);
        scratch_write(f->claims->folder, "lost-wipe@" A ".service", "ActiveState=activating\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        /* A proof of an earlier run must end before the first unit, and does not count. */
        scratch_write(f->run, "compute-agent-clean/cleaned.json", changed);
        scratch_write(f->claims->folder, "lost-prove@" A ".service", "ActiveState=activating\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "prove@" A ".service\nwipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
        /* The wait ends after timeout_sec. */
        put_dirty(f, A);
        scratch_write(f->claims->folder, "lost", "ActiveState=activating\n");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_units(f, "");
        assert_result(f, A, "failed", "wipe@" A ".service did not end within timeout_sec. Stop it",
                      0);
}

/* The operator changes the template while a unit of the old one runs: after its time, for the next
 * row, and after a kill, for the same row. */
static void test_a_unit_of_an_old_template_must_end(void **state)
{
        static const char *const templates[] = { "wipe", "prove" };
        PrepareFixture *f = *state;

        for (size_t i = 0; i < 2 * ARRAY_SIZE(templates); i++) {
                const char *template = templates[i / 2];
                bool is_late = i % 2 == 0;
                _cleanup_free_ char *unit = text_format("%s@" A ".service", template);
                _cleanup_free_ char *late = text_format("RUN-%s", unit);
                _cleanup_free_ char *busy_name = text_format("busy-%s", unit);
                _cleanup_free_ char *busy = scratch_path(f->claims->folder, busy_name);
                _cleanup_free_ char *reason = text_format("%s still runs", unit);
                _cleanup_free_ char *script = text_format(
                        "for i in $(seq 500); do grep -q %s %s/compute-agent-clean/cleaned.json &&"
                        " break; sleep 0.02; done; kill $PPID\n",
                        unit, f->run);

                (is_late ? put_dirty_now : put_dirty)(f, A);
                configure(f, SECTION "timeout_sec = 1\n");
                scratch_write(f->claims->folder, late, is_late ? "sleep 2\n" : script);
                if (is_late)
                        assert_int_equal(run_it(f), PREPARE_FAILED);
                else
                        run_killed(f);
                scratch_write(f->claims->folder, late, "");
                assert_units(f, i < 2 ? "wipe@" A ".service\n"
                                      : "wipe@" A ".service\nprove@" A ".service\n");
                scratch_write(f->claims->folder, busy_name, "ActiveState=activating\n");
                configure(f, SECTION "clean = erase@.service\nprove = check@.service\n");
                if (is_late)
                        put_dirty_now(f, A);
                for (int j = 0; j < 2; j++) {
                        assert_int_equal(run_it(f), PREPARE_DONE);
                        assert_result(f, A, "waiting", reason, 0);
                }
                assert_units(f, "");
                assert_int_equal(unlink(busy), 0);
                assert_int_equal(run_it(f), PREPARE_DONE);
                assert_units(f, "erase@" A ".service\ncheck@" A ".service\n");
                assert_result(f, A, "clean", "", 0);
        }
}

/* A guest takes the device while its unit runs, and ends. The stamp of the new row comes after the
 * end of the unit, but before that of systemctl: "systemctl show" does not say that the unit runs.
 */
static void test_a_unit_of_another_row_has_no_successor(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *next = scratch_path(f->claims->folder, "next.sqlite");
        _cleanup_free_ char *copy = text_format("cp %s %s", f->claims->path, next);
        _cleanup_free_ char *sql =
                text_format("UPDATE unclean_devices SET id = id + 1, since_usec = %" PRIu64,
                            clock_usec(CLOCK_REALTIME));
        _cleanup_free_ char *script = text_format(
                "mv next.sqlite claim.sqlite && echo 2 >%s/compute-agent/clean-wanted;"
                " for i in $(seq 500); do grep -q 'wanted\": *\"2' %s/compute-agent-clean/"
                "cleaned.json && break; sleep 0.02; done\n",
                f->run, f->run);

        put_dirty(f, A);
        assert_int_equal(system(copy), 0);
        free(run_sql(next, sql));
        scratch_write(f->claims->folder, "RUN-wipe@" A ".service", script);
        scratch_write(f->run, "compute-agent/clean-wanted", "1\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\n");
        assert_result(f, A, "waiting", "wipe@" A ".service still runs", 0);
        scratch_write(f->claims->folder, "RUN-wipe@" A ".service", "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
}

/* The cleaning of one device can take days, in which the operator adds a proof. The unit of A makes
 * B free for its cleaning. */
static void test_the_configuration_is_read_again(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *script = NULL;

        configure(f, SECTION "prove =\n");
        put_dirty(f, A);
        put_dirty(f, B);
        put_handle(f, 100, "/dev/vfio/8");
        script = text_format(
                "rm proc/100/fd/7; sed -i '/^prove =$/d' x.conf; echo 2 >%s/compute-agent/"
                "clean-wanted; for i in $(seq 500); do grep -q prove@" B
                " units && break; sleep 0.02; done\n",
                f->run);
        scratch_write(f->claims->folder, "RUN-wipe@" A ".service", script);
        scratch_write(f->run, "compute-agent/clean-wanted", "1\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nwipe@" B ".service\nprove@" B ".service\nprove@" A
                        ".service\n");
        assert_result(f, A, "clean", "", 0);
        assert_result(f, B, "clean", "", 0);
}

/* A file or the database cannot be read when a cleaning ends. A claim can name the device. */
static void test_a_success_without_claims_is_no_result(void **state)
{
        static const char *const spoilers[] = {
                "echo '[agent' >x.conf",
                "mv claim.sqlite away; echo not a database >claim.sqlite",
        };
        PrepareFixture *f = *state;
        _cleanup_free_ char *database = scratch_path(f->claims->folder, "claim.sqlite");
        _cleanup_free_ char *away = scratch_path(f->claims->folder, "away");

        put_dirty(f, A);
        for (size_t i = 0; i < ARRAY_SIZE(spoilers); i++) {
                _cleanup_free_ char *script = text_format(
                        "%s; echo %zu >%s/compute-agent/clean-wanted; for i in $(seq 500); do"
                        " grep -q 'wanted\": *\"%zu' %s/compute-agent-clean/cleaned.json &&"
                        " break; sleep 0.02; done\n",
                        spoilers[i], i + 2, f->run, i + 2, f->run);

                scratch_write(f->claims->folder, "RUN-prove@" A ".service", script);
                scratch_write(f->run, "compute-agent/clean-wanted", "1\n");
                assert_int_equal(run_it(f), PREPARE_UNTOUCHED);
                assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
                assert_result(f, A, "waiting", "the configuration or the claims cannot be read", 0);
                configure(f, SECTION);
        }
        assert_int_equal(rename(away, database), 0);
        scratch_write(f->claims->folder, "RUN-prove@" A ".service", "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
}

/* An editor writes the file when a cleaning ends. */
static void test_a_section_that_is_missing_for_a_moment_is_no_failure(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *script = NULL;

        put_dirty(f, A);
        script = text_format("sed -i '/^.device_clean/,$d' x.conf; echo 2 >%s/compute-agent/"
                             "clean-wanted; for i in $(seq 500); do grep -q 'wanted\": *\"2'"
                             " %s/compute-agent-clean/cleaned.json && break; sleep 0.02; done\n",
                             f->run, f->run);
        scratch_write(f->claims->folder, "RUN-wipe@" A ".service", script);
        scratch_write(f->run, "compute-agent/clean-wanted", "1\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\n");
        assert_result(f, A, "waiting", "no section [device_clean NAME] has it", 0);
        /* It is missing for more than one stamp. */
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_result(f, A, "waiting", "no section [device_clean NAME] has it", 0);
        configure(f, SECTION);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
}

/* A hot reset removes the device for seconds. */
static void test_a_device_that_is_missing_for_a_moment_is_no_failure(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *path = scratch_path(f->claims->folder, DEVICES A);
        _cleanup_free_ char *away = scratch_path(f->claims->folder, "away");

        put_dirty(f, A);
        assert_int_equal(rename(path, away), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(run_it(f), PREPARE_DONE);
                assert_result(f, A, "waiting", "the host does not list it", 0);
        }
        assert_units(f, "");
        assert_int_equal(rename(away, path), 0);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_units(f, "wipe@" A ".service\nprove@" A ".service\n");
        assert_result(f, A, "clean", "", 0);
}

/* Units that are stopped with the system are no evidence of a bad device. */
static void test_a_failure_while_the_system_stops_is_no_result(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "FAIL-wipe@" A ".service", "");
        scratch_write(f->claims->folder, "system", "stopping\n");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_result(f, A, "waiting", "the system stops", 0);
}

static void test_a_missing_database_cleans_nothing(void **state)
{
        PrepareFixture *f = *state;

        put_dirty(f, A);
        scratch_write(f->claims->folder, "claim.sqlite",
                      "not a database, but long enough to be read");
        assert_int_equal(run_it(f), PREPARE_UNTOUCHED);
        assert_units(f, "");
        /* A lost database is no database without dirty devices. */
        assert_int_equal(unlink(f->claims->path), 0);
        assert_int_equal(run_it(f), PREPARE_UNTOUCHED);
}

TEST_MAIN_WITH(set_up, prepare_teardown, test_a_dirty_device_is_cleaned_and_proved,
               test_a_result_of_another_database_is_none, test_a_failed_unit_is_no_proof,
               test_long_lines_of_the_journal_are_cut, test_last_lines_of_the_journal_are_kept,
               test_the_record_is_limited, test_no_unit_without_evidence,
               test_a_device_opened_meanwhile_is_not_clean,
               test_a_unit_whose_success_proves_nothing_is_refused,
               test_a_failure_of_systemctl_is_no_result, test_a_unit_of_another_row_is_not_joined,
               test_a_unit_of_an_old_template_must_end, test_a_unit_of_another_row_has_no_successor,
               test_the_configuration_is_read_again, test_a_success_without_claims_is_no_result,
               test_a_section_that_is_missing_for_a_moment_is_no_failure,
               test_a_device_that_is_missing_for_a_moment_is_no_failure,
               test_a_failure_while_the_system_stops_is_no_result,
               test_a_missing_database_cleans_nothing)

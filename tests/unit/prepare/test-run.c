/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whole runs over invented cards and a real claim database. */

#include "base/json.h"
#include "prepare/act.h"
#include "prepare/run.h"
#include "tests/fixtures/prepare.h"

#define SECTION "[device_prepare a]\ndevice_addresses = " CARD "\n"
#define TYPES   SECTION "vgpu_types = true\n"
#define A       "0000:c1:00.4"
#define B       "0000:c1:00.5"
#define C       "0000:c1:00.6"

static int run_it(PrepareFixture *f)
{
        Error error = ERROR_NULL;
        int r = prepare_run(f->config, &f->paths, false, &error);

        if (r < 0)
                fail_msg("%s", error.text);
        return r;
}

static json_t *read_record(PrepareFixture *f)
{
        _cleanup_free_ char *text = scratch_read(f->run, "compute-agent-prepare/prepared.json");
        json_t *document;

        assert_non_null(text);
        assert_int_equal(json_parse(text, strlen(text), &document, NULL), 0);
        return document;
}

/* Returns a member of the record of a function, which document owns. */
static const json_t *member_of(const json_t *document, const char *address, const char *key)
{
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(document, "functions"), i, item) {
                const char *text = json_string_value(json_object_get(item, "address"));

                if (strcmp(text, address) == 0)
                        return json_object_get(item, key);
        }
        fail_msg("%s is not in the record", address);
        return NULL;
}

static const char *of_function(const json_t *document, const char *address, const char *key)
{
        return json_string_value(member_of(document, address, key));
}

static void test_types_are_set_and_cleared(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;

        configure(f, TYPES);
        put_card(f, CARD, 4, 4);
        put_type(f, B, 6); /* without a claim */
        put_type(f, C, 5); /* as claim 3 needs it */
        put_claim(f, 1, "confirmed", A, "nvidia-1428");
        put_claim(f, 3, "confirmed", C, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, A), 1428);
        assert_int_equal(get_type(f, B), 0);
        assert_int_equal(get_type(f, C), 5);
        document = read_record(f);
        assert_string_equal(of_function(document, A, "type"), "nvidia-1428");
        assert_string_equal(of_function(document, B, "type"), "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, A), 1428);
}

static void test_a_type_of_the_next_claim(void **state)
{
        PrepareFixture *f = *state;

        configure(f, TYPES);
        put_card(f, CARD, 1, 4);
        put_claim(f, 1, "confirmed", A, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        end_claims(f);
        put_claim(f, 2, "claimed", A, "nvidia-6");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, A), 6);
        end_claims(f);
        put_claim(f, 3, "pending", A, "nvidia-7");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, A), 0);
}

static void test_open_functions_stay_unchanged(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;

        configure(f, TYPES);
        put_card(f, CARD, 3, 4);
        put_type(f, A, 5);
        put_type(f, B, 6);
        put_handle(f, 100, "/dev/vfio/40");
        put_handle(f, 101, "/dev/vfio/41");
        put_claim(f, 2, "confirmed", B, "nvidia-5");
        put_claim(f, 3, "confirmed", C, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_FAILED); /* claim 2 has another type */
        assert_int_equal(get_type(f, A), 5);
        assert_int_equal(get_type(f, B), 6);
        assert_int_equal(get_type(f, C), 5);
        document = read_record(f);
        assert_text(of_function(document, A, "waiting"), "a process has it open");
        assert_text(of_function(document, B, "error"), "a process has it open");
        end_process(f, 100);
        end_process(f, 101);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, A), 0);
        assert_int_equal(get_type(f, B), 5);
}

/* The second run makes a step, so it reads the cards twice. */
static void test_recorded_claim_stays_after_a_step(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;

        configure(f, TYPES);
        put_card(f, CARD, 2, 4);
        put_claim(f, 1, "confirmed", A, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        put_handle(f, 100, "/dev/vfio/40");
        end_claims(f);
        put_claim(f, 2, "confirmed", B, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get_type(f, B), 5);
        document = read_record(f);
        assert_int_equal(json_integer_value(member_of(document, A, "claim")), 1);
        assert_int_equal(json_integer_value(member_of(document, B, "claim")), 2);
}

static void test_unlisted_cards_stay_unchanged(void **state)
{
        PrepareFixture *f = *state;

        configure(f, TYPES "virtual_functions = 2\n");
        put_card(f, CARD, 2, 4);
        put_card(f, "0000:c2:00.0", 1, 4);
        put_type(f, "0000:c2:00.4", 6);
        put_claim(f, 1, "confirmed", "0000:c2:00.5", "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get(f, "0000:c2:00.0", "sriov_numvfs"), 1);
        assert_int_equal(get_type(f, "0000:c2:00.4"), 6);
        assert_int_equal(get_type(f, "0000:c2:00.5"), 0);
}

static void test_without_a_section(void **state)
{
        PrepareFixture *f = *state;

        configure(f, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_null(scratch_read(f->run, "compute-agent-prepare/prepared.json"));
}

/* Nothing changes while the claims cannot be read, and the record names the reason. */
static void test_bad_database_changes_nothing(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;

        configure(f, TYPES "virtual_functions = 4\ndriver_override = vfio-pci\n");
        put_card(f, CARD, 0, 4);
        put_card(f, "0000:c2:00.0", 2, 4);
        put_claim(f, 1, "confirmed", A, "nvidia-5");
        free(run_sql(f->claims->path, "UPDATE versions SET version = 99"));
        assert_int_equal(run_it(f), PREPARE_UNTOUCHED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 0);
        document = read_record(f);
        assert_text(json_string_value(json_object_get(document, "error")),
                    "Install the version that wrote it");
}

static void test_missing_database_makes_functions_only(void **state)
{
        PrepareFixture *f = *state;

        configure(f, TYPES "virtual_functions = 4\n");
        put_card(f, CARD, 0, 4);
        put_type(f, A, 5);
        assert_int_equal(unlink(f->claims->path), 0);
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 4);
        assert_int_equal(get_type(f, A), 5);
}

static void test_functions_before_types(void **state)
{
        PrepareFixture *f = *state;

        configure(f, TYPES "virtual_functions = 4\n");
        put_card(f, CARD, 0, 4);
        put_claim(f, 1, "confirmed", C, "nvidia-5");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 4);
        assert_int_equal(get_type(f, C), 5);
        configure(f, TYPES "virtual_functions = 2\n"); /* claim 1 would lose its function */
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 4);
        end_claims(f);
        assert_int_equal(run_it(f), PREPARE_DONE); /* its type is cleared before */
        assert_int_equal(get_type(f, C), 0);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 2);
}

/* A card that fails, or does not exist, does not stop the others. */
static void test_failures_affect_only_their_card(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;

        configure(f, "[device_prepare a]\ndevice_addresses = 0000:c2:00.0, 0000:c3:00.0, " CARD
                     "\nvgpu_types = true\n");
        put_card(f, CARD, 2, 4);
        put_card(f, "0000:c2:00.0", 1, 4);
        put(f, "0000:c2:00.0", "sriov_numvfs", "x\n");
        put_claim(f, 1, "confirmed", B, "nvidia-5");
        put_link(f, A, "driver", "../none");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get_type(f, B), 5);
        document = read_record(f);
        assert_int_equal(json_array_size(json_object_get(document, "cards")), 3);
}

/* The driver stays bound in a tree of plain files, which the read after the write finds. */
static void test_driver_is_read_back(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *override = NULL, *unbind = NULL, *probe = NULL;

        configure(f, SECTION "driver_override = vfio-pci\n");
        put_card(f, CARD, 2, 4);
        put(f, A, "driver_override", "(null)\n");
        put_link(f, B, "driver", "../../../bus/pci/drivers/vfio-pci");
        scratch_mkdir(f->claims->folder, "sys/bus/pci/drivers");
        scratch_write(f->claims->folder, "sys/bus/pci/drivers/nvidia/unbind", "");
        scratch_write(f->claims->folder, "sys/bus/pci/drivers_probe", "");
        put_link(f, A, "driver", "../../drivers/nvidia");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        override = scratch_read(f->claims->folder, DEVICES A "/driver_override");
        unbind = scratch_read(f->claims->folder, "sys/bus/pci/drivers/nvidia/unbind");
        probe = scratch_read(f->claims->folder, "sys/bus/pci/drivers_probe");
        assert_string_equal(override, "vfio-pci\n");
        assert_string_equal(unbind, A "\n");
        assert_string_equal(probe, A "\n");
        document = read_record(f);
        assert_text(of_function(document, A, "error"), "The driver is nvidia after a bind");
        assert_string_equal(of_function(document, B, "error"), "");
}

/* Puts programs "systemctl" and "busctl" first into $PATH. A start of a unit writes its arguments
 * to a file. A file "exit" gives the unit RemainAfterExit=yes. */
static void put_systemctl(PrepareFixture *f, const char *rest)
{
        _cleanup_free_ char *script = text_format(
                "#!/bin/sh\ncd %s\ncase \"$1\" in\n"
                "show) printf 'LoadState=loaded\\nType=oneshot\\nActiveState=failed\\n';"
                " echo RemainAfterExit=$(cat exit 2>/dev/null || echo no); exit;;\n"
                "is-system-running) exit;;\nesac\necho \"$@\" >>calls\n%s\n",
                f->claims->folder, rest);
        _cleanup_free_ char *path = text_format("%s/bin:/usr/bin:/bin", f->claims->folder);

        scratch_write(f->claims->folder, "bin/systemctl", script);
        scratch_chmod(f->claims->folder, "bin/systemctl", 0700);
        scratch_write(f->claims->folder, "bin/busctl", "#!/bin/sh\necho 'a(sbbsi) 0'\n");
        scratch_chmod(f->claims->folder, "bin/busctl", 0700);
        assert_int_equal(setenv("PATH", path, 1), 0);
}

static void test_unit_runs_before_functions(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *calls = NULL, *again = NULL, *failed = NULL;
        _cleanup_free_ char *rest = NULL, *seen = NULL;

        configure(f, SECTION "virtual_functions = 2\nunit = mig-layout@.service\n");
        put_card(f, CARD, 0, 4);
        put_systemctl(f, "exit 1");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 0);
        calls = scratch_read(f->claims->folder, "calls");
        assert_string_equal(calls, "--no-ask-password start mig-layout@" CARD ".service\n");
        put_systemctl(f, "");
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 2);
        again = scratch_read(f->claims->folder, "calls");
        assert_int_equal(run_it(f), PREPARE_DONE); /* the card has functions: no unit */
        failed = scratch_read(f->claims->folder, "calls");
        assert_string_equal(again, failed);
        /* The kernel removes with the functions what the unit made for them. */
        configure(f, SECTION "virtual_functions = 3\nunit = mig-layout@.service\n");
        rest = text_format("cat %s/" DEVICES CARD "/sriov_numvfs >%s/seen", f->claims->folder,
                           f->claims->folder);
        put_systemctl(f, rest);
        assert_int_equal(run_it(f), PREPARE_DONE);
        seen = scratch_read(f->claims->folder, "seen");
        assert_string_equal(seen, "0\n");
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 3);
}

/* The start of a unit that was skipped, or that ran before, succeeds too. */
static void test_a_unit_that_proves_nothing_is_refused(void **state)
{
        PrepareFixture *f = *state;

        configure(f, SECTION "virtual_functions = 2\nunit = u@.service\n");
        put_card(f, CARD, 0, 4);
        put_systemctl(f, "");
        scratch_write(f->claims->folder, "exit", "yes\n");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 0);
        assert_null(scratch_read(f->claims->folder, "calls"));
}

/* The unit of the second card binds a driver to the first one, as a module that is loaded late. */
static void test_a_late_driver_makes_another_pass(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *rest = NULL, *driver = NULL;

        driver = text_format("%s/" DEVICES CARD "/driver", f->claims->folder);
        rest = text_format("( sleep 0.3; ln -s ../nvidia %s ) >/dev/null 2>&1 &", driver);
        configure(f, "[device_prepare a]\ndevice_addresses = " CARD "\nvirtual_functions = 2\n"
                     "[device_prepare b]\ndevice_addresses = 0000:c2:00.0\nunit = u@.service\n"
                     "virtual_functions = 1\n");
        put_card(f, CARD, 0, 4);
        put_card(f, "0000:c2:00.0", 0, 4);
        assert_int_equal(unlink(driver), 0);
        put_systemctl(f, "");
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 0);
        put(f, "0000:c2:00.0", "sriov_numvfs", "0\n");
        put_systemctl(f, rest);
        f->paths.patience_usec = 60 * USEC_PER_SEC;
        assert_int_equal(run_it(f), PREPARE_DONE);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 2);
}

/* The agent changed claims during the run. */
static void test_a_change_during_the_run_makes_another_pass(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *rest = NULL;

        rest = text_format("[ $(wc -l <%s/calls) = 1 ] && echo 2 >%s/compute-agent/prepare-wanted",
                           f->claims->folder, f->run);
        configure(f, SECTION "unit = u@.service\n");
        put_card(f, CARD, 0, 4);
        scratch_write(f->run, "compute-agent/prepare-wanted", "1\n");
        put_systemctl(f, rest);
        (void)run_it(f);
        document = read_record(f);
        assert_string_equal(json_string_value(json_object_get(document, "wanted")), "2");
}

/* A file of the agent's user is no way to show a file of root. */
static void test_content_of_prepare_wanted_is_limited(void **state)
{
        static const char *const texts[] = { "../../etc/shadow\n", "root:x:0", "a b", "secret" };
        PrepareFixture *f = *state;

        configure(f, SECTION);
        put_card(f, CARD, 0, 4);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *document = NULL;

                scratch_write(f->run, "compute-agent/prepare-wanted", texts[i]);
                assert_int_equal(run_it(f), PREPARE_DONE);
                document = read_record(f);
                assert_string_equal(json_string_value(json_object_get(document, "wanted")), "");
        }
}

/* The guests of mediated devices would lose them with the functions. */
static void test_functions_with_mediated_devices_stay(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };
        PrepareStep bind = { .kind = PREPARE_DRIVER };

        configure(f, SECTION "virtual_functions = 2\ndriver_override = vfio-pci\n");
        put_card(f, CARD, 4, 4);
        for (size_t i = 0; i < 4; i++) {
                char uuid[40], address[PCI_ADDRESS_SIZE];

                snprintf(uuid, sizeof(uuid), "a297db4a-f4c2-11e6-90f6-d3b88d6c952%zu", i);
                function_address(CARD, (unsigned)i, address);
                put_mdev(f, uuid, address);
        }
        assert_int_equal(run_it(f), PREPARE_FAILED);
        assert_int_equal(get(f, CARD, "sriov_numvfs"), 4);
        assert_int_equal(prepare_read_host(&f->paths, &f->config->driver.host, &host, NULL), 0);
        assert_int_equal(prepare_act(&f->paths, &host, &bind, NULL), 0);
}

/* The functions of a network card have guests that neither a claim nor a VFIO handle shows. */
static void test_functions_of_network_guests_stay(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_free_ char *vdpa = scratch_path(f->sys, "bus/vdpa/devices/vdpa0");

        configure(f, SECTION "virtual_functions = 2\ndriver_override = vfio-pci\n");
        put_card(f, CARD, 1, 4);
        put_vdpa(f, "vdpa0", A);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(run_it(f), PREPARE_FAILED);
                assert_int_equal(get(f, CARD, "sriov_numvfs"), 1);
                assert_int_equal(get(f, A, "driver_override"), UINT64_MAX);
                unlink(vdpa);
                put_upper(f, "macvtap0", A);
        }
}

/* A function that another process opened or changed since the plan is not written. */
static void test_step_of_an_old_plan(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };
        PrepareStep clear = { .kind = PREPARE_CLEAR, .value = 5 },
                    set = { .kind = PREPARE_SET, .value = 7 };

        configure(f, TYPES);
        put_card(f, CARD, 1, 4);
        put_type(f, A, 5);
        assert_int_equal(prepare_read_host(&f->paths, &f->config->driver.host, &host, NULL), 0);
        put_handle(f, 100, "/dev/vfio/40");
        assert_int_equal(prepare_act(&f->paths, &host, &clear, NULL), 0);
        assert_int_equal(get_type(f, A), 5);
        end_process(f, 100);
        assert_int_equal(prepare_act(&f->paths, &host, &set, NULL), 0);
        put_type(f, A, 6);
        assert_int_equal(prepare_act(&f->paths, &host, &clear, NULL), 0);
        assert_int_equal(get_type(f, A), 6);
}

TEST_MAIN_WITH(prepare_setup, prepare_teardown, test_types_are_set_and_cleared,
               test_a_type_of_the_next_claim, test_open_functions_stay_unchanged,
               test_recorded_claim_stays_after_a_step, test_unlisted_cards_stay_unchanged,
               test_without_a_section, test_bad_database_changes_nothing,
               test_missing_database_makes_functions_only, test_functions_before_types,
               test_failures_affect_only_their_card, test_driver_is_read_back,
               test_unit_runs_before_functions, test_a_unit_that_proves_nothing_is_refused,
               test_a_late_driver_makes_another_pass,
               test_a_change_during_the_run_makes_another_pass,
               test_content_of_prepare_wanted_is_limited, test_functions_with_mediated_devices_stay,
               test_functions_of_network_guests_stay, test_step_of_an_old_plan)

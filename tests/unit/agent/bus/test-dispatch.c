/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Methods and properties of two interfaces, called over a fake bus. */

#include "agent/bus/dispatch.h"
#include "tests/fakes/bus.h"

#define PATH       "/x/y"
#define INTERFACE  "x.y"
#define PROPERTIES "org.freedesktop.DBus.Properties"

static FakeBus fake;
static BusDispatch dispatch;
static char value[32]; /* value of the property "Value" */

static int echo(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const char *text;

        assert_ptr_equal(userdata, &fake);
        assert_true(sd_bus_message_read(call, "s", &text) > 0);
        return sd_bus_reply_method_return(call, "s", text);
}

static int get(sd_bus *bus, const char *path, const char *interface, const char *property,
               sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        if (strcmp(property, "Broken") == 0)
                return -ENOMEM;
        return sd_bus_message_append(reply, "s", strcmp(property, "Value") == 0 ? value : "fixed");
}

static int set(sd_bus *bus, const char *path, const char *interface, const char *property,
               sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        const char *text;

        assert_true(sd_bus_message_read(m, "s", &text) > 0);
        snprintf(value, sizeof(value), "%s", text);
        return 0;
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Echo", "s", "s", echo, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Fixed", "s", get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_WRITABLE_PROPERTY("Value", "s", get, set, 0, 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable other_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Broken", "s", get, 0, 0),
        SD_BUS_VTABLE_END,
};

static bool is_long(sd_bus_message *call)
{
        return false;
}

static void begin(void)
{
        fake_bus_begin(&fake);
        dispatch = (BusDispatch){ .places = { { PATH, INTERFACE, vtable, &fake },
                                              { "/other", "x.other", other_vtable, NULL } },
                                  .n_places = 2 };
        snprintf(value, sizeof(value), "before");
        assert_true(bus_gate_new(&dispatch.gate, fake.event, bus_dispatch_serve, is_long,
                                 &dispatch) >= 0);
        assert_true(bus_gate_attach(dispatch.gate, fake.bus) >= 0);
}

static void end(void)
{
        bus_gate_free(dispatch.gate);
        fake_bus_end(&fake);
}

static void test_calls_find_their_object(void **state)
{
        static const struct {
                const char *path, *interface, *member, *argument, *error, *text;
        } cases[] = {
                { PATH, INTERFACE, "Echo", "word", "", "word" },
                { PATH, NULL, "Echo", "word", "", "word" },
                { PATH, INTERFACE, "Echo", NULL, SD_BUS_ERROR_INVALID_ARGS, "" },
                { PATH, INTERFACE, "Nothing", NULL, SD_BUS_ERROR_UNKNOWN_METHOD, "" },
                { PATH, INTERFACE, "Value", NULL, SD_BUS_ERROR_UNKNOWN_METHOD, "" },
                { PATH, "x.other", "Echo", "word", SD_BUS_ERROR_UNKNOWN_OBJECT, "" },
                { "/other", INTERFACE, "Echo", "word", SD_BUS_ERROR_UNKNOWN_OBJECT, "" },
                { "/nowhere", INTERFACE, "Echo", "word", SD_BUS_ERROR_UNKNOWN_OBJECT, "" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                sd_bus_message *m = fake_bus_new_call(&fake, ":a.1", cases[i].path,
                                                      cases[i].interface, cases[i].member);

                if (cases[i].argument)
                        assert_true(sd_bus_message_append(m, "s", cases[i].argument) >= 0);
                fake_bus_send(&fake, m);
                fake_bus_run(&fake, i + 1, USEC_PER_SEC);
                assert_int_equal(fake.n_answers, i + 1);
                if (strcmp(fake.answers[i].error, cases[i].error) != 0 ||
                    strcmp(fake.answers[i].text, cases[i].text) != 0)
                        fail_msg("case %zu: \"%s\", \"%s\"", i, fake.answers[i].error,
                                 fake.answers[i].text);
        }
        end();
}

static void test_properties(void **state)
{
        static const struct {
                const char *sender, *path, *member, *interface, *property, *set, *error, *value;
        } cases[] = {
                { ":a.1", PATH, "Get", INTERFACE, "Fixed", NULL, "", "before" },
                { ":a.1", PATH, "Get", "", "Value", NULL, "", "before" },
                { ":a.1", PATH, "Get", INTERFACE, "Echo", NULL, SD_BUS_ERROR_UNKNOWN_PROPERTY,
                  "before" },
                { ":a.1", PATH, "Get", "x.other", "Fixed", NULL, SD_BUS_ERROR_UNKNOWN_OBJECT,
                  "before" },
                { ":a.1", PATH, "Get", INTERFACE, NULL, NULL, SD_BUS_ERROR_INVALID_ARGS, "before" },
                { ":a.1", "/other", "Get", "x.other", "Broken", NULL, SD_BUS_ERROR_NO_MEMORY,
                  "before" },
                { ":a.1", PATH, "GetAll", INTERFACE, NULL, NULL, "", "before" },
                { ":a.1", PATH, "GetAll", "x.other", NULL, NULL, SD_BUS_ERROR_UNKNOWN_OBJECT,
                  "before" },
                { ":a.1", "/other", "GetAll", "x.other", NULL, NULL, SD_BUS_ERROR_NO_MEMORY,
                  "before" },
                { ":a.1", PATH, "Set", INTERFACE, "Value", "x", SD_BUS_ERROR_ACCESS_DENIED,
                  "before" },
                { ":0.1", PATH, "Set", INTERFACE, "Fixed", "x", SD_BUS_ERROR_PROPERTY_READ_ONLY,
                  "before" },
                { ":0.1", PATH, "Set", INTERFACE, "Value", "after", "", "after" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                sd_bus_message *m = fake_bus_new_call(&fake, cases[i].sender, cases[i].path,
                                                      PROPERTIES, cases[i].member);

                assert_true(sd_bus_message_append(m, "s", cases[i].interface) >= 0);
                if (cases[i].property)
                        assert_true(sd_bus_message_append(m, "s", cases[i].property) >= 0);
                if (cases[i].set)
                        assert_true(sd_bus_message_append(m, "v", "s", cases[i].set) >= 0);
                fake_bus_send(&fake, m);
                fake_bus_run(&fake, i + 1, USEC_PER_SEC);
                assert_int_equal(fake.n_answers, i + 1);
                if (strcmp(fake.answers[i].error, cases[i].error) != 0)
                        fail_msg("case %zu: \"%s\"", i, fake.answers[i].error);
                assert_string_equal(value, cases[i].value);
        }
        end();
}

TEST_MAIN(test_calls_find_their_object, test_properties)

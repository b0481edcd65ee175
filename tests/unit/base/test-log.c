/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/log.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "tests/unit/test.h"

/* The fields of the last journal entry, each with a newline at its end. */
static char journal[65536];
static int journal_result;
static bool has_socket;

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
        assert_string_equal(path, "/run/systemd/journal/socket");
        errno = ENOENT;
        return has_socket ? 0 : -1;
}

int __wrap_sd_journal_sendv(const struct iovec *iov, int n);
int __wrap_sd_journal_sendv(const struct iovec *iov, int n)
{
        size_t length = 0;

        if (journal_result < 0)
                return journal_result;
        for (int i = 0; i < n; i++) {
                assert_true(length + iov[i].iov_len + 2 < sizeof(journal));
                memcpy(journal + length, iov[i].iov_base, iov[i].iov_len);
                length += iov[i].iov_len;
                journal[length++] = '\n';
        }
        journal[length] = '\0';
        return 0;
}

/* Redirects standard error to a file between begin_capture() and end_capture(). */
typedef struct Capture {
        int saved_stderr;
        FILE *file;
        char text[16384];
} Capture;

static void begin_capture(Capture *capture)
{
        capture->file = tmpfile();
        assert_non_null(capture->file);
        capture->saved_stderr = dup(STDERR_FILENO);
        assert_true(capture->saved_stderr >= 0);
        assert_true(dup2(fileno(capture->file), STDERR_FILENO) >= 0);
        journal[0] = '\0';
        journal_result = 0;
        has_socket = true;
}

static const char *end_capture(Capture *capture)
{
        size_t n;

        assert_true(dup2(capture->saved_stderr, STDERR_FILENO) >= 0);
        close(capture->saved_stderr);
        rewind(capture->file);
        n = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
        capture->text[n] = '\0';
        fclose(capture->file);
        return capture->text;
}

/* Sets the variable of systemd that connects standard error to the journal. */
static void connect_journal(void)
{
        char stream[64];
        struct stat st;

        assert_int_equal(fstat(STDERR_FILENO, &st), 0);
        snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
}

static int setup(void **state)
{
        unsetenv("JOURNAL_STREAM");
        log_set_level(LOG_INFO);
        return 0;
}

static void test_level_table(void **state)
{
        static const struct {
                const char *text;
                int level;
        } cases[] = {
                { "emerg", LOG_EMERG },     { "alert", LOG_ALERT },
                { "crit", LOG_CRIT },       { "err", LOG_ERR },
                { "warning", LOG_WARNING }, { "notice", LOG_NOTICE },
                { "info", LOG_INFO },       { "debug", LOG_DEBUG },
                { "0", LOG_EMERG },         { "7", LOG_DEBUG },
                { "8", -EINVAL },           { "-1", -EINVAL },
                { "77", -EINVAL },          { "", -EINVAL },
                { "Debug", -EINVAL },       { "debug ", -EINVAL },
                { "deb", -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(log_level_from_text(cases[i].text), cases[i].level);
                if (cases[i].level >= 0)
                        assert_int_equal(log_level_from_text(log_level_to_text(cases[i].level)),
                                         cases[i].level);
        }
        assert_null(log_level_to_text(-1));
        assert_null(log_level_to_text(8));
}

static int count_calls(int *calls)
{
        return ++*calls;
}

static void test_level_filters(void **state)
{
        Capture capture;
        int calls = 0;

        begin_capture(&capture);
        assert_int_equal(log_get_level(), LOG_INFO);
        log_debug("hidden %d", count_calls(&calls));
        assert_int_equal(calls, 0); /* the arguments of a hidden message are not evaluated */
        log_info("shown %d", count_calls(&calls));
        log_set_level(LOG_DEBUG);
        log_debug("debugged");
        log_set_level(LOG_ERR);
        log_warning("hidden");
        log_error("failed");
        log_set_level(LOG_WARNING);
        log_warning("warned");
        log_notice("hidden");
        assert_string_equal(end_capture(&capture),
                            "shown 1\ndebug: debugged\nerror: failed\nwarning: warned\n");
        assert_string_equal(journal, "");
}

static void test_one_line_table(void **state)
{
        static const struct {
                const char *argument, *line;
        } cases[] = {
                { "plain", "<plain>\n" },
                { "two\nlines", "<two lines>\n" },
                { "\033[31mred", "< [31mred>\n" },
                { "\x7f\r\t", "<   >\n" },
                { "\xc3\xa9 \xe2\x80\xa6", "<\xc3\xa9 \xe2\x80\xa6>\n" },
                { "\xc2\x9b"
                  "31m",
                  "<  31m>\n" },
                { "\xe9", "< >\n" },
                { "%s%n", "<%s%n>\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Capture capture;

                begin_capture(&capture);
                log_info("<%s>", cases[i].argument);
                assert_string_equal(end_capture(&capture), cases[i].line);
        }
}

static void test_errno_is_kept(void **state)
{
        Capture capture;

        begin_capture(&capture);
        errno = EXDEV;
        log_info("x");
        log_event(LOG_INFO, NULL, NULL, "y");
        assert_int_equal(errno, EXDEV);
        end_capture(&capture);
}

static void test_long_message(void **state)
{
        Capture capture;
        char text[8192];
        const char *line;

        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        begin_capture(&capture);
        log_warning("%s", text);
        line = end_capture(&capture);
        assert_int_equal(strncmp(line, "warning: xxx", 12), 0);
        assert_true(strlen(line) > 2000);
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void test_journal_fields(void **state)
{
        Capture capture;

        begin_capture(&capture);
        connect_journal();
        log_event(LOG_WARNING, "0123456789abcdef0123456789abcdef",
                  LOG_FIELDS(LOG_FIELD_DEVICE, "pci_0000_41_00_0", LOG_FIELD_CLAIM, NULL,
                             LOG_FIELD_STATUS, "409"),
                  "device %s", "lost\n");
        assert_true(log_is_to_journal());
        assert_string_equal(end_capture(&capture), "");
        assert_non_null(strstr(journal, "PRIORITY=4\nMESSAGE=device lost \nCODE_FILE="));
        assert_non_null(strstr(journal, "\nCODE_FUNC=test_journal_fields\n"));
        assert_non_null(strstr(journal, "\nMESSAGE_ID=0123456789abcdef0123456789abcdef\n"));
        assert_non_null(
                strstr(journal, "\nAGENT_DEVICE=pci_0000_41_00_0\nAGENT_HTTP_STATUS=409\n"));
        assert_null(strstr(journal, "AGENT_CLAIM_ID"));
}

static void test_journal_many_fields(void **state)
{
        Capture capture;

        begin_capture(&capture);
        connect_journal();
        log_event(LOG_INFO, "0123456789abcdef0123456789abcdef",
                  LOG_FIELDS("A", "1", "B", "2", "C", "3", "D", "4", "E", "5", "F", "6", "G", "7",
                             "H", "8"),
                  "eight");
        end_capture(&capture);
        assert_non_null(strstr(journal, "\nA=1\nB=2\nC=3\nD=4\nE=5\nF=6\nG=7\nH=8\n"));
}

/* An entry that the journal rejects is written as text, because standard error leads there too. */
static void test_journal_refuses(void **state)
{
        Capture capture;

        begin_capture(&capture);
        connect_journal();
        journal_result = -ECONNREFUSED;
        log_warning("still said");
        assert_string_equal(end_capture(&capture), "warning: still said\n");
}

/* sd_journal_sendv() reports no failure then. */
static void test_journal_socket_missing(void **state)
{
        Capture capture;

        begin_capture(&capture);
        connect_journal();
        has_socket = false;
        log_warning("still said");
        assert_string_equal(end_capture(&capture), "warning: still said\n");
        assert_string_equal(journal, "");
}

static void test_foreign_journal_stream_table(void **state)
{
        static const char *const streams[] = {
                "", "x", "1", "1:", ":", "1:1", "99999999999999999999:1"
        };

        for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
                Capture capture;

                begin_capture(&capture);
                setenv("JOURNAL_STREAM", streams[i], 1);
                assert_false(log_is_to_journal());
                log_info("text");
                assert_string_equal(end_capture(&capture), "text\n");
                assert_string_equal(journal, "");
        }
}

static void *write_lines(void *letter)
{
        for (int i = 0; i < 200; i++)
                log_info("%c%c%c%c%c%c%c%c", *(char *)letter, *(char *)letter, *(char *)letter,
                         *(char *)letter, *(char *)letter, *(char *)letter, *(char *)letter,
                         *(char *)letter);
        return NULL;
}

/* Lines of two threads never mix. */
static void test_threads(void **state)
{
        pthread_t threads[2];
        char letters[2] = { 'a', 'b' };
        Capture capture;
        const char *text;

        begin_capture(&capture);
        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &letters[i]), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        text = end_capture(&capture);
        assert_int_equal(strlen(text), 2 * 200 * 9);
        for (; *text; text += 9)
                assert_true(memcmp(text, "aaaaaaaa\n", 9) == 0 ||
                            memcmp(text, "bbbbbbbb\n", 9) == 0);
}

TEST_MAIN_WITH(setup, NULL, test_level_table, test_level_filters, test_one_line_table,
               test_errno_is_kept, test_long_message, test_journal_fields, test_journal_many_fields,
               test_journal_refuses, test_journal_socket_missing, test_foreign_journal_stream_table,
               test_threads)

/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/fakes/http.h"

#include <sys/queue.h>

#include "base/text.h"
#include "tests/fixtures/json.h"
#include "tests/fixtures/tree.h"

#define LINES_MAX 4096

typedef void (*HttpDone)(int result, const HttpResponse *response, const Error *error,
                         void *userdata);

struct HttpTransfer {
        TAILQ_ENTRY(HttpTransfer) link;
        HttpClient *client;
        HttpDone done;
        void *userdata;
        size_t line;
        FakeAnswer answer;
        int64_t generation;
};

typedef TAILQ_HEAD(TransferList, HttpTransfer) TransferList;

struct HttpClient {
        sd_event *event;
        sd_event_source *deferred;
        char endpoint[200];
        TransferList waiting;
        size_t n_waiting;
};

static struct {
        FakeAnswer script[64];
        unsigned used[64];
        size_t n_script;
        char *names;
        char *lines[LINES_MAX], *bodies[LINES_MAX];
        size_t n_lines;
        char *log;
        char headers[1024], endpoint[200];
        size_t max_parallel, lanes;
        size_t n_delivered; /* the callback of this request runs: its lane is not free yet */
} fake;

void fake_http_clear_log(void)
{
        for (size_t i = 0; i < fake.n_lines; i++) {
                free(fake.lines[i]);
                free(fake.bodies[i]);
        }
        fake.n_lines = 0;
        fake.max_parallel = 0;
        free(fake.log);
        fake.log = NULL;
}

void fake_http_more(const FakeAnswer *script)
{
        for (; script && script->match; script++) {
                assert_true(fake.n_script < ARRAY_SIZE(fake.script));
                fake.script[fake.n_script++] = *script;
        }
}

void fake_http_begin(const FakeAnswer *script, const char *names)
{
        fake_http_clear_log();
        fake.n_script = 0;
        fake_http_more(script);
        memset(fake.used, 0, sizeof(fake.used));
        free(fake.names);
        fake.names = strdup(names);
        fake.lanes = 0;
}

void fake_http_set_lanes(size_t n)
{
        fake.lanes = n;
}

const char *fake_http_log(void)
{
        size_t size;
        FILE *stream;

        free(fake.log);
        stream = open_memstream(&fake.log, &size);
        assert_non_null(stream);
        for (size_t i = 0; i < fake.n_lines; i++)
                fprintf(stream, "%s%s", i > 0 ? "; " : "", fake.lines[i]);
        fclose(stream);
        return fake.log;
}

size_t fake_http_get_n_requests(void)
{
        return fake.n_lines;
}

size_t fake_http_get_max_parallel(void)
{
        return fake.max_parallel;
}

const char *fake_http_find_body(const char *text)
{
        for (size_t i = fake.n_lines; i > 0; i--)
                if (strstr(fake.lines[i - 1], text))
                        return fake.bodies[i - 1];
        return NULL;
}

const char *fake_http_get_headers(void)
{
        return fake.headers;
}

size_t fake_http_count(const char *text)
{
        size_t n = 0;

        for (size_t i = 0; i < fake.n_lines; i++)
                n += strstr(fake.lines[i], text) != NULL;
        return n;
}

void fake_http_wait(sd_event *event, const unsigned *n_calls, unsigned n)
{
        for (unsigned i = 0; i < 20000 && *n_calls < n; i++)
                assert_true(sd_event_run(event, 5 * USEC_PER_SEC) >= 0);
        assert_int_equal(*n_calls, n);
}

/* Replaces the uuids in a line with the names of the fixture. */
static void name_uuids(char *line)
{
        _cleanup_free_ char *copy = strdup(fake.names);
        char *rest = copy, *name;

        while ((name = strtok_r(rest, " ", &rest))) {
                Uuid uuid = make_uuid(name);
                char *found = strstr(line, uuid.text);

                if (!found)
                        continue;
                memcpy(found, name, strlen(name));
                memmove(found + strlen(name), found + UUID_TEXT_LENGTH,
                        strlen(found + UUID_TEXT_LENGTH) + 1);
        }
}

static FakeAnswer choose_answer(const char *line)
{
        for (size_t i = 0; i < fake.n_script; i++) {
                const FakeAnswer *answer = &fake.script[i];

                if (!strstr(line, answer->match))
                        continue;
                if (answer->times > 0 && fake.used[i] >= answer->times)
                        continue;
                fake.used[i]++;
                return *answer;
        }
        return (FakeAnswer){ 0 };
}

const char *fake_http_get_endpoint(void)
{
        return fake.endpoint;
}

static int64_t generation_in(const char *body)
{
        const char *found = body ? strstr(body, "resource_provider_generation\":") : NULL;

        return found ? strtoll(strchr(found, ':') + 1, NULL, 10) : -1;
}

static int on_deferred(sd_event_source *source, void *userdata)
{
        HttpClient *client = userdata;
        HttpTransfer *transfer = TAILQ_FIRST(&client->waiting);
        _cleanup_free_ char *body = NULL;
        FakeAnswer answer;
        HttpResponse response = {
                .content_type = "", .request_id = "", .location = "", .subject_token = ""
        };
        Error error = ERROR_NULL;
        HttpDone done;
        void *done_userdata;

        while (transfer && transfer->answer.never)
                transfer = TAILQ_NEXT(transfer, link);
        if (!transfer)
                return 0;
        answer = transfer->answer;
        done = transfer->done;
        done_userdata = transfer->userdata;
        response.status = answer.status ? answer.status : 200;
        if (answer.body || response.status == 204)
                body = strdup(answer.body ? answer.body : "");
        else
                body = text_format("{'generation':0,'resource_provider_generation':%lld,"
                                   "'inventories':{},'traits':[],'aggregates':[],'usages':{},"
                                   "'resource_providers':[]}",
                                   (long long)transfer->generation + 1);
        http_transfer_cancel(transfer);
        if (client->n_waiting > 0)
                sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        fake.n_delivered = 1;
        if (answer.result != 0) {
                error_setf(&error, EIO, "no answer");
                done(answer.result, NULL, &error, done_userdata);
                fake.n_delivered = 0;
                return 0;
        }
        response.body = with_quotes(body);
        response.body_size = strlen(response.body);
        response.retry_after_sec = answer.retry_after_sec;
        response.modified_sec = answer.modified_sec;
        if (answer.subject_token)
                response.subject_token = answer.subject_token;
        done(HTTP_DONE, &response, NULL, done_userdata);
        fake.n_delivered = 0;
        return 0;
}

int http_client_new(HttpClient **ret, sd_event *event, const HttpConfig *config, Error *reterr)
{
        HttpClient *client = calloc(1, sizeof(HttpClient));

        assert_non_null(client);
        TAILQ_INIT(&client->waiting);
        client->event = sd_event_ref(event);
        assert_true(sd_event_add_defer(event, &client->deferred, on_deferred, client) >= 0);
        assert_true(sd_event_source_set_enabled(client->deferred, SD_EVENT_OFF) >= 0);
        *ret = client;
        return config->endpoint ? http_client_set_endpoint(client, config->endpoint, reterr) : 0;
}

int http_client_set_endpoint(HttpClient *client, const char *endpoint, Error *reterr)
{
        snprintf(client->endpoint, sizeof(client->endpoint), "%s", endpoint);
        return 0;
}

HttpClient *http_client_free(HttpClient *client)
{
        HttpTransfer *transfer;

        if (!client)
                return NULL;
        while ((transfer = TAILQ_FIRST(&client->waiting)))
                http_transfer_cancel(transfer);
        sd_event_source_disable_unref(client->deferred);
        sd_event_unref(client->event);
        free(client);
        return NULL;
}

HttpTransfer *http_transfer_cancel(HttpTransfer *transfer)
{
        if (!transfer)
                return NULL;
        TAILQ_REMOVE(&transfer->client->waiting, transfer, link);
        transfer->client->n_waiting--;
        free(transfer);
        return NULL;
}

bool http_transfer_take_back(HttpTransfer *transfer)
{
        size_t n_before = fake.n_delivered;

        for (HttpTransfer *other = transfer; (other = TAILQ_PREV(other, TransferList, link));)
                n_before++;
        if (fake.lanes == 0 || n_before < fake.lanes)
                return false;
        fake.lines[transfer->line][0] = '\0';
        http_transfer_cancel(transfer);
        return true;
}

static void write_down(HttpTransfer *transfer, const HttpRequest *request)
{
        size_t i = fake.n_lines++;

        transfer->line = i;
        assert_true(i < LINES_MAX);
        fake.lines[i] = text_format("%s %s", request->method, request->path);
        name_uuids(fake.lines[i]);
        strcpy(fake.endpoint, transfer->client->endpoint);
        fake.headers[0] = '\0';
        for (size_t j = 0; request->headers && request->headers[j]; j++)
                snprintf(fake.headers + strlen(fake.headers),
                         sizeof(fake.headers) - strlen(fake.headers), "%s\n", request->headers[j]);
        fake.bodies[i] = request->body ? strdup(request->body) : NULL;
        transfer->answer = choose_answer(fake.lines[i]);
        transfer->generation = generation_in(request->body);
}

int http_client_send(HttpClient *client, const HttpRequest *request, HttpDone done, void *userdata,
                     HttpTransfer **ret_transfer, Error *reterr)
{
        HttpTransfer *transfer = calloc(1, sizeof(HttpTransfer));

        assert_non_null(transfer);
        transfer->client = client;
        write_down(transfer, request);
        transfer->done = done;
        transfer->userdata = userdata;
        TAILQ_INSERT_TAIL(&client->waiting, transfer, link);
        client->n_waiting++;
        fake.max_parallel = MAX(fake.max_parallel, client->n_waiting);
        sd_event_source_set_enabled(client->deferred, SD_EVENT_ONESHOT);
        if (ret_transfer)
                *ret_transfer = transfer;
        return 0;
}

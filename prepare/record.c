/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes, writes and reads prepared.json, and writes cleaned.json for clean.c and partitions.json
 * for partitions.c. prepared.json is the only state about cards that a preparing run keeps for the
 * next one. It is in /run, because types and functions do not survive a boot either. Each write
 * replaces the file as a whole. A recorded claim appears only in reasons and in the next document;
 * no step is decided by it. So a lost document changes no later step but in its reason, and one
 * that cannot be read is ignored. An error of a card or function is that of its failed step, else
 * the reason of a refused one.
 *
 * Tests: tests/unit/prepare/test-record.c */

#include "prepare/record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/state/state-file.h"
#include "base/read-file.h"
#include "base/text.h"
#include "formats/format-names.h"

#define DOCUMENT_MAX ((size_t)4 << 20)

/* Returns the reason of the first step of that kind for a function or card, or "". Borrowed. */
static const char *find_reason(const PreparePlan *plan, PrepareKind kind, size_t card,
                               size_t function)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == kind && plan->steps[i].card == card &&
                    plan->steps[i].function == function)
                        return plan->steps[i].reason;
        return "";
}

/* Returns the living claim that needs the type of a function, else the recorded one; 0: none, or no
 * type. */
static int64_t find_owner(const PrepareFunction *function, const PrepareClaims *claims)
{
        const PrepareClaim *claim = prepare_find_claim(claims, function->address);

        if (function->type == 0)
                return 0;
        return claim && claim->type == function->type ? claim->id : function->recorded;
}

static json_t *make_function(const PrepareHost *host, const PrepareClaims *claims,
                             const PreparePlan *plan, size_t i, size_t j)
{
        const PrepareFunction *function = &host->cards[i].functions[j];
        const char *refused = find_reason(plan, PREPARE_REFUSE, i, j);
        char type[32] = "";

        if (function->type)
                snprintf(type, sizeof(type), "nvidia-%" PRIu64, function->type);
        return json_pack("{ss ss ss sb sI ss ss}", "address", function->address,
                         "physical_function", host->cards[i].address, "type", type, "open",
                         function->open != PREPARE_OPEN_NO, "claim",
                         (json_int_t)find_owner(function, claims), "waiting",
                         find_reason(plan, PREPARE_WAIT, i, j), "error",
                         function->failed[0] ? function->failed : refused);
}

static json_t *make_card(const PrepareCard *card, const PreparePlan *plan, size_t i)
{
        const char *refused = find_reason(plan, PREPARE_REFUSE, i, PREPARE_OF_CARD);

        return json_pack("{ss ss sI ss}", "address", card->address, "section", card->options->name,
                         "virtual_functions", (json_int_t)card->n_virtual, "error",
                         card->failed[0] ? card->failed : refused);
}

static size_t count_errors(const json_t *array)
{
        size_t n = 0, i;
        const json_t *item;
        const char *text;

        json_array_foreach(array, i, item)
                if (json_read_string(item, "error", &text, NULL) == 0 && text[0])
                        n++;
        return n;
}

json_t *prepare_record_make(const PrepareHost *host, const PrepareClaims *claims,
                            const PreparePlan *plan, const char *wanted, const char *error,
                            size_t *ret_n_errors)
{
        _cleanup_json_ json_t *cards = json_array(), *functions = json_array();

        for (size_t i = 0; i < host->n_cards; i++) {
                if (json_array_append_new(cards, make_card(&host->cards[i], plan, i)) < 0)
                        return NULL;
                for (size_t j = 0; j < host->cards[i].n_functions; j++)
                        if (json_array_append_new(functions,
                                                  make_function(host, claims, plan, i, j)) < 0)
                                return NULL;
        }
        *ret_n_errors = count_errors(cards) + count_errors(functions) + (error[0] ? 1 : 0);
        return json_pack("{ss ss ss sb sO sO}", "format", PREPARED_FORMAT, "wanted", wanted,
                         "error", error, "claims_known", claims->complete, "cards", cards,
                         "functions", functions);
}

int prepare_record_write(const PreparePaths *paths, const char *folder_name, const char *name,
                         const json_t *document, Error *reterr)
{
        _cleanup_free_ char *folder = text_format("%s/%s", paths->run, folder_name);
        _cleanup_free_ char *path = text_format("%s/%s/%s", paths->run, folder_name, name);
        _cleanup_free_ char *text = json_dumps(document, JSON_INDENT(1));
        int r = 0;

        if (!folder || !path || !text)
                return error_oom(reterr);
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
                r = -errno;
        if (r == 0)
                r = state_file_put(path, "new", text, 0644, true);
        return r < 0 ? error_setf(reterr, r, "Cannot write %s: %s", path, strerror(-r)) : 0;
}

/* Sets the recorded claim of a function. Ignores a function that does not exist now. */
static void set_recorded(PrepareHost *host, const char *address, int64_t claim)
{
        for (size_t i = 0; i < host->n_cards; i++)
                for (size_t j = 0; j < host->cards[i].n_functions; j++)
                        if (strcmp(host->cards[i].functions[j].address, address) == 0)
                                host->cards[i].functions[j].recorded = claim;
}

void prepare_record_read(const PreparePaths *paths, PrepareHost *host)
{
        _cleanup_free_ char *path =
                text_format("%s/" PREPARE_FOLDER "/" PREPARE_RECORD, paths->run);
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        const json_t *item;
        size_t n, i;

        if (!path || read_file_text(path, DOCUMENT_MAX, &text, &n, NULL) < 0 ||
            json_parse(text, n, &document, NULL) < 0)
                return;
        json_array_foreach(json_object_get(document, "functions"), i, item) {
                const char *address;
                int64_t claim;

                if (json_read_string(item, "address", &address, NULL) == 0 &&
                    json_read_i64(item, "claim", &claim, NULL) == 0 && claim > 0)
                        set_recorded(host, address, claim);
        }
}

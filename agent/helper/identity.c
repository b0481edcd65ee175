/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* computectl-identity ORDER FLAGS NAME CLOUD [FILE]: who this host is for Placement, as JSON
 * (agent/helper/identity-work.h). FLAGS are "force", "dry-run", both or ""; NAME is the host's, ""
 * when it is not known; CLOUD one of clouds.yaml, or "" for what the configuration (or FILE) says.
 * computectl runs it, so that it need not load libcurl itself. */

#include <string.h>

#include "agent/helper/clouds.h"
#include "agent/helper/identity-work.h"
#include "base/folder-owner.h"
#include "base/json.h"

enum { PROGRAM, ORDER, FLAGS, NAME, CLOUD, FILE_NAME, N_NEEDED = FILE_NAME };

static int run(char *argv[], Error *reterr)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_json_ json_t *document = NULL;
        IdentityTask task = {
                .name = argv[NAME],
                .order = identity_order_from_text(argv[ORDER]),
                .force = strstr(argv[FLAGS], "force"),
                .dry_run = strstr(argv[FLAGS], "dry-run"),
        };
        int r = (int)task.order < 0 ? error_setf(reterr, EINVAL, "No order: %.20s", argv[ORDER])
                                    : config_load(&config, argv[FILE_NAME], NULL, NULL, reterr);

        if (r == 0 && argv[CLOUD][0])
                r = clouds_apply(config, argv[CLOUD], reterr);
        task.config = config;
        if (r == 0)
                r = folder_owner_become(config->state_path, reterr);
        if (r >= 0)
                r = identity_work(&task, &document, reterr);
        if (r < 0)
                return r;
        if (json_dumpf(document, stdout, JSON_COMPACT) < 0 || fflush(stdout) != 0)
                return error_setf(reterr, EIO, "The output cannot be written");
        return 0;
}

int main(int argc, char *argv[])
{
        Error error = ERROR_NULL;
        int r = argc < N_NEEDED ? error_setf(&error, EINVAL, "ORDER FLAGS NAME CLOUD [FILE]")
                                : run(argv, &error);

        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "computectl: %s\n", error_text(&error, r));
        return EXIT_FAILURE;
}

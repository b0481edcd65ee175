/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the configuration files for "cat-config" and "doctor" as the daemon would find them. The
 * daemon is not asked, so both verbs work while it does not run.
 *
 * "cat-config" copies the files line by line and hides values. Invariant: a value in a section of
 * the agent or of another service is printed only if the agent knows the option and it is no
 * secret. An unknown option can be a secret of another service in a pasted file, and so can a line
 * that is no setting. In comments and in sections with names (ConfigKind), only values with a name
 * like that of a secret are hidden. A value with a password in a URL is hidden everywhere, and a
 * hidden value is hidden with all lines that continue it. Limit: a secret in the plain words of a
 * comment is printed.
 *
 * For "doctor", ctl_config_examine() loads the configuration, and checks with the rights of the
 * service's user the files that a start opens. It also checks the sandbox of the unit, and compares
 * the credentials with the copies of the service. Limit: the rights of the service need root. For
 * another user, only missing files are found among those that the configuration names. A
 * configuration file that this user cannot read is an error of the report, although the service
 * might read it. A user who cannot search the folder of the copies, which root and the service can,
 * learns only that the original file of a credential is missing. */

#include "ctl/verbs/config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder-owner.h"
#include "base/read-file.h"
#include "base/text.h"
#include "config/file.h"
#include "config/search.h"
#include "config/service-access.h"
#include "config/table.h"

#define HIDDEN               "(not shown)"
#define CREDENTIAL_MAX_BYTES (16 * 1024)

/* The folder where systemd keeps the copies of credentials for the running service. */
#define COPIES_FOLDER "/run/credentials/compute-agent.service"

/* The state of the copying between two lines. */
typedef struct Place {
        char section[128];
        bool in_secret; /* continuation lines belong to a hidden value */
        bool in_value;  /* continuation lines belong to a value that is shown */
} Place;

static void enter_section(Place *place, const char *line)
{
        size_t n = strcspn(line + 1, "]\n");

        snprintf(place->section, sizeof(place->section), "%.*s", (int)n, line + 1);
}

/* Checks whether a key of any section is a secret. For a key that the agent does not know, its name
 * decides. */
static bool is_secret_anywhere(const char *key)
{
        bool known = false;

        for (const ConfigOption *o = config_options; o->key; o++) {
                if (strcasecmp(o->key, key) != 0)
                        continue;
                if (o->secret)
                        return true;
                known = true;
        }
        return !known && (strcasestr(key, "pass") || strcasestr(key, "secret") ||
                          strcasestr(key, "token") || strcasestr(key, "_key"));
}

/* Checks whether a line has a URL with a password: "://USER:PASSWORD@". */
static bool has_password(const char *line)
{
        for (const char *place = line; (place = strstr(place, "://"));) {
                const char *colon, *at;

                place += strlen("://");
                colon = strchr(place, ':');
                at = colon ? strchr(colon, '@') : NULL;
                if (at && strcspn(place, " \t\n") > (size_t)(at - place))
                        return true;
        }
        return false;
}

/* Checks whether the value of a key can be printed. An option that the agent does not know can be a
 * secret of another service, pasted with the rest. In comments, and in sections with names, all
 * keys are allowed except names like those of secrets. */
static bool may_show(const Place *place, const char *key, bool comment)
{
        const ConfigOption *option;

        if (comment && strpbrk(key, " \t")) /* words of a sentence */
                return true;
        if (comment || config_find_kind(place->section, NULL))
                return !is_secret_anywhere(key);
        option = config_find_option(config_options, place->section, key);
        return option && !option->secret;
}

/* Returns the length of the text without white space at its end. n: its length. */
static size_t trim_end(const char *text, size_t n)
{
        while (n > 0 && isspace((unsigned char)text[n - 1]))
                n--;
        return n;
}

/* Checks whether a line of n bytes can be printed, and enters a section. The key of a setting can
 * have a comment mark in front of it. ret_n_key: length of the line up to the end of its key; 0:
 * the line is no setting. */
static bool may_show_line(Place *place, const char *line, size_t n, size_t *ret_n_key)
{
        const size_t n_before = MIN(strspn(line, "#; \t"), n);
        const size_t n_name = n_before + config_file_find_name(line + n_before, n - n_before);
        const bool comment = n > 0 && strchr("#;", line[0]);
        char key[128];

        *ret_n_key = 0;
        if (line[0] == '[') {
                enter_section(place, line);
                if (line[n - 1] == ']')
                        return true;
        }
        if (n_name == n)
                return n == 0 || comment || (place->in_value && isspace((unsigned char)line[0]));
        *ret_n_key = n_before + trim_end(line + n_before, n_name - n_before);
        snprintf(key, sizeof(key), "%.*s", (int)(*ret_n_key - n_before), line + n_before);
        return may_show(place, key, comment) && !has_password(line);
}

/* Prints a line or hides the value in it. Drops a line that continues a hidden value. */
static void print_line(Place *place, const char *line, FILE *output)
{
        size_t n = trim_end(line, strlen(line)), n_key;
        bool shown;

        /* An empty line ends a value. It is dropped too, because the next line can begin with a
         * blank and show the rest of the value. */
        if (place->in_secret && isspace((unsigned char)line[0]))
                return;
        shown = may_show_line(place, line, n, &n_key);
        place->in_secret = !shown;
        place->in_value = shown && n > 0 && !strchr("#;[", line[0]);
        if (shown)
                fprintf(output, "%.*s\n", (int)n, line);
        else
                fprintf(output, "%.*s%s" HIDDEN "\n", (int)n_key, line, n_key > 0 ? " = " : "");
}

/* Prints a file below its name. */
static int cat_file(const char *path, FILE *output, Error *reterr)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        _cleanup_free_ char *line = NULL;
        Place place = { 0 };
        size_t size = 0;

        if (!file)
                return error_setf(reterr, errno, "Cannot read %s: %s", path, strerror(errno));
        fprintf(output, "# %s\n", path);
        while (getline(&line, &size, file) >= 0)
                print_line(&place, line, output);
        if (ferror(file))
                return error_setf(reterr, EIO, "Cannot read %s", path);
        return 0;
}

int ctl_config_cat(const char *config, FILE *output, Error *reterr)
{
        _cleanup_(strings_freep) char **paths = NULL;
        int r = config_search(NULL, config, NULL, NULL, &paths, reterr);

        if (r < 0)
                return r;
        if (!paths[0])
                fputs("# There is no configuration file: the defaults apply.\n", output);
        for (char **path = paths; *path; path++) {
                if (path != paths)
                        fputc('\n', output);
                r = cat_file(*path, output, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

void ctl_config_report_done(CtlConfigReport *report)
{
        config_free(report->config);
        string_set_done(&report->files);
        string_set_done(&report->credentials);
        *report = (CtlConfigReport){ 0 };
}

/* Returns the later of the times of the last changes of content and inode. A rename keeps the time
 * of the content, so only the time of the inode shows that another file was moved to this name. */
static uint64_t changed_usec(const struct stat *st)
{
        return MAX(
                (uint64_t)st->st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec / 1000,
                (uint64_t)st->st_ctim.tv_sec * USEC_PER_SEC + (uint64_t)st->st_ctim.tv_nsec / 1000);
}

/* Returns how the credential's file differs from the service's copy (static), or NULL if they are
 * equal or cannot be compared. If one of them cannot be read, or has more than 16 KiB, a file with
 * a later change counts as different. folder: of the copies. Blocks on the disk. */
static const char *compare_credential(const char *path, const char *name, const char *folder)
{
        static const char changed[] = "changed after the start of the service";
        _cleanup_(text_free_secretp) char *mine = NULL, *its = NULL;
        _cleanup_free_ char *copy = text_format("%s/%s", folder, name);
        struct stat file, st;
        size_t n_mine, n_its;

        /* systemd searches folders of its own for a credential with a relative path, so the agent
         * does not know the file to compare with. */
        if (!copy || path[0] != '/')
                return NULL;
        if (stat(path, &file) < 0)
                return errno == ENOENT ? "is missing, so the next start fails" : NULL;
        if (stat(copy, &st) < 0)
                return errno == ENOENT && access(folder, X_OK) == 0
                               ? "was added to the unit after the start of the service"
                               : NULL;
        /* If the credential's file and the service's copy can be read, their contents decide. If
         * not, the times of the two files decide. */
        if (read_file_text(path, CREDENTIAL_MAX_BYTES, &mine, &n_mine, NULL) == 0 &&
            read_file_text(copy, CREDENTIAL_MAX_BYTES, &its, &n_its, NULL) == 0)
                return n_mine == n_its && memcmp(mine, its, n_mine) == 0 ? NULL : changed;
        return changed_usec(&file) > changed_usec(&st) ? changed : NULL;
}

int ctl_config_compare_credentials(const CtlUnit *unit, StringSet *ret)
{
        const char *folder =
                getenv("CREDENTIALS_DIRECTORY"); /* set by systemd if the unit runs this process,
                                                    else by computectl.c */

        for (size_t i = 0; i < unit->n_credentials; i++) {
                const char *path = unit->credentials[i].path, *name = unit->credentials[i].name;
                const char *how = compare_credential(path, name,
                                                     folder && folder[0] ? folder : COPIES_FOLDER);
                _cleanup_free_ char *text =
                        text_format("%s (credential %s) %s", path, name, how ? how : "");

                if (!text || (how && string_set_add(ret, text) < 0))
                        return -ENOMEM;
        }
        return 0;
}

/* Removes the files that systemd passes to the service as credentials, by their names. The service
 * reads copies of them, so its rights to the originals do not matter. */
static void remove_loaded(const CtlUnit *unit, StringSet *files)
{
        for (size_t i = files->n_items; i > 0; i--) {
                const char *slash = strrchr(files->items[i - 1], '/');

                for (size_t j = 0; slash && j < unit->n_credentials; j++)
                        if (strcmp(unit->credentials[j].name, slash + 1) == 0) {
                                (void)string_set_remove(files, files->items[i - 1]);
                                break;
                        }
        }
}

/* Checks whether the sandbox of the unit lets the service write below that folder. Only
 * ProtectSystem=strict restricts it here. The folder must then be one of unit->writable or below
 * one, so each other folder counts as read-only, also those of BindPaths= and PrivateTmp=, and
 * /dev. A slash at the end of a writable folder is ignored. Symbolic links are not followed. */
static bool may_write(const CtlUnit *unit, const char *folder)
{
        if (!unit->read_only)
                return true;
        for (char **writable = unit->writable; writable && *writable; writable++) {
                size_t n = strlen(*writable);

                while (n > 1 && (*writable)[n - 1] == '/')
                        n--;
                if (strncmp(folder, *writable, n) == 0 &&
                    (folder[n] == '\0' || folder[n] == '/' || n == 1))
                        return true;
        }
        return false;
}

/* Adds a warning for the state folder and for metrics_file if the sandbox of the unit does not let
 * the service write there. claim_db is always below the state folder. */
static int check_sandbox(const CtlUnit *unit, const Config *config, StringSet *ret)
{
        const struct {
                const char *option, *path;
        } places[] = {
                { "[agent] state_dir", config->state_dir },
                { "[agent] metrics_file", config->metrics_file },
        };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                const char *path = places[i].path;
                _cleanup_free_ char *text = NULL;

                if (!path || path[0] != '/' || may_write(unit, path))
                        continue;
                text = text_format(
                        "%s: the sandbox of the unit does not allow the service to write %s. Add its folder to ReadWritePaths= (\"systemctl edit compute-agent\")",
                        places[i].option, path);
                if (!text || string_set_add(ret, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Finds the rights of the service, for the configuration of the host. n_groups stays 0 if they are
 * the rights of the caller: without root, or if the unit runs as root. */
static int find_rights(const CtlUnit *unit, ServiceRights *ret, Error *reterr)
{
        bool known = unit && strcmp(unit->load_state, "loaded") == 0;

        if (geteuid() != 0 || (known && !unit->user[0]))
                return 0;
        return service_rights_find(ret, known ? unit->user : SERVICE_USER,
                                   known ? unit->groups : NULL, reterr);
}

/* Finds the rights of an agent that is started by hand with this configuration: those of the owner
 * of its state folder. */
static int find_rights_of_owner(const Config *config, ServiceRights *ret, Error *reterr)
{
        struct stat st;
        uid_t user;

        if (folder_owner_find(config->state_dir, &user) <= 0 || stat(config->state_dir, &st) < 0)
                return 0;
        return service_rights_find_id(ret, user, st.st_gid, reterr);
}

static void add_file(const char *text, void *userdata)
{
        (void)string_set_add(userdata, text);
}

/* Adds to the error about a missing credential that credentials were not checked, if this process
 * has no $CREDENTIALS_DIRECTORY. systemd gives credentials only to the service. Returns 0. */
static int hide_credentials(CtlConfigReport *report)
{
        if (strstr(report->error.text, "credential placement-") && !getenv("CREDENTIALS_DIRECTORY"))
                (void)error_prefixf(&report->error, -report->error.code,
                                    "Credentials of the service were not checked");
        return 0;
}

int ctl_config_examine(const char *config, const CtlUnit *unit, CtlConfigReport *ret, Error *reterr)
{
        _cleanup_(service_rights_done) ServiceRights rights = { 0 };
        int r = config ? 0 : find_rights(unit, &rights, &ret->unchecked);

        if (r >= 0 && !config && rights.n_groups > 0)
                r = service_access_check_config(&rights, NULL, &ret->error);
        /* Root also reads a file that the service cannot read, for the other checks. The error of
         * the service stays in the report, and a later one is dropped. */
        if (config_load(&ret->config, config, NULL, NULL, ret->error.code ? NULL : &ret->error) < 0)
                return ret->error.code == ENOMEM ? error_oom(reterr) : hide_credentials(ret);
        if (unit)
                remove_loaded(unit, &ret->config->credential_files);
        if (config)
                r = find_rights_of_owner(ret->config, &rights, &ret->unchecked);
        if (!ret->unchecked.code && (r >= 0 || ret->error.code))
                (void)service_access_check_rest(&rights, ret->config, add_file, &ret->files,
                                                ret->error.code ? NULL : &ret->error);
        if (unit && check_sandbox(unit, ret->config, &ret->files) < 0)
                return error_oom(reterr);
        if (unit && !config && ctl_config_compare_credentials(unit, &ret->credentials) < 0)
                return error_oom(reterr);
        return 0;
}

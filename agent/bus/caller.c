/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/caller.h"

#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <systemd/sd-login.h>

#include "base/log.h"
#include "base/message-ids.h"

#define HELD_MAX 400

/* From the file of this host alone: whom a directory knows may take its server's time to find, and
 * the main loop does not wait for it. */
static bool find_name(uid_t uid, char *text, size_t size)
{
        _cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
        const struct passwd *user;

        while (file && (user = fgetpwent(file)))
                if (user->pw_uid == uid) {
                        snprintf(text, size, "%s", user->pw_name);
                        return true;
                }
        return false;
}

/* "computectl, "; a command may call itself what it likes. */
static void find_command(pid_t pid, char *text, size_t size)
{
        char path[64], line[32] = "";
        _cleanup_fclose_ FILE *file = NULL;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        file = fopen(path, "re");
        text[0] = '\0';
        if (!file || !fgets(line, sizeof(line), file))
                return;
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c; c++)
                if (!isgraph((unsigned char)*c) || *c == ',' || *c == '(' || *c == ')')
                        *c = '?';
        snprintf(text, size, "%s, ", line);
}

void bus_caller_find(const BusGate *gate, sd_bus_message *call, BusCaller *ret)
{
        const BusSender *sender = bus_gate_get_sender(gate, call);
        _cleanup_free_ char *unit = NULL;
        char command[40];

        ret->author.uid = sender ? (int64_t)sender->uid : -1;
        if (!sender)
                snprintf(ret->name, sizeof(ret->name), "somebody");
        else if (!find_name(sender->uid, ret->name, sizeof(ret->name)))
                snprintf(ret->name, sizeof(ret->name), "uid %u", (unsigned)sender->uid);
        snprintf(ret->author.text, sizeof(ret->author.text), "%s", ret->name);
        if (!sender || sender->pid <= 0)
                return;
        find_command(sender->pid, command, sizeof(command));
        if (sd_pid_get_unit(sender->pid, &unit) < 0)
                unit = NULL;
        snprintf(ret->author.text, sizeof(ret->author.text), "%s (%spid %d%s%.60s)", ret->name,
                 command, (int)sender->pid, unit ? ", " : "", unit ? unit : "");
}

/* "VCPU=2 of demo; VGPU=1 of gpu (0000:41:00.0)", as far as there is room. */
static void format_held(const Claim *claim, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < claim->n_allocations && n < size; i++) {
                _cleanup_free_ char *amounts = resources_format(&claim->allocations[i].resources);

                n += (size_t)snprintf(text + n, size - n, "%s%s of %s", i > 0 ? "; " : "",
                                      amounts ? amounts : "?", claim->provider_names[i]);
        }
        for (size_t i = 0; i < claim->n_devices && n < size; i++) {
                const ClaimDevice *device = &claim->devices[i];
                const char *name = !uuid_empty(&device->mdev) ? device->mdev.text
                                   : device->address[0]       ? device->address
                                                              : device->name;

                n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? ", " : "; ", name);
        }
}

void bus_caller_note(const BusCaller *caller, const Claim *claim, const char *reason,
                     const char *format, ...)
{
        char what[160], held[HELD_MAX], id[24];
        const char *device = claim->n_devices > 0 ? claim->devices[0].name : NULL;
        va_list ap;

        va_start(ap, format);
        vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        format_held(claim, held, sizeof(held));
        log_event(LOG_INFO, MESSAGE_CLAIM_CALLED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text,
                             LOG_FIELD_CALLER, caller->author.text, LOG_FIELD_DEVICE, device),
                  "Claim %s: %s by %s%s%s; %s.", id, what, caller->author.text,
                  reason && reason[0] ? ": " : "", reason ? reason : "", held);
}

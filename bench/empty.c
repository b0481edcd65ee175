/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The lower limit of the daemon's memory: a program that links the same libraries, opens a
 * connection of each, and waits. The difference to compute-agentd is the daemon's own use.
 *
 *   empty URI DATABASE */

#include <curl/curl.h>
#include <libvirt/libvirt.h>
#include <libxml/parser.h>
#include <sqlite3.h>
#include <stdio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

int main(int argc, char *argv[])
{
        virConnectPtr connection;
        sqlite3 *database;
        sd_event *event;
        sd_bus *bus;
        CURLM *multi;

        if (argc != 3)
                return 2;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        multi = curl_multi_init();
        xmlInitParser();
        connection = virConnectOpen(argv[1]);
        if (!multi || !connection || sqlite3_open(argv[2], &database) != SQLITE_OK ||
            sd_event_new(&event) < 0 || sd_bus_open_system(&bus) < 0)
                return 1;
        if (sqlite3_exec(database, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK)
                return 1;
        puts("ready");
        fflush(stdout);
        return sd_event_loop(event) < 0;
}

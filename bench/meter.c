/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The CPU time of servers is the sum of their threads in /proc/PID/task/TID/schedstat
 * (nanoseconds), for the given pids and all their descendants. The time of a thread that ends is
 * lost, so only servers that keep their threads are measured correctly. */

#include "bench/meter.h"
#include "base/clock.h"

#include <dirent.h>

double meter_now_ms(void)
{
        return (double)clock_usec(CLOCK_MONOTONIC) / 1e3;
}

static double client_cpu_ms(void)
{
        return (double)clock_usec(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
}

static double process_cpu_ms(pid_t pid);

static double thread_cpu_ms(pid_t pid, const char *thread)
{
        unsigned long long nanoseconds = 0;
        char path[300];
        double ms = 0;
        FILE *file;
        int child;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
        file = fopen(path, "re");
        if (file) {
                if (fscanf(file, "%llu", &nanoseconds) == 1)
                        ms = (double)nanoseconds / 1e6;
                fclose(file);
        }
        snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, thread);
        file = fopen(path, "re");
        if (!file)
                return ms;
        while (fscanf(file, "%d", &child) == 1)
                ms += process_cpu_ms(child);
        fclose(file);
        return ms;
}

static double process_cpu_ms(pid_t pid)
{
        struct dirent *entry;
        char path[64];
        double ms = 0;
        DIR *folder;

        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        folder = opendir(path);
        if (!folder)
                return 0;
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.')
                        ms += thread_cpu_ms(pid, entry->d_name);
        closedir(folder);
        return ms;
}

static double server_cpu_ms(const Meter *meter)
{
        double ms = 0;

        for (size_t i = 0; i < meter->n_servers; i++)
                ms += process_cpu_ms(meter->servers[i]);
        return ms;
}

void meter_begin(Meter *meter)
{
        meter->server_cpu_ms = server_cpu_ms(meter);
        meter->client_cpu_ms = client_cpu_ms();
        meter->wall_ms = meter_now_ms();
}

void meter_end(Meter *meter)
{
        meter->wall_ms = meter_now_ms() - meter->wall_ms;
        meter->client_cpu_ms = client_cpu_ms() - meter->client_cpu_ms;
        meter->server_cpu_ms = server_cpu_ms(meter) - meter->server_cpu_ms;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A library for LD_PRELOAD of a libvirtd that shows a fictional host. Guests start with CPUs,
 * cells, PCI devices and mdevs that this machine lacks. libvirtd does all its work for them, and
 * QEMU is started without these. A file below $HOST_SHIM_SHARED appears to be on a file system that
 * hosts share. */

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#define GFS2_MAGIC 0x01161970

typedef int (*SetAffinity)(pid_t, size_t, const cpu_set_t *);
typedef int (*Exec)(const char *, char *const[], char *const[]);
typedef int (*PrLimit)(pid_t, enum __rlimit_resource, const struct rlimit64 *, struct rlimit64 *);
typedef int (*StatFs)(const char *, struct statfs *);

/* If this machine has none of the CPUs, the thread runs on all. */
int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
        int r = ((SetAffinity)dlsym(RTLD_NEXT, "sched_setaffinity"))(pid, size, set);

        return r < 0 && errno == EINVAL ? 0 : r;
}

/* The memory of a guest with a device is locked, which a container can forbid. */
int prlimit64(pid_t pid, enum __rlimit_resource what, const struct rlimit64 *new,
              struct rlimit64 *old)
{
        int r = ((PrLimit)dlsym(RTLD_NEXT, "prlimit64"))(pid, what, new, old);

        return r < 0 && errno == EPERM ? 0 : r;
}

int setrlimit64(enum __rlimit_resource what, const struct rlimit64 *new)
{
        return prlimit64(0, what, new, NULL);
}

/* Removes a member of a JSON object, from its begin to the end of its value. */
static void cut(char *json, const char *begin, const char *end)
{
        char *from = strstr(json, begin), *to = from ? strstr(from + strlen(begin), end) : NULL;

        if (to)
                memmove(from, to + strlen(end), strlen(to + strlen(end)) + 1);
}

/* The strings belong to this process: it was forked to run the program. */
int execve(const char *path, char *const argv[], char *const env[])
{
        char **args = (char **)argv;
        size_t n = 0;

        for (size_t i = 0; argv[i]; i++) {
                if (strcmp(argv[i], "-device") == 0 && argv[i + 1] &&
                    strstr(argv[i + 1], "\"driver\":\"vfio-pci\"")) {
                        i++;
                        continue;
                }
                cut(argv[i], ",\"host-nodes\":[", "]");
                cut(argv[i], ",\"policy\":\"", "\"");
                args[n++] = argv[i];
        }
        args[n] = NULL;
        return ((Exec)dlsym(RTLD_NEXT, "execve"))(path, argv, env);
}

int execv(const char *path, char *const argv[])
{
        return execve(path, argv, environ);
}

int statfs(const char *path, struct statfs *ret)
{
        const char *shared = getenv("HOST_SHIM_SHARED");
        int r = ((StatFs)dlsym(RTLD_NEXT, "statfs"))(path, ret);

        if (r == 0 && shared && strncmp(path, shared, strlen(shared)) == 0)
                ret->f_type = GFS2_MAGIC;
        return r;
}

int statfs64(const char *path, struct statfs64 *ret)
{
        return statfs(path, (struct statfs *)ret);
}

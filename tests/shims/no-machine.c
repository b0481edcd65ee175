/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A library for LD_PRELOAD of an agent: libvirt's capabilities have no <machine>, as on hosts whose
 * guests are containers. Each removed one is a byte in the file $NO_MACHINE_SHIM. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef char *(*Capabilities)(void *);
typedef char *(*DomainCapabilities)(void *, const char *, const char *, const char *, const char *,
                                    unsigned);

static char *without(char *xml)
{
        static const char end[] = "</machine>";
        int fd = open(getenv("NO_MACHINE_SHIM"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        char *from, *to;

        while (xml && (from = strstr(xml, "<machine")) && (to = strstr(from, end))) {
                memmove(from, to + strlen(end), strlen(to + strlen(end)) + 1);
                (void)!write(fd, "-", 1);
        }
        close(fd);
        return xml;
}

char *virConnectGetCapabilities(void *connection)
{
        return without(((Capabilities)dlsym(RTLD_NEXT, "virConnectGetCapabilities"))(connection));
}

char *virConnectGetDomainCapabilities(void *connection, const char *emulator, const char *arch,
                                      const char *machine, const char *type, unsigned flags)
{
        return without(((DomainCapabilities)dlsym(RTLD_NEXT, "virConnectGetDomainCapabilities"))(
                connection, emulator, arch, machine, type, flags));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the event loop of libvirt, and opens connections with their callbacks.
 *
 * Each event callback owns a reference to its connection. libvirt can call the callback after it
 * was deregistered, and releases the reference after the last call. The close callback owns no
 * reference. If a hypervisor has no close event, libvirt reports that it registered the callback,
 * but never releases its reference, so the connection would leak. The close callback needs none,
 * because libvirt holds a lock while it calls or deregisters it.
 *
 * An event callback marks the cache and posts an event. The close callback marks the connection as
 * lost and posts the loss. Neither does anything when the connection is closing. Members that
 * callbacks share with the virt thread are atomic, or have their own lock.
 *
 * Tests: tests/unit/drivers/libvirt/test-driver.c tests/unit/drivers/libvirt/test-poll.c */

#include "drivers/libvirt/connection.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <time.h>

#include "base/log.h"
#include "drivers/libvirt/error.h"

/* Starts the event loop once for each process, because libvirt accepts only one. pthread_once()
 * orders the writes of start_result and start_error before all reads. */
static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static int start_result;
static Error start_error;

/* Replaces libvirt's default handler, which writes errors to standard error. */
static void ignore_error(void *data, virErrorPtr error)
{
}

/* Runs until the process ends. The pause limits the CPU time of a loop that fails again and
 * again. */
static void *run_event_loop(void *data)
{
        const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };

        for (;;)
                if (virEventRunDefaultImpl() < 0)
                        nanosleep(&pause, NULL);
        return NULL;
}

/* Initializes libvirt and starts the thread. The result is in start_result and start_error, because
 * pthread_once() permits no return value. */
static void start(void)
{
        pthread_t thread;

        if (virInitialize() < 0) {
                start_result = libvirt_error(&start_error, "Cannot initialise libvirt");
                return;
        }
        virSetErrorFunc(NULL, ignore_error);
        if (virEventRegisterDefaultImpl() < 0) {
                start_result = libvirt_error(&start_error, "Cannot register libvirt's event loop");
                return;
        }
        start_result = thread_start("libvirt-events", run_event_loop, NULL, &thread);
        if (start_result < 0)
                error_setf(&start_error, start_result, "Cannot start libvirt's event thread");
        else
                pthread_detach(thread);
}

int libvirt_event_loop_start(Error *reterr)
{
        pthread_once(&start_once, start);
        if (start_result < 0 && reterr)
                *reterr = start_error;
        return start_result;
}

/* The events after which a domain is read again. In this order: it was started, stopped, paused or
 * defined; a device was attached; a device was detached; its CPUs were pinned. */
static const int domain_events[LIBVIRT_DOMAIN_EVENTS] = {
        VIR_DOMAIN_EVENT_ID_LIFECYCLE,
        VIR_DOMAIN_EVENT_ID_DEVICE_ADDED,
        VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
        VIR_DOMAIN_EVENT_ID_TUNABLE,
};

static const int device_events[LIBVIRT_DEVICE_EVENTS] = {
        VIR_NODE_DEVICE_EVENT_ID_LIFECYCLE,
        VIR_NODE_DEVICE_EVENT_ID_UPDATE,
};

static LibvirtConnection *connection_ref(LibvirtConnection *connection)
{
        __atomic_add_fetch(&connection->n_references, 1, __ATOMIC_ACQ_REL);
        return connection;
}

/* Releases a reference. libvirt calls this function when it will not call a callback again. */
static void connection_unref(void *data)
{
        LibvirtConnection *connection = data;

        if (__atomic_sub_fetch(&connection->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        mailbox_unref(connection->mailbox);
        poll_cache_free(connection->cache);
        free(connection);
}

/* Starts a callback; connection_unref() ends it. The atomic read of "closing" here pairs with its
 * atomic write in libvirt_connection_open(). The callback therefore sees everything that was
 * written before its registration. The reference keeps the object until the callback ends, whatever
 * locks libvirt takes. */
static LibvirtConnection *enter_callback(void *data, bool *ret_closing)
{
        LibvirtConnection *connection = data;

        *ret_closing = __atomic_load_n(&connection->closing, __ATOMIC_ACQUIRE);
        return connection_ref(connection);
}

static void post_loss(LibvirtConnection *connection)
{
        Error error;

        error_setf(&error, ECONNRESET, "The connection to the hypervisor broke");
        mailbox_post_error(connection->mailbox, DRIVER_EVENT_LOST, &error);
}

static void on_close(virConnectPtr handle, int reason, void *data)
{
        bool closing;
        LibvirtConnection *connection = enter_callback(data, &closing);

        if (!closing) {
                __atomic_store_n(&connection->lost, true, __ATOMIC_RELEASE);
                post_loss(connection);
        }
        connection_unref(connection);
}

static void on_domain(void *data, virDomainPtr domain)
{
        char uuid[VIR_UUID_STRING_BUFLEN];
        bool closing;
        LibvirtConnection *connection = enter_callback(data, &closing);

        if (!closing) {
                if (virDomainGetUUIDString(domain, uuid) == 0)
                        poll_cache_mark_domain(connection->cache, uuid);
                mailbox_post_changed(connection->mailbox);
        }
        connection_unref(connection);
}

static int on_domain_lifecycle(virConnectPtr handle, virDomainPtr domain, int event, int detail,
                               void *data)
{
        on_domain(data, domain);
        return 0;
}

static void on_domain_device(virConnectPtr handle, virDomainPtr domain, const char *alias,
                             void *data)
{
        on_domain(data, domain);
}

static void on_domain_tunable(virConnectPtr handle, virDomainPtr domain,
                              virTypedParameterPtr params, int n_params, void *data)
{
        on_domain(data, domain);
}

static void on_device(void *data, virNodeDevicePtr device)
{
        bool closing;
        LibvirtConnection *connection = enter_callback(data, &closing);
        const char *name;

        if (!closing) {
                name = virNodeDeviceGetName(device);
                if (name)
                        poll_cache_mark_device(connection->cache, name);
                mailbox_post_changed(connection->mailbox);
        }
        connection_unref(connection);
}

static void on_device_lifecycle(virConnectPtr handle, virNodeDevicePtr device, int event,
                                int detail, void *data)
{
        on_device(data, device);
}

static void on_device_update(virConnectPtr handle, virNodeDevicePtr device, void *data)
{
        on_device(data, device);
}

/* Returns the id of the callback. If libvirt did not register it, for example because the
 * hypervisor lacks the event, releases its reference and returns -1. Polls then find the change
 * later. */
static int keep_or_forget(LibvirtConnection *connection, int id, const char *what)
{
        if (id >= 0)
                return id;
        log_debug("No events of %s: %s", what, virGetLastErrorMessage());
        connection_unref(connection);
        return -1;
}

/* Registers all callbacks. The cache keeps devices or domains only if every event of the kind is
 * there. */
static void register_callbacks(LibvirtConnection *connection)
{
        static const virConnectDomainEventGenericCallback
                domain_callbacks[LIBVIRT_DOMAIN_EVENTS] = {
                        VIR_DOMAIN_EVENT_CALLBACK(on_domain_lifecycle),
                        VIR_DOMAIN_EVENT_CALLBACK(on_domain_device),
                        VIR_DOMAIN_EVENT_CALLBACK(on_domain_device),
                        VIR_DOMAIN_EVENT_CALLBACK(on_domain_tunable),
                };
        static const virConnectNodeDeviceEventGenericCallback
                device_callbacks[LIBVIRT_DEVICE_EVENTS] = {
                        VIR_NODE_DEVICE_EVENT_CALLBACK(on_device_lifecycle),
                        VIR_NODE_DEVICE_EVENT_CALLBACK(on_device_update),
                };
        virConnectPtr handle = connection->handle;
        bool devices = true, domains = true;
        int r;

        connection->has_close_callback =
                virConnectRegisterCloseCallback(handle, on_close, connection, NULL) == 0;
        for (size_t i = 0; i < ARRAY_SIZE(domain_events); i++) {
                r = virConnectDomainEventRegisterAny(handle, NULL, domain_events[i],
                                                     domain_callbacks[i],
                                                     connection_ref(connection), connection_unref);
                connection->domain_ids[i] = keep_or_forget(connection, r, "domains");
                domains = domains && r >= 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(device_events); i++) {
                r = virConnectNodeDeviceEventRegisterAny(
                        handle, NULL, device_events[i], device_callbacks[i],
                        connection_ref(connection), connection_unref);
                connection->device_ids[i] = keep_or_forget(connection, r, "devices");
                devices = devices && r >= 0;
        }
        poll_cache_keep(connection->cache, devices, domains);
}

/* Rejects requests of libvirt for credentials. libvirt makes none, because it got no credential
 * types. */
static int refuse_credentials(virConnectCredentialPtr credentials, unsigned n_credentials,
                              void *data)
{
        return -1;
}

int libvirt_connect(virConnectPtr *ret, const DriverConfig *config, unsigned flags, Error *reterr)
{
        virConnectAuth no_auth = { .cb = refuse_credentials };
        virConnectPtr handle = virConnectOpenAuth(config->libvirt.connection_uri, &no_auth, flags);

        if (!handle)
                return libvirt_error(reterr, "Cannot connect to the hypervisor");
        /* Continue without keepalive, which libvirt's test driver and very old daemons do not
         * have. */
        if (config->libvirt.keepalive_interval_sec > 0 &&
            virConnectSetKeepAlive(handle,
                                   (int)MIN(config->libvirt.keepalive_interval_sec, INT32_MAX),
                                   (unsigned)MIN(config->libvirt.keepalive_count, INT32_MAX)) != 0)
                log_debug("No keepalive on %s: %s", config->libvirt.connection_uri,
                          virGetLastErrorMessage());
        *ret = handle;
        return 0;
}

int libvirt_connection_open(LibvirtConnection **ret, const DriverConfig *config, unsigned flags,
                            Mailbox *mailbox, Error *reterr)
{
        LibvirtConnection *connection;
        virConnectPtr handle;
        int r;

        /* If a read-only connection fails, open a writable one: some daemons have no read-only
         * socket. */
        r = libvirt_connect(&handle, config, flags, reterr);
        if (r < 0 && flags)
                r = libvirt_connect(&handle, config, 0, reterr);
        if (r < 0)
                return r;
        connection = calloc(1, sizeof(LibvirtConnection));
        if (!connection || poll_cache_new(&connection->cache) < 0) {
                free(connection);
                virConnectClose(handle);
                return error_oom(reterr);
        }
        connection->handle = handle;
        connection->mailbox = mailbox_ref(mailbox);
        connection_ref(connection);
        /* The value is false already. The write makes those before it visible to the callbacks. */
        __atomic_store_n(&connection->closing, false, __ATOMIC_RELEASE);
        register_callbacks(connection);
        *ret = connection;
        return 0;
}

/* Closes the connection. Callbacks that still run see "closing" and keep the object until they
 * end. */
LibvirtConnection *libvirt_connection_free(LibvirtConnection *connection)
{
        virConnectPtr handle;

        if (!connection)
                return NULL;
        handle = connection->handle;
        __atomic_store_n(&connection->closing, true, __ATOMIC_RELEASE);
        if (connection->has_close_callback)
                virConnectUnregisterCloseCallback(handle, on_close);
        for (size_t i = 0; i < ARRAY_SIZE(domain_events); i++)
                if (connection->domain_ids[i] >= 0)
                        virConnectDomainEventDeregisterAny(handle, connection->domain_ids[i]);
        for (size_t i = 0; i < ARRAY_SIZE(device_events); i++)
                if (connection->device_ids[i] >= 0)
                        virConnectNodeDeviceEventDeregisterAny(handle, connection->device_ids[i]);
        virConnectClose(handle);
        connection_unref(connection);
        return NULL;
}

bool libvirt_connection_is_alive(const LibvirtConnection *connection)
{
        return !__atomic_load_n(&connection->lost, __ATOMIC_ACQUIRE) &&
               virConnectIsAlive(connection->handle) == 1;
}

void libvirt_connection_report_loss(const LibvirtConnection *connection)
{
        if (__atomic_load_n(&connection->lost, __ATOMIC_ACQUIRE))
                post_loss((LibvirtConnection *)connection);
}

/* One persistent libevent event for each descriptor, added again only if what it watches for changes. */
#include "io/descriptor.h"

#include "base/alloc.h"
#include "io/conn.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

struct descriptor {
    struct event event;
    struct event_base *base;
    int fd;
    short watched; /* EV_READ, EV_WRITE; 0: the event is not added */
    void (*ready)(void *owner, int fd, bool readable, bool writable);
    void *owner;
};

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct descriptor *d = arg;
    d->ready(d->owner, fd, what & EV_READ, what & EV_WRITE);
}

struct descriptor *descriptor_new(struct loop *loop, int fd,
                                  void (*ready)(void *owner, int fd, bool readable, bool writable),
                                  void *owner)
{
    struct descriptor *d = alloc_zeroed(sizeof(*d));
    d->base = loop_base(loop);
    d->fd = fd;
    d->ready = ready;
    d->owner = owner;
    return d;
}

void descriptor_watch(struct descriptor *d, bool readable, bool writable)
{
    short watched = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
    if (watched == d->watched)
        return;
    if (d->watched)
        event_del(&d->event);
    d->watched = watched;
    if (!watched)
        return;
    event_assign(&d->event, d->base, d->fd, (short)(watched | EV_PERSIST), on_event, d);
    event_add(&d->event, NULL);
}

void descriptor_writable_soon(struct descriptor *d)
{
    if (d->watched)
        event_active(&d->event, EV_WRITE, 0);
}

void descriptor_free(struct descriptor *d)
{
    if (d && d->watched)
        event_del(&d->event);
    free(d);
}

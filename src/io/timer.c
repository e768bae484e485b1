/* A libevent timer, freed as soon as it has fired. */
#include "io/timer.h"

#include "io/conn.h"

#include <event2/event.h>
#include <stdlib.h>

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct timer *timer = arg;
    void (*fires)(void *) = timer->fires;
    (void)fd, (void)what;
    timer_clear(timer);
    fires(timer->owner);
}

void timer_set(struct timer *timer, struct loop *loop, uint32_t ms, void (*fires)(void *owner), void *owner)
{
    struct timeval after = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    timer->fires = fires;
    timer->owner = owner;
    if (!timer->event)
        timer->event = evtimer_new(loop_base(loop), on_timeout, timer);
    if (!timer->event || evtimer_add(timer->event, &after) != 0)
        abort(); /* no memory for a hundred bytes */
}

void timer_clear(struct timer *timer)
{
    if (timer->event)
        event_free(timer->event);
    timer->event = NULL;
}

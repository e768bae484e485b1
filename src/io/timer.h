/*
 * A one-shot timer on the loop. Embedded where it is needed; setting it again
 * moves it.
 */
#ifndef TOOLGATE_IO_TIMER_H
#define TOOLGATE_IO_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct loop;

struct timer {
    struct event *event; /* NULL: never set */
    void (*fires)(void *owner);
    void *owner;
};

/* Fires once, from the loop's turn, `ms` from now at the earliest; never inside this call. */
void timer_set(struct timer *timer, struct loop *loop, uint32_t ms, void (*fires)(void *owner), void *owner);
bool timer_is_set(const struct timer *timer);
/* It does not fire any more; may be set again. A timer that was never set may be cleared, too. */
void timer_clear(struct timer *timer);

#endif

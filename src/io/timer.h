/*
 * A one-shot timer on the loop. Embedded where it is needed (zeroed), and not
 * moved while it is set; setting it again moves its time. One that is not set
 * owns nothing; a set one must be cleared before its loop is freed.
 */
#ifndef TOOLGATE_IO_TIMER_H
#define TOOLGATE_IO_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct loop;

struct timer {
    struct event *event; /* NULL: not set */
    void (*fires)(void *owner);
    void *owner;
};

/* Fires once, from the loop's turn, `ms` from the beginning of this turn at the earliest; never inside this
 * call. It is no longer set when it fires, and its owner may free it then. */
void timer_set(struct timer *timer, struct loop *loop, uint32_t ms, void (*fires)(void *owner), void *owner);
bool timer_is_set(const struct timer *timer);
/* It does not fire any more; may be set again. A timer that was never set may be cleared, too. */
void timer_clear(struct timer *timer);

#endif

/*
 * Watches a descriptor with another owner (a library's socket) on the event
 * loop, level-triggered, and reports only when it is ready.
 */
#ifndef TOOLGATE_IO_DESCRIPTOR_H
#define TOOLGATE_IO_DESCRIPTOR_H

#include <stdbool.h>

struct descriptor;
struct loop;

/* `ready` fires in a turn of the loop, repeatedly while the descriptor is ready; never inside a descriptor_
 * function. The descriptor is borrowed and must stay open until descriptor_free. */
struct descriptor *descriptor_new(struct loop *loop, int fd,
                                  void (*ready)(void *owner, int fd, bool readable, bool writable),
                                  void *owner);
/* Sets which of the two it watches for; both false: neither. */
void descriptor_watch(struct descriptor *descriptor, bool readable, bool writable);
/* Reports that it is writable after this turn's events, without asking the kernel, as it mostly is. Only
 * while it watches for something. */
void descriptor_writable_soon(struct descriptor *descriptor);
void descriptor_free(struct descriptor *descriptor); /* accepts NULL; allowed inside `ready` */

#endif

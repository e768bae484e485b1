/*
 * A descriptor that somebody else owns (a library's socket), watched on the
 * loop for as long as it is of interest: level-triggered, and no more than
 * told what it is ready for.
 */
#ifndef TOOLGATE_IO_DESCRIPTOR_H
#define TOOLGATE_IO_DESCRIPTOR_H

#include <stdbool.h>

struct descriptor;
struct loop;

/* `ready` fires from the loop's turn, again and again while it is ready; never inside a descriptor_ function.
 * The descriptor is borrowed: it must stay open until descriptor_free. */
struct descriptor *descriptor_new(struct loop *loop, int fd,
                                  void (*ready)(void *owner, int fd, bool readable, bool writable),
                                  void *owner);
/* What it waits for from now on; neither: nothing. */
void descriptor_watch(struct descriptor *descriptor, bool readable, bool writable);
/* Tells that it is writable once what is ready in this turn has been served, without asking the kernel: it
 * mostly is. Only while something is wanted of it. */
void descriptor_writable_soon(struct descriptor *descriptor);
void descriptor_free(struct descriptor *descriptor); /* NULL is fine; also inside `ready` */

#endif

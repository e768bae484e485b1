/*
 * The room that RLIMIT_AS (ulimit -v, LimitAS=) leaves the process. Mostly there is no such limit. Where
 * there is one, malloc fails and the process ends: what a peer sends must be refused before.
 */
#ifndef TOOLGATE_BASE_ADDRESS_SPACE_H
#define TOOLGATE_BASE_ADDRESS_SPACE_H

#include <stddef.h>

/* Bytes that a text takes for each of its own, at most: read, parsed, judged, written and queued. */
#define ADDRESS_SPACE_FACTOR 32u
/* A shorter text always has room: it is not looked for. */
#define ADDRESS_SPACE_SMALL_BYTES 65536u

/* `bytes` if there is room to handle a text of this many, else for how many there is room. All of them where
 * nothing limits the process, and where /proc cannot be read. */
size_t address_space_for_text(size_t bytes);

#endif

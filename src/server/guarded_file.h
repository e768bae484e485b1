/*
 * Which upstream's tool each policy without `upstream` guards, between runs: the file `guarded` in the state
 * folder, "POLICY UPSTREAM" a line. Without a state folder nothing is kept. See struct guarded_tool
 * (catalog/generation.h).
 */
#ifndef TOOLGATE_SERVER_GUARDED_FILE_H
#define TOOLGATE_SERVER_GUARDED_FILE_H

#include "catalog/generation.h"
#include "policy/config.h"

#define GUARDED_FILE_MAX_BYTES 1048576u

/* The list is allocated in the arena; empty if there is no file. A file that cannot be read is logged. */
struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count);

/* Does nothing if the file has this list already. What cannot be written is logged. */
void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count);

#endif

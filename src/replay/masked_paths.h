/* The masked values of a record, as the paths that problems have. */
#ifndef TOOLGATE_REPLAY_MASKED_PATHS_H
#define TOOLGATE_REPLAY_MASKED_PATHS_H

#include "replay/recorded_call.h"

#define MASKED_PATHS_MAX 64u /* of one call; a record lists fewer */

/* "/items/0/price" as the path of a problem, "items[0].price". */
struct str path_of_pointer(struct arena *arena, struct str pointer);

/* The paths of an array of JSON pointers; returns how many. */
size_t masked_paths_read(struct arena *arena, const struct json *pointers, struct str out[MASKED_PATHS_MAX]);

/* The arguments to judge. A mask with a tag tells calls apart. Calls that differ only in values with another
 * mask look alike: where the daemon saw that they differ, a value of its own tells this call from others. */
const struct json *masked_paths_tell_apart(const struct recorded_call *call, const struct str *paths,
                                           size_t count);

#endif

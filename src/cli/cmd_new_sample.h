/* Arguments that a schema takes, as a person would give them in an example. */
#ifndef TOOLGATE_CLI_CMD_NEW_SAMPLE_H
#define TOOLGATE_CLI_CMD_NEW_SAMPLE_H

#include "schema/schema.h"

struct arena;

/* What is required and no more (the first property where nothing is); NULL where none was found. */
const struct json *new_sample(struct arena *arena, const struct schema *schema);

#endif

/*
 * Arguments that arrive as text, empty, or cut off: what they are read as, and the problem if they are not.
 * Part of gate/arguments.h, for its files only.
 */
#ifndef TOOLGATE_GATE_ARGUMENTS_TEXT_H
#define TOOLGATE_GATE_ARGUMENTS_TEXT_H

#include "gate/arguments.h"
#include "json/spelled.h"

#define ARGUMENTS_ENCODED_MAX 3u /* how often the arguments may be encoded as a JSON string */

/* What was sent instead of an object becomes the object it stands for, in `raw`, or a problem. `tool`: whose
 * arguments they are; NULL: any. */
void arguments_read_text(struct arguments *args, struct arena *arena, const struct tool *tool);

/* The object or list in `value`: itself, or what its text spells. NULL: none. */
const struct json *arguments_container(struct arena *arena, const struct json *value);

/* Whether the tool's schema may declare any parameter. */
bool arguments_are_declared(const struct tool *tool);

/* Whether all of them are optional, so that {} may mean everything. */
bool arguments_may_mean_all(const struct tool *tool, struct arena *arena);

/* Whether the string begins as JSON or a code fence does. */
bool arguments_begin_as_json(const struct json *text);

/* If `value` is the text of an object or list that was cut off: the problem of it at `path` (empty: of the
 * arguments as a whole). False: it is not. */
bool arguments_is_cut_off(struct arena *arena, const struct json *value, struct str path,
                          struct problem *problem);

/* Among problems of the schema, the texts that were cut off where an object or list is wanted become
 * "cut_off", and long fields that are missing are said to be perhaps cut off. */
void arguments_explain_cuts(struct arguments *args, struct arena *arena, const struct tool *tool);

#endif

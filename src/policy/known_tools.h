/* The built-in tools of coding assistants, which come without policies and annotations, and words that say
 * as much of other tools: lua/known_tools.lua. */
#ifndef TOOLGATE_POLICY_KNOWN_TOOLS_H
#define TOOLGATE_POLICY_KNOWN_TOOLS_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum known_tool {
    KNOWN_NOT,
    KNOWN_READS,
    KNOWN_NOTES, /* a list that a model keeps for itself: nothing that another call could see changes */
    KNOWN_EDITS, /* local files, which a shell may change, too */
    KNOWN_SHELLS,
    KNOWN_KINDS
};

enum known_list { /* a tool may be of a kind and in any of these */
                  KNOWN_POLLS = KNOWN_KINDS,
                  KNOWN_WATCHES,
                  KNOWN_STATES,
                  KNOWN_STATE_CODES,
                  KNOWN_STEPS,
                  KNOWN_STEP_VERBS,
                  KNOWN_STEP_ENDS,
                  KNOWN_LABELS,
                  KNOWN_COMMAND_LABELS,
                  KNOWN_LISTS
};

enum known_tool known_tools_find(struct str name);

/* The names of a list, as long as the process. */
const struct str *known_tools_list(enum known_list list, size_t *count);
bool known_tools_lists(enum known_list list, struct str name);

/* A shell command that begins with a wait, or with a command that shows how far something is. */
bool known_tools_watches(struct str command);
/* "In progress", "RUNNING": what has this state is under way. */
bool known_tools_state(struct str word);

#endif

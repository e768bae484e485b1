/*
 * From the words of a policy and the arguments of a call to a command line.
 * A word may hold
 *
 *   {id}, {item.id}   an argument: a text as it is, a number as it was sent, true or false, an object as
 * JSON; a list makes one word of each of its items, with whatever stands around it
 *   {{id}}            the text {id} itself; every other brace is a text already
 *   ${id}             text, too: scripts are full of it. Settings (secrets.h) go into the environment: a
 *                     command line can be read by everybody on the host
 *
 * A word that names an argument which is not there, null or an empty list is left out, whole. What an
 * argument says is never looked at again: not by a shell, for there is none, and not for more braces. One
 * that begins with "-" where the command could take it for an option is refused (exec_spec.dashes allows it):
 * not after a word "--", not as the value of an option, which is the word after one that begins with "-".
 */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_ARGV_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_ARGV_H

#include "upstream/upstream.h"

#define EXEC_LINE_WORDS_MAX 4096u /* on a command line, with all items of lists */

enum exec_piece_kind { EXEC_PIECE_TEXT, EXEC_PIECE_ARGUMENT };
struct exec_piece {
    enum exec_piece_kind kind;
    struct str text; /* of an argument: its path */
};

/* The next piece, taken from the front of *rest; false: there are no more. */
bool exec_argv_next_piece(struct str *rest, struct exec_piece *piece);

bool exec_argv_has_argument(struct str word);

/* An option whose value, or whose values, are the next words: how many; 0: it is none. */
size_t exec_argv_option_values(struct str word);

/* What stands at "item.id"; NULL: nothing, null or an empty list. */
const struct json *exec_argv_argument(const struct json *arguments, struct str path);

/* Why there is no command line; `detail` is for the model. */
struct exec_argv_error {
    const char *code;
    struct str detail;
};

/* argv ends with NULL; all in the arena. NULL: `fault` says what the model has to mend. */
const char *const *exec_argv_build(struct arena *arena, const struct exec_spec *spec,
                                   const struct json *arguments, struct exec_argv_error *fault);

#endif

/*
 * Commands: exec.c runs one and reads what it left, exec_argv.c makes its command line. The pieces of words
 * are also for those who load policies.
 *
 * From the words of a policy and the arguments of a call to a command line: a word may hold
 *
 *   {id}, {item.id}   an argument: a string as it is, a number as it was sent, true or false, an object as
 *                     JSON; a list makes one word of each item
 *   {{id}}            a literal {id}; any other brace is literal already
 *   ${id}             literal, too, since scripts are full of it. Secrets go into the environment: any user
 *                     of the host can read a command line
 *
 * A word is omitted if an argument that it names is missing, null or an empty list. The value of an argument
 * is never interpreted: there is no shell, and braces in it are literal. A value that begins with "-" where
 * the command could take it for an option is refused, unless exec_spec.dashes allows it, or the word follows
 * "--" or is the value of an option (a word that begins with "-").
 */
#ifndef TOOLGATE_UPSTREAM_EXEC_EXEC_H
#define TOOLGATE_UPSTREAM_EXEC_EXEC_H

#include "upstream/upstream.h"

#define EXEC_LINE_WORDS_MAX 4096u /* on a command line, with all items of lists */

enum exec_piece_kind { EXEC_PIECE_TEXT, EXEC_PIECE_ARGUMENT };
struct exec_piece {
    enum exec_piece_kind kind;
    struct str text; /* of an argument: its path */
};

/* Takes the next piece from the front of *rest; false: the end. */
bool exec_argv_next_piece(struct str *rest, struct exec_piece *piece);

bool exec_argv_has_argument(struct str word);

/* How many of the next words are values of this option; 0: none, or it is no option. */
size_t exec_argv_option_values(struct str word);

/* Why there is no command line; `detail` is for the model. */
struct exec_argv_error {
    const char *code;
    struct str detail;
};

/* NULL-terminated, in the arena. NULL: the arguments are at fault, see `error`. */
const char *const *exec_argv_build(struct arena *arena, const struct exec_spec *spec,
                                   const struct json *arguments, struct exec_argv_error *error);

/* ---- stderr ---- */

#define EXEC_JSON_NODES   1000000u /* of a result */
#define EXEC_TRACE_LINES  60u      /* of a stack trace in the log */
#define EXEC_STDERR_BYTES 16384u   /* the end of stderr that is kept */
#define EXEC_QUOTE_LINES  5u
#define EXEC_QUOTE_BYTES  1000u

/* The last lines, or the message of the last stack trace (*traced). In the arena: valid UTF-8, no empty
 * lines, no control characters but newlines. */
struct str exec_result_message(struct arena *arena, struct str errors, bool *traced);

#endif

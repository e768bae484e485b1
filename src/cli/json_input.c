/* Reads JSON from stdin. */
#include "cli/json_input.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/term.h"
#include "json/parse.h"

#include <errno.h>
#include <unistd.h>

#define INPUT_READ_BYTES 65536u

bool json_input_text(const struct command *command, struct arena *arena, struct str *out)
{
    struct buf text = buf_in(arena);
    ssize_t n;
    do {
        n = read(STDIN_FILENO, buf_reserve(&text, INPUT_READ_BYTES), INPUT_READ_BYTES);
        text.len += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && text.len <= JSON_INPUT_MAX_BYTES) || (n < 0 && errno == EINTR));
    *out = buf_view(&text);
    if (n < 0)
        term_error(command->name, "stdin: %s", strerror(errno));
    else if (n > 0)
        term_error(command->name, "stdin: more than %u bytes", JSON_INPUT_MAX_BYTES);
    return n == 0;
}

bool json_input_stdin(const struct command *command, struct arena *arena, struct json *out)
{
    struct str text = STR_NONE;
    struct json_error fault;
    if (!json_input_text(command, arena, &text))
        return false;
    if (json_parse(arena, text, NULL, out, &fault) == OK)
        return true;
    term_error(command->name, "stdin: %s", fault.text);
    return false;
}

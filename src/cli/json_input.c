/* Reads arguments from the command line or stdin, and writes a call's params. */
#include "cli/json_input.h"

#include "base/arena.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"

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

bool json_input_arguments(const struct command *command, struct arena *arena, const char *text,
                          struct json *out)
{
    struct str given = str_of(text ? text : "{}");
    struct json_error fault;
    if (str_is(given, "-") && !json_input_text(command, arena, &given))
        return false;
    if (json_parse(arena, given, NULL, out, &fault) == OK)
        return true;
    term_error(command->name,
               "the arguments are not JSON: %s; quote them for the shell: '{\"key\": \"value\"}'",
               fault.text);
    return false;
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

bool json_input_context(const struct command *command, struct arena *arena, struct json_input_meta *meta)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct json_error fault;
    if (!meta->context_text)
        return true;
    if (json_parse(arena, str_of(meta->context_text), NULL, value, &fault) != OK)
        term_error(command->name, "--context: expected JSON: %s", fault.text);
    else if (value->type != JSON_OBJECT)
        term_error(command->name, "--context: expected an object, as in '{\"role\": \"guest\"}'");
    else
        meta->context = value;
    return meta->context != NULL;
}

static void put_meta(struct json_out *out, const struct json_input_meta *meta)
{
    if (!meta->session && !meta->goal && !meta->turn && !meta->trace && !meta->context)
        return;
    json_field_open(out, "_meta", '{');
    if (meta->session)
        json_field_text(out, "dev.toolgate/session", meta->session);
    if (meta->goal)
        json_field_text(out, "dev.toolgate/goal", meta->goal);
    if (meta->context)
        json_field(out, "dev.toolgate/context", meta->context);
    if (meta->turn)
        json_field_int(out, "dev.toolgate/turn", meta->turn);
    if (meta->trace)
        json_field_bool(out, "dev.toolgate/trace", true);
    json_close(out, '}');
}

struct str json_input_call(struct arena *arena, const char *tool, const struct json *arguments,
                           const struct json_input_meta *meta)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_text(&out, "name", tool);
    json_field(&out, "arguments", arguments);
    put_meta(&out, meta);
    json_close(&out, '}');
    return buf_view(&text);
}

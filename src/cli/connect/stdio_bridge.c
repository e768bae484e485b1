/* Inserts the session after the opening brace of _meta, else of params, else of the request. */
#include "cli/connect/stdio_bridge.h"

#include "base/arena.h"
#include "json/parse.h"

#define SESSION_KEY "dev.toolgate/session"

/* Inserts `text` after the brace, with a comma if the object has members. */
static void insert(struct buf *out, struct str line, const char *brace, struct str text, bool has_members)
{
    size_t head = (size_t)(brace - line.at) + 1;
    buf_add(out, line.at, head);
    buf_str(out, text);
    if (has_members)
        buf_byte(out, ',');
    buf_str(out, str_from(line, head));
}

static void add_session(struct buf *out, struct arena *arena, struct str line, const struct json *message,
                        struct str session)
{
    const struct json *params = json_get_text(message, "params"), *meta = json_get_text(params, "_meta");
    struct str key = arena_printf(arena, "\"" SESSION_KEY "\":" STR_FMT, STR_ARG(session));
    struct str member = arena_printf(arena, "\"_meta\":{" STR_FMT "}", STR_ARG(key));
    if (json_is(meta, JSON_OBJECT) && !json_get_text(meta, SESSION_KEY))
        insert(out, line, meta->raw, key, meta->len > 0);
    else if (json_is(params, JSON_OBJECT) && !meta)
        insert(out, line, params->raw, member, params->len > 0);
    else if (!params)
        insert(out, line, message->raw, arena_printf(arena, "\"params\":{" STR_FMT "}", STR_ARG(member)),
               true);
    else
        buf_str(out, line); /* it has one, or params or _meta has a wrong type */
}

void stdio_bridge_line(struct buf *out, struct str line, struct str session)
{
    struct arena *arena = arena_new();
    struct json message;
    struct json_error fault;
    bool read = json_parse(arena, line, NULL, &message, &fault) == OK || fault.soft;
    if (read && json_is(json_get_text(&message, "method"), JSON_STRING) && json_get_text(&message, "id"))
        add_session(out, arena, line, &message, session);
    else
        buf_str(out, line);
    arena_free(arena);
}

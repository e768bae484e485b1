/*
 * What an error's body says, in the shapes that services use: RFC 9457's
 * problem details, {"error": {"message"}}, {"message"}, {"errors": […]}. A page
 * for browsers says nothing to a model.
 */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"

static const char *const texts[] = {"detail", "message", "error_description", "error", "msg",
                                    "reason", "title",   "description"};
static const char *const holders[] = {"error", "errors", "detail", "fault", "data"};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct str look(const struct json *value, unsigned depth);

static struct str look_inside(const struct json *object, unsigned depth)
{
    struct str found = STR_NONE;
    for (size_t i = 0; !found.len && i < COUNT(holders); i++)
        found = look(json_get_text(object, holders[i]), depth);
    return found;
}

/* A sentence beside an object with a better one: the object is asked first. */
static struct str look(const struct json *value, unsigned depth)
{
    if (!value || depth > 3)
        return STR_NONE;
    if (json_is(value, JSON_ARRAY))
        return value->len ? look(&value->items[0], depth + 1) : STR_NONE;
    if (!json_is(value, JSON_OBJECT))
        return json_str(value);
    struct str found = depth ? STR_NONE : look_inside(value, depth + 1);
    for (size_t i = 0; !found.len && i < COUNT(texts); i++)
        found = json_str(json_get_text(value, texts[i]));
    return found.len || !depth ? found : look_inside(value, depth + 1);
}

static bool is_plain(struct str type, struct str body)
{
    bool html = str_contains_nocase(type, STR_LIT("html")) || str_contains_nocase(type, STR_LIT("xml")) ||
                str_starts(str_trim(body), "<");
    for (size_t i = 0; !html && i < body.len;) {
        size_t n = str_utf8_length(body.at + i, body.at + body.len);
        if (!n || !body.at[i])
            return false;
        i += n;
    }
    return !html;
}

struct str http_response_error_message(struct arena *arena, struct str type, struct str body)
{
    struct json value;
    struct json_error fault;
    bool parses = json_parse(arena, body, NULL, &value, &fault) == OK;
    struct str found = parses ? look(&value, 0) : is_plain(type, body) ? str_trim(body) : STR_NONE;
    if (parses && !found.len && (value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len) {
        struct buf whole = buf_in(arena);
        json_write(&whole, &value);
        found = buf_view(&whole);
    }
    return str_cut(found, HTTP_QUOTED_BYTES);
}

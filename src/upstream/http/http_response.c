/* What a failed HTTP exchange means, and the message in the body of an error. */
#include "upstream/http/http_response.h"

#include "json/parse.h"
#include "json/write.h"

const struct http_failure http_failures[] = {
    [FETCH_UNREACHABLE] = {UPSTREAM_TRANSIENT, "unreachable"},
    [FETCH_MISCONFIGURED] = {UPSTREAM_UNAVAILABLE, "misconfigured"},
    [FETCH_TIMEOUT] = {UPSTREAM_TRANSIENT, "timeout"},
    [FETCH_DISCONNECTED] = {UPSTREAM_TRANSIENT, "broken_off"},
    [FETCH_TOO_LARGE] = {UPSTREAM_BROKEN, "too_large"},
    [FETCH_NOT_HTTP] = {UPSTREAM_BROKEN, "invalid_http"},
};

bool http_response_is_text(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = str_utf8_length(text.at + i, text.at + text.len);
        if (!n || !text.at[i])
            return false;
        i += n;
    }
    return true;
}

bool http_response_is_transient(int status)
{
    return status == 408 || status == 425 || status == HTTP_TOO_MANY || status >= 500;
}

/* RFC 9457's problem details, {"error": {"message"}}, {"message"}, {"errors": […]}. An object inside often
 * has a better sentence than a member of the root, so it is searched first. */
static struct str find_message(const struct json *value, unsigned depth)
{
    static const char *const messages[] = {"detail", "message", "error_description", "error", "msg",
                                           "reason", "title",   "description",       NULL};
    static const char *const containers[] = {"error", "errors", "detail", "fault", "data", NULL};
    struct str found = STR_NONE;
    if (!value || depth > 3)
        return STR_NONE;
    if (value->type == JSON_ARRAY)
        return value->len ? find_message(&value->items[0], depth + 1) : STR_NONE;
    if (value->type != JSON_OBJECT)
        return json_str(value);
    for (unsigned pass = 0; pass < 2 && !found.len; pass++) {
        bool inside = (pass == 0) == (depth == 0);
        const char *const *names = inside ? containers : messages;
        for (; !found.len && *names; names++) {
            const struct json *member = json_get_text(value, *names);
            found = inside ? find_message(member, depth + 1) : json_str(member);
        }
    }
    return found;
}

struct str http_response_error_message(struct arena *arena, struct str type, struct str body)
{
    struct json value;
    struct str found = STR_NONE;
    if (json_parse(arena, body, NULL, &value, NULL) == OK) {
        found = find_message(&value, 0);
        if (!found.len && (value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len)
            found = json_to_str(arena, &value);
    } else if (!str_contains_nocase(type, STR_LIT("html")) && !str_contains_nocase(type, STR_LIT("xml")) &&
               !str_starts(str_trim(body), "<") && http_response_is_text(body)) {
        found = str_trim(body);
    }
    return str_cut(found, HTTP_QUOTED_BYTES);
}

/*
 * A scan, not a parser: it knows strings and brackets, and takes each value
 * whole. Errors inside a value are found when json/parse.h parses it.
 */
#include "upstream/mcp/mcp_message.h"

#include "json/parse.h"

#define ID_MAX_BYTES  256u /* of a server's request; it is echoed */
#define OWN_ID_DIGITS 16u

struct scan {
    const char *at, *end;
};

static char peek(struct scan *s)
{
    while (s->at < s->end && ascii_is_space(*s->at))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

/* From the opening quote to behind the closing one; false: it does not close. */
static bool skip_string(struct scan *s)
{
    const char *start = ++s->at, *quote = start;
    while ((quote = memchr(quote, '"', (size_t)(s->end - quote)))) {
        const char *p = quote;
        while (p > start && p[-1] == '\\')
            p--;
        quote++;
        if ((quote - p) & 1) { /* an even number of backslashes escapes only themselves */
            s->at = quote;
            return true;
        }
    }
    s->at = s->end;
    return false;
}

static bool take_value(struct scan *s, struct str *value)
{
    char c = peek(s);
    const char *start = s->at;
    bool whole = false;
    if (c == '"') {
        whole = skip_string(s);
    } else if (c == '{' || c == '[') {
        for (int depth = 0; !whole && s->at < s->end;) {
            c = *s->at;
            if (c == '"' && !skip_string(s))
                break;
            if (c == '"')
                continue;
            s->at++;
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            whole = depth == 0;
        }
    } else {
        while (s->at < s->end && *s->at != ',' && *s->at != '}' && *s->at != ']' && !ascii_is_space(*s->at))
            s->at++;
        whole = s->at > start && s->at < s->end;
    }
    *value = (struct str){start, (size_t)(s->at - start)};
    return whole;
}

/* One member. A duplicate key would let a server send two messages in one. */
static bool take_member(struct scan *s, struct mcp_message *message)
{
    const struct {
        struct str key, *value;
    } members[] = {{STR("\"id\""), &message->id},
                   {STR("\"method\""), &message->method},
                   {STR("\"params\""), &message->params},
                   {STR("\"result\""), &message->result},
                   {STR("\"error\""), &message->error}};
    struct str key, value;
    if (peek(s) != '"' || !take_value(s, &key) || peek(s) != ':')
        return false;
    s->at++;
    if (!take_value(s, &value))
        return false;
    message->has_version |= str_is(key, "\"jsonrpc\"");
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (str_eq(key, members[i].key)) {
            if (members[i].value->at)
                return false;
            *members[i].value = value;
        }
    return true;
}

static struct mcp_message unusable(enum mcp_message_kind kind, struct str id, const char *problem)
{
    return (struct mcp_message){.kind = kind, .id = id, .problem = problem};
}

/* 7.0, as runtimes write it whose only number is a double, is 7. */
static struct str whole_number(struct str id)
{
    size_t len = id.len;
    while (len && id.at[len - 1] == '0')
        len--;
    return len > 1 && len < id.len && id.at[len - 1] == '.' ? str_cut(id, len - 1) : id;
}

/* Some servers send `error: null` beside a result, or `id: null`. */
static struct mcp_message classify(struct mcp_message message)
{
    if (str_is(message.error, "null"))
        message.error = STR_NONE;
    if (str_is(message.id, "null"))
        message.id = STR_NONE;
    bool has_method = message.method.len > 2 && message.method.at[0] == '"';
    bool answers = message.result.len || message.error.len;
    struct str id = message.id;
    size_t digits = id.len && id.at[0] == '-'; /* and where they begin */
    bool valid = id.len && id.len <= ID_MAX_BYTES && (id.at[0] == '"' || digits < id.len);
    for (; valid && id.at[0] != '"' && digits < id.len && id.at[digits] != '.'; digits++)
        valid = ascii_is_digit(id.at[digits]);
    bool is_whole = id.len && whole_number(id).len < id.len; /* 7.0 */
    valid &= digits >= id.len || id.at[0] == '"' || is_whole;
    if (id.len && !valid)
        return unusable(MCP_MESSAGE_MALFORMED, STR_NONE, "its id is neither a string nor an integer");
    if (has_method && !answers) {
        message.method = (struct str){message.method.at + 1, message.method.len - 2};
        message.kind = message.id.len ? MCP_MESSAGE_REQUEST : MCP_MESSAGE_NOTIFICATION;
        return message;
    }
    if (!message.id.len && !message.error.len)
        return unusable(MCP_MESSAGE_MALFORMED, STR_NONE, "it has neither an id nor a method");
    if (!answers)
        return unusable(MCP_MESSAGE_MALFORMED, message.has_version ? message.id : STR_NONE,
                        "it has neither result nor error");
    message.kind = MCP_MESSAGE_RESPONSE;
    return message;
}

/* One object from its brace on. False: it does not close, or is no object of JSON. */
static bool take_object(struct scan *s, struct mcp_message *message)
{
    s->at++;
    bool whole = peek(s) == '}';
    while (!whole && take_member(s, message)) {
        whole = peek(s) == '}';
        if (!whole && peek(s) != ',')
            break;
        s->at += !whole;
    }
    s->at += whole;
    return whole;
}

/* To the brace that begins an object; what is in no object, such as the brackets of a batch, is skipped. */
static bool find_object(struct scan *s)
{
    const char *brace;
    while ((brace = memchr(s->at, '{', (size_t)(s->end - s->at)))) {
        s->at = brace + 1;
        char c = peek(s);
        s->at = brace;
        if (c == '"' || c == '}')
            return true;
        s->at++;
    }
    return false;
}

struct mcp_message mcp_message_next(struct str *rest)
{
    struct str text = rest->len ? *rest : STR_LIT(""); /* not NULL, to which nothing may be added */
    struct scan s = {text.at, text.at + text.len};
    struct mcp_message message = {0};
    *rest = STR_NONE;
    if (!find_object(&s))
        return unusable(MCP_MESSAGE_NOISE, STR_NONE, "it is no JSON object");
    const char *start = s.at;
    if (take_object(&s, &message)) {
        for (char c; (c = peek(&s)) == ',' || c == ']';) /* of a batch */
            s.at++;
        *rest = (struct str){s.at, (size_t)(s.end - s.at)};
        return classify(message);
    }
    /* A broken response still ends its call; a server's own request has an id, too, but ends none. What is
     * inside of a broken object is never a message: a tool's data would answer for the server. */
    struct str broken = {start, (size_t)(s.end - start)};
    struct str id = message.method.at ? STR_NONE : json_recover_id(broken);
    struct mcp_message bad = unusable(MCP_MESSAGE_MALFORMED, id, "it is no valid JSON");
    bad.is_response = !message.method.at && str_contains_nocase(broken, STR_LIT("\"jsonrpc\""));
    return bad;
}

struct mcp_message mcp_message_scan(struct str text)
{
    struct str rest = text;
    return mcp_message_next(&rest);
}

bool mcp_message_begins(struct str line)
{
    struct str text = str_trim(json_skip_byte_order_mark(line)); /* some runtimes write one first */
    return text.len && (text.at[0] == '{' || text.at[0] == '[');
}

bool mcp_message_depth(struct str line, int *depth)
{
    struct scan s = {line.at, line.at + line.len};
    *depth = 0;
    while (s.at < s.end) {
        char c = *s.at;
        if (c == '"') {
            if (!skip_string(&s))
                return false;
            continue;
        }
        s.at++;
        *depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
    return true;
}

bool mcp_message_is(const struct mcp_message *message, const char *method)
{
    const char *p = message->method.at, *end = p + message->method.len;
    for (; p < end && *method; p++, method++) {
        p += *p == '\\' && p + 1 < end && p[1] == '/';
        if (*p != *method)
            return false;
    }
    return p == end && !*method;
}

uint64_t mcp_message_own_id(struct str id)
{
    uint64_t n = 0;
    if (id.len > 2 && id.at[0] == '"' && id.at[id.len - 1] == '"') /* some servers echo it as a string */
        id = (struct str){id.at + 1, id.len - 2};
    id = whole_number(id);
    if (id.len > OWN_ID_DIGITS)
        return 0;
    for (size_t i = 0; i < id.len; i++) {
        if (id.at[i] < '0' || id.at[i] > '9')
            return 0;
        n = n * 10 + (uint64_t)(id.at[i] - '0');
    }
    return n;
}

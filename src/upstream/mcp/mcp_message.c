/*
 * A scan, not a parser: it knows strings and brackets, takes a value whole and
 * leaves it to json/parse.h to judge it. What the scan cannot make sense of is
 * broken; what it accepts and is no JSON inside of a value is found then.
 */
#include "upstream/mcp/mcp_message.h"

#include "json/parse.h"

#define ID_MAX_BYTES  256u /* of a server's own request; it is echoed */
#define OWN_ID_DIGITS 16u

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

struct scan {
    const char *at, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char peek(struct scan *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

/* An odd number of them before a quote escapes it. */
static bool is_escaped(const char *start, const char *quote)
{
    const char *p = quote;
    while (p > start && p[-1] == '\\')
        p--;
    return (quote - p) & 1;
}

/* From its opening quote to behind its closing one; false: nothing closes it. */
static bool skip_string(struct scan *s)
{
    const char *start = ++s->at, *quote = start;
    while ((quote = memchr(quote, '"', (size_t)(s->end - quote)))) {
        if (!is_escaped(start, quote)) {
            s->at = quote + 1;
            return true;
        }
        quote++;
    }
    s->at = s->end;
    return false;
}

static bool skip_nested(struct scan *s)
{
    int depth = 0;
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '"') {
            if (!skip_string(s))
                return false;
            continue;
        }
        s->at++;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth == 0)
            return true;
    }
    return false;
}

static bool skip_word(struct scan *s)
{
    const char *start = s->at;
    while (s->at < s->end && *s->at != ',' && *s->at != '}' && *s->at != ']' && !is_space(*s->at))
        s->at++;
    return s->at > start && s->at < s->end;
}

static bool take_value(struct scan *s, struct str *value)
{
    char c = peek(s);
    const char *start = s->at;
    bool whole = c == '"' ? skip_string(s) : c == '{' || c == '[' ? skip_nested(s) : skip_word(s);
    *value = (struct str){start, (size_t)(s->at - start)};
    return whole;
}

static struct str *place_of(struct mcp_message *line, struct str key)
{
    return str_is(key, "\"id\"")       ? &line->id
           : str_is(key, "\"method\"") ? &line->method
           : str_is(key, "\"params\"") ? &line->params
           : str_is(key, "\"result\"") ? &line->result
           : str_is(key, "\"error\"")  ? &line->error
                                       : NULL;
}

/* One member, from its key to what follows it. Two with one name would let a server say two things at once.
 */
static bool take_member(struct scan *s, struct mcp_message *line)
{
    struct str key, value;
    if (peek(s) != '"' || !take_value(s, &key) || peek(s) != ':')
        return false;
    s->at++;
    struct str *place = place_of(line, key);
    if (!take_value(s, &value) || (place && place->at))
        return false;
    if (place)
        *place = value;
    return true;
}

static bool take_members(struct scan *s, struct mcp_message *line)
{
    s->at++;
    if (peek(s) == '}')
        return true;
    while (take_member(s, line)) {
        char c = peek(s);
        if (c == '}')
            return true;
        if (c != ',')
            return false;
        s->at++;
    }
    return false;
}

static bool is_integer(struct str text)
{
    size_t i = text.len && text.at[0] == '-';
    if (i == text.len)
        return false;
    for (; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return true;
}

static bool is_id(struct str text)
{
    return text.len && text.len <= ID_MAX_BYTES && (text.at[0] == '"' || is_integer(text));
}

static void drop_null(struct str *value)
{
    if (str_is(*value, "null"))
        *value = STR_NONE;
}

static struct mcp_message unusable(enum mcp_message_kind kind, const char *trouble)
{
    return (struct mcp_message){.kind = kind, .trouble = trouble};
}

/* `error: null` beside a result is what some servers send; `id: null` says nothing. */
static struct mcp_message judge(struct mcp_message line)
{
    drop_null(&line.error);
    drop_null(&line.id);
    bool named = line.method.len > 2 && line.method.at[0] == '"';
    bool answers = line.result.len || line.error.len;
    if (line.id.len && !is_id(line.id))
        return unusable(MCP_MESSAGE_MALFORMED, "its id is neither a string nor an integer");
    if (named && !answers) {
        line.method = (struct str){line.method.at + 1, line.method.len - 2};
        line.kind = line.id.len ? MCP_MESSAGE_REQUEST : MCP_MESSAGE_NOTIFICATION;
        return line;
    }
    if (!line.id.len)
        return unusable(MCP_MESSAGE_MALFORMED, "it has neither an id nor a method");
    if (!answers) {
        struct mcp_message broken = unusable(MCP_MESSAGE_MALFORMED, "it has neither result nor error");
        broken.id = line.id;
        return broken;
    }
    line.kind = MCP_MESSAGE_RESPONSE;
    return line;
}

/* What was cut off or garbled may still tell whom it was for. A server's own request is not an answer. */
static struct mcp_message save(struct str text, const struct mcp_message *read)
{
    struct mcp_message line = unusable(MCP_MESSAGE_MALFORMED, "it is no valid JSON");
    if (!read->method.at)
        line.id = json_recover_id(text);
    return line;
}

struct mcp_message mcp_message_scan(struct str text)
{
    struct scan s = {text.at, text.at + text.len};
    struct mcp_message line = {0};
    if (str_starts(text, BYTE_ORDER_MARK)) /* what some runtimes write before all else */
        s.at += sizeof(BYTE_ORDER_MARK) - 1;
    if (peek(&s) != '{')
        return unusable(MCP_MESSAGE_NOISE, "it is no JSON object");
    const char *start = s.at;
    bool whole = take_members(&s, &line);
    if (whole)
        s.at++;
    if (whole && peek(&s) == '\0' && s.at == s.end)
        return judge(line);
    if (s.at == start + 1 || !memchr(start, '"', (size_t)(s.end - start)))
        return unusable(MCP_MESSAGE_NOISE, "it is no JSON object");
    return save(text, &line);
}

bool mcp_message_is(const struct mcp_message *line, const char *method)
{
    const char *p = line->method.at, *end = p + line->method.len;
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
    if (!id.len || id.len > OWN_ID_DIGITS)
        return 0;
    for (size_t i = 0; i < id.len; i++) {
        if (id.at[i] < '0' || id.at[i] > '9')
            return 0;
        n = n * 10 + (uint64_t)(id.at[i] - '0');
    }
    return n;
}

/* Phrases, in tables. Each was met in answers of real servers; a word alone ("timeout", "failed") says
 * nothing.
 */
#include "result/failure_envelope_internal.h"

#define LATER_MAX_BYTES  300u  /* a text that only says "later" is short */
#define FAILED_MAX_BYTES 300u  /* likewise one that begins with "Failed to" */
#define PHRASE_MAX_BYTES 2000u /* of a message, where phrases are looked for */

struct phrase {
    const char *text, *code;
};

/* ---- reading ---------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins(struct str text, const char *with)
{
    size_t n = strlen(with);
    if (text.len < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(text.at[i]) != with[i])
            return false;
    return true;
}

static bool has(struct str text, const char *phrase)
{
    return str_contains_nocase(text, str_of(phrase));
}

/* Of several: the code of the first that stands in it. */
static const char *code_of(struct str text, const struct phrase *phrases, size_t count,
                           bool (*is)(struct str, const char *))
{
    for (size_t i = 0; i < count; i++)
        if (is(text, phrases[i].text))
            return phrases[i].code;
    return NULL;
}

static struct str first_line(struct str text)
{
    const char *end = memchr(text.at, '\n', text.len);
    return end ? (struct str){text.at, (size_t)(end - text.at)} : text;
}

/* ---- failures ----------------------------------------------------------------- */

static const struct phrase failures[] = {
    {"error: ", "error_text"},
    {"error executing ", "error_text"},
    {"error calling ", "error_text"},
    {"error processing ", "error_text"},
    {"error invoking ", "error_text"},
    {"input validation error: ", "error_text"},
    {"mcp error -", "error_text"},
    {"tool execution failed", "error_text"},
    {"traceback (most recent call last):", "error_text"},
    {"internal server error", "error_text"},
};

/* Short texts that say no more than that it is too early. */
static const struct phrase laters[] = {
    {"rate limit", "error_text"},          {"too many requests", "error_text"},
    {"service unavailable", "error_text"}, {"tool call timed out", "error_text"},
    {"request timed out", "error_text"},   {"503 service", "error_text"},
    {"429 too many", "error_text"},
};

/* "Failed to …": what tools do. People fail to appear, too. */
static const char *const verbs[] = {"retrieve", "fetch",   "get",    "load",  "read",       "write",
                                    "open",     "connect", "find",   "parse", "initialize", "launch",
                                    "list",     "create",  "delete", "send",  "update",     "execute",
                                    "download", "query",   "search"};

static bool failed_to(struct str text)
{
    static const char start[] = "failed to ";
    if (!begins(text, start) || text.len > FAILED_MAX_BYTES || memchr(text.at, '\n', text.len))
        return false;
    struct str rest = str_from(text, sizeof(start) - 1);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        size_t n = strlen(verbs[i]);
        if (begins(rest, verbs[i]) && rest.len > n && rest.at[n] == ' ')
            return true;
    }
    return false;
}

/* A file of errors, line by line, is a result. */
static bool is_log(struct str text)
{
    size_t lines = 0, errors = 0;
    for (size_t i = 0; i < text.len; i++)
        if (i == 0 || text.at[i - 1] == '\n') {
            lines++;
            errors += begins(str_from(text, i), "error");
        }
    return errors > 1 || lines > ENVELOPE_LINES_MAX;
}

const char *envelope_text_failure(struct str text)
{
    text = str_trim(text);
    if (!text.len || text.len > ENVELOPE_TEXT_MAX_BYTES)
        return NULL;
    if (failed_to(text))
        return "error_text";
    const char *code = code_of(text, failures, sizeof(failures) / sizeof(*failures), begins);
    if (!code && text.len <= LATER_MAX_BYTES && !memchr(text.at, '\n', text.len))
        code = code_of(text, laters, sizeof(laters) / sizeof(*laters), begins);
    return code && !is_log(text) ? code : NULL;
}

/* ---- what passes --------------------------------------------------------------- */

static const struct phrase passing[] = {
    {"rate limit", "rate_limited"},
    {"rate-limit", "rate_limited"},
    {"ratelimit", "rate_limited"},
    {"too many requests", "rate_limited"},
    {"requests too quickly", "rate_limited"},
    {"throttl", "rate_limited"},
    {"timed out", "timed_out"},
    {"request timeout", "timed_out"},
    {"connection timeout", "timed_out"},
    {"connect timeout", "timed_out"},
    {"read timeout", "timed_out"},
    {"gateway timeout", "timed_out"},
    {"gateway time-out", "timed_out"},
    {"deadline exceeded", "timed_out"},
    {"etimedout", "timed_out"},
    {"service unavailable", "overloaded"},
    {"temporarily unavailable", "overloaded"},
    {"temporarily overloaded", "overloaded"},
    {"server is overloaded", "overloaded"},
    {"overloaded_error", "overloaded"},
    {"bad gateway", "overloaded"},
    {"connection reset", "connection_lost"},
    {"econnreset", "connection_lost"},
    {"eai_again", "connection_lost"},
    {"socket hang up", "connection_lost"},
    {"database is locked", "busy"},
    {"resource temporarily", "busy"},
    {"try again later", "later"},
    {"try again in a", "later"},
    {"try again shortly", "later"},
    {"retry later", "later"},
};

const char *envelope_status_transient(int64_t status)
{
    switch (status) {
    case 408:
    case 504:
        return "timed_out";
    case 425:
    case 429:
        return "rate_limited";
    case 502:
    case 503:
    case 529:
        return "overloaded";
    default:
        return NULL;
    }
}

/* "HTTP 503", "status code: 429", "Error: 503": a number alone may be anything. */
static const char *status_in(struct str text)
{
    static const char *const before[] = {"status", "code", "http", "error", "http/1.1", "http/2"};
    struct str word = STR_NONE;
    for (size_t i = 0; i < text.len;) {
        size_t from = i;
        while (i < text.len && (is_letter(text.at[i]) || is_digit(text.at[i]) || text.at[i] == '/' ||
                                (text.at[i] == '.' && i + 1 < text.len && is_digit(text.at[i + 1]))))
            i++;
        struct str now = {text.at + from, i - from};
        if (now.len == 3 && is_digit(now.at[0]) && is_digit(now.at[1]) && is_digit(now.at[2])) {
            int64_t status = (now.at[0] - '0') * 100 + (now.at[1] - '0') * 10 + (now.at[2] - '0');
            for (size_t b = 0; b < sizeof(before) / sizeof(*before); b++)
                if (word.len == strlen(before[b]) && begins(word, before[b]) &&
                    envelope_status_transient(status))
                    return envelope_status_transient(status);
        }
        if (now.len)
            word = now;
        else
            i++;
    }
    return NULL;
}

const char *envelope_text_transient(struct str text)
{
    text = str_cut(text, PHRASE_MAX_BYTES);
    const char *code = code_of(text, passing, sizeof(passing) / sizeof(*passing), has);
    if (!code)
        code = status_in(text);
    return !code && envelope_text_wait(text) >= 0 ? "later" : code;
}

/* ---- how long -------------------------------------------------------------------- */

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {{"millisecond", 1}, {"msec", 1},       {"ms", 1},    {"min", 60000}, {"second", 1000},
             {"sec", 1000},      {"hour", 3600000}, {"m", 60000}, {"s", 1000},    {"h", 3600000}};

int64_t envelope_duration(struct str text)
{
    double n = 0, scale = 0;
    size_t i = 0;
    text = str_trim(text);
    for (; i < text.len && i < 16 && (is_digit(text.at[i]) || (text.at[i] == '.' && scale == 0)); i++) {
        if (text.at[i] == '.') {
            scale = 1;
            continue;
        }
        n = n * 10 + (text.at[i] - '0');
        scale *= 10;
    }
    if (i == 0 || text.at[0] == '.')
        return -1;
    struct str unit = str_trim(str_from(text, i));
    int64_t ms = 1000;
    for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
        size_t len = strlen(units[u].name);
        bool ends = unit.len == len || (unit.len > len && (len > 2 || !is_letter(unit.at[len])));
        if (begins(unit, units[u].name) && ends) {
            ms = units[u].ms;
            break;
        }
    }
    n = (scale > 1 ? n / scale : n) * (double)ms / 1000.0;
    if (n > ENVELOPE_WAIT_MAX_S)
        return ENVELOPE_WAIT_MAX_S;
    int64_t whole = (int64_t)n;
    return (double)whole < n ? whole + 1 : whole;
}

int64_t envelope_text_wait(struct str text)
{
    static const char *const before[] = {"retry after",     "retry-after:", "try again in", "retry in",
                                         "try again after", "please wait",  "wait for"};
    text = str_cut(text, PHRASE_MAX_BYTES);
    for (size_t i = 0; i < text.len; i++)
        for (size_t b = 0; b < sizeof(before) / sizeof(*before); b++) {
            if (!begins(str_from(text, i), before[b]))
                continue;
            int64_t wait = envelope_duration(str_from(text, i + strlen(before[b])));
            if (wait >= 0)
                return wait;
        }
    return -1;
}

/* ---- questions -------------------------------------------------------------------- */

bool envelope_text_asks(struct str text)
{
    static const char *const several[] = {"multiple matches", "multiple results match", "multiple contacts",
                                          "more than one ",   "several matches",        "ambiguous"};
    static const char *const which[] = {"ask the user",   "which one",     "which of",
                                        "please clarify", "please choose", "please select"};
    struct str start = first_line(str_trim(text));
    bool found = false;
    if (begins(start, "error: "))
        start = str_from(start, 7);
    for (size_t i = 0; i < sizeof(several) / sizeof(*several); i++)
        found = found || begins(start, several[i]);
    for (size_t i = 0; found && i < sizeof(which) / sizeof(*which); i++)
        if (has(str_cut(text, PHRASE_MAX_BYTES), which[i]))
            return true;
    return false;
}

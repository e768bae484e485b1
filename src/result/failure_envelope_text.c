/* Tables of phrases, each met in answers of real servers. A word alone ("timeout", "failed") decides nothing.
 */
#include "result/failure_envelope_text.h"

#include "result/failure_envelope.h"

#define LATER_MAX_BYTES  300u  /* of a text that only says "later" */
#define FAILED_MAX_BYTES 300u  /* of a text that begins with "Failed to" */
#define PHRASE_MAX_BYTES 2000u /* of a message that are searched for phrases */

static bool begins_with_one(struct str text, const char *const *starts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_starts_nocase(text, starts[i]))
            return true;
    return false;
}
#define BEGINS_WITH_ONE(text, starts) begins_with_one(text, starts, sizeof(starts) / sizeof(*(starts)))

static const char *const failures[] = {"error: ",
                                       "error executing ",
                                       "error calling ",
                                       "error processing ",
                                       "error invoking ",
                                       "input validation error: ",
                                       "mcp error -",
                                       "tool execution failed",
                                       "internal server error",
                                       "traceback (most recent call last):"};

/* Short texts that only say "not now". */
static const char *const laters[] = {"rate limit",          "too many requests", "service unavailable",
                                     "tool call timed out", "request timed out", "503 service",
                                     "429 too many"};

/* "Failed to …" by a tool; a person may fail to appear, too. */
static const char *const verbs[] = {"retrieve", "fetch",   "get",    "load",  "read",       "write",
                                    "open",     "connect", "find",   "parse", "initialize", "launch",
                                    "list",     "create",  "delete", "send",  "update",     "execute",
                                    "download", "query",   "search"};

static bool failed_to(struct str text)
{
    static const char start[] = "failed to ";
    if (!str_starts_nocase(text, start) || text.len > FAILED_MAX_BYTES || memchr(text.at, '\n', text.len))
        return false;
    struct str rest = str_from(text, sizeof(start) - 1);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        size_t n = strlen(verbs[i]);
        if (str_starts_nocase(rest, verbs[i]) && rest.len > n && rest.at[n] == ' ')
            return true;
    }
    return false;
}

const char *envelope_text_failure(struct str text)
{
    text = str_trim(text);
    if (!text.len || text.len > ENVELOPE_TEXT_MAX_BYTES)
        return NULL;
    if (failed_to(text))
        return "error_text";
    bool is_later =
        text.len <= LATER_MAX_BYTES && !memchr(text.at, '\n', text.len) && BEGINS_WITH_ONE(text, laters);
    if (!is_later && !BEGINS_WITH_ONE(text, failures))
        return NULL;
    size_t lines = 0, errors = 0;
    for (size_t i = 0; i < text.len; i++)
        if (i == 0 || text.at[i - 1] == '\n') {
            lines++;
            errors += str_starts_nocase(str_from(text, i), "error");
        }
    return errors <= 1 && lines <= ENVELOPE_LINES_MAX ? "error_text" : NULL; /* else a log, which is data */
}

/* The first phrase found decides. */
static const struct {
    const char *code, *phrases[12];
} transient[] = {
    {"rate_limited",
     {"rate limit", "rate-limit", "ratelimit", "too many requests", "requests too quickly", "throttl"}},
    {"timed_out",
     {"timed out", "request timeout", "connection timeout", "connect timeout", "read timeout",
      "gateway timeout", "gateway time-out", "deadline exceeded", "etimedout"}},
    {"overloaded",
     {"service unavailable", "temporarily unavailable", "temporarily overloaded", "server is overloaded",
      "overloaded_error", "bad gateway"}},
    {"connection_lost", {"connection reset", "econnreset", "eai_again", "socket hang up"}},
    {"busy", {"database is locked", "resource temporarily"}},
    {"later", {"try again later", "try again in a", "try again shortly", "retry later"}},
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

/* "HTTP 503", "status code: 429", "Error: 503"; a number alone may mean anything. */
static const char *status_in(struct str text)
{
    static const char *const before[] = {"status", "code", "http", "error", "http/1.1", "http/2"};
    struct str word = STR_NONE;
    for (size_t i = 0; i < text.len;) {
        size_t from = i;
        while (i < text.len &&
               (ascii_is_letter(text.at[i]) || ascii_is_digit(text.at[i]) || text.at[i] == '/' ||
                (text.at[i] == '.' && i + 1 < text.len && ascii_is_digit(text.at[i + 1]))))
            i++;
        struct str now = {text.at + from, i - from};
        if (now.len == 3 && ascii_is_digit(now.at[0]) && ascii_is_digit(now.at[1]) &&
            ascii_is_digit(now.at[2])) {
            int64_t status = (now.at[0] - '0') * 100 + (now.at[1] - '0') * 10 + (now.at[2] - '0');
            for (size_t b = 0; b < sizeof(before) / sizeof(*before); b++)
                if (word.len == strlen(before[b]) && str_starts_nocase(word, before[b]) &&
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
    const char *code = NULL;
    for (size_t i = 0; !code && i < sizeof(transient) / sizeof(*transient); i++)
        for (size_t k = 0; !code && transient[i].phrases[k]; k++)
            if (str_contains_nocase(text, str_of(transient[i].phrases[k])))
                code = transient[i].code;
    if (!code)
        code = status_in(text);
    return !code && envelope_text_wait(text) >= 0 ? "later" : code;
}

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
    for (; i < text.len && i < 16 && (ascii_is_digit(text.at[i]) || (text.at[i] == '.' && scale == 0)); i++) {
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
        bool ends = unit.len == len || (unit.len > len && (len > 2 || !ascii_is_letter(unit.at[len])));
        if (str_starts_nocase(unit, units[u].name) && ends) {
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
            if (!str_starts_nocase(str_from(text, i), before[b]))
                continue;
            int64_t wait = envelope_duration(str_from(text, i + strlen(before[b])));
            if (wait >= 0)
                return wait;
        }
    return -1;
}

bool envelope_text_asks(struct str text)
{
    static const char *const several[] = {"multiple matches", "multiple results match", "multiple contacts",
                                          "more than one ",   "several matches",        "ambiguous"};
    static const char *const which[] = {"ask the user",   "which one",     "which of",
                                        "please clarify", "please choose", "please select"};
    struct str start = str_trim(text);
    if (str_starts_nocase(start, "error: "))
        start = str_from(start, 7);
    bool asks = false;
    for (size_t i = 0; BEGINS_WITH_ONE(start, several) && i < sizeof(which) / sizeof(*which); i++)
        asks |= str_contains_nocase(str_cut(text, PHRASE_MAX_BYTES), str_of(which[i]));
    return asks;
}

/* Tables of phrases, each met in answers of real servers. A word alone ("timeout") decides nothing. */

#include "result/failure_envelope.h"

#include <math.h>

#define LATER_MAX_BYTES  300u  /* of a text that only says "later" */
#define FAILED_MAX_BYTES 300u  /* of a text that begins with "Failed to" */
#define PAGE_MAX_BYTES   4000u /* of an error page of HTML */
#define EXIT_HEAD_LINES  12u   /* lines of a shell's answer that are searched for its exit code, */
#define EXIT_TAIL_BYTES  300u  /* and bytes at its end */
#define EXIT_DIGITS      9u

#define TRACEBACK_START "traceback (most recent call last):"

/* "\xe2\x9d\x8c" is a red cross. */
static const char *const failures[] = {
    /* clang-format off */
    "error: ", "error:\n", "error - ", "error code", "error occurred", "error (", "error[",
    "an error occurred", "an unexpected error", "unexpected error", "input validation error: ",
    "validation error", "mcp error -", "mcp error: ", "api error", "http error", "tool error: ",
    "exception: ", "fatal: ", "tool execution failed", "command failed", "execution failed",
    "request failed", "operation failed", "authentication failed", "internal server error",
    "access denied", "permission denied", "access to this resource is denied", "invalid api key",
    "invalid api token", "invalid access token", "invalid or expired ", "unauthorized",
    "401 unauthorized", "403 forbidden", "404 not found", "\xe2\x9d\x8c", TRACEBACK_START,
    "<tool_use_error>", "no replacement was performed", "missing required ",
    /* clang-format on */
};

/* Short texts that only say "not now". */
static const char *const laters[] = {"rate limit",          "too many requests", "service unavailable",
                                     "tool call timed out", "request timed out", "503 service",
                                     "429 too many"};

/* "Failed to …" by a tool; a person may fail to appear, too. */
static const char *const verbs[] = {
    "retriev", "fetch",   "get",     "load",    "read",     "writ",    "open",    "connect", "find",
    "pars",    "initial", "launch",  "list",    "creat",    "delet",   "send",    "updat",   "execut",
    "downloa", "query",   "search",  "access",  "add",      "apply",   "authent", "build",   "call",
    "captur",  "click",   "clon",    "commit",  "compile",  "complet", "convert", "copy",    "decod",
    "edit",    "encod",   "establi", "evaluat", "extract",  "format",  "generat", "import",  "insert",
    "install", "invok",   "join",    "lookup",  "make",     "making",  "merg",    "mov",     "navigat",
    "obtain",  "perform", "post",    "process", "publish",  "push",    "queri",   "reach",   "remov",
    "renam",   "render",  "reques",  "resolv",  "run",      "sav",     "schedul", "scrap",   "select",
    "set",     "start",   "stop",    "stor",    "submit",   "upload",  "validat", "verif",   "calculat",
    "communi", "analyz",  "export",  "comput",  "determin", "locate",  "log in",  "login",   "handl"};

/* The rest begins with such a verb in any of its forms: "to fetch", "fetching". */
static bool begins_with_verb(struct str rest, bool gerund)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        size_t end = strlen(verbs[i]);
        if (!str_starts_nocase(rest, verbs[i]))
            continue;
        while (end < rest.len && ascii_is_letter(rest.at[end]))
            end++;
        bool is_gerund = end > 3 && str_starts_nocase(str_from(rest, end - 3), "ing");
        if (is_gerund == gerund && end < rest.len && (rest.at[end] == ' ' || rest.at[end] == ':'))
            return true;
    }
    return false;
}

/* "Failed to fetch …", "Unable to connect …", "Could not open …": one short line, or "…: " and the reason. */
static bool failed_to(struct str text)
{
    static const char *const starts[] = {"failed to ", "unable to ", "could not ", "couldn't ",
                                         "failure to "};
    struct str rest = text, line = str_split(&rest, '\n');
    if (line.len > FAILED_MAX_BYTES || (line.len < text.len && !str_has(line, ':')))
        return false;
    size_t start = RESULT_BEGINNING(text, starts);
    return start && begins_with_verb(str_from(text, start), false);
}

/* "Error fetching page: …", "Error while reading …", "Error 404: …", "Error in f: …": "Error" and what
 * failed. A heading such as "Error handling in Go" has no colon. */
static bool is_error_line(struct str text)
{
    static const char *const links[] = {"while ", "when ", "during ", "in ", "from ", "at ", "with "};
    struct str after = text, line = str_split(&after, '\n'), rest = str_from(line, 6);
    if (!str_starts_nocase(text, "error ") || !rest.len)
        return false;
    bool has_colon = str_has(line, ':');
    if (ascii_is_digit(rest.at[0]) || begins_with_verb(rest, true))
        return has_colon || !str_starts_nocase(rest, "handling");
    return has_colon && RESULT_BEGINNING(rest, links);
}

/* "ValueError: no date", "requests.exceptions.HTTPError: 404 …": the last line of a Python trace. */
static bool is_exception(struct str text)
{
    size_t end = 0;
    while (end < text.len && (ascii_is_letter(text.at[end]) || text.at[end] == '.' || text.at[end] == '_'))
        end++;
    bool named = (end > 5 && str_starts(str_from(text, end - 5), "Error")) ||
                 (end > 9 && str_starts(str_from(text, end - 9), "Exception"));
    return named && end + 1 < text.len && text.at[end] == ':' && text.at[end + 1] == ' ';
}

/* A log has several errors, a list of search results has lines that are links, a long text is data. */
static bool reads_as_data(struct str text)
{
    bool is_trace = str_starts_nocase(text, TRACEBACK_START);
    size_t lines = 0, errors = 0, links = 0;
    for (size_t i = 0; i < text.len; i++)
        if (i == 0 || text.at[i - 1] == '\n') {
            lines++;
            errors += str_starts_nocase(str_from(text, i), "error");
            links += str_starts(str_from(text, i), "http");
        }
    return errors > 1 || links || lines > (is_trace ? ENVELOPE_TRACE_LINES_MAX : ENVELOPE_LINES_MAX) ||
           text.len > (is_trace ? ENVELOPE_TRACE_MAX_BYTES : ENVELOPE_TEXT_MAX_BYTES);
}

/* The page of a proxy: "<title>502 Bad Gateway</title>". */
static bool is_error_page(struct str text)
{
    static const char title[] = "<title>";
    if (text.len > PAGE_MAX_BYTES ||
        !RESULT_BEGINNING(text, ((const char *const[]){"<html", "<!doctype html"})))
        return false;
    const char *at = memmem(text.at, text.len, title, strlen(title));
    const char *end = text.at + text.len;
    at = at ? at + strlen(title) : end;
    return end - at > 3 && (*at == '4' || *at == '5') && ascii_is_digit(at[1]) && ascii_is_digit(at[2]) &&
           at[3] == ' ';
}

/* "bash: foo: command not found", "/bin/sh: 1: foo: not found", and nothing else. */
static bool is_unknown_command(struct str text)
{
    static const char *const ends[] = {": command not found", ": not found"};
    static const char *const shells[] = {"sh", "bash", "zsh", "dash"};
    if (text.len > FAILED_MAX_BYTES || memchr(text.at, '\n', text.len))
        return false;
    struct str shell = {text.at, str_find(text, 0, ":")};
    const char *slash = memrchr(shell.at, '/', shell.len);
    if (slash)
        shell = str_from(shell, (size_t)(slash + 1 - shell.at));
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (text.len > strlen(ends[i]) && str_is(str_from(text, text.len - strlen(ends[i])), ends[i]))
            return i == 0 || STR_IS_ONE_OF(shell, shells);
    return false;
}

/* What follows the words with which a shell's tool tells the exit code, at the start of a line; -1: none. */
static int64_t exit_code_of(struct str line)
{
    static const char *const words[] = {"exit code: ", "process exited with code ", "exit status ",
                                        "<returncode>", "exited with code "};
    size_t start = RESULT_BEGINNING(line, words), digits = 0;
    struct str number = start ? str_from(line, start) : STR_NONE;
    int64_t code = 0;
    for (; digits < number.len && digits < EXIT_DIGITS && ascii_is_digit(number.at[digits]); digits++)
        code = code * 10 + (number.at[digits] - '0');
    return digits && (digits == number.len || !ascii_is_digit(number.at[digits])) ? code : -1;
}

bool envelope_text_exit(struct str text)
{
    static const char *const about[] = {"command:",         "directory:",           "chunk id:",
                                        "wall time",        "original token count", "signal:",
                                        "background pids:", "process group",        "total output lines"},
                             *const labels[] = {"output:", "stdout:",  "stderr:",
                                                "error:",  "<output>", "</output>"},
                             *const nothing[] = {"", "(empty)", "(none)", "(no output)"};
    int64_t code = -1;
    bool output = false;
    for (size_t number = 0; text.len; number++) {
        output |= number == EXIT_HEAD_LINES;
        if (number == EXIT_HEAD_LINES && text.len > EXIT_TAIL_BYTES) {
            text = str_from(text, text.len - EXIT_TAIL_BYTES);
            str_split(&text, '\n'); /* the line that the tail begins in is left out */
        }
        struct str line = str_trim(str_split(&text, '\n'));
        int64_t found = exit_code_of(line);
        if (found >= 0)
            code = found;
        if (found >= 0 || RESULT_BEGINNING(line, about))
            continue;
        for (size_t label; (label = RESULT_BEGINNING(line, labels));)
            line = str_trim(str_from(line, label));
        output |= !STR_IS_ONE_OF(line, nothing);
    }
    return code > 1 || (code == 1 && output);
}

const char *envelope_text_failure(struct str text)
{
    text = str_trim(text);
    if (!text.len || text.len > ENVELOPE_TRACE_MAX_BYTES)
        return NULL;
    bool is_later =
        text.len <= LATER_MAX_BYTES && !memchr(text.at, '\n', text.len) && RESULT_BEGINNING(text, laters);
    bool begins = is_later || RESULT_BEGINNING(text, failures) || failed_to(text) || is_error_line(text) ||
                  is_exception(text) || is_unknown_command(text) || is_error_page(text);
    return begins && !reads_as_data(text) ? "error_text" : NULL;
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
    {"server_error", {"internal server error"}},
    {"connection_lost", {"connection reset", "econnreset", "eai_again", "socket hang up"}},
    {"busy",
     {"database is locked", "resource temporarily", "index.lock", "lock wait timeout",
      "could not obtain lock", "deadlock detected", "resource busy", "file is locked", "table is locked"}},
    {"conflict", {"not a fast forward", "not a fast-forward", "non-fast-forward"}},
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
    case 501: /* not implemented */
    case 505: /* HTTP version not supported */
        return NULL;
    default:
        return status >= 500 && status <= 599 ? "server_error" : NULL;
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
            if (RESULT_NAME_IS(word, "", before) && envelope_status_transient(status))
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
    text = str_cut(text, ENVELOPE_PHRASE_BYTES);
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

int64_t envelope_wait_of(double seconds)
{
    return (int64_t)ceil(fmin(seconds, ENVELOPE_WAIT_MAX_S));
}

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
    return envelope_wait_of((scale > 1 ? n / scale : n) * (double)ms / 1000.0);
}

int64_t envelope_text_wait(struct str text)
{
    static const char *const before[] = {"retry after",     "retry-after:", "try again in", "retry in",
                                         "try again after", "please wait",  "wait for"};
    text = str_cut(text, ENVELOPE_PHRASE_BYTES);
    int64_t wait = -1;
    for (size_t i = 0; i < text.len && wait < 0; i++) {
        size_t start = RESULT_BEGINNING(str_from(text, i), before);
        if (start)
            wait = envelope_duration(str_from(text, i + start));
    }
    return wait;
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
    return RESULT_BEGINNING(start, several) && RESULT_HAS(str_cut(text, ENVELOPE_PHRASE_BYTES), which);
}

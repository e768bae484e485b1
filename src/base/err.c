/* The table of wire names, and the formatting of messages. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const err_names[] = {
    [0] = "ok",           [1] = "limit_exceeded", [2] = "parse_error", [3] = "schema_error",
    [4] = "policy_error", [5] = "config_error",   [6] = "io_error",    [7] = "not_found",
    [8] = "exists",       [9] = "timeout",        [10] = "closed",     [11] = "unavailable",
};

const char *err_name(enum err code)
{
    unsigned at = (unsigned)-code;
    return at < sizeof(err_names) / sizeof(err_names[0]) ? err_names[at] : "unknown_error";
}

enum err err_set(struct why *why, enum err code, const char *format, ...)
{
    if (!why)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    return code;
}

void err_prefix(struct why *why, const char *prefix)
{
    if (!why)
        return;
    struct why old = *why;
    size_t max = sizeof(why->text) - 3;
    int n = snprintf(why->text, sizeof(why->text), "%.*s: ", (int)(max / 2), prefix);
    snprintf(why->text + n, sizeof(why->text) - (size_t)n, "%.*s", (int)(max - (size_t)n), old.text);
}

/* See diagnostics.h. The first line goes by the name that Lua knows the file by, as every error does. */
#include "sandbox/diagnostics.h"
#include "base/arena.h"
#include "base/buf.h"
#include "sandbox/sandbox.h"

#include <stdarg.h>
#include <stdio.h>

void diagnostics_add(struct complaints *complaints, int line, const char *format, ...)
{
    char text[DIAGNOSTICS_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct str one = arena_printf(complaints->arena, "%d: %s", line, text);
    for (size_t i = 0; i < complaints->count && i < DIAGNOSTICS_MAX; i++)
        if (str_eq(complaints->list[i], one))
            return;
    if (complaints->count < DIAGNOSTICS_MAX)
        complaints->list[complaints->count] = one;
    complaints->count++;
}

void diagnostics_raise(lua_State *L, const struct complaints *complaints)
{
    struct buf text = buf_in(complaints->arena);
    if (!complaints->count)
        return;
    for (size_t i = 0; i < complaints->count && i < DIAGNOSTICS_MAX; i++)
        buf_printf(&text, "%s%s:" STR_FMT, i ? "\n" : "",
                   i ? complaints->file : sandbox_chunk(complaints->file), STR_ARG(complaints->list[i]));
    if (complaints->count > DIAGNOSTICS_MAX)
        buf_printf(&text, "\n%s: and %zu more", complaints->file, complaints->count - DIAGNOSTICS_MAX);
    lua_pushlstring(L, text.at, text.len);
    lua_error(L);
}

/* A complaint begins on a new line with the same file as the one before. */
struct str diagnostics_next(struct str *text)
{
    const char *colon = memchr(text->at, ':', text->len);
    size_t file = colon ? (size_t)(colon - text->at) + 1 : text->len, end = text->len;
    for (size_t i = 0; i < text->len; i++) {
        if (text->at[i] != '\n' || text->len - i - 1 < file || memcmp(text->at + i + 1, text->at, file) != 0)
            continue;
        end = i;
        break;
    }
    struct str first = {text->at, end};
    *text = str_from(*text, end + 1);
    return first;
}

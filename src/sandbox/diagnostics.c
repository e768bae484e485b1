/* The first line of the error begins with the chunk name, as every error of Lua does. */
#include "sandbox/diagnostics.h"
#include "base/arena.h"
#include "base/buf.h"
#include "sandbox/sandbox.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>

void diagnostics_add(struct diagnostics *diagnostics, int line, const char *format, ...)
{
    char text[DIAGNOSTICS_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct str one = arena_printf(diagnostics->arena, "%d: %s", line, text);
    for (size_t i = 0; i < diagnostics->count && i < DIAGNOSTICS_MAX; i++)
        if (str_eq(diagnostics->list[i], one))
            return;
    if (diagnostics->count < DIAGNOSTICS_MAX)
        diagnostics->list[diagnostics->count] = one;
    diagnostics->count++;
}

void diagnostics_raise(lua_State *L, const struct diagnostics *diagnostics)
{
    struct buf text = buf_in(diagnostics->arena);
    if (!diagnostics->count)
        return;
    for (size_t i = 0; i < diagnostics->count && i < DIAGNOSTICS_MAX; i++)
        buf_printf(&text, "%s%s:" STR_FMT, i ? "\n" : "",
                   i ? diagnostics->file : sandbox_chunk(diagnostics->file), STR_ARG(diagnostics->list[i]));
    if (diagnostics->count > DIAGNOSTICS_MAX)
        buf_printf(&text, "\n%s: and %zu more", diagnostics->file, diagnostics->count - DIAGNOSTICS_MAX);
    lua_pushlstring(L, text.at, text.len);
    lua_error(L);
}

/* A problem begins on a new line with the same file as the one before. */
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

void diagnostics_push_value(lua_State *L, int at)
{
    struct str text;
    switch (lua_type(L, at)) {
    case LUA_TNONE:
    case LUA_TNIL:
        lua_pushliteral(L, "nothing");
        break;
    case LUA_TSTRING:
        text.at = lua_tolstring(L, at, &text.len);
        text = str_cut(text, 40);
        lua_pushliteral(L, "\"");
        lua_pushlstring(L, text.at, text.len);
        lua_pushliteral(L, "\"");
        lua_concat(L, 3);
        break;
    case LUA_TNUMBER:
        lua_pushvalue(L, at);
        lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, at) ? "true" : "false");
        break;
    case LUA_TLIGHTUSERDATA:
        lua_pushliteral(L, "null");
        break;
    default:
        lua_pushfstring(L, "a %s", luaL_typename(L, at));
    }
}

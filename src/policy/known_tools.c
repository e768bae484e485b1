/* The table is read once, when somebody first asks, by a Lua state of its own. */
#include "policy/known_tools.h"

#include "base/embedded.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

#define NAMES_MAX 128u /* of one list */

static struct {
    struct str names[NAMES_MAX];
    size_t count;
} lists[KNOWN_LISTS];

static const char *const fields[KNOWN_LISTS] = {[KNOWN_READS] = "reads",
                                                [KNOWN_NOTES] = "notes",
                                                [KNOWN_EDITS] = "edits",
                                                [KNOWN_SHELLS] = "shells",
                                                [KNOWN_POLLS] = "polls",
                                                [KNOWN_WATCHES] = "watches",
                                                [KNOWN_STATES] = "states",
                                                [KNOWN_STATE_CODES] = "state_codes",
                                                [KNOWN_STEPS] = "steps",
                                                [KNOWN_STEP_VERBS] = "step_verbs",
                                                [KNOWN_STEP_ENDS] = "step_ends",
                                                [KNOWN_LABELS] = "labels",
                                                [KNOWN_COMMAND_LABELS] = "command_labels"};

static void read_table(void)
{
    struct str source = embedded_text("known_tools.lua");
    lua_State *L = luaL_newstate(); /* kept: the names are its strings */
    if (!L || luaL_loadbuffer(L, source.at, source.len, "=known_tools.lua") || lua_pcall(L, 0, 1, 0)) {
        fprintf(stderr, "toolgate: known_tools.lua: %s\n", L ? lua_tostring(L, -1) : "no memory");
        abort(); /* an error in the embedded file is one of the build */
    }
    for (int i = KNOWN_READS; i < KNOWN_LISTS; i++) {
        lua_getfield(L, 1, fields[i]);
        lists[i].count = lua_objlen(L, 2) < NAMES_MAX ? lua_objlen(L, 2) : NAMES_MAX;
        for (size_t at = 0; at < lists[i].count; at++) {
            lua_rawgeti(L, 2, (int)at + 1);
            lists[i].names[at].at = lua_tolstring(L, -1, &lists[i].names[at].len);
            lua_pop(L, 1);
        }
        lua_settop(L, 1);
    }
}

const struct str *known_tools_list(enum known_list list, size_t *count)
{
    if (!lists[KNOWN_READS].count)
        read_table();
    *count = lists[list].count;
    return lists[list].names;
}

bool known_tools_lists(enum known_list list, struct str name)
{
    size_t count;
    const struct str *names = known_tools_list(list, &count);
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

bool known_tools_watches(struct str command)
{
    size_t count;
    const struct str *names = known_tools_list(KNOWN_WATCHES, &count);
    command = str_trim(command);
    while (str_starts(command, "cd ")) { /* what stands behind "cd DIR &&" */
        size_t end = 3;
        while (end < command.len && !strchr("&;\n", command.at[end]))
            end++;
        command = str_trim(str_from(command, end + (str_starts(str_from(command, end), "&&") ? 2 : 1)));
    }
    for (size_t i = 0; i < count; i++)
        if (command.len >= names[i].len && memcmp(command.at, names[i].at, names[i].len) == 0 &&
            (command.len == names[i].len || strchr(" \t\n;|&>", command.at[names[i].len])))
            return true;
    return str_starts(command, "sleep ") && command.len > 6 && isdigit((unsigned char)command.at[6]);
}

bool known_tools_state(struct str word)
{
    char plain[16]; /* longer than any of them */
    size_t len = 0;
    for (size_t i = 0; i < word.len && len < sizeof(plain); i++)
        if (!strchr("_- ", word.at[i]))
            plain[len++] = (char)tolower((unsigned char)word.at[i]);
    return known_tools_lists(KNOWN_STATES, (struct str){plain, len});
}

enum known_tool known_tools_find(struct str name)
{
    for (int kind = KNOWN_READS; kind < KNOWN_KINDS; kind++)
        if (known_tools_lists((enum known_list)kind, name))
            return (enum known_tool)kind;
    return KNOWN_NOT;
}

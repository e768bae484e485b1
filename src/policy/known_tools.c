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

/* What stands behind "cd DIR &&". */
static struct str without_cd(struct str command)
{
    command = str_trim(command);
    for (size_t i = 3; str_starts(command, "cd ") && i + 1 < command.len; i++)
        if (memcmp(command.at + i, "&&", 2) == 0 || command.at[i] == ';' || command.at[i] == '\n')
            return str_trim(str_from(command, i + (command.at[i] == '&' ? 2 : 1)));
    return command;
}

bool known_tools_watches(struct str command)
{
    static const char ends[] = " \t\n;|&>";
    size_t count;
    const struct str *names = known_tools_list(KNOWN_WATCHES, &count);
    command = without_cd(command);
    if (str_starts(command, "sleep ") && command.len > 6 && isdigit((unsigned char)command.at[6]))
        return true;
    for (size_t i = 0; i < count; i++)
        if (command.len >= names[i].len && memcmp(command.at, names[i].at, names[i].len) == 0 &&
            (command.len == names[i].len || memchr(ends, command.at[names[i].len], sizeof(ends) - 1)))
            return true;
    return false;
}

bool known_tools_state(struct str word)
{
    size_t count;
    const struct str *states = known_tools_list(KNOWN_STATES, &count);
    for (size_t i = 0; i < count; i++) {
        bool same = word.len == states[i].len;
        for (size_t k = 0; k < word.len && same; k++)
            same = tolower((unsigned char)word.at[k]) == states[i].at[k] ||
                   (states[i].at[k] == '_' && (word.at[k] == ' ' || word.at[k] == '-'));
        if (same)
            return true;
    }
    return false;
}

enum known_tool known_tools_find(struct str name)
{
    for (int kind = KNOWN_READS; kind < KNOWN_KINDS; kind++)
        if (known_tools_lists((enum known_list)kind, name))
            return (enum known_tool)kind;
    return KNOWN_NOT;
}

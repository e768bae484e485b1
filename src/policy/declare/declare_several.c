/* policy { tools = { … }, … }: one file that lies over several tools, beside the policies of each. */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "base/suggest.h"

#define GUARDS_MAX 256u /* names and globs of one file */

/* "policies/paths.lua" is listed as "paths". */
static struct str name_of_file(struct str file)
{
    const char *slash = memrchr(file.at, '/', file.len);
    struct str name = slash ? str_from(file, (size_t)(slash - file.at) + 1) : file;
    bool lua = name.len > 4 && memcmp(name.at + name.len - 4, ".lua", 4) == 0;
    return lua ? (struct str){name.at, name.len - 4} : name;
}

/* What describes or runs a tool cannot hold for several. */
static void check_fields(struct declaration *d, int fields)
{
    for (lua_pushnil(d->L); lua_next(d->L, fields); lua_pop(d->L, 1)) {
        const char *name = lua_type(d->L, -2) == LUA_TSTRING ? lua_tostring(d->L, -2) : "";
        for (size_t i = 0; i < declare_tool_table.count; i++)
            if (strcmp(declare_tool_table.fields[i].name, name) == 0)
                field_error(d, name,
                            "'%s' is about one tool and has no effect in a policy for several: declare it in "
                            "the tool's own file, return tool \"NAME\" { %s = … }",
                            name, name);
    }
}

static void check_tools(struct declaration *d)
{
    const struct policy *p = d->policy;
    if (!p->guard_count || p->guard_count > GUARDS_MAX)
        field_error(
            d, "tools",
            "'tools': expected 1 to %u names or globs of tools, as in { \"write_*\", \"edit_file\" }, "
            "got %zu",
            GUARDS_MAX, p->guard_count);
    for (size_t i = 0; i < p->guard_count; i++)
        if (!p->guards[i].len)
            field_error(d, "tools", "'tools': expected names or globs of tools, got an empty string");
}

/* Parts of shared fields that are about one tool, or that would allow more than its own policy does. */
static void check_budgets(struct declaration *d)
{
    const struct policy *p = d->policy;
    const char *field = p->retry_given                            ? "retry.again"
                        : p->polls || p->poll_max != POLICY_UNSET ? "loop.poll"
                        : p->effects == EFFECTS_TOGGLE            ? "effects = \"toggle\""
                                                                  : NULL;
    if (p->volatile_result_count)
        field_error(
            d, "loop",
            "'loop.volatile_result' is about the results of one tool: declare it in the tool's own file");
    if (field)
        field_error(
            d,
            p->effects == EFFECTS_TOGGLE ? "effects"
            : p->retry_given             ? "retry"
                                         : "loop",
            "'%s' allows more, and a policy for several tools only restricts: declare it in the tool's "
            "own file",
            field);
}

void declare_several(struct declaration *d, int fields)
{
    d->policy = declare_blank(d->set, name_of_file(d->file), d->file);
    check_fields(d, fields);
    lua_pushliteral(d->L, "tools");
    lua_rawget(d->L, fields);
    if (lua_isnil(d->L, -1))
        field_error(d, "tools",
                    "'policy': expected tools = { … }, the names or globs of the tools it lies over; for one "
                    "tool, return tool \"NAME\" { … }");
    lua_pop(d->L, 1);
    field_read_table(d, fields, NULL, &declare_policy_table, d->policy);
    check_tools(d);
    check_budgets(d);
}

/*
 * `toolgate lint`: finds mistakes in policies and tools that the loader accepts. For people and their CI; the
 * daemon does not use it. Here are the checks that need a policy's source, its examples' runs or a
 * generation's structs; those that only read definitions are lua/cli/lint_checks.lua, as are the levels of
 * all.
 */
#ifndef TOOLGATE_CLI_LINT_H
#define TOOLGATE_CLI_LINT_H

#include "catalog/generation.h"
#include "policy/coverage.h"
#include "policy/source_location.h"

#include <lua.h>

/* One tool, or (tool NULL) the whole generation. */
struct lint_context {
    lua_State *L;
    struct arena *arena;
    const char *code; /* of the current check */
    bool of_tool; /* that check is about a tool: without a policy, its definition is somebody else's affair */
    bool only_policies; /* tools without one are left out, and what concerns the whole generation */
    struct generation *generation;
    const struct tool *tool;
    const struct policy *policy;            /* NULL: the tool has none */
    struct str source;                      /* of the policy; empty: it has none, or cannot be read */
    const struct token *tokens;             /* of the source */
    const struct json *shown;               /* the definition that models see; NULL: none */
    const struct coverage_file *coverage;   /* by the examples; NULL: unknown */
    const struct policy_example **unjudged; /* examples whose call is decided before its result */
    size_t unjudged_count;
};

/* The finding's file is the policy's, or the origin of the tool's definition if the finding is about that.
 * `line` 0: unknown, or the file has no lines. */
void lint_report(struct lint_context *c, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The line of the policy's `schema` field, or of its `tool`; 0 without a policy. */
int lint_schema_line(const struct lint_context *c);
int lint_tool_line(const struct lint_context *c);

/* lint_checks.c: all checks of a tool. */
void lint_check_tool(struct lint_context *c);

#endif

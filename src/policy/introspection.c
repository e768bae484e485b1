/* Rules come from the loaded policy; calls are found by the tokens of its source. */
#include "policy/introspection.h"

#include "base/arena.h"
#include "policy/policy_internal.h"
#include "sandbox/lexer.h"
#include "policy/source_location.h"
#include "policy/rule/rule_conflicts.h"
#include "io/file.h"

#include <ctype.h>

struct policy_introspection policy_introspection(const struct policy *policy, struct arena *arena)
{
    struct policy_introspection source = {policy, arena, STR_NONE};
    struct why why;
    if (file_read(arena, policy->file.at, SANDBOX_SOURCE_MAX_BYTES, &source.text, &why) != OK)
        source.text = STR_NONE;
    return source;
}

int introspection_line(const struct policy_introspection *source, const char *parent, struct str name)
{
    return location_of_field(source->text, parent, name);
}

struct str introspection_tool_name(struct str source)
{
    return location_tool_name(source);
}

int introspection_tool_line(const struct policy_introspection *source)
{
    struct lexer lex = lexer_init(source->text);
    for (struct token t = lexer_next(&lex); t.kind != TOKEN_END; t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        if (t.kind == TOKEN_NAME && str_is(t.text, "tool") &&
            (one.kind == TOKEN_STRING || lexer_token_is(one, '(')))
            return t.line;
    }
    return 1;
}

struct listener {
    introspection_callback *found;
    void *owner;
};

static void forward_conflict(void *owner, bool certain, int line, struct str sentence)
{
    const struct listener *listener = owner;
    (void)certain;
    listener->found(listener->owner, line, sentence);
}

void introspection_rules(const struct policy_introspection *source, const struct json *schema,
                         introspection_callback *found, void *owner)
{
    struct listener listener = {found, owner};
    rule_conflicts_find(source->policy, schema, source->arena, forward_conflict, &listener);
}

int introspection_rule_line(const struct policy_introspection *source, size_t rule)
{
    const struct rules *rules = &source->policy->code->rules;
    return rule < rules->count ? rules->list[rule].line : 0;
}

void introspection_todos(const struct policy_introspection *source, introspection_callback *found,
                         void *owner)
{
    int number = 1;
    for (struct str rest = source->text; rest.len; number++) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct str line = {rest.at, end ? (size_t)(end - rest.at) : rest.len};
        const char *at = memmem(line.at, line.len, "TODO:", 5);
        if (at && (at == line.at || !isalnum((unsigned char)at[-1])))
            found(owner, number, str_from(line, (size_t)(at - line.at)));
        rest = str_from(rest, line.len + (end ? 1 : 0));
    }
}

void introspection_rules_without_hint(const struct policy_introspection *source,
                                      introspection_callback *found, void *owner)
{
    const struct rules *rules = &source->policy->code->rules;
    for (size_t i = 0; i < rules->count; i++)
        if (rules->list[i].refuses && !rules->list[i].hint.len)
            found(owner, rules->list[i].line, STR_LIT("refuses"));
}

/* The number of arguments behind an open parenthesis; 0 if the last one may be several, as a call or `...`.
 */
static int count_arguments(struct lexer lex)
{
    int depth = 1, count = 1;
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        depth += lexer_token_depth(t);
        if (depth == 0)
            break;
        count += depth == 1 && lexer_token_is(t, ',');
    }
    bool several = lexer_token_is(before, ')') || lexer_token_is(before, '.') ||
                   lexer_token_is(before, '}') || before.kind == TOKEN_END || t.kind == TOKEN_END;
    return several ? 0 : count;
}

/* A call with fewer than `least` arguments has no hint. */
static void find_short_calls(const struct policy_introspection *source, const char *word, int least,
                             const struct listener *listener)
{
    struct lexer lex = lexer_init(source->text);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    if (location_redefines(source->text, word))
        return;
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        if (!location_is_call(before, t, word))
            continue;
        int count = one.kind == TOKEN_STRING ? 1 : lexer_token_is(one, '(') ? count_arguments(ahead) : 0;
        if (count && count < least)
            listener->found(listener->owner, t.line, str_of(word));
    }
}

void introspection_calls_without_hint(const struct policy_introspection *source,
                                      introspection_callback *found, void *owner)
{
    struct listener listener = {found, owner};
    find_short_calls(source, "refuse", 3, &listener);
    find_short_calls(source, "garbage", 3, &listener);
}

/* Reads one problem, behind its `{`, to its `}`; true if it has a path at its own level. */
static bool has_path(struct lexer *lex)
{
    bool found = false;
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(lex);
    for (int depth = 1; t.kind != TOKEN_END; before = t, t = lexer_next(lex)) {
        bool key = (depth == 1 && t.kind == TOKEN_NAME) ||
                   (depth == 2 && t.kind == TOKEN_STRING && lexer_token_is(before, '['));
        depth += lexer_token_depth(t);
        if (depth == 0)
            break;
        found |= key && str_is(t.text, "path");
    }
    return found;
}

/* Behind the first `{`: one problem, or a list of them. */
static void check_problems(struct lexer lex, int line, const struct listener *listener)
{
    struct lexer ahead = lex;
    struct token t = lexer_next(&ahead);
    if (!lexer_token_is(t, '{')) {
        if (!has_path(&lex))
            listener->found(listener->owner, line, STR_LIT("repair"));
        return;
    }
    for (; lexer_token_is(t, '{'); t = lexer_next(&ahead)) {
        if (!has_path(&ahead))
            listener->found(listener->owner, t.line, STR_LIT("repair"));
        if (!lexer_token_is(lexer_next(&ahead), ','))
            break;
    }
}

void introspection_problems_without_path(const struct policy_introspection *source,
                                         introspection_callback *found, void *owner)
{
    struct listener listener = {found, owner};
    struct lexer lex = lexer_init(source->text);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    if (location_redefines(source->text, "repair"))
        return;
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        bool call = location_is_call(before, t, "repair");
        if (call && lexer_token_is(one, '('))
            one = lexer_next(&ahead);
        if (call && one.kind == TOKEN_STRING)
            found(owner, t.line, STR_LIT("repair"));
        else if (call && lexer_token_is(one, '{'))
            check_problems(ahead, t.line, &listener);
    }
}

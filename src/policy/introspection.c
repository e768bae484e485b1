/* Rules come from the loaded policy; calls are found by the tokens of its source. */
#include "policy/introspection.h"

#include "base/arena.h"
#include "policy/policy_internal.h"
#include "sandbox/lexer.h"
#include "policy/source_location.h"
#include "policy/rule.h"
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

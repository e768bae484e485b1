/* Rules as they were read, and calls as they are written. */
#include "policy/introspection.h"

#include "base/arena.h"
#include "policy/policy_internal.h"
#include "sandbox/lexer.h"
#include "policy/source_location.h"
#include "policy/rule/rule_conflicts.h"
#include "io/file.h"

struct policy_introspection policy_introspection(const struct policy *policy, struct arena *arena)
{
    struct policy_introspection survey = {policy, arena, STR_NONE};
    struct why why;
    if (file_read(arena, policy->file.at, SANDBOX_SOURCE_MAX_BYTES, &survey.text, &why) != OK)
        survey.text = STR_NONE;
    return survey;
}

int introspection_line(const struct policy_introspection *survey, const char *parent, struct str name)
{
    return location_of_field(survey->text, parent, name);
}

int introspection_tool_line(const struct policy_introspection *survey)
{
    struct lexer lex = lexer_init(survey->text);
    for (struct token t = lexer_next(&lex); t.kind != TOKEN_END; t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        if (t.kind == TOKEN_NAME && str_is(t.text, "tool") &&
            (one.kind == TOKEN_STRING || lexer_token_is(one, '(')))
            return t.line;
    }
    return 1;
}

/* ---- rules -------------------------------------------------------------------- */

struct telling {
    introspection_callback *found;
    void *owner;
};

static void forward_conflict(void *owner, bool certain, int line, struct str sentence)
{
    const struct telling *telling = owner;
    (void)certain;
    telling->found(telling->owner, line, sentence);
}

void introspection_rules(const struct policy_introspection *survey, const struct json *schema,
                         introspection_callback *found, void *owner)
{
    struct telling telling = {found, owner};
    rule_conflicts_find(survey->policy, schema, survey->arena, forward_conflict, &telling);
}

int introspection_rule_line(const struct policy_introspection *survey, size_t rule)
{
    const struct rules *rules = &survey->policy->code->rules;
    return rule < rules->count ? rules->list[rule].line : 0;
}

void introspection_rules_without_hint(const struct policy_introspection *survey,
                                      introspection_callback *found, void *owner)
{
    const struct rules *rules = &survey->policy->code->rules;
    for (size_t i = 0; i < rules->count; i++)
        if (rules->list[i].refuses && !rules->list[i].hint.len)
            found(owner, rules->list[i].line, STR_LIT("refuses"));
}

/* ---- calls ---------------------------------------------------------------------- */

/* The arguments of a call, whose parenthesis is open: how many there are; 0 where the last may be several, as
 * a call's or `...`. */
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

/* Is this token the word itself: no field, method, local or parameter of that name. */
static bool is_call_of(struct token before, struct token t, const char *word)
{
    bool declares =
        before.kind == TOKEN_NAME && (str_is(before.text, "local") || str_is(before.text, "function"));
    return t.kind == TOKEN_NAME && str_is(t.text, word) && !declares && !lexer_token_is(before, '.') &&
           !lexer_token_is(before, ':');
}

/* A policy that gives the word another meaning is left alone. */
static bool redefines(struct str text, const char *word)
{
    struct lexer lex = lexer_init(text);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        struct lexer ahead = lex, behind;
        struct token one = lexer_next(&ahead);
        behind = ahead;
        bool assigned = lexer_token_is(one, '=') && !lexer_token_is(lexer_next(&behind), '=');
        bool local =
            before.kind == TOKEN_NAME && (str_is(before.text, "local") || str_is(before.text, "function"));
        bool field = lexer_token_is(before, '{') || lexer_token_is(before, ',') ||
                     lexer_token_is(before, ';') || lexer_token_is(before, '.');
        if (t.kind == TOKEN_NAME && str_is(t.text, word) && (local || (assigned && !field)))
            return true;
    }
    return false;
}

/* `least`: with fewer arguments the hint is missing. */
static void find_short_calls(const struct policy_introspection *survey, const char *word, int least,
                             const struct telling *telling)
{
    struct lexer lex = lexer_init(survey->text);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    if (redefines(survey->text, word))
        return;
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        if (!is_call_of(before, t, word))
            continue;
        int count = one.kind == TOKEN_STRING ? 1 : lexer_token_is(one, '(') ? count_arguments(ahead) : 0;
        if (count && count < least)
            telling->found(telling->owner, t.line, str_of(word));
    }
}

void introspection_calls_without_hint(const struct policy_introspection *survey,
                                      introspection_callback *found, void *owner)
{
    struct telling telling = {found, owner};
    find_short_calls(survey, "refuse", 3, &telling);
    find_short_calls(survey, "garbage", 3, &telling);
}

/* ---- problems ------------------------------------------------------------------------ */

/* Behind the `{` of one problem: has it a path, at its own level. Moves behind its `}`. */
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
static void look_at_problems(struct lexer lex, int line, const struct telling *telling)
{
    struct lexer ahead = lex;
    struct token t = lexer_next(&ahead);
    if (!lexer_token_is(t, '{')) {
        if (!has_path(&lex))
            telling->found(telling->owner, line, STR_LIT("repair"));
        return;
    }
    for (; lexer_token_is(t, '{'); t = lexer_next(&ahead)) {
        if (!has_path(&ahead))
            telling->found(telling->owner, t.line, STR_LIT("repair"));
        if (!lexer_token_is(lexer_next(&ahead), ','))
            break;
    }
}

void introspection_problems_without_path(const struct policy_introspection *survey,
                                         introspection_callback *found, void *owner)
{
    struct telling telling = {found, owner};
    struct lexer lex = lexer_init(survey->text);
    struct token before = {TOKEN_END, STR_NONE, 0}, t = lexer_next(&lex);
    if (redefines(survey->text, "repair"))
        return;
    for (; t.kind != TOKEN_END; before = t, t = lexer_next(&lex)) {
        struct lexer ahead = lex;
        struct token one = lexer_next(&ahead);
        bool call = is_call_of(before, t, "repair");
        if (call && lexer_token_is(one, '('))
            one = lexer_next(&ahead);
        if (call && one.kind == TOKEN_STRING)
            found(owner, t.line, STR_LIT("repair"));
        else if (call && lexer_token_is(one, '{'))
            look_at_problems(ahead, t.line, &telling);
    }
}

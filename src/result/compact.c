/*
 * A result is its structured value, and the text blocks beside it: each is
 * measured, made smaller where it must be, and measured again. What a schema
 * does not allow is tried in milder forms, and given up in the end.
 */
#include "result/compact.h"

#include "base/arena.h"
#include "base/log.h"
#include "result/compact_internal.h"
#include "result/token_estimate.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

/* In one JSON value; one of more is shortened as a text, or not at all. */
#define COMPACT_VALUES_MAX 1000000u
#define TRIES              8 /* an estimate that was too large is corrected a few times */

struct compacting {
    struct arena *arena;
    const struct tool *tool;
    struct compact_rules rules;
    struct buf notes;
    bool failed;
};

/* ---- measuring ------------------------------------------------------------ */

static bool fits(const struct policy_compact *budget, struct str text)
{
    if (budget->max_bytes && text.len > budget->max_bytes)
        return false;
    return !budget->max_tokens || text.len <= budget->max_tokens ||
           token_estimate(text) <= budget->max_tokens;
}

/* How much of `room` bytes to try, that both budgets are kept next time. */
static size_t corrected(const struct policy_compact *budget, struct str text, size_t room)
{
    double bytes = budget->max_bytes ? (double)budget->max_bytes / (double)(text.len + 1) : 1;
    double tokens = budget->max_tokens ? (double)budget->max_tokens / (double)(token_estimate(text) + 1) : 1;
    double factor = bytes < tokens ? bytes : tokens;
    double base =
        room < text.len ? (double)room : (double)text.len; /* large parts leave much of the room unused */
    return (size_t)(base * (factor < 1 ? factor * 0.97 : 0.9));
}

static struct str written(struct arena *arena, const struct json *value)
{
    struct buf out = buf_in(arena);
    json_write(&out, value);
    return buf_view(&out);
}

/* What a model reads of a block; NULL: it is no text, and stays whatever its size. */
static const struct json *text_in(const struct json *block)
{
    struct str type = json_str(json_get_text(block, "type"));
    bool embedded = str_is(type, "resource");
    const struct json *holder = embedded ? json_get_text(block, "resource") : block;
    const struct json *text = embedded || str_is(type, "text") ? json_get_text(holder, "text") : NULL;
    return json_is(text, JSON_STRING) ? text : NULL;
}

static bool is_text(const struct json *block)
{
    return text_in(block) != NULL;
}

static struct str text_of(const struct json *block)
{
    return json_str(text_in(block));
}

static struct json with_text(struct arena *arena, const struct json *block, struct str text)
{
    const struct json *resource = json_get_text(block, "resource");
    if (!str_is(json_str(json_get_text(block, "type")), "resource"))
        return json_with(arena, block, STR_LIT("text"), json_string(text));
    struct json shorter = json_with(arena, resource, STR_LIT("text"), json_string(text));
    return json_with(arena, block, STR_LIT("resource"), shorter);
}

/* ---- saying what went ------------------------------------------------------- */

static void say_omission(struct buf *out, const struct omission *o)
{
    const char *name = o->path.len ? "" : "the result";
    struct str path = str_cut(o->path, COMPACT_PATH_MAX_BYTES);
    unsigned long long count = o->count, of = o->of;
    switch (o->kind) {
    case OMITTED_ITEMS:
        buf_printf(out, "%llu of %llu items of %s" STR_FMT " are left out", count, of, name, STR_ARG(path));
        break;
    case OMITTED_DETAIL:
        buf_printf(out, "%llu of the %llu shown of %s" STR_FMT " are cut down to ids, titles and times",
                   count, of, name, STR_ARG(path));
        break;
    case OMITTED_FIELD:
        buf_printf(out, "'" STR_FMT "' is left out%s", STR_ARG(path), count > 1 ? " everywhere" : "");
        break;
    case OMITTED_TEXT:
        buf_printf(out, "%s" STR_FMT " is cut by %llu of %llu bytes", o->path.len ? "" : "the text",
                   STR_ARG(path), count, of);
    }
}

static void say_omissions(struct buf *out, const struct shrink_ctx *s)
{
    for (size_t i = 0; i < s->count; i++) {
        buf_text(out, out->len ? "; " : "");
        say_omission(out, &s->omissions[i]);
    }
    if (s->more)
        buf_printf(out, "; and more in %zu other places", s->more);
}

/* Parameters by which a caller asks for less, where the tool has them. */
static void say_how(struct buf *out, const struct tool *tool)
{
    static const char *const narrow[] = {"limit",  "page_size", "page",   "offset", "cursor", "query", "q",
                                         "search", "filter",    "fields", "since",  "until",  "start", "end",
                                         "from",   "to",        "after",  "before", "id",     "ids"};
    const char *found[4];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow) && count < 4; i++)
        for (size_t p = 0; p < tool->parameter_count && count < 4; p++)
            if (str_is(tool->parameters[p], narrow[i]))
                found[count++] = narrow[i];
    if (!count) {
        buf_text(out, " For the rest ask for less at a time, or for one thing by its id.");
        return;
    }
    buf_text(out, " For the rest narrow the call by ");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s'%s'", i == 0 ? "" : i + 1 == count ? " or " : ", ", found[i]);
    buf_text(out, ".");
}

static void say_failure(struct compacting *c, size_t bytes)
{
    c->failed = true;
    buf_printf(
        &c->notes,
        "%sit has %zu bytes, more than it should, and cannot be shortened without breaking its output schema",
        c->notes.len ? "; " : "", bytes);
    log_event(LOG_WARN, "compact_failed", LOG_STR("tool", c->tool->name), LOG_NUM("bytes", bytes),
              LOG_NUM("max_bytes", c->tool->compact.max_bytes),
              LOG_NUM("max_tokens", c->tool->compact.max_tokens));
}

/* ---- values -------------------------------------------------------------------- */

/* From the freest form to the mildest: what the policy drops may be required, and so may any field. */
static const struct form {
    bool drops, items_only;
} forms[] = {{true, false}, {true, true}, {false, true}};

static bool shrink_in_form(struct compacting *c, const struct json *value,
                           const struct policy_compact *budget, const struct form *form, struct shrink_ctx *s,
                           struct json *out)
{
    const struct compact_node *root = compact_tree(c->arena, &c->rules, value, form->drops);
    size_t room = budget->max_bytes ? budget->max_bytes : root->size;
    *s = (struct shrink_ctx){.arena = c->arena, .rules = &c->rules, .items_only = form->items_only};
    for (int i = 0; i < TRIES; i++) {
        *out = compact_shrink(s, root, room);
        struct str text = written(c->arena, out);
        if (fits(budget, text))
            return true;
        room = corrected(budget, text, room);
    }
    return false;
}

static uint32_t count_values(const struct json *value, uint32_t most)
{
    bool list = value->type == JSON_ARRAY;
    uint32_t count = 1;
    for (uint32_t i = 0; (list || value->type == JSON_OBJECT) && i < value->len && count <= most; i++)
        count += count_values(list ? &value->items[i] : &value->members[i].value, most - count);
    return count;
}

/* NULL: no form of it both fits and matches the schema (NULL: none asked). */
static const struct json *shrink_value(struct compacting *c, const struct json *value,
                                       const struct policy_compact *budget, const struct schema *schema)
{
    struct json *out = ARENA_NEW(c->arena, struct json);
    if (count_values(value, COMPACT_VALUES_MAX) > COMPACT_VALUES_MAX)
        return NULL;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct shrink_ctx s;
        if (shrink_in_form(c, value, budget, &forms[i], &s, out) &&
            (!schema || schema_validate(schema, out) == SCHEMA_VALID)) {
            say_omissions(&c->notes, &s);
            return out;
        }
        if (!schema)
            break;
    }
    return NULL;
}

/* ---- text blocks ----------------------------------------------------------------- */

static const struct json *value_in(struct arena *arena, struct str text)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct json_error fault;
    text = str_trim(text);
    bool may_be = text.len && (text.at[0] == '{' || text.at[0] == '[');
    return may_be && json_parse(arena, text, NULL, value, &fault) == OK ? value : NULL;
}

static struct str shrink_plain(struct compacting *c, struct str text, const struct policy_compact *budget)
{
    size_t left_out = 0, room = budget->max_bytes ? budget->max_bytes : text.len;
    if (compact_html_detect(text)) {
        text = compact_html_to_text(c->arena, text);
        buf_text(&c->notes,
                 c->notes.len ? "; the markup of HTML is left out" : "the markup of HTML is left out");
    }
    struct str shown = text;
    for (int i = 0; i < TRIES && !fits(budget, shown); i++) {
        shown = compact_text(c->arena, &c->rules, text, room, &left_out);
        room = corrected(budget, shown, room);
    }
    struct omission o = {.kind = OMITTED_TEXT, .count = left_out, .of = text.len};
    if (!left_out)
        return shown;
    buf_text(&c->notes, c->notes.len ? "; " : "");
    say_omission(&c->notes, &o);
    return shown;
}

/* One block's text: as the structured value that it repeats, as JSON, or as lines. */
static struct str shrink_text(struct compacting *c, struct str text, const struct policy_compact *budget,
                              const struct result *result, const struct json *structured)
{
    const struct json *value = value_in(c->arena, text), *small;
    if (value && structured && json_equal(value, result->structured))
        return written(c->arena, structured);
    if (fits(budget, text))
        return text;
    small = value ? shrink_value(c, value, budget, NULL) : NULL;
    return small ? written(c->arena, small) : shrink_plain(c, text, budget);
}

/* 0 stands for no budget, so that what is spent is never quite. */
static uint32_t part_of(uint32_t rest, size_t left)
{
    uint32_t part = left ? rest / (uint32_t)left : rest;
    return rest && !part ? 1 : part;
}

static struct policy_compact share_of(const struct policy_compact *rest, size_t left)
{
    struct policy_compact share = *rest;
    share.max_bytes = part_of(rest->max_bytes, left);
    share.max_tokens = part_of(rest->max_tokens, left);
    return share;
}

static uint32_t less(uint32_t rest, size_t used)
{
    return !rest ? 0 : used >= rest ? 1 : rest - (uint32_t)used;
}

static size_t count_texts(const struct json *content)
{
    size_t count = 0;
    for (uint32_t i = 0; i < content->len; i++)
        count += is_text(&content->items[i]);
    return count;
}

/* Blocks share the budget; what one leaves over goes to the next. Images and links are not text, and stay. */
static const struct json *shrink_content(struct compacting *c, const struct result *result,
                                         const struct json *structured)
{
    const struct json *content = result->content;
    struct json *items = ARENA_ARRAY(c->arena, struct json, content->len + 1),
                *out = ARENA_NEW(c->arena, struct json);
    struct policy_compact rest = c->tool->compact;
    size_t left = count_texts(content);
    for (uint32_t i = 0; i < content->len; i++) {
        items[i] = content->items[i];
        if (!is_text(&items[i]))
            continue;
        struct policy_compact share = share_of(&rest, left--);
        struct str text = text_of(&items[i]), shown = shrink_text(c, text, &share, result, structured);
        if (shown.at != text.at || shown.len != text.len)
            items[i] = with_text(c->arena, &content->items[i], shown);
        rest.max_bytes = less(rest.max_bytes, shown.len);
        rest.max_tokens = rest.max_tokens ? less(rest.max_tokens, token_estimate(shown)) : 0;
    }
    *out = json_array(items, content->len);
    return out;
}

/* ---- results ---------------------------------------------------------------------- */

static size_t bytes_of(struct arena *arena, const struct result *r)
{
    size_t bytes = r->structured ? written(arena, r->structured).len : 0;
    for (uint32_t i = 0; i < r->content->len; i++)
        bytes += text_of(&r->content->items[i]).len;
    return bytes;
}

/* What was sent knows its own length. */
static bool structured_fits(struct arena *arena, const struct policy_compact *budget,
                            const struct json *structured)
{
    if (!structured)
        return true;
    if (structured->raw_len)
        return fits(budget, (struct str){structured->raw, structured->raw_len});
    return fits(budget, written(arena, structured));
}

static bool content_fits(const struct policy_compact *budget, const struct json *content)
{
    size_t bytes = 0, tokens = 0;
    for (uint32_t i = 0; i < content->len; i++) {
        struct str text = text_of(&content->items[i]);
        bytes += text.len;
        tokens += budget->max_tokens ? token_estimate(text) : 0;
    }
    return (!budget->max_bytes || bytes <= budget->max_bytes) &&
           (!budget->max_tokens || tokens <= budget->max_tokens);
}

static void learn(struct compacting *c, const struct json *args, struct str goal)
{
    const struct tool *tool = c->tool;
    c->rules = (struct compact_rules){.keep = tool->compact.keep,
                                      .keep_count = tool->compact.keep_count,
                                      .drop = tool->compact.drop,
                                      .drop_count = tool->compact.drop_count,
                                      .gives_ids = tool->policy ? tool->policy->gives_ids : NULL,
                                      .gives_id_count = tool->policy ? tool->policy->gives_id_count : 0};
    compact_set_goal(&c->rules, goal, c->arena);
    compact_set_argument_ids(&c->rules, args);
}

static struct str note(struct compacting *c)
{
    if (!c->notes.len)
        return STR_NONE;
    struct buf out = buf_in(c->arena);
    buf_text(&out, c->failed ? "this result is long: " : "this result was shortened: ");
    buf_str(&out, buf_view(&c->notes));
    buf_byte(&out, '.');
    say_how(&out, c->tool);
    return buf_view(&out);
}

bool compact_result(struct arena *arena, const struct tool *tool, const struct json *args, struct str goal,
                    const struct result *result, struct compacted *out)
{
    const struct policy_compact *budget = &tool->compact;
    *out = (struct compacted){.result = *result};
    if (!json_is(result->content, JSON_ARRAY))
        return false;
    bool structured_is_fine = structured_fits(arena, budget, result->structured);
    if (structured_is_fine && content_fits(budget, result->content))
        return false;
    struct compacting c = {.arena = arena, .tool = tool, .notes = buf_in(arena)};
    const struct json *structured = result->structured;
    learn(&c, args, goal);
    if (!structured_is_fine) {
        bool was_valid =
            tool->output_schema && schema_validate(tool->output_schema, structured) == SCHEMA_VALID;
        structured = shrink_value(&c, structured, budget, was_valid ? tool->output_schema : NULL);
    }
    if (result->structured && !structured) {
        say_failure(&c, written(arena, result->structured).len);
    } else {
        out->result.structured = structured;
        out->result.content =
            shrink_content(&c, result, structured == result->structured ? NULL : structured);
        out->done = true;
    }
    out->from = bytes_of(arena, result);
    out->to = bytes_of(arena, &out->result);
    out->note = note(&c);
    return true;
}

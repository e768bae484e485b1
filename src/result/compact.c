/*
 * Shortens a result to the byte and token budget of its tool: the structured value and each text block. If a
 * form violates the output schema, the next, less aggressive form is tried.
 */
#include "result/compact.h"

#include "base/arena.h"
#include "base/log.h"
#include "json/build.h"
#include "json/write.h"

#define COMPACT_VALUES_MAX 1000000u /* a larger JSON value is shortened as a text, or not at all */
#define BLOCK_LEAST_BYTES  64u      /* of each text block in a result of many, or … */
#define BLOCK_LEAST_TOKENS 16u      /* … only the first ones are kept */
#define TRIES              8        /* to correct an estimate that was too large */

struct compact_ctx {
    struct compact_rules rules;
    struct buf notes;
};

/* `wire`: the bytes that it takes in the answer. */
static bool fits(const struct policy_compact *budget, struct str text, size_t wire)
{
    if (budget->max_bytes && wire > budget->max_bytes)
        return false;
    return !budget->max_tokens || text.len <= budget->max_tokens ||
           token_estimate(text) <= budget->max_tokens;
}

/* A smaller limit in bytes to try next, after `room` gave a text over the budget. */
static size_t corrected(const struct policy_compact *budget, struct str text, size_t wire, size_t room)
{
    double bytes = budget->max_bytes ? (double)budget->max_bytes / (double)(wire + 1) : 1;
    double tokens = budget->max_tokens ? (double)budget->max_tokens / (double)(token_estimate(text) + 1) : 1;
    double factor = bytes < tokens ? bytes : tokens;
    double base = room < text.len ? (double)room : (double)text.len; /* the text may be far below `room` */
    return (size_t)(base * (factor < 1 ? factor * 0.97 : 0.9));
}

/* What has the text of a block: the block, or its embedded resource; NULL: it is no text. */
static const struct json *holder_of(const struct json *block)
{
    struct str type = json_str(json_get_text(block, "type"));
    if (str_is(type, "resource"))
        return json_get_text(block, "resource");
    return str_is(type, "text") ? block : NULL;
}

/* The text that a model reads of a block, or NULL: blocks that are no text are never shortened. */
static const struct json *text_in(const struct json *block)
{
    const struct json *text = json_get_text(holder_of(block), "text");
    return json_is(text, JSON_STRING) ? text : NULL;
}

static size_t size_of(struct arena *arena, const struct json *value)
{
    return value->raw_len ? value->raw_len : json_to_str(arena, value).len;
}

/* Bytes of a block with a text, its comma too; 0 of others, which do not count. */
static size_t block_size(struct arena *arena, const struct json *block)
{
    return text_in(block) ? size_of(arena, block) + 1 : 0;
}

static size_t bytes_of(struct arena *arena, const struct result *r)
{
    size_t bytes = r->structured ? size_of(arena, r->structured) : 0;
    for (uint32_t i = 0; i < r->content->len; i++)
        bytes += block_size(arena, &r->content->items[i]);
    return bytes;
}

static void put_omission(struct buf *out, const struct omission *o)
{
    const char *name = o->path.len ? "" : "the result";
    struct str path = o->path;
    unsigned long long count = o->count, of = o->of;
    buf_text(out, out->len ? "; " : "");
    switch (o->kind) {
    case OMITTED_ITEMS:
        buf_printf(out, "%llu of %llu items of %s" STR_FMT " are left out", count, of, name, STR_ARG(path));
        break;
    case OMITTED_DETAIL:
        buf_printf(out, "%llu of the %llu shown of %s" STR_FMT " are reduced to ids, titles and times", count,
                   of, name, STR_ARG(path));
        break;
    case OMITTED_FIELD:
        buf_printf(out, "'" STR_FMT "' is left out%s", STR_ARG(path), count > 1 ? " everywhere" : "");
        break;
    case OMITTED_TEXT:
        buf_printf(out, "%s" STR_FMT " is cut by %llu of %llu bytes", o->path.len ? "" : "the text",
                   STR_ARG(path), count, of);
    }
}

/* Parameters that narrow a call, if the tool has any. */
static void put_advice(struct buf *out, const struct tool *tool)
{
    static const char *const narrow[] = {"limit",  "page_size", "page",   "offset", "cursor", "query", "q",
                                         "search", "filter",    "fields", "since",  "until",  "start", "end",
                                         "from",   "to",        "after",  "before", "id",     "ids"};
    const char *found[4];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow) && count < 4; i++)
        if (json_get_text(tool->parameters, narrow[i]))
            found[count++] = narrow[i];
    if (!count) {
        buf_text(out, " To see the rest, ask for less or for one item by id.");
        return;
    }
    buf_text(out, " For the rest narrow the call by ");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s'%s'", i == 0 ? "" : i + 1 == count ? " or " : ", ", found[i]);
    buf_text(out, ".");
}

/* The most aggressive form first; the schema may require fields that it leaves out. */
static const struct form {
    bool drops, items_only;
} forms[] = {{true, false}, {true, true}, {false, true}};

static uint32_t count_values(const struct json *value, uint32_t most)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < json_child_count(value) && count <= most; i++)
        count += count_values(json_child(value, i), most - count);
    return count;
}

/* Where a value is sent: as it is, in text blocks, or both. */
struct sent {
    uint32_t as_value, as_texts;
};

static size_t sent_size(struct sent sent, struct str json)
{
    return sent.as_value * json.len + (sent.as_texts ? sent.as_texts * compact_string_size(json) : 0);
}

/* The value in the first form that fits the budget and the schema, if there is one. NULL if none fits. */
static const struct json *shrink_value(struct compact_ctx *c, const struct json *value,
                                       const struct policy_compact *budget, const struct schema *schema,
                                       struct sent sent)
{
    struct json *out = ARENA_NEW(c->rules.arena, struct json);
    if (count_values(value, COMPACT_VALUES_MAX) > COMPACT_VALUES_MAX)
        return NULL;
    for (size_t i = 0; i < (schema ? sizeof(forms) / sizeof(*forms) : 1); i++) {
        c->rules.drops = forms[i].drops;
        const struct compact_node *root = compact_tree(&c->rules, value);
        size_t room = budget->max_bytes ? budget->max_bytes : root->size;
        struct shrink_ctx s = {.rules = &c->rules, .items_only = forms[i].items_only};
        bool is_small = false;
        for (int n = 0; n < TRIES && !is_small; n++) {
            *out = compact_shrink(&s, root, room);
            struct str text = json_to_str(c->rules.arena, out);
            size_t wire = sent_size(sent, text);
            is_small = fits(budget, text, wire);
            room = corrected(budget, text, wire, room);
        }
        if (!is_small || (schema && schema_validate(schema, out) != SCHEMA_VALID))
            continue;
        for (size_t k = 0; k < s.count; k++)
            put_omission(&c->notes, &s.omissions[k]);
        if (s.more)
            buf_printf(&c->notes, "; and more in %zu other places", s.more);
        return out;
    }
    return NULL;
}

/* The same, or as it is. */
static const struct json *shrink_to(struct compact_ctx *c, const struct json *value,
                                    const struct policy_compact *budget, const struct schema *schema,
                                    struct sent sent)
{
    struct str json = json_to_str(c->rules.arena, value);
    return fits(budget, json, sent_size(sent, json)) ? value : shrink_value(c, value, budget, schema, sent);
}

static struct str shrink_plain(struct compact_ctx *c, struct str text, const struct policy_compact *budget)
{
    size_t left_out = 0, room = budget->max_bytes ? budget->max_bytes : text.len;
    if (compact_html_detect(text)) {
        text = compact_html_to_text(c->rules.arena, text);
        buf_text(&c->notes,
                 c->notes.len ? "; the markup of HTML is left out" : "the markup of HTML is left out");
    }
    struct str shown = text;
    size_t wire = compact_string_size(shown);
    for (int i = 0; i < TRIES && !fits(budget, shown, wire); i++) {
        shown = compact_text(c->rules.arena, &c->rules, text, room, &left_out);
        wire = compact_string_size(shown);
        room = corrected(budget, shown, wire, room);
    }
    struct omission o = {.kind = OMITTED_TEXT, .count = left_out, .of = text.len};
    if (left_out)
        put_omission(&c->notes, &o);
    return shown;
}

/* A text may hold JSON, or lines. */
static struct str shrink_text(struct compact_ctx *c, struct str text, const struct policy_compact *budget)
{
    if (fits(budget, text, compact_string_size(text)))
        return text;
    const struct json *value = result_json_of_text(c->rules.arena, text),
                      *small =
                          value ? shrink_value(c, value, budget, NULL, (struct sent){.as_texts = 1}) : NULL;
    return small ? json_to_str(c->rules.arena, small) : shrink_plain(c, text, budget);
}

/* 0 means unlimited, so a spent budget is 1. */
static uint32_t share_of(uint32_t rest, size_t blocks)
{
    if (rest == 0 || blocks == 0)
        return 0;
    return rest < blocks ? 1 : rest / (uint32_t)blocks;
}

static uint32_t less(uint32_t rest, size_t used)
{
    return !rest ? 0 : used >= rest ? 1 : rest - (uint32_t)used;
}

static void spend(struct policy_compact *rest, struct compact_ctx *c, const struct json *block)
{
    struct str text = json_str(text_in(block));
    rest->max_bytes = less(rest->max_bytes, block_size(c->rules.arena, block));
    rest->max_tokens = rest->max_tokens ? less(rest->max_tokens, token_estimate(text)) : 0;
}

/* Blocks as they are, the first ones that fit; what is no text stays. */
static const struct json *keep_first_blocks(struct compact_ctx *c, const struct json *content,
                                            struct policy_compact rest)
{
    struct json *items = ARENA_ARRAY(c->rules.arena, struct json, content->len + 1),
                *out = ARENA_NEW(c->rules.arena, struct json);
    struct omission o = {.kind = OMITTED_ITEMS, .of = content->len};
    size_t count = 0;
    for (uint32_t i = 0; i < content->len; i++) {
        const struct json *block = &content->items[i], *text = text_in(block);
        if (text && !fits(&rest, json_str(text), block_size(c->rules.arena, block))) {
            o.count++;
            continue;
        }
        items[count++] = *block;
        if (text)
            spend(&rest, c, block);
    }
    if (o.count)
        put_omission(&c->notes, &o);
    *out = json_array(items, count);
    return out;
}

static struct json with_text(struct arena *arena, const struct json *block, struct str text)
{
    const struct json *holder = holder_of(block);
    struct json changed = json_with(arena, holder, STR_LIT("text"), json_string(text));
    return holder == block ? changed : json_with(arena, block, STR_LIT("resource"), changed);
}

/* Text blocks share the budget, after those that repeat the structured value; what one leaves goes to the
 * next. */
static const struct json *shrink_content(struct compact_ctx *c, const struct json *content,
                                         const bool *repeats, const struct json *structured)
{
    struct arena *arena = c->rules.arena;
    struct json *items = ARENA_ARRAY(arena, struct json, content->len + 1),
                *out = ARENA_NEW(arena, struct json);
    struct policy_compact all = c->rules.tool->compact;
    struct str json = json_to_str(arena, structured);
    size_t left = 0;
    all.max_bytes = less(all.max_bytes, json.len);
    struct policy_compact rest = all;
    for (uint32_t i = 0; i < content->len; i++) {
        items[i] = content->items[i];
        left += text_in(&items[i]) && !repeats[i];
        if (!repeats[i])
            continue;
        items[i] = with_text(arena, &items[i], json);
        spend(&rest, c, &items[i]);
    }
    *out = json_array(items, content->len);
    /* Too many blocks to shorten each: the note of a cut would be longer than the text that is left. */
    if ((rest.max_bytes && rest.max_bytes / BLOCK_LEAST_BYTES < left) ||
        (rest.max_tokens && rest.max_tokens / BLOCK_LEAST_TOKENS < left))
        return keep_first_blocks(c, out, all);
    for (uint32_t i = 0; i < content->len; i++) {
        if (repeats[i] || !text_in(&items[i]))
            continue;
        struct policy_compact share = rest;
        struct json empty = with_text(arena, &items[i], STR_NONE);
        share.max_bytes = less(share_of(rest.max_bytes, left), block_size(arena, &empty) - 2);
        share.max_tokens = share_of(rest.max_tokens, left--);
        /* written anew even if it is whole: as sent it may have longer escapes */
        items[i] = with_text(arena, &items[i], shrink_text(c, json_str(text_in(&items[i])), &share));
        spend(&rest, c, &items[i]);
    }
    return out;
}

/* What the structured value may take with the texts that repeat it: an even share, or what the other texts
 * leave. `most`: if its schema asks for more than that. */
static struct policy_compact structured_share(struct compact_ctx *c, const struct json *content,
                                              const bool *repeats, struct sent *sent,
                                              struct policy_compact *most)
{
    struct policy_compact share = c->rules.tool->compact;
    size_t others = 0, frames = 0, count = 1;
    for (uint32_t i = 0; i < content->len; i++) {
        size_t size = block_size(c->rules.arena, &content->items[i]);
        count += size > 0;
        others += repeats[i] ? 0 : size;
        if (!repeats[i])
            continue;
        struct json empty = with_text(c->rules.arena, &content->items[i], STR_NONE);
        frames += block_size(c->rules.arena, &empty);
        sent->as_texts++;
    }
    uint32_t even = (uint32_t)((uint64_t)share.max_bytes * (1 + sent->as_texts) / count);
    uint32_t spare = less(share.max_bytes, others);
    *most = share;
    most->max_bytes = less(share.max_bytes, frames);
    share.max_bytes = less(even > spare ? even : spare, frames);
    return share;
}

bool compact_result(struct arena *arena, const struct tool *tool, const struct json *args, struct str goal,
                    const struct result *result, struct compaction *out)
{
    const struct policy_compact *budget = &tool->compact;
    *out = (struct compaction){.result = *result};
    if (!json_is(result->content, JSON_ARRAY))
        return false;
    const struct json *structured = result->structured, *content = result->content;
    struct str json = structured ? json_to_str(arena, structured) : STR_NONE;
    size_t tokens = 0;
    out->from = out->to = bytes_of(arena, result);
    for (uint32_t i = 0; i < content->len && budget->max_tokens; i++)
        tokens += token_estimate(json_str(text_in(&content->items[i])));
    if ((!budget->max_bytes || out->from <= budget->max_bytes) &&
        (!budget->max_tokens || (tokens <= budget->max_tokens && fits(budget, json, 0))))
        return false;
    struct compact_ctx c = {.rules = compact_rules_of(arena, tool, args, goal), .notes = buf_in(arena)};
    bool failed = false, *repeats = ARENA_ARRAY(arena, bool, content->len + 1);
    for (uint32_t i = 0; i < content->len; i++) {
        const struct json *text = structured ? text_in(&content->items[i]) : NULL,
                          *value = text ? result_json_of_text(arena, json_str(text)) : NULL;
        repeats[i] = value && json_equal(value, structured);
    }
    struct sent sent = {.as_value = 1};
    struct policy_compact most, share = structured_share(&c, content, repeats, &sent, &most);
    if (structured && !fits(&share, json, sent_size(sent, json))) {
        const struct schema *schema = tool->output_schema;
        if (schema && schema_validate(schema, structured) != SCHEMA_VALID)
            schema = NULL;
        structured = shrink_value(&c, result->structured, &share, schema, sent);
        if (!structured)
            structured = shrink_to(&c, result->structured, &most, schema, sent);
        if (!structured && sent.as_texts) { /* too often repeated: those are texts like others */
            memset(repeats, 0, content->len * sizeof(*repeats));
            structured = shrink_to(&c, result->structured, budget, schema, (struct sent){.as_value = 1});
        }
    }
    if (result->structured && !structured) {
        failed = true;
        buf_printf(&c.notes,
                   "%s%zu bytes exceed the limit; it cannot be shortened without breaking its output schema",
                   c.notes.len ? "; " : "", out->from);
        log_event(LOG_WARN, "compact_failed", LOG_STR("tool", tool->name), LOG_NUM("bytes", out->from),
                  LOG_NUM("max_bytes", tool->compact.max_bytes),
                  LOG_NUM("max_tokens", tool->compact.max_tokens));
    } else {
        out->result.structured = structured;
        out->result.content = shrink_content(&c, content, repeats, structured);
        out->to = bytes_of(arena, &out->result);
        out->done = true;
    }
    if (c.notes.len) {
        buf_byte(&c.notes, '.');
        put_advice(&c.notes, tool);
        const char *head = failed ? "this result is long: " : "this result was shortened: ";
        out->note = ARENA_JOIN(arena, str_of(head), buf_view(&c.notes));
    }
    return true;
}

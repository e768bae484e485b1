/* A verdict as JSON, and the JSON Schemas that describe it. */
#include "gate/verdict.h"

#include "json/write.h"

static const char *const verdict_names[] = {"pass", "repair", "wait", "refuse", "ask", "halt"};

const char *verdict_name(enum verdict_kind kind)
{
    return verdict_names[kind];
}

void verdict_set(struct verdict *v, enum error_class class, struct str code, struct str detail,
                 struct str hint)
{
    v->class = class;
    v->kind = error_class_info(class)->verdict;
    v->code = code;
    v->detail = detail;
    v->hint = hint;
}

void verdict_discard(struct verdict *v, struct arena *arena, bool remember)
{
    struct verdict fresh = {.valid = true,
                            .after_s = -1,
                            .cost = v->cost,
                            .would = v->would,
                            .attempt = v->attempt,
                            .repeats = v->repeats,
                            .no_progress = v->no_progress,
                            .engine = v->engine};
    if (remember && !v->would.len && error_class_info(v->class)->is_error)
        fresh.would = v->code.len ? v->code : str_of(error_class_info(v->class)->name);
    problems_init(&fresh.problems, arena);
    *v = fresh;
}

static void put_optional(struct json_out *out, const char *key, struct str value)
{
    if (value.len) {
        json_key(out, key);
        json_put_str(out, value);
    }
}

static void put_value(struct json_out *out, const char *key, const struct json *value)
{
    if (value) {
        json_key(out, key);
        json_put(out, value);
    }
}

static void put_number(struct json_out *out, const char *key, int64_t n)
{
    json_key(out, key);
    json_put_int(out, n);
}

static void put_messages(struct json_out *out, const struct problems *problems)
{
    if (!problems->count)
        return;
    json_key(out, "messages");
    json_open(out, '[');
    for (size_t i = 0; i < problems->count; i++)
        problem_json(out, &problems->list[i]);
    json_close(out, ']');
    if (problems->more)
        put_number(out, "more_messages", (int64_t)problems->more);
}

static void put_suggestion(struct json_out *out, bool *open, struct str path, struct str value)
{
    if (!*open) {
        json_key(out, "suggestions");
        json_open(out, '[');
        *open = true;
    }
    json_open(out, '{');
    json_key(out, "path");
    json_put_str(out, path);
    json_key(out, "value");
    json_put_raw(out, value);
    json_close(out, '}');
}

/* What a problem suggests for its place, then what a policy suggests for the arguments together. */
static void put_suggestions(struct json_out *out, const struct verdict *v)
{
    struct arena *arena = v->problems.arena;
    bool open = false;
    for (size_t i = 0; i < v->problems.count; i++) {
        const struct problem *p = &v->problems.list[i];
        struct buf path = buf_in(arena);
        if (!p->suggestion.len)
            continue;
        problem_path(&path, p);
        put_suggestion(out, &open, buf_view(&path), p->suggestion);
    }
    for (uint32_t i = 0; json_is(v->suggest, JSON_OBJECT) && i < v->suggest->len; i++) {
        struct problem place = {.path = v->suggest->members[i].key};
        struct buf path = buf_in(arena), value = buf_in(arena);
        problem_path(&path, &place);
        json_write(&value, &v->suggest->members[i].value);
        put_suggestion(out, &open, buf_view(&path), buf_view(&value));
    }
    if (open)
        json_close(out, ']');
}

void verdict_write(struct buf *buf, const struct verdict *v)
{
    struct json_out writer = json_out(buf), *out = &writer;
    json_open(out, '{');
    json_key(out, "verdict");
    json_put_text(out, verdict_name(v->kind));
    json_key(out, "valid");
    json_put_bool(out, v->valid);
    json_key(out, "error_class");
    json_put_text(out, error_class_info(v->class)->name);
    put_optional(out, "code", v->code);
    put_optional(out, "detail", v->detail);
    put_optional(out, "hint", v->hint);
    put_messages(out, &v->problems);
    put_suggestions(out, v);
    if (v->rewrites && v->rewrites->len)
        put_value(out, "rewrites", v->rewrites);
    if (v->attempt)
        put_number(out, "attempt", v->attempt);
    if (v->has_budget)
        put_number(out, "attempts_left", v->attempts_left);
    put_number(out, "repeats", v->repeats);
    if (v->tries > 1)
        put_number(out, "tries", v->tries);
    if (v->no_progress >= VERDICT_NO_PROGRESS)
        put_number(out, "no_progress", v->no_progress);
    if (v->after_s >= 0)
        put_number(out, "after_s", v->after_s);
    put_optional(out, "coverage", v->coverage);
    put_value(out, "facts", v->facts);
    put_value(out, "follow_up", v->follow_up);
    put_value(out, "next_args", v->next_args);
    put_value(out, "choices", v->choices);
    if (v->bytes_from) {
        json_key(out, "compacted");
        json_open(out, '{');
        put_number(out, "from_bytes", (int64_t)v->bytes_from);
        put_number(out, "to_bytes", (int64_t)v->bytes_to);
        json_close(out, '}');
    }
    put_optional(out, "would", v->would);
    if (v->final) {
        json_key(out, "final");
        json_put_bool(out, true);
    }
    put_optional(out, "ledger", str_of(v->engine));
    json_close(out, '}');
}

struct str verdict_schema(void)
{
    static const char before_classes[] =
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
        "\"title\":\"toolgate verdict\",\"type\":\"object\","
        "\"required\":[\"verdict\",\"valid\",\"error_class\"],\"properties\":{"
        "\"verdict\":{\"enum\":[\"pass\",\"repair\",\"wait\",\"refuse\",\"ask\",\"halt\"]},"
        "\"valid\":{\"type\":\"boolean\",\"description\":\"the arguments, as they stand after mending\"},"
        "\"error_class\":{\"enum\":[";
    static const char after_classes[] =
        "]},"
        "\"code\":{\"type\":\"string\"},\"detail\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},"
        "\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
        "\"required\":[\"path\",\"code\",\"message\",\"severity\"],\"properties\":{"
        "\"path\":{\"type\":\"string\"},\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
        "\"severity\":{\"enum\":[\"error\",\"warning\"]},\"expected\":{},\"got\":{}}}},"
        "\"more_messages\":{\"type\":\"integer\",\"minimum\":1},"
        "\"suggestions\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"path\",\"value\"]"
        ","
        "\"properties\":{\"path\":{\"type\":\"string\"},\"value\":{}}}},"
        "\"rewrites\":{\"type\":\"array\",\"description\":\"JSON Patch\",\"items\":{\"type\":\"object\","
        "\"required\":[\"op\",\"path\"],\"properties\":{\"op\":{\"enum\":[\"add\",\"remove\",\"replace\"]},"
        "\"path\":{\"type\":\"string\"},\"value\":{}}}},"
        "\"attempt\":{\"type\":\"integer\",\"minimum\":1},\"attempts_left\":{\"type\":\"integer\","
        "\"minimum\":0},"
        "\"no_progress\":{\"type\":\"integer\",\"minimum\":6,\"description\":\"calls in a row that brought "
        "nothing new\"},"
        "\"tries\":{\"type\":\"integer\",\"minimum\":2,\"description\":\"how often it was run for this "
        "call\"},"
        "\"repeats\":{\"type\":\"integer\",\"minimum\":0},\"after_s\":{\"type\":\"integer\",\"minimum\":0},"
        "\"coverage\":{\"enum\":[\"SATISFIED\",\"NEEDS_MORE_TOOLS\",\"NEED_USER_INPUT\",\"FAILED\"]},"
        "\"facts\":{\"type\":\"object\"},\"follow_up\":{\"type\":\"object\"},\"next_args\":{\"type\":"
        "\"object\"},"
        "\"compacted\":{\"type\":\"object\",\"required\":[\"from_bytes\",\"to_bytes\"],\"properties\":{"
        "\"from_bytes\":{\"type\":\"integer\"},\"to_bytes\":{\"type\":\"integer\"}}},"
        "\"choices\":{\"type\":\"array\"},\"would\":{\"type\":\"string\"},\"final\":{\"type\":\"boolean\"},"
        "\"ledger\":{\"type\":\"string\"}}}";
    static struct buf text; /* written once, kept for the life of the process */
    if (!text.len) {
        buf_text(&text, before_classes);
        for (int i = 0; i < CLASS_COUNT; i++)
            buf_printf(&text, "%s\"%s\"", i ? "," : "", error_class_info((enum error_class)i)->name);
        buf_text(&text, after_classes);
    }
    return buf_view(&text);
}

struct str coverage_schema(void)
{
    static const char text[] =
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"toolgate coverage\","
        "\"type\":\"object\",\"required\":[\"coverage\"],\"additionalProperties\":false,\"properties\":{"
        "\"coverage\":{\"enum\":[\"SATISFIED\",\"NEEDS_MORE_TOOLS\",\"NEED_USER_INPUT\",\"FAILED\"],"
        "\"description\":\"does what is known answer what the user asked for\"},"
        "\"facts\":{\"type\":\"object\",\"description\":\"what is known so far, by name\"},"
        "\"follow_up\":{\"type\":\"object\",\"required\":[\"tool\",\"args\"],\"additionalProperties\":false,"
        "\"properties\":{\"tool\":{\"type\":\"string\"},\"args\":{\"type\":\"object\"}},"
        "\"description\":\"the exact next call\"},"
        "\"question\":{\"type\":\"string\",\"description\":\"for NEED_USER_INPUT: what to ask the user\"}}}";
    return STR_LIT(text);
}

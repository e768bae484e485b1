/*
 * The functions that read a peer's text, and texts that are hard for them: tests/spec/bench/linear_spec.lua
 * counts their instructions, `make fuzz` (fuzz_linear.c) takes their time with units of its own.
 * Not here: what has a budget of steps instead (schemas and their patterns, copies of secrets:
 * REDACT_STEPS_MAX).
 */
#ifndef TOOLGATE_FUZZ_LINEAR_H
#define TOOLGATE_FUZZ_LINEAR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/printable.h"
#include "base/stack_trace.h"
#include "base/trace_context.h"
#include "gate/decision_mask.h"
#include "gate/ids.h"
#include "io/http_listener.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/spelled.h"
#include "json/write.h"
#include "result/compact.h"
#include "result/failure_envelope.h"
#include "result/pattern_sets.h"
#include "result/result.h"
#include "result/secret_text.h"
#include "server/served.h"
#include "upstream/http/sse.h"
#include "upstream/mcp/mcp_header_mapping.h"
#include "upstream/mcp/mcp_message.h"

struct linear_case {
    const char *name;
    void (*read)(struct arena *arena, struct str text);
};

static const uint8_t linear_key[16] = "0123456789abcdef";

static void linear_mask_value(struct arena *arena, struct str text)
{
    static const struct str names[] = {STR("*password*"), STR("*token*")};
    struct decision_mask *mask = decision_mask_new(names, 2, linear_key);
    struct decision_masking *masking = decision_masking_new(mask, arena, NULL);
    struct json_member member = json_member(text, json_string(text));
    struct json value = json_object(arena, &member, 1);
    decision_mask_is_clean(mask, NULL, &value);
    decision_masking_value(masking, &value, true);
    decision_masking_text(masking, text);
    decision_mask_free(mask);
}

static void linear_pattern_sets(struct arena *arena, struct str text)
{
    struct json value = json_string(text);
    struct pattern_found found;
    pattern_sets_find(arena, ~0u, &value, &found);
    pattern_sets_mask_text(arena, ~0u, text);
}

static void linear_orders(struct arena *arena, struct str text)
{
    size_t at = 0, len = 0;
    struct str name;
    (void)arena;
    for (size_t from = 0; from < text.len && order_text_find(text, from, &at, &len, &name); from = at + len)
        continue;
}

static void linear_spelled(struct arena *arena, struct str text)
{
    struct json value;
    json_read_spelled(arena, text, &value, NULL);
}

static void linear_json(struct arena *arena, struct str text)
{
    struct json value;
    struct json_error fault;
    struct buf out = buf_in(arena);
    json_recover_id(text);
    if (json_parse(arena, text, NULL, &value, &fault) == OK)
        json_canonical(&out, &value);
}

static void linear_printable(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    printable_write(&out, text);
    printable_write_lines(&out, text);
    printable_strip(&out, text);
    printable_strip_invisible(&out, text);
    printable_count_hidden(text);
}

static void linear_envelope(struct arena *arena, struct str text)
{
    struct json value = json_string(text), content;
    struct result result;
    struct envelope_call call = {STR_LIT("tool"), NULL};
    content = *json_keep(arena, value);
    result_read(arena, &content, &result);
    envelope_detect(arena, &result, &call);
    envelope_of_message(text);
}

static void linear_result_mask(struct arena *arena, struct str text)
{
    struct json value = json_string(text);
    struct buf out = buf_in(arena);
    result_mask_write(&out, arena, &value, true);
    fresh_ids_without(arena, &value);
}

/* A goal, and ids that begin as it does: one is not in it, one is a part of a longer word everywhere. */
static void linear_goal(struct arena *arena, struct str text)
{
    struct buf id = buf_in(arena);
    buf_str(&id, (struct str){text.at, text.len / 2});
    buf_byte(&id, '!');
    ids_in_goal(text, buf_view(&id));
    ids_in_goal(text, (struct str){text.at, text.len / 2});
}

/* As text, and as HTML; of a call whose id repeats the same. */
static void linear_compact(struct arena *arena, struct str text)
{
    struct tool tool = {.name = STR("t"), .compact = {.on = true, .max_bytes = 1000}};
    struct buf page = buf_in(arena);
    buf_text(&page, "<!DOCTYPE html><html><body>");
    buf_str(&page, text);
    struct json texts[] = {json_string(text), json_string(buf_view(&page))};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct json_member block[] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                      json_member(STR_LIT("text"), texts[i])};
        struct json item = json_object(arena, block, 2), content = json_array(&item, 1);
        struct result result = {.content = &content};
        struct json_member id[] = {json_member(STR_LIT("id"), json_string(str_cut(text, text.len / 2)))};
        struct json arguments = json_object(arena, id, 1);
        struct compaction out;
        compact_result(arena, &tool, &arguments, STR_LIT("find the answer"), &result, &out);
    }
}

static void linear_stack_trace(struct arena *arena, struct str text)
{
    struct buf trace = buf_in(arena);
    buf_text(&trace, "Traceback (most recent call last):\n  at ");
    buf_str(&trace, text);
    stack_trace_strip(arena, text);
    stack_trace_strip(arena, buf_view(&trace));
}

/* The heads of an HTTP request, a stream of events in pieces of 16 bytes, a message of MCP. */
static void linear_wire(struct arena *arena, struct str text)
{
    struct buf head = buf_in(arena);
    struct http_request request;
    struct sse sse;
    struct sse_event event;
    const char *why;
    buf_text(&head, "GET / HTTP/1.1\r\nHost: ");
    buf_str(&head, text);
    http_head_length(buf_view(&head));
    http_request_parse(buf_view(&head), &request, &why);
    sse_init(&sse, text.len);
    for (size_t at = 0; at < text.len; at += 16) {
        struct str piece = {text.at + at, at + 16 < text.len ? 16 : text.len - at};
        enum sse_result result = SSE_EVENT;
        while (result == SSE_EVENT)
            result = sse_next(&sse, &piece, &event);
    }
    sse_clear(&sse);
    mcp_message_scan(text);
    header_mapping_encode(arena, text);
    for (enum trace_key key = 0; key < TRACE_KEYS; key++)
        trace_context_fault(key, text);
}

/* A URI and a template that both repeat the unit. */
static void linear_template(struct arena *arena, struct str text)
{
    struct buf template = buf_in(arena);
    size_t literal;
    buf_text(&template, "{+a}");
    buf_str(&template, str_cut(text, text.len / 2));
    resource_template_fits(text, text, &literal);
    resource_template_fits(buf_view(&template), text, &literal);
    buf_text(&template, "{b}!");
    resource_template_fits(buf_view(&template), text, &literal);
}

static const struct linear_case linear_cases[] = {
    {"mask of the decision log", linear_mask_value},
    {"pattern sets", linear_pattern_sets},
    {"orders in texts", linear_orders},
    {"oddly spelled JSON", linear_spelled},
    {"JSON", linear_json},
    {"hidden characters", linear_printable},
    {"failure envelopes", linear_envelope},
    {"masks of results", linear_result_mask},
    {"ids in a goal", linear_goal},
    {"compaction", linear_compact},
    {"stack traces", linear_stack_trace},
    {"HTTP, events and messages", linear_wire},
    {"resource templates", linear_template},
};
#define LINEAR_CASES (sizeof(linear_cases) / sizeof(linear_cases[0]))

/* The unit again and again, in memory of its own so that reads beyond it are found. */
static struct str linear_text(struct arena *arena, struct str unit, size_t len)
{
    char *text = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = unit.at[i % unit.len];
    return (struct str){text, len};
}

#endif

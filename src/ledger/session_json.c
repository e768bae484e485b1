/*
 * The text is written once and parsed back: facts are JSON already, so they need no second reader.
 */
#include "ledger/session.h"

#include "base/arena.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdlib.h>

#define TOOL_BYTES      4u /* of a tool's hash, in the name of its field */
#define NOTE_TOOL_BYTES 3u /* the same in a note */

static struct json parse(struct arena *arena, const struct buf *text)
{
    struct json value = {.type = JSON_NULL};
    struct json_error error;
    if (json_parse(arena, buf_view(text), NULL, &value, &error) != OK && !error.soft)
        return (struct json){.type = JSON_NULL};
    return value;
}

static struct json_field name_field(const char *key, struct str name)
{
    return name.len ? FIELD_STR(key, name) : FIELD_RAW(key, STR_LIT("null"));
}

/* ---- details --------------------------------------------------------------------- */

/* By the first bytes of the tool's hash. */
static struct str tool_name(const struct session_parts *parts, uint32_t tool, size_t bytes)
{
    char name[1 + TOOL_BYTES] = {'t'};
    struct str rest = buf_view(&parts->details);
    struct detail detail;
    for (size_t i = 0; i < bytes; i++)
        name[1 + i] = (char)(tool >> 8 * i);
    while (detail_next(&rest, &detail))
        if (detail.name.len == sizeof(name) && memcmp(detail.name.at, name, 1 + bytes) == 0)
            return detail.value;
    return STR_NONE;
}

/* Of what begins with its name. */
static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sorted: stores differ in the order of a hash. */
static void put_facts(struct json_out *out, const struct session_parts *parts)
{
    struct detail facts[SESSION_FACTS_MAX], detail;
    struct str rest = buf_view(&parts->details);
    size_t count = 0;
    while (count < SESSION_FACTS_MAX && detail_next(&rest, &detail))
        if (str_starts(detail.name, "f"))
            facts[count++] = (struct detail){str_from(detail.name, 1), detail.value};
    qsort(facts, count, sizeof(*facts), by_name);
    json_open(out, '{');
    for (size_t i = 0; i < count; i++) {
        json_key_str(out, facts[i].name);
        json_put_raw(out, facts[i].value);
    }
    json_close(out, '}');
}

struct json session_json_facts(struct arena *arena, const struct session_parts *parts)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    put_facts(&out, parts);
    return parse(arena, &text);
}

/* ---- history --------------------------------------------------------------------- */

/* False: none exists, or it was not written by us. */
static bool read_note(const struct session_parts *p, const struct session *s, uint32_t number,
                      struct session_note *note)
{
    size_t at = number % s->journal_max * sizeof(*note);
    if (at + sizeof(*note) > p->journal.len)
        return false;
    memcpy(note, p->journal.at + at, sizeof(*note));
    return note->code < CODE_COUNT;
}

static void put_history(struct json_out *out, const struct session *session,
                        const struct session_parts *parts)
{
    uint32_t written = session->journal_count, capacity = session->journal_max;
    uint32_t kept = written < capacity ? written : capacity;
    json_open(out, '[');
    for (uint32_t i = written - kept; i < written; i++) {
        struct session_note note;
        if (!read_note(parts, session, i, &note))
            continue;
        json_put_object(out, name_field("tool", tool_name(parts, note.tool, NOTE_TOOL_BYTES)),
                        name_field("class", ledger_label_name(note.label)),
                        name_field("code", ledger_code_name(note.code)), FIELD_NUM("turn", note.turn),
                        FIELD_NUM("step", note.step), FIELD_NUM("at_ms", (int64_t)note.second * 1000),
                        FIELD_NUM("retries", note.retries), FIELD_IF(note.halted, FIELD_BOOL("halted", true)),
                        FIELD_IF(note.not_enforced, FIELD_BOOL("not_enforced", true)));
    }
    for (unsigned i = 0; i < session->chain_count; i++) {
        const struct session_chain *chain = &session->chains[i];
        if (!chain->ended)
            json_put_object(out, name_field("tool", (struct str){chain->name, chain->name_len}),
                            FIELD_TEXT("class", "invalid_arguments"), name_field("code", STR_NONE),
                            FIELD_NUM("step", chain->step),
                            FIELD_NUM("retries", session_chain_retries(chain)), FIELD_BOOL("open", true));
    }
    json_close(out, ']');
}

struct json session_json_history(struct arena *arena, const struct session *session,
                                 const struct session_parts *parts)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    put_history(&out, session, parts);
    return parse(arena, &text);
}

/* ---- the whole session ----------------------------------------------------------- */

/* In the unit that the operator counts in. */
static void put_cost(struct json_out *out, const char *key, uint64_t cost)
{
    json_key(out, key);
    json_put_double(out, (double)cost / LEDGER_COST_UNIT);
}

struct tool_use {
    struct str name;
    const struct session_counter *counter;
};

/* What tools with limits have used. */
static void put_tools(struct json_out *out, const struct session *session, const struct session_parts *parts)
{
    struct tool_use tools[SESSION_COUNTERS_MAX];
    if (session->counter_count == 0)
        return;
    for (unsigned i = 0; i < session->counter_count; i++)
        tools[i] =
            (struct tool_use){tool_name(parts, session->counters[i].tool, TOOL_BYTES), &session->counters[i]};
    qsort(tools, session->counter_count, sizeof(*tools), by_name);
    json_field_open(out, "tools", '[');
    for (unsigned i = 0; i < session->counter_count; i++) {
        const struct session_counter *counter = tools[i].counter;
        bool this_turn = counter->turn == session->turn;
        json_open(out, '{');
        json_fields(out, name_field("tool", tools[i].name),
                    FIELD_NUM("calls_in_turn", this_turn ? counter->calls_turn : 0),
                    FIELD_NUM("calls", counter->calls));
        put_cost(out, "cost_in_turn", this_turn ? counter->cost_turn : 0);
        put_cost(out, "cost", counter->cost);
        json_close(out, '}');
    }
    json_close(out, ']');
}

unsigned session_waiting(const struct session *session)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < session->call_count; i++)
        waiting += session->calls[i].class == CALL_PENDING;
    return waiting;
}

struct json session_json(struct arena *arena, struct str name, const struct session *session,
                         const struct session_parts *parts)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    struct str goal = session->has_goal ? detail_find(buf_view(&parts->details), STR_LIT("g")) : STR_NONE;
    json_fields(&out, name_field("session", name), FIELD_NUM("turn", session->turn),
                FIELD_NUM("step", session->step), name_field("goal", goal));
    json_field_open(&out, "budgets", '{');
    json_fields(&out, FIELD_NUM("calls_in_turn", session->calls_in_turn),
                FIELD_NUM("calls", session->calls_made));
    put_cost(&out, "cost_in_turn", session->cost_in_turn);
    put_cost(&out, "cost", session->cost);
    json_fields(&out, FIELD_NUM("turn_began_ms", (int64_t)session->turn_began_s * 1000),
                FIELD_NUM("no_progress", session->idle[0].calls),
                FIELD_NUM("waiting", session_waiting(session)));
    json_field_open(&out, "chains", '[');
    for (unsigned i = 0; i < session->chain_count; i++) {
        const struct session_chain *chain = &session->chains[i];
        json_put_object(&out, name_field("tool", (struct str){chain->name, chain->name_len}),
                        name_field("ext", (struct str){chain->ext, chain->ext_len}),
                        FIELD_NUM("invalid", chain->attempts), FIELD_BOOL("ended", chain->ended));
    }
    json_close(&out, ']');
    put_tools(&out, session, parts);
    json_close(&out, '}');
    json_field_object(&out, "ids", FIELD_NUM("seen", parts->ids.len / SESSION_ID_BYTES),
                      FIELD_BOOL("complete", session->ids != IDS_FORGOTTEN));
    json_key(&out, "facts");
    put_facts(&out, parts);
    json_key(&out, "history");
    put_history(&out, session, parts);
    json_close(&out, '}');
    return parse(arena, &text);
}

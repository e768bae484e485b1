/*
 * Unpacks journal, facts and the session string. The text is written once and
 * parsed back, so that facts, which are JSON already, need no second reader.
 */
#include "ledger/view.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"
#include "ledger/words.h"

#include <stdlib.h>

#define TOOL_BYTES        3u
#define SESSION_PAIRS_MAX 512u /* facts, or names of tools, that one session can hold */

struct pair {
    struct str name, value;
};

static size_t read_pairs(struct str list, struct pair pairs[SESSION_PAIRS_MAX])
{
    struct reply reply = reply_of(list);
    size_t count = 0;
    while (reply.at < reply.end && !reply.bad && count < SESSION_PAIRS_MAX) {
        pairs[count].name = reply_part(&reply);
        pairs[count++].value = reply_part(&reply);
    }
    return count;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static struct json parsed(struct arena *arena, struct buf *text)
{
    struct json value = {.type = JSON_NULL};
    struct json_error fault;
    if (json_parse(arena, buf_view(text), NULL, &value, &fault) != OK && !fault.soft)
        return (struct json){.type = JSON_NULL};
    return value;
}

/* ---- facts ---------------------------------------------------------------- */

static void put_facts(struct json_out *out, struct str list)
{
    struct pair pairs[SESSION_PAIRS_MAX];
    size_t count = read_pairs(list, pairs);
    qsort(pairs, count, sizeof(*pairs), by_name); /* engines differ in the order of a hash */
    json_open(out, '{');
    for (size_t i = 0; i < count; i++) {
        json_key_str(out, pairs[i].name);
        json_put_raw(out, pairs[i].value);
    }
    json_close(out, '}');
}

struct json view_facts(struct arena *arena, const struct reply_parts *parts)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    put_facts(&out, parts->facts);
    return parsed(arena, &text);
}

/* ---- journal -------------------------------------------------------------- */

struct tool_names {
    struct pair pairs[SESSION_PAIRS_MAX];
    size_t count;
};

static struct str tool_name(const struct tool_names *names, struct str tool)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->pairs[i].name, tool))
            return names->pairs[i].value;
    return STR_NONE;
}

static void put_name(struct json_out *out, const char *key, struct str name)
{
    json_key(out, key);
    if (name.len)
        json_put_str(out, name);
    else
        json_put(out, NULL);
}

static void put_number(struct json_out *out, const char *key, int64_t n)
{
    json_key(out, key);
    json_put_int(out, n);
}

static void put_entry(struct json_out *out, struct reply *journal, const struct tool_names *names)
{
    int64_t second = reply_u32(journal);
    struct str tool = reply_take(journal, TOOL_BYTES);
    uint8_t label = reply_u8(journal), code = reply_u8(journal);
    unsigned turn = (unsigned)reply_u8(journal) << 8;
    turn |= reply_u8(journal);
    json_open(out, '{');
    put_name(out, "tool", tool_name(names, tool));
    put_name(out, "class", word_label(label));
    put_name(out, "code", word_code(code));
    put_number(out, "turn", turn);
    put_number(out, "step", reply_u8(journal));
    put_number(out, "at_ms", second * 1000);
    put_number(out, "retries", reply_u8(journal));
    json_close(out, '}');
}

struct chain {
    struct str name, ext;
    uint8_t count, ended, step;
};

static struct chain read_chain(struct reply *chains)
{
    struct chain chain;
    reply_take(chains, TOOL_BYTES);
    chain.count = reply_u8(chains);
    chain.ended = reply_u8(chains);
    chain.step = reply_u8(chains);
    chain.name = reply_take(chains, reply_u8(chains));
    chain.ext = reply_take(chains, reply_u8(chains));
    return chain;
}

static void put_open_chain(struct json_out *out, const struct chain *chain)
{
    json_open(out, '{');
    put_name(out, "tool", chain->name);
    json_key(out, "class");
    json_put_text(out, "invalid_arguments");
    put_name(out, "code", STR_NONE);
    put_number(out, "step", chain->step);
    put_number(out, "retries", chain->count ? chain->count - 1 : 0);
    json_key(out, "open");
    json_put_bool(out, true);
    json_close(out, '}');
}

static void put_history(struct json_out *out, struct arena *arena, const struct reply_parts *parts)
{
    struct tool_names *names = ARENA_NEW(arena, struct tool_names);
    names->count = read_pairs(parts->names, names->pairs);
    struct reply journal = reply_of(parts->journal), chains = reply_of(parts->chains);
    json_open(out, '[');
    while (journal.at < journal.end && !journal.bad)
        put_entry(out, &journal, names);
    while (chains.at < chains.end && !chains.bad) {
        struct chain chain = read_chain(&chains);
        if (!chain.ended)
            put_open_chain(out, &chain);
    }
    json_close(out, ']');
}

struct json view_history(struct arena *arena, const struct reply_parts *parts)
{
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    put_history(&out, arena, parts);
    return parsed(arena, &text);
}

/* ---- the whole session ---------------------------------------------------- */

static void put_chains(struct json_out *out, struct str list)
{
    struct reply chains = reply_of(list);
    json_open(out, '[');
    while (chains.at < chains.end && !chains.bad) {
        struct chain chain = read_chain(&chains);
        json_open(out, '{');
        put_name(out, "tool", chain.name);
        put_name(out, "ext", chain.ext);
        put_number(out, "invalid", chain.count);
        json_key(out, "ended");
        json_put_bool(out, chain.ended);
        json_close(out, '}');
    }
    json_close(out, ']');
}

struct header {
    uint8_t ids, step, idle, waiting;
    uint32_t turn, calls_turn, calls, began;
    uint64_t cost_turn, cost;
};

static struct header read_header(struct str raw, bool *bad)
{
    struct reply reply = reply_of(raw);
    struct header h = {0};
    reply_take(&reply, 1);
    h.step = reply_u8(&reply);
    h.idle = reply_u8(&reply);
    h.waiting = reply_u8(&reply);
    reply_take(&reply, 2 + 1 + 2); /* of chains, room, journal */
    h.ids = reply_u8(&reply) & 3;
    h.calls_turn = (uint32_t)reply_u8(&reply) << 8;
    h.calls_turn |= reply_u8(&reply);
    h.calls = (uint32_t)reply_u8(&reply) << 16;
    h.calls |= (uint32_t)reply_u8(&reply) << 8;
    h.calls |= reply_u8(&reply);
    reply_take(&reply, 3); /* of the second of the last EXPIRE */
    h.turn = reply_u32(&reply);
    reply_take(&reply, 4); /* step label */
    h.cost_turn = reply_u48(&reply);
    h.cost = reply_u48(&reply);
    h.began = reply_u32(&reply);
    *bad = reply.bad;
    return h;
}

/* Millionths as the number that the operator counts in. */
static void put_cost(struct json_out *out, const char *key, uint64_t cost)
{
    json_key(out, key);
    json_put_double(out, (double)cost / LEDGER_COST_UNIT);
}

/* What a tool with limits has used up; see lua/ledger/limits.lua. */
static void put_tool(struct json_out *out, struct str name, struct str count, uint32_t turn)
{
    struct reply reply = reply_of(count);
    bool this_turn = reply_u32(&reply) == turn;
    uint32_t calls_turn = reply_u32(&reply), calls = reply_u32(&reply);
    uint64_t cost_turn = reply_u48(&reply), cost = reply_u48(&reply);
    json_open(out, '{');
    put_name(out, "tool", name);
    put_number(out, "calls_in_turn", this_turn ? calls_turn : 0);
    put_number(out, "calls", calls);
    put_cost(out, "cost_in_turn", this_turn ? cost_turn : 0);
    put_cost(out, "cost", cost);
    json_close(out, '}');
}

static void put_tools(struct json_out *out, struct arena *arena, struct str names_list, struct str list,
                      uint32_t turn)
{
    struct tool_names *names = ARENA_NEW(arena, struct tool_names);
    struct pair counts[SESSION_PAIRS_MAX];
    size_t count = read_pairs(list, counts);
    names->count = read_pairs(names_list, names->pairs);
    for (size_t i = 0; i < count; i++)
        counts[i].name = tool_name(names, counts[i].name);
    qsort(counts, count, sizeof(*counts), by_name);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        put_tool(out, counts[i].name, counts[i].value, turn);
    json_close(out, ']');
}

static void put_budgets(struct json_out *out, struct arena *arena, const struct header *h,
                        const struct reply_parts *parts, struct str counts)
{
    json_open(out, '{');
    put_number(out, "calls_in_turn", h->calls_turn);
    put_number(out, "calls", h->calls);
    put_cost(out, "cost_in_turn", h->cost_turn);
    put_cost(out, "cost", h->cost);
    put_number(out, "turn_began_ms", (int64_t)h->began * 1000);
    put_number(out, "no_progress", h->idle);
    put_number(out, "waiting", h->waiting);
    json_key(out, "chains");
    put_chains(out, parts->chains);
    if (counts.len) {
        json_key(out, "tools");
        put_tools(out, arena, parts->names, counts, h->turn);
    }
    json_close(out, '}');
}

static void put_ids(struct json_out *out, const struct header *h, size_t count)
{
    json_open(out, '{');
    put_number(out, "seen", (int64_t)count);
    json_key(out, "complete");
    json_put_bool(out, h->ids != 2);
    json_close(out, '}');
}

enum err view_session(struct arena *arena, struct str session, struct str text, struct json *out,
                      struct why *why)
{
    struct reply reply = reply_of(text);
    struct reply_parts parts;
    reply_read_parts(&reply, &parts);
    struct str raw = reply_part(&reply), ids = reply_part(&reply), counts = reply_part(&reply);
    bool bad = false;
    struct header h = read_header(raw, &bad);
    if (bad || reply.bad)
        return err_set(why, ERR_PARSE, "the ledger's view of a session is %zu bytes, too few to be one",
                       text.len);
    struct buf json = buf_in(arena);
    struct json_out put = json_out(&json);
    json_open(&put, '{');
    put_name(&put, "session", session);
    put_number(&put, "turn", h.turn);
    put_number(&put, "step", h.step);
    put_name(&put, "goal", parts.goal);
    json_key(&put, "budgets");
    put_budgets(&put, arena, &h, &parts, counts);
    json_key(&put, "ids");
    put_ids(&put, &h, ids.len / 8);
    json_key(&put, "facts");
    put_facts(&put, parts.facts);
    json_key(&put, "history");
    put_history(&put, arena, &parts);
    json_close(&put, '}');
    *out = parsed(arena, &json);
    return OK;
}

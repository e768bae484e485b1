/* Fixed fields are written byte by byte, big-endian, in the order of the script's contract. */
#include "ledger/pack.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"
#include "ledger/words.h"

/* ---- fields --------------------------------------------------------------- */

static void put_u8(struct buf *buf, uint32_t n)
{
    buf_byte(buf, (char)(n > 255 ? 255 : n));
}

static void put_low_bytes(struct buf *buf, uint64_t n, unsigned count)
{
    while (count--)
        buf_byte(buf, (char)(n >> 8 * count & 255));
}

static void put_u32(struct buf *buf, uint32_t n)
{
    put_low_bytes(buf, n, 4);
}

/* A limit that is a count of calls; see LEDGER_COUNT_MAX. */
static void put_count(struct buf *buf, uint32_t n)
{
    put_u8(buf, n == LEDGER_UNLIMITED ? 255 : n > LEDGER_COUNT_MAX ? LEDGER_COUNT_MAX : n);
}

static void put_u48(struct buf *buf, uint64_t n)
{
    put_low_bytes(buf, n, 6);
}

/* Limits where 0 says there is none. */
static void put_limit(struct buf *buf, uint32_t n)
{
    put_u32(buf, n ? n : UINT32_MAX);
}

static void put_cost_limit(struct buf *buf, uint64_t n)
{
    put_u48(buf, n ? n : (1ull << 48) - 1);
}

static void put_step(struct buf *buf, struct str label)
{
    uint32_t hash = label.len ? (uint32_t)hash_stable(label).low : 0;
    put_u32(buf, label.len && !hash ? 1 : hash);
}

/* 32 of the admission's 64 bits, spread so that those counted up by several daemons don't meet. */
static void put_admission(struct buf *buf, uint64_t admission)
{
    put_u32(buf, (uint32_t)(admission * 0x9e3779b97f4a7c15u >> 32));
}

static void put_tool(struct buf *buf, struct str tool)
{
    put_low_bytes(buf, hash_stable(tool).low, 3);
}

static void put_key(struct buf *buf, struct str tool, struct hash128 arguments)
{
    put_tool(buf, tool);
    put_low_bytes(buf, arguments.low, 6);
}

/* All zeros stand for "not known", so no known result may be that. */
static void put_result(struct buf *buf, struct hash128 result)
{
    uint64_t low = result.low & 0xffffffffffffu;
    put_low_bytes(buf, low || (!result.low && !result.high) ? low : 1, 6);
}

static struct str pack_ids(struct arena *arena, const struct hash128 *ids, size_t count, size_t most)
{
    struct buf buf = buf_in(arena);
    for (size_t i = 0; i < count && i < most; i++)
        put_low_bytes(&buf, ids[i].low, 8);
    return buf_view(&buf);
}

static void add_names(struct script_run *run, struct str tool, struct str ext)
{
    script_arg(run, str_cut(tool, PACK_NAME_MAX_BYTES));
    script_arg(run, str_cut(ext, PACK_EXT_MAX_BYTES));
}

/* ---- requests ------------------------------------------------------------- */

static void put_limits(struct buf *buf, const struct ledger_limits *l, uint32_t anonymous_repeats)
{
    put_u8(buf, l->effects == LEDGER_EFFECTS_WRITE);
    put_u8(buf, l->effects == LEDGER_EFFECTS_DESTRUCTIVE);
    put_u8(buf, l->polls);
    put_count(buf, l->same_call);
    put_count(buf, l->transient);
    put_count(buf, l->repeats);
    put_count(buf, l->across_turns);
    put_count(buf, l->poll_max);
    put_count(buf, l->halt);
    put_count(buf, anonymous_repeats ? anonymous_repeats : LEDGER_UNLIMITED);
}

static bool is_limited(const struct ledger_allowance *a)
{
    return a->calls_per_turn || a->calls_per_session || a->seconds_per_turn || a->cost_per_turn ||
           a->cost_per_session;
}

static void put_allowance(struct buf *buf, const struct ledger_allowance *a)
{
    put_limit(buf, a->calls_per_turn);
    put_limit(buf, a->calls_per_session);
    put_limit(buf, a->seconds_per_turn);
    put_cost_limit(buf, a->cost_per_turn);
    put_cost_limit(buf, a->cost_per_session);
}

/* The calls of most tools are limited by nothing of this: then there is nothing more to read. */
static void put_allowances(struct buf *buf, const struct ledger_limits *l)
{
    if (is_limited(&l->tool))
        put_allowance(buf, &l->tool);
    if (is_limited(&l->session))
        put_allowance(buf, &l->session);
}

/* Of most tools nothing of this is told: then the script does not look for it. */
static bool tells_more(const struct ledger_place *place, const struct ledger_limits *l)
{
    return place->turn_idle_s || l->costs || l->cost || l->poll_every_ms;
}

/* Even of a call that is like no other. */
static bool may_refuse(const struct ledger_limits *l)
{
    return l->same_call == 0 || l->transient == 0 || l->repeats < 2 || l->across_turns < 2 ||
           l->poll_max == 0;
}

static uint8_t what_to_read(const struct ledger_place *place, const struct ledger_limits *l)
{
    return (uint8_t)((is_limited(&l->tool) ? 1 : 0) + (is_limited(&l->session) ? 2 : 0) +
                     (tells_more(place, l) ? 4 : 0) + (may_refuse(l) ? 8 : 0));
}

/* A server makes a string of each, also of one that is empty. The packed argument and the name stay. */
static void leave_out_empty(struct script_run *run)
{
    while (run->arg_count > 2 && run->args[run->arg_count - 1].len == 0)
        run->arg_count--;
}

static struct str label_of(const struct ledger_admit *request)
{
    if (request->so_far == LEDGER_SO_FAR_INVALID)
        return STR_LIT("invalid_arguments");
    if (request->so_far == LEDGER_SO_FAR_FABRICATED)
        return STR_LIT("fabricated_id");
    return request->refused_as;
}

void pack_admit(struct script_run *run, const struct ledger_admit *request,
                const struct pack_options *options, struct arena *arena)
{
    const struct ledger_place *place = &request->place;
    const struct ledger_limits *limits = request->limits ? request->limits : &ledger_default_limits;
    struct buf buf = buf_in(arena);
    put_u32(&buf, place->turn);
    put_step(&buf, place->step);
    put_admission(&buf, request->admission);
    put_key(&buf, request->tool, request->arguments);
    put_u8(&buf, request->so_far);
    put_u8(&buf, place->anonymous);
    put_u8(&buf, limits->effects == LEDGER_EFFECTS_READ);
    put_count(&buf, limits->repair);
    put_u8(&buf, place->step.len > 0);
    put_u8(&buf, request->wants_facts);
    put_u8(&buf, request->wants_history);
    put_u32(&buf, request->reservation_ms ? request->reservation_ms : LEDGER_RESERVATION_MS);
    put_u32(&buf, options->ttl_s);
    put_u8(&buf, what_to_read(place, limits));
    put_limits(&buf, limits, place->anonymous_repeats);
    put_u8(&buf, word_label_number(label_of(request)));
    put_u32(&buf, options->history);
    put_u32(&buf, place->turn_idle_s);
    put_u8(&buf, limits->costs);
    put_u48(&buf, limits->cost);
    put_u32(&buf, limits->poll_every_ms);
    put_allowances(&buf, limits);
    script_arg(run, buf_view(&buf));
    add_names(run, request->tool, request->ext);
    script_arg(run, pack_ids(arena, request->ids, request->id_count, LEDGER_IDS_MAX));
    leave_out_empty(run);
}

/* The classes as session.lua numbers them. */
static const uint8_t classes[LEDGER_CLASS_COUNT] = {
    [LEDGER_CLASS_OK] = 1,          [LEDGER_CLASS_PARTIAL] = 2,
    [LEDGER_CLASS_GARBAGE] = 3,     [LEDGER_CLASS_SCHEMA_MISMATCH] = 4,
    [LEDGER_CLASS_TOOL_ERROR] = 5,  [LEDGER_CLASS_TRANSIENT] = 7,
    [LEDGER_CLASS_RELEASED] = 8,    [LEDGER_CLASS_INVALID] = 9,
    [LEDGER_CLASS_FABRICATED] = 10, [LEDGER_CLASS_REFUSED] = 11,
};

static void add_facts(struct script_run *run, const struct json *facts, struct arena *arena)
{
    for (uint32_t i = 0; i < facts->len && i < PACK_FACTS_MAX; i++) {
        const struct json_member *m = &facts->members[i];
        struct buf value = buf_in(arena);
        json_write(&value, &m->value);
        script_arg(run, m->key);
        script_arg(run, buf_view(&value));
    }
}

void pack_settle(struct script_run *run, const struct ledger_settle *request,
                 const struct pack_options *options, struct arena *arena)
{
    const struct ledger_limits *limits = request->limits ? request->limits : &ledger_default_limits;
    uint64_t cost = request->cost_told ? request->cost : limits->cost;
    struct buf buf = buf_in(arena);
    put_u32(&buf, request->place.turn);
    put_step(&buf, request->place.step);
    put_admission(&buf, request->admission);
    put_key(&buf, request->tool, request->arguments);
    put_result(&buf, request->result);
    put_u8(&buf, classes[request->class] + (limits->effects == LEDGER_EFFECTS_READ ? 32 : 0));
    put_u8(&buf, limits->effects == LEDGER_EFFECTS_READ);
    put_u8(&buf, limits->effects == LEDGER_EFFECTS_DESTRUCTIVE);
    put_count(&buf, limits->repair);
    put_u8(&buf, word_label_number(request->label));
    put_u48(&buf, cost);
    put_u32(&buf, options->ttl_s);
    put_u32(&buf, options->history);
    put_u8(&buf, request->place.anonymous);
    put_u8(&buf, (is_limited(&limits->tool) ? 1 : 0) + (cost || limits->cost ? 2 : 0) +
                     (request->not_begun ? 4 : 0));
    put_u8(&buf, limits->poll_every_ms > 0);
    put_u48(&buf, limits->cost);
    script_arg(run, buf_view(&buf));
    add_names(run, request->tool, request->ext);
    script_arg(run, pack_ids(arena, request->gives_ids, request->gives_id_count, LEDGER_GIVEN_IDS_MAX));
    if (json_is(request->facts, JSON_OBJECT))
        add_facts(run, request->facts, arena);
    leave_out_empty(run);
}

void pack_turn(struct script_run *run, uint32_t turn, struct str goal, const struct pack_options *options,
               struct arena *arena)
{
    struct buf buf = buf_in(arena);
    put_u32(&buf, turn);
    put_u32(&buf, options->ttl_s);
    put_u32(&buf, options->history);
    script_arg(run, buf_view(&buf));
    script_arg(run, str_cut(goal, PACK_GOAL_MAX_BYTES));
}

static struct buf pack_common(const struct pack_options *options, struct arena *arena)
{
    struct buf buf = buf_in(arena);
    put_u32(&buf, options->ttl_s);
    put_u32(&buf, options->history);
    return buf;
}

void pack_see(struct script_run *run, const struct hash128 *ids, size_t count,
              const struct pack_options *options, struct arena *arena)
{
    struct buf buf = pack_common(options, arena);
    script_arg(run, buf_view(&buf));
    script_arg(run, pack_ids(arena, ids, count, LEDGER_IDS_MAX));
}

void pack_reset(struct script_run *run, struct str tool, const struct pack_options *options,
                struct arena *arena)
{
    struct buf buf = pack_common(options, arena);
    if (tool.len)
        put_tool(&buf, tool);
    script_arg(run, buf_view(&buf));
}

void pack_leave(struct script_run *run, const struct pack_options *options, struct arena *arena)
{
    struct buf buf = pack_common(options, arena);
    script_arg(run, buf_view(&buf));
}

void pack_doubt(struct buf *out, const struct ledger_admit *request)
{
    const struct ledger_limits *limits = request->limits ? request->limits : &ledger_default_limits;
    put_admission(out, request->admission);
    put_tool(out, request->tool);
    put_u48(out, limits->cost);
    put_u8(out, (is_limited(&limits->tool) ? 1 : 0) + (limits->poll_every_ms ? 2 : 0));
}

void pack_merge(struct script_run *run, uint64_t number, struct str doubts, struct str account,
                const struct pack_options *options, struct arena *arena)
{
    struct buf buf = pack_common(options, arena);
    put_low_bytes(&buf, number, 8);
    script_arg(run, buf_view(&buf));
    script_arg(run, doubts);
    script_arg(run, account);
}

/* ---- replies -------------------------------------------------------------- */

struct reply reply_of(struct str text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    return (struct reply){.at = at, .end = at + text.len};
}

struct str reply_take(struct reply *reply, size_t len)
{
    if ((size_t)(reply->end - reply->at) < len) {
        reply->bad = true;
        return STR_NONE;
    }
    struct str taken = {(const char *)reply->at, len};
    reply->at += len;
    return taken;
}

uint8_t reply_u8(struct reply *reply)
{
    struct str one = reply_take(reply, 1);
    return one.len ? (uint8_t)*one.at : 0;
}

uint32_t reply_u32(struct reply *reply)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n = n << 8 | reply_u8(reply);
    return n;
}

uint64_t reply_u48(struct reply *reply)
{
    uint64_t high = (uint64_t)reply_u8(reply) << 8;
    high |= reply_u8(reply);
    return high << 32 | reply_u32(reply);
}

struct str reply_part(struct reply *reply)
{
    return reply_take(reply, reply_u32(reply));
}

void reply_read_parts(struct reply *reply, struct reply_parts *parts)
{
    parts->gave_up = reply_part(reply);
    parts->goal = reply_part(reply);
    parts->facts = reply_part(reply);
    parts->names = reply_part(reply);
    parts->journal = reply_part(reply);
    parts->chains = reply_part(reply);
}

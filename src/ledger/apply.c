/*
 * One request on one session: the rules decide (rules.c); the parts answer what the rules do not know: seen
 * ids, goal, history, facts, the arguments of open calls.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "ledger/ledger_internal.h"
#include "ledger/session_json.h"

bool request_only_looks(enum request_kind kind)
{
    return kind == REQUEST_LOOK || kind == REQUEST_VIEW || kind == REQUEST_LAPSED;
}

/* ---- parts in answers ---- */

static struct str field_of(const struct ledger_entry *e, struct str name)
{
    return detail_find(buf_view(&e->parts.details), name);
}

static struct str goal_of(const struct ledger_entry *e, struct arena *arena)
{
    return e->session.has_goal && arena ? arena_dup(arena, field_of(e, STR_LIT("g"))) : STR_NONE;
}

/* What was asked for of both; nobody reads the answer of a request without an arena. */
static inline void fill_memory(const struct ledger_entry *e, struct arena *arena, struct json *history,
                               struct json *facts)
{
    if (history && arena)
        *history = session_json_history(arena, &e->session, &e->parts);
    if (facts && arena)
        *facts = session_json_facts(arena, &e->parts);
}

/* The record is whole if nothing was evicted, by us or, with the part's key, by Redis. */
static bool ids_complete(const struct ledger_entry *e)
{
    return e->session.ids != IDS_FORGOTTEN && (e->session.ids != IDS_COMPLETE || e->parts.ids.len);
}

/* ---- admit ---- */

static void keep_name(struct commit *c, struct str tool)
{
    char field[SESSION_FIELD_BYTES];
    struct str name = session_field_tool(session_tool(tool), field);
    if (!field_of(c->entry, name).len && session_parts_names(&c->entry->parts) < SESSION_NAMES_MAX)
        commit_set_field(c, name, str_cut(tool, NAME_MAX_BYTES));
}

/* For the report of a check, which another daemon may get. */
static void keep_arguments(struct commit *c, const struct ledger_admit *admit)
{
    char field[SESSION_FIELD_BYTES];
    char room[sizeof(uint64_t) + LEDGER_OPEN_ARGUMENTS_MAX_BYTES] __attribute__((uninitialized));
    struct buf value = {.at = room, .cap = sizeof(room)};
    const struct session *s = &c->entry->session;
    const struct session_call *call = session_find(s, admit->admission);
    if (!call || call->class != CALL_PENDING || !admit->open_arguments.len ||
        admit->open_arguments.len > LEDGER_OPEN_ARGUMENTS_MAX_BYTES)
        return;
    buf_add(&value, &admit->admission, sizeof(admit->admission));
    buf_str(&value, admit->open_arguments);
    commit_set_field(c, session_field_open(call->slot, field), buf_view(&value));
}

#define ERROR_FIELD STR_LIT("e")

/* The text of the last failure, if it was of the same arguments. */
static struct str last_error(const struct ledger_entry *e, const struct ledger_admit *admit,
                             struct arena *arena)
{
    const struct session_call *call = session_find(&e->session, admit->admission);
    struct str kept = field_of(e, ERROR_FIELD);
    if (!call || !arena || kept.len <= sizeof(call->arguments) ||
        memcmp(kept.at, &call->arguments, sizeof(call->arguments)) != 0)
        return STR_NONE;
    return arena_dup(arena, str_from(kept, sizeof(call->arguments)));
}

#define UNSEEN_FIELD     STR_LIT("u")
#define UNSEEN_STEP_BITS 8u /* of a kept id: the step that named it; the others are of its hash */

/* The turn, then the unseen ids that its calls named last. */
struct unseen_ids {
    uint32_t turn, count;
    uint64_t ids[SESSION_UNSEEN_MAX];
};

static void read_unseen(const struct ledger_entry *e, struct unseen_ids *out)
{
    struct str kept = field_of(e, UNSEEN_FIELD);
    *out = (struct unseen_ids){.turn = e->session.turn};
    uint32_t turn;
    if (kept.len < sizeof(turn) || kept.len > sizeof(turn) + sizeof(out->ids))
        return;
    memcpy(&turn, kept.at, sizeof(turn));
    if (turn != out->turn)
        return;
    out->count = (uint32_t)((kept.len - sizeof(turn)) / sizeof(out->ids[0]));
    memcpy(out->ids, kept.at + sizeof(turn), out->count * sizeof(out->ids[0]));
}

/* Of the ids that nobody has seen, those that the model named before, in an earlier step of the turn: it has
 * read that they are unknown, and insists. The others are kept. */
static uint64_t insists(struct commit *c, const struct ledger_admit *admit, uint64_t which)
{
    struct unseen_ids unseen;
    uint64_t insisted = 0;
    bool added = false;
    uint8_t step = c->entry->session.step, of_batch = (uint8_t)(step - c->entry->session.batch_step);
    read_unseen(c->entry, &unseen);
    for (size_t i = 0; i < admit->id_count; i++) {
        uint64_t hash = admit->ids[i].low >> UNSEEN_STEP_BITS;
        uint32_t at = 0;
        if (!(which >> i & 1))
            continue;
        while (at < unseen.count && unseen.ids[at] >> UNSEEN_STEP_BITS != hash)
            at++;
        if (at == unseen.count) {
            if (unseen.count == SESSION_UNSEEN_MAX) /* the oldest goes */
                memmove(unseen.ids, unseen.ids + 1, --unseen.count * sizeof(unseen.ids[0]));
            unseen.ids[unseen.count++] = hash << UNSEEN_STEP_BITS | step;
            added = true;
        } else if ((uint8_t)(step - unseen.ids[at]) > of_batch) {
            insisted |= (uint64_t)1 << i;
        }
    }
    if (!added)
        return insisted;
    char room[sizeof(unseen.turn) + sizeof(unseen.ids)] __attribute__((uninitialized));
    struct buf value = {.at = room, .cap = sizeof(room)};
    buf_add(&value, &unseen.turn, sizeof(unseen.turn));
    buf_add(&value, unseen.ids, unseen.count * sizeof(unseen.ids[0]));
    commit_set_field(c, UNSEEN_FIELD, buf_view(&value));
    return insisted;
}

static void apply_admit(struct commit *c, struct session_request *r, int64_t now_ms, const char *engine)
{
    struct ledger_entry *e = c->entry;
    const struct ledger_admit *admit = r->of.admit;
    struct ledger_answer *answer = r->answer ? r->answer : &c->ledger->unheard.answer;
    LEDGER_CLEAR(answer);
    answer->engine = engine;
    uint64_t version = e->session.version;
    session_admit(&e->session, admit, r->is_past ? &r->past : NULL, r->rate_wait_ms, now_ms, answer,
                  &c->changes);
    bool is_new = c->changes.new_tool;
    answer->version = version;
    commit_take_changes(c);
    if (is_new)
        keep_name(c, admit->tool);
    if (answer->repeats || answer->says != LEDGER_RUN)
        entry_set_looped(e, admit->tool);
    keep_arguments(c, admit);
    answer->goal = goal_of(e, r->arena);
    if (answer->came_of == LEDGER_CAME_ERROR && answer->says != LEDGER_RUN)
        answer->last_error = last_error(e, admit, r->arena);
    answer->ids_complete = ids_complete(e) && !(e->local && c->ledger->redis);
    if (admit->id_count)
        answer->unseen = session_parts_unseen(&e->parts, admit->ids, admit->id_count);
    if (answer->unseen && answer->says == LEDGER_RUN)
        answer->insisted = insists(c, admit, answer->unseen);
    fill_memory(e, r->arena, admit->wants_history ? &answer->history : NULL,
                admit->wants_facts ? &answer->facts : NULL);
    const struct session_call *call = session_find(&e->session, admit->admission);
    r->past =
        (struct session_past){answer->says, call && call->class == CALL_DENIED ? call->code : CODE_NONE};
}

/* ---- settle ---- */

static void add_facts(struct commit *c, const struct ledger_settle *settle, const struct json *facts)
{
    uint32_t dropped = facts->len > FACTS_MAX ? facts->len - FACTS_MAX : 0;
    struct buf field = {.at = NULL}, text = {.at = NULL};
    for (uint32_t i = 0; i < facts->len && i < FACTS_MAX; i++) {
        field.len = text.len = 0;
        buf_byte(&field, 'f');
        buf_str(&field, facts->members[i].key);
        json_write(&text, &facts->members[i].value);
        if (session_parts_fact_fits(&c->entry->parts, buf_view(&field), buf_view(&text)))
            commit_set_field(c, buf_view(&field), buf_view(&text));
        else
            dropped++;
    }
    buf_clear(&field);
    buf_clear(&text);
    if (dropped)
        log_event(LOG_WARN, "facts_dropped", LOG_STR("tool", settle->tool), LOG_NUM("count", dropped),
                  LOG_NUM("limit_bytes", LEDGER_FACTS_MAX_BYTES));
}

static void drop_arguments(struct commit *c, uint64_t admission)
{
    char field[SESSION_FIELD_BYTES];
    const struct ledger_entry *e = c->entry;
    const struct session_call *call = session_find(&e->session, admission);
    if (!call)
        return;
    struct str name = session_field_open(call->slot, field);
    struct str kept = field_of(e, name);
    if (kept.len > sizeof(admission) && memcmp(kept.at, &admission, sizeof(admission)) == 0)
        commit_set_field(c, name, STR_NONE);
}

static void apply_settle(struct commit *c, struct session_request *r, int64_t now_ms)
{
    struct ledger_entry *e = c->entry;
    const struct ledger_settle *settle = r->of.settle;
    struct ledger_settle told __attribute__((uninitialized));
    if (settle->fingerprint && !session_find(&e->session, settle->admission)) {
        told = *settle;
        told.arguments = settle->fingerprint(settle->of);
        settle = &told;
    }
    struct ledger_settled *settled = r->answer ? r->answer : &c->ledger->unheard.settled;
    LEDGER_CLEAR(settled);
    bool counted = session_settle(&e->session, settle, now_ms, settled, &c->changes);
    bool is_new = c->changes.new_tool;
    commit_take_changes(c);
    if (!counted)
        return;
    if (is_new)
        keep_name(c, settle->tool);
    drop_arguments(c, settle->admission);
    const struct session_call *call = session_find(&e->session, settle->admission);
    if (call && settle->error.len) {
        char room[sizeof(uint64_t) + LEDGER_ERROR_MAX_BYTES] __attribute__((uninitialized));
        struct buf value = {.at = room, .cap = sizeof(room)};
        buf_add(&value, &call->arguments, sizeof(call->arguments));
        buf_str(&value, str_cut(settle->error, LEDGER_ERROR_MAX_BYTES));
        commit_set_field(c, ERROR_FIELD, buf_view(&value));
    }
    if (settle->gives_id_count)
        commit_add_ids(c, settle->gives_ids, settle->gives_id_count);
    if (settle->facts) {
        add_facts(c, settle, settle->facts);
    } else if (settle->facts_json.len) {
        struct arena *arena = arena_new();
        struct json facts = {.type = JSON_NULL};
        struct json_error fault;
        if (json_parse(arena, settle->facts_json, NULL, &facts, &fault) == OK && facts.type == JSON_OBJECT)
            add_facts(c, settle, &facts);
        arena_free(arena);
    }
}

static void apply_release(struct commit *c, const struct session_request *r, int64_t now_ms)
{
    struct ledger_settle settle = *r->of.settle;
    const struct session_call *call = session_find(&c->entry->session, settle.admission);
    if (!call || call->class != CALL_PENDING)
        return;
    settle.class = LEDGER_CLASS_RELEASED;
    settle.label = STR_LIT("cancelled");
    LEDGER_CLEAR(&c->ledger->unheard.settled);
    session_settle(&c->entry->session, &settle, now_ms, &c->ledger->unheard.settled, &c->changes);
    commit_take_changes(c);
    drop_arguments(c, settle.admission);
}

/* ---- turns and people ---- */

static void apply_turn(struct commit *c, struct session_request *r, int64_t now_ms)
{
    const struct ledger_turn *turn = r->of.turn;
    struct ledger_turned *turned = r->answer ? r->answer : &c->ledger->unheard.turned;
    LEDGER_CLEAR(turned);
    bool takes_goal = session_turn(&c->entry->session, turn, r->number, now_ms, turned, &c->changes);
    commit_take_changes(c);
    if (takes_goal)
        commit_set_field(c, STR_LIT("g"), str_cut(turn->goal, SESSION_GOAL_MAX_BYTES));
}

/* As a call of the same place would find the session. */
static void apply_look(const struct commit *c, const struct session_request *r, int64_t now_ms)
{
    const struct ledger_entry *e = c->entry;
    const struct ledger_look *look = r->of.look;
    struct ledger_peek *peek = r->answer;
    uint32_t turn = session_turn_of(&e->session, &look->place, now_ms);
    bool is_new = turn != e->session.turn;
    *peek = (struct ledger_peek){
        .turn = turn,
        .step = e->session.step,
        .no_progress = session_idle_calls(&e->session, look->place.agent),
        .stuck = e->session.stuck && !is_new,
        .goal = is_new ? STR_NONE : goal_of(e, r->arena),
        .version = e->session.version,
    };
    fill_memory(e, r->arena, look->wants_history ? &peek->history : NULL,
                look->wants_facts ? &peek->facts : NULL);
    const struct session_call *call = look->admission ? session_find(&e->session, look->admission) : NULL;
    if (!call)
        return;
    char field[SESSION_FIELD_BYTES];
    struct str kept = field_of(e, session_field_open(call->slot, field));
    peek->open.tool = arena_dup(r->arena, field_of(e, session_field_tool(call->tool, field)));
    if (kept.len > sizeof(uint64_t) && memcmp(kept.at, &look->admission, sizeof(uint64_t)) == 0)
        peek->open.arguments = arena_dup(r->arena, str_from(kept, sizeof(uint64_t)));
}

/* ---- all of them ---- */

void apply_request(struct commit *c, struct session_request *r, int64_t now_ms, const char *engine)
{
    struct session *s = &c->entry->session;
    switch (r->kind) {
    case REQUEST_ADMIT:
        apply_admit(c, r, now_ms, engine);
        break;
    case REQUEST_SETTLE:
        apply_settle(c, r, now_ms);
        break;
    case REQUEST_RELEASE:
        apply_release(c, r, now_ms);
        break;
    case REQUEST_TURN:
        apply_turn(c, r, now_ms);
        break;
    case REQUEST_SEE:
        commit_add_ids(c, r->of.see->ids, r->of.see->count);
        c->changed = true;
        break;
    case REQUEST_RESET:
        session_reset(s, *r->of.tool, r->number, now_ms, &c->changes);
        commit_take_changes(c);
        if (r->answer)
            *(enum err *)r->answer = OK;
        break;
    case REQUEST_BOUNDARY:
        session_boundary(s, &c->changes);
        commit_take_changes(c);
        break;
    case REQUEST_LOOK:
        apply_look(c, r, now_ms);
        break;
    case REQUEST_VIEW:
        *(struct ledger_view *)r->answer = (struct ledger_view){
            .error = OK,
            .stand_in = c->entry->local && c->ledger->redis,
            .session = session_json(r->arena, *r->of.session, s, &c->entry->parts),
        };
        break;
    case REQUEST_LAPSED: /* it lives: another daemon has served it */
        break;
    case REQUEST_FORGET:
        break; /* transaction.c commits it by itself */
    }
}

/* Each answer begins with its error; where its reason stands, 0: it has none, or there is no answer. */
static const size_t reasons[] = {
    [REQUEST_ADMIT] = offsetof(struct ledger_answer, why),
    [REQUEST_SETTLE] = offsetof(struct ledger_settled, why),
    [REQUEST_TURN] = offsetof(struct ledger_turned, why),
    [REQUEST_LOOK] = offsetof(struct ledger_peek, why),
    [REQUEST_VIEW] = offsetof(struct ledger_view, why),
    [REQUEST_LAPSED] = 0,
};
_Static_assert(offsetof(struct ledger_answer, error) + offsetof(struct ledger_settled, error) +
                       offsetof(struct ledger_turned, error) + offsetof(struct ledger_peek, error) +
                       offsetof(struct ledger_view, error) ==
                   0,
               "an answer begins with its error");

void request_fail(const struct session_request *r, enum err error, const char *why)
{
    struct ledger_answer *answer = r->answer;
    if (!r->answer)
        return;
    if (r->kind == REQUEST_LOOK)
        LEDGER_CLEAR((struct ledger_peek *)r->answer);
    if (r->kind == REQUEST_ADMIT) {
        LEDGER_CLEAR(answer);
        answer->engine = "none";
    }
    *(enum err *)r->answer = error;
    if (reasons[r->kind])
        err_set((struct why *)(void *)((char *)r->answer + reasons[r->kind]), error, "%s", why);
}

void request_not_found(const struct session_request *r)
{
    static const struct session none;
    if (r->kind == REQUEST_LAPSED)
        for (uint32_t i = 0; i < r->of.lapsed->count; i++)
            log_gave_up(r->ledger, &r->of.lapsed->chains[i]);
    else if (r->kind == REQUEST_LOOK && r->answer)
        *(struct ledger_peek *)r->answer =
            (struct ledger_peek){.turn = session_turn_of(&none, &r->of.look->place, 0)};
    else if (r->kind == REQUEST_VIEW && r->answer) {
        struct ledger_view *view = r->answer;
        view->error =
            err_set(&view->why, ERR_NOT_FOUND, "no session '" STR_FMT "' is known", STR_ARG(*r->of.session));
    } else
        request_fail(r, ERR_NOT_FOUND, "no such session is known");
}

/*
 * One request on one session: the rules decide (rules.c); the parts answer what the rules do not know: seen
 * ids, goal, history, facts, the arguments of open calls.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "ledger/ledger_internal.h"

#define NAMES_MAX      256u /* names of tools; of others the journal shows none */
#define GOAL_MAX_BYTES 8192u
#define FACTS_MAX      32u /* of one result; the rest find no room */
#define NAME_MAX_BYTES 64u /* of a tool, in the details */

bool request_only_looks(enum ledger_kind kind)
{
    return kind == LEDGER_LOOK || kind == LEDGER_VIEW || kind == LEDGER_LAPSED;
}

/* ---- the commit: the core as a whole, and of the other parts those that changed, as a whole for a store in
 * memory and as the least that has to be sent to Redis ---- */

#define COMMIT_KEEP_BYTES 4096u /* of details, for the next commit: a session that is idle holds no more */
#define RENEWALS          32u   /* of the time to live, in its length: not with every commit */

static bool has_id(const struct buf *ids, uint64_t id)
{
    for (size_t at = 0; at + SESSION_ID_BYTES <= ids->len; at += SESSION_ID_BYTES)
        if (memcmp(ids->at + at, &id, sizeof(id)) == 0)
            return true;
    return false;
}

/* Adds those that were not seen yet. Beyond LEDGER_SEEN_IDS_MAX, the oldest go. */
static void add_ids(struct ledger_entry *e, const struct hash128 *ids, size_t count)
{
    struct session *s = &e->session;
    struct buf *seen = &e->parts.ids;
    const size_t most = LEDGER_SEEN_IDS_MAX * SESSION_ID_BYTES, before = seen->len;
    for (size_t i = 0; i < count; i++)
        if (!has_id(seen, ids[i].low))
            buf_add(seen, &ids[i].low, SESSION_ID_BYTES);
    if (seen->len == before)
        return;
    e->commit.changed = true;
    s->ids_changes++;
    if (s->ids == IDS_NONE)
        s->ids = IDS_COMPLETE;
    if (seen->len <= most)
        return;
    buf_drop(seen, seen->len - most);
    s->ids = IDS_FORGOTTEN;
    e->commit.ids_from = 0;
}

/* Another configuration wants another number of notes than the session was begun with: the newest stay, and
 * are counted from 0 again. */
static void resize_journal(struct ledger_entry *e, uint16_t max)
{
    struct session *s = &e->session;
    struct buf *journal = &e->parts.journal, ordered = {.at = NULL};
    uint32_t kept = s->journal_count < s->journal_max ? s->journal_count : s->journal_max;
    if (kept > max)
        kept = max;
    for (uint32_t i = s->journal_count - kept; i < s->journal_count; i++) {
        size_t at = i % s->journal_max * sizeof(struct session_note);
        if (at + sizeof(struct session_note) <= journal->len)
            buf_add(&ordered, journal->at + at, sizeof(struct session_note));
    }
    buf_clear(journal);
    *journal = ordered;
    s->journal_max = max;
    s->journal_count = (uint32_t)(ordered.len / sizeof(struct session_note));
    e->commit.journal_from = s->journal_count;
    e->commit.changed = e->commit.journal_resized = true;
}

/* An empty value: the field goes. */
static void detail_set(struct buf *details, struct str name, struct str value)
{
    struct str rest = buf_view(details);
    struct detail detail;
    while (detail_next(&rest, &detail)) {
        if (!str_eq(detail.name, name))
            continue;
        if (value.len && value.len == detail.value.len) {
            memcpy(details->at + (detail.value.at - details->at), value.at, value.len);
            return;
        }
        char *at = details->at + (detail.name.at - DETAIL_HEAD_BYTES - details->at);
        if (rest.len)
            memmove(at, rest.at, rest.len);
        details->len = (size_t)(at - details->at) + rest.len;
        break;
    }
    if (value.len)
        detail_add(details, name, value);
}

static void commit_begin(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    c->changed = c->grows = c->journal_resized = c->details_changed = false;
    c->fields.len = c->gave_up.len = 0;
    c->journal_from = e->begun ? e->session.journal_count : 0;
    c->ids_from = e->begun ? (uint32_t)e->parts.ids.len : 0;
}

void commit_end(struct ledger_entry *e)
{
    e->busy = false;
    if (e->commit.fields.cap > COMMIT_KEEP_BYTES)
        buf_clear(&e->commit.fields);
}

/* Takes over the ledger's `changes`, of the request applied last. */
static void take_changes(struct ledger_entry *e)
{
    const struct session_changes *changes = &e->ledger->changes;
    uint32_t first = e->session.journal_count - changes->note_count; /* the rules have counted them */
    e->commit.changed = true;
    buf_add(&e->commit.gave_up, changes->gave_up, changes->gave_up_count * sizeof(*changes->gave_up));
    for (uint32_t i = 0; i < changes->note_count; i++)
        session_parts_add_note(&e->parts, &e->session, first + i, &changes->notes[i]);
}

/* A field of the details; an empty value: it goes. */
static void set_field(struct ledger_entry *e, struct str name, struct str value)
{
    struct commit *c = &e->commit;
    if (e->ledger->redis) /* a store in memory takes the whole */
        detail_add(&c->fields, name, value);
    c->changed = c->details_changed = true;
    c->grows |= e->parts.details.len == 0;
    detail_set(&e->parts.details, name, value);
    e->session.details_changes +=
        name.at[0] != 'a'; /* by this a build that caches parts one by one drops its copy */
}

/* The notes since the last commit. Redis gives a string that grows in place twice the memory it needs. When
 * the ring is full it is written as a whole, once, and then takes no more than its length. */
static void write_journal(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    const uint32_t size = sizeof(struct session_note), most = e->session.journal_max;
    uint32_t notes = e->session.journal_count - c->journal_from;
    struct str journal = buf_view(&e->parts.journal);
    if (!c->journal_resized && (!notes || !most))
        return;
    uint32_t first = most ? c->journal_from % most : 0;
    bool fills = c->journal_from < most && e->session.journal_count >= most && journal.len == most * size;
    c->store.parts[PART_JOURNAL] = journal.at ? journal : STR_LIT("");
    c->grows |= c->journal_from == 0 || c->journal_resized;
    if (c->journal_resized || fills || notes > most - first) /* also where they go on at its beginning */
        return;
    c->store.changed[PART_JOURNAL].from = first * size;
    c->store.changed[PART_JOURNAL].to = (first + notes) * size;
}

static void write_ids(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    struct str ids = buf_view(&e->parts.ids);
    if (ids.len == c->ids_from)
        return;
    c->store.parts[PART_IDS] = ids;
    c->store.changed[PART_IDS].from = c->ids_from;
    c->store.changed[PART_IDS].to = c->ids_from ? (uint32_t)ids.len : 0;
    c->grows |= !c->ids_from;
}

void commit_finish(struct ledger_entry *e, bool everything)
{
    struct commit *c = &e->commit;
    struct session *s = &e->session;
    struct store_request *store = &c->store;
    uint32_t now_s = (uint32_t)(s->last_ms / 1000), ttl_s = e->ledger->ttl_s;
    *store = (struct store_request){.id = e->node.id, .user = e->user};
    if (everything) {
        e->stored = false;
        store->parts[PART_JOURNAL] = buf_view(&e->parts.journal);
        store->parts[PART_IDS] = buf_view(&e->parts.ids);
        store->parts[PART_DETAILS] = buf_view(&e->parts.details);
    } else {
        store->fields = buf_view(&c->fields);
        if (c->details_changed)
            store->parts[PART_DETAILS] = buf_view(&e->parts.details);
        write_journal(e);
        write_ids(e);
    }
    store->with = session_parts_with(s);
    for (enum session_part part = PART_JOURNAL; part < PART_COUNT; part++)
        if (store->parts[part].at)
            store->with |= PART_BIT(part);
    codec_guard(e->format, s->version, c->guard);
    store->guard = e->stored ? (struct str){c->guard, sizeof(c->guard)} : STR_NONE;
    e->format = CODEC_FORMAT;
    s->version++;
    if (!e->stored || c->grows || now_s - s->renewed_s > ttl_s / RENEWALS) {
        s->renewed_s = now_s;
        store->renew_ttl_s = ttl_s;
    }
    codec_encode(s, &c->core);
    store->parts[PART_CORE] = buf_view(&c->core);
}

/* ---- parts in answers ---- */

/* Bit i: ids[i] was never seen; count is at most LEDGER_IDS_MAX. */
static uint64_t unseen_of(const struct session_parts *p, const struct hash128 *ids, size_t count)
{
    uint64_t unseen = 0;
    for (size_t i = 0; i < count && i < LEDGER_IDS_MAX; i++)
        if (!has_id(&p->ids, ids[i].low))
            unseen |= (uint64_t)1 << i;
    return unseen;
}

static struct str field_of(const struct ledger_entry *e, struct str name)
{
    return detail_find(buf_view(&e->parts.details), name);
}

static struct str goal_of(const struct ledger_entry *e, struct arena *arena)
{
    return e->session.has_goal && arena ? arena_dup(arena, field_of(e, STR_LIT("g"))) : STR_NONE;
}

/* A copy of a request, which has no arena, asks for neither. */
static inline void fill_memory(const struct ledger_entry *e, const struct session_request *r,
                               struct ledger_answer *answer)
{
    if (r->call->wants_history)
        answer->history = session_json_history(r->arena, &e->session, &e->parts);
    if (r->call->wants_facts)
        answer->facts = session_json_facts(r->arena, &e->parts);
}

/* The record is whole if nothing was evicted, by us or, with the part's key, by Redis. */
static bool ids_complete(const struct ledger_entry *e)
{
    return e->session.ids != IDS_FORGOTTEN && (e->session.ids != IDS_COMPLETE || e->parts.ids.len);
}

/* ---- admit ---- */

static void keep_name(struct ledger_entry *e, struct str tool)
{
    char field[SESSION_FIELD_BYTES];
    struct str name = session_field_tool(session_tool(tool), field), rest = buf_view(&e->parts.details);
    struct detail detail;
    size_t names = 0;
    while (detail_next(&rest, &detail))
        names += str_starts(detail.name, "t");
    if (names < NAMES_MAX && !field_of(e, name).len)
        set_field(e, name, str_cut(tool, NAME_MAX_BYTES));
}

/* A field that begins with a key; see detail_find_keyed. */
static void set_keyed(struct ledger_entry *e, struct str name, uint64_t key, struct str text)
{
    char room[sizeof(key) + LEDGER_OPEN_ARGUMENTS_MAX_BYTES] __attribute__((uninitialized));
    struct buf value = {.at = room, .cap = sizeof(room)};
    buf_add(&value, &key, sizeof(key));
    buf_str(&value, text);
    set_field(e, name, buf_view(&value));
}

#define ERROR_FIELD STR_LIT("e") /* the text of the last failure, by its arguments */

#define SESSION_UNSEEN_MAX 64u /* unseen ids of a turn that are remembered; the oldest goes */

#define UNSEEN_FIELD     STR_LIT("u")
#define UNSEEN_STEP_BITS 8u /* of a kept id: the step that named it; the others are of its hash */

/* As it is stored, of the ids as many as there are: those that the calls of the turn named last. */
struct __attribute__((packed)) unseen_ids {
    uint32_t turn;
    uint64_t ids[SESSION_UNSEEN_MAX];
};

/* Of the ids that nobody has seen, those that the model named before, in an earlier step of the turn: it has
 * read that they are unknown, and insists. The others are kept. */
static uint64_t insists(struct ledger_entry *e, const struct ledger_call *admit, uint64_t which)
{
    struct str kept = field_of(e, UNSEEN_FIELD);
    struct unseen_ids unseen = {.turn = 0};
    uint8_t step = e->session.step, of_batch = (uint8_t)(step - e->session.batch_step);
    uint64_t insisted = 0;
    size_t count = 0;
    bool added = false;
    if (kept.len < sizeof(unseen.turn) || kept.len > sizeof(unseen)) /* none, or none of ours */
        kept = STR_NONE;
    if (kept.len)
        memcpy(&unseen, kept.at, kept.len);
    if (kept.len && unseen.turn == e->session.turn)
        count = (kept.len - sizeof(unseen.turn)) / sizeof(unseen.ids[0]);
    unseen.turn = e->session.turn;
    for (size_t i = 0; i < admit->id_count; i++) {
        uint64_t hash = admit->ids[i].low >> UNSEEN_STEP_BITS;
        size_t at = 0;
        if (!(which >> i & 1))
            continue;
        while (at < count && unseen.ids[at] >> UNSEEN_STEP_BITS != hash)
            at++;
        if (at == count) {
            if (count == SESSION_UNSEEN_MAX) /* the oldest goes */
                memmove(unseen.ids, unseen.ids + 1, --count * sizeof(unseen.ids[0]));
            unseen.ids[count++] = hash << UNSEEN_STEP_BITS | step;
            added = true;
        } else if ((uint8_t)(step - unseen.ids[at]) > of_batch) {
            insisted |= (uint64_t)1 << i;
        }
    }
    if (added)
        set_field(e, UNSEEN_FIELD,
                  (struct str){(const char *)&unseen, sizeof(unseen.turn) + count * sizeof(unseen.ids[0])});
    return insisted;
}

static void apply_admit(struct ledger_entry *e, struct session_request *r, int64_t now_ms,
                        struct ledger_answer *answer)
{
    const struct ledger_call *admit = r->call;
    answer->engine = entry_store(e)->kind->name;
    uint64_t version = e->session.version;
    session_admit(&e->session, admit, r->is_past ? &r->past : NULL, r->rate_wait_ms, now_ms, answer,
                  &e->ledger->changes);
    answer->version = version;
    if (e->ledger->changes.new_tool)
        keep_name(e, admit->tool);
    if (answer->repeats || answer->says != LEDGER_RUN)
        e->looped_len = session_keep_text(e->looped, sizeof(e->looped), admit->tool);
    e->looped_runs = admit->not_enforced;
    const struct session_call *call = session_find(&e->session, admit->admission);
    struct str arguments =
        admit->open_arguments; /* for the report of a check, which another daemon may get */
    if (call && call->class == CALL_PENDING && arguments.len &&
        arguments.len <= LEDGER_OPEN_ARGUMENTS_MAX_BYTES) {
        char field[SESSION_FIELD_BYTES];
        set_keyed(e, session_field_open(call->slot, field), admit->admission, arguments);
    }
    answer->goal = goal_of(e, r->arena);
    bool any_arguments = call && call->class == CALL_DENIED && call->code == CODE_SAME_FAILURE;
    const struct session_call *failed = any_arguments ? session_last_failure(&e->session, call) : call;
    if ((answer->came_of == LEDGER_CAME_ERROR || any_arguments) && answer->says != LEDGER_RUN && failed &&
        r->arena)
        answer->last_error = arena_dup(
            r->arena, detail_find_keyed(buf_view(&e->parts.details), ERROR_FIELD, failed->arguments));
    answer->ids_complete = ids_complete(e) && !(e->local && e->ledger->redis);
    if (admit->id_count)
        answer->unseen = unseen_of(&e->parts, admit->ids, admit->id_count);
    if (answer->unseen && answer->says == LEDGER_RUN)
        answer->insisted = insists(e, admit, answer->unseen);
    r->past =
        (struct session_past){answer->says, call && call->class == CALL_DENIED ? call->code : CODE_NONE};
}

/* ---- settle ---- */

/* Whether it has room in LEDGER_FACTS_MAX_BYTES and SESSION_FACTS_MAX. */
static bool fact_fits(const struct ledger_entry *e, struct str name, struct str value)
{
    size_t size = name.len + value.len, others = 0;
    struct str rest = buf_view(&e->parts.details);
    struct detail detail;
    while (detail_next(&rest, &detail))
        if (str_starts(detail.name, "f") && !str_eq(detail.name, name)) {
            size += detail.name.len + detail.value.len;
            others++;
        }
    return size <= LEDGER_FACTS_MAX_BYTES && others < SESSION_FACTS_MAX;
}

static void add_facts(struct ledger_entry *e, const struct ledger_call *settle, const struct json *facts)
{
    uint32_t dropped = facts->len > FACTS_MAX ? facts->len - FACTS_MAX : 0;
    struct buf field = {.at = NULL}, text = {.at = NULL};
    for (uint32_t i = 0; i < facts->len && i < FACTS_MAX; i++) {
        field.len = text.len = 0;
        buf_byte(&field, 'f');
        buf_str(&field, facts->members[i].key);
        json_write(&text, &facts->members[i].value);
        if (fact_fits(e, buf_view(&field), buf_view(&text)))
            set_field(e, buf_view(&field), buf_view(&text));
        else
            dropped++;
    }
    buf_clear(&field);
    buf_clear(&text);
    if (dropped)
        log_event(LOG_WARN, "facts_dropped", LOG_STR("tool", settle->tool), LOG_NUM("count", dropped),
                  LOG_NUM("limit_bytes", LEDGER_FACTS_MAX_BYTES));
}

static void drop_arguments(struct ledger_entry *e, uint64_t admission)
{
    char field[SESSION_FIELD_BYTES];
    const struct session_call *call = session_find(&e->session, admission);
    if (!call)
        return;
    struct str name = session_field_open(call->slot, field);
    if (detail_find_keyed(buf_view(&e->parts.details), name, admission).len)
        set_field(e, name, STR_NONE);
}

static void apply_settle(struct ledger_entry *e, struct session_request *r, int64_t now_ms,
                         struct ledger_answer *answer)
{
    const struct ledger_call *settle = r->call;
    struct ledger_call told __attribute__((uninitialized));
    if (settle->fingerprint && !session_find(&e->session, settle->admission)) {
        told = *settle;
        told.arguments = settle->fingerprint(settle->of);
        settle = &told;
    }
    bool counted = session_settle(&e->session, settle, now_ms, answer, &e->ledger->changes);
    if (!counted)
        return;
    if (e->ledger->changes.new_tool)
        keep_name(e, settle->tool);
    drop_arguments(e, settle->admission);
    const struct session_call *call = session_find(&e->session, settle->admission);
    if (call && settle->error.len)
        set_keyed(e, ERROR_FIELD, call->arguments, str_cut(settle->error, LEDGER_ERROR_MAX_BYTES));
    if (settle->gives_id_count)
        add_ids(e, settle->gives_ids, settle->gives_id_count);
    if (settle->facts) {
        add_facts(e, settle, settle->facts);
    } else if (settle->facts_json.len) {
        struct arena *arena = arena_new();
        struct json facts = {.type = JSON_NULL};
        struct json_error fault;
        if (json_parse(arena, settle->facts_json, NULL, &facts, &fault) == OK && facts.type == JSON_OBJECT)
            add_facts(e, settle, &facts);
        arena_free(arena);
    }
}

/* False: there is nothing to give back. */
static bool apply_release(struct ledger_entry *e, const struct session_request *r, int64_t now_ms,
                          struct ledger_answer *answer)
{
    struct ledger_call settle = *r->call;
    const struct session_call *call = session_find(&e->session, settle.admission);
    if (!call || call->class != CALL_PENDING)
        return false;
    settle.class = LEDGER_CLASS_RELEASED;
    settle.label = STR_LIT("cancelled");
    session_settle(&e->session, &settle, now_ms, answer, &e->ledger->changes);
    drop_arguments(e, settle.admission);
    return true;
}

/* ---- looks ---- */

/* As a call of the same place would find the session. */
static void apply_look(const struct ledger_entry *e, const struct session_request *r, int64_t now_ms,
                       struct ledger_answer *peek)
{
    const struct ledger_call *look = r->call;
    uint32_t turn = session_turn_of(&e->session, &look->place, now_ms);
    bool is_new = turn != e->session.turn;
    peek->turn = turn;
    peek->step = e->session.step;
    peek->no_progress = session_idle_calls(&e->session, look->place.agent);
    peek->stuck = e->session.stuck && !is_new;
    peek->goal = is_new ? STR_NONE : goal_of(e, r->arena);
    peek->version = e->session.version;
    fill_memory(e, r, peek);
    const struct session_call *call = look->admission ? session_find(&e->session, look->admission) : NULL;
    if (!call)
        return;
    char field[SESSION_FIELD_BYTES];
    peek->open.arguments =
        arena_dup(r->arena, detail_find_keyed(buf_view(&e->parts.details),
                                              session_field_open(call->slot, field), look->admission));
    if (e->name_len < sizeof(e->name))
        peek->open.session = arena_dup(r->arena, (struct str){e->name, e->name_len});
    peek->open.tool = arena_dup(r->arena, field_of(e, session_field_tool(call->tool, field)));
}

/* ---- all of them ---- */

static void apply_request(struct ledger_entry *e, struct session_request *r, int64_t now_ms)
{
    struct session *s = &e->session;
    struct session_changes *changes = &e->ledger->changes;
    struct ledger_answer *answer = r->answer ? r->answer : &e->ledger->unheard;
    LEDGER_CLEAR(answer);
    changes->new_tool = false;
    changes->note_count = changes->gave_up_count = 0;
    switch (r->kind) {
    case LEDGER_ADMIT:
        apply_admit(e, r, now_ms, answer);
        break;
    case LEDGER_SETTLE:
        apply_settle(e, r, now_ms, answer);
        break;
    case LEDGER_RELEASE:
        if (!apply_release(e, r, now_ms, answer))
            return;
        break;
    case LEDGER_TURN:
        if (session_turn(s, r->call, r->number, now_ms, answer, changes))
            set_field(e, STR_LIT("g"), str_cut(r->call->goal, GOAL_MAX_BYTES));
        break;
    case LEDGER_SEE:
        add_ids(e, r->call->gives_ids, r->call->gives_id_count);
        break;
    case LEDGER_RESET:
        session_reset(s, r->call->tool, r->number, now_ms, changes);
        break;
    case LEDGER_LOOK:
        apply_look(e, r, now_ms, answer);
        break;
    case LEDGER_VIEW:
        answer->stand_in = e->local && e->ledger->redis;
        answer->session = session_json(r->arena, r->call->place.session, s, &e->parts);
        break;
    case LEDGER_LAPSED: /* it lives: another daemon has served it */
    case LEDGER_FORGET: /* transaction.c commits it by itself */
        break;
    }
    if (!request_only_looks(r->kind))
        take_changes(e);
    if (r->kind == LEDGER_ADMIT && r->answer) /* with what it has put there itself */
        fill_memory(e, r, answer);
}

void request_fail(const struct session_request *r, enum err error, const char *why)
{
    if (!r->answer)
        return;
    LEDGER_CLEAR(r->answer);
    r->answer->engine = "none";
    r->answer->error = error;
    err_set(&r->answer->why, error, "%s", why);
}

/* The session does not exist, and the request does not begin it. One that has lapsed is here still as it was
 * before it was loaded, and found to be gone. */
static void request_not_found(const struct ledger_entry *e, const struct session_request *r)
{
    static const struct session none;
    if (r->kind == LEDGER_LAPSED)
        log_all_gave_up(e->ledger, &e->session);
    else if (r->kind == LEDGER_LOOK && r->answer)
        *r->answer = (struct ledger_answer){.turn = session_turn_of(&none, &r->call->place, 0)};
    else
        request_fail(r, ERR_NOT_FOUND, "no such session is known");
    if (r->kind == LEDGER_VIEW && r->answer)
        err_set(&r->answer->why, ERR_NOT_FOUND, "no session '" STR_FMT "' is known",
                STR_ARG(r->call->place.session));
}

#define COMMIT_BATCH_MAX                                                                                     \
    16u /* requests of one commit: fewer than the window holds, so that a commit sent again is recognised */

/* A kept request whose commit had landed after all, though its reply was lost. */
static bool has_landed(const struct ledger_entry *e, const struct session_request *r)
{
    const struct session_mark *marks = e->session.marks;
    for (unsigned i = 0; r->is_past && e->begun && i < SESSION_MARKS_MAX; i++)
        if (marks[i].daemon == e->ledger->daemon)
            return (int32_t)(marks[i].request - r->sequence) >= 0;
    return false;
}

void apply_batch(struct ledger_entry *e, int64_t now_ms)
{
    struct session_request *r;
    commit_begin(e);
    for (unsigned count = 0; count < COMMIT_BATCH_MAX && (r = TAILQ_FIRST(&e->queue)); count++) {
        if (r->kind == LEDGER_FORGET && count) /* it is alone in its commit, or in finding no session */
            break;
        /* Kept requests are committed alone. If the reply is lost, they are put back and recognised by the
         * session's mark; a request beside them would be made twice, or refused and never taken back. */
        if (e->replays && count && !r->is_past)
            break;
        TAILQ_REMOVE(&e->queue, r, next);
        TAILQ_INSERT_TAIL(&e->flying, r, next);
        bool begins = r->kind == LEDGER_ADMIT || r->kind == LEDGER_SETTLE || r->kind == LEDGER_TURN ||
                      r->kind == LEDGER_SEE;
        if (!e->begun && !begins) {
            request_not_found(e, r);
            if (r->kind == LEDGER_FORGET)
                break;
            continue;
        }
        if (has_landed(e, r))
            continue;
        entry_begin(e, hash_random() | 1);
        if (r->kind == LEDGER_FORGET)
            break;
        if (e->session.journal_max != e->ledger->history && !request_only_looks(r->kind))
            resize_journal(e, (uint16_t)e->ledger->history);
        apply_request(e, r, now_ms);
        if (r->ends_outage) {
            session_boundary(&e->session);
            e->commit.changed = true;
        }
    }
}

/*
 * Each session has a list of its refusals that are still followed up. A later record of the session adds to
 * them or closes them; what is open at the end was given up. Sessions, tools and ids are kept as 64-bit
 * hashes.
 */
#include "replay/decision_outcome.h"

#include "base/arena.h"
#include "base/hash.h"
#include "json/write.h"

#include <stdlib.h>

#define NONE              UINT32_MAX
#define TABLE_FIRST_SLOTS 1024u /* a power of two, as each later size */

/* From a hash to an index; 0 is no hash. */
struct table {
    struct slot {
        uint64_t key;
        uint32_t value;
    } * slots;
    size_t size, count;
};

struct refusal {
    uint64_t tool, arguments, step; /* 0: not known */
    int64_t turn;
    uint32_t next; /* in the list of its session */
    struct decision_outcome outcome;
};

struct decision_outcomes {
    struct arena *arena;
    struct refusal *refusals;
    size_t count, capacity;
    uint64_t left_out;
    struct table by_id, sessions; /* a session's value is the head of its list */
};

/* ---- the table ---- */

static void *take(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static struct slot *find_slot(const struct table *table, uint64_t key)
{
    size_t at = key & (table->size - 1);
    while (table->slots[at].key && table->slots[at].key != key)
        at = (at + 1) & (table->size - 1);
    return &table->slots[at];
}

static void grow(struct table *table)
{
    struct table larger = {.size = table->size ? table->size * 2 : TABLE_FIRST_SLOTS, .count = table->count};
    larger.slots = take(calloc(larger.size, sizeof(*larger.slots)));
    for (size_t i = 0; i < table->size; i++)
        if (table->slots[i].key)
            *find_slot(&larger, table->slots[i].key) = table->slots[i];
    free(table->slots);
    *table = larger;
}

static uint32_t table_get(const struct table *table, uint64_t key)
{
    if (!table->size)
        return NONE;
    const struct slot *slot = find_slot(table, key);
    return slot->key ? slot->value : NONE;
}

static void table_set(struct table *table, uint64_t key, uint32_t value)
{
    if (2 * (table->count + 1) > table->size)
        grow(table);
    struct slot *slot = find_slot(table, key);
    table->count += !slot->key;
    *slot = (struct slot){key, value};
}

/* ---- keys ---- */

static uint64_t key_of(struct str text)
{
    return text.len ? hash_stable(text).low | 1 : 0;
}

static uint64_t session_key(const struct decision *d)
{
    uint64_t key = hash_stable(d->session).low;
    hash_add(&key, (uint64_t)d->uid);
    return key | 1;
}

/* A record without an id is found by what is left that tells it apart. */
static uint64_t id_key(const struct decision *d)
{
    uint64_t key = hash_stable(d->id.len ? d->id : d->ts).low;
    hash_add(&key, hash_stable(d->tool).low);
    if (!d->id.len)
        hash_add(&key, session_key(d));
    return key | 1;
}

/* ---- following up ---- */

struct decision_outcomes *decision_outcomes_new(void)
{
    struct decision_outcomes *o = take(calloc(1, sizeof(*o)));
    o->arena = arena_new();
    return o;
}

void decision_outcomes_free(struct decision_outcomes *o)
{
    if (!o)
        return;
    arena_free(o->arena);
    free(o->refusals);
    free(o->by_id.slots);
    free(o->sessions.slots);
    free(o);
}

static void close_unpassed(struct refusal *r)
{
    r->outcome.kind = r->outcome.repeats ? OUTCOME_REPEATED : OUTCOME_GAVE_UP;
}

static void close_passed(struct decision_outcomes *o, struct refusal *r, const struct decision *d, bool same)
{
    struct buf text = {0};
    r->outcome.kind = same ? OUTCOME_PASSED : OUTCOME_REPAIRED;
    if (d->arguments && !same) {
        json_write(&text, d->arguments);
        r->outcome.arguments = arena_truncate(o->arena, buf_view(&text), OUTCOME_ARGUMENT_BYTES);
        r->outcome.arguments = arena_dup(o->arena, r->outcome.arguments);
    }
    buf_clear(&text);
}

struct later_call {
    const struct decision *decision;
    uint64_t tool, arguments, step;
    bool refused;
};

/* What the call means for an earlier refusal. False: it is closed. */
static bool follow(struct decision_outcomes *o, struct refusal *r, const struct later_call *call)
{
    const struct decision *d = call->decision;
    if (r->turn > 0 && d->turn > 0 && d->turn != r->turn) {
        close_unpassed(r);
        return false;
    }
    if (r->step && r->step == call->step) /* made beside it, before the model read the refusal */
        return true;
    if (call->tool != r->tool) {
        if (!r->outcome.next_tool.len && !r->outcome.tries)
            r->outcome.next_tool = arena_dup(o->arena, d->tool);
        return true;
    }
    bool same = r->arguments && call->arguments == r->arguments;
    r->outcome.tries++;
    r->outcome.repeats += same;
    if (!call->refused)
        close_passed(o, r, d, same);
    return call->refused;
}

/* The new head of the session's list, and how many are in it. */
static uint32_t follow_all(struct decision_outcomes *o, uint32_t head, const struct later_call *call,
                           uint32_t *open)
{
    uint32_t *link = &head;
    *open = 0;
    while (*link != NONE) {
        struct refusal *r = &o->refusals[*link];
        if (follow(o, r, call)) {
            link = &r->next;
            ++*open;
        } else {
            *link = r->next;
        }
    }
    return head;
}

static uint32_t new_refusal(struct decision_outcomes *o, const struct later_call *call, uint32_t head)
{
    if (o->count == o->capacity) {
        o->capacity = o->capacity ? o->capacity * 2 : 256;
        o->refusals = take(realloc(o->refusals, o->capacity * sizeof(*o->refusals)));
    }
    const struct decision *d = call->decision;
    struct refusal *r = &o->refusals[o->count];
    *r = (struct refusal){
        .tool = call->tool, .arguments = call->arguments, .step = call->step, .turn = d->turn, .next = head};
    r->outcome.ran = d->result_class.len ? arena_dup(o->arena, d->result_class) : STR_NONE;
    table_set(&o->by_id, id_key(d), (uint32_t)o->count);
    return (uint32_t)o->count++;
}

/* A report is the result of a check: of one that was not enforced it says whether the tool would have worked.
 */
static void add_report(struct decision_outcomes *o, const struct decision *d)
{
    uint32_t at = table_get(&o->by_id, id_key(d));
    if (at == NONE)
        return;
    struct str class = d->result_class.len ? d->result_class : d->given.class;
    o->refusals[at].outcome.ran = arena_dup(o->arena, class);
}

void decision_outcomes_add(struct decision_outcomes *o, const struct decision *d)
{
    if (decision_is_report(d)) {
        add_report(o, d);
        return;
    }
    uint64_t session = session_key(d);
    uint32_t before = table_get(&o->sessions, session), open = 0;
    bool refused = decision_is_refused(d) || decision_would_be_refused(d);
    if (before == NONE && !refused) /* the common record */
        return;
    struct later_call call = {d, key_of(d->tool), decision_arguments_hash(d), key_of(d->step), refused};
    uint32_t head = follow_all(o, before, &call, &open);
    bool has_room = open < OUTCOME_OPEN_MAX && o->count < OUTCOME_REFUSALS_MAX;
    o->left_out += refused && !has_room;
    if (refused && has_room)
        head = new_refusal(o, &call, head);
    if (head != before)
        table_set(&o->sessions, session, head);
}

uint64_t decision_outcomes_left_out(const struct decision_outcomes *o)
{
    return o->left_out;
}

void decision_outcomes_end(struct decision_outcomes *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->refusals[i].outcome.kind == OUTCOME_UNKNOWN)
            close_unpassed(&o->refusals[i]);
}

const struct decision_outcome *decision_outcomes_get(const struct decision_outcomes *o,
                                                     const struct decision *d)
{
    static const struct decision_outcome unknown = {0};
    uint32_t at = decision_is_report(d) ? NONE : table_get(&o->by_id, id_key(d));
    return at == NONE ? &unknown : &o->refusals[at].outcome;
}

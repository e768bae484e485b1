/*
 * The ledger in domain terms: a request becomes a run of a script, the reply
 * becomes an answer. What the budgets and loops are stands in lua/ledger/,
 * which engine runs it in engine.c.
 */
#include "ledger/ledger.h"

#include "base/arena.h"
#include "base/log.h"
#include "ledger/call_id.h"
#include "ledger/engine.h"
#include "ledger/pack.h"
#include "ledger/redis_address.h"
#include "ledger/view.h"
#include "ledger/words.h"

#include <stdlib.h>
#include <unistd.h>

const struct ledger_limits ledger_default_limits = {
    .repair = 2,
    .same_call = 3,
    .transient = 3,
    .repeats = 3,
    .halt = 5,
    .across_turns = 5,
    .poll_max = 20,
    .same_failure = LEDGER_UNLIMITED,
};

struct ledger {
    struct engine *engine;
    struct arena *arena;          /* what the address is made of; NULL: there is only the local engine */
    struct redis_address address; /* of Redis */
    bool settles_unheard;
    struct call_id_key call_ids;
};

/* ---- which engine --------------------------------------------------------- */

/* Daemons of one Redis share the key, so that each reads the call ids of the others. */
static void make_call_id_key(const struct ledger_options *options, const struct redis_options *redis,
                             struct ledger *ledger)
{
    struct why why;
    call_id_key_make(&ledger->call_ids);
    if (redis) {
        struct hash128 shared = hash_stable(redis_address_shown(ledger->arena, &ledger->address));
        memcpy(ledger->call_ids.bytes, &shared, sizeof(ledger->call_ids.bytes));
    } else if (options->key_file && call_id_key_load(options->key_file, &ledger->call_ids, &why) != OK) {
        log_event(LOG_WARN, "call_id_key_not_kept", LOG_TEXT("why", why.text));
    }
}

static enum err new_ledger(const struct ledger_options *given, const struct redis_options *redis,
                           struct ledger *ledger, struct ledger **out, struct why *why)
{
    static const struct ledger_options defaults;
    const struct ledger_options *options = given ? given : &defaults;
    enum err err = engine_new(options, redis, &ledger->engine, why);
    ledger->settles_unheard = options->settles_unheard;
    make_call_id_key(options, redis, ledger);
    if (err != OK) {
        ledger_free(ledger);
        return err;
    }
    *out = ledger;
    return OK;
}

enum err ledger_new_local(const struct ledger_options *options, struct ledger **out, struct why *why)
{
    *out = NULL;
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return err_set(why, ERR_LIMIT, "no memory for the ledger");
    return new_ledger(options, NULL, ledger, out, why);
}

enum err ledger_new_redis(const struct ledger_options *options, const struct ledger_redis *redis,
                          struct ledger **out, struct why *why)
{
    *out = NULL;
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return err_set(why, ERR_LIMIT, "no memory for the ledger");
    ledger->arena = arena_new();
    enum err err = redis_address_parse(ledger->arena, str_of(redis->address), &ledger->address, why);
    if (err != OK) {
        ledger_free(ledger);
        return err;
    }
    struct redis_options o = {
        .loop = redis->loop,
        .address = &ledger->address,
        .name = arena_printf(ledger->arena, "toolgate-%d", (int)getpid()).at,
        .timeout_ms = redis->timeout_ms ? redis->timeout_ms : LEDGER_TIMEOUT_MS,
    };
    if (redis->password_file)
        o.password_file = arena_dup(ledger->arena, str_of(redis->password_file)).at;
    return new_ledger(options, &o, ledger, out, why);
}

void ledger_free(struct ledger *ledger)
{
    if (ledger) {
        engine_free(ledger->engine);
        arena_free(ledger->arena);
    }
    free(ledger);
}

bool ledger_is_settled(const struct ledger *ledger)
{
    return engine_is_settled(ledger->engine);
}

void ledger_status(const struct ledger *ledger, struct ledger_status *out)
{
    engine_status(ledger->engine, out);
}

struct str ledger_address(const struct ledger *ledger, struct arena *arena)
{
    return ledger->arena ? redis_address_shown(arena, &ledger->address) : STR_NONE;
}

/* A run that lives as long as its request, which may be asked for again in another engine. */
static struct script_run *begin(struct arena *arena, enum script script, struct str session)
{
    struct script_run *run = arena_alloc(arena, sizeof(*run));
    script_begin(run, script, session, arena_alloc(arena, SCRIPT_KEYS * SCRIPT_KEY_BYTES));
    return run;
}

/* False: there is no reply to read; where that is a failure, it is said. */
static bool is_said(const struct engine_reply *reply, enum err *error, struct why *why)
{
    if (reply->how == REPLY_FAILED)
        *error = err_set(why, reply->error, "%s", reply->why);
    return reply->how == REPLY_SAID;
}

static enum err short_reply(struct why *why, enum script script, size_t len)
{
    return err_set(why, ERR_PARSE, "%s answered %zu bytes, too few for its contract", script_name(script),
                   len);
}

/* ---- repair chains -------------------------------------------------------- */

static const struct {
    const char *outcome;
    enum log_level level;
} chain_levels[] = {
    {"no_retry", LOG_DEBUG}, {"success", LOG_INFO},     {"redundant", LOG_WARN},
    {"exhausted", LOG_WARN}, {"llm_gave_up", LOG_INFO}, {"fabricated_id_on_retry", LOG_WARN},
};

void ledger_log_chain(struct str tool, struct str ext, struct str outcome, uint32_t retries)
{
    for (size_t i = 0; i < sizeof(chain_levels) / sizeof(*chain_levels); i++)
        if (str_is(outcome, chain_levels[i].outcome))
            log_event(chain_levels[i].level, "validation_retry_outcome", LOG_STR("tool", tool),
                      LOG_STR("ext", ext), LOG_STR("outcome", outcome), LOG_NUM("retry_count", retries));
}

/* One line for each chain that an ended turn left open; returns how many. */
static uint32_t log_gave_up(struct str list)
{
    struct reply reply = reply_of(list);
    uint32_t count = 0;
    while (reply.at < reply.end && !reply.bad) {
        uint8_t retries = reply_u8(&reply);
        struct str tool = reply_take(&reply, reply_u8(&reply));
        struct str ext = reply_take(&reply, reply_u8(&reply));
        ledger_log_chain(tool, ext, STR_LIT("llm_gave_up"), retries);
        count++;
    }
    return count;
}

/* ---- admit ---------------------------------------------------------------- */

static uint64_t read_unseen(struct reply *reply)
{
    uint64_t unseen = 0;
    for (int i = 0; i < 8; i++)
        unseen |= (uint64_t)reply_u8(reply) << 8 * i;
    return unseen;
}

static void read_verdict(struct reply *reply, struct ledger_answer *answer)
{
    answer->turn = reply_u32(reply);
    reply_take(reply, 4); /* step label */
    answer->says = (enum ledger_says)reply_u8(reply);
    answer->code = word_code(reply_u8(reply));
    answer->would = word_code(reply_u8(reply));
    answer->attempt = reply_u8(reply);
    answer->attempts_left = reply_u8(reply);
    answer->repeats = reply_u8(reply);
    answer->no_progress = reply_u8(reply);
    answer->spent = reply_u8(reply);
    answer->transient_count = reply_u8(reply);
    answer->chain = word_outcome(reply_u8(reply));
    answer->chain_retries = reply_u8(reply);
    answer->ids_complete = reply_u8(reply) == 1;
}

static enum err read_answer(const struct ledger_admit *request, struct arena *arena, struct str text,
                            struct ledger_answer *answer)
{
    struct reply reply = reply_of(text);
    struct reply_parts parts = {0};
    read_verdict(&reply, answer);
    if (reply.at < reply.end) {
        answer->unseen = read_unseen(&reply);
        reply_read_parts(&reply, &parts);
    }
    if (reply.bad)
        return short_reply(&answer->why, SCRIPT_ADMIT, text.len);
    answer->gave_up = log_gave_up(parts.gave_up);
    answer->goal = parts.goal;
    if (reply.at < reply.end) {
        answer->of_session = reply_u8(&reply) == 2;
        answer->used = reply_u48(&reply);
    }
    if (request->wants_history)
        answer->history = view_history(arena, &parts);
    if (request->wants_facts)
        answer->facts = view_facts(arena, &parts);
    return OK;
}

static void take_answer(const struct ask *ask, const struct engine_reply *reply)
{
    struct ledger_answer *answer = ask->answer;
    answer->engine = reply->engine;
    answer->uncounted = reply->how == REPLY_UNCOUNTED;
    if (is_said(reply, &answer->error, &answer->why))
        answer->error = read_answer(ask->request, ask->arena, reply->text, answer);
    if (reply->stand_in)
        answer->ids_complete = false; /* what was seen before is not known here */
}

static uint64_t admission_of_admit(const struct ask *ask)
{
    return ((const struct ledger_admit *)ask->request)->admission;
}

/* Its caller is gone: as if it had never been asked. */
static void release_admitted(const struct ask *ask, const struct pack_options *options,
                             struct script_run *run)
{
    const struct ledger_admit *asked = ask->request;
    struct ledger_settle request = {
        .place = asked->place,
        .admission = asked->admission,
        .tool = asked->tool,
        .ext = asked->ext,
        .arguments = asked->arguments,
        .class = LEDGER_CLASS_RELEASED,
        .label = STR_LIT("cancelled"),
        .limits = asked->limits,
    };
    run->script = SCRIPT_SETTLE;
    run->arg_count = 0;
    pack_settle(run, &request, options, ask->arena);
}

static const struct ask_kind admit_kind = {SCRIPT_ADMIT, STANDS_FOR_A_CALL, take_answer, admission_of_admit,
                                           release_admitted};

enum ledger_state ledger_admit(struct ledger *ledger, const struct ledger_admit *request, struct arena *arena,
                               struct ledger_answer *answer, ledger_done *done, void *owner)
{
    struct ask ask = {&admit_kind, request, answer, arena, done, owner};
    struct script_run *run = begin(arena, SCRIPT_ADMIT, request->place.session);
    *answer = (struct ledger_answer){.error = OK, .engine = "none"};
    pack_admit(run, request, engine_options(ledger->engine), arena);
    return engine_run(ledger->engine, run, &ask);
}

/* ---- settle --------------------------------------------------------------- */

static enum err read_settled(struct str text, struct str tool, struct ledger_settled *settled)
{
    struct reply reply = reply_of(text);
    settled->says = (enum ledger_says)reply_u8(&reply);
    settled->unchanged = reply_u8(&reply) == 1;
    settled->repeats = reply_u8(&reply);
    settled->no_progress = reply_u8(&reply);
    settled->attempt = reply_u8(&reply);
    settled->attempts_left = reply_u8(&reply);
    settled->transient_count = reply_u8(&reply);
    settled->chain = word_outcome(reply_u8(&reply));
    settled->chain_retries = reply_u8(&reply);
    uint8_t dropped = reply_u8(&reply);
    if (dropped)
        log_event(LOG_WARN, "facts_dropped", LOG_STR("tool", tool), LOG_NUM("count", dropped),
                  LOG_NUM("limit_bytes", LEDGER_FACTS_MAX_BYTES));
    return reply.bad ? short_reply(&settled->why, SCRIPT_SETTLE, text.len) : OK;
}

/* Redis will be told later: what a first attempt would have been told. */
static void settle_unheard(const struct ledger_settle *request, struct ledger_settled *settled)
{
    const struct ledger_limits *limits = request->limits ? request->limits : &ledger_default_limits;
    settled->says = request->class == LEDGER_CLASS_INVALID ? LEDGER_REPAIR : LEDGER_RUN;
    settled->attempt = 1;
    settled->attempts_left = limits->repair;
}

static void take_settled(const struct ask *ask, const struct engine_reply *reply)
{
    struct ledger_settled *settled = ask->answer;
    const struct ledger_settle *request = ask->request;
    if (is_said(reply, &settled->error, &settled->why))
        settled->error = read_settled(reply->text, request->tool, settled);
    else
        settle_unheard(request, settled);
}

static uint64_t admission_of_settle(const struct ask *ask)
{
    return ((const struct ledger_settle *)ask->request)->admission;
}

static const struct ask_kind settle_kind = {SCRIPT_SETTLE, STANDS_BEHIND_ONE, take_settled,
                                            admission_of_settle, NULL};

/* Nothing but notes for the model depends on the answer, except where a repair may be the last. */
static bool goes_unheard(const struct ledger *ledger, const struct ledger_settle *request)
{
    return ledger->settles_unheard && request->class != LEDGER_CLASS_INVALID &&
           request->class != LEDGER_CLASS_FABRICATED;
}

enum ledger_state ledger_settle(struct ledger *ledger, const struct ledger_settle *request,
                                struct arena *arena, struct ledger_settled *settled, ledger_done *done,
                                void *owner)
{
    bool unheard = goes_unheard(ledger, request);
    struct ask ask = {&settle_kind, request, settled, arena, unheard ? NULL : done, owner};
    *settled = (struct ledger_settled){.error = OK};
    settle_unheard(request, settled);
    if (request->uncounted)
        return LEDGER_DONE;
    struct script_run *run = begin(arena, SCRIPT_SETTLE, request->place.session);
    pack_settle(run, request, engine_options(ledger->engine), arena);
    return engine_run(ledger->engine, run, &ask);
}

/* ---- turns ---------------------------------------------------------------- */

static void take_turned(const struct ask *ask, const struct engine_reply *reply)
{
    struct ledger_turned *turned = ask->answer;
    if (!is_said(reply, &turned->error, &turned->why))
        return;
    struct reply text = reply_of(reply->text);
    struct reply_parts parts;
    turned->turn = reply_u32(&text);
    reply_read_parts(&text, &parts);
    turned->gave_up = log_gave_up(parts.gave_up);
    if (text.bad)
        turned->error = short_reply(&turned->why, SCRIPT_TURN, reply->text.len);
}

static const struct ask_kind turn_kind = {
    .script = SCRIPT_TURN, .standing = STANDS_ALONE, .take = take_turned};

enum ledger_state ledger_turn(struct ledger *ledger, const struct ledger_turn *request, struct arena *arena,
                              struct ledger_turned *turned, ledger_done *done, void *owner)
{
    struct str session = request->session, goal = request->goal;
    uint32_t turn = request->turn;
    struct ask ask = {&turn_kind, NULL, turned, arena, done, owner};
    struct script_run *run = begin(arena, SCRIPT_TURN, session);
    *turned = (struct ledger_turned){.error = OK};
    pack_turn(run, turn, goal, engine_options(ledger->engine), arena);
    return engine_run(ledger->engine, run, &ask);
}

/* ---- ids, people ---------------------------------------------------------- */

static void take_nothing(const struct ask *ask, const struct engine_reply *reply)
{
    (void)ask;
    if (reply->how == REPLY_FAILED)
        log_event(LOG_WARN, "ledger_record_ids_failed", LOG_TEXT("why", reply->why));
}

static const struct ask_kind see_kind = {
    .script = SCRIPT_SEE, .standing = STANDS_LATER, .take = take_nothing};

void ledger_see(struct ledger *ledger, struct str session, const struct hash128 *ids, size_t count)
{
    struct arena *arena = arena_new();
    struct ask ask = {.kind = &see_kind, .arena = arena};
    for (size_t from = 0; from < count; from += LEDGER_IDS_MAX) {
        struct script_run *run = begin(arena, SCRIPT_SEE, session);
        pack_see(run, ids + from, count - from, engine_options(ledger->engine), arena);
        engine_run(ledger->engine, run, &ask);
    }
    arena_free(arena);
}

static void take_view(const struct ask *ask, const struct engine_reply *reply)
{
    struct ledger_view *view = ask->answer;
    const struct str *session = ask->request;
    if (!is_said(reply, &view->error, &view->why))
        return;
    view->stand_in = reply->stand_in;
    if (reply->text.len)
        view->error = view_session(ask->arena, *session, reply->text, &view->session, &view->why);
    else
        view->error =
            err_set(&view->why, ERR_NOT_FOUND, "no session '" STR_FMT "' is known", STR_ARG(*session));
}

static const struct ask_kind view_kind = {.script = SCRIPT_VIEW, .standing = STANDS_HERE, .take = take_view};

enum ledger_state ledger_view(struct ledger *ledger, struct str session, struct arena *arena,
                              struct ledger_view *view, ledger_done *done, void *owner)
{
    struct str *name = arena_alloc(arena, sizeof(*name));
    struct ask ask = {&view_kind, name, view, arena, done, owner};
    *name = session;
    *view = (struct ledger_view){.error = OK};
    return engine_run(ledger->engine, begin(arena, SCRIPT_VIEW, session), &ask);
}

static void take_peek(const struct ask *ask, const struct engine_reply *reply)
{
    struct ledger_peek *peek = ask->answer;
    if (!is_said(reply, &peek->error, &peek->why))
        return;
    struct reply text = reply_of(reply->text);
    peek->turn = reply_u32(&text);
    peek->no_progress = reply_u8(&text);
    peek->stuck = reply_u8(&text) == 1;
    peek->goal = reply_part(&text);
    if (text.bad)
        peek->error = short_reply(&peek->why, SCRIPT_PEEK, reply->text.len);
}

static const struct ask_kind peek_kind = {.script = SCRIPT_PEEK, .standing = STANDS_HERE, .take = take_peek};

enum ledger_state ledger_peek(struct ledger *ledger, const struct ledger_look *request, struct arena *arena,
                              struct ledger_peek *peek, ledger_done *done, void *owner)
{
    struct str session = request->place.session;
    struct ask ask = {&peek_kind, NULL, peek, arena, done, owner};
    *peek = (struct ledger_peek){.error = OK};
    return engine_run(ledger->engine, begin(arena, SCRIPT_PEEK, session), &ask);
}

void ledger_call_id(const struct ledger *ledger, struct str session, uint64_t admission, uint32_t uid,
                    char out[LEDGER_CALL_ID_CHARS + 1])
{
    struct call_id id = {.session = hash_stable(session), .admission = admission, .uid = uid};
    call_id_write(&ledger->call_ids, &id, out);
}

bool ledger_call_id_read(const struct ledger *ledger, struct str text, uint32_t uid, struct hash128 *session,
                         uint64_t *admission)
{
    struct call_id id = {.uid = uid};
    bool valid = call_id_read(&ledger->call_ids, text, &id);
    *session = id.session;
    *admission = id.admission;
    return valid;
}

static void take_reset(const struct ask *ask, const struct engine_reply *reply)
{
    enum err *error = ask->answer;
    struct why why;
    if (is_said(reply, error, &why) && !str_is(reply->text, "1"))
        *error = ERR_NOT_FOUND;
    if (reply->how == REPLY_FAILED)
        log_event(LOG_WARN, "ledger_reset_failed", LOG_TEXT("why", why.text));
}

static const struct ask_kind reset_kind = {
    .script = SCRIPT_RESET, .standing = STANDS_IN_BOTH, .take = take_reset};

enum ledger_state ledger_reset(struct ledger *ledger, struct str session, struct str tool,
                               struct arena *arena, enum err *error, ledger_done *done, void *owner)
{
    struct ask ask = {&reset_kind, NULL, error, arena, done, owner};
    struct script_run *run = begin(arena, SCRIPT_RESET, session);
    *error = OK;
    pack_reset(run, tool, engine_options(ledger->engine), arena);
    return engine_run(ledger->engine, run, &ask);
}

void ledger_cancel(struct ledger *ledger, void *owner)
{
    engine_cancel(ledger->engine, owner);
}

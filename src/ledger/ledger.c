/*
 * The ledger in domain terms: a request becomes a run of a script, the reply
 * becomes an answer. What the budgets and loops are stands in lua/ledger/.
 */
#include "ledger/ledger.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/local.h"
#include "ledger/pack.h"
#include "ledger/view.h"
#include "ledger/words.h"

#include <stdlib.h>

const struct ledger_limits ledger_default_limits = {
    .repair = 2,
    .same_call = 3,
    .transient = 3,
    .repeats = 3,
    .halt = 5,
    .across_turns = 5,
    .poll_max = 20,
};

struct ledger {
    struct local *local;
    int64_t (*now_ms)(void);
    struct pack_options options;
};

enum err ledger_new_local(const struct ledger_options *options, struct ledger **out, struct why *why)
{
    static const struct ledger_options defaults;
    const struct ledger_options *o = options ? options : &defaults;
    *out = NULL;
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return why_set(why, ERR_LIMIT, "no memory for the ledger");
    ledger->now_ms = o->now_ms ? o->now_ms : clock_wall_ms;
    ledger->options.ttl_s = o->ttl_s ? o->ttl_s : LEDGER_TTL_S_DEFAULT;
    ledger->options.history = o->history ? o->history : LEDGER_HISTORY_DEFAULT;
    enum err err = local_new(o->memory_bytes ? o->memory_bytes : LEDGER_MEMORY_BYTES, &ledger->local, why);
    if (err != OK) {
        ledger_free(ledger);
        return err;
    }
    *out = ledger;
    return OK;
}

void ledger_free(struct ledger *ledger)
{
    if (ledger)
        local_free(ledger->local);
    free(ledger);
}

const char *ledger_engine(const struct ledger *ledger)
{
    (void)ledger;
    return "local";
}

static enum err run_script(struct ledger *ledger, const struct script_run *run, struct arena *arena,
                           struct str *reply, struct why *why)
{
    return local_run(ledger->local, run, ledger->now_ms(), arena, reply, why);
}

static enum err short_reply(struct why *why, enum script script, size_t len)
{
    return why_set(why, ERR_PARSE, "%s answered %zu bytes, too few for its contract", script_name(script),
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
    answer->says = (enum ledger_says)reply_u8(reply);
    answer->code = word_code(reply_u8(reply));
    answer->would = word_code(reply_u8(reply));
    answer->advise_only = answer->would.len > 0;
    answer->attempt = reply_u8(reply);
    answer->attempts_left = reply_u8(reply);
    answer->repeats = reply_u8(reply);
    answer->unchanged = answer->repeats > 0;
    answer->no_progress = reply_u8(reply);
    answer->spent = reply_u8(reply);
    answer->transient_count = reply_u8(reply);
    answer->chain = word_outcome(reply_u8(reply));
    answer->chain_retries = reply_u8(reply);
    answer->ids_complete = reply_u8(reply) == 1;
    answer->unseen = read_unseen(reply);
}

static enum err read_answer(const struct ledger_admit *request, struct arena *arena, struct str text,
                            struct ledger_answer *answer)
{
    struct reply reply = reply_of(text);
    struct reply_parts parts;
    read_verdict(&reply, answer);
    reply_read_parts(&reply, &parts);
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

enum ledger_state ledger_admit(struct ledger *ledger, const struct ledger_admit *request, struct arena *arena,
                               struct ledger_answer *answer, ledger_done *done, void *owner)
{
    (void)done, (void)owner; /* the local engine answers at once */
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str reply;
    *answer = (struct ledger_answer){.error = OK};
    script_begin(&run, SCRIPT_ADMIT, request->place.session, keys);
    pack_admit(&run, request, &ledger->options, arena);
    answer->error = run_script(ledger, &run, arena, &reply, &answer->why);
    if (answer->error == OK)
        answer->error = read_answer(request, arena, reply, answer);
    return LEDGER_DONE;
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

enum ledger_state ledger_settle(struct ledger *ledger, const struct ledger_settle *request,
                                struct arena *arena, struct ledger_settled *settled, ledger_done *done,
                                void *owner)
{
    (void)done, (void)owner;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str reply;
    *settled = (struct ledger_settled){.error = OK};
    script_begin(&run, SCRIPT_SETTLE, request->place.session, keys);
    pack_settle(&run, request, &ledger->options, arena);
    settled->error = run_script(ledger, &run, arena, &reply, &settled->why);
    if (settled->error == OK)
        settled->error = read_settled(reply, request->tool, settled);
    return LEDGER_DONE;
}

/* ---- turns, ids, people --------------------------------------------------- */

enum ledger_state ledger_turn(struct ledger *ledger, struct str session, uint32_t turn, struct str goal,
                              struct arena *arena, struct ledger_turned *turned, ledger_done *done,
                              void *owner)
{
    (void)done, (void)owner;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str text;
    *turned = (struct ledger_turned){.error = OK};
    script_begin(&run, SCRIPT_TURN, session, keys);
    pack_turn(&run, turn, goal, &ledger->options, arena);
    turned->error = run_script(ledger, &run, arena, &text, &turned->why);
    if (turned->error != OK)
        return LEDGER_DONE;
    struct reply reply = reply_of(text);
    struct reply_parts parts;
    turned->turn = reply_u32(&reply);
    reply_read_parts(&reply, &parts);
    turned->gave_up = log_gave_up(parts.gave_up);
    if (reply.bad)
        turned->error = short_reply(&turned->why, SCRIPT_TURN, text.len);
    return LEDGER_DONE;
}

void ledger_see(struct ledger *ledger, struct str session, const struct hash128 *ids, size_t count)
{
    struct arena *arena = arena_new();
    for (size_t from = 0; from < count; from += LEDGER_IDS_MAX) {
        char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
        struct script_run run;
        struct str reply;
        struct why why;
        script_begin(&run, SCRIPT_SEE, session, keys);
        pack_see(&run, ids + from, count - from, &ledger->options, arena);
        if (run_script(ledger, &run, arena, &reply, &why) != OK)
            log_event(LOG_WARN, "ledger_see_failed", LOG_TEXT("why", why.text));
    }
    arena_free(arena);
}

enum ledger_state ledger_view(struct ledger *ledger, struct str session, struct arena *arena,
                              struct ledger_view *view, ledger_done *done, void *owner)
{
    (void)done, (void)owner;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str reply;
    *view = (struct ledger_view){.error = OK};
    script_begin(&run, SCRIPT_VIEW, session, keys);
    view->error = run_script(ledger, &run, arena, &reply, &view->why);
    if (view->error == OK && !reply.len)
        view->error =
            why_set(&view->why, ERR_NOT_FOUND, "no session '" STR_FMT "' is known", STR_ARG(session));
    if (view->error == OK)
        view->error = view_session(arena, session, reply, &view->session, &view->why);
    return LEDGER_DONE;
}

enum ledger_state ledger_peek(struct ledger *ledger, struct str session, struct arena *arena,
                              struct ledger_peek *peek, ledger_done *done, void *owner)
{
    (void)done, (void)owner;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str text;
    *peek = (struct ledger_peek){.error = OK};
    script_begin(&run, SCRIPT_PEEK, session, keys);
    peek->error = run_script(ledger, &run, arena, &text, &peek->why);
    if (peek->error != OK)
        return LEDGER_DONE;
    struct reply reply = reply_of(text);
    peek->turn = reply_u32(&reply);
    peek->no_progress = reply_u8(&reply);
    peek->stuck = reply_u8(&reply) == 1;
    peek->goal = reply_part(&reply);
    if (reply.bad)
        peek->error = short_reply(&peek->why, SCRIPT_PEEK, text.len);
    return LEDGER_DONE;
}

enum ledger_state ledger_reset(struct ledger *ledger, struct str session, struct str tool,
                               struct arena *arena, enum err *error, ledger_done *done, void *owner)
{
    (void)done, (void)owner;
    char keys[SCRIPT_KEYS][SCRIPT_KEY_BYTES];
    struct script_run run;
    struct str reply;
    struct why why;
    script_begin(&run, SCRIPT_RESET, session, keys);
    pack_reset(&run, tool, &ledger->options, arena);
    *error = run_script(ledger, &run, arena, &reply, &why);
    if (*error != OK)
        log_event(LOG_WARN, "ledger_reset_failed", LOG_TEXT("why", why.text));
    else if (!str_is(reply, "1"))
        *error = ERR_NOT_FOUND;
    return LEDGER_DONE;
}

void ledger_cancel(struct ledger *ledger, void *owner)
{
    (void)ledger, (void)owner; /* the local engine has answered before anybody could cancel */
}

void ledger_usage(const struct ledger *ledger, size_t *sessions, size_t *bytes)
{
    local_usage(ledger->local, sessions, bytes);
}

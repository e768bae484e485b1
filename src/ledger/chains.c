/*
 * Repair chains: the invalid calls of a tool in a turn. Providers give each call an id of its own, so a call
 * with a new id continues a chain of its tool; only siblings of one step open chains side by side, and a
 * client that repeats an id stays in that id's chain. A chain ends when a call that continues it runs, when
 * its attempts are used up, or with its turn.
 */
#include "ledger/rules_internal.h"

#define ATTEMPTS_MAX 254u

#define SESSION_FREE_ATTEMPTS 4u  /* of a chain: attempts that make progress and cost nothing */
#define SESSION_SIBLINGS_MAX  8u  /* chains of one tool; a further sibling continues the oldest */
#define SESSION_LOST_RUNAWAY  50u /* attempts with lost arguments, the same */
#define SESSION_RUNAWAY       20u /* refused attempts of a used-up chain: then its calls end the run */

#define CHAIN_AGENT_SHIFT 16u

/* Above, who calls (0: the session's main agent); below, the hash of dev.toolgate/call (0: it has none). */
static uint32_t caller_of(const struct rules_ctx *ctx, const struct session_call *call)
{
    uint32_t hash = rules_hash_label(ctx->request->call), cut = (hash ^ hash >> 16) & 0xffff;
    return (uint32_t)call->agent << CHAIN_AGENT_SHIFT | (cut || !hash ? cut : 1);
}

/* Whether such calls continue this chain: each agent repairs its own. */
static bool is_chain_of(const struct session_chain *chain, const struct session_call *call)
{
    return chain->tool == call->tool && chain->call >> CHAIN_AGENT_SHIFT == call->agent;
}

static void drop_chain(struct session *session, struct session_chain *chain)
{
    DROP_AT(session->chains, session->chain_count, chain - session->chains);
    memset(&session->chains[session->chain_count], 0, sizeof(*chain));
}

/* A chain that was still open is reported once, by the name and ext that it was called by last. */
static void give_up_oldest(struct rules_ctx *ctx)
{
    struct session_chain *chain = &ctx->session->chains[0];
    struct session_changes *changes = ctx->changes;
    if (!chain->ended) {
        struct session_note note = {.tool = chain->tool,
                                    .label = ledger_label_number(STR_LIT("invalid_arguments")),
                                    .code = CODE_LLM_GAVE_UP,
                                    .turn = ctx->session->turn,
                                    .step = chain->step};
        rules_note(ctx, note, session_chain_retries(chain));
        if (changes->gave_up_count < SESSION_CHAINS_MAX)
            changes->gave_up[changes->gave_up_count++] = *chain;
    }
    drop_chain(ctx->session, chain);
}

void chain_give_up_all(struct rules_ctx *ctx)
{
    while (ctx->session->chain_count > 0)
        give_up_oldest(ctx);
}

void chain_drop_tool(struct session *session, uint32_t tool)
{
    for (unsigned i = session->chain_count; i-- > 0;)
        if (session->chains[i].tool == tool)
            drop_chain(session, &session->chains[i]);
}

/* ---- problems -------------------------------------------------------------------- */

static bool has_problem(const struct session_chain *chain, struct session_problem problem)
{
    for (unsigned i = 0; i < chain->problem_count; i++)
        if (chain->problems[i].path == problem.path && chain->problems[i].code == problem.code)
            return true;
    return false;
}

static void add_problems(struct session_chain *chain, const struct ledger_call *request)
{
    for (size_t i = 0; i < request->problem_count; i++) {
        struct session_problem problem = {rules_hash_more(RULES_HASH_EMPTY, request->problems[i].path),
                                          rules_hash_more(RULES_HASH_EMPTY, request->problems[i].code)};
        if (has_problem(chain, problem))
            continue;
        if (chain->problem_count == SESSION_PROBLEMS_MAX) {
            chain->problems_cut = true;
            return;
        }
        chain->problems[chain->problem_count++] = problem;
    }
}

static bool has_path(const struct session_chain *chain, uint32_t path)
{
    for (unsigned i = 0; i < chain->problem_count; i++)
        if (chain->problems[i].path == path)
            return true;
    return false;
}

/* The path is one of the chain's, or goes on from one with '.' or '['. */
static bool extends_path(const struct session_chain *chain, struct str path)
{
    uint32_t hash = RULES_HASH_EMPTY;
    if (has_path(chain, hash))
        return true;
    for (size_t i = 0; i < path.len; i++) {
        if ((path.at[i] == '.' || path.at[i] == '[') && has_path(chain, hash))
            return true;
        hash = rules_hash_more(hash, (struct str){path.at + i, 1});
    }
    return has_path(chain, hash);
}

/* Each remaining problem is where there was one before, or deeper, and they are not the same ones. */
static bool is_progress(const struct session_chain *before, const struct ledger_call *request, uint8_t step)
{
    struct session_chain now = {0};
    if (before->attempts == 0 || before->step == step || before->problems_cut || before->problem_count == 0 ||
        before->free_attempts >= SESSION_FREE_ATTEMPTS)
        return false;
    add_problems(&now, request);
    if (now.problems_cut || now.problem_count == 0)
        return false;
    for (size_t i = 0; i < request->problem_count; i++)
        if (!extends_path(before, request->problems[i].path))
            return false;
    bool differs = now.problem_count != before->problem_count;
    for (unsigned i = 0; i < now.problem_count; i++)
        differs |= !has_problem(before, now.problems[i]);
    return differs;
}

/* ---- the chain of a call ---------------------------------------------------------- */

/* The chain that a call of `step` continues; NULL: it opens one. `attempt` (may be NULL) has the problems of
 * the call: of several open chains of earlier steps it continues the one that it resembles most. */
static struct session_chain *find_chain(const struct rules_ctx *ctx, const struct session_call *call,
                                        const struct session_chain *attempt)
{
    struct session *session = ctx->session;
    uint32_t caller = caller_of(ctx, call);
    struct session_chain *named = NULL, *earlier = NULL;
    struct session_chain *open = NULL, *ended = NULL; /* extended longest ago */
    unsigned count = 0, most = 0;
    for (unsigned i = 0; i < session->chain_count; i++) {
        struct session_chain *chain = &session->chains[i];
        if (!is_chain_of(chain, call))
            continue;
        count++;
        if (chain->call == caller)
            named = chain;
        if (chain->ended) {
            ended = ended ? ended : chain;
            continue;
        }
        open = open ? open : chain;
        unsigned alike = 0; /* problems of the attempt that are those of the chain's last attempt */
        for (unsigned k = 0; attempt && k < attempt->problem_count; k++)
            alike += has_problem(chain, attempt->problems[k]);
        if (chain->step != call->step && (!earlier || alike > most)) {
            earlier = chain;
            most = alike;
        }
    }
    if (named || earlier)
        return named ? named : earlier;
    if (!open)
        return ended; /* all of the tool's chains are used up */
    return count < SESSION_SIBLINGS_MAX ? NULL : open;
}

static unsigned attempts_left(uint32_t repair, unsigned attempt)
{
    unsigned most = limit_count(repair);
    if (most == SESSION_COUNT_MAX)
        return most;
    return attempt > most ? 0 : most + 1 - attempt;
}

/* The chain as it is with one more invalid call; those of one step are one attempt. `request` NULL: its
 * problems do not count. */
static void count_attempt(struct session_chain *chain, const struct ledger_call *request, uint8_t step,
                          bool is_free)
{
    bool is_sibling = chain->attempts > 0 && chain->step == step;
    if (is_free)
        chain->free_attempts++;
    else if (!is_sibling && chain->attempts < ATTEMPTS_MAX)
        chain->attempts++;
    chain->step = step;
    if (!request)
        return;
    if (!is_sibling) {
        chain->problem_count = 0;
        chain->problems_cut = false;
        memset(chain->problems, 0, sizeof(chain->problems));
    }
    add_problems(chain, request);
}

static bool runs_away(const struct rules_ctx *ctx, const struct session_chain *chain, bool lost)
{
    unsigned most = lost ? SESSION_LOST_RUNAWAY : limit_count(ctx->limits->repair) + SESSION_RUNAWAY;
    return chain->ended && chain->attempts >= most;
}

struct chain_state chain_extend(struct rules_ctx *ctx, const struct session_call *call, bool no_problems,
                                bool again)
{
    struct session *session = ctx->session;
    const struct ledger_call *request = ctx->request;
    struct session_chain chain = {0};
    if (!no_problems)
        add_problems(&chain, request);
    struct session_chain *before = find_chain(ctx, call, &chain);
    chain = (struct session_chain){.tool = call->tool};
    if (before && before->ended) {
        before->attempts += before->step != call->step && before->attempts < ATTEMPTS_MAX;
        before->step = call->step;
        return (struct chain_state){.exhausted = true,
                                    .runs_away = runs_away(ctx, before, request->arguments_lost),
                                    .attempt = before->attempts};
    }
    if (before) {
        chain = *before;
        drop_chain(session, before);
    } else if (session->chain_count == SESSION_CHAINS_MAX) {
        give_up_oldest(ctx);
    }
    chain.call = caller_of(ctx, call);
    struct chain_state state = {.made_progress = !no_problems && !ctx->limits->repair_hard &&
                                                 is_progress(&chain, request, call->step)};
    /* Insistence may have spent all of its step. */
    bool is_sibling = chain.attempts > 0 && chain.step == call->step;
    unsigned repair = limit_count(ctx->limits->repair);
    count_attempt(&chain, no_problems ? NULL : request, call->step, state.made_progress);
    chain.name_len = session_keep_text(chain.name, sizeof(chain.name), request->tool);
    chain.ext_len = session_keep_text(chain.ext, sizeof(chain.ext), request->ext);
    state.attempt = chain.attempts;
    state.left = attempts_left(ctx->limits->repair, chain.attempts);
    state.exhausted =
        !is_sibling && !state.made_progress && repair != SESSION_COUNT_MAX && chain.attempts > repair;
    if (state.exhausted && !request->place.anonymous) {
        chain.ended = true;
        state.outcome = again ? OUTCOME_REDUNDANT : OUTCOME_EXHAUSTED;
        state.retries = chain.attempts - 1u;
    }
    session->chains[session->chain_count++] = chain;
    return state;
}

struct chain_state chain_look(const struct rules_ctx *ctx, const struct session_call *call, bool invalid)
{
    const struct session_chain *chain = find_chain(ctx, call, NULL);
    struct chain_state state = {.attempt = 1, .left = limit_count(ctx->limits->repair)};
    if (!chain)
        return state;
    state.attempt = chain->attempts + !invalid;
    state.left = chain->ended ? 0 : attempts_left(ctx->limits->repair, state.attempt);
    state.exhausted = chain->ended;
    state.runs_away = runs_away(ctx, chain, false);
    state.free_attempts = chain->free_attempts;
    return state;
}

struct chain_state chain_spend(struct rules_ctx *ctx, const struct session_call *call)
{
    struct session_chain *chain = find_chain(ctx, call, NULL);
    if (chain && chain->attempts < ATTEMPTS_MAX)
        chain->attempts++;
    unsigned attempt = chain ? chain->attempts : 1;
    return (struct chain_state){.attempt = attempt, .left = attempts_left(ctx->limits->repair, attempt)};
}

/* The chain's last feedback was sent before a call of this step was admitted. Steps are kept as one byte. */
static bool is_heard(const struct session_chain *chain, uint8_t step)
{
    uint8_t later = (uint8_t)(step - chain->step);
    return later > 0 && later < 128;
}

struct chain_state chain_succeed(struct rules_ctx *ctx, const struct session_call *call)
{
    struct session_chain *chain = find_chain(ctx, call, NULL);
    struct chain_state state = {.attempt = 1, .left = limit_count(ctx->limits->repair)};
    state.outcome = OUTCOME_NO_RETRY;
    if (chain && !chain->ended && is_heard(chain, call->step)) {
        state.outcome = OUTCOME_SUCCESS;
        state.retries = chain->attempts;
        drop_chain(ctx->session, chain);
    }
    /* The model has found valid arguments: it may try again where it was used up. */
    for (unsigned i = ctx->session->chain_count; i-- > 0;) {
        struct session_chain *ended = &ctx->session->chains[i];
        if (is_chain_of(ended, call) && ended->ended && is_heard(ended, call->step))
            drop_chain(ctx->session, ended);
    }
    return state;
}

struct chain_state chain_fabricated(struct rules_ctx *ctx, const struct session_call *call)
{
    struct chain_state state = chain_look(ctx, call, false);
    struct session_chain *chain = find_chain(ctx, call, NULL);
    if (!chain || chain->ended || !is_heard(chain, call->step))
        return state;
    state.outcome = OUTCOME_FABRICATED_ON_RETRY;
    state.retries = chain->attempts;
    drop_chain(ctx->session, chain);
    return state;
}

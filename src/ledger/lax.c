/*
 * Insistence: a published schema may be stricter than its server. A problem that a model insists on is let
 * through once, and what the server says to it is remembered for the session: accepted or refused. The caller
 * says which problems may be insisted on (ledger_admit.lax); no tool that destroys is ever let run.
 */
#include "ledger/rules_internal.h"

/* items[3].x and items[7].x are one problem. */
static uint32_t hash_problem(const struct ledger_problem *problem)
{
    uint32_t hash = RULES_HASH_EMPTY;
    struct str path = problem->path, code = problem->code;
    bool in_index = false;
    for (size_t i = 0; i < path.len; i++) {
        in_index = in_index && ascii_is_digit(path.at[i]);
        if (!in_index)
            hash = rules_hash_more(hash, path.at[i]);
        in_index |= path.at[i] == '[';
    }
    hash = rules_hash_more(hash, '\0');
    for (size_t i = 0; i < code.len; i++)
        hash = rules_hash_more(hash, code.at[i]);
    return hash;
}

/* The problems of a call, each once. */
struct lax_problems {
    uint32_t tool;
    unsigned count; /* 0: there are none, or too many to remember */
    struct {
        uint32_t hash;
        bool known;
    } list[SESSION_LAX_MAX];
};

static struct lax_problems problems_of(const struct rules_ctx *ctx, const struct ledger_admit *request)
{
    struct lax_problems out = {.tool = session_tool(request->tool)};
    if (!request->lax || ctx->limits->effects == LEDGER_EFFECTS_DESTRUCTIVE)
        return out;
    for (size_t i = 0; i < request->problem_count; i++) {
        uint32_t hash = hash_problem(&request->problems[i]);
        unsigned at = 0;
        while (at < out.count && out.list[at].hash != hash)
            at++;
        if (at == SESSION_LAX_MAX) {
            out.count = 0;
            return out;
        }
        if (at == out.count) {
            out.count++;
            out.list[at].hash = hash;
            out.list[at].known = false;
        }
        out.list[at].known |= i < 64 && (request->lax_known >> i & 1);
    }
    return out;
}

static struct session_lax *find(const struct session *session, uint32_t tool, uint32_t problem)
{
    for (unsigned i = 0; i < session->lax_count; i++)
        if (session->lax[i].tool == tool && session->lax[i].problem == problem)
            return (struct session_lax *)&session->lax[i];
    return NULL;
}

enum lax_kind lax_judge(const struct rules_ctx *ctx, const struct ledger_admit *request, uint8_t step)
{
    struct lax_problems problems = problems_of(ctx, request);
    struct chain_key key = chain_key_of(problems.tool, request->call, request->place.agent);
    enum lax_kind kind = LAX_AT_ONCE;
    for (unsigned i = 0; i < problems.count; i++) {
        const struct session_lax *asked = find(ctx->session, problems.tool, problems.list[i].hash);
        if (asked && asked->state == LAX_REFUSED)
            return LAX_NONE;
        if (problems.list[i].known || (asked && asked->state == LAX_ACCEPTED))
            continue;
        if (!asked || asked->step == step) /* its feedback may not have been read */
            return LAX_NONE;
        kind = LAX_INSISTS;
    }
    bool is_over = kind == LAX_INSISTS && chain_look(ctx, key, step, true).exhausted;
    return problems.count && !is_over ? kind : LAX_NONE;
}

static void drop(struct session *session, unsigned at)
{
    session->lax_count--;
    memmove(&session->lax[at], &session->lax[at + 1], (session->lax_count - at) * sizeof(*session->lax));
}

void lax_remember(struct rules_ctx *ctx, const struct ledger_admit *request, uint8_t step, uint64_t admission)
{
    struct session *session = ctx->session;
    struct lax_problems problems = problems_of(ctx, request);
    for (unsigned i = 0; i < problems.count; i++) {
        const struct session_lax *before = find(session, problems.tool, problems.list[i].hash);
        struct session_lax entry = {
            .tool = problems.tool, .problem = problems.list[i].hash, .state = LAX_ASKED, .step = step};
        if (before && !admission)
            continue;
        if (before)
            entry = *before;
        entry.admission = admission;
        if (before)
            drop(session, (unsigned)(before - session->lax));
        else if (session->lax_count == SESSION_LAX_MAX)
            drop(session, 0);
        session->lax[session->lax_count++] = entry;
    }
}

bool lax_settle(struct session *session, const struct session_call *call, bool arguments_refused)
{
    bool learnt = false;
    for (unsigned i = 0; i < session->lax_count; i++) {
        struct session_lax *asked = &session->lax[i];
        if (asked->admission != call->admission)
            continue;
        asked->admission = 0;
        if (call->class == CALL_OK || call->class == CALL_PARTIAL) {
            learnt |= asked->state != LAX_ACCEPTED;
            asked->state = LAX_ACCEPTED;
        } else if (arguments_refused) {
            asked->state = LAX_REFUSED;
        }
    }
    return learnt;
}

void lax_drop_tool(struct session *session, uint32_t tool)
{
    for (unsigned i = session->lax_count; i-- > 0;)
        if (session->lax[i].tool == tool)
            drop(session, i);
}

/* One block holds the request, what it asks, and the strings and arrays behind that. */
#include "ledger/request.h"

#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"

#include <stdlib.h>

/* Lays out a block twice: first to measure it (`at` NULL), then to fill it. */
struct layout {
    char *at;
    size_t used;
};

static void *put(struct layout *block, const void *bytes, size_t len)
{
    size_t from = (block->used + 7) & ~(size_t)7;
    block->used = from + len;
    if (!block->at)
        return NULL;
    if (len)
        memcpy(block->at + from, bytes, len);
    return block->at + from;
}

static struct str put_str(struct layout *block, struct str s)
{
    return (struct str){put(block, s.at, s.len), s.len};
}

static void put_place(struct layout *block, struct ledger_place *place)
{
    place->session = put_str(block, place->session);
    place->step = put_str(block, place->step);
}

static const struct ledger_problem *put_problems(struct layout *block, const struct ledger_problem *list,
                                                 size_t count)
{
    struct ledger_problem *copy = put(block, list, count * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        struct str path = put_str(block, list[i].path), code = put_str(block, list[i].code);
        if (copy)
            copy[i] = (struct ledger_problem){path, code};
    }
    return copy;
}

static const struct ledger_limits *put_limits(struct layout *block, const struct ledger_limits *limits)
{
    return limits ? put(block, limits, sizeof(*limits)) : NULL;
}

static const void *put_admit(struct layout *block, const struct ledger_admit *from)
{
    struct ledger_admit copy = *from;
    void *to = put(block, from, sizeof(*from));
    put_place(block, &copy.place);
    copy.tool = put_str(block, from->tool);
    copy.call = put_str(block, from->call);
    copy.ext = put_str(block, from->ext);
    copy.refused_as = put_str(block, from->refused_as);
    copy.peer = put_str(block, from->peer);
    copy.open_arguments = put_str(block, from->open_arguments);
    copy.problems = put_problems(block, from->problems, from->problem_count);
    copy.limits = put_limits(block, from->limits);
    copy.ids = put(block, from->ids, from->id_count * sizeof(*from->ids));
    copy.wants_history = copy.wants_facts = false;
    if (to)
        memcpy(to, &copy, sizeof(copy));
    return to;
}

/* A tree cannot be copied as bytes: facts go as JSON. */
static struct str put_facts(struct layout *block, const struct ledger_settle *from)
{
    if (!from->facts)
        return put_str(block, from->facts_json);
    struct buf text = {.at = NULL};
    json_write(&text, from->facts);
    struct str copy = put_str(block, buf_view(&text));
    buf_clear(&text);
    return copy;
}

static const void *put_settle(struct layout *block, const struct ledger_settle *from)
{
    struct ledger_settle copy = *from;
    void *to = put(block, from, sizeof(*from));
    put_place(block, &copy.place);
    copy.tool = put_str(block, from->tool);
    copy.call = put_str(block, from->call);
    copy.ext = put_str(block, from->ext);
    copy.error = put_str(block, from->error);
    copy.label = put_str(block, from->label);
    copy.problems = put_problems(block, from->problems, from->problem_count);
    copy.limits = put_limits(block, from->limits);
    copy.gives_ids = put(block, from->gives_ids, from->gives_id_count * sizeof(*from->gives_ids));
    copy.facts_json = put_facts(block, from);
    copy.facts = NULL;
    if (to && from->fingerprint)
        copy.arguments = from->fingerprint(from->of);
    copy.fingerprint = NULL;
    if (to)
        memcpy(to, &copy, sizeof(copy));
    return to;
}

static const void *put_turn(struct layout *block, const struct ledger_turn *from)
{
    struct ledger_turn copy = *from;
    void *to = put(block, from, sizeof(*from));
    copy.session = put_str(block, from->session);
    copy.goal = put_str(block, from->goal);
    if (to)
        memcpy(to, &copy, sizeof(copy));
    return to;
}

static const void *put_see(struct layout *block, const struct see_request *from)
{
    struct see_request copy = *from;
    void *to = put(block, from, sizeof(*from));
    copy.ids = put(block, from->ids, from->count * sizeof(*from->ids));
    if (to)
        memcpy(to, &copy, sizeof(copy));
    return to;
}

static const void *put_tool(struct layout *block, const struct str *from)
{
    struct str *to = put(block, from, sizeof(*from));
    struct str copy = put_str(block, *from);
    if (to)
        *to = copy;
    return to;
}

static const void *put_asked(struct layout *block, const struct session_request *from)
{
    switch (from->kind) {
    case REQUEST_ADMIT:
        return put_admit(block, from->of.admit);
    case REQUEST_SETTLE:
    case REQUEST_RELEASE:
        return put_settle(block, from->of.settle);
    case REQUEST_TURN:
        return put_turn(block, from->of.turn);
    case REQUEST_SEE:
        return put_see(block, from->of.see);
    case REQUEST_RESET:
        return put_tool(block, from->of.tool);
    case REQUEST_LAPSED:
        return put(block, from->of.lapsed, sizeof(*from->of.lapsed));
    case REQUEST_FORGET:
    case REQUEST_BOUNDARY:
    case REQUEST_LOOK:
    case REQUEST_VIEW:
        break;
    }
    return NULL;
}

struct session_request *request_copy(const struct session_request *from)
{
    struct layout block = {.at = NULL};
    put(&block, from, sizeof(*from));
    put_asked(&block, from);
    size_t bytes = block.used;
    block = (struct layout){.at = malloc(bytes)};
    if (!block.at)
        abort();
    struct session_request *copy = put(&block, from, sizeof(*from));
    copy->of.any = put_asked(&block, from);
    copy->bytes = bytes;
    copy->answer = NULL;
    copy->arena = NULL;
    copy->done = NULL;
    copy->owner = NULL;
    copy->is_owned = true;
    copy->is_waiting = false;
    return copy;
}

struct session_request *request_release(const struct session_request *from)
{
    const struct ledger_admit *admit = from->of.admit;
    struct ledger_settle settle = {.place = admit->place,
                                   .admission = admit->admission,
                                   .tool = admit->tool,
                                   .ext = admit->ext,
                                   .call = admit->call,
                                   .arguments = admit->arguments,
                                   .limits = admit->limits};
    struct session_request release = {
        .kind = REQUEST_RELEASE, .id = from->id, .of.settle = &settle, .ledger = from->ledger};
    return request_copy(&release);
}

void request_free(struct session_request *request)
{
    free(request);
}

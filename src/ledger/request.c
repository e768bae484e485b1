/* One block holds the request, what it asks, and the strings and arrays behind that. */
#include "ledger/ledger_internal.h"

#include "base/buf.h"
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

static void put_behind_admit(struct layout *block, const struct ledger_admit *from, struct ledger_admit *to)
{
    const struct ledger_problem *problems = put_problems(block, from->problems, from->problem_count);
    const struct ledger_limits *limits = put(block, from->limits, from->limits ? sizeof(*from->limits) : 0);
    const struct hash128 *ids = put(block, from->ids, from->id_count * sizeof(*from->ids));
    if (!to)
        return;
    to->problems = problems;
    to->limits = from->limits ? limits : NULL;
    to->ids = ids;
    to->wants_history = to->wants_facts = false;
}

static void put_behind_settle(struct layout *block, const struct ledger_settle *from,
                              struct ledger_settle *to)
{
    struct buf facts = {.at = NULL}; /* a tree cannot be copied as bytes: it goes as JSON */
    if (from->facts)
        json_write(&facts, from->facts);
    struct str json = put_str(block, from->facts ? buf_view(&facts) : from->facts_json);
    buf_clear(&facts);
    const struct ledger_problem *problems = put_problems(block, from->problems, from->problem_count);
    const struct ledger_limits *limits = put(block, from->limits, from->limits ? sizeof(*from->limits) : 0);
    const struct hash128 *ids = put(block, from->gives_ids, from->gives_id_count * sizeof(*from->gives_ids));
    if (!to)
        return;
    to->problems = problems;
    to->limits = from->limits ? limits : NULL;
    to->gives_ids = ids;
    to->facts_json = json;
    to->facts = NULL;
    if (from->fingerprint)
        to->arguments = from->fingerprint(from->of);
    to->fingerprint = NULL;
}

#define TEXTS_MAX         8u
#define TEXT(type, field) (offsetof(struct type, field) + 1)

/* What a request asks: its struct, and where strings stand in it. The others ask nothing that is kept. */
static const struct {
    size_t size;
    size_t texts[TEXTS_MAX]; /* offset + 1; 0 ends the list */
} shapes[] = {
    [REQUEST_ADMIT] = {sizeof(struct ledger_admit),
                       {TEXT(ledger_admit, place.session), TEXT(ledger_admit, place.step),
                        TEXT(ledger_admit, tool), TEXT(ledger_admit, call), TEXT(ledger_admit, ext),
                        TEXT(ledger_admit, refused_as), TEXT(ledger_admit, peer),
                        TEXT(ledger_admit, open_arguments)}},
    [REQUEST_SETTLE] = {sizeof(struct ledger_settle),
                        {TEXT(ledger_settle, place.session), TEXT(ledger_settle, place.step),
                         TEXT(ledger_settle, tool), TEXT(ledger_settle, call), TEXT(ledger_settle, ext),
                         TEXT(ledger_settle, error), TEXT(ledger_settle, label)}},
    [REQUEST_TURN] = {sizeof(struct ledger_turn), {TEXT(ledger_turn, session), TEXT(ledger_turn, goal)}},
    [REQUEST_SEE] = {sizeof(struct see_request), {0}},
    [REQUEST_RESET] = {sizeof(struct str), {1}},
    [REQUEST_LAPSED] = {sizeof(struct lapsed_request), {0}},
};

static const void *put_asked(struct layout *block, const struct session_request *from)
{
    enum request_kind kind = from->kind == REQUEST_RELEASE ? REQUEST_SETTLE : from->kind;
    if (!shapes[kind].size)
        return NULL;
    char *to = put(block, from->of.any, shapes[kind].size);
    for (unsigned i = 0; i < TEXTS_MAX && shapes[kind].texts[i]; i++) {
        struct str text;
        size_t at = shapes[kind].texts[i] - 1;
        memcpy(&text, (const char *)from->of.any + at, sizeof(text));
        text = put_str(block, text);
        if (to)
            memcpy(to + at, &text, sizeof(text));
    }
    if (kind == REQUEST_ADMIT)
        put_behind_admit(block, from->of.admit, (struct ledger_admit *)(void *)to);
    if (kind == REQUEST_SETTLE)
        put_behind_settle(block, from->of.settle, (struct ledger_settle *)(void *)to);
    if (kind == REQUEST_SEE) {
        const struct see_request *see = from->of.see;
        const struct hash128 *ids = put(block, see->ids, see->count * sizeof(*see->ids));
        if (to)
            ((struct see_request *)(void *)to)->ids = ids;
    }
    return to;
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

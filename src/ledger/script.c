/*
 * Where the scripts' text comes from and how a session's keys are spelled.
 * The keys of a session share one hash tag, so that a script touches one
 * slot of a cluster and no session's name can break a key.
 */
#include "ledger/script.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/embedded.h"
#include "base/hash.h"

static const char *const names[SCRIPT_COUNT] = {
    [SCRIPT_ADMIT] = "ledger/admit.lua", [SCRIPT_SETTLE] = "ledger/settle.lua",
    [SCRIPT_TURN] = "ledger/turn.lua",   [SCRIPT_SEE] = "ledger/see.lua",
    [SCRIPT_VIEW] = "ledger/view.lua",   [SCRIPT_RESET] = "ledger/reset.lua",
    [SCRIPT_PEEK] = "ledger/peek.lua",   [SCRIPT_LEAVE] = "ledger/leave.lua",
    [SCRIPT_MERGE] = "ledger/merge.lua",
};

const char *script_name(enum script script)
{
    return names[script];
}

/* In the order in which each builds on those before. The last is for what two engines say to each other: a
 * server makes each function anew for each run, so the other scripts go without. */
static const char *const shared[] = {"ledger/session.lua", "ledger/rules.lua", "ledger/limits.lua",
                                     "ledger/away.lua"};
#define SHARED_COUNT (sizeof(shared) / sizeof(*shared))

static void add_shared(struct buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_str(out, embedded_text(shared[i]));
        buf_byte(out, '\n');
    }
}

struct str script_shared(struct arena *arena)
{
    struct buf out = buf_in(arena);
    add_shared(&out, SHARED_COUNT);
    return buf_view(&out);
}

struct str script_text(struct arena *arena, enum script script)
{
    struct buf out = buf_in(arena);
    bool between = script == SCRIPT_LEAVE || script == SCRIPT_MERGE;
    add_shared(&out, between ? SHARED_COUNT : SHARED_COUNT - 1);
    buf_str(&out, script_body(script));
    return buf_view(&out);
}

struct str script_body(enum script script)
{
    return embedded_text(names[script]);
}

static char *put_hex(char *at, uint64_t n)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[n >> shift & 15];
    return at;
}

void script_begin(struct script_run *run, enum script script, struct str session,
                  char key_bytes[SCRIPT_KEYS][SCRIPT_KEY_BYTES])
{
    struct hash128 hash = hash_stable(session);
    run->script = script;
    run->arg_count = 0;
    for (size_t i = 0; i < SCRIPT_KEYS; i++) {
        char *at = key_bytes[i];
        memcpy(at, "tg1:{", 5);
        at = put_hex(put_hex(at + 5, hash.high), hash.low);
        memcpy(at, "}:", 2);
        at[2] = SCRIPT_KEY_LETTERS[i];
        run->keys[i] = (struct str){key_bytes[i], SCRIPT_KEY_BYTES};
    }
}

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

struct str script_text(struct arena *arena, enum script script)
{
    struct buf out = buf_in(arena);
    bool between = script == SCRIPT_LEAVE || script == SCRIPT_MERGE;
    add_shared(&out, between ? SHARED_COUNT : SHARED_COUNT - 1);
    buf_text(&out, "return (function()\n"); /* a function may have two hundred names of its own */
    buf_str(&out, embedded_text(names[script]));
    buf_text(&out, "\nend)()\n");
    return buf_view(&out);
}

/* function(…) … end, function(…) … end */
static void add_functions(struct buf *out, const char *head)
{
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        buf_text(out, i == 0 ? "" : ", ");
        buf_text(out, head);
        buf_str(out, embedded_text(names[i]));
        buf_text(out, "\nend");
    }
    buf_byte(out, '\n');
}

struct str script_functions(struct arena *arena)
{
    struct buf out = buf_in(arena);
    add_shared(&out, SHARED_COUNT);
    buf_text(&out, "return ");
    add_functions(&out, "function()\n");
    return buf_view(&out);
}

static char *put_hex(char *at, uint64_t n)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[n >> shift & 15];
    return at;
}

/* While a library is loaded there is neither string nor redis.call: what it shares is made by the first run.
 */
static void add_maker(struct buf *out, const char *prelude)
{
    buf_text(out, "local functions\nlocal function make()\nlocal KEYS\n");
    buf_text(out, prelude);
    add_shared(out, SHARED_COUNT);
    buf_text(out, "functions = { ");
    add_functions(out, "function(keys, ARGV)\nKEYS = keys\n");
    buf_text(out, "}\nend\n");
}

static void name_functions(struct str text, struct script_names *of)
{
    struct hash128 hash = hash_stable(text);
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        char *at = of->of[i];
        memcpy(at, "tg1_", 4);
        at = put_hex(put_hex(at + 4, hash.high), hash.low);
        *at = '_';
        memcpy(at + 1, names[i] + strlen("ledger/"), 3);
    }
}

struct str script_library(struct arena *arena, const char *prelude, struct script_names *of)
{
    struct buf body = buf_in(arena), out = buf_in(arena);
    add_maker(&body, prelude);
    name_functions(buf_view(&body), of);
    buf_printf(&out, "#!lua name=%.*s\n", (int)SCRIPT_NAME_BYTES - 4, of->of[0]);
    buf_str(&out, buf_view(&body));
    for (int i = 0; i < SCRIPT_COUNT; i++)
        buf_printf(&out,
                   "redis.register_function('%.*s', function(keys, args)\n"
                   "if not functions then make() end\nreturn functions[%d](keys, args)\nend)\n",
                   (int)SCRIPT_NAME_BYTES, of->of[i], i + 1);
    return buf_view(&out);
}

void script_begin(struct script_run *run, enum script script, struct str session,
                  char key_bytes[SCRIPT_KEYS][SCRIPT_KEY_BYTES])
{
    struct hash128 hash = hash_stable(session);
    char stem[SCRIPT_KEY_BYTES];
    memcpy(stem, "tg1:{", 5);
    memcpy(put_hex(put_hex(stem + 5, hash.high), hash.low), "}:", 2);
    run->script = script;
    run->arg_count = 0;
    for (size_t i = 0; i < SCRIPT_KEYS; i++) {
        memcpy(key_bytes[i], stem, SCRIPT_KEY_BYTES - 1);
        key_bytes[i][SCRIPT_KEY_BYTES - 1] = SCRIPT_KEY_LETTERS[i];
        run->keys[i] = (struct str){key_bytes[i], SCRIPT_KEY_BYTES};
    }
}

/*
 * Where the scripts' text comes from and how a session's keys are spelled.
 * The keys of a session share one hash tag, so that a script touches one
 * slot of a cluster and no session's name can break a key.
 */
#include "ledger/script.h"

#include "base/arena.h"
#include "base/embedded.h"
#include "base/hash.h"

#include <stdio.h>

static const char *const names[SCRIPT_COUNT] = {
    [SCRIPT_ADMIT] = "ledger/admit.lua", [SCRIPT_SETTLE] = "ledger/settle.lua",
    [SCRIPT_TURN] = "ledger/turn.lua",   [SCRIPT_SEE] = "ledger/see.lua",
    [SCRIPT_VIEW] = "ledger/view.lua",   [SCRIPT_RESET] = "ledger/reset.lua",
    [SCRIPT_PEEK] = "ledger/peek.lua",
};

const char *script_name(enum script script)
{
    return names[script];
}

struct str script_common(struct arena *arena)
{
    struct str session = embedded_text("ledger/session.lua"), rules = embedded_text("ledger/rules.lua"),
               limits = embedded_text("ledger/limits.lua");
    return arena_printf(arena, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(session), STR_ARG(rules),
                        STR_ARG(limits));
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

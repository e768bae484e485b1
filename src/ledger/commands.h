/* The commands of redis.call that the ledger scripts use, for the local engine: over a store instead of a
 * server. */
#ifndef TOOLGATE_LEDGER_COMMANDS_H
#define TOOLGATE_LEDGER_COMMANDS_H

#include <lua.h>

#include <stdint.h>

struct store;

struct commands {
    struct store *store;
    int64_t now_ms;
};

/* Pushes a table {call = …}; `commands` must outlive the state. */
void commands_push(lua_State *lua, struct commands *commands);

#endif

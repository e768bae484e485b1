/*
 * The embedded engine: the ledger's scripts in a LuaJIT state of this daemon
 * (trusted, JIT on) over tables in memory. Answers at once.
 */
#ifndef TOOLGATE_LEDGER_LOCAL_H
#define TOOLGATE_LEDGER_LOCAL_H

#include "base/err.h"
#include "ledger/script.h"

#include <stdint.h>

struct local;
struct store_usage;

/* `memory_bytes`: what all sessions may take together; then the ones untouched for longest are forgotten. */
enum err local_new(size_t memory_bytes, struct local **out, struct why *why);
void local_free(struct local *local);

/* The reply is copied into the arena. `now_ms` is the engine's TIME. */
enum err local_run(struct local *local, const struct script_run *run, int64_t now_ms, struct arena *arena,
                   struct str *reply, struct why *why);

void local_usage(const struct local *local, struct store_usage *out);

#endif

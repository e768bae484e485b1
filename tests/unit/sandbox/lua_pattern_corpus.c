/* Replays the corpus of fuzz_lua_pattern. */
#include "../fuzz/fuzz_lua_pattern.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("lua_pattern", 20)

/* Replays the corpus of fuzz_passing. */
#include "../fuzz/fuzz_passing.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("passing", 10)

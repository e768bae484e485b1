/* Replays the corpus of fuzz_upstream. */
#include "../fuzz/fuzz_upstream.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("upstream", 7)

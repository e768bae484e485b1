/* Replays the corpus of fuzz_pattern. */
#include "../fuzz/fuzz_pattern.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("pattern", 12)

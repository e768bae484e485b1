/* Replays the corpus of fuzz_spelled. */
#include "../fuzz/fuzz_spelled.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("spelled", 12)

/* Replays the corpus of fuzz_dispatch. */
#include "../fuzz/fuzz_dispatch.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("dispatch", 9)

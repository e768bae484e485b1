/* Replays the corpus of fuzz_config. */
#include "../fuzz/fuzz_config.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("config", 7)

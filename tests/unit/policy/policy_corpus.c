/* Replays the corpus of fuzz_policy. */
#include "../fuzz/fuzz_policy.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("policy", 20)

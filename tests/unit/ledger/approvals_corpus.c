/* Replays the corpus of fuzz_approvals. */
#include "../fuzz/fuzz_approvals.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("approvals", 9)

/* Replays the corpus of fuzz_session. */
#include "../fuzz/fuzz_session.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("session", 30)

/* Replays the corpus of fuzz_http. */
#include "../fuzz/fuzz_http.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("http", 14)

/* Replays the corpus of fuzz_json. */
#include "../fuzz/fuzz_json.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("json", 20)

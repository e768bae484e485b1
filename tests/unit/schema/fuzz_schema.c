/* Replays the corpus of fuzz_schema. */
#include "../fuzz/fuzz_schema.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("schema", 16)

/* Replays the corpus of fuzz_recording. */
#include "../fuzz/fuzz_recording.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("recording", 7)

/* Replays the corpus of fuzz_shell. */
#include "../fuzz/fuzz_shell.c"

#include "../fuzz/replay.h"

REPLAY_MAIN("shell", 15)

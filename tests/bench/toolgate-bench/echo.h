/* The yardstick of the socket bench: toolgate's own socket code, which sends each line back as it came. */
#ifndef TOOLGATE_BENCH_ECHO_H
#define TOOLGATE_BENCH_ECHO_H

#include "base/err.h"

/* Listens on `path` and serves until a signal ends the process. Returns only if it cannot start. */
enum err echo_serve(const char *path, struct why *why);

#endif

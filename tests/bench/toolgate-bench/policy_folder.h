/* A temporary folder with one policy, a tool without one, and as many policies as wanted. */
#ifndef TOOLGATE_BENCH_POLICY_FOLDER_H
#define TOOLGATE_BENCH_POLICY_FOLDER_H

#include "base/err.h"

#include <stddef.h>

/* book_room.lua */
extern const char bench_typical_policy[];
#define BENCH_TYPICAL_TOOL "book_room"
#define BENCH_PLAIN_TOOL   "book_plain"

struct bench_many {
    char path[64];                     /* of the folder; empty: it was not made */
    char one[80], many[80], tools[80]; /* a folder with one policy, one with many more, the definitions */
};

enum err bench_many_make(struct bench_many *folder, size_t many, struct why *why);
void bench_many_drop(const struct bench_many *folder, size_t many);

#endif

/*
 * What `toolgate-bench policy` measures: policies and whole calls, made ready
 * once, then done as often as wanted.
 */
#ifndef TOOLGATE_BENCH_SUBJECTS_H
#define TOOLGATE_BENCH_SUBJECTS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum subject_kind {
    SUBJECT_EMPTY,  /* a check that does nothing, without arguments: what every other is compared with */
    SUBJECT_PUSH,   /* the same with six arguments: they go over to Lua */
    SUBJECT_BRIDGE, /* a normalise that gives six arguments back as they are */
    SUBJECT_CHANGE, /* one that changes one of them */
    SUBJECT_RULES,  /* two rules, no Lua */
    SUBJECT_TWENTY, /* the twenty lines of book_room.lua: rules and check */
    SUBJECT_RESULT, /* its result hook */
    SUBJECT_PLAIN,  /* a check of a call, dry, of a tool without a policy */
    SUBJECT_WHOLE,  /* the same tool with the twenty lines */
    SUBJECT_AMONG,  /* that, with many other policies loaded */
    SUBJECT_COUNT
};

struct subjects;

/* What many loaded policies cost. */
struct subjects_load {
    size_t count;
    int64_t policies_bytes, tools_bytes; /* resident: the policies; their tools and compiled schemas beside */
    double seconds;                      /* until a generation of them is ready */
};

/* `many`: how many policies stand beside the one that is measured; 0: none are loaded. */
enum err subjects_new(size_t many, struct subjects **out, struct subjects_load *load, struct why *why);
void subjects_free(struct subjects *subjects);

/* Does it `times` over; each time in an arena of its own, as a call is. Each must come out as it should. */
enum err subjects_do(struct subjects *subjects, enum subject_kind kind, unsigned times, struct why *why);

#endif

/*
 * Replays recorded sessions, in the order in which they were recorded, with a virtual clock: what one set of
 * policies, or two of them side by side, would have said. A refused call is not reported to the ledger of the
 * set that refused it; the recording goes on as it was recorded.
 *
 * The figures are counted in tables, of which every one is bounded: calls beyond its limit share the row
 * `other`. People read the views of their JSON in lua/report.
 */
#ifndef TOOLGATE_REPLAY_REPLAY_H
#define TOOLGATE_REPLAY_REPLAY_H

#include "gate/verdict.h"
#include "replay/judge.h"

#define REPLAY_PEERS_MAX 1024u /* users whose names are kept; of more, the last one is replaced */
#define REPLAY_STEP_MS   1000  /* between two calls of a session without recorded times */

#define REPLAY_EXAMPLES          3u
#define REPLAY_EXAMPLE_MAX_BYTES 400u /* of arguments and of a reason; longer ones are cut */
#define REPLAY_TOOLS_MAX         1000u
#define REPLAY_ROWS_MAX          2000u /* of each other table */
#define REPLAY_LOOPS_MAX         100u  /* that are listed, those that cost most calls */
#define REPLAY_TIMELINES_MAX     1000u /* the first ones of a recording */
#define REPLAY_MARKS_MAX         240u  /* of one of them: later calls are only counted */
#define REPLAY_RUNAWAY_CALLS     20u   /* a session in which as many calls would have been saved ran away */

struct replay_example {
    const char *file;
    uint64_t line;
    struct str session, arguments; /* as JSON; may be cut */
    struct str detail;             /* the reason; empty: none */
};

enum replay_change { REPLAY_NEW_REFUSAL, REPLAY_OTHER_VERDICT, REPLAY_NEW_PASS, REPLAY_CHANGES };

/* A row of any table. The members that are no part of the table's key are empty. */
struct replay_row {
    struct str tool, class, code, path;
    uint64_t calls;
    uint64_t verdicts[VERDICT_KINDS];
    uint64_t refused;   /* calls that would not have run */
    uint64_t retried;   /* of these: the session called the tool again */
    uint64_t recovered; /* of these: the next call of the tool passes */
    struct replay_example examples[REPLAY_EXAMPLES];
    size_t example_count;

    /* Only of a difference: calls whose verdict differs between --policies and --against, in the same way.
     * Code and path are why --against refuses; of REPLAY_NEW_PASS why --policies does: "maximum", "limit". */
    enum replay_change change;
    enum verdict_kind before, after;
    struct str before_class, after_class;
    struct str reason;                              /* of the first of them */
    uint64_t ran_well, ran_badly, not_run, unknown; /* what the recording has of these calls */
};

enum replay_table_kind {
    REPLAY_TOOLS,
    REPLAY_CLASSES,
    REPLAY_CODES,
    REPLAY_PROBLEMS,      /* by tool, class, code and path; items[3] counts as items[] */
    REPLAY_REPAIRS,       /* by tool and path: repaired (code "repaired") or proposed ("proposed") */
    REPLAY_LOST,          /* by tool and code: refused, although the recorded result was new */
    REPLAY_UNKNOWN_TOOLS, /* no schema, no policy: only the rules against loops judge them */
    REPLAY_DIFFERENCES,
    REPLAY_TABLES
};

/* Sorted by `calls` once the replay has ended; differences by change first. */
struct replay_table {
    struct replay_row **rows;
    size_t count;
    struct replay_row other; /* calls 0: no row was left out */
    struct map *by_key;
};

/* A call that was stopped, perhaps over and over. */
struct replay_stopped {
    uint64_t key, times;              /* its hash; 0: none */
    struct str tool, code, arguments; /* the last as JSON, cut */
    const char *file;
    uint64_t line;
};

/* A session in which the ledger stopped calls: loops, cycles, budgets of same calls and of repairs. */
struct replay_loop {
    struct str session;
    struct replay_stopped worst; /* the call that was stopped most */
    int64_t first_ms, last_ms;   /* of the stopped calls; 0: not recorded */
    uint64_t calls, saved;       /* of the session; of these, calls that would not have run */
    int64_t tokens;              /* that the session took from the first to the last of the stopped calls */
    bool halted;                 /* a verdict told the agent to end the run */
};

/* What became of the first calls of a session, or of a sub-agent of it, in their order. */
struct replay_timeline {
    struct str session, agent;
    const char *file;
    uint64_t line, calls;
    int64_t first_ms, last_ms, tokens;
    char marks[REPLAY_MARKS_MAX]; /* 'w': it ran well, 'f': failed, 'r': would not have run, 'a': a person is
                                     asked */
};

struct replay_report {
    struct arena *arena;            /* of everything below */
    const char *policies, *against; /* folders; NULL: none */
    uint64_t calls;                 /* that were judged */
    uint64_t sessions;
    uint64_t verdicts[VERDICT_KINDS];
    uint64_t against_verdicts[VERDICT_KINDS];
    uint64_t refused;            /* calls that would not have run */
    uint64_t asked;              /* of these, calls about which a person would have been asked */
    uint64_t lost;               /* of the others, calls whose recorded result was new: they are not saved */
    uint64_t unjudged;           /* calls that run, with rules for results, and without a recorded result */
    struct recorded_usage usage; /* of all sessions, also of those that call no tool */
    uint64_t rewritten;          /* calls whose arguments would have been repaired */
    uint64_t failures, failures_shown; /* recorded as failed; of these, such as their text alone shows */
    uint64_t failures_unmarked;        /* recorded as fine, and the text says that it failed */
    struct replay_table tables[REPLAY_TABLES];
    struct replay_loop *loops; /* by `saved` */
    size_t loop_count;
    struct replay_timeline *timelines[REPLAY_TIMELINES_MAX];
    size_t timeline_count;
    uint64_t loop_sessions, loop_calls;   /* sessions with a stopped call; calls that would not have run */
    uint64_t runaways, halted;            /* of these sessions */
    uint64_t changed[REPLAY_CHANGES];     /* calls */
    uint64_t without_result;              /* checked, and the recording has no result: loops cannot be told */
    uint64_t without_arguments;           /* recorded as a hash or not at all: not judged */
    uint64_t without_check;               /* reports of calls that the recording does not have: not judged */
    uint64_t masked;                      /* calls with a problem at a masked path, which does not count */
    uint64_t evicted;                     /* sessions that the ledger forgot for want of memory */
    uint64_t backwards;                   /* calls that are older than the one before them in their session */
    int64_t first_ms, last_ms;            /* of the recorded times; 0: it has none */
    int64_t us;                           /* that the replay took */
    const struct recording_count *faults; /* RECORDING_FAULTS of them */
    uint64_t lines;                       /* that could be read */
};

struct replay_options {
    struct recording *recording;
    enum recorded_format format;
    recorded_transcript *transcript; /* as in struct recorded_reader */
    void *transcripts;
    struct judge *policies, *against;                                  /* `against` NULL: none */
    void (*line_read)(void *owner, const struct recording *recording); /* after each; NULL: not wanted */
    void *owner;
};

/* Reads the whole recording, judges its calls and completes the report, which is in the arena. */
void replay_run(const struct replay_options *options, struct arena *arena, struct replay_report *report);

/* One JSON document, without a newline. `for_views`: with what only the views of lua/report show: each
 * table's rows that have no call left, and what each kind of fault is. */
void replay_report_json(const struct replay_report *report, bool for_views, struct buf *out);

/* ---- replay_report.c: counting, for replay.c ---- */

void replay_report_init(struct replay_report *report, struct arena *arena);

/* The row with this key, made if none exists; the table's `other` if it is full. */
struct replay_row *replay_table_row(struct replay_report *report, enum replay_table_kind kind,
                                    const struct replay_row *key);

/* Makes the call an example of the row if there is room for one more. `detail` may be empty. */
void replay_example_add(struct replay_report *report, struct replay_row *row,
                        const struct recorded_call *call, struct str detail);

/* NULL: there are as many as are kept. */
struct replay_timeline *replay_timeline_add(struct replay_report *report, const struct recorded_call *call);

/* Copies the session; tool and code must live as long as the report. */
void replay_loop_add(struct replay_report *report, const struct replay_loop *loop);

/* Sorts everything; nothing is counted afterwards. */
void replay_report_finish(struct replay_report *report);

#endif

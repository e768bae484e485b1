/*
 * What a recording says of one call, in any format: the decision log of toolgate, lines of {session,
 * tool, arguments, result}, messages of OpenAI's and Anthropic's APIs, JSON-RPC of MCP.
 */
#ifndef TOOLGATE_REPLAY_RECORDED_CALL_H
#define TOOLGATE_REPLAY_RECORDED_CALL_H

#include "replay/recording.h"

#include "gate/verdict.h"

enum recorded_format {
    RECORDED_ANY, /* found out for each line */
    RECORDED_DECISIONS,
    RECORDED_NDJSON,
    RECORDED_OPENAI,
    RECORDED_ANTHROPIC,
    RECORDED_MCP
};

/* "decisions", "ndjson", …; false: no such format. */
bool recorded_format_named(struct str name, enum recorded_format *out);

enum recorded_kind {
    RECORDED_CALL,  /* the call, and its result if the recording has one */
    RECORDED_CHECK, /* the call; its result comes later, with the same id */
    RECORDED_REPORT /* the result of an earlier RECORDED_CHECK */
};

struct recorded_call {
    enum recorded_kind kind;
    struct str id; /* joins a report to its check, within the session */
    struct str session, user, step, label, ext;
    uint32_t turn;
    bool has_uid;
    uint32_t uid;
    struct str tool, toolset;
    /* as the model sent them, perhaps a string that holds JSON; NULL: none were sent */
    const struct json *arguments;
    bool arguments_unknown;    /* they were recorded as a hash only */
    const struct json *masked; /* an array of JSON pointers whose values were masked; NULL: none */
    bool repeated;             /* the daemon counted it as a repetition of the call before */
    int64_t at_ms;             /* 0: the recording has no time */
    bool ran;                  /* there is a result, or only its class and hash */
    bool failed;               /* the tool reported an error */
    bool refused;              /* a gateway refused the call: it did not run */
    const struct json *result; /* NULL: only its class and hash are known, or it has none */
    struct str error;          /* of a failed call: its message */
    bool perhaps;              /* of a report: it may answer something else than a call */
    bool by_class;             /* the result is known by its class and hash alone */
    struct str result_hash;
    enum error_class result_class;
    const struct json *tools;          /* definitions that the recording carries, an array; NULL: none */
    const struct recording_line *line; /* where it is */
};

/* Receives each call of a line, in their order. Everything is borrowed until the next line is read. */
typedef void recorded_call_seen(void *owner, const struct recorded_call *call);

struct recorded_reader {
    enum recorded_format format;
    recorded_call_seen *seen;
    void *owner;
    /* Of a file whose lines are messages or JSON-RPC: */
    const char *file;
    uint32_t turn;
    uint64_t messages;
    struct arena *file_arena; /* what outlives a line; NULL: nothing yet */
    const struct json *tools;
};

/* Reads the calls of a line. False: it has none and is no part of a recording; `why` says what was expected.
 */
bool recorded_calls_read(struct recorded_reader *reader, const struct recording_line *line, const char **why);
void recorded_reader_clear(struct recorded_reader *reader);

/* What a tool returned as a value that toolgate/report takes: a string becomes text content. */
const struct json *recorded_result(struct arena *arena, const struct json *value);

#endif

/* One record, a line of JSON, per call, check and report, to a file or to journald (docs/decisions.md). It
 * never makes a call wait, nor fail: a record that cannot be written is counted. */
#ifndef TOOLGATE_GATE_DECISION_LOG_H
#define TOOLGATE_GATE_DECISION_LOG_H

#include "base/err.h"
#include "base/str.h"
#include "gate/verdict.h"
#include "policy/config.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct call;
struct decision_log;
struct loop;

struct decision_log_files {
    const char *records; /* if the configuration names no file */
    bool beside_socket;  /* there is no state folder: `records` is smaller, as its disk is mostly memory */
    const char *key;     /* of the hashes; made if it is not there */
};

/* ERR_IO: a sink that the configuration names cannot be written to. A default file that cannot is a warning
 * in the log. The configuration is borrowed until the next decision_log_configure. */
enum err decision_log_new(struct loop *loop, const struct config_decisions *config,
                          const struct decision_log_files *files, struct decision_log **out, struct why *why);

/* After a reload. A sink that cannot be written to is down, and reported as such. */
void decision_log_configure(struct decision_log *log, const struct config_decisions *config,
                            const struct decision_log_files *files);

/* False: no sink and no tap reads records. */
bool decision_log_is_on(const struct decision_log *log);

/* Opens the files again: logrotate has rotated them. */
void decision_log_reopen(struct decision_log *log);

/* Before the event loop is freed: what is recorded from now on is written by decision_log_free. */
void decision_log_leave_loop(struct decision_log *log);

/* Writes what is buffered, and logs how many records were lost. NULL is allowed. */
void decision_log_free(struct decision_log *log);

/* Of a call that has finished, or was cancelled. */
void decision_log_call(struct decision_log *log, struct call *call);

/* No call: a prompt or a resource that a client has asked a server for, or an operator's answer to the
 * question of a policy. It has no session of the ledger, no turn and no policy. */
struct decision_read {
    const struct peer *peer;
    struct str generation, session, method, name, upstream;
    bool is_uri;                  /* `name`, of a resource */
    const struct json *arguments; /* of a prompt; NULL: none */
    enum error_class class;
    struct str code, approval; /* of an answer: approved or denied, and which question */
    size_t bytes;              /* of the answer; 0: there is none */
};
void decision_log_read(struct decision_log *log, struct arena *arena, const struct decision_read *read);

/* Gets each record, masked and with its newline, after it is queued; NULL: none. */
typedef void decision_log_tap(void *owner, struct str line);
void decision_log_set_tap(struct decision_log *log, decision_log_tap *tap, void *owner);

/* Records that no sink has, since the start; and how many sinks cannot write now. */
uint64_t decision_log_dropped(const struct decision_log *log, uint32_t *sinks_down);

/* "decisions":{…} of toolgate/status. */
void decision_log_write_status(struct json_out *out, const struct decision_log *log);

#endif

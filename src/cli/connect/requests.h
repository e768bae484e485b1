/* Messages that the bridge keeps: those that wait to be sent, those in flight, subscriptions, questions. */
#ifndef TOOLGATE_CLI_CONNECT_REQUESTS_H
#define TOOLGATE_CLI_CONNECT_REQUESTS_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct json;

enum tracked_kind {
    TRACKED_NOTICE,  /* for this daemon only: a notification, or the answer to its question */
    TRACKED_REQUEST, /* has an answer */
};

struct tracked {
    TAILQ_ENTRY(tracked) link;
    enum tracked_kind kind;
    bool is_sent; /* it is in `sent`, not in `waiting` */
    char *line;   /* with its newline; NULL once sent, unless it `repeats` */
    size_t line_len, sent;
    int64_t until_us;
    struct str id, key, tool; /* as sent; canonical; of tools/call */
    unsigned repeats;         /* how often it may still be sent again */
    bool is_call, reads, modern, lists, initializes;
    bool tools, acknowledged; /* a subscription */
};

TAILQ_HEAD(tracked_list, tracked);

struct requests {
    struct tracked_list waiting, sent; /* waiting: the first may be partly sent */
    size_t waiting_count, waiting_bytes, sent_count;
};

void requests_init(struct requests *requests);
void requests_clear(struct requests *requests);

/* `id` NULL: none. `line` without its newline; STR_NONE: none. */
struct tracked *tracked_new(enum tracked_kind kind, struct str line, const struct json *id, struct str tool);
void tracked_free(struct tracked *t);

void requests_wait(struct requests *requests, struct tracked *t, bool first);
void requests_sent(struct requests *requests, struct tracked *t);
void requests_remove(struct requests *requests, struct tracked *t); /* takes it out, does not free it */
void requests_end(struct requests *requests, struct tracked *t);    /* and frees it */

/* The oldest with this id, or NULL. The canonical form: 1 and 1.0 are one id. */
struct tracked *tracked_find(const struct tracked_list *list, const struct json *id);

#endif

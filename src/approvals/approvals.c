/* Requests wait in a queue. A round loads the record, applies all of them, commits, and ends them. */
#include "approvals/approvals.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "ledger/codec.h"
#include "ledger/ledger.h"
#include "ledger/session_store.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TAILQ_HEAD(approval_requests, approval_request);

struct approvals {
    struct store_request store; /* first: its callback casts it back */
    struct session_store *in;
    struct approval_table table;
    struct arena *arena; /* of the table's texts */
    struct approval_requests waiting, ended;
    bool busy, is_unreadable;
    unsigned conflicts;
    struct buf bytes;
    char guard[CODEC_GUARD_BYTES];
};

static void run(struct approvals *a);
static void on_loaded(struct store_request *store);
static void on_committed(struct store_request *store);

/* No session's name has this hash. */
static struct hash128 record_id(void)
{
    return (struct hash128){.high = hash_stable(STR_LIT("approvals of the fleet")).low, .low = 0};
}

int64_t approvals_now_ms(const struct approvals *a)
{
    return a->in->kind->now_ms(a->in);
}

/* ---- the end of requests ---- */

static void end_one(struct approval_request *r)
{
    bool is_owned = r->is_owned, is_inside = r->is_inside;
    r->is_ended = true;
    if (is_owned)
        free(r);
    else if (!is_inside)
        r->done(r->owner);
}

/* Those that were applied, or, if `why`, all: each may begin others. */
static void end_all(struct approvals *a, const char *why)
{
    struct approval_request *r = TAILQ_FIRST(&a->waiting);
    a->busy = false;
    a->conflicts = 0;
    while (r) {
        struct approval_request *next = TAILQ_NEXT(r, next);
        if (why || r->is_applied) {
            r->unavailable = why;
            TAILQ_REMOVE(&a->waiting, r, next);
            TAILQ_INSERT_TAIL(&a->ended, r, next);
        }
        r = next;
    }
    while ((r = TAILQ_FIRST(&a->ended))) {
        TAILQ_REMOVE(&a->ended, r, next);
        end_one(r);
    }
    if (!a->busy && !TAILQ_EMPTY(&a->waiting))
        run(a);
}

/* ---- a round ---- */

static bool apply_waiting(struct approvals *a)
{
    struct approval_request *r;
    bool changed = false;
    TAILQ_FOREACH (r, &a->waiting, next) {
        r->is_applied = true;
        changed |= approval_table_apply(&a->table, r, approvals_now_ms(a), a->arena);
    }
    return changed;
}

/* Damaged bytes, or those of a newer build, are left as they are until they expire. */
static bool take_record(struct approvals *a, struct str core)
{
    bool was_unreadable = a->is_unreadable;
    arena_free(a->arena);
    a->arena = arena_new();
    a->is_unreadable = core.len && !approval_table_decode(core, &a->table, a->arena);
    if (!core.len) {
        a->table.version = 0;
        a->table.count = 0;
    }
    if (a->is_unreadable && !was_unreadable)
        log_event(LOG_WARN, "approvals_unreadable",
                  LOG_TEXT("why", "the record of approvals in the ledger cannot be read; until it expires, "
                                  "nothing can be approved"));
    return !a->is_unreadable;
}

static bool commit(struct approvals *a)
{
    bool is_new = a->table.version == 0;
    uint64_t version = htole64(a->table.version);
    a->bytes.len = 0;
    approval_table_encode(&a->table, &a->bytes);
    a->guard[0] = a->bytes.at[0];
    memcpy(a->guard + 1, &version, sizeof(version));
    uint64_t next = htole64(is_new ? hash_random() | 1 : a->table.version + 1);
    memcpy(a->bytes.at + 1, &next, sizeof(next));
    a->store = (struct store_request){
        .id = record_id(),
        .guard = is_new ? STR_NONE : (struct str){a->guard, sizeof(a->guard)},
        .parts[PART_CORE] = buf_view(&a->bytes),
        .renew_ttl_s = APPROVAL_MS / 1000,
        .ended = on_committed,
    };
    return a->in->kind->commit(a->in, &a->store);
}

/* Goes on as long as the store answers at once. */
static void go_on(struct approvals *a, struct str core)
{
    for (;;) {
        if (!take_record(a, core)) {
            end_all(a, "the record of approvals cannot be read");
            return;
        }
        if (!apply_waiting(a)) {
            end_all(a, NULL);
            return;
        }
        if (!commit(a))
            return;
        if (a->store.result != STORE_CONFLICT || a->conflicts++ >= APPROVALS_CONFLICTS_MAX)
            break;
        core = a->store.stored[PART_CORE];
    }
    end_all(a, a->store.result == STORE_DONE ? NULL : "the ledger cannot be reached");
}

static void on_loaded(struct store_request *store)
{
    struct approvals *a = (struct approvals *)store;
    if (store->result == STORE_DONE)
        go_on(a, store->stored[PART_CORE]);
    else
        end_all(a, "the ledger cannot be reached");
}

static void on_committed(struct store_request *store)
{
    struct approvals *a = (struct approvals *)store;
    if (store->result == STORE_CONFLICT && a->conflicts++ < APPROVALS_CONFLICTS_MAX)
        go_on(a, store->stored[PART_CORE]);
    else
        end_all(a, store->result == STORE_DONE ? NULL : "the ledger cannot be reached");
}

static void run(struct approvals *a)
{
    a->busy = true;
    a->store = (struct store_request){.id = record_id(), .ended = on_loaded};
    if (a->in->kind->load(a->in, &a->store))
        on_loaded(&a->store);
}

/* ---- approvals.h ---- */

struct approvals *approvals_new(struct ledger *ledger)
{
    struct approvals *a = calloc(1, sizeof(*a));
    if (!a)
        abort();
    a->in = ledger_store(ledger);
    a->arena = arena_new();
    TAILQ_INIT(&a->waiting);
    TAILQ_INIT(&a->ended);
    return a;
}

void approvals_free(struct approvals *a)
{
    struct approval_request *r;
    while (a && (r = TAILQ_FIRST(&a->waiting))) {
        TAILQ_REMOVE(&a->waiting, r, next);
        if (r->is_owned)
            free(r);
    }
    if (!a)
        return;
    arena_free(a->arena);
    buf_clear(&a->bytes);
    free(a);
}

bool approvals_do(struct approvals *a, struct approval_request *r)
{
    r->unavailable = NULL;
    r->is_applied = r->is_ended = false;
    r->is_inside = true;
    TAILQ_INSERT_TAIL(&a->waiting, r, next);
    if (!a->busy)
        run(a);
    r->is_inside = false;
    return r->is_ended;
}

void approvals_do_unheard(struct approvals *a, const struct approval_request *request)
{
    struct approval_request *r = malloc(sizeof(*r));
    if (!r)
        abort();
    *r = *request;
    r->is_owned = true;
    r->is_applied = false;
    TAILQ_INSERT_TAIL(&a->waiting, r, next);
    if (!a->busy)
        run(a);
}

static void forget(struct approval_requests *from, const void *owner)
{
    struct approval_request *r = TAILQ_FIRST(from);
    while (r) {
        struct approval_request *next = TAILQ_NEXT(r, next);
        if (!r->is_owned && r->owner == owner)
            TAILQ_REMOVE(from, r, next);
        r = next;
    }
}

void approvals_cancel(struct approvals *a, const void *owner)
{
    forget(&a->waiting, owner);
    forget(&a->ended, owner);
}

/* The boot is the same for all daemons of a host. Without one, every host counts as this. */
struct approval_process approvals_process(uint32_t pid)
{
    static uint64_t host;
    char boot[64];
    if (!host) {
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, boot, sizeof(boot)) : 0;
        if (fd >= 0)
            close(fd);
        host = hash_stable((struct str){boot, got > 0 ? (size_t)got : 0}).low | 1;
    }
    return (struct approval_process){host, pid};
}

void approvals_write_id(uint64_t id, char out[APPROVAL_ID_CHARS + 1])
{
    snprintf(out, APPROVAL_ID_CHARS + 1, "%016llx", (unsigned long long)id);
}

uint64_t approvals_read_id(struct str text)
{
    uint64_t id = 0;
    if (text.len != APPROVAL_ID_CHARS)
        return 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef", *at = text.at[i] ? strchr(digits, text.at[i]) : NULL;
        if (!at)
            return 0;
        id = id << 4 | (uint64_t)(at - digits);
    }
    return id;
}

#include "ledger/fleet.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

static uint32_t now_s(const struct fleet *f)
{
    return (uint32_t)(record_now_ms(&f->record) / 1000);
}

/* Writes this daemon down as the one heard of last. */
static bool apply(void *owner)
{
    struct fleet *f = owner;
    f->self.seen_s = now_s(f);
    for (unsigned i = f->count; i-- > 0;)
        if (f->list[i].id == f->self.id || f->list[i].seen_s + FLEET_GONE_S < f->self.seen_s)
            DROP_AT(f->list, f->count, i);
    if (f->count == FLEET_DAEMONS_MAX)
        DROP_AT(f->list, f->count, 0);
    f->list[f->count++] = f->self;
    f->written = f->self.policies;
    return true;
}

void fleet_code(void *owner, struct record_coder *c)
{
    struct fleet *f = owner;
    RECORD_NUMBER(c, f->count, 2);
    c->bad |= f->count > FLEET_DAEMONS_MAX;
    for (unsigned i = 0; !c->bad && i < f->count; i++) {
        RECORD_NUMBER(c, f->list[i].id, 8);
        RECORD_NUMBER(c, f->list[i].policies, 8);
        RECORD_NUMBER(c, f->list[i].seen_s, 4);
        record_text(c, &f->list[i].name, 1, FLEET_NAME_BYTES);
    }
    if (c->bad)
        f->count = 0;
}

/* The names of those that judge otherwise: "a/12, b/7 and 3 more". Returns how many, *hashes: which. */
static unsigned name_others(const struct fleet *f, struct buf *names, uint64_t *hashes)
{
    unsigned others = 0;
    *hashes = f->self.policies;
    for (unsigned i = 0; i < f->count; i++) {
        if (f->list[i].id == f->self.id || f->list[i].policies == f->self.policies)
            continue;
        *hashes = *hashes * 31 + f->list[i].policies;
        if (others++ < FLEET_NAMED)
            buf_printf(names, "%s" STR_FMT, others > 1 ? ", " : "", STR_ARG(f->list[i].name));
    }
    if (others > FLEET_NAMED)
        buf_printf(names, " and %u more", others - FLEET_NAMED);
    return others;
}

static void compare(struct fleet *f)
{
    struct buf names = buf_in(f->record.arena);
    uint64_t hashes;
    unsigned others = name_others(f, &names, &hashes);
    if (!others) {
        if (f->warning[0])
            log_event(LOG_INFO, "policies_alike", LOG_NUM("daemons", f->count));
        f->warning[0] = '\0';
        f->warned_of = 0;
        return;
    }
    struct str shown = buf_view(&names);
    snprintf(f->warning, sizeof(f->warning),
             "%u of %u daemons on this Redis have other policies than this one (" STR_FMT
             "): they give the same session other verdicts; give all of them the same policies, or each its "
             "own database",
             others, f->count, STR_ARG(shown));
    if (f->warned_of != hashes)
        log_event(LOG_WARN, "policies_differ", LOG_STR("daemons", shown), LOG_TEXT("why", f->warning));
    f->warned_of = hashes;
}

static void on_beat(void *owner)
{
    record_run(&((struct fleet *)owner)->record);
}

/* After an outage as before: the next beat tries again. */
static void on_ended(void *owner, const char *why)
{
    struct fleet *f = owner;
    if (!why)
        compare(f);
    if (f->written != f->self.policies && !why) /* told while the round was under way */
        record_run(&f->record);
    timer_set(&f->beat, f->loop, FLEET_BEAT_MS, on_beat, f);
}

void fleet_init(struct fleet *f, struct loop *loop, struct session_store *store)
{
    static const struct record_kind kind = {.name = "daemons of the fleet",
                                            .ttl_s = 2 * FLEET_GONE_S,
                                            .format = 0x46,
                                            .bytes_max = FLEET_RECORD_BYTES,
                                            .unreadable = "fleet_unreadable",
                                            .why = "which daemons share this Redis cannot be read",
                                            .code = fleet_code,
                                            .apply = apply,
                                            .ended = on_ended};
    char host[FLEET_NAME_BYTES - 16] = "";
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(f->name, sizeof(f->name), "%s/%d", host, (int)getpid());
    f->self = (struct fleet_daemon){.id = hash_random() | 1, .name = str_of(f->name)};
    f->loop = loop;
    record_init(&f->record, &kind, f, store);
}

void fleet_tell(struct fleet *f, uint64_t policies)
{
    if (f->self.policies == policies)
        return;
    f->self.policies = policies;
    record_run(&f->record);
}

void fleet_clear(struct fleet *f)
{
    timer_clear(&f->beat);
    record_clear(&f->record);
}

/* Counting verdicts, and telling the counts. */
#include "gate/metrics.h"

#include "json/write.h"

static const char *const engines[METRICS_ENGINES] = {"redis", "local", "none"};

static void count_engine(struct metrics *metrics, const char *engine)
{
    for (int i = 0; engine && i < METRICS_ENGINES; i++)
        metrics->engines[i] += strcmp(engine, engines[i]) == 0;
}

void metrics_count_verdict(struct metrics *metrics, const struct verdict *verdict)
{
    count_engine(metrics, verdict->engine);
    metrics->verdicts[verdict->kind]++;
    metrics->classes[verdict->class]++;
    metrics->would += verdict->would.len > 0;
    metrics->policy_errors += verdict->class == CLASS_POLICY_ERROR;
    metrics->rewrites += verdict->rewrites && verdict->rewrites->len > 0;
}

void metrics_count_abandoned_chains(struct metrics *metrics, uint32_t count)
{
    if (metrics)
        metrics->chains_ended += count;
}

static void put_count(struct json_out *out, const char *key, uint64_t n)
{
    json_key(out, key);
    json_put_int(out, (int64_t)n);
}

void metrics_write(struct json_out *out, const struct metrics *m)
{
    json_open(out, '{');
    put_count(out, "calls", m->calls);
    put_count(out, "checks", m->checks);
    put_count(out, "reports", m->reports);
    put_count(out, "cancelled", m->cancelled);
    put_count(out, "rewritten", m->rewrites);
    put_count(out, "would", m->would);
    put_count(out, "policy_errors", m->policy_errors);
    put_count(out, "repair_chains", m->chains_ended);
    put_count(out, "fabricated_id_on_retry", m->fabricated_on_retry);
    json_key(out, "verdicts");
    json_open(out, '{');
    for (int i = 0; i <= VERDICT_HALT; i++)
        put_count(out, verdict_name((enum verdict_kind)i), m->verdicts[i]);
    json_close(out, '}');
    json_key(out, "classes");
    json_open(out, '{');
    for (int i = 0; i < CLASS_COUNT; i++)
        put_count(out, error_class_info((enum error_class)i)->name, m->classes[i]);
    json_close(out, '}');
    json_key(out, "ledger");
    json_open(out, '{');
    for (int i = 0; i < METRICS_ENGINES; i++)
        put_count(out, engines[i], m->engines[i]);
    json_close(out, '}');
    json_close(out, '}');
}

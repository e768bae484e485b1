/* Counts verdicts and writes the counters. */
#include "gate/metrics.h"

#include "json/write.h"

static const char *const engines[METRICS_ENGINES] = {"redis", "local", "none"};

void metrics_count_verdict(struct metrics *metrics, const struct verdict *verdict)
{
    for (int i = 0; verdict->engine && i < METRICS_ENGINES; i++)
        metrics->engines[i] += strcmp(verdict->engine, engines[i]) == 0;
    metrics->verdicts[verdict->kind]++;
    metrics->classes[verdict->class]++;
    metrics->would += verdict->would.len > 0;
    metrics->policy_errors += verdict->class == CLASS_POLICY_ERROR;
    metrics->rewrites += verdict->rewrites && verdict->rewrites->len > 0;
}

void metrics_write(struct json_out *out, const struct metrics *m)
{
    json_open(out, '{');
    json_field_int(out, "calls", (int64_t)m->calls);
    json_field_int(out, "checks", (int64_t)m->checks);
    json_field_int(out, "reports", (int64_t)m->reports);
    json_field_int(out, "cancelled", (int64_t)m->cancelled);
    json_field_int(out, "rewritten", (int64_t)m->rewrites);
    json_field_int(out, "would", (int64_t)m->would);
    json_field_int(out, "policy_errors", (int64_t)m->policy_errors);
    json_field_int(out, "repair_chains", (int64_t)m->chains_ended);
    json_field_int(out, "fabricated_id_on_retry", (int64_t)m->fabricated_on_retry);
    json_field_open(out, "verdicts", '{');
    for (int i = 0; i <= VERDICT_HALT; i++)
        json_field_int(out, verdict_name((enum verdict_kind)i), (int64_t)m->verdicts[i]);
    json_close(out, '}');
    json_field_open(out, "classes", '{');
    for (int i = 0; i < CLASS_COUNT; i++)
        json_field_int(out, error_class_info((enum error_class)i)->name, (int64_t)m->classes[i]);
    json_close(out, '}');
    json_field_open(out, "ledger", '{');
    for (int i = 0; i < METRICS_ENGINES; i++)
        json_field_int(out, engines[i], (int64_t)m->engines[i]);
    json_close(out, '}');
    json_close(out, '}');
}

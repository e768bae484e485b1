/*
 * Runs examples and samples. Each is a session of its own in a temporary ledger with a fixed clock, so
 * that no example depends on another.
 */
#include "gate/examples.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "gate/simulator.h"
#include "gate/verdict.h"
#include "json/build.h"
#include "json/path.h"
#include "json/write.h"
#include "policy/content.h"
#include "policy/policy_set.h"
#include "result/redact.h"
#include "schema/sample.h"

#include <stdlib.h>

#define EXAMPLE_PAUSE_MS 1000 /* between a call and the same one, made again */

struct examples {
    struct gate gate;
    struct generation_report *report;
    struct examples_options options;
    size_t policy, example; /* the next one to run */
    uint64_t redacted;      /* fields of the policy's `redact` that a result has had so far */
    bool has_result;        /* an example of the policy has had a result */
    struct examples_count count;
};

/* One example while it runs. */
struct example_run {
    struct arena *arena;
    const struct policy_example *example;
    struct example_outcome *outcome;
    struct why why;
    struct call *call, *again; /* again: the same call once more; NULL: the example does not state it */
    struct peer peer;
};

/* An example sees hidden tools unless it names a user, whose view it then has. */
static void call_example(struct examples *examples, struct example_run *run)
{
    const struct policy_example *e = run->example;
    const struct policy *policy = run->outcome->policy;
    struct call_request request = {.tool = e->called.len ? e->called
                                           : e->tool.len ? e->tool
                                                         : policy->name,
                                   .arguments = e->args,
                                   .session = arena_printf(run->arena, STR_FMT ":%d " STR_FMT,
                                                           STR_ARG(policy->file), e->line, STR_ARG(e->name)),
                                   .goal = e->goal,
                                   .turn = e->turn,
                                   .facts = e->facts,
                                   .context = e->context,
                                   .ignore_prepare = !e->user.len,
                                   .force_enforce = true,
                                   .enforced_overlay = policy_is_overlay(policy) ? policy : NULL};
    if (e->user.len) {
        peer_init_example(&run->peer, e->user);
        request.peer = &run->peer;
    }
    simulator_set_clock(SIMULATOR_TIME_MS);
    simulator_add_seen_ids(&examples->gate, run->arena, &request, e->seen);
    simulator_add_history(&examples->gate, run->arena, &request, e->history, &run->why);
    run->call = simulator_call(&examples->gate, run->arena, &request, e->result);
    if (!e->again.len)
        return;
    simulator_set_clock(SIMULATOR_TIME_MS + EXAMPLE_PAUSE_MS);
    run->again = simulator_call(&examples->gate, run->arena, &request, e->result);
}

/* Each word of `gives` names the verdict, its class or its code. The first that does not, or STR_NONE. */
static struct str wrong_word(struct str gives, const struct verdict *v)
{
    while (gives.len) {
        struct str word = str_split(&gives, ' ');
        if (word.len && !str_is(word, verdict_name(v->kind)) &&
            !str_is(word, error_class_info(v->class)->name) && !str_eq(word, v->code))
            return word;
    }
    return STR_NONE;
}

static void add_mismatch(struct example_outcome *o, const char *field, struct str expected, struct str got)
{
    o->mismatches[o->mismatch_count++] = (struct example_mismatch){field, expected, got, NULL};
}

/* `expected` NULL: the example does not state it. */
static void compare_json(struct example_run *run, const char *field, const struct json *expected,
                         const struct json *got)
{
    static const struct json none = {.type = JSON_NULL};
    struct example_outcome *o = run->outcome;
    got = got ? got : &none;
    if (!expected || json_equal(expected, got))
        return;
    struct json_diff_result *changes = arena_alloc(run->arena, sizeof(*changes));
    json_diff_find(run->arena, expected, got, changes);
    add_mismatch(o, field, json_to_str(run->arena, expected), json_to_str(run->arena, got));
    o->mismatches[o->mismatch_count - 1].changes = changes;
}

/* "repair invalid_arguments" */
static struct str verdict_words(struct arena *arena, const struct verdict *v)
{
    const char *class = error_class_info(v->class)->name;
    bool has_code = v->code.len && !str_is(v->code, class);
    return arena_printf(arena, "%s %s%s" STR_FMT, verdict_name(v->kind), class, has_code ? " " : "",
                        STR_ARG(has_code ? v->code : STR_NONE));
}

/* A word that is no verdict, class or code of the call may misspell one of the first two. */
static void compare_verdict(struct example_run *run, const char *field, struct str gives,
                            const struct call *call)
{
    const struct verdict *v = call_outcome(call)->verdict;
    struct str wrong = wrong_word(gives, v), names[VERDICT_KINDS + CLASS_COUNT];
    size_t count = 0;
    if (!wrong.len)
        return;
    for (int i = 0; i < VERDICT_KINDS; i++)
        names[count++] = str_of(verdict_name((enum verdict_kind)i));
    for (int i = 0; i < CLASS_COUNT; i++)
        names[count++] = str_of(error_class_info((enum error_class)i)->name);
    struct str meant = suggest_closest(wrong, names, count);
    if (meant.len && !str_eq(meant, wrong))
        gives = arena_printf(run->arena, STR_FMT " (there is no '" STR_FMT "': did you mean '" STR_FMT "'?)",
                             STR_ARG(gives), STR_ARG(wrong), STR_ARG(meant));
    add_mismatch(run->outcome, field, gives, verdict_words(run->arena, v));
}

/* `shows` with content blocks is about the whole answer, with these members of it; otherwise about the result
 * as one value. */
static const struct json *shown_for(struct example_run *run)
{
    const struct json *shows = run->example->shows;
    const struct call_outcome *outcome = call_outcome(run->call);
    if (!content_is_block_list(json_get_text(shows, "content")))
        return call_visible_result(run->call);
    struct json answer = json_object(run->arena, NULL, 0);
    if (outcome->content && !verdict_replaces_result(outcome->verdict))
        answer = json_with(run->arena, &answer, STR_LIT("content"), *outcome->content);
    if (outcome->structured && json_get_text(shows, "structuredContent"))
        answer = json_with(run->arena, &answer, STR_LIT("structuredContent"), *outcome->structured);
    return json_keep(run->arena, answer);
}

static void read_outcome(struct example_run *run)
{
    struct example_outcome *o = run->outcome;
    const struct call_outcome *outcome = call_outcome(run->call);
    const struct verdict *v = outcome->verdict;
    const struct tool *tool = call_tool(run->call);
    o->verdict = verdict_words(run->arena, v);
    o->fault = v->class == CLASS_POLICY_ERROR && !o->sample ? v->detail : STR_NONE;
    o->said = outcome->feedback.len ? outcome->feedback : outcome->advice;
    o->status = v->coverage;
    o->stage = v->stage;
    o->schema_unknown = tool && !tool_is_described(tool);
    o->arguments = outcome->arguments;
    o->shown = shown_for(run);
}

/* A model would follow them to the letter: what partial proposes must be a call of this tool. */
static void check_next_args(struct example_run *run)
{
    const struct tool *tool = call_tool(run->call);
    const struct json *next = call_outcome(run->call)->verdict->next_args;
    struct str text = STR_NONE;
    if (!tool || !tool->input_schema || !json_is(next, JSON_OBJECT))
        return;
    uint32_t count = json_child_count(tool->parameters);
    struct str *names = ARENA_ARRAY(run->arena, struct str, count);
    for (uint32_t i = 0; i < count; i++)
        names[i] = tool->parameters->members[i].key;
    for (uint32_t i = 0; i < next->len && !text.len;
         i++) { /* a name that the tool does not declare, misspelled */
        struct str name = next->members[i].key;
        struct str meant = suggest_closest(name, names, count);
        if (meant.len && !str_eq(meant, name))
            text = arena_printf(run->arena, "'" STR_FMT "' (did you mean '" STR_FMT "'?)", STR_ARG(name),
                                STR_ARG(meant));
    }
    if (!text.len && schema_validate(tool->input_schema, next) == SCHEMA_INVALID)
        text = json_to_str(run->arena, next);
    if (text.len)
        add_mismatch(run->outcome, "next_args", STR_LIT("arguments that the tool takes"), text);
}

static void compare(struct example_run *run)
{
    struct example_outcome *o = run->outcome;
    const struct policy_example *e = run->example;
    const struct tool *tool = call_tool(run->call);
    if (run->why.text[0])
        add_mismatch(o, "history", STR_LIT("calls with known classes"),
                     arena_dup(run->arena, str_of(run->why.text)));
    compare_verdict(run, "gives", e->gives, run->call);
    compare_json(run, "becomes", e->becomes, o->arguments);
    compare_json(run, "shows", e->shows, o->shown);
    if (e->says.len && !str_contains_nocase(o->said, e->says))
        add_mismatch(o, "says", e->says, STR_NONE);
    if (e->status.len && !str_eq(e->status, o->status))
        add_mismatch(o, "status", e->status, o->status);
    check_next_args(run);
    if (run->again)
        compare_verdict(run, "again", e->again, run->again);
    o->passed = !o->mismatch_count;
    o->open = !o->passed && tool && (tool->schema_pending || tool->held);
}

/* ---- an outcome as one line of a log (lua/cli/test.lua writes it for a terminal, and as JSON) ---- */

#define VALUE_MAX_BYTES     160u /* of an expected or actual value */
#define LOG_SAID_MAX_BYTES  200u /* of what the model reads, in the log line */
#define LOG_FAULT_MAX_BYTES 400u /* of a policy error, in the log line; its end names the fix */

static struct str or_nothing(struct str s)
{
    return s.len ? s : STR_LIT("(nothing)");
}

/* "policies/x.lua:12: example 'name': gives: expected pass, got …; becomes: - limit = 10, + limit = 50; the
 * model reads \"…\"" */
static void write_line(struct buf *out, const struct example_outcome *o)
{
    const char *quote = o->said.len ? "\"" : "";
    buf_printf(out, STR_FMT ":%d: %s '" STR_FMT "': ", STR_ARG(o->policy->file), o->example->line,
               o->sample ? "sample" : "example", STR_ARG(o->example->name));
    for (size_t i = 0; i < o->mismatch_count; i++) {
        const struct example_mismatch *m = &o->mismatches[i];
        buf_printf(out, "%s%s: ", i ? "; " : "", m->field);
        for (size_t k = 0; m->changes && k < m->changes->count; k++) {
            buf_printf(out, "%s%c ", k ? ", " : "", m->changes->lines[k].sign);
            printable_write_cut(out, m->changes->lines[k].text, VALUE_MAX_BYTES);
        }
        if (m->changes)
            continue;
        buf_text(out, "expected ");
        printable_write_cut(out, m->expected, VALUE_MAX_BYTES);
        if (strcmp(m->field, "says") == 0) /* the whole feedback is written below */
            continue;
        buf_text(out, ", got ");
        printable_write_cut(out, or_nothing(m->got), VALUE_MAX_BYTES);
    }
    if (o->fault.len) {
        buf_text(out, ", because ");
        printable_write_cut(out, o->fault, LOG_FAULT_MAX_BYTES);
    }
    buf_printf(out, "; the model reads %s", quote);
    printable_write_cut(out, or_nothing(o->said), LOG_SAID_MAX_BYTES);
    buf_text(out, quote);
    if (o->schema_unknown)
        buf_text(out, o->open
                          ? "; its upstream has not listed it, so the result is open: give its definition "
                            "with --tools FILE, as `toolgate tools --format mcp --socket PATH` prints it"
                          : "; its schema is unknown, so all arguments are valid: give its definition with "
                            "--tools, or a 'schema' in the policy");
}

/*
 * ---- samples: calls made from the schema of a tool that runs in Lua, without expectations. A policy may
 * refuse, ask or fail; it must not break, and the result of `run` must fit the output schema. ----
 */

/* Writes the sample as an example, whose session has "seen" the ids in it so that the call gets as far as
 * `run`; false: the schema yields no arguments. */
static bool make_sample(struct arena *arena, const struct tool *tool, enum sample_extent extent,
                        struct policy_example *out)
{
    const struct policy *policy = tool->policy;
    const struct json *values[LEDGER_IDS_MAX];
    struct json *args = ARENA_NEW(arena, struct json);
    if (!tool->input_schema || !schema_sample(arena, tool->input_schema, extent, args))
        return false;
    struct json *ids = ARENA_ARRAY(arena, struct json, policy->id_count * LEDGER_IDS_MAX + 1);
    size_t count = 0;
    for (size_t i = 0; i < policy->id_count; i++) {
        size_t found = json_path_scalars(args, policy->ids[i].path, values, LEDGER_IDS_MAX);
        for (size_t k = 0; k < found; k++)
            ids[count++] = *values[k];
    }
    *out = (struct policy_example){.name = extent == SAMPLE_ALL ? STR_LIT("every field of its schema")
                                                                : STR_LIT("required fields only"),
                                   .line = policy->hook_lines[HOOK_RUN],
                                   .args = args,
                                   .seen = json_keep(arena, json_array(ids, count))};
    return true;
}

/* How often the policy has broken so far. */
static uint64_t count_faults(const struct policy *policy)
{
    return policy->failures ? policy->failures->count : 0;
}

static void tell(const struct examples *examples, struct arena *arena, const struct example_outcome *outcome)
{
    struct buf line = buf_in(arena);
    if (!outcome->passed && examples->report) {
        write_line(&line, outcome);
        if (outcome->open)
            generation_report_warning(examples->report, STR_FMT, STR_ARG(buf_view(&line)));
        else
            generation_report_error(examples->report, STR_FMT, STR_ARG(buf_view(&line)));
    }
    if (examples->options.seen)
        examples->options.seen(examples->options.owner, outcome);
}

static void run_example(struct examples *examples, const struct policy *policy,
                        const struct policy_example *example, bool sample)
{
    struct example_outcome outcome = {.policy = policy, .example = example, .sample = sample};
    struct example_run run = {.arena = arena_new(), .example = example, .outcome = &outcome};
    struct examples_count *count = &examples->count;
    uint64_t faults = count_faults(policy);
    enum log_level level = log_quiet(); /* a refused example is no event of the daemon */
    int64_t began = clock_mono_us();
    call_example(examples, &run);
    outcome.us = clock_mono_us() - began;
    read_outcome(&run);
    if (sample) {
        const struct verdict *v = call_outcome(run.call)->verdict;
        if (count_faults(policy) > faults)
            add_mismatch(&outcome, "sample", STR_LIT("a policy that does not break"),
                         arena_dup(run.arena, str_of(policy->failures->last.text)));
        else if (v->class == CLASS_SCHEMA_MISMATCH)
            add_mismatch(&outcome, "sample", STR_LIT("a result that fits the output schema"),
                         v->detail.len ? v->detail : outcome.verdict);
        outcome.passed = !outcome.mismatch_count;
        *(outcome.passed ? &count->samples : &count->samples_failed) += 1;
    } else {
        compare(&run);
        examples->redacted |= call_outcome(run.call)->redacted;
        examples->has_result |= call_outcome(run.call)->result || call_outcome(run.call)->redacted;
        *(outcome.passed ? &count->passed : outcome.open ? &count->open : &count->failed) += 1;
    }
    tell(examples, run.arena, &outcome);
    call_free(run.call);
    if (run.again)
        call_free(run.again);
    arena_free(run.arena);
    log_level_set(level);
}

/* A redaction that no result needs is misspelled, or no example shows that it works. Only if all
 * examples of the policy ran, and one had a result. */
static void check_redactions(struct examples *examples, const struct policy *policy)
{
    for (size_t i = 0; examples->has_result && i < policy->redact_count && i < REDACT_FIELDS_MAX; i++) {
        if (examples->redacted & ((uint64_t)1 << i))
            continue;
        struct arena *arena = arena_new();
        struct policy_example about = {.name = STR_LIT("redact"), .line = 1};
        struct example_outcome outcome = {.policy = policy, .example = &about};
        add_mismatch(
            &outcome, "redact",
            arena_printf(arena, "a result with '" STR_FMT "' in an example", STR_ARG(policy->redact[i])),
            STR_LIT("none: correct the path, or give an example a result that has it"));
        examples->count.failed++;
        tell(examples, arena, &outcome);
        arena_free(arena);
    }
    examples->redacted = 0;
    examples->has_result = false;
}

/* True: it is selected by `only`, a glob or a part of "tool: name", and has run. */
static bool run_if_selected(struct examples *examples, const struct policy *policy,
                            const struct policy_example *example, bool sample)
{
    const char *only = examples->options.only;
    bool selected = true;
    if (only) {
        struct buf title = {0};
        buf_printf(&title, STR_FMT ": " STR_FMT, STR_ARG(policy->name), STR_ARG(example->name));
        selected =
            str_glob(str_of(only), buf_view(&title)) || str_contains_nocase(buf_view(&title), str_of(only));
        buf_clear(&title);
    }
    if (selected)
        run_example(examples, policy, example, sample);
    return selected;
}

struct examples *examples_begin(struct generation *generation, struct generation_report *report,
                                const struct examples_options *options)
{
    struct examples *examples = alloc_zeroed(sizeof(*examples));
    examples->gate = (struct gate){.generation = generation, .ledger = simulator_ledger(), .admissions = 1};
    examples->report = report;
    examples->options = *options;
    return examples;
}

bool examples_step(struct examples *examples)
{
    const struct policy_set *policies = examples->gate.generation->policies;
    if (examples->policy == policy_set_count(policies))
        return false;
    const struct policy *policy = policy_set_at(policies, examples->policy);
    if (examples->options.samples) {
        const struct tool *tool = generation_find(examples->gate.generation, policy->name);
        struct arena *arena = arena_new();
        struct policy_example least, most;
        bool runs = tool && tool->policy == policy && tool->runner == RUNNER_LUA;
        if (runs && make_sample(arena, tool, SAMPLE_REQUIRED, &least)) {
            run_if_selected(examples, policy, &least, true);
            if (make_sample(arena, tool, SAMPLE_ALL, &most) && !json_equal(least.args, most.args))
                run_if_selected(examples, policy, &most, true);
        } else if (runs) {
            examples->count.unsampled++;
        }
        arena_free(arena);
    }
    if (examples->options.samples || examples->example == policy->example_count) {
        if (!examples->options.samples && !examples->options.only)
            check_redactions(examples, policy);
        examples->policy++;
        examples->example = 0;
    } else if (run_if_selected(examples, policy, &policy->examples[examples->example++], false) &&
               examples->report) {
        examples->report->example_count++;
    }
    return true;
}

size_t examples_end(struct examples *examples)
{
    size_t failed = examples->count.failed;
    ledger_free(examples->gate.ledger);
    free(examples);
    return failed;
}

struct examples_count examples_run(struct generation *generation, struct generation_report *report,
                                   const struct examples_options *options)
{
    struct examples *examples = examples_begin(generation, report, options);
    while (examples_step(examples))
        continue;
    struct examples_count count = examples->count;
    examples_end(examples);
    return count;
}

/* Records of the decision log for people. */
#include "review/decision_print.h"

#include "base/printable.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

#define TEXT_MAX_BYTES   300u /* of a detail, a hint or the arguments */
#define BESIDE_MAX_BYTES 80u  /* of the arguments, in the line of a call that passed */
#define FULL_MAX_BYTES   65536u
#define NAME_MAX_BYTES   64u /* of a tool, a code, a session */
#define VERDICT_WIDTH    7
#define MESSAGES_SHOWN   4u
#define INDENT           "                     " /* under what follows the time */

void decision_print_text(struct str text, size_t max)
{
    struct buf out = {0};
    printable_write_cut(&out, text, max);
    fwrite(out.len ? out.at : "", 1, out.len, stdout);
    buf_clear(&out);
}

static void print_json(const struct json *value, size_t max)
{
    struct buf text = {0};
    json_write(&text, value);
    decision_print_text(buf_view(&text), max);
    buf_clear(&text);
}

static void print_dim(const char *text)
{
    printf("%s%s%s", term_colour(TERM_DIM), text, term_colour(TERM_PLAIN));
}

/* ---- the first line ---- */

static void print_when(const struct decision *d)
{
    if (d->ts_us < 0)
        printf("%-*s", TERM_TIME_BYTES, "(no time)");
    else
        term_print_time(d->ts_us / 1000);
}

static void print_verdict(const struct decision_verdict *v)
{
    printf("%s", term_verdict_colour(v->verdict));
    decision_print_text(v->verdict, NAME_MAX_BYTES);
    printf("%s", term_colour(TERM_PLAIN));
    if (v->verdict.len < VERDICT_WIDTH)
        printf("%*s", (int)(VERDICT_WIDTH - v->verdict.len), "");
}

/* The class and the code, unless they say no more than the verdict. */
static void print_reason(const struct decision_verdict *v)
{
    if (v->class.len && !str_is(v->class, "ok")) {
        printf("  ");
        decision_print_text(v->class, NAME_MAX_BYTES);
    }
    if (v->code.len && !str_eq(v->code, v->class)) {
        printf(" ");
        decision_print_text(v->code, NAME_MAX_BYTES);
    }
}

static void print_origin(const struct decision *d)
{
    if (!d->session.len)
        return;
    printf("  %s", term_colour(TERM_DIM));
    decision_print_text(d->session, NAME_MAX_BYTES);
    if (d->turn > 0)
        printf(" turn %lld", (long long)d->turn);
    printf("%s", term_colour(TERM_PLAIN));
}

static void print_head(const struct decision *d)
{
    print_when(d);
    printf("  ");
    print_verdict(&d->given);
    printf(" %s", term_colour(TERM_BOLD));
    decision_print_text(d->tool, NAME_MAX_BYTES);
    printf("%s", term_colour(TERM_PLAIN));
    print_reason(&d->given);
    if (d->would.verdict.len) {
        printf("  would: ");
        print_verdict(&d->would);
        print_reason(&d->would);
    }
    if (decision_is_report(d))
        print_dim("  (reported)");
    print_origin(d);
}

/* ---- the lines below ---- */

static void print_line(const char *title, struct str text, size_t max)
{
    if (!text.len)
        return;
    printf(INDENT "%s", title);
    decision_print_text(text, max);
    putchar('\n');
}

static void print_messages(const struct json *messages, bool full)
{
    size_t max = full ? FULL_MAX_BYTES : TEXT_MAX_BYTES;
    uint32_t shown = full || messages->len <= MESSAGES_SHOWN ? messages->len : MESSAGES_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        const struct json *message = &messages->items[i];
        struct str path = json_str(json_get_text(message, "path"));
        printf(INDENT);
        decision_print_text(path.len ? path : STR_LIT("args"), NAME_MAX_BYTES);
        putchar(' ');
        decision_print_text(json_str(json_get_text(message, "message")), max);
        putchar('\n');
    }
    if (shown < messages->len)
        printf(INDENT "… and %u more\n", messages->len - shown);
}

static void print_arguments(const struct decision *d, bool full)
{
    if (d->arguments) {
        printf(INDENT);
        print_json(d->arguments, full ? FULL_MAX_BYTES : TEXT_MAX_BYTES);
        putchar('\n');
    } else if (d->arguments_hash.len) {
        printf(INDENT "%sarguments recorded as a hash: ", term_colour(TERM_DIM));
        decision_print_text(d->arguments_hash, NAME_MAX_BYTES);
        printf("%s\n", term_colour(TERM_PLAIN));
    }
}

/* A call that passed is one line. */
static void print_beside(const struct decision *d)
{
    if (d->arguments) {
        printf("  ");
        print_json(d->arguments, BESIDE_MAX_BYTES);
    }
    putchar('\n');
}

static void print_what_model_did(const struct decision_outcome *o)
{
    const char *calls = o->tries == 1 ? "call" : "calls";
    switch (o->kind) {
    case OUTCOME_UNKNOWN:
        break;
    case OUTCOME_REPAIRED:
        printf("the model repaired it in %u %s", o->tries, calls);
        break;
    case OUTCOME_PASSED:
        printf("the same call passed later");
        break;
    case OUTCOME_REPEATED:
        printf("the model made the same call %u more %s", o->repeats, o->repeats == 1 ? "time" : "times");
        if (o->tries > o->repeats)
            printf(", and %u with other arguments", o->tries - o->repeats);
        printf("; none passed");
        break;
    case OUTCOME_GAVE_UP:
        if (o->tries) {
            printf("the model gave up after %u more %s", o->tries, calls);
        } else if (o->next_tool.len) {
            printf("the model gave up and went on with ");
            decision_print_text(o->next_tool, NAME_MAX_BYTES);
        } else {
            printf("the model gave up: no further call");
        }
    }
}

/* Of a call that was not enforced, the model read no refusal. */
static void print_what_became(const struct decision_outcome *o)
{
    printf("not enforced; ");
    if (o->ran.len) {
        printf("its result: ");
        decision_print_text(o->ran, NAME_MAX_BYTES);
    } else {
        printf("its result is not known");
    }
    if (o->kind == OUTCOME_REPAIRED)
        printf("; a later call would pass");
}

void decision_print_outcome(const struct decision *d, const struct decision_outcome *o, bool full)
{
    if (d->would.verdict.len)
        print_what_became(o);
    else
        print_what_model_did(o);
    if (o->kind == OUTCOME_REPAIRED && o->arguments.len) {
        printf(": ");
        decision_print_text(o->arguments, full ? FULL_MAX_BYTES : TEXT_MAX_BYTES);
    }
    putchar('\n');
}

void decision_print(const struct decision *d, const struct decision_outcome *outcome, bool full)
{
    size_t max = full ? FULL_MAX_BYTES : TEXT_MAX_BYTES;
    const struct decision_verdict *problem = decision_problem(d);
    print_head(d);
    if (str_is(problem->verdict, "pass") && !full) {
        print_beside(d);
        return;
    }
    putchar('\n');
    if (!str_is(problem->verdict, "pass")) {
        if (problem->messages && problem->messages->len)
            print_messages(problem->messages, full);
        else
            print_line("", problem->detail, max);
        print_line("next: ", problem->hint, max);
    }
    print_arguments(d, full);
    if (outcome && outcome->kind) {
        printf(INDENT "→ ");
        decision_print_outcome(d, outcome, full);
    }
}

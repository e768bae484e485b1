/* Which rules and lines of policies ran: what examples leave untested. Counting lines makes policies slow,
 * so only `toolgate test` and lint do it. */
#ifndef TOOLGATE_POLICY_COVERAGE_H
#define TOOLGATE_POLICY_COVERAGE_H

#include "policy/policy_hooks.h"

/* Lines outside of functions run at load. */
enum coverage_line { LINE_IN_FUNCTION = 1, LINE_RAN = 2, LINE_BEGINS_FUNCTION = 4 };

struct coverage_rule {
    struct str words;
    bool ran;
};

struct coverage_file {
    struct str file, tool; /* tool empty: the gateway */
    size_t examples;
    unsigned char *lines; /* bits of enum coverage_line, by number from 0 */
    size_t line_count;
    struct coverage_rule *rules;
    size_t rule_count;
    bool hooks_missed[HOOK_COUNT]; /* functions of this file that did not run */
    const struct policy *policy;   /* until coverage_end; NULL: a module, or the gateway */
};

struct coverage;
struct coverage *coverage_new(void);
void coverage_free(struct coverage *coverage); /* NULL is fine */

/* Notes the lines of these policies until coverage_end; files that can no longer be read are left out. */
void coverage_begin(struct coverage *coverage, struct policy_set *policies);

/* Copies what is known of the rules; the policies may be freed afterwards. */
void coverage_end(struct coverage *coverage, struct policy_set *policies);

/* Everything noted so far, of all sets. */
const struct coverage_file *coverage_files(const struct coverage *coverage, size_t *count);

#endif

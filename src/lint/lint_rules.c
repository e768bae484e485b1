/* Rules: those that cannot be meant so, and those that no example reaches. */
#include "lint/lint_internal.h"

static void strange(void *owner, int line, struct str sentence)
{
    lint_report(owner, line, STR_FMT, STR_ARG(sentence));
}

void lint_rule_conflicts(struct looking *look)
{
    if (look->policy)
        introspection_rules(&look->survey, look->tool->input, strange, look);
}

void lint_untried_rules(struct looking *look)
{
    for (size_t i = 0; look->of && look->of->examples && i < look->of->rule_count; i++)
        if (!look->of->rules[i].hits)
            lint_report(look, introspection_rule_line(&look->survey, i),
                        "no example meets the rule '" STR_FMT
                        "': add one whose call it changes, asks to mend or refuses",
                        STR_ARG(str_cut(look->of->rules[i].words, 100)));
}

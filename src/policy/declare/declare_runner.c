/* Who runs a tool: the one place that knows what goes together. */
#include "policy/declare/declare_internal.h"

static const char *first_runner(const struct policy *p)
{
    return p->hooks[HOOK_RUN] ? "run" : p->exec ? "exec" : p->http ? "http" : NULL;
}

/* "calendar/" or "/getEvents" names half of it. */
static void check_name(struct declaration *d, struct str name)
{
    const char *slash = memchr(name.at, '/', name.len);
    if (slash && (slash == name.at || slash + 1 == name.at + name.len))
        fields_complain(d, NULL, "upstream",
                        "'upstream': expected a server's name, or \"server/tool\" where the tool is called "
                        "otherwise there, "
                        "got \"" STR_FMT "\"",
                        STR_ARG(name));
    if (slash && d->policy->http)
        fields_complain(
            d, NULL, "upstream",
            "'upstream': with http it is the name alone of the upstream whose address is used, got \"" STR_FMT
            "\": what is asked for there is http's url",
            STR_ARG(name));
}

void declare_check_runner(struct declaration *d)
{
    const struct policy *p = d->policy;
    const char *runner = first_runner(p);
    int ways = p->hooks[HOOK_RUN] + (p->exec != NULL) + (p->http != NULL);
    if (ways > 1)
        fields_complain(
            d, NULL, runner,
            "'%s': a tool is run in one way: keep one of run, exec and http, and take the others out",
            runner);
    if (p->upstream.len && runner && !p->http)
        fields_complain(
            d, NULL, "upstream",
            "'upstream': the server it names would run the tool, and so would %s: take one of them out",
            runner);
    if (p->upstream.len)
        check_name(d, p->upstream);
}

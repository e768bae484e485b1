/*
 * What a call is known by: the name of its method, and the hashes that the ledger compares calls and results
 * by. The decision log wants them, too, mostly of the same values: of a large one each is a tenth of the
 * call's time.
 */
#include "gate/call_state.h"

#include "json/canonical.h"

struct str call_method(enum call_mode mode)
{
    static const struct str names[] = {[CALL_RUN] = STR("tools/call"),
                                       [CALL_CHECK] = STR("toolgate/check"),
                                       [CALL_REPORT] = STR("toolgate/report")};
    return names[mode];
}

struct hash128 call_fingerprint(const struct call *c)
{
    const struct json *args = c->args.now ? c->args.now : c->request.arguments;
    return json_fingerprint(c->arena, args, c->tool ? c->tool->volatiles : NULL,
                            c->tool ? c->tool->volatile_count : 0);
}

void call_set_fingerprint(struct call *c)
{
    c->fingerprint = call_fingerprint(c);
    c->fingerprinted = c->args.now ? c->args.now : c->request.arguments;
}

struct hash128 call_arguments_hash(struct call *c)
{
    const struct json *given = c->request.arguments;
    bool same = given && given == c->fingerprinted && !(c->tool && c->tool->volatile_count);
    return same ? c->fingerprint : json_fingerprint(c->arena, given, NULL, 0);
}

struct hash128 call_result_hash(struct call *c, const struct json *value)
{
    if (c->hashed != value) {
        c->result_hash = json_fingerprint(c->arena, value, NULL, 0);
        c->hashed = value;
    }
    return c->result_hash;
}

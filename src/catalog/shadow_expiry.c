/* A date counts wherever the mode itself is declared: in each policy, and in the defaults. */
#include "catalog/shadow_expiry.h"

#include "base/arena.h"
#include "base/date.h"
#include "catalog/generation.h"

static bool has_come(struct str date, int64_t now_ms)
{
    int64_t seconds;
    return date_read(date, &seconds) && seconds * 1000 <= now_ms;
}

static struct shadow_expiry expiry(struct arena *arena, const struct policy *policy, struct str file,
                                   struct str date)
{
    struct str sentence = arena_printf(arena,
                                       "%smode = \"shadow\" was to end on " STR_FMT
                                       ", and nothing is enforced yet: set mode = \"enforce\", "
                                       "or a later shadow_until",
                                       policy ? "" : "defaults: ", STR_ARG(date));
    return (struct shadow_expiry){policy, file, sentence};
}

size_t shadow_expired(const struct generation *generation, int64_t now_ms, struct arena *arena,
                      struct shadow_expiry **out)
{
    const struct config *config = &generation->config;
    size_t policies = policy_set_count(generation->policies), count = 0;
    struct shadow_expiry *list = ARENA_ARRAY(arena, struct shadow_expiry, policies + 1);
    if (has_come(config->shadow_until, now_ms))
        list[count++] = expiry(arena, NULL, str_of(config->file), config->shadow_until);
    for (size_t i = 0; i < policies; i++) {
        const struct policy *policy = policy_set_at(generation->policies, i);
        if (has_come(policy->shadow_until, now_ms))
            list[count++] = expiry(arena, policy, policy->file, policy->shadow_until);
    }
    *out = list;
    return count;
}

#include "ledger/redis_scripts.h"

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

void redis_scripts_name(struct redis_scripts *scripts, const char *prefix, struct str text,
                        const char *const *names)
{
    struct hash128 hash = hash_stable(text);
    for (size_t i = 0; i < scripts->count; i++) {
        char name[REDIS_SCRIPT_NAME_BYTES + 1];
        snprintf(name, sizeof(name), "%.3s_%016llx%016llx_%.3s", prefix, (unsigned long long)hash.high,
                 (unsigned long long)hash.low, names[i]);
        memcpy(scripts->functions[i], name, REDIS_SCRIPT_NAME_BYTES);
    }
}

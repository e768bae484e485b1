/* The hash is stable: the same server gives the same names after each restart, on every host. */
#include "catalog/plain_name.h"

#include "base/arena.h"
#include "base/hash.h"

#define HASH_SUFFIX_BYTES 9u /* "_" and eight hex digits */

bool plain_name_fits(struct str name)
{
    return str_is_name(name) && name.len <= PLAIN_NAME_MAX_BYTES;
}

struct str plain_name_with_hash(struct arena *arena, struct str name, struct str hashed, size_t max)
{
    struct str head = str_cut(name, max - HASH_SUFFIX_BYTES);
    return arena_printf(arena, STR_FMT "_%08x", STR_ARG(head), (unsigned)hash_stable(hashed).low);
}

struct str name_replaced(struct arena *arena, struct str name, bool (*fits)(struct str name))
{
    char *copy = arena_copy(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if (!fits((struct str){copy + i, 1}))
            copy[i] = '_';
    return (struct str){copy, name.len};
}

struct str plain_name(struct arena *arena, struct str name)
{
    if (plain_name_fits(name))
        return name;
    struct str plain = name_replaced(arena, name, str_is_name);
    return plain.len <= PLAIN_NAME_MAX_BYTES ? plain
                                             : plain_name_with_hash(arena, plain, name, PLAIN_NAME_MAX_BYTES);
}

struct str plain_name_apart(struct arena *arena, struct str name)
{
    return plain_name_with_hash(arena, name_replaced(arena, name, str_is_name), name, PLAIN_NAME_MAX_BYTES);
}

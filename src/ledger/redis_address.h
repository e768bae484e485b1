/*
 * Where a Redis is, as an operator writes it: redis_address.c has the forms. Users and passwords may be
 * percent-encoded. No error and no shown form contains a password.
 */
#ifndef TOOLGATE_LEDGER_REDIS_ADDRESS_H
#define TOOLGATE_LEDGER_REDIS_ADDRESS_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct arena;

#define REDIS_ADDRESS_HOSTS_MAX      16u /* of one address */
#define REDIS_ADDRESS_HOST_MAX_BYTES 255u

enum redis_address_kind {
    REDIS_ADDRESS_UNIX,
    REDIS_ADDRESS_TCP,
    REDIS_ADDRESS_CLUSTER,
    REDIS_ADDRESS_SENTINEL
};

struct redis_address_host {
    struct str name; /* NUL-terminated; an IPv6 address without its brackets */
    uint16_t port;
};

struct redis_address {
    enum redis_address_kind kind;
    struct str path;           /* unix: NUL-terminated */
    struct str user, password; /* empty: none */
    struct str sentinel_user, sentinel_password;
    struct str master; /* sentinel: the name it watches it by, NUL-terminated */
    struct redis_address_host hosts[REDIS_ADDRESS_HOSTS_MAX];
    size_t host_count;
    uint32_t db;
};

/* Texts live in the arena. ERR_CONFIG, with what is wrong with which part. */
enum err redis_address_parse(struct arena *arena, struct str text, struct redis_address *out,
                             struct why *why);

/* Digits only, at most `max`. */
bool redis_number(struct str text, int64_t max, int64_t *out);

/* For people: without user and password. */
struct str redis_address_shown(struct arena *arena, const struct redis_address *address);

#endif

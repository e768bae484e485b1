/* Each part is cut off the text's front or back; what remains is the next one's. */
#include "ledger/redis_address.h"

#include "base/arena.h"
#include "base/buf.h"
#include "schema/format.h"

#include <sys/un.h>

#define PORT_REDIS    6379u
#define PORT_SENTINEL 26379u
#define DB_MAX        65535u

static const char forms[] =
    "unix:/path[?db=N] or unix://[user:password@]/path[?db=N], redis://[user:password@]host[:port][/db], "
    "cluster://[user:password@]host[:port],… or "
    "sentinel://[user:password@]host[:port],…/master[/db][?sentinels=user:password]";

static enum err wrong(struct why *why, const char *part)
{
    return err_set(why, ERR_CONFIG, "expected %s; %s", forms, part);
}

/* What stands before the first `c`, taken off `rest`. False, and nothing changed: there is no `c`. */
static bool cut_before(struct str *rest, char c, struct str *before)
{
    if (!str_has(*rest, c))
        return false;
    *before = str_split(rest, c);
    return true;
}

/* The same for the last `c`; what stands behind it is taken off. */
static bool cut_behind(struct str *rest, char c, struct str *behind)
{
    const char *at = rest->len ? memrchr(rest->at, c, rest->len) : NULL;
    if (!at)
        return false;
    *behind = str_from(*rest, (size_t)(at - rest->at) + 1);
    rest->len = (size_t)(at - rest->at);
    return true;
}

bool redis_number(struct str text, int64_t max, int64_t *out)
{
    *out = 0;
    if (!text.len || text.len > 15)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i]))
            return false;
        *out = *out * 10 + (text.at[i] - '0');
    }
    return *out <= max;
}

static struct str decoded(struct arena *arena, struct str text)
{
    return arena_dup(arena, uri_decode(arena, text));
}

/* user:password@, with either left out. A password may hold an @, a host may not. */
static void read_credentials(struct arena *arena, struct str *rest, struct redis_address *a)
{
    struct str hosts, user = STR_NONE;
    if (!cut_behind(rest, '@', &hosts))
        return;
    if (cut_before(rest, ':', &user)) {
        a->user = decoded(arena, user);
        a->password = decoded(arena, *rest);
    } else {
        a->user = decoded(arena, *rest);
    }
    *rest = hosts;
}

static enum err read_host(struct arena *arena, struct str text, int64_t port, struct redis_address *a,
                          struct why *why)
{
    struct str name = text, digits = STR_NONE;
    if (name.len && name.at[0] == '[') {
        name = str_from(text, 1);
        digits = name;
        if (!cut_before(&digits, ']', &name))
            return wrong(why, "an IPv6 address has no closing bracket");
        if (digits.len && digits.at[0] != ':')
            return wrong(why, "behind an IPv6 address's bracket stands no :port");
        digits = str_from(digits, 1);
    } else {
        cut_behind(&name, ':', &digits);
        if (str_has(name, ':'))
            return wrong(why, "an IPv6 address stands in brackets");
    }
    if (digits.at && !redis_number(digits, UINT16_MAX, &port))
        return wrong(why, "a port is no number from 1 to 65535");
    if (str_has(name, '?')) /* perhaps ?password=…: it must not become a shown name */
        return wrong(why, "behind the address stands a ? that is not understood");
    if (!name.len || name.len > REDIS_ADDRESS_HOST_MAX_BYTES || !port)
        return wrong(why, "a host or its port is missing or too long");
    if (a->host_count == REDIS_ADDRESS_HOSTS_MAX)
        return wrong(why, "more than 16 hosts are named");
    a->hosts[a->host_count++] = (struct redis_address_host){arena_dup(arena, name), (uint16_t)port};
    return OK;
}

/* As many as the address names, separated by commas. */
static enum err read_hosts(struct arena *arena, struct str list, int64_t port, struct redis_address *a,
                           struct why *why)
{
    struct str one;
    enum err err = OK;
    while (!err && cut_before(&list, ',', &one))
        err = read_host(arena, one, port, a, why);
    return err ? err : read_host(arena, list, port, a, why);
}

static enum err read_db(struct str digits, struct redis_address *a, struct why *why)
{
    int64_t db = 0;
    if (digits.len && !redis_number(digits, DB_MAX, &db))
        return wrong(why, "the database is no number");
    a->db = (uint32_t)db;
    return OK;
}

static enum err read_unix(struct arena *arena, struct str rest, struct redis_address *a, struct why *why)
{
    struct str path = rest, query = STR_NONE;
    /* //user:password@/path, as other clients write it: the credentials end at the last "@/", since a
     * password may hold one. ///path has none. */
    bool may = str_starts(rest, "//") && !str_starts(rest, "///");
    for (size_t at = may ? rest.len - 1 : 0; at > 2; at--)
        if (rest.at[at] == '/' && rest.at[at - 1] == '@') {
            struct str credentials = {rest.at + 2, at - 2};
            read_credentials(arena, &credentials, a);
            path = str_from(rest, at);
            break;
        }
    cut_behind(&path, '?', &query);
    if (query.at && !str_starts(query, "db="))
        return wrong(why, "behind the ? stands no db=N");
    const char *mark = path.len ? memchr(path.at, '?', path.len) : NULL;
    if (mark && memchr(mark, '=', (size_t)(path.at + path.len - mark))) /* perhaps ?password=… */
        return wrong(why, "the socket's path holds ?NAME=");
    if (!path.len || path.at[0] != '/' || path.len >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return wrong(why, "the socket's path is not absolute, or over 107 bytes");
    a->path = arena_dup(arena, path);
    return read_db(str_from(query, 3), a, why);
}

/* One server, or several nodes of a cluster. */
static enum err read_tcp(struct arena *arena, struct str rest, struct redis_address *a, struct why *why)
{
    bool is_cluster = a->kind == REDIS_ADDRESS_CLUSTER;
    struct str hosts = rest, db = STR_NONE;
    read_credentials(arena, &hosts, a);
    cut_behind(&hosts, '/', &db);
    if (!is_cluster && str_has(hosts, ','))
        return wrong(why, "several nodes of a cluster are named as cluster://host,host");
    if (is_cluster && db.at)
        return wrong(why, "a cluster has database 0 only: leave out the /");
    enum err err = read_hosts(arena, hosts, PORT_REDIS, a, why);
    return err ? err : read_db(db, a, why);
}

static enum err read_sentinel(struct arena *arena, struct str rest, struct redis_address *a, struct why *why)
{
    static const char mark[] = "?sentinels="; /* looked for first, since a password may hold anything */
    struct str hosts, master, user;
    const char *own = rest.len ? memmem(rest.at, rest.len, mark, sizeof(mark) - 1) : NULL;
    if (own) {
        struct str password = str_from(rest, (size_t)(own - rest.at) + sizeof(mark) - 1);
        rest.len = (size_t)(own - rest.at);
        if (!cut_before(&password, ':', &user) || !password.len)
            return wrong(why, "behind ?sentinels= stands no user:password (or :password alone)");
        a->sentinel_user = decoded(arena, user);
        a->sentinel_password = decoded(arena, password);
    }
    read_credentials(arena, &rest, a);
    if (!cut_before(&rest, '/', &hosts))
        return wrong(why, "the master's name is missing");
    master = rest;
    struct str db = STR_NONE;
    if (cut_before(&rest, '/', &master))
        db = rest;
    if (!master.len)
        return wrong(why, "the master's name is missing");
    if (str_has(master, '?'))
        return wrong(why, "behind the master's name stands a ? that is not ?sentinels=");
    a->master = arena_dup(arena, master);
    enum err err = read_hosts(arena, hosts, PORT_SENTINEL, a, why);
    return err ? err : read_db(db, a, why);
}

static const struct {
    const char *scheme;
    enum err (*read)(struct arena *arena, struct str rest, struct redis_address *out, struct why *why);
} schemes[] = {
    [REDIS_ADDRESS_UNIX] = {"unix:", read_unix},
    [REDIS_ADDRESS_TCP] = {"redis://", read_tcp},
    [REDIS_ADDRESS_CLUSTER] = {"cluster://", read_tcp},
    [REDIS_ADDRESS_SENTINEL] = {"sentinel://", read_sentinel},
};

enum err redis_address_parse(struct arena *arena, struct str text, struct redis_address *out, struct why *why)
{
    *out = (struct redis_address){.kind = REDIS_ADDRESS_UNIX};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (str_starts(text, schemes[i].scheme)) {
            out->kind = (enum redis_address_kind)i;
            return schemes[i].read(arena, str_from(text, strlen(schemes[i].scheme)), out, why);
        }
    if (str_starts(text, "rediss://"))
        return wrong(why,
                     "toolgate speaks no TLS to Redis itself: let stunnel do it, as docs/scaling.md shows");
    if (text.len && text.at[0] == '/')
        return wrong(why, "a path needs unix: before it");
    return wrong(why, str_has(text, ':') && !memmem(text.at, text.len, "://", 3)
                          ? "a host needs redis:// before it"
                          : "it begins with none of unix:, redis://, cluster://, sentinel://");
}

struct str redis_address_shown(struct arena *arena, const struct redis_address *a)
{
    struct buf out = buf_in(arena);
    buf_text(&out, schemes[a->kind].scheme);
    buf_str(&out, a->path);
    for (size_t i = 0; i < a->host_count; i++) {
        const struct redis_address_host *host = &a->hosts[i];
        bool bare = !str_has(host->name, ':');
        buf_printf(&out, bare ? "%s" STR_FMT ":%u" : "%s[" STR_FMT "]:%u", i ? "," : "", STR_ARG(host->name),
                   host->port);
    }
    if (a->master.len)
        buf_printf(&out, "/" STR_FMT, STR_ARG(a->master));
    if (a->db)
        buf_printf(&out, a->kind == REDIS_ADDRESS_UNIX ? "?db=%u" : "/%u", a->db);
    return buf_view(&out);
}

/* What the daemon talks to: Redis, upstreams, the collector of its spans, the readers of its metrics. */
#include "doctor/doctor_internal.h"

#include "ledger/redis_address.h"
#include "upstream/environment.h"
#include "upstream/http/fetch.h"
#include "upstream/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- connecting, without a word ---- */

static bool connects(const struct sockaddr *address, socklen_t len, int *error)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = sizeof(*error);
    *error = fd < 0 || connect(fd, address, len) != 0 ? errno : 0;
    if (*error == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        *error = ETIMEDOUT;
        if (poll(&wait, 1, DOCTOR_CONNECT_MS) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, error, &size);
    }
    if (fd >= 0)
        close(fd);
    return !*error;
}

/* NULL: it accepts. Else why not. */
static const char *unix_problem(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int error = ENAMETOOLONG;
    if (strlen(path) < sizeof(address.sun_path)) {
        memcpy(address.sun_path, path, strlen(path));
        connects((struct sockaddr *)&address, sizeof(address), &error);
    }
    return error ? strerror(error) : NULL;
}

static const char *tcp_problem(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    int error = 0, found = getaddrinfo(host, port, &hints, &list);
    if (found)
        return gai_strerror(found);
    bool works = false;
    for (const struct addrinfo *one = list; one && !works; one = one->ai_next)
        works = connects(one->ai_addr, one->ai_addrlen, &error);
    freeaddrinfo(list);
    return works ? NULL : strerror(error);
}

/* ---- Redis ---- */

static const char *address_problem(const struct redis_address *a)
{
    const char *problem = "no host";
    char port[8];
    if (a->kind == REDIS_ADDRESS_UNIX)
        return unix_problem(a->path.at);
    for (size_t i = 0; i < a->host_count && problem; i++) { /* of sentinels one is enough */
        snprintf(port, sizeof(port), "%u", a->hosts[i].port);
        problem = tcp_problem(a->hosts[i].name.at, port);
    }
    return problem;
}

static bool is_local(struct str host)
{
    return str_is(host, "localhost") || str_is(host, "::1") || str_starts(host, "127.");
}

static const char *const redis_fix = "systemctl status redis-server; then the address in ledger.redis, the "
                                     "firewall, and PrivateNetwork=, RestrictAddressFamilies= of the unit";

/* Before a daemon runs: whether anybody listens there. It says nothing to it. */
static void check_address(struct doctor *d, const struct redis_address *address)
{
    struct str shown = redis_address_shown(d->arena, address);
    const char *problem = address_problem(address);
    if (problem)
        doctor_add(d, DOCTOR_ERROR, "redis", "redis_down", redis_fix, STR_FMT ": %s", STR_ARG(shown),
                   problem);
    else
        doctor_add(d, DOCTOR_OK, "redis", "redis", NULL,
                   STR_FMT
                   " accepts connections; a running daemon also checks its version, eviction and persistence",
                   STR_ARG(shown));
}

static void check_connection(struct doctor *d, const struct json *ledger)
{
    const struct json *warnings = json_get_text(ledger, "warnings");
    struct str address = doctor_text(ledger, "address"), server = doctor_text(ledger, "server");
    if (!json_is_true(json_get_text(ledger, "connected"))) {
        doctor_add(d, DOCTOR_ERROR, "redis", "redis_down", redis_fix, STR_FMT ": " STR_FMT, STR_ARG(address),
                   STR_ARG(doctor_text(ledger, "why_away")));
        return;
    }
    doctor_add(d, DOCTOR_OK, "redis", "redis", NULL, STR_FMT " at " STR_FMT ", median %" PRId64 " us",
               STR_ARG(server), STR_ARG(address), doctor_number(ledger, "median_us"));
    int64_t ahead_ms = doctor_number(ledger, "clock_ahead_ms");
    if (ahead_ms > DOCTOR_SKEW_MS || ahead_ms < -DOCTOR_SKEW_MS)
        doctor_add(d, DOCTOR_WARNING, "redis", "redis_clock", "timedatectl set-ntp true, on both hosts",
                   "the clock of Redis is %" PRId64
                   " s %s this host's: the ledger goes by the former, the records' times by the latter",
                   (ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000, ahead_ms < 0 ? "behind" : "ahead of");
    for (uint32_t i = 0; json_is(warnings, JSON_ARRAY) && i < warnings->len; i++)
        doctor_add(d, DOCTOR_WARNING, "redis", "redis_warning", NULL, STR_FMT,
                   STR_ARG(json_str(&warnings->items[i])));
    if (doctor_number(ledger, "lost"))
        doctor_add(d, DOCTOR_WARNING, "redis", "redis_lost", "keep Redis reachable; raise ledger.memory",
                   "%" PRId64 " sessions of outages could not be merged", doctor_number(ledger, "lost"));
}

void doctor_check_redis(struct doctor *d)
{
    const struct json *ledger = doctor_status(d, "ledger");
    struct redis_address address;
    struct str text;
    struct why why;
    if (!d->config || !d->config->ledger_redis) {
        if (json_get_text(ledger, "on_outage"))
            check_connection(d, ledger);
        return;
    }
    if (secrets_expand(d->arena, str_of(d->config->ledger_redis), NULL, &text, &why) != OK ||
        redis_address_parse(d->arena, text, &address, &why) != OK) {
        doctor_add(d, DOCTOR_ERROR, "redis", "redis_address", "correct ledger.redis", "ledger.redis: %s",
                   why.text);
        return;
    }
    if (json_get_text(ledger, "on_outage"))
        check_connection(d, ledger);
    else
        check_address(d, &address);
    for (size_t i = 0; i < address.host_count; i++)
        if (address.kind == REDIS_ADDRESS_TCP && !is_local(address.hosts[i].name))
            doctor_add(
                d, DOCTOR_WARNING, "redis", "redis_plain",
                "put stunnel or a Unix socket between, as docs/scaling.md shows",
                "the connection to %s is not encrypted: goals, ids and the password of Redis travel in "
                "plain text",
                address.hosts[i].name.at);
}

/* ---- upstreams ---- */

/* It has not answered yet, perhaps again: a reload would not make it answer. */
static void add_starting(struct doctor *d, struct str name, struct str error)
{
    if (error.len)
        doctor_add(d, DOCTOR_ERROR, "upstreams", "upstream_starting",
                   "run its command by hand: it must answer initialize, then tools/list",
                   STR_FMT " is starting again: " STR_FMT, STR_ARG(name), STR_ARG(error));
    else
        doctor_add(d, DOCTOR_WARNING, "upstreams", "upstream_starting", "wait, then repeat this check",
                   STR_FMT " is starting: its tools are missing until it has listed them", STR_ARG(name));
}

static void check_running(struct doctor *d, const struct json *u)
{
    struct str name = doctor_text(u, "name"), state = doctor_text(u, "state"),
               error = doctor_text(u, "last_error");
    struct str breaker = doctor_text(u, "breaker");
    bool works = str_is(state, "up") || str_is(state, "stopped") || str_is(state, "ready") || !state.len;
    if (str_is(state, "starting"))
        add_starting(d, name, error);
    else if (!works)
        doctor_add(d, DOCTOR_ERROR, "upstreams", "upstream_down", doctor_reload(d),
                   STR_FMT " is " STR_FMT ": " STR_FMT, STR_ARG(name), STR_ARG(state),
                   STR_ARG(error.len ? error : STR_LIT("it gave no reason")));
    else if (breaker.len && !str_is(breaker, "closed"))
        doctor_add(d, DOCTOR_WARNING, "upstreams", "upstream_paused",
                   "toolgate call one of its tools when it works again",
                   STR_FMT " failed repeatedly, its breaker is " STR_FMT ": " STR_FMT, STR_ARG(name),
                   STR_ARG(breaker), STR_ARG(error));
    else
        doctor_add(d, DOCTOR_OK, "upstreams", "upstream", NULL, STR_FMT " is " STR_FMT ", %" PRId64 " tools",
                   STR_ARG(name), STR_ARG(state.len ? state : STR_LIT("configured")),
                   doctor_number(u, "tools"));
}

static void check_spec(struct doctor *d, const struct upstream_spec *spec)
{
    struct why why;
    if (spec->kind != UPSTREAM_STDIO)
        doctor_add(d, DOCTOR_OK, "upstreams", "upstream", NULL, STR_FMT " is tried when the daemon runs",
                   STR_ARG(spec->name));
    else if (environment_find_command(d->arena, spec, &why) != OK)
        doctor_add(d, DOCTOR_ERROR, "upstreams", "command_missing", "install it, or correct `command`",
                   STR_FMT ": %s", STR_ARG(spec->name), why.text);
    else
        doctor_add(d, DOCTOR_OK, "upstreams", "upstream", NULL, STR_FMT ": its command is there",
                   STR_ARG(spec->name));
}

void doctor_check_upstreams(struct doctor *d)
{
    const struct json *list = doctor_status(d, "upstreams");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++)
        check_running(d, &list->items[i]);
    for (size_t i = 0; !list && d->config && i < d->config->upstream_count; i++)
        check_spec(d, d->config->upstreams[i]);
}

/* ---- traces and metrics ---- */

void doctor_check_traces(struct doctor *d)
{
    const struct json *traces = doctor_status(d, "traces");
    struct str endpoint = doctor_text(traces, "endpoint"), error = doctor_text(traces, "last_error");
    if (!traces)
        return;
    if (str_is(doctor_text(traces, "state"), "down"))
        doctor_add(d, DOCTOR_WARNING, "traces", "traces_down",
                   "start the collector, or correct traces.endpoint", "spans cannot be sent: " STR_FMT,
                   STR_ARG(error.len ? error : endpoint));
    else if (doctor_number(traces, "rejected"))
        doctor_add(d, DOCTOR_WARNING, "traces", "traces_rejected",
                   "correct traces.endpoint or traces.headers",
                   STR_FMT " has rejected %" PRId64 " spans: " STR_FMT, STR_ARG(endpoint),
                   doctor_number(traces, "rejected"), STR_ARG(error));
    else if (doctor_number(traces, "dropped"))
        doctor_add(d, DOCTOR_WARNING, "traces", "traces_dropped",
                   "lower traces.sample, or give the collector more room",
                   "%" PRId64 " spans were dropped since the daemon's start",
                   doctor_number(traces, "dropped"));
    else
        doctor_add(d, DOCTOR_OK, "traces", "traces", NULL, STR_FMT ": %" PRId64 " spans sent",
                   STR_ARG(endpoint), doctor_number(traces, "sent"));
}

void doctor_check_metrics(struct doctor *d)
{
    const struct http_address *address = d->config ? &d->config->metrics.address : NULL;
    const char *problem = NULL;
    int error;
    if (!address || !address->text[0] || !d->status)
        return;
    if (address->is_unix)
        problem = unix_problem(address->text + strlen("unix:"));
    else if (!connects(&address->at.any, address->len, &error))
        problem = strerror(error);
    if (problem)
        doctor_add(d, DOCTOR_ERROR, "metrics", "metrics_down",
                   "read why in the daemon's log (http_endpoint…), then choose another metrics.listen",
                   "%s does not accept: %s", address->text, problem);
    else
        doctor_add(d, DOCTOR_OK, "metrics", "metrics", NULL, "%s accepts", address->text);
}

/* One list per client. A subscription's id is that of its request, as it was sent. */

#include "base/arena.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/share.h"
#include "json/build.h"
#include "json/write.h"
#include "server/method_table.h"
#include "server/problems.h"
#include "server/served.h"

#include <stdlib.h>

struct subscription {
    LIST_ENTRY(subscription) link;
    struct arena *arena;
    struct str id; /* JSON */
    struct json id_value;
    bool wants[LIST_CHANGED_COUNT];
    uint64_t told[LIST_CHANGED_COUNT]; /* as the client's */
};

#define WATCH_LEVELS_MAX 16u /* of a URI: so many above a changed part are looked for */

/* How many resources of one server a user watches, on all connections. */
struct watch_count {
    LIST_ENTRY(watch_count) link;
    uint32_t count;
    char upstream[UPSTREAM_NAME_MAX_BYTES + 1];
};

struct watched_resource {
    LIST_ENTRY(watched_resource) link, same_hash; /* of the client's, of all whose URI hashes alike */
    struct client *client;
    struct watch_count *counted;
    struct subscription *by; /* NULL: resources/subscribe */
    struct str uri;
    char bytes[]; /* of the URI */
};

static const struct {
    const char *wish, *method;
} lists[LIST_CHANGED_COUNT] = {
    [LIST_CHANGED_TOOLS] = {"toolsListChanged", "notifications/tools/list_changed"},
    [LIST_CHANGED_PROMPTS] = {"promptsListChanged", "notifications/prompts/list_changed"},
    [LIST_CHANGED_RESOURCES] = {"resourcesListChanged", "notifications/resources/list_changed"},
};

/* A notification with {"_meta":{"…/subscriptionId":ID}<more>}; `s` NULL, of the legacy era: with {<more>}.
 * `more`: members, each after a comma. */
static void notify(struct client *client, const struct subscription *s, const char *method, struct str more)
{
    struct buf params = {0};
    if (s)
        buf_printf(&params, "{\"_meta\":{\"" MCP_SUBSCRIPTION_KEY "\":" STR_FMT "}" STR_FMT "}",
                   STR_ARG(s->id), STR_ARG(more));
    else if (more.len)
        buf_printf(&params, "{" STR_FMT "}", STR_ARG(str_from(more, 1)));
    reply_notification(client, method, buf_view(&params));
    buf_clear(&params);
}

/* ,"notifications":{…}: what the client will hear of. */
static void acknowledge(struct request *r, const struct subscription *s)
{
    const struct watched_resource *w;
    struct buf text = buf_in(r->arena);
    buf_text(&text, ",\"notifications\":");
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    for (size_t i = 0; i < LIST_CHANGED_COUNT; i++)
        if (s->wants[i])
            json_field_bool(&out, lists[i].wish, true);
    bool any = false;
    LIST_FOREACH (w, &r->client->watched, link)
        if (w->by == s) {
            if (!any)
                json_field_open(&out, "resourceSubscriptions", '[');
            json_put_str(&out, w->uri);
            any = true;
        }
    if (any)
        json_close(&out, ']');
    json_close(&out, '}');
    notify(r->client, s, "notifications/subscriptions/acknowledged", buf_view(&text));
}

enum request_status subscriptions_listen(struct request *r)
{
    const struct json *wanted = json_get_text(r->params, "notifications");
    if (!json_is(wanted, JSON_OBJECT))
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.notifications: expected an object such as {\"toolsListChanged\":true}, got %s",
            param_kind(wanted));
    if (r->client->subscription_count >= SUBSCRIPTIONS_MAX)
        return reply_error(r, RPC_SUBSCRIPTIONS,
                           "this connection has %u subscriptions, the most that is allowed: cancel one with "
                           "notifications/cancelled, or open another connection",
                           SUBSCRIPTIONS_MAX);
    struct arena *arena = arena_new();
    struct subscription *s = ARENA_NEW(arena, struct subscription);
    s->arena = arena;
    s->id = arena_dup(arena, r->id);
    s->id_value = json_copy(arena, r->id_value);
    for (size_t i = 0; i < LIST_CHANGED_COUNT; i++)
        s->wants[i] = json_is_true(json_get_text(wanted, lists[i].wish));
    LIST_INSERT_HEAD(&r->client->subscriptions, s, link);
    r->client->subscription_count++;
    passing_watch_all(r, s, json_get_text(wanted, "resourceSubscriptions"));
    acknowledge(r, s);
    return REQUEST_DONE;
}

/* ---- resources ------------------------------------------------------------------- */

static struct watched_resource *find_watched(struct client *client, const struct subscription *by,
                                             struct str uri)
{
    struct watched_resource *w;
    LIST_FOREACH (w, &client->watched, link)
        if (w->by == by && str_eq(w->uri, uri))
            break;
    return w;
}

static struct watch_count *count_of(struct user_calls *user, struct str upstream)
{
    struct watch_count *c;
    LIST_FOREACH (c, &user->watches, link)
        if (str_is(upstream, c->upstream))
            break;
    return c;
}

/* A server may have watchers on thousands of connections, and report a change a hundred times a second. */
static size_t list_of(struct str uri)
{
    return hash_seeded(uri) % SERVER_WATCH_LISTS;
}

const char *subscriptions_watch(struct client *client, struct subscription *by, struct str upstream,
                                struct str uri)
{
    struct upstreams *upstreams = client->server->gate.upstreams;
    struct watch_count *counted = count_of(client->user, upstream);
    if (find_watched(client, by, uri))
        return NULL;
    if (client->watched_count >= WATCHED_RESOURCES_MAX)
        return "is not asked: this connection watches as many resources as it may";
    /* Each user has a share of what one server watches. */
    if (!share_leaves_room(upstreams_subscriptions(upstreams, upstream), counted ? counted->count : 0, 1,
                           UPSTREAM_SUBSCRIPTIONS_MAX)) {
        problems_note(
            client, PROBLEM_SHARE,
            STR_LIT("this user watches as many resources of one server as leaves others their share"));
        return "is not asked: this user watches as many of its resources as leaves others their share";
    }
    const char *why = upstreams_subscribe(upstreams, upstream, uri);
    if (why)
        return why;
    if (!counted) {
        struct str name = str_cut(upstream, UPSTREAM_NAME_MAX_BYTES);
        counted = alloc_zeroed(sizeof(*counted));
        memcpy(counted->upstream, name.at, name.len);
        LIST_INSERT_HEAD(&client->user->watches, counted, link);
    }
    counted->count++;
    struct watched_resource *w = alloc_zeroed(sizeof(*w) + uri.len);
    memcpy(w->bytes, uri.at, uri.len);
    w->client = client;
    w->by = by;
    w->uri = (struct str){w->bytes, uri.len};
    w->counted = counted;
    LIST_INSERT_HEAD(&client->watched, w, link);
    LIST_INSERT_HEAD(&client->server->watched[list_of(uri)], w, same_hash);
    client->watched_count++;
    return NULL;
}

static void end_watch(struct client *client, struct watched_resource *w)
{
    if (client->server->gate.upstreams) /* NULL: the daemon ends */
        upstreams_unsubscribe(client->server->gate.upstreams, str_of(w->counted->upstream), w->uri);
    LIST_REMOVE(w, link);
    LIST_REMOVE(w, same_hash);
    if (!--w->counted->count) {
        LIST_REMOVE(w->counted, link);
        free(w->counted);
    }
    client->watched_count--;
    free(w);
}

void subscriptions_unwatch(struct client *client, const struct subscription *by, struct str uri)
{
    struct watched_resource *w = find_watched(client, by, uri);
    if (w)
        end_watch(client, w);
}

static void unwatch_all(struct client *client, const struct subscription *by)
{
    struct watched_resource *w = LIST_FIRST(&client->watched), *next;
    for (; w; w = next) {
        next = LIST_NEXT(w, link);
        if (w->by == by)
            end_watch(client, w);
    }
}

void subscriptions_apply_config(struct client *client)
{
    struct watched_resource *w = LIST_FIRST(&client->watched), *next;
    for (; w; w = next) {
        next = LIST_NEXT(w, link);
        if (!config_find_upstream(server_config(client->server), str_of(w->counted->upstream)))
            end_watch(client, w);
    }
}

struct update {
    struct str upstream, uri, member;
    const struct upstream_spec *spec;
};

/* Who watches the resource itself, or one that it is a part of and may read it. A client that does not read
 * gets no more of them: what it missed, it reads when it looks. */
static void tell_watchers(struct server *server, const struct update *u, struct str watched)
{
    const struct watched_resource *w;
    bool is_part = watched.len < u->uri.len;
    LIST_FOREACH (w, &server->watched[list_of(watched)], same_hash) {
        if (!str_eq(w->uri, watched) || !str_is(u->upstream, w->counted->upstream) ||
            conn_out(w->client->conn)->len > CONN_OUT_HIGH_BYTES ||
            (is_part &&
             (!u->spec || !served_may_read(server_config(server), &w->client->peer, u->spec, u->uri))))
            continue;
        notify(w->client, w->by, "notifications/resources/updated", u->member);
    }
}

void subscriptions_resource_updated(struct server *server, struct str upstream, struct str uri)
{
    struct buf member = {0};
    buf_text(&member, ",\"uri\":");
    json_write_string(&member, uri);
    const struct update update = {upstream, uri, buf_view(&member),
                                  config_find_upstream(server_config(server), upstream)};
    tell_watchers(server, &update, uri);
    /* MCP: it may be a part of what is watched: of "a:b" and "a:b/" are "a:b/c", of the first also "a:b?c" */
    unsigned levels = 0;
    for (size_t i = uri.len; i-- > 1 && levels < WATCH_LEVELS_MAX;) {
        if (!strchr("/?#", uri.at[i]))
            continue;
        levels++;
        tell_watchers(server, &update, str_cut(uri, i));
        if (uri.at[i] == '/' && i + 1 < uri.len)
            tell_watchers(server, &update, str_cut(uri, i + 1));
    }
    buf_clear(&member);
}

/* ---- their end, and lists ---------------------------------------------------------- */

static void drop(struct client *client, struct subscription *s)
{
    unwatch_all(client, s);
    LIST_REMOVE(s, link);
    client->subscription_count--;
    arena_free(s->arena);
}

void subscriptions_cancel(struct client *client, const struct json *id)
{
    struct subscription *s;
    LIST_FOREACH (s, &client->subscriptions, link)
        if (json_equal(&s->id_value, id)) {
            drop(client, s);
            return;
        }
}

/* One that is not sent yet says what another would: a client that does not read gets no more of them. */
static void tell_changed(struct client *client, const struct subscription *s, enum list_changed list,
                         uint64_t *told)
{
    if (*told > conn_written_bytes(client->conn) - conn_unsent_bytes(client->conn))
        return;
    notify(client, s, lists[list].method, STR_NONE);
    *told = conn_written_bytes(client->conn);
}

void subscriptions_client_changed(struct client *client, enum list_changed list)
{
    struct subscription *s;
    if (client->wants_list_changed)
        tell_changed(client, NULL, list, &client->told[list]);
    LIST_FOREACH (s, &client->subscriptions, link)
        if (s->wants[list])
            tell_changed(client, s, list, &s->told[list]);
}

void subscriptions_changed(struct server *server, enum list_changed list)
{
    struct client *client;
    LIST_FOREACH (client, &server->clients, link)
        subscriptions_client_changed(client, list);
}

void subscriptions_end(struct client *client)
{
    struct subscription *s;
    LIST_FOREACH (s, &client->subscriptions, link) {
        struct request r = {.client = client, .arena = s->arena, .id = s->id, .modern = true};
        struct json_out *out = reply_open(&r);
        reply_meta(&r);
        json_field_raw(out, MCP_SUBSCRIPTION_KEY, s->id);
        json_close(out, '}');
        reply_close(&r);
    }
    subscriptions_clear(client);
}

void subscriptions_clear(struct client *client)
{
    while (!LIST_EMPTY(&client->subscriptions))
        drop(client, LIST_FIRST(&client->subscriptions));
    unwatch_all(client, NULL);
}

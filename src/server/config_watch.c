/* One struct watch at a time: a configuration that names other files gets another. */
#include "server/config_watch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/conn.h"
#include "io/file_watch.h"
#include "io/timer.h"

#include <event2/event.h>
#include <stdlib.h>

struct config_watch {
    struct loop *loop;
    void (*changed)(void *owner);
    void *owner;
    struct file_watch *watch; /* NULL: nothing is watched */
    struct event *readable;   /* NULL: nothing is watched */
    struct timer report;      /* set: files have changed, and `changed` will fire */
    struct buf files;         /* the watched names, each with its NUL */
    int64_t first_ms;         /* of the changes that were not reported yet; 0: none */
};

static void on_report(void *owner)
{
    struct config_watch *w = owner;
    w->first_ms = 0;
    w->changed(w->owner);
}

/* A save is several events and a checkout hundreds: each delays the report, up to a limit. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct config_watch *w = arg;
    (void)fd, (void)what;
    if (!file_watch_drain(w->watch))
        return;
    int64_t now = clock_mono_us() / 1000;
    if (!w->first_ms)
        w->first_ms = now;
    int64_t delay = FILE_WATCH_QUIET_MS, left = w->first_ms + CONFIG_WATCH_MAX_DELAY_MS - now;
    if (left < delay)
        delay = left > 0 ? left : 0;
    timer_set(&w->report, w->loop, (uint32_t)delay, on_report, w);
}

struct config_watch *config_watch_new(struct loop *loop, void (*changed)(void *owner), void *owner)
{
    struct config_watch *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    *w = (struct config_watch){.loop = loop, .changed = changed, .owner = owner};
    return w;
}

static void stop(struct config_watch *w)
{
    if (w->readable)
        event_free(w->readable);
    w->readable = NULL;
    file_watch_free(w->watch);
    w->watch = NULL;
    buf_clear(&w->files);
}

void config_watch_free(struct config_watch *w)
{
    if (!w)
        return;
    stop(w);
    timer_clear(&w->report);
    free(w);
}

static void add_name(struct buf *files, const char *path)
{
    if (path)
        buf_add(files, path, strlen(path) + 1);
}

static struct buf files_of(const struct config *config)
{
    struct buf files = {0};
    if (!config->watch)
        return files;
    add_name(&files, config->file);
    add_name(&files, config->policies ? config->policies : CONFIG_DEFAULT_FOLDER);
    add_name(&files, config->schemas);
    for (size_t i = 0; i < config->tools.count; i++)
        add_name(&files, config->tools.list[i]);
    for (size_t i = 0; i < config->mcp_configs.count; i++)
        add_name(&files, config->mcp_configs.list[i]);
    return files;
}

static void report_unwatched(const struct why *why)
{
    log_event(LOG_WARN, "watch_disabled", LOG_TEXT("why", why->text),
              LOG_TEXT("fix",
                       "raise sysctl fs.inotify.max_user_instances or fs.inotify.max_user_watches; until "
                       "then request a reload after changes: toolgate reload, or SIGHUP"));
}

void config_watch_apply(struct config_watch *w, const struct config *config)
{
    struct buf files = files_of(config);
    struct why why;
    if (str_eq(buf_view(&files), buf_view(&w->files))) {
        buf_clear(&files);
        return;
    }
    stop(w);
    w->files = files;
    if (!files.len)
        return;
    if (file_watch_new(&w->watch, &why) != OK) {
        report_unwatched(&why);
        return;
    }
    for (struct str rest = buf_view(&files); rest.len; rest = str_from(rest, strlen(rest.at) + 1))
        if (file_watch_add(w->watch, rest.at, &why) != OK)
            report_unwatched(&why);
    w->readable =
        event_new(loop_base(w->loop), file_watch_fd(w->watch), EV_READ | EV_PERSIST, on_readable, w);
    event_add(w->readable, NULL);
}

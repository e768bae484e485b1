/* One struct file_watch at a time; a configuration that names other files gets another. */
#include "server/config_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/file_watch.h"
#include "base/buf.h"

#include <event2/event.h>
#include <stdlib.h>

struct watcher {
    struct event_base *base;
    void (*changed)(void *owner);
    void *owner;
    struct file_watch *watch; /* NULL: nothing is watched */
    struct event *readable, *quiet;
    struct buf files; /* the names, each with its NUL: what is watched */
    int64_t first_us; /* of the changes that nobody has been told of yet; 0: there are none */
};

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    struct watcher *w = arg;
    (void)fd, (void)what;
    w->first_us = 0;
    w->changed(w->owner);
}

/* A save is several events and a checkout hundreds: each puts off what it asks for, but not for ever. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct watcher *w = arg;
    (void)fd, (void)what;
    if (!file_watch_drain(w->watch))
        return;
    int64_t now = clock_mono_us();
    if (!w->first_us)
        w->first_us = now;
    int64_t due = now + FILE_WATCH_QUIET_MS * 1000, latest = w->first_us + CONFIG_WATCH_MAX_DELAY_MS * 1000;
    int64_t left = (due < latest ? due : latest) - now;
    struct timeval wait = {.tv_usec = left > 0 ? left : 0};
    event_add(w->quiet, &wait);
}

struct watcher *config_watch_new(struct event_base *base, void (*changed)(void *owner), void *owner)
{
    struct watcher *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    *w = (struct watcher){.base = base, .changed = changed, .owner = owner};
    w->quiet = event_new(base, -1, 0, on_quiet, w);
    return w;
}

static void stop(struct watcher *w)
{
    if (w->readable)
        event_free(w->readable);
    w->readable = NULL;
    file_watch_free(w->watch);
    w->watch = NULL;
    buf_clear(&w->files);
}

void config_watch_free(struct watcher *w)
{
    if (!w)
        return;
    stop(w);
    event_free(w->quiet);
    free(w);
}

/* ---- which files -------------------------------------------------------------- */

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
    for (size_t i = 0; i < config->tools.count; i++)
        add_name(&files, config->tools.list[i]);
    for (size_t i = 0; i < config->mcp_configs.count; i++)
        add_name(&files, config->mcp_configs.list[i]);
    return files;
}

static void say_unwatched(const struct why *why)
{
    log_event(LOG_WARN, "watch_disabled", LOG_TEXT("why", why->text),
              LOG_TEXT("mend",
                       "raise sysctl fs.inotify.max_user_instances or fs.inotify.max_user_watches; until "
                       "then ask for a reload when files have changed: toolgate reload, or SIGHUP"));
}

static void add_all(struct watcher *w)
{
    struct why why;
    struct str rest = buf_view(&w->files);
    while (rest.len) {
        if (file_watch_add(w->watch, rest.at, &why) != OK)
            say_unwatched(&why);
        rest = str_from(rest, strlen(rest.at) + 1);
    }
}

void config_watch_apply(struct watcher *w, const struct config *config)
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
        say_unwatched(&why);
        return;
    }
    add_all(w);
    w->readable = event_new(w->base, file_watch_fd(w->watch), EV_READ | EV_PERSIST, on_readable, w);
    event_add(w->readable, NULL);
}

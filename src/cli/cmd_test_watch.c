/* toolgate test --watch: runs everything again after each change, until Ctrl-C. */
#include "io/file_watch.h"
#include "cli/term.h"
#include "cli/cmd_test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct watch_list {
    struct file_watch *watch;
    struct why why;
    bool failed;
};

static void add(struct watch_list *w, const char *path)
{
    w->failed |= path && file_watch_add(w->watch, path, &w->why) != OK;
}

/* Of a file the whole folder: it may read a schema from there with json "…". */
static void add_place(struct watch_list *w, const char *place)
{
    const char *slash = strrchr(place, '/');
    struct stat st;
    char *folder = slash ? strndup(place, (size_t)(slash - place) + 1) : NULL;
    if (stat(place, &st) != 0 || S_ISDIR(st.st_mode))
        add(w, place);
    else
        add(w, folder ? folder : ".");
    free(folder);
}

/* The configuration and the files that it names, if it can be read. */
static void add_configured(struct watch_list *w, const struct local_options *local)
{
    struct config_sources sources = local_sources(local, NULL);
    struct config config;
    add(w, local->config);
    if (config_load(&sources, &config, NULL) == OK) {
        add_place(w, config.policies ? config.policies : "policies");
        for (size_t i = 0; i < config.tools.count; i++)
            add(w, config.tools.list[i]);
        for (size_t i = 0; i < config.mcp_configs.count; i++)
            add(w, config.mcp_configs.list[i]);
    }
    config_free(&config);
}

/* Returns after a change that no further change follows. False: poll failed. */
static bool wait_for_change(struct file_watch *watch)
{
    struct pollfd ready = {.fd = file_watch_fd(watch), .events = POLLIN};
    bool changed = false;
    for (;;) {
        int n = poll(&ready, 1, changed ? (int)FILE_WATCH_QUIET_MS : -1);
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0 && changed)
            return true;
        if (n > 0)
            changed |= file_watch_drain(watch);
    }
}

int test_watch(const struct test_options *options, int (*test)(const struct test_options *options))
{
    struct file_watch *watch;
    struct why why;
    if (file_watch_new(&watch, &why) != OK) {
        term_error("test", "%s", why.text);
        return CLI_ERROR;
    }
    struct watch_list w = {.watch = watch};
    for (int i = 0; i < options->place_count; i++)
        add_place(&w, options->places[i]);
    if (!options->place_count || options->local.config || options->local.tools.count)
        add_configured(&w, &options->local);
    if (w.failed)
        term_error("test", "%s", w.why.text);
    for (bool going = !w.failed; going; going = wait_for_change(watch)) {
        if (isatty(STDOUT_FILENO) && !options->json)
            printf("\033[H\033[2J\033[3J");
        test(options);
        if (!options->json)
            printf("%swaiting for changes; Ctrl-C ends%s\n", term_colour(TERM_DIM), term_colour(TERM_PLAIN));
        fflush(stdout);
    }
    file_watch_free(watch);
    return CLI_ERROR;
}

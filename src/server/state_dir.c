/*
 * The daemon's files between runs, the quarantine among them, and what confined processes cannot read.
 */
#include "server/state_dir.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "catalog/tool.h"
#include "io/file.h"
#include "io/unix_socket.h"
#include "json/write.h"
#include "policy/policy_hooks.h"
#include "sandbox/deadline.h"
#include "upstream/confine/confine.h"
#include "upstream/upstream_spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUARANTINE_FILE_MAX_BYTES 65536u /* read from the file's end */
#define QUARANTINE_MAX            256u   /* texts, those whose faults are newest */
#define GUARDED_FILE_MAX_BYTES    1048576u

/* ---- the folder: the configuration's, else systemd's, else SOCKET.state ---- */

static const char *given(const struct config *config)
{
    const char *folder = config->state ? config->state : getenv("STATE_DIRECTORY");
    return folder && *folder ? folder : NULL;
}

bool state_dir_is_given(const struct config *config)
{
    return given(config) != NULL;
}

const char *state_dir_folder(struct arena *arena, const struct config *config)
{
    const char *folder = given(config); /* systemd's is a list */
    return folder ? arena_dup(arena, (struct str){folder, strcspn(folder, ":")}).at
                  : state_dir_beside_socket(arena, config, "state");
}

/* Earlier versions kept each file beside the socket. Pins that were lost without a word would be no guard. */
static void move_in(struct arena *arena, const struct config *config)
{
    static const char *const names[] = {
        "quarantine", "pins.json",         "call-ids.key",           "decisions.key",
        "upstreams",  DECISIONS_FILE_NAME, DECISIONS_FILE_NAME ".1", DECISIONS_FILE_NAME ".2"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *from = state_dir_beside_socket(arena, config, names[i]);
        const char *to = arena_printf(arena, "%s/%s", state_dir_folder(arena, config), names[i]).at;
        if (access(from, F_OK) != 0 || access(to, F_OK) == 0)
            continue;
        bool moved = rename(from, to) == 0;
        log_event(moved ? LOG_INFO : LOG_ERROR, moved ? "state_moved" : "state_not_moved",
                  LOG_TEXT("from", from), LOG_TEXT("to", to),
                  LOG_TEXT("why", moved ? "earlier versions kept it there" : strerror(errno)));
    }
}

static bool is_trusted(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

enum err state_dir_prepare(struct arena *arena, const struct config *config, struct why *why)
{
    const char *path = state_dir_folder(arena, config);
    char real[PATH_MAX];
    struct stat link, st;
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) /* ~/.local/state of a new user */
        mkdir(arena_printf(arena, "%.*s", (int)(slash - path), path).at, 0700);
    if (mkdir(path, 0700) == 0 && given(config))
        log_event(LOG_INFO, "state_created", LOG_TEXT("folder", path));
    if (lstat(path, &link) != 0 || !realpath(path, real))
        return OK;
    if (S_ISLNK(link.st_mode) && !is_trusted(link.st_uid))
        return err_set(why, ERR_CONFIG,
                       "state: %s is a symbolic link of uid %u: remove it, or choose another", path,
                       (unsigned)link.st_uid);
    bool is_folder = stat(real, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_folder && !is_trusted(st.st_uid))
        return err_set(
            why, ERR_CONFIG,
            "state: the folder %s belongs to uid %u, not to the daemon's user (uid %u): chown -R %u %s, "
            "after a look at what is in it, or choose another",
            real, (unsigned)st.st_uid, (unsigned)geteuid(), (unsigned)geteuid(), real);
    if (is_folder && st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(
            why, ERR_CONFIG,
            "state: other users may write into the folder %s: look at what is in it, then chmod go-w %s",
            real, real);
    if (!given(config)) { /* whoever may replace it may replace the socket as well */
        move_in(arena, config);
        return OK;
    }
    enum err err = file_check_above(real, geteuid(), why);
    if (err)
        err_prefix(why, "state");
    return err;
}

const char *state_dir_beside_socket(struct arena *arena, const struct config *config, const char *name)
{
    return arena_printf(arena, "%s.%s", config->socket, name).at;
}

static const char *path_of(struct arena *arena, const struct config *config, const char *name)
{
    return arena_printf(arena, "%s/%s", state_dir_folder(arena, config), name).at;
}

const char *state_dir_path(struct arena *arena, const struct config *config, const char *name)
{
    struct why why; /* an error here occurs again when the socket is made, and is reported then */
    if (!given(config))
        unix_socket_make_directory(config->socket, "socket", &why);
    return path_of(arena, config, name);
}

const char *state_dir_decisions(struct arena *arena, const struct config *config)
{
    const struct config_decisions *decisions = &config->decisions;
    if (!decisions->on || !decisions->to_file)
        return NULL;
    return decisions->file ? decisions->file : path_of(arena, config, DECISIONS_FILE_NAME);
}

/* ---- the file `guarded`: a policy has a tool's name, an upstream letters, digits, '_' and '-'; a line with
 * anything else is skipped ---- */

static struct str read_text(struct arena *arena, const char *path)
{
    struct str text = STR_NONE;
    struct why why;
    if (access(path, F_OK) == 0 && file_read(arena, path, GUARDED_FILE_MAX_BYTES, &text, &why) != OK)
        log_event(LOG_ERROR, "guarded_unreadable", LOG_TEXT("why", why.text));
    return text;
}

struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count)
{
    struct str text = read_text(arena, state_dir_path(arena, config, "guarded"));
    size_t lines = 0;
    *count = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    struct guarded_tool *list = ARENA_ARRAY(arena, struct guarded_tool, lines + 1);
    while (str_has(text, '\n')) { /* a last line without an end is torn */
        struct str upstream = str_split(&text, '\n'), policy = str_split(&upstream, ' ');
        if (tool_name_fits(policy) && str_is_name(upstream))
            list[(*count)++] = (struct guarded_tool){.policy = policy, .upstream = upstream};
    }
    return list;
}

void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count)
{
    struct arena *arena = arena_new();
    const char *path = state_dir_path(arena, config, "guarded");
    struct buf text = buf_in(arena);
    struct why why;
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, STR_FMT " " STR_FMT "\n", STR_ARG(list[i].policy), STR_ARG(list[i].upstream));
    if (!str_eq(read_text(arena, path), buf_view(&text)) &&
        file_replace(path, buf_view(&text), false, &why) != OK)
        log_event(LOG_ERROR, "guarded_not_kept", LOG_TEXT("why", why.text));
    arena_free(arena);
}

/* ---- the quarantine: a file that stays open, as the watchdog writes to it from a signal handler, which
 * cannot open one ---- */

#define QUARANTINE_FIX "change the file, or remove its lines from the list and restart"

struct quarantine {
    struct arena *arena;
    const char *path;
    int fd; /* -1: not available */
    struct fault {
        struct policy_stall stall;
        unsigned count;
        bool crashed;
        struct str how_often; /* "it stalled the process 2 times" */
    } faults[QUARANTINE_MAX]; /* one for each text */
    size_t count;
    struct policy_stall stalls[QUARANTINE_MAX]; /* the texts that do not run */
    size_t stall_count;
};

/* "<16 hex digits> stall|crash <file>" */
static void read_line(struct quarantine *q, const char *line)
{
    bool has_text = strspn(line, "0123456789abcdef") == 16;
    bool crashed = has_text && strncmp(line + 16, " crash ", 7) == 0;
    struct fault *fault = q->faults, *end = q->faults + q->count;
    if (!(crashed || (has_text && strncmp(line + 16, " stall ", 7) == 0)) || !line[23]) {
        log_event(LOG_WARN, "quarantine_line_ignored", LOG_TEXT("file", q->path), LOG_TEXT("line", line),
                  LOG_TEXT("expected", "<16 hex digits> stall|crash <policy's file>"));
        return;
    }
    struct policy_stall stall = {str_of(line + 23), strtoull(line, NULL, 16)};
    while (fault < end && !(fault->stall.text == stall.text && str_eq(fault->stall.file, stall.file)))
        fault++;
    if (fault == end) {
        if (q->count == QUARANTINE_MAX) { /* the newest are at the end */
            memmove(q->faults, q->faults + 1, --q->count * sizeof(*fault));
            fault--;
        }
        *fault = (struct fault){.stall = stall};
        q->count++;
    }
    fault->crashed |= crashed;
    if (++fault->count == QUARANTINE_FAULTS)
        q->stalls[q->stall_count++] = fault->stall;
}

struct quarantine *quarantine_new(const struct config *config)
{
    struct arena *arena = arena_new();
    struct quarantine *q = ARENA_NEW(arena, struct quarantine);
    struct why why;
    q->arena = arena;
    q->path = state_dir_path(arena, config, "quarantine");
    q->fd = open(q->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (q->fd < 0) {
        err_set(&why, ERR_IO, "%s", strerror(errno));
    } else if (file_check_private_fd(q->fd, q->path, &why) != OK) {
        close(q->fd);
        q->fd = -1;
    }
    if (q->fd < 0) {
        log_event(LOG_WARN, "quarantine_unavailable", LOG_TEXT("file", q->path), LOG_TEXT("why", why.text),
                  LOG_TEXT("fix",
                           "give the daemon a folder it may write to (config state): without one, a policy "
                           "that stalls the process will do so again"));
        return q;
    }
    /* Of a larger file only the end is read: it has the newest lines. */
    char *read = arena_alloc(arena, QUARANTINE_FILE_MAX_BYTES);
    off_t size = lseek(q->fd, 0, SEEK_END), most = QUARANTINE_FILE_MAX_BYTES;
    ssize_t got = pread(q->fd, read, QUARANTINE_FILE_MAX_BYTES, size > most ? size - most : 0);
    struct str text = {read, got > 0 ? (size_t)got : 0};
    while (text.len && q->stall_count < QUARANTINE_MAX) {
        const char *line = arena_dup(arena, str_split(&text, '\n')).at;
        if (*line)
            read_line(q, line);
    }
    fault_record_open(q->fd);
    return q;
}

void quarantine_free(struct quarantine *q, bool remove_empty)
{
    if (!q)
        return;
    fault_record_open(0);
    if (q->fd >= 0 && remove_empty && lseek(q->fd, 0, SEEK_END) == 0)
        unlink(q->path);
    if (q->fd >= 0)
        close(q->fd);
    arena_free(q->arena);
}

const struct policy_stall *quarantine_stalls(const struct quarantine *q, size_t *count)
{
    *count = q->stall_count;
    return q->stalls;
}

static bool is_held(const struct policy_set *policies, const struct fault *fault)
{
    size_t count;
    const struct policy_stall *stalls = policy_set_stalls(policies, &count);
    for (size_t i = 0; i < count; i++)
        if (stalls[i].text == fault->stall.text && str_eq(stalls[i].file, fault->stall.file))
            return true;
    return false;
}

/* A policy of this file has another text by now. */
static bool has_changed(const struct policy_set *policies, const struct fault *fault)
{
    for (size_t i = 0; i < policy_set_count(policies); i++)
        if (str_eq(policy_set_at(policies, i)->file, fault->stall.file))
            return policy_set_at(policies, i)->source_hash != fault->stall.text;
    return false;
}

void quarantine_keep(struct quarantine *q, const struct policy_set *policies)
{
    size_t before = q->count;
    struct buf text = {0};
    q->count = q->stall_count = 0;
    for (size_t i = 0; i < before; i++) {
        struct fault *fault = &q->faults[i];
        bool held = fault->count >= QUARANTINE_FAULTS;
        if (held && !is_held(policies, fault)) {
            log_event(LOG_INFO, "quarantine_lifted", LOG_STR("file", fault->stall.file));
            continue;
        }
        if (has_changed(policies, fault))
            continue;
        if (!fault->how_often.len) /* else of a reload before */
            fault->how_often =
                arena_printf(q->arena, "it %s the process %u time%s", fault->crashed ? "crashed" : "stalled",
                             fault->count, fault->count == 1 ? "" : "s");
        log_event(LOG_ERROR, held ? "policy_quarantined" : "policy_suspected",
                  LOG_STR("file", fault->stall.file), LOG_STR("why", fault->how_often),
                  LOG_TEXT("effect", held ? "its tool's calls fail" : "it runs until it does so again"),
                  LOG_TEXT("fix", held ? QUARANTINE_FIX : "change the file"), LOG_TEXT("list", q->path));
        if (held)
            q->stalls[q->stall_count++] = fault->stall;
        for (unsigned n = 0; n < fault->count && n < QUARANTINE_FAULTS; n++)
            buf_printf(&text, "%016" PRIx64 " %s " STR_FMT "\n", fault->stall.text,
                       fault->crashed ? "crash" : "stall", STR_ARG(fault->stall.file));
        q->faults[q->count++] = *fault;
    }
    /* In place: the watchdog has this file open. */
    if (q->count != before && q->fd >= 0 &&
        (ftruncate(q->fd, 0) != 0 || (text.len && write(q->fd, text.at, text.len) != (ssize_t)text.len)))
        log_event(LOG_ERROR, "quarantine_write_failed", LOG_TEXT("file", q->path),
                  LOG_TEXT("why", strerror(errno)));
    buf_clear(&text);
}

void quarantine_write_status(const struct quarantine *q, struct json_out *out,
                             const struct policy_set *policies)
{
    bool any = false;
    struct arena *arena = arena_new();
    for (size_t i = 0; i < q->count; i++) {
        const struct fault *fault = &q->faults[i];
        if (!is_held(policies, fault))
            continue;
        if (!any)
            json_field_open(out, "quarantined", '[');
        any = true;
        json_open(out, '{');
        for (size_t n = 0; n < policy_set_count(policies); n++)
            if (str_eq(policy_set_at(policies, n)->file, fault->stall.file))
                json_field_str(out, "tool", policy_set_at(policies, n)->name);
        json_fields(out, FIELD_STR("file", fault->stall.file),
                    FIELD_STR("why", ARENA_JOIN(arena, fault->how_often,
                                                STR_LIT(", so it does not run, and its tool's calls fail"))),
                    FIELD_TEXT("fix", QUARANTINE_FIX), FIELD_TEXT("list", q->path));
        json_close(out, '}');
    }
    if (any)
        json_close(out, ']');
    arena_free(arena);
}

/* ---- what confined processes cannot read: upstream/confine/confine.c hides it. A path that a policy
 * computes is not found ---- */

#define POLICY_TEXT_BYTES 1048576u /* the rest of a longer policy is not searched */

struct hidden {
    struct arena *arena;
    const char **list;
    size_t count;
};

static void hide(struct hidden *h, const char *path)
{
    h->list = arena_grow(h->arena, h->list, h->count, sizeof(*h->list));
    h->list[h->count++] = path;
}

static void hide_files_in(struct hidden *h, struct str text)
{
    struct str before, path;
    while (upstream_spec_next_file(&text, &before, &path))
        hide(h, arena_dup(h->arena, path).at);
}

static void hide_pairs(struct hidden *h, const struct name_values *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        hide_files_in(h, pairs->list[i].value);
}

static void hide_policies(struct hidden *h, const char *folder)
{
    DIR *dir = opendir(folder);
    hide(h, folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct str text;
        size_t len = strlen(entry->d_name);
        const char *path = arena_printf(h->arena, "%s/%s", folder, entry->d_name).at;
        if (entry->d_type == DT_LNK)
            hide(h, path);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".lua") == 0 &&
            file_read(h->arena, path, POLICY_TEXT_BYTES, &text, NULL) == OK)
            hide_files_in(h, text);
    }
    if (dir)
        closedir(dir);
}

void hidden_paths_apply(struct loop *loop, const struct config *config, const char *const *more, size_t count)
{
    struct hidden h = {.arena = arena_new()};
    const char *const own[] = {config->socket,
                               config->file,
                               config->schemas,
                               config->ledger_password_file,
                               config->metrics.token_file,
                               config->log_file,
                               state_dir_folder(h.arena, config),
                               state_dir_decisions(h.arena, config),
                               "/etc/shadow",
                               "/etc/shadow-",
                               "/etc/gshadow",
                               "/etc/gshadow-"};
    const struct path_list *lists[] = {&config->tools, &config->mcp_configs};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        hide(&h, own[i]);
    for (size_t i = 0; i < count; i++)
        hide(&h, more[i]);
    hide_policies(&h, config->policies ? config->policies : CONFIG_DEFAULT_FOLDER);
    for (size_t i = 0; i < 2; i++)
        for (size_t n = 0; n < lists[i]->count; n++)
            hide(&h, lists[i]->list[n]);
    if (config->ledger_redis)
        hide_files_in(&h, str_of(config->ledger_redis));
    hide_files_in(&h, config->traces.endpoint);
    hide_pairs(&h, &config->traces.headers);
    for (size_t i = 0; i < config->upstream_count; i++) {
        const struct upstream_spec *spec = config->upstreams[i];
        for (size_t n = 0; n < spec->argc; n++)
            hide_files_in(&h, spec->argv[n]);
        hide_pairs(&h, &spec->env);
        hide_pairs(&h, &spec->headers);
        hide_files_in(&h, spec->url);
        hide_files_in(&h, spec->cwd);
    }
    confine_hide(loop, h.list, h.count);
    arena_free(h.arena);
}

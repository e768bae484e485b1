/*
 * The table in memory, its file, what a generation or a prompt adds to it, and accepting. Every change reads
 * the file first, under the lock, so that two daemons on one folder keep what the other has accepted.
 */
#include "catalog/pins_internal.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "io/file.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define PINS_FILE_MAX_BYTES 67108864u    /* the file that is read */
#define PINS_FORGET_MS      7776000000ll /* a tool that was not offered for 90 days loses its pin */
#define PINS_GONE_MAX_BYTES 2097152u /* of one upstream, with 256 for each pin; the oldest are forgotten */
#define PINS_LOCK_TRIES     50u      /* of 1 ms, while another daemon on this folder writes */
#define PINS_WRITE_MS       1000u    /* from the first text of a prompt until the file has it, with others */
#define PINS_LOGGED_MAX     20u      /* log lines about one generation; the rest is counted */
#define WITNESS_MAX_BYTES   65536u
#define PINS_VERSION        1

struct str pin_definition_text(struct arena *arena, const struct json *definition)
{
    /* Those that catalog/definition.c passes on, and the name; then those of prompts, resources and
     * instructions, where annotations say when a resource was last changed. */
    static const char *const names[] = {
        "name",  "title",     "description", "inputSchema", "outputSchema", "annotations", "icons",
        "_meta", "arguments", "uri",         "uriTemplate", "mimeType",     "text"};
    bool is_tool = json_get_text(definition, "inputSchema");
    struct json_member members[sizeof(names) / sizeof(names[0])];
    struct buf text = buf_in(arena);
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct json *value = json_get_text(definition, names[i]);
        if (value && (is_tool || strcmp(names[i], "annotations") != 0))
            members[count++] = json_member(str_of(names[i]), *value);
    }
    struct json pinned = json_object(arena, members, count);
    json_canonical(&text, &pinned);
    return buf_view(&text);
}

struct pin_digest pin_digest_of(struct str text)
{
    uint8_t bytes[SHA256_BYTES];
    struct pin_digest digest;
    sha256(text, bytes);
    for (unsigned i = 0; i < PIN_DIGEST_DIGITS / 2; i++)
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    return digest;
}

bool pin_digest_equal(const struct pin_digest *a, const struct pin_digest *b)
{
    return memcmp(a->hex, b->hex, PIN_DIGEST_DIGITS) == 0;
}

/* ---- the table -------------------------------------------------------------- */

struct str pin_key(struct arena *arena, struct str upstream, struct str tool)
{
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(tool));
}

static struct pins_table table_new(void)
{
    struct arena *arena = arena_new();
    return (struct pins_table){.arena = arena, .by_key = map_new(arena)};
}

void *pin_get(const struct map *map, struct str upstream, struct str tool)
{
    struct arena *arena = arena_new();
    void *found = map_get(map, pin_key(arena, upstream, tool));
    arena_free(arena);
    return found;
}

static void table_put(struct pins_table *table, const struct pin *pin)
{
    struct pin copy = {.upstream = arena_dup(table->arena, pin->upstream),
                       .tool = arena_dup(table->arena, pin->tool),
                       .text = arena_dup(table->arena, pin->text),
                       .digest = pin->digest,
                       .gone_ms = pin->gone_ms,
                       .unwritten = pin->unwritten};
    struct pin *old = pin_get(table->by_key, pin->upstream, pin->tool);
    if (old) {
        *old = copy;
        return;
    }
    table->list = arena_grow(table->arena, table->list, table->count, sizeof(*table->list));
    struct pin *added = table->list[table->count++] = ARENA_NEW(table->arena, struct pin);
    *added = copy;
    map_add(table->by_key, pin_key(table->arena, copy.upstream, copy.tool), added);
}

#define LONG_GONE_MS 1 /* since 1970: to be forgotten */

static bool is_forgotten(const struct pin *pin, int64_t now)
{
    return pin->gone_ms && now - pin->gone_ms > PINS_FORGET_MS;
}

/* Without those that were gone for long; the memory of replaced texts goes, too. */
static void compact_table(struct pins_table *table)
{
    struct pins_table kept = table_new();
    int64_t now = clock_wall_ms();
    for (size_t i = 0; i < table->count; i++)
        if (!is_forgotten(table->list[i], now))
            table_put(&kept, table->list[i]);
    arena_free(table->arena);
    *table = kept;
}

struct pin *pins_find(const struct pins *pins, struct str upstream, struct str tool)
{
    return pin_get(pins->table.by_key, upstream, tool);
}

/* ---- the file ---------------------------------------------------------------
 * {"version":1,"pins":[{"upstream","tool","digest","gone_ms"?,"definition"}]}, replaced as a whole. Several
 * daemons may share it: each reads it again if another has written it, and writes under a lock. */

static enum err read_table(const char *path, struct pins_table *table, struct why *why)
{
    struct arena *arena = arena_new();
    struct json file;
    int64_t version = 0;
    enum err err = file_check_private(path, why);
    if (!err)
        err = json_read_file(arena, path, PINS_FILE_MAX_BYTES, &file, why);
    const struct json *list = err ? NULL : json_get_text(&file, "pins");
    json_int(err ? NULL : json_get_text(&file, "version"), &version);
    if (!err && (version != PINS_VERSION || !json_is(list, JSON_ARRAY)))
        err = err_set(why, ERR_PARSE, "%s: expected pins of version %d", path, PINS_VERSION);
    for (uint32_t i = 0; !err && i < list->len; i++) {
        const struct json *item = &list->items[i];
        struct str digest = json_str(json_get_text(item, "digest"));
        struct pin pin = {.upstream = json_str(json_get_text(item, "upstream")),
                          .tool = json_str(json_get_text(item, "tool")),
                          .text = json_str(json_get_text(item, "definition"))};
        json_int(json_get_text(item, "gone_ms"), &pin.gone_ms);
        pin.digest = pin_digest_of(pin.text);
        if (pin.upstream.len && pin.tool.len && str_is(digest, pin.digest.hex))
            table_put(table, &pin);
        else
            err =
                err_set(why, ERR_PARSE, "%s: pin %u does not have the digest of its definition", path, i + 1);
    }
    arena_free(arena);
    return err;
}

void pins_refresh(struct pins *pins)
{
    const struct stat *read = &pins->read;
    struct stat now;
    if (lstat(pins->path, &now) != 0) { /* removed under a running daemon, which loses nothing */
        if (pins->table.count && !pins->dirty)
            log_event(LOG_ERROR, "pins_lost", LOG_TEXT("file", pins->path), LOG_TEXT("why", "it was removed"),
                      LOG_TEXT("effect", "the daemon writes it again from what it has in memory"));
        pins->dirty |= pins->table.count > 0;
        return;
    }
    if (now.st_ino == read->st_ino && now.st_dev == read->st_dev && now.st_size == read->st_size &&
        now.st_mtim.tv_sec == read->st_mtim.tv_sec && now.st_mtim.tv_nsec == read->st_mtim.tv_nsec)
        return;
    struct pins_table table = table_new();
    pins->read = now;
    pins->broken = read_table(pins->path, &table, &pins->why) != OK;
    if (pins->broken) {
        arena_free(table.arena); /* what is in memory, if anything, is what was accepted */
        log_event(LOG_ERROR, "pins_unreadable", LOG_TEXT("file", pins->path),
                  LOG_TEXT("why", pins->why.text));
        return;
    }
    for (size_t i = 0; i < pins->table.count; i++) {
        const struct pin *pin = pins->table.list[i];
        if (pin->unwritten && !pin_get(table.by_key, pin->upstream, pin->tool))
            table_put(&table, pin);
    }
    arena_free(pins->table.arena);
    pins->table = table;
}

static int lock_file(const struct pins *pins, struct why *why)
{
    char path[PATH_MAX];
    const struct timespec pause = {.tv_nsec = 1000000};
    snprintf(path, sizeof(path), "%s.lock", pins->path);
    int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0) {
        err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
        return -1;
    }
    for (unsigned i = 0; i < PINS_LOCK_TRIES; i++) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return lock;
        nanosleep(&pause, NULL);
    }
    close(lock);
    err_set(why, ERR_IO, "%s: another daemon holds it", path);
    return -1;
}

static struct str read_witness(const struct pins *pins, struct arena *arena)
{
    struct str text = STR_NONE;
    struct why why;
    return file_check_private(pins->witness, &why) == OK &&
                   file_read(arena, pins->witness, WITNESS_MAX_BYTES, &text, &why) == OK
               ? text
               : STR_NONE;
}

static bool has_line(struct str text, struct str line)
{
    while (text.len)
        if (str_eq(str_split(&text, '\n'), line))
            return true;
    return false;
}

bool pins_had(const struct pins *pins, struct str upstream)
{
    struct arena *arena = arena_new();
    bool had = has_line(read_witness(pins, arena), upstream);
    arena_free(arena);
    return had;
}

/* Names are only added: an upstream that is no longer configured may come back. */
static void write_witness(const struct pins *pins)
{
    struct arena *arena = arena_new();
    struct str before = read_witness(pins, arena);
    struct buf text = buf_in(arena);
    struct why why;
    buf_str(&text, before);
    for (size_t i = 0; i < pins->table.count; i++) {
        struct str name = pins->table.list[i]->upstream;
        if (i && str_eq(name, pins->table.list[i - 1]->upstream)) /* those of one mostly stand together */
            continue;
        if (!has_line(buf_view(&text), name) && text.len + name.len < WITNESS_MAX_BYTES)
            buf_printf(&text, STR_FMT "\n", STR_ARG(name));
    }
    if (text.len != before.len && file_replace(pins->witness, buf_view(&text), true, &why) != OK)
        log_event(LOG_WARN, "pins_witness_not_written", LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", "if the state folder is lost, nobody notices"));
    arena_free(arena);
}

static enum err write_file(struct pins *pins, struct why *why)
{
    struct buf text = {0};
    char broken[PATH_MAX];
    snprintf(broken, sizeof(broken), "%s.broken", pins->path);
    if (pins->broken && rename(pins->path, broken) == 0)
        log_event(LOG_WARN, "pins_set_aside", LOG_TEXT("file", broken));
    struct json_out out = json_out(&text);
    json_open(&out, '{');
    json_field_int(&out, "version", PINS_VERSION);
    json_field_open(&out, "pins", '[');
    for (size_t i = 0; i < pins->table.count; i++) {
        const struct pin *pin = pins->table.list[i];
        buf_byte(&text, '\n');
        json_put_object(&out, FIELD_STR("upstream", pin->upstream), FIELD_STR("tool", pin->tool),
                        FIELD_TEXT("digest", pin->digest.hex),
                        FIELD_IF(pin->gone_ms != 0, FIELD_NUM("gone_ms", pin->gone_ms)),
                        FIELD_STR("definition", pin->text));
    }
    json_close(&out, ']');
    json_close(&out, '}');
    buf_byte(&text, '\n');
    enum err err = file_replace(pins->path, buf_view(&text), true, why);
    buf_clear(&text);
    if (err)
        return err;
    pins->broken = pins->dirty = false;
    for (size_t i = 0; i < pins->table.count; i++)
        pins->table.list[i]->unwritten = false;
    if (lstat(pins->path, &pins->read) != 0)
        pins->read = (struct stat){0};
    write_witness(pins);
    return OK;
}

/* A server whose resources come and go all the time must not grow the file until nobody can read it. */
static bool is_too_much(struct arena *arena, struct map *gone, const struct pin *pin)
{
    size_t *bytes = map_get(gone, pin->upstream);
    if (!bytes) {
        bytes = ARENA_NEW(arena, size_t);
        map_add(gone, pin->upstream, bytes);
    }
    *bytes += pin->text.len + 256;
    return *bytes > PINS_GONE_MAX_BYTES;
}

static void forget_gone(struct pins *pins)
{
    struct arena *arena = arena_new();
    struct map *gone = map_new(arena);
    int64_t now = clock_wall_ms();
    bool forget = false;
    for (size_t i = pins->table.count; i-- > 0;) { /* the newest first */
        struct pin *pin = pins->table.list[i];
        if (pin->gone_ms && is_too_much(arena, gone, pin))
            pin->gone_ms = LONG_GONE_MS;
        forget |= is_forgotten(pin, now);
    }
    arena_free(arena);
    if (!forget)
        return;
    compact_table(&pins->table);
    pins->dirty = true;
}

/* Closes the lock; -1: there is none, for the reason `why`. */
static void write_dirty(struct pins *pins, int lock, struct why *why)
{
    if (pins->dirty && (lock < 0 || write_file(pins, why) != OK))
        log_event(LOG_ERROR, "pins_not_written", LOG_TEXT("why", why->text),
                  LOG_TEXT("effect", "after a restart these definitions are not known"));
    if (lock >= 0)
        close(lock);
}

static void write_texts(void *owner)
{
    struct pins *pins = owner;
    struct why why;
    int lock = lock_file(pins, &why);
    if (lock >= 0)
        pins_refresh(pins);
    forget_gone(pins);
    write_dirty(pins, lock, &why);
}

struct pins *pins_new(struct loop *loop, const char *path, const char *witness_path)
{
    struct pins *pins = alloc_zeroed(sizeof(*pins));
    pins->loop = loop;
    pins->path = path;
    pins->witness = witness_path;
    pins->table = table_new();
    pins_refresh(pins);
    return pins;
}

void pins_free(struct pins *pins)
{
    if (!pins)
        return;
    if (pins->dirty)
        write_texts(pins);
    timer_clear(&pins->write);
    arena_free(pins->table.arena);
    for (size_t i = 0; i < PIN_TEXTS_MAX; i++)
        if (pins->texts[i].arena)
            arena_free(pins->texts[i].arena);
    free(pins);
}

const char *pins_path(const struct pins *pins)
{
    return pins->path;
}

/* ---- a generation went live ----------------------------------------------------- */

static void put_entry(struct pins *pins, const struct pin_entry *entry)
{
    struct arena *arena = arena_new();
    const struct pin pin = {.upstream = entry->upstream,
                            .tool = entry->tool,
                            .text =
                                entry->definition ? pin_definition_text(arena, entry->definition) : STR_NONE,
                            .digest = entry->digest,
                            .unwritten = true};
    table_put(&pins->table, &pin);
    pins->dirty = true;
    arena_free(arena);
}

static void note_vanished(struct pins *pins, const struct pins_review *review)
{
    struct arena *arena = arena_new();
    struct map *listed = map_new(arena);
    for (size_t i = 0; i < review->count; i++)
        map_add(listed, review->entries[i]->upstream, review->entries[i]);
    for (size_t i = 0; i < pins->table.count; i++) {
        struct pin *pin = pins->table.list[i];
        bool offered = pins_review_find(review, pin->upstream, pin->tool) != NULL;
        if (map_get(listed, pin->upstream) && offered != !pin->gone_ms) { /* else it lists nothing just now */
            pin->gone_ms = offered ? 0 : clock_wall_ms();
            pins->dirty = true;
        }
    }
    arena_free(arena);
    forget_gone(pins);
}

/* What waited before with the same text was logged then. */
static void log_pending(const struct pins_review *review, const struct pins_review *before)
{
    size_t logged = 0, more = 0;
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = review->entries[i], *old;
        old = before ? pins_review_find(before, entry->upstream, entry->tool) : NULL;
        bool known = old && pin_is_pending(old) && pin_digest_equal(&old->digest, &entry->digest) &&
                     old->held == entry->held;
        if (!pin_is_pending(entry) || known)
            continue;
        if (logged++ >= PINS_LOGGED_MAX) {
            more++;
            continue;
        }
        log_event(entry->held ? LOG_ERROR : LOG_WARN, "pin_changed", LOG_STR("upstream", entry->upstream),
                  LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("state", pin_state_name(entry->state)),
                  LOG_TEXT("effect",
                           entry->held ? "it is neither listed nor callable" : "it is served all the same"),
                  LOG_TEXT("do", "toolgate pins"));
    }
    if (more)
        log_event(LOG_WARN, "pins_changed", LOG_NUM("more", more), LOG_TEXT("do", "toolgate pins"));
}

static void log_lost(const struct pins *pins, const struct pins_review *review,
                     const struct pins_review *before)
{
    bool holds = review->mode == PINS_CHANGES || review->mode == PINS_ALL;
    for (size_t i = 0; i < review->lost_count; i++) {
        bool known = false;
        for (size_t k = 0; before && k < before->lost_count; k++)
            known |= str_eq(before->lost[k], review->lost[i]);
        if (!known)
            log_event(
                LOG_ERROR, "pins_lost", LOG_STR("upstream", review->lost[i]), LOG_TEXT("file", pins->path),
                LOG_STR("why", review->lost_why),
                LOG_TEXT("effect", holds ? "none of its tools is listed until it is accepted"
                                         : "its tools are trusted as if they were used for the first time"),
                LOG_TEXT("do", "restore the file and restart, or: toolgate pins"));
    }
}

void pins_commit(struct pins *pins, const struct pins_review *review, const struct pins_review *before)
{
    struct why why;
    if (!pins || !review)
        return;
    log_lost(pins, review, before);
    log_pending(review, before);
    int lock = lock_file(pins, &why);
    if (lock >= 0)
        pins_refresh(pins);
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = review->entries[i];
        /* Another daemon may have pinned another text in the meantime: its pin stays. */
        if (entry->state == PIN_FIRST && !pins_find(pins, entry->upstream, entry->tool))
            put_entry(pins, entry);
    }
    for (size_t i = 0; i < review->empty_count; i++)
        if (!pins_find(pins, review->empty[i].upstream, review->empty[i].tool))
            put_entry(pins, &review->empty[i]);
    note_vanished(pins, review);
    write_dirty(pins, lock, &why);
}

/* ---- texts ----
 * They are known only when a client reads them, so their server lists none. Each counts as gone since it was
 * first read, by which forget_gone bounds them: a client may ask for many sets of arguments. */

static struct changed_text *find_text(struct pins *pins, struct str upstream, struct str name)
{
    for (size_t i = 0; i < PIN_TEXTS_MAX; i++)
        if (pins->texts[i].arena && str_eq(pins->texts[i].entry.tool, name) &&
            str_eq(pins->texts[i].entry.upstream, upstream))
            return &pins->texts[i];
    return NULL;
}

/* False: another daemon has pinned one. */
static bool put_first_text(struct pins *pins, const struct pin_entry *entry)
{
    pins_refresh(pins);
    if (pins_find(pins, entry->upstream, entry->tool))
        return false;
    put_entry(pins, entry);
    struct pin *pin = pins_find(pins, entry->upstream, entry->tool);
    pin->gone_ms = clock_wall_ms();
    if (!timer_is_set(&pins->write)) /* a client that reads many texts must not wait for the disk each time */
        timer_set(&pins->write, pins->loop, PINS_WRITE_MS, write_texts, pins);
    return true;
}

bool pins_text_changed(struct pins *pins, struct str upstream, struct str name, const struct json *text)
{
    struct arena *arena = arena_new();
    struct pin_entry entry = {.upstream = arena_dup(arena, upstream),
                              .tool = arena_dup(arena, name),
                              .definition = json_keep(arena, json_copy(arena, text)),
                              .state = PIN_CHANGED};
    entry.digest = pin_digest_of(pin_definition_text(arena, text));
    const struct pin *pin = pins_find(pins, upstream, name);
    bool first = !pin && put_first_text(pins, &entry);
    pin = pins_find(pins, upstream, name);
    bool changed = !first && !pin_digest_equal(&pin->digest, &entry.digest);
    struct changed_text *kept = find_text(pins, upstream, name);
    if (!kept && changed)
        kept = &pins->texts[pins->next_text++ % PIN_TEXTS_MAX];
    if (kept && kept->arena)
        arena_free(kept->arena);
    if (kept)
        *kept = changed ? (struct changed_text){arena, entry} : (struct changed_text){0};
    if (!changed)
        arena_free(arena);
    return changed;
}

/* ---- accept ------------------------------------------------------------------------ */

enum err pins_accept(struct pins *pins, const struct pins_review *review, struct str tool, struct str digest,
                     size_t *count, struct why *why)
{
    bool all = str_is(tool, "*");
    const struct pin_entry *only = NULL;
    struct str own = tool, upstream = str_split(&own, '/'); /* an upstream's name has none */
    *count = 0;
    for (size_t i = 0; i < review->count && !all && !only; i++)
        if (str_eq(review->entries[i]->upstream, upstream) && str_eq(review->entries[i]->tool, own))
            only = review->entries[i];
    for (size_t i = 0; i < review->count && !all && !only; i++)
        if (str_eq(review->entries[i]->published, tool))
            only = review->entries[i];
    if (!all && !only)
        return err_set(why, ERR_NOT_FOUND,
                       "no upstream offers a tool '" STR_FMT "': `toolgate pins` lists them",
                       STR_ARG(str_cut(tool, 128)));
    struct pin_digest shown = only ? only->digest : pins_review_digest(review);
    if (!str_is(digest, shown.hex))
        return err_set(why, ERR_PARSE,
                       "%s " STR_FMT
                       " has the digest %s now, not this one: see what it is with `toolgate pins`, and "
                       "accept that",
                       only ? "tool" : "what waits,", STR_ARG(str_cut(tool, 128)), shown.hex);
    if (only && !pin_is_pending(only))
        return OK;
    int lock = lock_file(pins, why);
    if (lock < 0)
        return ERR_IO;
    pins_refresh(pins);
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = review->entries[i];
        if (!pin_is_pending(entry) || (only && entry != only))
            continue;
        /* The vanished tool that it replaces is gone for good. */
        struct pin *was =
            entry->state == PIN_RENAMED ? pins_find(pins, entry->upstream, entry->was_tool) : NULL;
        if (was)
            was->gone_ms = LONG_GONE_MS;
        put_entry(pins, entry);
        log_event(LOG_INFO, "pin_accepted", LOG_STR("upstream", entry->upstream),
                  LOG_STR("tool", str_cut(entry->tool, 128)), LOG_TEXT("digest", entry->digest.hex));
        ++*count;
    }
    compact_table(&pins->table);
    enum err err = write_file(pins, why);
    close(lock);
    return err;
}

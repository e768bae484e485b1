/*
 * The file of the pins: {"version":1,"pins":[{"upstream","tool","digest","gone_ms"?,"definition"}]}, replaced
 * as a whole. Several daemons may share it: each reads it again if another has written it, and writes under a
 * lock.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/file.h"
#include "json/parse.h"
#include "json/write.h"
#include "catalog/pins_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define WITNESS_MAX_BYTES 65536u
#define PINS_VERSION      1

static bool read_pin(const struct json *item, struct pin *pin)
{
    struct str digest = json_str(json_get_text(item, "digest"));
    *pin = (struct pin){.upstream = json_str(json_get_text(item, "upstream")),
                        .tool = json_str(json_get_text(item, "tool")),
                        .text = json_str(json_get_text(item, "definition"))};
    json_int(json_get_text(item, "gone_ms"), &pin->gone_ms);
    if (!pin->upstream.len || !pin->tool.len || digest.len != PIN_DIGEST_DIGITS)
        return false;
    pin->digest = pin_digest_of(pin->text);
    return memcmp(pin->digest.hex, digest.at, digest.len) == 0;
}

static enum err read_table(const char *path, struct pins_table *table, struct why *why)
{
    struct arena *arena = arena_new();
    struct json file;
    struct pin pin;
    int64_t version = 0;
    enum err err = file_check_private(path, why);
    if (!err)
        err = json_read_file(arena, path, PINS_FILE_MAX_BYTES, &file, why);
    const struct json *list = err ? NULL : json_get_text(&file, "pins");
    json_int(err ? NULL : json_get_text(&file, "version"), &version);
    if (!err && (version != PINS_VERSION || !json_is(list, JSON_ARRAY)))
        err = err_set(why, ERR_PARSE, "%s: expected pins of version %d", path, PINS_VERSION);
    for (uint32_t i = 0; !err && i < list->len; i++) {
        if (read_pin(&list->items[i], &pin))
            pins_table_put(table, &pin);
        else
            err =
                err_set(why, ERR_PARSE, "%s: pin %u does not have the digest of its definition", path, i + 1);
    }
    arena_free(arena);
    return err;
}

void pins_file_refresh(struct pins *pins)
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
    struct pins_table table = pins_table_new();
    pins->read = now;
    pins->broken = read_table(pins->path, &table, &pins->why) != OK;
    if (pins->broken) {
        arena_free(table.arena); /* what is in memory, if anything, is what was accepted */
        log_event(LOG_ERROR, "pins_unreadable", LOG_TEXT("file", pins->path),
                  LOG_TEXT("why", pins->why.text));
        return;
    }
    arena_free(pins->table.arena);
    pins->table = table;
}

int pins_file_lock(const struct pins *pins, struct why *why)
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

void pins_file_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

static void write_pins(struct buf *text, const struct pins_table *table)
{
    struct json_out out = json_out(text);
    json_open(&out, '{');
    json_field_int(&out, "version", PINS_VERSION);
    json_field_open(&out, "pins", '[');
    for (size_t i = 0; i < table->count; i++) {
        const struct pin *pin = table->list[i];
        buf_byte(text, '\n');
        json_open(&out, '{');
        json_field_str(&out, "upstream", pin->upstream);
        json_field_str(&out, "tool", pin->tool);
        json_field_text(&out, "digest", pin->digest.hex);
        if (pin->gone_ms)
            json_field_int(&out, "gone_ms", pin->gone_ms);
        json_field_str(&out, "definition", pin->text);
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_close(&out, '}');
    buf_byte(text, '\n');
}

struct str pins_file_witness(const struct pins *pins, struct arena *arena)
{
    struct str text = STR_NONE;
    struct why why;
    return file_check_private(pins->witness, &why) == OK &&
                   file_read(arena, pins->witness, WITNESS_MAX_BYTES, &text, &why) == OK
               ? text
               : STR_NONE;
}

bool pins_file_has_line(struct str text, struct str line)
{
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        if (str_eq((struct str){text.at, len}, line))
            return true;
        text = str_from(text, len + 1);
    }
    return false;
}

/* Names are only added: an upstream that is no longer configured may come back. */
static void write_witness(const struct pins *pins)
{
    struct arena *arena = arena_new();
    struct str before = pins_file_witness(pins, arena);
    struct buf text = buf_in(arena);
    struct why why;
    buf_str(&text, before);
    for (size_t i = 0; i < pins->table.count; i++) {
        struct str name = pins->table.list[i]->upstream;
        if (!pins_file_has_line(buf_view(&text), name) && text.len + name.len < WITNESS_MAX_BYTES)
            buf_printf(&text, STR_FMT "\n", STR_ARG(name));
    }
    if (text.len != before.len && file_replace(pins->witness, buf_view(&text), true, &why) != OK)
        log_event(LOG_WARN, "pins_witness_not_written", LOG_TEXT("why", why.text),
                  LOG_TEXT("effect", "if the state folder is lost, nobody notices"));
    arena_free(arena);
}

enum err pins_file_write(struct pins *pins, struct why *why)
{
    struct buf text = {0};
    char broken[PATH_MAX];
    snprintf(broken, sizeof(broken), "%s.broken", pins->path);
    if (pins->broken && rename(pins->path, broken) == 0)
        log_event(LOG_WARN, "pins_set_aside", LOG_TEXT("file", broken));
    write_pins(&text, &pins->table);
    enum err err = file_replace(pins->path, buf_view(&text), true, why);
    buf_clear(&text);
    if (err)
        return err;
    pins->broken = pins->dirty = false;
    if (lstat(pins->path, &pins->read) != 0)
        pins->read = (struct stat){0};
    write_witness(pins);
    return OK;
}

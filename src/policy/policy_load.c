/*
 * Files to policies. All files are read and run before the first complaint is
 * handed over, so that an operator mends them together. A file is compiled,
 * searched for names that do not exist, run, read, and settled: from then on
 * nothing of it changes.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "json/parse.h"
#include "sandbox/bridge.h"
#include "sandbox/bridge_origins.h"
#include "sandbox/bytecode.h"
#include "sandbox/deadline.h"
#include "sandbox/diagnostics.h"
#include "policy/declare/declare.h"
#include "policy/policy_internal.h"
#include "policy/source_location.h"
#include "policy/static_check.h"
#include "policy/outcome.h"
#include "sandbox/freeze.h"
#include "io/file.h"
#include "policy/vocabulary/vocabulary.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define POLICY_FILES_MAX 100000u

/* ---- faults ------------------------------------------------------------------------- */

static void add_fault(struct policy_load_errors *faults, struct str text)
{
    struct str *list = ARENA_ARRAY(faults->arena, struct str, faults->count + 1);
    if (faults->count)
        memcpy(list, faults->list, faults->count * sizeof(*list));
    list[faults->count++] = arena_dup(faults->arena, text);
    faults->list = list;
}

static void complain(struct policy_load_errors *faults, const char *text)
{
    struct str rest = str_of(text);
    do
        add_fault(faults, diagnostics_next(&rest));
    while (rest.len);
}

/* ---- the set -------------------------------------------------------------------------- */

static struct policy_set *set_new(const struct policy_set_options *options)
{
    struct arena *arena = arena_new();
    struct policy_set *set = ARENA_NEW(arena, struct policy_set);
    set->arena = set->files.arena = arena;
    set->examples = arena_new();
    if (options)
        set->options = *options;
    if (!set->options.deadline_ms)
        set->options.deadline_ms = POLICY_DEADLINE_MS;
    if (!set->options.memory_kb)
        set->options.memory_kb = POLICY_MEMORY_KB;
    set->by_name = map_new(arena);
    set->prepare_tools.ref = HOOK_NONE;
    set->sandbox = sandbox_new(set->options.memory_kb, vocabulary_open);
    return set;
}

void policy_set_free(struct policy_set *set)
{
    if (!set)
        return;
    sandbox_free(set->sandbox);
    arena_free(set->examples);
    arena_free(set->arena);
}

static void make_room(struct policy_set *set, size_t files)
{
    set->list = ARENA_ARRAY(set->arena, struct policy *, files + 1);
}

const struct policy *policy_set_find(const struct policy_set *set, struct str tool)
{
    return map_get(set->by_name, tool);
}

/* `list` has room for one policy a file. */
static enum err add_policy(struct policy_set *set, struct policy *policy, struct why *why)
{
    const struct policy *twin = policy_set_find(set, policy->name);
    if (twin)
        return err_set(why, ERR_POLICY, STR_FMT ": tool \"" STR_FMT "\" is declared in " STR_FMT " already",
                       STR_ARG(policy->file), STR_ARG(policy->name), STR_ARG(twin->file));
    map_add(set->by_name, policy->name, policy);
    set->list[set->count++] = policy;
    return OK;
}

/* ---- one file ----------------------------------------------------------------------------- */

struct reading {
    struct declaration d;
    struct diagnostics complaints;
};

/* One value is the policy; a second one would be nobody's. */
static void check_returned(lua_State *L, int count, const struct bytecode *code, const char *file)
{
    if (count > 1)
        luaL_error(L, "%s:%d: expected the file to return one value, its tool or gateway, got %d",
                   sandbox_chunk(file), bytecode_line(code, code->count - 1), count);
    lua_settop(L, 2);
}

/* Fields of `call` that the hooks of the declaration at `at` read. */
static void check_hooks(lua_State *L, int at, struct diagnostics *complaints)
{
    lua_getfield(L, at, "fields");
    for (int i = 0; i <= HOOK_COUNT; i++) {
        lua_pushstring(L, i < HOOK_COUNT ? outcome_hook_name((enum policy_hook)i) : "prepare_tools");
        lua_rawget(L, -2);
        if (lua_isfunction(L, -1))
            static_check_call(L, bytecode_read(L, -1, complaints->arena), complaints);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* The file's environment is at 1, what it returned at 2. */
static void load_step(lua_State *L, void *context)
{
    struct reading *r = context;
    struct diagnostics *complaints = &r->complaints;
    r->d.L = L;
    word_json_release(L);
    sandbox_load(L, r->d.source, r->d.file.at);
    const struct bytecode *code = bytecode_read(L, 1, complaints->arena);
    static_check_file(L, code, complaints);
    diagnostics_raise(L, complaints);
    lua_getfenv(L, 1);
    lua_insert(L, 1);
    lua_call(L, 0, LUA_MULTRET);
    check_returned(L, lua_gettop(L) - 1, code, r->d.file.at);
    declare_read(&r->d, 2);
    lua_settop(L, 2);
    check_hooks(L, 2, complaints);
    freeze_file(L, code, 1, 2, complaints);
    diagnostics_raise(L, complaints);
    word_json_release(L);
}

/* Those that hold are kept for whoever asks which do. */
static bool has_stalled(struct policy_set *set, struct str file, uint64_t text)
{
    const struct policy_set_options *options = &set->options;
    size_t i = 0;
    while (i < options->stall_count &&
           !(options->stalls[i].text == text && str_eq(options->stalls[i].file, file)))
        i++;
    if (i == options->stall_count)
        return false;
    if (!set->stalls)
        set->stalls = ARENA_ARRAY(set->arena, struct policy_stall, options->stall_count);
    set->stalls[set->stall_count++] = (struct policy_stall){file, text};
    return true;
}

/* What the list looks like to whoever may call it until the file runs again: any object. */
static const struct json *open_schema(struct arena *arena)
{
    struct json *schema = ARENA_NEW(arena, struct json);
    struct json_error fault;
    return json_parse(arena, STR_LIT("{\"type\":\"object\"}"), NULL, schema, &fault) == OK ? schema : NULL;
}

/* It stalled the process before, so nothing of it runs: its name is read from the text, and its calls fail.
 */
static struct policy *blank_quarantined(struct policy_set *set, struct str file, struct str source)
{
    struct str name = location_tool_name(source);
    if (!name.len)
        return NULL;
    struct policy *p = declare_blank(set, arena_dup(set->arena, name), file);
    p->code->quarantined = true;
    p->hooks[HOOK_NORMALISE] = p->hooks[HOOK_CHECK] = true;
    p->hooks[HOOK_RUN] = location_of_field(source, NULL, STR_LIT("run")) != 0;
    if (p->hooks[HOOK_RUN])
        p->schema = open_schema(set->arena);
    return p;
}

static void mix(uint64_t *hash, uint64_t more)
{
    uint64_t both[2] = {*hash, more};
    *hash = hash_stable((struct str){(const char *)both, sizeof(both)}).low;
}

static void keep_hash(struct policy_set *set, uint64_t text, struct policy *policy)
{
    if (policy)
        policy->code->text = text;
    else
        set->gateway_text = text;
}

/* `source` is borrowed. */
static enum err load_source(struct policy_set *set, struct str file, struct str source, struct why *why)
{
    uint64_t text = hash_stable(source).low;
    struct arena *scratch = arena_new();
    struct reading r = {
        .d = {.set = set, .file = file, .source = source, .arena = set->arena, .scratch = scratch},
        .complaints = {.arena = scratch, .file = file.at}};
    struct bridge_origins origins = {.arena = scratch};
    struct sandbox_context now = {.arena = scratch,
                                  .origins = &origins,
                                  .folder = set->folder,
                                  .file = file.at,
                                  .source = source,
                                  .source_hash = text,
                                  .loading = true,
                                  .files = &set->files};
    enum err err = OK;
    mix(&set->hash, hash_stable(file).low);
    mix(&set->hash, text);
    if (has_stalled(set, file, text)) {
        r.d.policy = blank_quarantined(set, file, source);
    } else {
        err = sandbox_run(set->sandbox, SANDBOX_LOAD_DEADLINE_MS, &now, load_step, &r, why);
        if (err == OK)
            keep_hash(set, text, r.d.policy);
    }
    if (err == OK && r.d.policy)
        err = add_policy(set, r.d.policy, why);
    arena_free(scratch);
    return err;
}

enum err policy_set_load_string(struct str name, struct str source, const struct policy_set_options *options,
                                struct policy_set **out, struct policy_load_errors *faults)
{
    struct why why = {""};
    struct policy_set *set = set_new(options);
    *out = NULL;
    make_room(set, 1);
    enum err err = load_source(set, arena_dup(set->arena, name), source, &why);
    if (err != OK) {
        complain(faults, why.text);
        policy_set_free(set);
        return err;
    }
    *out = set;
    return OK;
}

/* ---- a folder --------------------------------------------------------------------------------- */

static bool is_policy_name(const char *name)
{
    size_t len = strlen(name);
    bool spec = len >= 9 && strcmp(name + len - 9, "_spec.lua") == 0; /* an operator's own, for busted */
    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".lua") == 0 && !spec;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Paths of the folder's policies, sorted. */
static enum err list_folder(struct arena *arena, const char *folder, struct str **out, size_t *count,
                            struct why *why)
{
    struct dirent *entry;
    size_t room = 64;
    struct str *list = ARENA_ARRAY(arena, struct str, room);
    DIR *dir = opendir(folder);
    if (!dir)
        return err_set(why, ERR_IO, "%s: expected a folder of policies: %s", folder, strerror(errno));
    *count = 0;
    while ((entry = readdir(dir)) && *count < POLICY_FILES_MAX) {
        if (!is_policy_name(entry->d_name))
            continue;
        if (*count == room) {
            struct str *wider = ARENA_ARRAY(arena, struct str, room * 2);
            memcpy(wider, list, room * sizeof(*list));
            list = wider;
            room *= 2;
        }
        const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
        list[(*count)++] = arena_printf(arena, "%s%s%s", folder, slash, entry->d_name);
    }
    closedir(dir);
    qsort(list, *count, sizeof(*list), by_name);
    *out = list;
    return OK;
}

/* One file stands for itself, with what lies beside it. Returns the folder. */
static const char *list_place(struct arena *arena, const char *place, struct str **out, size_t *count,
                              enum err *err, struct why *why)
{
    struct stat st;
    const char *slash = strrchr(place, '/');
    if (stat(place, &st) != 0 || S_ISDIR(st.st_mode)) {
        *err = list_folder(arena, place, out, count, why);
        return arena_dup(arena, str_of(place)).at;
    }
    *out = ARENA_NEW(arena, struct str);
    **out = arena_dup(arena, str_of(place));
    *count = 1;
    *err = OK;
    return slash ? arena_dup(arena, (struct str){place, (size_t)(slash - place) + 1}).at : ".";
}

/* ---- in steps ---------------------------------------------------------------------------------- */

struct policy_set_loader {
    struct policy_set *set;
    struct policy_load_errors *faults;
    struct str *files;
    size_t count, at;
    enum err worst;
};

static void note_fault(struct policy_set_loader *loading, enum err err, const struct why *why)
{
    complain(loading->faults, why->text);
    loading->worst = err == ERR_IO ? ERR_IO : ERR_POLICY;
}

struct policy_set_loader *policy_set_load_begin(const char *folder, const struct policy_set_options *options,
                                                struct policy_load_errors *faults)
{
    struct policy_set *set = set_new(options);
    struct policy_set_loader *loading = ARENA_NEW(set->arena, struct policy_set_loader);
    struct why why = {""};
    *loading = (struct policy_set_loader){.set = set, .faults = faults};
    if (!folder || !*folder)
        return loading;
    enum err err;
    set->folder = list_place(set->arena, folder, &loading->files, &loading->count, &err, &why);
    if (err == OK)
        make_room(set, loading->count);
    else
        note_fault(loading, err, &why);
    return loading;
}

bool policy_set_load_step(struct policy_set_loader *loading)
{
    struct policy_set *set = loading->set;
    struct str source = STR_NONE;
    struct why why = {""};
    if (loading->at == loading->count)
        return false;
    struct arena *scratch = arena_new();
    struct str file = loading->files[loading->at++];
    enum err err = file_read(scratch, file.at, SANDBOX_SOURCE_MAX_BYTES, &source, &why);
    if (err == OK)
        err = load_source(set, file, source, &why);
    arena_free(scratch);
    if (err != OK)
        note_fault(loading, err, &why);
    return true;
}

enum err policy_set_load_end(struct policy_set_loader *loading, struct policy_set **out)
{
    struct policy_set *set = loading->set;
    enum err worst = loading->worst;
    *out = worst == OK ? set : NULL;
    if (worst != OK)
        policy_set_free(set);
    return worst;
}

enum err policy_set_load(const char *folder, const struct policy_set_options *options,
                         struct policy_set **out, struct policy_load_errors *faults)
{
    struct policy_set_loader *loading = policy_set_load_begin(folder, options, faults);
    while (policy_set_load_step(loading))
        continue;
    return policy_set_load_end(loading, out);
}

/* ---- what is in it -------------------------------------------------------------------------------- */

size_t policy_set_count(const struct policy_set *set)
{
    return set->count;
}

const struct policy *policy_set_at(const struct policy_set *set, size_t index)
{
    return set->list[index];
}

const struct policy_stall *policy_set_stalls(const struct policy_set *set, size_t *count)
{
    *count = set->stall_count;
    return set->stalls;
}

bool policy_set_has_gateway(const struct policy_set *set)
{
    return set->prepare_tools.ref != HOOK_NONE;
}

struct str policy_set_gateway_file(const struct policy_set *set)
{
    return set->gateway_file;
}

struct str policy_set_instructions(const struct policy_set *set)
{
    return set->instructions;
}

uint64_t policy_set_hash(const struct policy_set *set)
{
    return set->hash ^ set->files.hash;
}

/*
 * Modules are loaded in the order in which they require each other, which is read from their tokens: no
 * module runs inside another's load, so each has its own deadline, and its errors and stalls have its own
 * name.
 */
#include "policy/policy_internal.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "io/file.h"
#include "policy/declare.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "sandbox/deadline.h"
#include "sandbox/freeze.h"
#include "sandbox/bytecode.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define FOLDER "lib"
#define PREFIX FOLDER "."

/* ---- the files ---- */

static void add_to_hash(uint64_t *hash, struct str text)
{
    uint64_t both[2] = {*hash, hash_stable(text).low};
    *hash = hash_stable((struct str){(const char *)both, sizeof(both)}).low;
}

bool lua_modules_read(struct policy_set *set, struct why *why)
{
    struct lua_modules *modules = &set->modules;
    struct dirent **entries;
    size_t len = set->folder ? strlen(set->folder) : 0;
    while (len > 1 && set->folder[len - 1] == '/')
        len--;
    if (!len)
        return true;
    const char *folder = arena_printf(set->arena, "%.*s/" FOLDER, (int)len, set->folder).at;
    int count = scandir(folder, &entries, policy_set_is_source, alphasort);
    if (count < 0)
        return true;
    enum err err = OK;
    modules->list = ARENA_ARRAY(set->arena, struct lua_module, LUA_MODULES_MAX);
    if (count > (int)LUA_MODULES_MAX)
        err =
            err_set(why, ERR_LIMIT, "%s: expected at most %u files, got %d", folder, LUA_MODULES_MAX, count);
    for (int i = 0; i < count; i++) {
        struct str stem = {entries[i]->d_name, strlen(entries[i]->d_name) - strlen(".lua")};
        if (err == OK) {
            struct lua_module *m = &modules->list[modules->count++];
            *m = (struct lua_module){.name = arena_printf(set->arena, PREFIX STR_FMT, STR_ARG(stem)),
                                     .file = arena_printf(set->arena, "%s/%s", folder, entries[i]->d_name)};
            err = file_read(set->arena, m->file.at, SANDBOX_SOURCE_MAX_BYTES, &m->source, why);
            m->state = err == OK ? MODULE_UNLOADED : MODULE_BROKEN;
            add_to_hash(&modules->hash, m->name);
            add_to_hash(&modules->hash, m->source);
        }
        free(entries[i]);
    }
    free(entries);
    return err == OK;
}

static struct lua_module *find(const struct policy_set *set, struct str name)
{
    for (size_t i = 0; i < set->modules.count; i++)
        if (str_eq(set->modules.list[i].name, name))
            return &set->modules.list[i];
    return NULL;
}

/* ---- what a source requires ---- */

static bool requires(struct str source)
{
    return source.len && memmem(source.at, source.len, "require", strlen("require"));
}

uint64_t lua_modules_text_hash(const struct policy_set *set, struct str source)
{
    uint64_t hash = hash_stable(source).low;
    if (!set->modules.hash || !requires(source))
        return hash;
    uint64_t both[2] = {hash, set->modules.hash};
    return hash_stable((struct str){(const char *)both, sizeof(both)}).low;
}

/* ---- loading ---- */

struct module_load {
    struct policy_set *set;
    struct lua_module *module;
    struct diagnostics diagnostics;
};

static void load_protected(lua_State *L, void *context)
{
    struct module_load *load = context;
    struct lua_module *m = load->module;
    sandbox_load(L, m->source, m->file.at);
    const struct bytecode *code = bytecode_read(L, 1, load->diagnostics.arena);
    static_check_file(L, code, &load->diagnostics);
    static_check_outcomes(location_tokens(load->diagnostics.arena, m->source), &load->diagnostics);
    diagnostics_raise(L, &load->diagnostics);
    lua_getfenv(L, 1);
    lua_insert(L, 1);
    lua_call(L, 0, LUA_MULTRET);
    bool declares = lua_gettop(L) == 2 && sandbox_mark(L, 2) == MARK_DECLARATION;
    if (declares || lua_gettop(L) != 2 || !lua_istable(L, 2))
        luaL_error(L, "%s:%d: expected the file to return one table of what it shares%s",
                   sandbox_chunk(m->file.at), bytecode_line(code, code->count - 1),
                   declares ? ": a policy belongs beside the folder " FOLDER ", not into it" : "");
    freeze_file(L, 1, 2, m->name.at, &load->diagnostics);
    diagnostics_raise(L, &load->diagnostics);
    m->ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static void run_module(struct policy_set *set, struct lua_module *m, struct policy_load_errors *errors)
{
    struct arena *scratch = arena_new();
    struct module_load load = {
        .set = set, .module = m, .diagnostics = {.arena = scratch, .file = m->file.at}};
    struct lua_module_use use = {.set = set};
    struct sandbox_context context = {.arena = scratch,
                                      .keeps_origins = true,
                                      .folder = set->folder,
                                      .file = m->file.at,
                                      .source = m->source,
                                      .source_hash = lua_modules_text_hash(set, m->source),
                                      .loading = true,
                                      .files = &set->files,
                                      .modules = &use};
    struct why why = {""};
    enum err err = sandbox_run(set->sandbox, SANDBOX_LOAD_DEADLINE_MS, &context, load_protected, &load, &why);
    m->state = err == OK ? MODULE_LOADED : use.stalled ? MODULE_QUARANTINED : MODULE_BROKEN;
    m->wants = declare_wants(location_tokens(scratch, m->source));
    policy_wants_add(&m->wants, &use.wants);
    if (m->state == MODULE_BROKEN)
        policy_set_add_errors(errors, &why);
    arena_free(scratch);
}

/* First what it requires. A name that is computed is found only if it is loaded by then. */
static void load_module(struct policy_set *set, struct lua_module *m, struct policy_load_errors *errors)
{
    if (m->state != MODULE_UNLOADED)
        return;
    m->state = MODULE_LOADING;
    struct arena *scratch = arena_new();
    const struct token *t = location_tokens(scratch, m->source);
    for (size_t i = 0; m->state == MODULE_LOADING && t[i].kind != TOKEN_END; i++) {
        struct token name = t[i + 1 + token_is(t[i + 1], '(')];
        if (t[i].kind != TOKEN_NAME || !str_is(t[i].text, "require") || name.kind != TOKEN_STRING)
            continue;
        struct lua_module *other = find(set, name.text);
        if (other && other->state == MODULE_LOADING) {
            struct why why;
            err_set(&why, ERR_POLICY,
                    STR_FMT
                    ":%d: require \"" STR_FMT
                    "\": the two files need each other: move what both need into a third file of " FOLDER,
                    STR_ARG(m->file), t[i].line, STR_ARG(other->name));
            policy_set_add_errors(errors, &why);
            m->state = MODULE_BROKEN;
        } else if (other) {
            load_module(set, other, errors);
        }
    }
    arena_free(scratch);
    if (m->state == MODULE_BROKEN)
        return;
    if (policy_set_note_stall(set, m->file, lua_modules_text_hash(set, m->source)))
        m->state = MODULE_QUARANTINED;
    else
        run_module(set, m, errors);
}

bool lua_modules_step(struct policy_set *set, struct policy_load_errors *errors, bool *failed)
{
    struct lua_modules *modules = &set->modules;
    if (modules->next == modules->count)
        return false;
    size_t before = errors->count;
    load_module(set, &modules->list[modules->next++], errors);
    *failed |= errors->count > before;
    return true;
}

/* ---- the word ---- */

int lua_modules_require(lua_State *L)
{
    struct lua_module_use *use = sandbox_context(sandbox_of(L))->modules;
    struct str name = sandbox_string(L, 1);
    if (!use)
        return luaL_error(L, "require: files are read while the policy loads: put it at the top of the file");
    if (!str_starts(name, PREFIX) || !str_is_name(str_from(name, strlen(PREFIX))))
        return luaL_error(L,
                          "require: expected \"" PREFIX "NAME\" for the file " FOLDER "/NAME.lua beside the "
                          "policies, NAME being letters, digits, '_' or '-', got %s%s%s: nothing else can be "
                          "required",
                          name.at ? "\"" : "", name.at ? name.at : luaL_typename(L, 1), name.at ? "\"" : "");
    const struct lua_module *m = find(use->set, name);
    if (!m && !use->set->folder)
        return luaL_error(L, "require \"%s\": this policy has no folder with a " FOLDER " beside it",
                          name.at);
    if (!m) {
        struct str names[LUA_MODULES_MAX];
        for (size_t i = 0; i < use->set->modules.count; i++)
            names[i] = use->set->modules.list[i].name;
        struct str meant = suggest_closest(name, names, use->set->modules.count);
        const char *end = meant.len ? lua_pushfstring(L, " (did you mean \"%s\"?)", meant.at)
                                    : ": create it, or remove this line";
        return luaL_error(L, "require \"%s\": there is no file " FOLDER "/%s.lua beside the policies%s",
                          name.at, name.at + strlen(PREFIX), end);
    }
    if (m->state == MODULE_QUARANTINED)
        use->stalled = m;
    if (m->state != MODULE_LOADED)
        return luaL_error(L, "require \"%s\": that file %s", name.at,
                          m->state == MODULE_QUARANTINED
                              ? "is quarantined, as it stalled or crashed the process"
                          : m->state == MODULE_BROKEN ? "does not load"
                                                      : "is not loaded yet: write its name as a string");
    policy_wants_add(&use->wants, &m->wants);
    lua_rawgeti(L, LUA_REGISTRYINDEX, m->ref);
    return 1;
}

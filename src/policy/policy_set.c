/* Files to policies. A file is compiled, checked for names that do not exist, run, read and frozen; nothing
 * of it changes afterwards. */
#include "policy/policy_set.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/suggest.h"
#include "io/file.h"
#include "json/build.h"
#include "policy/declare.h"
#include "policy/source_location.h"
#include "sandbox/deadline.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define POLICY_FILES_MAX 100000u
/* The pause of Lua's collector, in per cent of the live memory: a load leaves much garbage, whose memory
 * stays with the process; hooks leave little. */
#define LOAD_GC_PAUSE 110
#define HOOK_GC_PAUSE 200

#define QUARANTINE_GUARDS_MAX 256u /* names that are read from a file that does not run */

/* Adds the errors in the text, one a line. */
static void add_errors(struct policy_load_errors *errors, const struct why *why)
{
    struct str rest = str_of(why->text);
    do {
        errors->list = arena_grow(errors->arena, errors->list, errors->count, sizeof(*errors->list));
        errors->list[errors->count++] = arena_dup(errors->arena, diagnostics_next(&rest));
    } while (rest.len);
}

static struct policy_set *set_new(const struct policy_set_options *options)
{
    struct arena *arena = arena_new();
    struct policy_set *set = ARENA_NEW(arena, struct policy_set);
    set->arena = set->files.arena = arena;
    set->pool = arena_pool_new(arena);
    set->examples = arena_new();
    if (options)
        set->options = *options;
    if (!set->options.deadline_ms)
        set->options.deadline_ms = POLICY_DEADLINE_MS;
    if (!set->options.memory_kb)
        set->options.memory_kb = POLICY_MEMORY_KB;
    set->by_name = map_new(arena);
    set->gateway = declare_blank(set, STR_LIT("gateway"), STR_NONE);
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

bool policy_guards(const struct policy *policy, struct str tool)
{
    for (size_t i = 0; i < policy->except_count; i++)
        if (str_glob(policy->except[i], tool))
            return false;
    for (size_t i = 0; i < policy->guard_count; i++)
        if (str_glob(policy->guards[i], tool))
            return true;
    return false;
}

size_t policy_set_overlays(const struct policy_set *set, struct str tool, struct arena *arena,
                           const struct policy ***out)
{
    size_t count = 0;
    for (size_t i = 0; i < set->overlay_count; i++) {
        if (!policy_guards(set->overlays[i], tool))
            continue;
        *out = arena_grow(arena, count ? *out : NULL, count, sizeof(**out));
        (*out)[count++] = set->overlays[i];
    }
    return count;
}

/* set->list has room for one policy per file. */
static enum err add_policy(struct policy_set *set, struct policy *policy, struct why *why)
{
    bool is_overlay = policy_is_overlay(policy);
    const struct policy *twin = is_overlay ? NULL : policy_set_find(set, policy->name);
    if (twin)
        return err_set(why, ERR_POLICY, STR_FMT ": tool \"" STR_FMT "\" is declared in " STR_FMT " already",
                       STR_ARG(policy->file), STR_ARG(policy->name), STR_ARG(twin->file));
    policy->position = set->count;
    if (is_overlay) {
        set->overlays = arena_grow(set->arena, set->overlays, set->overlay_count, sizeof(*set->overlays));
        set->overlays[set->overlay_count++] = policy;
    } else {
        map_add(set->by_name, policy->name, policy);
    }
    set->list[set->count++] = policy;
    return OK;
}

size_t policy_set_count(const struct policy_set *set)
{
    return set->count;
}

const struct policy *policy_set_at(const struct policy_set *set, size_t index)
{
    return set->list[index];
}

struct str policy_set_module_file(const struct policy_set *set, size_t index)
{
    return index < set->modules.count ? set->modules.list[index].file : STR_NONE;
}

const struct policy *policy_set_find(const struct policy_set *set, struct str tool)
{
    return map_get(set->by_name, tool);
}

const struct policy_stall *policy_set_stalls(const struct policy_set *set, size_t *count)
{
    *count = set->stall_count;
    return set->stalls;
}

const struct policy *policy_set_gateway(const struct policy_set *set)
{
    return set->gateway;
}

uint64_t policy_set_hash(const struct policy_set *set)
{
    return set->hash ^ set->files.hash;
}

/* ---- modules (policy_internal.h) ---- */

#define FOLDER "lib"
#define PREFIX FOLDER "."

#define SPEC "_spec.lua" /* ends the name of an operator's own file, for busted */

static bool is_spec(const char *name)
{
    size_t len = strlen(name);
    return len >= strlen(SPEC) && strcmp(name + len - strlen(SPEC), SPEC) == 0;
}

/* A *.lua that is not hidden. */
static int is_lua(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t len = strlen(name);
    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".lua") == 0;
}

static int is_source(const struct dirent *entry)
{
    return is_lua(entry) && !is_spec(entry->d_name);
}

static bool read_modules(struct policy_set *set, struct why *why)
{
    struct lua_modules *modules = &set->modules;
    struct dirent **entries;
    size_t len = set->folder ? strlen(set->folder) : 0;
    while (len > 1 && set->folder[len - 1] == '/')
        len--;
    if (!len)
        return true;
    const char *folder = arena_printf(set->arena, "%.*s/" FOLDER, (int)len, set->folder).at;
    int count = scandir(folder, &entries, is_source, alphasort);
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
            hash_add(&modules->hash, hash_stable(m->name).low);
            hash_add(&modules->hash, hash_stable(m->source).low);
        }
        free(entries[i]);
    }
    free(entries);
    return err == OK;
}

static struct lua_module *find_module(const struct policy_set *set, struct str name)
{
    for (size_t i = 0; i < set->modules.count; i++)
        if (str_eq(set->modules.list[i].name, name))
            return &set->modules.list[i];
    return NULL;
}

/* The hash by which a stalled file is known: of its text, and of all modules if it requires any. */
static uint64_t text_hash(const struct policy_set *set, struct str source)
{
    uint64_t hash = hash_stable(source).low;
    if (set->modules.hash && source.len && memmem(source.at, source.len, "require", strlen("require")))
        hash_add(&hash, set->modules.hash);
    return hash;
}

/* ---- one file ---- */

struct file_load {
    struct declaration d;
    struct lua_module *module; /* NULL: a policy */
    struct diagnostics diagnostics;
};

/* The function on top was made by the file whose environment is at 1: one of a module serves other tools,
 * too. */
static bool is_own(lua_State *L)
{
    lua_getfenv(L, -1);
    bool own = lua_rawequal(L, -1, 1);
    lua_pop(L, 1);
    return own;
}

/* Adds what calls of the policy run to the list on top; checks the fields of `call` that its hooks read. */
static void add_functions(lua_State *L, struct policy *policy, struct diagnostics *diagnostics)
{
    const struct policy_code *code = policy->code;
    const struct bytecode *hook;
    int list = lua_gettop(L), count = (int)lua_objlen(L, list);
    for (size_t i = 0; i < HOOK_COUNT + code->rules.test_count; i++) {
        bool is_hook = i < HOOK_COUNT;
        int function = is_hook ? code->hooks[i] : code->rules.tests[i - HOOK_COUNT];
        if (function == HOOK_NONE)
            continue;
        lua_rawgeti(L, LUA_REGISTRYINDEX, function);
        if (is_hook)
            static_check_call(L, hook = bytecode_read(L, -1, diagnostics->arena), diagnostics);
        if (i == HOOK_CHECK && !policy->hooks[HOOK_NORMALISE] && is_own(L)) /* which may add arguments */
            static_check_args(L, hook, policy->set->arena, policy);
        lua_rawseti(L, list, ++count);
    }
}

/* The file's environment is at 1, its return value at 2. */
static void load_protected(lua_State *L, void *context)
{
    struct file_load *load = context;
    struct diagnostics *diagnostics = &load->diagnostics;
    const char *chunk = sandbox_chunk(load->d.file.at);
    load->d.L = L;
    lua_gc(L, LUA_GCSETPAUSE, LOAD_GC_PAUSE);
    sandbox_load(L, load->d.source, load->d.file.at);
    const struct bytecode *code = bytecode_read(L, 1, diagnostics->arena);
    int last = bytecode_line(code, code->count - 1);
    sandbox_check_deadline(L); /* the steps in C are long for a long file, and nothing else stops them */
    static_check_file(L, code, diagnostics);
    sandbox_check_deadline(L);
    static_check_outcomes(load->d.tokens, diagnostics);
    static_check_repeated(load->d.tokens, diagnostics);
    sandbox_check_deadline(L);
    diagnostics_raise(L, diagnostics);
    lua_getfenv(L, 1);
    lua_insert(L, 1);
    lua_call(L, 0, LUA_MULTRET);
    if (load->module) {
        bool declares = lua_gettop(L) == 2 && sandbox_mark(L, 2) == MARK_DECLARATION;
        if (declares || lua_gettop(L) != 2 || !lua_istable(L, 2))
            luaL_error(L, "%s:%d: expected the file to return one table of what it shares%s", chunk, last,
                       declares ? ": a policy belongs beside the folder " FOLDER ", not into it" : "");
        freeze_file(L, 1, 2, load->module->name.at, diagnostics);
        diagnostics_raise(L, diagnostics);
        load->module->ref = luaL_ref(L, LUA_REGISTRYINDEX);
        return;
    }
    if (lua_gettop(L) > 2)
        luaL_error(L, "%s:%d: expected the file to return one value, its tool or gateway, got %d", chunk,
                   last, lua_gettop(L) - 1);
    lua_settop(L, 2);
    declare_read(&load->d, 2);
    lua_newtable(L);
    lua_replace(L, 2);
    lua_settop(L, 2);
    if (load->d.policy)
        add_functions(L, load->d.policy, diagnostics);
    if (load->d.set->gateway->file.at == load->d.file.at)
        add_functions(L, load->d.set->gateway, diagnostics);
    sandbox_check_deadline(L);
    freeze_file(L, 1, 2, NULL, diagnostics);
    diagnostics_raise(L, diagnostics);
}

static enum err run_file(struct file_load *load, struct lua_module_use *use, struct why *why)
{
    struct declaration *d = &load->d;
    struct sandbox_context context = {.arena = d->scratch,
                                      .keeps_origins = true,
                                      .folder = d->set->folder,
                                      .file = d->file.at,
                                      .tokens = d->tokens,
                                      .source_hash = text_hash(d->set, d->source),
                                      .loading = true,
                                      .files = &d->set->files,
                                      .modules = use};
    load->diagnostics = (struct diagnostics){.arena = d->scratch, .file = d->file.at};
    return sandbox_run(d->set->sandbox, SANDBOX_LOAD_DEADLINE_MS, &context, load_protected, load, why);
}

/* True: the file stalled the process before, with the same text. It is then one of the quarantined files. */
static bool note_stall(struct policy_set *set, struct str file, uint64_t text)
{
    const struct policy_set_options *options = &set->options;
    size_t i = 0;
    while (i < options->stall_count &&
           !(options->stalls[i].text == text && str_eq(options->stalls[i].file, file)))
        i++;
    if (i == options->stall_count)
        return false;
    hash_add(&set->hash, text); /* once it runs again, the set is another one */
    if (!set->stalls)
        set->stalls = ARENA_ARRAY(set->arena, struct policy_stall, options->stall_count);
    if (set->stall_count < options->stall_count)
        set->stalls[set->stall_count++] = (struct policy_stall){file, text};
    return true;
}

/* Nothing of the file runs: the tool's name is read from its text, and its calls fail. `stalled`: the file at
 * fault, this one or one that it requires. */
static struct policy *quarantine(struct policy_set *set, struct str file, const struct token *tokens,
                                 struct str stalled)
{
    struct str name = location_tool_name(tokens);
    struct str *guards = ARENA_ARRAY(set->arena, struct str, QUARANTINE_GUARDS_MAX);
    size_t guard_count = 0;
    if (!name.len && !location_guards(tokens, guards, QUARANTINE_GUARDS_MAX, &guard_count))
        return NULL;
    struct policy *p = declare_blank(set, arena_dup(set->arena, name.len ? name : file), file);
    for (size_t i = 0; i < guard_count; i++)
        guards[i] = arena_dup(set->arena, guards[i]);
    p->guards = guards;
    p->guard_count = guard_count;
    p->quarantined = true;
    p->code->stalled = stalled;
    p->hooks[HOOK_NORMALISE] = p->hooks[HOOK_CHECK] = true;
    p->hooks[HOOK_RUN] = location_of_field(tokens, NULL, STR_LIT("run")) != 0;
    if (p->hooks[HOOK_RUN]) { /* a tool needs a schema: any object */
        struct json_member type = json_member(STR_LIT("type"), json_string(STR_LIT("object")));
        p->schema = json_keep(set->arena, json_object(set->arena, &type, 1));
    }
    return p;
}

/* `source` is borrowed. */
static enum err load_source(struct policy_set *set, struct str file, struct str source, struct why *why)
{
    uint64_t text = text_hash(set, source);
    struct lua_module_use use = {.set = set};
    struct arena *scratch = arena_new();
    const struct token *tokens = location_tokens(scratch, source);
    struct file_load load = {.d = {.set = set,
                                   .file = file,
                                   .source = source,
                                   .tokens = tokens,
                                   .arena = set->arena,
                                   .scratch = scratch}};
    enum err err = OK;
    /* Without its folder: daemons on two hosts may have the same policies in different places. */
    const char *slash = memrchr(file.at, '/', file.len);
    hash_add(&set->hash, hash_stable(slash ? str_from(file, (size_t)(slash + 1 - file.at)) : file).low);
    hash_add(&set->hash, text);
    if (note_stall(set, file, text)) {
        load.d.policy = quarantine(set, file, tokens, file);
    } else {
        err = run_file(&load, &use, why);
        if (err != OK && use.stalled) {
            load.d.policy = quarantine(set, file, tokens, use.stalled->file);
            err = OK;
        }
    }
    if (err == OK && load.d.policy) { /* functions that a file requires run as part of its hooks */
        policy_wants_add(&load.d.policy->wants, &use.wants);
    }
    if (err == OK && set->gateway->file.at == file.at) {
        policy_wants_add(&set->gateway->wants, &use.wants);
        set->gateway->source_hash = text;
    }
    if (err == OK && load.d.policy) {
        load.d.policy->source_hash = text;
        if (load.d.policy->mode_given && load.d.policy->mode == POLICY_SHADOW)
            load.d.policy->mode_line = (unsigned)location_of_field(tokens, NULL, STR_LIT("mode"));
        err = add_policy(set, load.d.policy, why);
    }
    arena_free(scratch);
    return err;
}

enum err policy_set_load_string(struct str name, struct str source, const struct policy_set_options *options,
                                struct policy_set **out, struct policy_load_errors *errors)
{
    struct why why = {""};
    struct policy_set *set = set_new(options);
    set->list = ARENA_ARRAY(set->arena, struct policy *, 1);
    enum err err = load_source(set, arena_dup(set->arena, name), source, &why);
    if (err != OK) {
        add_errors(errors, &why);
        policy_set_free(set);
        set = NULL;
    }
    *out = set;
    return err;
}

struct str policy_source(const struct policy *policy, struct arena *arena)
{
    struct str source;
    struct why why;
    enum err err = file_read(arena, policy->file.at, SANDBOX_SOURCE_MAX_BYTES, &source, &why);
    return err == OK ? source : STR_NONE;
}

/* ---- loading modules: in the order in which they require each other, which is read from their tokens. No
 * module runs inside another's load, so each has its own deadline, and its errors and stalls have its own
 * name. ---- */

/* First what it requires. A name that is computed is found only if it is loaded by then. */
static void load_module(struct policy_set *set, struct lua_module *m, struct policy_load_errors *errors)
{
    if (m->state != MODULE_UNLOADED)
        return;
    struct arena *scratch = arena_new();
    const struct token *t = location_tokens(scratch, m->source);
    struct why why = {""};
    struct lua_module_use use = {.set = set};
    struct file_load load = {.d = {.set = set,
                                   .file = m->file,
                                   .source = m->source,
                                   .tokens = t,
                                   .arena = set->arena,
                                   .scratch = scratch},
                             .module = m};
    m->state = MODULE_LOADING;
    for (size_t i = 0; m->state == MODULE_LOADING && t[i].kind != TOKEN_END; i++) {
        struct token name = t[i + 1 + token_is(t[i + 1], '(')];
        if (t[i].kind != TOKEN_NAME || !str_is(t[i].text, "require") || name.kind != TOKEN_STRING)
            continue;
        struct lua_module *other = find_module(set, name.text);
        if (other && other->state == MODULE_LOADING) {
            err_set(&why, ERR_POLICY,
                    STR_FMT
                    ":%d: require \"" STR_FMT
                    "\": the two files need each other: move what both need into a third file of " FOLDER,
                    STR_ARG(m->file), t[i].line, STR_ARG(other->name));
            m->state = MODULE_BROKEN;
        } else if (other) {
            load_module(set, other, errors);
        }
    }
    if (m->state == MODULE_LOADING && note_stall(set, m->file, text_hash(set, m->source))) {
        m->state = MODULE_QUARANTINED;
    } else if (m->state == MODULE_LOADING) {
        enum err err = run_file(&load, &use, &why);
        m->state = err == OK ? MODULE_LOADED : use.stalled ? MODULE_QUARANTINED : MODULE_BROKEN;
        m->wants = declare_wants(t);
        policy_wants_add(&m->wants, &use.wants);
    }
    if (m->state == MODULE_BROKEN)
        add_errors(errors, &why);
    arena_free(scratch);
}

int lua_modules_require(lua_State *L)
{
    struct lua_module_use *use = sandbox_context(L)->modules;
    struct str name = sandbox_string(L, 1);
    if (!use)
        return luaL_error(L, "require: files are read while the policy loads: put it at the top of the file");
    if (!str_starts(name, PREFIX) || !str_is_name(str_from(name, strlen(PREFIX))))
        return luaL_error(L,
                          "require: expected \"" PREFIX "NAME\" for the file " FOLDER "/NAME.lua beside the "
                          "policies, NAME being letters, digits, '_' or '-', got %s%s%s: nothing else can be "
                          "required",
                          name.at ? "\"" : "", name.at ? name.at : luaL_typename(L, 1), name.at ? "\"" : "");
    const struct lua_module *m = find_module(use->set, name);
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

/* ---- the files of a folder ---- */

struct policy_set_loader {
    struct policy_set *set;
    struct policy_load_errors *errors;
    struct str *files;
    size_t count, at;
    enum err worst;
};

/* For one file, the set's folder is the folder of the file. */
static enum err list_files(struct policy_set_loader *loader, const char *path, struct why *why)
{
    struct arena *arena = loader->set->arena;
    struct dirent **entries;
    struct stat st;
    const char *slash = strrchr(path, '/'), *between = path[strlen(path) - 1] == '/' ? "" : "/";
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        loader->files = ARENA_NEW(arena, struct str);
        loader->files[loader->count++] = arena_dup(arena, str_of(path));
        loader->set->folder =
            slash ? arena_dup(arena, (struct str){path, (size_t)(slash - path) + 1}).at : ".";
        return OK;
    }
    int count = scandir(path, &entries, is_lua, alphasort);
    if (count < 0)
        return err_set(why, ERR_IO, "%s: expected a folder of policies: %s", path, strerror(errno));
    loader->files = ARENA_ARRAY(arena, struct str, (size_t)count);
    for (int i = 0; i < count; i++) {
        if (loader->count < POLICY_FILES_MAX)
            loader->files[loader->count++] = arena_printf(arena, "%s%s%s", path, between, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    loader->set->folder = arena_dup(arena, str_of(path)).at;
    return OK;
}

/* A spec is none of the policies, but the policy of a tool "get_spec" must not be taken for one. */
static enum err check_spec(struct str file, struct str source, struct arena *scratch, struct why *why)
{
    if (!location_returns_declaration(location_tokens(scratch, source)))
        return OK;
    return err_set(why, ERR_POLICY,
                   STR_FMT
                   ": it returns a policy, and files that end in " SPEC
                   " are not loaded, as they are specs for busted: rename it, e.g. to %.*s_policy.lua",
                   STR_ARG(file), (int)(file.len - strlen(".lua")), file.at);
}

static void note_error(struct policy_set_loader *loader, enum err err, const struct why *why)
{
    add_errors(loader->errors, why);
    loader->worst = err == ERR_IO ? ERR_IO : ERR_POLICY;
}

struct policy_set_loader *policy_set_load_begin(const char *folder, const struct policy_set_options *options,
                                                struct policy_load_errors *errors)
{
    struct policy_set *set = set_new(options);
    struct policy_set_loader *loader = ARENA_NEW(set->arena, struct policy_set_loader);
    struct why why = {""};
    *loader = (struct policy_set_loader){.set = set, .errors = errors};
    if (!folder || !*folder)
        return loader;
    enum err err = list_files(loader, folder, &why);
    set->list = ARENA_ARRAY(set->arena, struct policy *, loader->count + 1);
    set->by_name = map_new_for(set->arena, loader->count);
    if (err != OK)
        note_error(loader, err, &why);
    else if (!read_modules(set, &why))
        note_error(loader, ERR_POLICY, &why);
    set->hash = set->modules.hash;
    return loader;
}

bool policy_set_load_step(struct policy_set_loader *loader)
{
    struct lua_modules *modules = &loader->set->modules;
    struct str source = STR_NONE;
    struct why why = {""};
    if (modules->next < modules->count) {
        size_t before = loader->errors->count;
        load_module(loader->set, &modules->list[modules->next++], loader->errors);
        if (loader->worst == OK && loader->errors->count > before)
            loader->worst = ERR_POLICY;
        return true;
    }
    if (loader->at == loader->count)
        return false;
    struct arena *scratch = arena_new();
    struct str file = loader->files[loader->at++];
    enum err err = file_read(scratch, file.at, SANDBOX_SOURCE_MAX_BYTES, &source, &why);
    if (err == OK)
        err = is_spec(file.at) ? check_spec(file, source, scratch, &why)
                               : load_source(loader->set, file, source, &why);
    arena_free(scratch);
    if (err != OK)
        note_error(loader, err, &why);
    return true;
}

static void end_load(lua_State *L, void *context)
{
    (void)context;
    lua_gc(L, LUA_GCSETPAUSE, HOOK_GC_PAUSE);
}

enum err policy_set_load_end(struct policy_set_loader *loader, struct policy_set **out)
{
    struct policy_set *set = loader->set;
    enum err worst = loader->worst;
    bool usable = worst == OK || (set->options.skip_broken && loader->count);
    struct sandbox_context context = {.loading = true};
    struct why why;
    sandbox_run(set->sandbox, SANDBOX_LOAD_DEADLINE_MS, &context, end_load, NULL, &why);
    *out = usable ? set : NULL;
    if (!usable)
        policy_set_free(set);
    return worst;
}

enum err policy_set_load(const char *folder, const struct policy_set_options *options,
                         struct policy_set **out, struct policy_load_errors *errors)
{
    struct policy_set_loader *loader = policy_set_load_begin(folder, options, errors);
    while (policy_set_load_step(loader))
        continue;
    return policy_set_load_end(loader, out);
}

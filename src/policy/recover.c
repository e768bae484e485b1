/*
 * A policy that keeps things in the locals of its file fills the memory that
 * all policies of the generation share; collecting gives nothing back then.
 * So the state is thrown away and made anew from the same texts, which takes
 * microseconds a policy, and the others go on.
 */
#include "base/arena.h"
#include "base/log.h"
#include "policy/home.h"
#include "policy/outcome.h"

struct recovering {
    struct policies *home;
    const struct policy_source *source;
};

/* The function of that name in the declared fields on top, for the registry. */
static void renew(lua_State *L, const char *name, struct policy_hook_code *code)
{
    if (code->ref == HOOK_NONE)
        return;
    lua_getfield(L, -1, name);
    if (!lua_isfunction(L, -1))
        luaL_error(L, "'%s' was a function when the file was loaded first", name);
    code->ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static void renew_step(lua_State *L, void *context)
{
    struct recovering *r = context;
    word_json_forget(L);
    sandbox_load(L, r->source->text, r->source->file.at);
    lua_call(L, 0, 1);
    if (sandbox_mark(L, -1) != MARK_DECLARATION)
        luaL_error(L, "the file returned something else than when it was loaded first");
    lua_getfield(L, -1, "fields");
    if (!r->source->policy)
        renew(L, "prepare_tools", &r->home->prepare_tools);
    for (int i = 0; r->source->policy && i < HOOK_COUNT; i++)
        renew(L, outcome_hook_name((enum policy_hook)i), &r->source->policy->code->hooks[i]);
    word_json_forget(L);
}

static enum err renew_all(struct policies *home, struct why *why)
{
    enum err err = OK;
    for (size_t i = 0; i < home->source_count && err == OK; i++) {
        struct recovering r = {home, &home->sources[i]};
        struct sandbox_now now = {.arena = home->arena,
                                  .folder = home->folder,
                                  .file = r.source->file.at,
                                  .text =
                                      r.source->policy ? r.source->policy->code->text : home->gateway_text,
                                  .loading = true,
                                  .files = &home->files};
        err = sandbox_run(home->sandbox, POLICY_LOAD_DEADLINE_MS, &now, renew_step, &r, why);
    }
    return err;
}

/* All references, in a row: into `kept`, or back from there. */
static void copy_references(struct policies *home, struct policy_hook_code *kept, bool back)
{
    for (size_t i = 0; i <= home->count; i++) {
        bool gateway = i == home->count;
        struct policy_hook_code *own = gateway ? &home->prepare_tools : home->list[i]->code->hooks;
        size_t bytes = sizeof(*own) * (gateway ? 1 : HOOK_COUNT);
        if (back)
            memcpy(own, &kept[i * HOOK_COUNT], bytes);
        else
            memcpy(&kept[i * HOOK_COUNT], own, bytes);
    }
}

void policies_recover(struct policies *home, const char *culprit)
{
    struct why why = {""};
    struct arena *scratch = arena_new();
    struct policy_hook_code *kept =
        ARENA_ARRAY(scratch, struct policy_hook_code, (home->count + 1) * HOOK_COUNT);
    struct sandbox *full = home->sandbox, *fresh = sandbox_new(home->options.memory_kb);
    copy_references(home, kept, false);
    home->sandbox = fresh;
    if (renew_all(home, &why) == OK) {
        log_event(LOG_WARN, "policy_memory_renewed", LOG_TEXT("while", culprit));
        sandbox_free(full);
    } else {
        log_event(LOG_ERROR, "policy_memory_full", LOG_TEXT("while", culprit), LOG_TEXT("why", why.text));
        copy_references(home, kept, true);
        home->sandbox = full;
        sandbox_free(fresh);
    }
    arena_free(scratch);
}

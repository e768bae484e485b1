#include "ledger/redis.h"

#include "base/arena.h"
#include "ledger/pack.h"

static void on_ended(struct redis_command *command, enum redis_ended how, const struct redis_value *value,
                     const char *why)
{
    struct redis_job *job = (struct redis_job *)command;
    bool is_text = how == REDIS_ANSWERED && value->kind == REDIS_VALUE_STRING;
    if (how == REDIS_ANSWERED && !is_text)
        job->ended(job, REDIS_REFUSED, STR_NONE, "the answer is no string");
    else
        job->ended(job, how, is_text ? value->string : STR_NONE, why);
}

static void write_run(struct redis_command *command, const struct script_run *run)
{
    redis_command_begin_script(command, run->script, SCRIPT_KEYS, run->arg_count);
    for (size_t i = 0; i < SCRIPT_KEYS; i++)
        redis_command_key(command, run->keys[i]);
    for (size_t i = 0; i < run->arg_count; i++)
        redis_command_word(command, run->args[i]);
}

void redis_job_write(struct redis_job *job, const struct script_run *run)
{
    job->script = run->script;
    write_run(&job->command, run);
}

bool redis_send(struct redis_cluster *redis, struct redis_job *job)
{
    job->command.ended = on_ended;
    return redis_cluster_send(redis, &job->command);
}

static struct str library(struct arena *arena)
{
    struct script_names names;
    return script_library(arena, "", &names);
}

static struct str text(struct arena *arena, size_t script)
{
    return script_text(arena, (enum script)script);
}

static void write_probe(struct redis_command *command, const char *name)
{
    struct arena *arena = arena_new();
    redis_command_begin(command, 5);
    redis_command_word(command, STR_LIT("SET"));
    redis_command_key(command, arena_printf(arena, "tg1:{probe}:%s", name));
    redis_command_word(command, STR_LIT("1"));
    redis_command_word(command, STR_LIT("PX"));
    redis_command_word(command, STR_LIT("1000"));
    arena_free(arena);
}

/* A session that begins, learns of an id and is forgotten. */
static const char *write_trial(struct redis_command *command, size_t i, const char *name)
{
    static const enum script tried[] = {SCRIPT_TURN, SCRIPT_SEE, SCRIPT_RESET};
    const struct pack_options options = {.ttl_s = 1};
    const struct hash128 id = {0};
    if (i >= sizeof(tried) / sizeof(*tried))
        return NULL;
    struct arena *arena = arena_new();
    struct script_run run = {.script = tried[i]};
    for (size_t k = 0; k < SCRIPT_KEYS; k++)
        run.keys[k] = str_of(arena_printf(arena, "tg1:{probe}:%s:%c", name, SCRIPT_KEY_LETTERS[k]).at);
    if (run.script == SCRIPT_TURN)
        pack_turn(&run, 1, STR_LIT("goal"), &options, arena);
    else if (run.script == SCRIPT_SEE)
        pack_see(&run, &id, 1, &options, arena);
    else
        pack_reset(&run, STR_NONE, &options, arena);
    write_run(command, &run);
    arena_free(arena);
    return "a script";
}

static bool is_expected(size_t i, const struct redis_value *value)
{
    (void)i;
    return value->kind == REDIS_VALUE_STRING;
}

struct redis_scripts *redis_old_scripts(void)
{
    static struct redis_scripts scripts = {.count = SCRIPT_COUNT,
                                           .library = library,
                                           .text = text,
                                           .write_probe = write_probe,
                                           .write_trial = write_trial,
                                           .is_expected = is_expected};
    struct arena *arena = arena_new();
    struct script_names names;
    (void)script_library(arena, "", &names);
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        memcpy(scripts.functions[i], names.of[i], SCRIPT_NAME_BYTES);
    arena_free(arena);
    return &scripts;
}

/*
 * The state, its bounds, and the protected call through which all code runs.
 *
 * Past the deadline, the timer sets a hook on every call, return and
 * instruction and leaves it set, so that even a loop around pcall ends: each
 * instruction after the pcall raises again. Jumping out of the signal handler
 * would be undefined, so everything that a hook cannot interrupt is excluded:
 * xpcall, newproxy, coroutines, metatables, load; the pattern functions and
 * table.sort are replaced (string_library.c, libraries.c).
 */
#include "sandbox/sandbox.h"
#include "base/arena.h"
#include "sandbox/bridge.h"
#include "sandbox/bytecode.h"
#include "sandbox/deadline.h"
#include "sandbox/freeze.h"
#include "sandbox/heap.h"
#include "sandbox/libraries.h"

#include <errno.h>
#include <luajit.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES    262144u  /* C stack for nested callbacks */
#define GC_SLACK_BYTES 1048576u /* for the collector itself if the heap is full */

/* ---- the deadline: a process-wide 1 ms timer that runs only while a policy does. It counts the ticks of the
 * running hook; past its budget it sets the hook, and past the watchdog's limit it ends the process and names
 * the file. Signals are process-wide, so this is static state. timer_settime costs 0.7 µs, too much for every
 * call: the first run starts the timer, and it stops itself after 20 ticks without a run. The handlers use
 * only async-signal-safe functions and never jump; lua_sethook is one. ---- */

/* One run, on the stack. */
struct deadline_run {
    sig_atomic_t budget, watchdog; /* in ticks */
    lua_State *L;
    const char *file;     /* that the watchdog names */
    uint64_t source_hash; /* of the file's content, written beside its name */

    volatile sig_atomic_t ticks;
    volatile sig_atomic_t late; /* the budget is used up */
    struct deadline_run *outer; /* the run that contains this one; its ticks stop */
};

static void deadline_hook(lua_State *L, lua_Debug *where);

#define BUILTINS_DEADLINE_MS 10000u /* they are ours and end: only a machine that is too busy is late */

#define TICK_MS    1u
#define IDLE_TICKS 20u /* without a running policy; then the timer stops */

static struct {
    timer_t timer;
    bool made;
    volatile sig_atomic_t armed, idle;
    struct deadline_run *volatile running;
} ticker;

/* ---- the fault record: all but fault_record_open runs in signal handlers, without printf and malloc ---- */

#define HEX_DIGITS               16u
#define FAULT_RECORD_STACK_BYTES 65536u /* for the handler: the usual stack may have overflowed */

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
#define CRASH_SIGNALS (sizeof(crash_signals) / sizeof(crash_signals[0]))

static struct {
    int fd;
    struct sigaction before[CRASH_SIGNALS];
    stack_t stack_before;
} record;

static char handler_stack[FAULT_RECORD_STACK_BYTES] __attribute__((aligned(16)));

static void put(const char *text)
{
    while (write(STDERR_FILENO, text, strlen(text)) < 0 && errno == EINTR)
        continue;
}

/* Says what the policy did to the process, and writes it down in one writev, so that lines of two processes
 * do not mix. */
static void report_fault(const char *message, const char *kind, const struct deadline_run *run)
{
    char hash[HEX_DIGITS], space[] = " ", end[] = "\n";
    uint64_t n = run->source_hash;
    put(message);
    put(run->file);
    put("\n");
    for (size_t i = HEX_DIGITS; i-- > 0; n >>= 4)
        hash[i] = "0123456789abcdef"[n & 15];
    struct iovec parts[] = {{hash, HEX_DIGITS},
                            {space, 1},
                            {(char *)kind, strlen(kind)},
                            {space, 1},
                            {(char *)run->file, strlen(run->file)},
                            {end, 1}};
    while (record.fd > 0 && writev(record.fd, parts, sizeof(parts) / sizeof(parts[0])) < 0 && errno == EINTR)
        continue;
}

/* The signal is delivered once more, to what handled it before: a core dump is of the place of the fault. */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    const struct deadline_run *run = ticker.running;
    (void)context;
    if (run)
        report_fault("toolgate: the process crashed in a policy: ", "crash", run);
    for (size_t i = 0; i < CRASH_SIGNALS; i++)
        if (crash_signals[i] == signo)
            sigaction(signo, &record.before[i], NULL);
    if (info->si_code <= 0) /* sent by kill or raise: nothing repeats it */
        raise(signo);
}

void fault_record_open(int fd)
{
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    bool catches = fd > 0 && record.fd <= 0, stops = fd <= 0 && record.fd > 0;
    sigemptyset(&action.sa_mask);
    if (catches)
        sigaltstack(&stack, &record.stack_before);
    for (size_t i = 0; i < CRASH_SIGNALS && (catches || stops); i++)
        sigaction(crash_signals[i], catches ? &action : &record.before[i],
                  catches ? &record.before[i] : NULL);
    if (stops)
        sigaltstack(&record.stack_before, NULL);
    record.fd = fd;
}

/* ---- the ticker ---- */

static void arm(bool on)
{
    struct itimerspec every = {0};
    if (on)
        every.it_value.tv_nsec = every.it_interval.tv_nsec = TICK_MS * 1000000L;
    ticker.armed = on;
    timer_settime(ticker.timer, 0, &every, NULL);
}

static void on_tick(int signo)
{
    (void)signo;
    int saved = errno;
    struct deadline_run *run = ticker.running;
    if (!run) {
        if (++ticker.idle >= (int)IDLE_TICKS)
            arm(false);
    } else if (++run->ticks >= run->watchdog) {
        report_fault("toolgate: policy stalled past the watchdog, the process ends: ", "stall", run);
        _exit(DEADLINE_STALL_EXIT);
    } else if (run->ticks >= run->budget) {
        run->late = 1;
        lua_sethook(run->L, deadline_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
    }
    errno = saved;
}

/* A child process does not inherit timers. */
static void after_fork(void)
{
    ticker.made = false;
    ticker.armed = 0;
}

static void make_timer(void)
{
    static bool registered;
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    sigemptyset(&act.sa_mask);
    if (sigaction(event.sigev_signo, &act, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &ticker.timer) != 0) {
        perror("toolgate: no timer for the deadline of policies");
        abort();
    }
    if (!registered)
        pthread_atfork(NULL, NULL, after_fork);
    registered = true;
    ticker.made = true;
}

/* ---- the state ---- */

struct sandbox {
    lua_State *L;
    struct heap heap;
    size_t live; /* bytes left by the last full collection */
    const struct sandbox_context *now;
    struct sandbox_frame {
        sandbox_step *step;
        void *context;
        struct deadline_run *run;
        const char *stack; /* the C stack's position at the start of the step */
        struct bridge_run bridge;
    } frame;
    struct bytecode_opcodes opcodes;
    int enter_ref, mark_refs[MARK_COUNT];
    int builtins_ref;             /* the table of builtins */
    int globals_meta_ref;         /* the metatable of a policy's globals, which forwards to the builtins */
    int environment_ref;          /* that of an environment without globals */
    sandbox_line_callback *trace; /* NULL: off */
    void *trace_context;
};

static struct sandbox *sandbox_of(lua_State *L)
{
    void *heap;
    lua_getallocf(L, &heap);
    return (struct sandbox *)((char *)heap - offsetof(struct sandbox, heap));
}

const struct sandbox_context *sandbox_context(lua_State *L)
{
    return sandbox_of(L)->now;
}

struct bridge_run *sandbox_bridge(lua_State *L)
{
    return &sandbox_of(L)->frame.bridge;
}

const struct bytecode_opcodes *sandbox_opcodes(lua_State *L)
{
    return &sandbox_of(L)->opcodes;
}

size_t sandbox_memory_bytes(lua_State *L)
{
    return sandbox_of(L)->heap.cap;
}

static int raise_deadline(lua_State *L)
{
    const struct sandbox *sandbox = sandbox_of(L);
    const char *text = "ran longer than its %d ms (config limits.policy_ms)";
    if (sandbox->now->shares_time)
        text = "ran longer than the %d ms that it may use of the time for a list of tools";
    else if (sandbox->now->loading)
        text = "took longer to load than the %d ms that one file has: compute less at its top, or divide the "
               "file";
    return luaL_error(L, text, (int)sandbox->frame.run->budget);
}

static void deadline_hook(lua_State *L, lua_Debug *where)
{
    (void)where;
    raise_deadline(L);
}

bool sandbox_deadline_passed(struct sandbox *sandbox)
{
    return sandbox->frame.run && sandbox->frame.run->late;
}

void sandbox_check_deadline(lua_State *L)
{
    if (sandbox_deadline_passed(sandbox_of(L)))
        raise_deadline(L);
}

static void trace_hook(lua_State *L, lua_Debug *where)
{
    struct sandbox *sandbox = sandbox_of(L);
    if (lua_getinfo(L, "S", where) && where->source[0] == '@')
        sandbox->trace(sandbox->trace_context, where->source + 1, where->currentline);
}

void sandbox_trace_lines(struct sandbox *sandbox, sandbox_line_callback *trace, void *context)
{
    sandbox->trace = trace;
    sandbox->trace_context = context;
}

void sandbox_check_stack(lua_State *L, const char *function)
{
    const char *here = __builtin_frame_address(0);
    if (here + STACK_BYTES < sandbox_of(L)->frame.stack)
        luaL_error(L, "%s: functions called from within %s are nested too deep", function, function);
}

int sandbox_pcall(lua_State *L)
{
    sandbox_check_stack(L, "pcall");
    luaL_checkany(L, 1);
    luaL_checkstack(L, 1, "too many arguments"); /* for the status */
    bool fine = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == 0;
    lua_pushboolean(L, fine);
    lua_insert(L, 1);
    return lua_gettop(L);
}

int sandbox_error(lua_State *L)
{
    const struct sandbox_context *now = sandbox_of(L)->now;
    int level = (int)luaL_optinteger(L, 2, 1);
    lua_settop(L, 1);
    struct str words = sandbox_string(L, 1);
    if (now->raised) {
        bridge_charge(L, "error", words.len); /* a run may catch any number of them */
        *now->raised = arena_dup(now->arena, words);
    }
    if (lua_isstring(L, 1) && level > 0) {
        luaL_where(L, level);
        lua_insert(L, 1);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int enter(lua_State *L)
{
    struct sandbox *sandbox = sandbox_of(L);
    sandbox->frame.stack = __builtin_frame_address(0);
    sandbox->frame.step(L, sandbox->frame.context);
    return 0;
}

/* LuaJIT cuts a long chunk name on the left; the last component of the path fits. */
const char *sandbox_chunk(const char *file)
{
    const char *slash = strrchr(file, '/');
    return strlen(file) < LUA_IDSIZE - 2 || !slash ? file : slash + 1;
}

/* The error value on top is what `error` was given: usually a string, but any value is possible. */
static void explain_failure(const struct sandbox *sandbox, int status, struct why *why)
{
    lua_State *L = sandbox->L;
    const struct sandbox_context *now = sandbox->now;
    const char *chunk = sandbox_chunk(now->file);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    char place[32] = "";
    const char *builtins = SANDBOX_BUILTINS_CHUNK + 1; /* without the = */
    if (text && str_starts(str_of(text), builtins) &&
        strstr(text, ": ")) /* a line that no operator can look up */
        text = strstr(text + strlen(builtins), ": ") + 2;
    if (now->hook)
        snprintf(place, sizeof(place), ":%d: %s", now->hook_line, now->hook);
    if (status == LUA_ERRMEM)
        err_set(why, ERR_POLICY,
                "%s%s: out of memory: all policies together may use %zu KB (config limits.policy_kb)",
                now->file, place, sandbox->heap.cap / 1024);
    else if (!text)
        err_set(why, ERR_POLICY, "%s%s: the error raised is a %s: error(…) takes a string", now->file, place,
                luaL_typename(L, -1));
    else if (str_starts(str_of(text), chunk))
        err_set(why, ERR_POLICY, "%.*s%s", (int)(chunk - now->file), now->file, text);
    else
        err_set(why, ERR_POLICY, "%s%s: %s", now->file, place, text);
}

/* Collects garbage after a failed allocation, as LuaJIT does not and the next call would fail too. Otherwise
 * (`failed` false) only if garbage fills more than half of the memory that is not live: Lua's collector is
 * driven by allocations, so a call with a few large strings may leave the next one, of any policy, with
 * none. */
static void collect_garbage(struct sandbox *sandbox, bool failed)
{
    struct heap *heap = &sandbox->heap;
    size_t free_bytes = heap->cap > sandbox->live ? heap->cap - sandbox->live : 0;
    if (!failed && (heap->used <= sandbox->live || heap->used - sandbox->live <= free_bytes / 2))
        return;
    heap->gc_slack = GC_SLACK_BYTES;
    lua_gc(sandbox->L, LUA_GCCOLLECT, 0);
    heap->gc_slack = 0;
    sandbox->live = heap->used;
}

enum err sandbox_run(struct sandbox *sandbox, uint32_t budget_ms, const struct sandbox_context *now,
                     sandbox_step *step, void *context, struct why *why)
{
    lua_State *L = sandbox->L;
    struct deadline_run run = {.outer = ticker.running,
                               .budget = (int)budget_ms,
                               .watchdog = (int)(budget_ms + SANDBOX_WATCHDOG_MS),
                               .L = L,
                               .file = now->file,
                               .source_hash = now->source_hash};
    struct sandbox_frame outer = sandbox->frame;
    uint64_t failures = sandbox->heap.failures;
    int top = lua_gettop(L);
    sandbox->frame = (struct sandbox_frame){.step = step, .context = context, .run = &run};
    sandbox->now = now;
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->enter_ref);
    if (sandbox->trace)
        lua_sethook(L, trace_hook, LUA_MASKLINE, 0);
    if (!ticker.made)
        make_timer();
    ticker.running = &run; /* before `armed` is read: from here on the handler does not disarm */
    ticker.idle = 0;
    if (!ticker.armed)
        arm(true);
    int status = lua_pcall(L, 0, 0, 0);
    ticker.running = run.outer;
    if (run.late || sandbox->trace)
        lua_sethook(L, NULL, 0, 0);
    struct str text = status == LUA_ERRRUN ? sandbox_string(L, -1) : STR_NONE;
    struct str raised = now->raised ? *now->raised : STR_NONE;
    if (raised.len &&
        (text.len < raised.len || memcmp(text.at + text.len - raised.len, raised.at, raised.len) != 0))
        *now->raised = STR_NONE; /* the run caught that one, and ended otherwise */
    if (status != 0)
        explain_failure(sandbox, status, why);
    lua_settop(L, top);
    if (sandbox->frame.bridge.recorded)
        bridge_release(L);
    if (sandbox->heap.failures != failures || !outer.run)
        collect_garbage(sandbox, sandbox->heap.failures != failures);
    sandbox->frame = outer;
    return status == 0 ? OK : run.late ? ERR_TIMEOUT : ERR_POLICY;
}

void sandbox_push_mark(lua_State *L, enum mark mark)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox_of(L)->mark_refs[mark]);
}

void sandbox_set_mark(lua_State *L, enum mark mark)
{
    sandbox_push_mark(L, mark);
    lua_setmetatable(L, -2);
}

enum mark sandbox_mark(lua_State *L, int at)
{
    enum mark mark = MARK_NONE;
    int top = lua_gettop(L), type = lua_type(L, at);
    if (type == LUA_TUSERDATA && proxy_is(L, at)) {
        lua_pushvalue(L, at);
        proxy_unwrap(L, at = top + 1);
        type = LUA_TTABLE;
    }
    if (type == LUA_TTABLE && lua_getmetatable(L, at)) {
        lua_rawgeti(L, -1, 1);
        mark = (enum mark)lua_tointeger(L, -1);
    }
    lua_settop(L, top);
    return mark;
}

static int set_global(lua_State *L);

/* Pushes the metatable of an environment whose reads go to the table on top. */
static void push_environment_meta(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, set_global);
    lua_setfield(L, -2, "__newindex");
}

/* A policy's environment is an empty table whose metatable forwards reads to the builtins and writes to this
 * function. While the file loads, a write goes to a table of the policy's globals, which is put between the
 * two; afterwards it is refused, as a policy must not keep state from one call to the next. */
static int set_global(lua_State *L)
{
    struct sandbox *sandbox = sandbox_of(L);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    if (!sandbox->now->loading)
        return luaL_error(L, "'%s' is set as a global: a policy keeps nothing between calls; write local %s",
                          name, name);
    sandbox_push_builtins(L);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    if (!lua_isnil(L, -1))
        return luaL_error(L, "'%s' is a builtin and can't be set: write local %s, or choose another name",
                          name, name);
    lua_pop(L, 1);
    sandbox_push_globals(L, 1);
    if (lua_isnil(L, -1)) { /* the first global */
        lua_newtable(L);
        lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox->globals_meta_ref);
        lua_setmetatable(L, -2);
        push_environment_meta(L); /* its own */
        lua_setmetatable(L, 1);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

void sandbox_push_builtins(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox_of(L)->builtins_ref);
}

void sandbox_push_globals(lua_State *L, int environment)
{
    lua_getmetatable(L, environment);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    sandbox_push_builtins(L);
    if (lua_rawequal(L, -1, -2)) {
        lua_pushnil(L);
        lua_replace(L, -3);
    }
    lua_pop(L, 1);
}

void sandbox_load(lua_State *L, struct str source, const char *file)
{
    lua_pushfstring(L, "@%s", sandbox_chunk(file));
    if (luaL_loadbufferx(L, source.at, source.len, lua_tostring(L, -1), "t") != 0) {
        if (strstr(lua_tostring(L, -1), "unexpected symbol near 'until'")) { /* people expect such a field */
            lua_pushliteral(L, ": until is a word of Lua and cannot name a field; write shadow_until");
            lua_concat(L, 2);
        }
        lua_error(L);
    }
    lua_newtable(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, sandbox_of(L)->environment_ref);
    lua_setmetatable(L, -2);
    lua_setfenv(L, -2);
    lua_remove(L, -2);
}

static void set_up(lua_State *L, void *open_builtins)
{
    struct sandbox *sandbox = sandbox_of(L);
    bytecode_detect_opcodes(L, sandbox->now->arena, &sandbox->opcodes);
    for (int i = 0; i < MARK_COUNT; i++) { /* each metatable holds its own mark at [1] */
        lua_createtable(L, 1, 1);
        lua_pushinteger(L, i);
        lua_rawseti(L, -2, 1);
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        sandbox->mark_refs[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    (*(sandbox_open_builtins **)open_builtins)(L);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    sandbox->globals_meta_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    push_environment_meta(L);
    sandbox->environment_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    sandbox->builtins_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

struct sandbox *sandbox_new(uint32_t memory_kb, sandbox_open_builtins *open_builtins)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
    struct arena *arena = arena_new();
    struct sandbox_context now = {.arena = arena, .file = "the builtins", .loading = true};
    struct why why = {""};
    if (!sandbox)
        abort();
    heap_init(&sandbox->heap, (size_t)memory_kb * 1024);
    sandbox->L = lua_newstate(heap_realloc, &sandbox->heap);
    if (!sandbox->L) {
        fprintf(stderr, "toolgate: no Lua state within %u KB (config limits.policy_kb)\n", memory_kb);
        abort();
    }
    luaJIT_setmode(sandbox->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_pushcfunction(sandbox->L, enter);
    sandbox->enter_ref = luaL_ref(sandbox->L, LUA_REGISTRYINDEX);
    if (sandbox_run(sandbox, BUILTINS_DEADLINE_MS, &now, set_up, &open_builtins, &why) != OK) {
        fprintf(stderr, "toolgate: the builtins do not load: %s\n", why.text);
        abort();
    }
    sandbox->now = NULL;
    arena_free(arena);
    return sandbox;
}

/* Frees the heap as a whole. lua_close would walk every object, which blocks the daemon for 2 ms with a
 * thousand policies, and has nothing else to do: no object has a finalizer, and with the JIT off there is no
 * machine code. */
void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    heap_clear(&sandbox->heap);
    free(sandbox);
}

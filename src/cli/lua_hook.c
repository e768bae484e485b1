/* What `toolgate hook` (lua/cli/hook.lua) needs of C. However a hook ends, the assistant must not take it
 * for "let it run": it does so with any exit code but 0 and 2, and with a hook that takes longer than the
 * assistant waits. So one alarm bounds everything that this process does (reading stdin, connecting,
 * writing, waiting), and a fault of its own is exit code 2. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "cli/term.h"
#include "json/parse.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#define HOOK_DEADLINE_MS      1500u /* of one hook, from its start to its answer */
#define HOOK_ANSWER_MAX_BYTES 4096u /* of the answer at the deadline */
#define NAME_BYTES            33u   /* a hash in hex digits */

/* ---- the deadline: handlers call only what is safe in a signal, and say what was noted before ---- */

static volatile sig_atomic_t has_answer;
static char answer_text[HOOK_ANSWER_MAX_BYTES];
static size_t answer_len;

/* Never blocks: a pipe that is full has no reader. */
static void write_now(int fd, const char *at, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    ssize_t ignored = poll(&ready, 1, 0) == 1 ? write(fd, at, len) : 0;
    (void)ignored;
}

static void on_deadline(int number)
{
    static const char late[] =
        "toolgate hook: not done within 1.5 s: the daemon hangs, or stdin has no end\n";
    (void)number;
    write_now(STDERR_FILENO, late, sizeof(late) - 1);
    if (has_answer)
        write_now(STDOUT_FILENO, answer_text, answer_len);
    _exit(has_answer ? CLI_OK : CLI_ERROR);
}

static void on_fault(int number)
{
    static const char fault[] = "toolgate hook: it was ended before it had an answer\n";
    (void)number;
    write_now(STDERR_FILENO, fault, sizeof(fault) - 1);
    _exit(CLI_ERROR);
}

/* begin(): starts the clock. Until late() the deadline means CLI_ERROR. */
static int begin(lua_State *L)
{
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGSYS,  SIGTERM,  SIGINT,
                                 SIGHUP,  SIGQUIT, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2, SIGVTALRM};
    struct itimerval deadline = {
        .it_value = {.tv_sec = HOOK_DEADLINE_MS / 1000, .tv_usec = HOOK_DEADLINE_MS % 1000 * 1000}};
    struct sigaction action = {.sa_handler = on_fault};
    sigset_t all;
    (void)L;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigaction(faults[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a stdout without a reader is an error of write */
    action.sa_handler = on_deadline;
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    setitimer(ITIMER_REAL, &deadline, NULL);
    return 0;
}

/* late(answer): from now on the deadline means exit code 0, with these bytes on stdout. */
static int late(lua_State *L)
{
    struct str answer = lua_cli_str(L, 1);
    answer_len = answer.len < sizeof(answer_text) ? answer.len : 0;
    memcpy(answer_text, answer.at, answer_len);
    has_answer = answer_len == answer.len;
    return 0;
}

/* say(answer): writes the answer of this hook to stdout; nil and why: no process reads it. */
static int say(lua_State *L)
{
    struct str answer = lua_cli_str(L, 1);
    has_answer = false; /* part of another may be written */
    bool said = !answer.len || fwrite(answer.at, 1, answer.len, stdout) == answer.len;
    said = fflush(stdout) == 0 && said;
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    return lua_cli_done(L, said);
}

/* name(key): the name of a file for it, a hash. */
static int note_name(lua_State *L)
{
    char name[NAME_BYTES];
    struct hash128 hash = hash_stable(lua_cli_str(L, 1));
    snprintf(name, NAME_BYTES, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
    lua_pushstring(L, name);
    return 1;
}

/* ---- JSON: what a model sent is passed on byte for byte, so it never becomes a table of Lua ---- */

/* Words in place of a result, so that another result is another one: the hash is of letters, as hex and
 * numbers are masked where results are compared. */
static struct str unread_words(struct arena *arena, struct str bytes)
{
    uint64_t low = hash_stable(bytes).low;
    char hash[17] = {0};
    for (unsigned i = 0; i < 16; i++)
        hash[i] = (char)('g' + (low >> 4 * i & 15));
    return arena_printf(arena, "[toolgate has not read this result: %zu bytes, hash %s]", bytes.len, hash);
}

/* The text of an event whose results are too large or too deep to be read, without them. STR_NONE: it has
 * none. */
static struct str without_results(struct arena *arena, struct str text)
{
    struct str key = STR_NONE;
    size_t depth = 0, from = 0;
    for (size_t at = 0; at < text.len; at++) {
        char c = text.at[at];
        if (c == '"') {
            size_t end = at + 1; /* behind the string */
            for (; end < text.len && text.at[end] != '"'; end++)
                end += text.at[end] == '\\';
            end++;
            if (depth == 1 && !from && end <= text.len)
                key = (struct str){text.at + at, end - at};
            at = end - 1;
        } else if (c == ':' && depth == 1 && !from) {
            from = str_is(key, "\"tool_response\"") || str_is(key, "\"tool_calls\"") ? at + 1 : 0;
        } else if (from && depth == 1 && (c == ',' || c == '}')) {
            struct buf out = buf_in(arena);
            buf_str(&out, (struct str){text.at, from});
            json_write_string(&out, unread_words(arena, (struct str){text.at + from, at - from}));
            buf_str(&out, str_from(text, at));
            return buf_view(&out);
        } else {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
    }
    return STR_NONE;
}

/* event(): the members of the event on stdin; nothing, after an error. A result may be larger or deeper than
 * JSON that is read here; the call has run, and that can be said. */
static int event(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json_error fault, ignored;
    struct str text;
    struct json value;
    int pushed = 0;
    if (lua_cli_read_stdin(arena, &text)) {
        bool read = json_parse(arena, text, NULL, &value, &fault) == OK || fault.soft;
        struct str rest = read ? STR_NONE : without_results(arena, text);
        if (rest.len)
            read = json_parse(arena, rest, NULL, &value, &ignored) == OK || ignored.soft;
        if (read)
            pushed = lua_cli_push_members(L, &value);
        else
            term_error("stdin: %s", fault.text);
    }
    arena_free(arena);
    return pushed;
}

/* unread(bytes): the words in place of such a result. */
static int unread(lua_State *L)
{
    struct arena *arena = arena_new();
    struct str words = unread_words(arena, lua_cli_str(L, 1));
    lua_pushlstring(L, words.at, words.len);
    arena_free(arena);
    return 1;
}

/* misspells(word, name): whether it is that name but for its spelling. */
static int misspells(lua_State *L)
{
    struct str word = lua_cli_str(L, 1), name = lua_cli_str(L, 2);
    lua_pushboolean(L, suggest_score(word, name) >= SUGGEST_SAME || suggest_misspelled(word, &name, 1).len);
    return 1;
}

int lua_hook(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"begin", begin},   {"late", late},           {"say", say}, {"name", note_name}, {"event", event},
        {"unread", unread}, {"misspells", misspells}, {0},
    };
    return lua_cli_push_functions(L, functions);
}

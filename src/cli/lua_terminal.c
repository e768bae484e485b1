/* The terminal while a full-screen command of lua/cli has it: single keys, the second screen, no cursor. It
 * is given back when the command ends, is suspended (SIGTSTP) or is killed by a signal that can be caught.
 * Signals are blocked except inside ppoll, so a handler never interrupts a write. */
#include "base/clock.h"
#include "cli/lua_cli.h"
#include "cli/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Second screen, no cursor, no wrapping at the right edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static volatile sig_atomic_t got_end, got_stop, got_continue;
static struct termios before;
static sigset_t blocked, outside;
static bool is_open;

static void on_signal(int number)
{
    if (number == SIGTSTP)
        got_stop = 1;
    else if (number == SIGCONT)
        got_continue = 1;
    else if (number != SIGWINCH) /* which only ends the wait */
        got_end = number;
}

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    term_write_all(STR_LIT(ENTER)); /* if the terminal is gone, the next wait says so */
    is_open = true;
}

static void leave(void)
{
    if (!is_open)
        return;
    is_open = false;
    term_write_all(STR_LIT(LEAVE));
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* cli.open_terminal(): false if stdin or stdout is not one. Once a process. */
static int open_terminal(lua_State *L)
{
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    lua_pushboolean(L, is_terminal);
    if (!is_terminal)
        return 1;
    sigemptyset(&blocked);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaddset(&blocked, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &blocked, &outside);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigdelset(&outside, signals[i]);
    atexit(leave);
    enter();
    return 1;
}

static void raise_default(int number)
{
    sigset_t only;
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* cli.close_terminal(): gives it back. After a signal that ends a process it raises that signal, so that the
 * exit status names it; SIGINT is the usual way out and ends with status 0. */
static int close_terminal(lua_State *L)
{
    (void)L;
    leave();
    if (got_end && got_end != SIGINT)
        raise_default(got_end);
    return 0;
}

/* cli.terminal_size(): columns and rows; 80 and 24 if the terminal does not know. */
static int terminal_size(lua_State *L)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    lua_pushinteger(L, known && size.ws_col ? size.ws_col : 80);
    lua_pushinteger(L, known && size.ws_row ? size.ws_row : 24);
    return 2;
}

/* cli.draw(text): writes it to the terminal at once. */
static int draw(lua_State *L)
{
    term_write_all(lua_cli_str(L, 1));
    return 0;
}

/* cli.wait_terminal(descriptor, until_us): waits for a key, a signal or input from the descriptor (nil:
 * none), at most until this time of the monotonic clock. The key or "", whether the descriptor is readable,
 * and whether the command is to end: SIGINT, SIGTERM, SIGHUP, or the terminal is gone. */
static int wait_terminal(lua_State *L)
{
    struct pollfd from[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = (int)luaL_optinteger(L, 1, -1), .events = POLLIN}};
    int64_t left_us = (int64_t)luaL_checknumber(L, 2) - clock_mono_us();
    if (left_us < 0)
        left_us = 0;
    struct timespec limit = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
    int ready = ppoll(from, 2, &limit, &outside);
    if (got_stop) {
        struct sigaction action = {.sa_handler = on_signal};
        leave();
        raise_default(SIGTSTP); /* returns when the shell continues us */
        sigprocmask(SIG_BLOCK, &blocked, NULL);
        sigaction(SIGTSTP, &action, NULL);
        got_stop = 0;
        got_continue = 1;
    }
    if (got_continue) {
        got_continue = 0;
        enter();
    }
    bool ended = got_end != 0;
    if (ready > 0 && from[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        ended = true;
    char key[16];
    ssize_t n = 0;
    if (ready > 0 && from[0].revents & POLLIN) {
        n = read(STDIN_FILENO, key, sizeof(key));
        /* EIO: in the background of a session that is gone, no input will come */
        ended |= n < 0 && errno != EINTR && errno != EAGAIN;
    }
    lua_pushlstring(L, key, n == 1); /* several bytes: an arrow or a function key */
    lua_pushboolean(L, ready > 0 && from[1].revents);
    lua_pushboolean(L, ended);
    return 3;
}

/* ---- one key, and output that a program reads ----------------------------------------- */

#define CTRL_C 3
#define CTRL_D 4

/* cli.read_key(): on a terminal one key without Enter; else the first letter of a line. nil at the end.
 * Ctrl-C is a key, too: as a signal it would end the process before the terminal is as it was. */
static int read_key(lua_State *L)
{
    struct termios shown, raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &shown) != 0) {
        int first = getchar();
        for (int c = first; c != EOF && c != '\n';)
            c = getchar();
        char letter = (char)first;
        lua_pushlstring(L, &letter, 1);
        return first != EOF;
    }
    raw = shown;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    char key;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    ssize_t n = read(STDIN_FILENO, &key, 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &shown);
    lua_pushlstring(L, &key, n == 1);
    return n == 1 && key != CTRL_C && key != CTRL_D;
}

/* cli.wait_output(ms): true: after that time, what reads stdout is still there, and has got everything. */
static int wait_output(lua_State *L)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    lua_pushboolean(L, fflush(stdout) == 0 && poll(&out, 1, (int)luaL_checkinteger(L, 1)) <= 0);
    return 1;
}

/* ---- the clock -------------------------------------------------------------------------- */

/* cli.mono_us(): the monotonic clock. cli.sleep_until(us): of it. */
static int mono_us(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)clock_mono_us());
    return 1;
}

static int sleep_until(lua_State *L)
{
    int64_t us = (int64_t)luaL_checknumber(L, 1);
    struct timespec until = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
    return 0;
}

/* cli.end_after(seconds): this process ends then. */
static int end_after(lua_State *L)
{
    alarm((unsigned)luaL_checkinteger(L, 1));
    return 0;
}

const luaL_Reg lua_terminal_functions[] = {
    {"open_terminal", open_terminal},
    {"close_terminal", close_terminal},
    {"terminal_size", terminal_size},
    {"draw", draw},
    {"wait_terminal", wait_terminal},
    {"read_key", read_key},
    {"wait_output", wait_output},
    {"mono_us", mono_us},
    {"sleep_until", sleep_until},
    {"end_after", end_after},
    {0},
};

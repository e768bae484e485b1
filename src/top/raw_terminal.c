/*
 * termios, the second screen and the signals of a full-screen command. Signals
 * are blocked except inside ppoll, so a handler never interrupts a write.
 */
#include "top/raw_terminal.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Second screen, no cursor, no wrapping at the right edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static volatile sig_atomic_t got_end, got_stop, got_continue, got_resize;
static struct termios before;
static sigset_t blocked, outside;
static bool is_open;

static void on_signal(int number)
{
    if (number == SIGTSTP)
        got_stop = 1;
    else if (number == SIGCONT)
        got_continue = 1;
    else if (number == SIGWINCH)
        got_resize = 1;
    else
        got_end = number;
}

static void write_all(struct str text)
{
    while (text.len) {
        ssize_t n = write(STDOUT_FILENO, text.at, text.len);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return; /* the terminal is gone; the next wait says so */
        text = str_from(text, n > 0 ? (size_t)n : 0);
    }
}

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_all(STR_LIT(ENTER));
    is_open = true;
}

static void leave(void)
{
    if (!is_open)
        return;
    is_open = false;
    write_all(STR_LIT(LEAVE));
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

enum err raw_terminal_open(struct why *why)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return err_set(why, ERR_IO, "this is no terminal; --once prints one frame");
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
    return OK;
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

void raw_terminal_close(void)
{
    leave();
    if (got_end && got_end != SIGINT)
        raise_default(got_end);
}

static void suspend(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    leave();
    raise_default(SIGTSTP); /* returns when the shell continues us */
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGTSTP, &action, NULL);
}

void raw_terminal_size(unsigned *columns, unsigned *rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col ? size.ws_col : 80;
    *rows = known && size.ws_row ? size.ws_row : 24;
}

/* A line is erased before it is written: behind a full line the cursor still stands on its last column. */
void raw_terminal_draw(struct str frame)
{
    struct buf out = {0};
    buf_text(&out, "\033[H");
    while (frame.len) {
        const char *end = memchr(frame.at, '\n', frame.len);
        size_t len = end ? (size_t)(end - frame.at) : frame.len;
        bool is_last = !end || len + 1 >= frame.len;
        buf_text(&out, is_last ? "\033[J" : "\033[K"); /* the last one with all that is below */
        buf_add(&out, frame.at, len);
        buf_text(&out, is_last ? "\033[0m" : "\033[0m\r\n");
        frame = str_from(frame, len + 1);
    }
    write_all(buf_view(&out));
    buf_clear(&out);
}

static void read_key(struct raw_terminal_event *event)
{
    char key[16];
    ssize_t n = read(STDIN_FILENO, key, sizeof(key));
    if (n == 1) /* several bytes: an arrow or a function key */
        event->key = key[0];
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
        event->ended = true; /* EIO: in the background of a session that is gone, nobody will type again */
}

struct raw_terminal_event raw_terminal_wait(int fd, int64_t until_us)
{
    struct raw_terminal_event event = {0};
    struct pollfd from[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int64_t left_us = until_us - clock_mono_us();
    if (left_us < 0)
        left_us = 0;
    struct timespec limit = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
    int ready = ppoll(from, 2, &limit, &outside);
    if (got_stop) {
        got_stop = 0;
        suspend();
        got_continue = 1;
    }
    if (got_continue) {
        got_continue = 0;
        got_resize = 1;
        enter();
    }
    event.resized = got_resize;
    got_resize = 0;
    event.ended = got_end != 0;
    if (ready <= 0)
        return event;
    event.readable = from[1].revents != 0;
    event.ended |= (from[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    if (from[0].revents & POLLIN)
        read_key(&event);
    return event;
}

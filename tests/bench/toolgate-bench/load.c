/*
 * One thread, epoll, blocking writes: what is in flight on a connection fits
 * its socket's buffer. Answers come in the order of the requests (the local
 * ledger never waits), so the oldest request is the one that was answered.
 */
#include "load.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "cli/daemon_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES     131072u
#define REQUEST_BYTES  512u
#define EVENTS         64
#define LATENCY_MAX_US 100000u /* slower ones share the last bucket */
#define NUMBER_DIGITS  10u
#define FIRST_NUMBER   1000000000ull /* ten digits: numbers are patched in place */

struct lane {
    int fd;
    char request[REQUEST_BYTES];
    size_t request_len, id_at, query_at;
    struct buf in; /* an answer whose end has not come yet */
    int64_t sent_us[LOAD_DEPTH_MAX];
    unsigned oldest;
};

struct run {
    const struct load *load;
    struct load_result *result;
    struct lane *lanes;
    int epoll;
    uint64_t number;
    bool counting;
    uint32_t *latencies; /* answers by whole µs */
    struct buf out;
};

/* ---- requests ---- */

/* About 300 bytes, as in the bench's yardsticks; id and query differ each time, so that no budget ever
 * refuses. */
static void make_request(struct lane *lane, const char *method, unsigned index)
{
    int n = snprintf(
        lane->request, sizeof(lane->request),
        "{\"jsonrpc\":\"2.0\",\"id\":1000000000,\"method\":\"%s\",\"params\":{\"name\":\"get_events\","
        "\"arguments\":{\"action\":\"by_time_span\",\"start\":\"2026-05-01T00:00:00Z\","
        "\"end\":\"2026-05-02T00:00:00Z\",\"limit\":50,\"query\":\"q1000000000\"},"
        "\"_meta\":{\"dev.toolgate/session\":\"bench-%u\",\"dev.toolgate/turn\":1}}}\n",
        method, index);
    lane->request_len = (size_t)n;
    lane->id_at = (size_t)(strstr(lane->request, "\"id\":") - lane->request) + 5;
    lane->query_at = (size_t)(strstr(lane->request, "\"q1") - lane->request) + 2;
}

static void put_number(char *at, uint64_t number)
{
    for (size_t i = NUMBER_DIGITS; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
}

static bool send_all(int fd, const char *at, size_t len)
{
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

/* `count` requests in one write; their time is the write's. */
static bool send_requests(struct run *run, struct lane *lane, unsigned count)
{
    int64_t now = clock_mono_us();
    run->out.len = 0;
    for (unsigned i = 0; i < count; i++) {
        char *at = buf_reserve(&run->out, lane->request_len);
        memcpy(at, lane->request, lane->request_len);
        put_number(at + lane->id_at, run->number);
        put_number(at + lane->query_at, run->number++);
        run->out.len += lane->request_len;
        lane->sent_us[(lane->oldest + run->load->depth - count + i) % run->load->depth] = now;
    }
    return send_all(lane->fd, run->out.at, run->out.len);
}

/* ---- answers ---- */

static void keep_sample(struct load_result *result, struct str line)
{
    if (result->unwanted++ == 0)
        snprintf(result->sample, sizeof(result->sample), STR_FMT,
                 STR_ARG(str_cut(line, sizeof(result->sample) - 1)));
}

static void count_answer(struct run *run, struct lane *lane, struct str line, int64_t now)
{
    int64_t us = now - lane->sent_us[lane->oldest];
    const char *wanted = run->load->wanted;
    lane->oldest = (lane->oldest + 1) % run->load->depth;
    run->result->all_answers++;
    if (!run->counting)
        return;
    run->result->answers++;
    run->latencies[us < LATENCY_MAX_US ? us : LATENCY_MAX_US]++;
    if (wanted && !memmem(line.at, line.len, wanted, strlen(wanted)))
        keep_sample(run->result, line);
}

/* How many requests were answered by the whole lines in `bytes`; the rest is kept for the next read. */
static unsigned take_answers(struct run *run, struct lane *lane)
{
    int64_t now = clock_mono_us();
    struct str rest = buf_view(&lane->in);
    const char *end;
    unsigned count = 0;
    while (rest.len && (end = memchr(rest.at, '\n', rest.len))) {
        struct str line = {rest.at, (size_t)(end - rest.at)};
        rest = str_from(rest, line.len + 1);
        count_answer(run, lane, line, now);
        count++;
    }
    buf_drop(&lane->in, lane->in.len - rest.len);
    return count;
}

static enum err serve_lane(struct run *run, struct lane *lane, struct why *why)
{
    ssize_t n = read(lane->fd, buf_reserve(&lane->in, READ_BYTES), READ_BYTES);
    if (n <= 0)
        return err_set(why, ERR_CLOSED, "%s: the daemon closed a connection of the bench", run->load->socket);
    lane->in.len += (size_t)n;
    unsigned count = take_answers(run, lane);
    if (count && !send_requests(run, lane, count))
        return err_set(why, ERR_CLOSED, "%s: %s", run->load->socket, strerror(errno));
    return OK;
}

/* ---- the run ---- */

static enum err open_lane(struct run *run, unsigned index, struct why *why)
{
    struct lane *lane = &run->lanes[index];
    make_request(lane, run->load->method, index);
    lane->fd = daemon_client_socket(run->load->socket, why);
    if (lane->fd < 0)
        return ERR_UNAVAILABLE;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane};
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, lane->fd, &event) != 0)
        return err_set(why, ERR_IO, "epoll: %s", strerror(errno));
    bool sent = send_requests(run, lane, run->load->depth);
    return sent ? OK : err_set(why, ERR_CLOSED, "%s: %s", run->load->socket, strerror(errno));
}

static enum err turn(struct run *run, struct why *why)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(run->epoll, events, EVENTS, LOAD_SILENCE_MS);
    if (n == 0)
        return err_set(why, ERR_TIMEOUT, "%s: no answer for %d s", run->load->socket, LOAD_SILENCE_MS / 1000);
    enum err err = OK;
    for (int i = 0; i < n && err == OK; i++)
        err = serve_lane(run, events[i].data.ptr, why);
    return err;
}

static enum err spin(struct run *run, int64_t us, struct why *why)
{
    int64_t began = clock_mono_us(), now = began;
    enum err err = OK;
    while (err == OK && (now = clock_mono_us()) - began < us)
        err = turn(run, why);
    run->result->seconds = (double)(now - began) / 1e6;
    return err;
}

static double percentile(const struct run *run, double share)
{
    uint64_t wanted = (uint64_t)((double)run->result->answers * share), seen = 0;
    for (uint32_t us = 0; us <= LATENCY_MAX_US; us++)
        if ((seen += run->latencies[us]) > wanted)
            return us;
    return LATENCY_MAX_US;
}

static enum err measure(struct run *run, struct why *why)
{
    enum err err = OK;
    for (unsigned i = 0; err == OK && i < run->load->connections; i++)
        err = open_lane(run, i, why);
    if (err == OK)
        err = spin(run, LOAD_WARM_UP_US, why);
    run->counting = true;
    if (err == OK)
        err = spin(run, (int64_t)(run->load->seconds * 1e6), why);
    run->result->p50_us = percentile(run, 0.50);
    run->result->p99_us = percentile(run, 0.99);
    return err;
}

static void close_lanes(struct run *run)
{
    for (unsigned i = 0; i < run->load->connections; i++) {
        if (run->lanes[i].fd >= 0)
            close(run->lanes[i].fd);
        buf_clear(&run->lanes[i].in);
    }
}

enum err load_run(const struct load *load, struct load_result *result, struct why *why)
{
    struct arena *arena = arena_new();
    struct run run = {
        .load = load, .result = result, .number = FIRST_NUMBER, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    run.lanes = ARENA_ARRAY(arena, struct lane, load->connections);
    run.latencies = ARENA_ARRAY(arena, uint32_t, LATENCY_MAX_US + 1);
    for (unsigned i = 0; i < load->connections; i++)
        run.lanes[i].fd = -1;
    *result = (struct load_result){0};
    enum err err = run.epoll < 0 ? err_set(why, ERR_IO, "epoll: %s", strerror(errno)) : measure(&run, why);
    close_lanes(&run);
    buf_clear(&run.out);
    if (run.epoll >= 0)
        close(run.epoll);
    arena_free(arena);
    return err;
}

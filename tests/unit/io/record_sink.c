/* A record sink whose target is away keeps what comes, writes it once the target is there, and then gives the
 * memory back, also if no further record comes. */

#include "unit.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/conn.h"
#include "io/record_sink.h"

#define RECORDS    8192u
#define KEPT_BYTES 1048576u /* a buffer below may stay */
#define REOPENINGS 1000u
#define TURNS_MOST 100000u
#define PATH_BYTES 256u
#define EACH       (1u + RECORD_SINK_FLUSH_BYTES / 1024u) /* records; more than the sink keeps to itself */
#define LAG_MOST   (64u * EACH)                           /* records; a sink drops none before */

static void on_change(void *owner, const struct record_sink_status *status)
{
    *(bool *)owner = status->down;
}

static uint64_t written(struct record_sink *sink)
{
    struct record_sink_status status;
    record_sink_status(sink, &status);
    assert_int_equal(0, status.dropped);
    return status.written;
}

/* The first record made what libevent allocates once. */
static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void add(struct record_sink *sink, uint32_t count)
{
    static char line[1024];
    for (size_t i = 0; i < sizeof(line); i++)
        line[i] = i + 1 < sizeof(line) ? 'x' : '\n';
    line[0] = '{';
    for (uint32_t i = 0; i < count; i++)
        record_sink_add(sink, (struct str){line, sizeof(line)});
}

TEST(gives_back_what_an_outage_took)
{
    char folder[] = "/tmp/record-sink-XXXXXX", away[PATH_BYTES / 2], path[PATH_BYTES];
    assert_non_null(mkdtemp(folder));
    snprintf(away, sizeof(away), "%s/away", folder);
    snprintf(path, sizeof(path), "%s/records", away);
    const struct record_sink_options options = {
        .kind = RECORD_SINK_FILE, .path = path, .max_bytes = 1u << 30};
    bool down = false;
    struct loop *loop = loop_new();
    struct record_sink *sink = record_sink_new(loop, &options, on_change, &down);
    add(sink, 1);
    for (uint32_t i = 0; i < TURNS_MOST && !down; i++)
        loop_turn(loop, true);
    assert_true(down);
    size_t before = bytes_in_use();

    add(sink, RECORDS);
    assert_int_equal(0, mkdir(away, 0700));
    for (uint32_t i = 0; i < TURNS_MOST && (down || written(sink) <= RECORDS); i++)
        loop_turn(loop, true);
    assert_int_equal(RECORDS + 1, written(sink));
    for (uint32_t i = 0; i < 2 && bytes_in_use() > before + KEPT_BYTES; i++)
        loop_turn(loop, true); /* the sink's timer: none other is set */
    assert_true(bytes_in_use() <= before + KEPT_BYTES);

    assert_int_equal(0, record_sink_free(sink));
    loop_free(loop);
    unlink(path);
    rmdir(away);
    rmdir(folder);
}

/* The thread wakes without work while the loop hands it some: `make test-threads` sees whether they meet. */
TEST(loses_nothing_while_it_is_reopened)
{
    char path[] = "/tmp/record-sink-XXXXXX";
    close(mkstemp(path));
    const struct record_sink_options options = {
        .kind = RECORD_SINK_FILE, .path = path, .max_bytes = 1u << 30};
    bool down = false;
    struct loop *loop = loop_new();
    struct record_sink *sink = record_sink_new(loop, &options, on_change, &down);
    for (uint32_t i = 0; i < REOPENINGS; i++) {
        record_sink_reopen(sink);
        add(sink, EACH); /* handed over at once */
        while (written(sink) + LAG_MOST < (i + 1) * EACH)
            loop_turn(loop, true); /* a busy machine runs the thread late */
    }
    const uint64_t all = REOPENINGS * EACH;
    for (uint32_t i = 0; i < TURNS_MOST && written(sink) < all; i++)
        loop_turn(loop, true);
    assert_int_equal(all, written(sink));
    assert_int_equal(0, record_sink_free(sink));
    loop_free(loop);
    unlink(path);
}

/* Instead of libc's: a file system that hangs, as one of a network does, as long as this is held. */
static pthread_mutex_t hanging = PTHREAD_MUTEX_INITIALIZER;
int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    pthread_mutex_lock(&hanging);
    pthread_mutex_unlock(&hanging);
    return 0;
}

TEST(is_down_while_its_disk_hangs)
{
    char path[] = "/tmp/record-sink-XXXXXX";
    close(mkstemp(path));
    const struct record_sink_options options = {
        .kind = RECORD_SINK_FILE, .path = path, .max_bytes = 1u << 30};
    bool down = false;
    struct loop *loop = loop_new();
    pthread_mutex_lock(&hanging);
    struct record_sink *sink = record_sink_new(loop, &options, on_change, &down);
    add(sink, 1);
    for (uint32_t i = 0; i < TURNS_MOST && !down; i++)
        loop_turn(loop, true);
    assert_true(down);
    pthread_mutex_unlock(&hanging);
    for (uint32_t i = 0; i < TURNS_MOST && down; i++)
        loop_turn(loop, true);
    assert_false(down);
    assert_int_equal(1, written(sink));
    assert_int_equal(0, record_sink_free(sink));
    loop_free(loop);
    unlink(path);
}

/*
 * Any bytes as a file of recorded calls: the first byte is the format, the rest the file. Lines are read or
 * counted as faults, each call has a tool or a reason, and reading ends.
 */
#include "base/log.h"
#include "replay/recorded_call.h"
#include "require.h"

#include <unistd.h>

#define FORMATS       6u
#define DOCUMENTS_BIT 8u

static const char *path_of_input(void)
{
    static char folder[] = "/tmp/toolgate-fuzz-recording-XXXXXX", path[64];
    if (!path[0]) {
        REQUIRE(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/calls.ndjson", folder);
    }
    return path;
}

static void on_call(void *owner, const struct recorded_call *call)
{
    uint64_t *calls = owner;
    ++*calls;
    REQUIRE(call->line);
    REQUIRE(!call->tool.len || call->tool.at);
    REQUIRE(!call->session.len || call->session.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_quiet();
    const char *path = path_of_input();
    const struct recording_options options = {.documents = size && data[0] & DOCUMENTS_BIT};
    struct recording *recording;
    struct recording_line line;
    struct why why;
    uint64_t calls = 0, read = 0;
    if (!size)
        return 0;
    struct recorded_reader reader = {
        .format = (enum recorded_format)((data[0] & 7u) % FORMATS), .seen = on_call, .owner = &calls};
    FILE *file = fopen(path, "wb");
    REQUIRE(file && (size == 1 || fwrite(data + 1, 1, size - 1, file) == size - 1) && fclose(file) == 0);
    REQUIRE(recording_open(&path, 1, &options, &recording, &why) == OK);
    while (recording_next(recording, &line)) {
        const char *reason = NULL;
        read++;
        if (!recorded_calls_read(&reader, &line, &reason))
            REQUIRE(reason && *reason);
    }
    REQUIRE(recording_lines(recording) == read);
    recorded_reader_clear(&reader);
    recording_close(recording);
    unlink(path);
    return 0;
}

/* Frames of eight languages, and prose that only resembles them. */
#include "unit.h"
#include "base/arena.h"
#include "base/stack_trace.h"

TEST(knows_frames)
{
    static const char *const frames[] = {
        "  File \"/srv/x.py\", line 3, in f",
        "    at Object.open (node:fs:601:3)",
        "    at node:internal/main/run_main_module:23:47 {",
        "\tat java.lang.Thread.run(Thread.java:840)",
        "\t... 12 more",
        "   at P.Main() in /srv/x.cs:line 3",
        "             at /rustc/9fc6b431/library/std/src/panicking.rs:645:5",
        "\tfrom x.rb:3:in `<main>'",
        "\t/srv/main.go:5 +0x1d",
        "#0 /srv/x.php(12): find()",
        "#11 [internal function]: run()",
        "#1 {main}",
        "#1  0x00005581 in main () at x.c:3",
    };
    for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
        if (!stack_trace_is_frame(str_of(frames[i])))
            fail_msg("no frame: %s", frames[i]);
}

TEST(leaves_prose_alone)
{
    static const char *const prose[] = {
        "",
        "at noon (sharp)",
        "  at least one of them",
        "from 9:00 on",
        "#1 open",
        "main.go:12:3: undefined: x",
        "  ... and nothing more.",
        "File \"x.py\" not found",
        "# Heading",
        "  from the start",
    };
    for (size_t i = 0; i < sizeof(prose) / sizeof(*prose); i++) {
        if (stack_trace_is_frame(str_of(prose[i])))
            fail_msg("a frame: %s", prose[i]);
        assert_false(stack_trace_is_header(str_of(prose[i])));
    }
}

static void strips(const char *text, const char *expected)
{
    struct arena *arena = arena_new();
    struct str got = stack_trace_strip(arena, str_of(text));
    if (!str_is(got, expected))
        fail_msg("expected '%s', got '" STR_FMT "'", expected, STR_ARG(got));
    arena_free(arena);
}

TEST(strips_traces)
{
    strips("Error: no file\n    at open (node:fs:601:3)\n    at run (/srv/x.js:1:2)", "Error: no file");
    strips("Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n    g()\nValueError: no date",
           "ValueError: no date");
    strips("panic: no order\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:5 +0x1d",
           "panic: no order");
    strips("two\nlines", "two\nlines");
    strips("  at f (x.js:1:2)", "  at f (x.js:1:2)");
}

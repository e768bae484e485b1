/* Command lines from words and arguments, and quotations from the stderr of a command. */

#include "arena_case.h"
#include "upstream/exec/exec.h"
#include "golden.h"

/* ---- words --------------------------------------------------------------------------------------- */

#define WORDS_MAX 12

/* "[" and "]" enclose a group, "[when:" begins a conditional group. */
static struct exec_spec spec_of(const char *const *words)
{
    struct exec_word *list = ARENA_ARRAY(arena, struct exec_word, WORDS_MAX);
    struct exec_spec spec = {.words = list};
    struct exec_word head = {.group = 0};
    for (uint32_t i = 0; words[i]; i++) {
        struct str word = str_of(words[i]);
        if (word.at[0] == '[' && (word.len == 1 || word.at[word.len - 1] == ':'))
            head = (struct exec_word){
                .group = i + 1, .when = word.len > 1 ? (struct str){word.at + 1, word.len - 2} : STR_NONE};
        else if (str_is(word, "]"))
            head = (struct exec_word){.group = 0};
        else
            list[spec.word_count++] = (struct exec_word){word, head.group, head.when};
    }
    return spec;
}

/* The command line, with | between its words. */
static const char *joined(const char *const *argv)
{
    struct buf out = buf_in(arena);
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            buf_byte(&out, '|');
        buf_text(&out, argv[i]);
    }
    buf_byte(&out, '\0');
    return out.at;
}

static void makes(const char *const *words, const char *args, const char *expected)
{
    struct exec_spec spec = spec_of(words);
    struct exec_argv_error fault = {"", STR_NONE};
    const char *const *argv = exec_argv_build(arena, &spec, value_of(args), &fault);
    if (!argv)
        fail_msg("%s: " STR_FMT, fault.code, STR_ARG(fault.detail));
    assert_string_equal(joined(argv), expected);
}

static void refuses(struct exec_spec spec, const char *args, const char *code)
{
    struct exec_argv_error fault = {"", STR_NONE};
    assert_null(exec_argv_build(arena, &spec, value_of(args), &fault));
    assert_string_equal(fault.code, code);
    golden_row(code, arena_printf(arena, STR_FMT, STR_ARG(fault.detail)).at);
}

#define W(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(fills_in_arguments)
{
    makes(W("x", "{id}"), "{\"id\":\"a b\"}", "x|a b");
    makes(W("x", "--id={id}", "{id}/{n}"), "{\"id\":\"a\",\"n\":1.10}", "x|--id=a|a/1.10");
    makes(W("x", "{yes}", "{o}"), "{\"yes\":true,\"o\":{\"a\":[1, 2]}}", "x|true|{\"a\":[1, 2]}");
    makes(W("x", "{a.b}"), "{\"a\":{\"b\":\"deep\"}}", "x|deep");
    makes(W("x", "{a.b}"), "{\"a.b\":\"flat\"}", "x|flat");
    makes(W("x", "{id}"), "{\"id\":\"\"}", "x|");
    makes(W("x", "{id}"), "{\"id\":12345678901234567890}", "x|12345678901234567890");
}

TEST(does_not_interpret_values)
{
    makes(W("x", "{id}"), "{\"id\":\"; rm -rf / $(id) `id` {n} ${HOME}\\n'\\\"\",\"n\":1}",
          "x|; rm -rf / $(id) `id` {n} ${HOME}\n'\"");
}

TEST(omits_words_of_missing_arguments)
{
    makes(W("x", "{id}", "--n={n}", "end"), "{}", "x|end");
    makes(W("x", "{id}", "{list}"), "{\"id\":null,\"list\":[]}", "x");
    makes(W("x", "[", "--limit", "{limit}", "]", "end"), "{}", "x|end");
    makes(W("x", "[", "--limit", "{limit}", "]", "end"), "{\"limit\":5}", "x|--limit|5|end");
    makes(W("x", "[", "{a}", "{b}", "]"), "{\"a\":1}", "x");
}

TEST(includes_groups_conditionally)
{
    makes(W("x", "[all:", "--all", "]"), "{\"all\":true}", "x|--all");
    makes(W("x", "[all:", "--all", "]"), "{\"all\":false}", "x");
    makes(W("x", "[all:", "--all", "]"), "{}", "x");
    makes(W("x", "[name:", "--name", "{other}", "]"), "{\"name\":\"n\"}", "x|--name");
}

TEST(makes_one_word_per_item)
{
    makes(W("x", "{ids}"), "{\"ids\":[\"a\",2,null,[3]]}", "x|a|2|[3]");
    makes(W("x", "--id={ids}"), "{\"ids\":[\"a\",\"b\"]}", "x|--id=a|--id=b");
    makes(W("x", "{ids}-{n}"), "{\"ids\":[\"a\",\"b\"],\"n\":[1]}", "x|a-[1]|b-[1]");
}

TEST(keeps_other_braces)
{
    makes(W("jq", "{id: .id}", "{{id}}", "{}", "{ id }", "{1}", "a{"), "{\"id\":\"x\"}",
          "jq|{id: .id}|{id}|{}|{ id }|{1}|a{");
    makes(W("sh", "${id} ${id:-x} $${id}", "{{id}}{id}"), "{\"id\":\"x\"}", "sh|${id} ${id:-x} $${id}|{id}x");
}

TEST(refuses_values_that_look_like_options)
{
    refuses(spec_of(W("rm", "{path}")), "{\"path\":\"-rf\"}", "looks_like_option");
    refuses(spec_of(W("rm", "{path}x")), "{\"path\":\"-rf\"}", "looks_like_option");
    refuses(spec_of(W("rm", "{paths}")), "{\"paths\":[\"a\",\"-rf\"]}", "looks_like_option");
    refuses(spec_of(W("x", "--file", "{paths}")), "{\"paths\":[\"-a\",\"-rf\"]}", "looks_like_option");
    refuses(spec_of(W("x", "--file=a", "{path}")), "{\"path\":\"-rf\"}", "looks_like_option");
    refuses(spec_of(W("x", "--id", "{id}", "{path}")), "{\"id\":\"--\",\"path\":\"-rf\"}",
            "looks_like_option");
    refuses(spec_of(W("x", "--id", "{id}", "{path}")), "{\"path\":\"-rf\"}", "looks_like_option");
    golden_check_rows("feedback", "exec: arguments that look like options");
}

TEST(accepts_values_that_cannot_be_options)
{
    makes(W("rm", "--", "{path}"), "{\"path\":\"-rf\"}", "rm|--|-rf");
    makes(W("x", "--id", "{id}"), "{\"id\":\"-rf\"}", "x|--id|-rf");
    makes(W("x", "--id={id}", "./{id}"), "{\"id\":\"-rf\"}", "x|--id=-rf|./-rf");
    makes(W("jq", "--arg", "id", "{id}"), "{\"id\":\"-rf\"}", "jq|--arg|id|-rf");
    struct exec_spec spec = spec_of(W("seq", "{from}"));
    struct exec_argv_error fault;
    spec.dashes = true;
    assert_string_equal(joined(exec_argv_build(arena, &spec, value_of("{\"from\":-5}"), &fault)), "seq|-5");
    spec = spec_of(W("sh", "-c", "echo", "sh", "{a}"));
    spec.plain_from = 3;
    assert_string_equal(joined(exec_argv_build(arena, &spec, value_of("{\"a\":\"-n\"}"), &fault)),
                        "sh|-c|echo|sh|-n");
}

TEST(refuses_values_that_no_command_line_can_hold)
{
    refuses(spec_of(W("x", "{id}")), "{\"id\":\"a\\u0000b\"}", "nul_byte");
    struct buf large = buf_in(arena);
    buf_text(&large, "{\"id\":\"");
    memset(buf_reserve(&large, EXEC_ARG_MAX_BYTES + 1), 'x', EXEC_ARG_MAX_BYTES + 1);
    large.len += EXEC_ARG_MAX_BYTES;
    struct buf larger = buf_in(arena);
    buf_str(&larger, buf_view(&large));
    buf_text(&large, "\"}");
    buf_byte(&large, '\0');
    makes(W("x", "{id}"), large.at, arena_printf(arena, "x|%.*s", (int)EXEC_ARG_MAX_BYTES, large.at + 7).at);
    buf_text(&larger, "y\"}");
    buf_byte(&larger, '\0');
    refuses(spec_of(W("x", "{id}")), larger.at, "argument_too_long");
    struct buf many = buf_in(arena);
    buf_text(&many, "{\"ids\":[0");
    for (unsigned i = 1; i < EXEC_LINE_WORDS_MAX; i++)
        buf_text(&many, ",0");
    buf_text(&many, "]}");
    buf_byte(&many, '\0');
    refuses(spec_of(W("x", "{ids}")), many.at, "too_many_items");
    golden_check_rows("feedback", "exec: arguments that no command line holds");
}

/* ---- stderr ---------------------------------------------------------------------------------------- */

static void tells(const char *text, const char *expected, bool expect_trace)
{
    bool traced;
    struct str said = exec_result_message(arena, str_of(text), &traced);
    assert_string_equal(arena_dup(arena, said).at, expected);
    assert_int_equal(traced, expect_trace);
}

TEST(quotes_the_last_lines)
{
    tells("", "", false);
    tells("\n\n", "", false);
    tells("jq: error: no such file\n", "jq: error: no such file", false);
    tells("1\n2\n\n3\n4\n5\n6\n7\n", "3\n4\n5\n6\n7", false);
    tells("\033[31mred\033[0m \001\xff!\r\n", "red \xEF\xBF\xBD!", false);
    tells("main.go:12:3: undefined: x\n", "main.go:12:3: undefined: x", false);
    tells("meet at noon (sharp)\nat once\n", "meet at noon (sharp)\nat once", false);
}

TEST(cuts_long_output)
{
    char text[3 * EXEC_QUOTE_BYTES];
    bool traced;
    memset(text, 'x', sizeof(text));
    assert_int_equal(exec_result_message(arena, (struct str){text, sizeof(text)}, &traced).len,
                     EXEC_QUOTE_BYTES);
}

TEST(reduces_a_trace_to_its_message)
{
    tells("starting\nTraceback (most recent call last):\n  File \"/srv/x.py\", line 3, in <module>\n    f()\n"
          "    ^^^\n  File \"/srv/x.py\", line 1, in f\n    raise ValueError('no such order')\n"
          "ValueError: no such order\n",
          "ValueError: no such order", true);
    tells(
        "Traceback (most recent call last):\n  File \"x.py\", line 2, in <module>\n    a()\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File \"x.py\", line 4, in <module>\n    b()\n"
        "RuntimeError: no such order\n",
        "RuntimeError: no such order", true);
    tells("  File \"x.py\", line 1\n    f(\n     ^\nSyntaxError: '(' was never closed\n",
          "SyntaxError: '(' was never closed", true);
    tells(
        "/srv/x.js:1\nthrow new Error('no such order')\n^\n\nError: no such order\n"
        "    at Object.<anonymous> (/srv/x.js:1:7)\n    at Module._compile (node:internal/modules/cjs:1:2)\n"
        "    at node:internal/main/run_main_module:23:47 {\n  code: 'ENOENT'\n}\n\nNode.js v20.11.0\n",
        "Error: no such order", true);
    tells("Exception in thread \"main\" java.lang.RuntimeException: outer\n\tat Main.main(Main.java:5)\n"
          "Caused by: java.lang.IllegalStateException: no such order\n\tat Main.find(Main.java:9)\n\t... 1 "
          "more\n",
          "Caused by: java.lang.IllegalStateException: no such order", true);
    tells("panic: no such order\n\ngoroutine 1 [running]:\nmain.find(...)\n\t/srv/main.go:9\nmain.main()\n"
          "\t/srv/main.go:5 +0x1d\nexit status 2\n",
          "panic: no such order", true);
    tells("x.rb:1:in `find': no such order (RuntimeError)\n\tfrom x.rb:3:in `<main>'\n",
          "x.rb:1:in `find': no such order (RuntimeError)", true);
    tells("PHP Fatal error:  Uncaught Exception: no such order in /srv/x.php:3\nStack trace:\n#0 {main}\n"
          "  thrown in /srv/x.php on line 3\n",
          "PHP Fatal error:  Uncaught Exception: no such order in /srv/x.php:3", true);
    tells("Unhandled exception. System.Exception: no such order\n   at P.Main() in /srv/x.cs:line 3\n",
          "Unhandled exception. System.Exception: no such order", true);
}

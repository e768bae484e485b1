/*
 * toolgate pins: shows which definitions of upstreams' tools differ from the accepted ones, and accepts them.
 * The texts are the upstreams': they are printed escaped.
 */
#include "base/buf.h"
#include "base/printable.h"
#include "cli/options.h"
#include "cli/pin_diff.h"
#include "cli/print.h"
#include "cli/rpc_call.h"
#include "cli/term.h"
#include "json/write.h"

#include <stdio.h>

struct pins_options {
    const char *socket;
    bool json;
    const char *tool, *digest; /* of accept */
};

static void put(struct str text)
{
    struct buf line = {0};
    printable_write(&line, text);
    if (line.len)
        fwrite(line.at, 1, line.len, stdout);
    buf_clear(&line);
}

static struct str member(const struct json *object, const char *key)
{
    return json_str(json_get_text(object, key));
}

static const char *describe(struct str state)
{
    static const char *const rows[][2] = {
        {"changed", "its definition has changed"},
        {"renamed", "a new name, while another tool has vanished"},
        {"new", "it is new"},
        {"lost", "the state folder has lost what was accepted"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (str_is(state, rows[i][0]))
            return rows[i][1];
    return "it differs";
}

static void put_accept(const struct pins_options *options, struct str upstream, struct str tool,
                       struct str digest)
{
    printf("  accept: %s pins accept '", term_program_name());
    put(upstream);
    printf(upstream.len ? "/" : "");
    put(tool);
    printf("' " STR_FMT "%s%s\n", STR_ARG(digest), options->socket ? " --socket " : "",
           options->socket ? options->socket : "");
}

static void print_entry(const struct pins_options *options, const struct json *entry)
{
    const struct json *was = json_get_text(entry, "was"), *now = json_get_text(entry, "now");
    bool held = json_is_true(json_get_text(entry, "held"));
    printf("%s", term_colour(TERM_BOLD));
    put(member(entry, "upstream"));
    putchar('/');
    put(member(entry, "tool"));
    printf("%s: %s; %s%s%s\n", term_colour(TERM_PLAIN), describe(member(entry, "state")),
           term_colour(held ? TERM_RED : TERM_YELLOW),
           held ? "it is neither listed nor callable" : "it is served all the same", term_colour(TERM_PLAIN));
    if (was && !str_eq(member(was, "tool"), member(entry, "tool"))) {
        printf("  compared with the vanished tool ");
        put(member(was, "tool"));
        putchar('\n');
    }
    if (json_get_text(now, "definition"))
        pin_diff_print(json_get_text(was, "definition"), json_get_text(now, "definition"));
    else
        printf("  (not shown: the answer was full; accept those above, and call this again)\n");
    if (json_get_text(now, "definition"))
        put_accept(options, member(entry, "upstream"), member(entry, "tool"), member(now, "digest"));
    putchar('\n');
}

static void print_lost(const struct json *answer)
{
    const struct json *lost = json_get_text(answer, "lost");
    for (uint32_t i = 0; json_is(lost, JSON_ARRAY) && i < lost->len; i++) {
        printf("%slost%s: ", term_colour(TERM_RED), term_colour(TERM_PLAIN));
        put(json_str(&lost->items[i]));
        printf(" had accepted definitions, and ");
        put(member(answer, "file"));
        printf(" does not have them: restore it and restart the daemon, or accept them again\n");
    }
}

static int print_pins(void *owner, const struct json *answer)
{
    const struct pins_options *options = owner;
    const struct json *waiting = json_get_text(answer, "waiting");
    if (!waiting) {
        printf("pins are " STR_FMT ": no definition is compared\n", STR_ARG(member(answer, "mode")));
        return CLI_OK;
    }
    print_lost(answer);
    for (uint32_t i = 0; i < waiting->len; i++)
        print_entry(options, &waiting->items[i]);
    printf("%lld tool%s, %u waiting; pins = \"" STR_FMT "\"\n", (long long)print_number(answer, "tools"),
           print_number(answer, "tools") == 1 ? "" : "s", waiting->len, STR_ARG(member(answer, "mode")));
    if (waiting->len > 1 && json_is_true(json_get_text(answer, "complete"))) {
        printf("all of them:\n");
        put_accept(options, STR_NONE, STR_LIT("*"), member(answer, "digest"));
    }
    return waiting->len ? CLI_NO : CLI_OK;
}

static int print_accepted(void *owner, const struct json *answer)
{
    const struct pins_options *options = owner;
    const struct json *errors = json_get_text(answer, "errors");
    bool ok = json_is_true(json_get_text(answer, "ok"));
    for (uint32_t i = 0; json_is(errors, JSON_ARRAY) && i < errors->len; i++) {
        struct buf line = {0};
        printable_write(&line, json_str(&errors->items[i]));
        term_error("pins", STR_FMT, STR_ARG(buf_view(&line)));
        buf_clear(&line);
    }
    if (options->json)
        print_json_line(answer);
    else if (ok)
        printf("accepted: %s is served with this definition\n",
               options->tool[0] == '*' ? "everything that waited" : options->tool);
    return ok ? CLI_OK : CLI_NO;
}

static int accept_tool(const struct command *command, struct pins_options *options)
{
    struct buf params = {0};
    struct json_out out = json_out(&params);
    json_open(&out, '{');
    json_field_open(&out, "accept", '{');
    json_field_text(&out, "tool", options->tool);
    json_field_text(&out, "digest", options->digest);
    json_close(&out, '}');
    json_close(&out, '}');
    int status =
        rpc_call(command, options->socket, "toolgate/pins", buf_view(&params), print_accepted, options);
    buf_clear(&params);
    return status;
}

/* --json prints the same object, with the same exit code. */
static int print_pins_json(void *owner, const struct json *answer)
{
    const struct json *waiting = json_get_text(answer, "waiting");
    (void)owner;
    print_json_line(answer);
    return json_is(waiting, JSON_ARRAY) && waiting->len ? CLI_NO : CLI_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct pins_options options = {0};
    int status;
    if (!options_read_request(command, &argc, &argv, &options.socket, &options.json, &status))
        return status;
    if (!argc)
        return rpc_call(command, options.socket, "toolgate/pins", str_of("{}"),
                        options.json ? print_pins_json : print_pins, &options);
    if (argc != 3 || strcmp(argv[0], "accept") != 0) {
        term_error("pins", "expected nothing, or: accept TOOL DIGEST, as `%s pins` prints it",
                   term_program_name());
        return CLI_ERROR;
    }
    options.tool = argv[1];
    options.digest = argv[2];
    return accept_tool(command, &options);
}

const struct command command_pins = {
    .name = "pins",
    .operands = "[accept TOOL DIGEST]",
    .summary = "show and accept changed definitions of upstreams' tools",
    .about = "Shows which definitions of upstreams' tools differ from those that were accepted, by their "
             "first use\n"
             "or by this command: the old and the new text, and the new digest. `accept TOOL DIGEST` accepts "
             "what\n"
             "has this digest, at once; TOOL '*' with the digest at the end accepts everything that was "
             "shown. For\n"
             "root and the daemon's user. What happens to a tool that waits, the configuration says: pins = "
             "\"warn\",\n"
             "\"changes\" (changed tools are neither listed nor callable) or \"all\" (new ones, too).",
    .exits = "  0  nothing waits; it was accepted\n"
             "  1  definitions wait; it has another digest, or there is no such tool\n"
             "  2  usage, no daemon, another user's daemon",
    .example = "  toolgate pins\n"
               "  toolgate pins accept files/search 5891b5b522d5df086d0ff0b110fbd9d2",
    .most = 3,
    .run = run,
};

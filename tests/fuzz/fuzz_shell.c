/*
 * The reader of shell commands (policies/assistant/lib) on a text, as the policies run it. The first byte
 * says what the rest is:
 *
 *   even  any text: it is read to its end within the deadline, and a command before it changes none of it
 *         (bit 2: it is a unit, repeated to LONG_BYTES; a quadratic reader takes minutes for it)
 *   odd   words and how each is quoted: the text that is written of them is read as the same words, also
 *         when `bash -c` runs it
 *
 * Run it from the top of the tree.
 */
#include "require.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD_MAX_BYTES 40u
#define COMMANDS_MAX   100u /* the reader reads 500 */
#define TEXT_MAX_BYTES 4096u
#define UNIT_MAX_BYTES 64u
#define LONG_BYTES     100000u
#define DEADLINE_MS    20000u /* with sanitizers and on a busy machine */

static const char source[] =
    "-- reads: a command line. For the fuzzer.\n"
    "local shell = require 'lib.shell'\n"
    "local commands = require 'lib.commands'\n"
    "local protected = require 'lib.protected'\n"
    "local function words_of(list, first)\n"
    "  local all = {}\n"
    "  for i = first, #list do\n"
    "    for n, word in ipairs(list[i].words) do all[#all + 1] = (n == 1 and '1' or '2') .. word end\n"
    "  end\n"
    "  return all\n"
    "end\n"
    "local function judge(list)\n"
    "  local found = {}\n"
    "  for _, command in ipairs(list) do\n"
    "    commands.operates_gateway(command)\n"
    "    for _, path in ipairs(commands.writes(command)) do found[#found + 1] = path end\n"
    "    for _, path in ipairs(protected.paths_of_patch(commands.patch(command) or '')) do\n"
    "      found[#found + 1] = path\n"
    "    end\n"
    "    commands.destroys(command)\n"
    "  end\n"
    "  protected.writes(found)\n"
    "end\n"
    "local function differs(words, expected)\n"
    "  for i, word in ipairs(expected) do\n"
    "    if words[i] ~= word then\n"
    "      return ('word %d: %q instead of %q'):format(i, tostring(words[i]), word)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return tool 'reads' { description = 'Read.', effects = 'read',\n"
    "  schema = json [[{\"type\":\"object\"}]],\n"
    "  run = function(args)\n"
    "    local list = shell.commands(args.text)\n"
    "    judge(list)\n"
    "    if args.words then return differs(words_of(list, 1), args.words) or 'ok' end\n"
    "    local behind = shell.commands('rm -rf /etc; ' .. args.text)\n"
    "    if not commands.destroys(behind[1]) then return 'the command before the text is not seen' end\n"
    "    if #behind >= 500 then return 'ok' end\n"
    "    if #behind ~= #list + 1 then return ('%d commands, then %d'):format(#list, #behind) end\n"
    "    return differs(words_of(behind, 2), words_of(list, 1)) or 'ok'\n"
    "  end }\n";

static void copy_file(const char *from, const char *to)
{
    static char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    REQUIRE(in && out); /* run it from the top of the tree */
    size_t len = fread(bytes, 1, sizeof(bytes), in);
    REQUIRE(len < sizeof(bytes) && fwrite(bytes, 1, len, out) == len && fclose(out) == 0);
    fclose(in);
}

static const struct policy *load(void)
{
    static const char *const modules[] = {"shell", "commands", "protected"};
    static struct policy_set *set;
    if (set)
        return policy_set_at(set, 0);
    char folder[] = "/tmp/toolgate-fuzz-shell-XXXXXX", from[96], to[96];
    struct arena *arena = arena_new();
    struct policy_load_errors errors = {.arena = arena};
    const struct policy_set_options options = {.deadline_ms = DEADLINE_MS};
    REQUIRE(mkdtemp(folder));
    snprintf(to, sizeof(to), "%s/lib", folder);
    REQUIRE(mkdir(to, 0700) == 0);
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
        snprintf(from, sizeof(from), "policies/assistant/lib/%s.lua", modules[i]);
        snprintf(to, sizeof(to), "%s/lib/%s.lua", folder, modules[i]);
        copy_file(from, to);
    }
    snprintf(to, sizeof(to), "%s/reads.lua", folder);
    FILE *file = fopen(to, "w");
    REQUIRE(file && fputs(source, file) >= 0 && fclose(file) == 0);
    if (policy_set_load(folder, &options, &set, &errors) != OK) {
        fprintf(stderr, "%.*s\n", STR_ARG(errors.list[0]));
        abort();
    }
    arena_free(arena);
    return policy_set_at(set, 0);
}

/* ---- words ---- */

struct writing {
    const uint8_t *at, *end;
    struct arena *arena;
    struct buf text;
    struct json *words;
    uint32_t count, max;
};

static unsigned choose(struct writing *w, unsigned count)
{
    return w->at < w->end ? *w->at++ % count : 0;
}

/* "1" before a command's first word and "2" before the others, as the policy does. */
static void expect(struct writing *w, char mark, struct str word)
{
    struct str text = arena_printf(w->arena, "%c" STR_FMT, mark, STR_ARG(word));
    REQUIRE(w->count < w->max);
    w->words[w->count++] = json_string(text);
}

static void put_quoted(struct buf *out, struct str word, unsigned how)
{
    buf_text(out, how == 0 ? "'" : how == 1 ? "\"" : "");
    for (size_t i = 0; i < word.len; i++) {
        char byte = word.at[i];
        if (how == 0 && byte == '\'')
            buf_text(out, "'\\''");
        else if (how == 2 && byte == '\n')
            buf_text(out, "'\n'");
        else if (how == 2 || (how == 1 && strchr("\"\\$`", byte)))
            buf_printf(out, "\\%c", byte);
        else
            buf_byte(out, byte);
    }
    buf_text(out, how == 0 ? "'" : how == 1 ? "\"" : word.len ? "" : "''");
}

static void put_word(struct writing *w)
{
    char bytes[WORD_MAX_BYTES];
    struct str word = {bytes, 0};
    unsigned how = choose(w, 4);
    for (size_t len = choose(w, WORD_MAX_BYTES); word.len < len && w->at < w->end; word.len++) {
        bytes[word.len] = (char)(*w->at++ & 0x7f);
        if (!bytes[word.len])
            bytes[word.len] = ' '; /* no word of a shell has a zero byte */
    }
    size_t half = how == 3 ? word.len / 2 : word.len; /* two quotings in one word */
    put_quoted(&w->text, str_cut(word, half), how % 3);
    if (half < word.len)
        put_quoted(&w->text, str_from(word, half), 2 - how % 2);
    expect(w, '2', word);
}

static void put_commands(struct writing *w)
{
    static const char *const ends[] = {"; ", "\n",        " && ",  " | ", " & ",
                                       "||", " 2>&1 |& ", " #'\n", ";(",  ")\n"};
    for (unsigned i = 0; w->at < w->end && i < COMMANDS_MAX && w->text.len < TEXT_MAX_BYTES; i++) {
        struct str program = arena_printf(w->arena, "p%u", i);
        buf_str(&w->text, program);
        expect(w, '1', program);
        for (unsigned words = choose(w, 5); words-- > 0;) {
            buf_text(&w->text, choose(w, 8) ? " " : "\t\\\n ");
            put_word(w);
        }
        buf_text(&w->text, ends[choose(w, sizeof(ends) / sizeof(*ends))]);
    }
}

/* `bash -c TEXT`, whose commands follow it. */
static struct str wrapped(struct writing *w)
{
    struct buf outer = buf_in(w->arena);
    struct str inner = buf_view(&w->text);
    buf_text(&outer, "bash -c ");
    put_quoted(&outer, inner, 1);
    memmove(w->words + 3, w->words, w->count * sizeof(*w->words));
    w->words[0] = json_string(STR_LIT("1bash"));
    w->words[1] = json_string(STR_LIT("2-c"));
    w->words[2] = json_string(arena_printf(w->arena, "2" STR_FMT, STR_ARG(inner)));
    w->count += 3;
    return buf_view(&outer);
}

static struct json arguments_of(struct arena *arena, const uint8_t *data, size_t size)
{
    static const uint8_t nothing[1];
    bool of_words = size && data[0] & 1u, is_wrapped = size && data[0] & 2u;
    struct writing w = {.at = size ? data + 1 : nothing, .end = size ? data + size : nothing, .arena = arena};
    w.text = buf_in(arena);
    w.max = 6 * COMMANDS_MAX + 3;
    w.words = ARENA_ARRAY(arena, struct json, w.max);
    if (of_words)
        put_commands(&w);
    else
        for (; w.at < w.end; w.at++)
            buf_byte(&w.text, (char)(*w.at & 0x7f));
    struct str unit = str_cut(buf_view(&w.text), UNIT_MAX_BYTES);
    bool is_long = !of_words && size && data[0] & 4u && unit.len;
    while (is_long && w.text.len < LONG_BYTES)
        buf_str(&w.text, unit);
    struct str text = of_words && is_wrapped ? wrapped(&w) : buf_view(&w.text);
    struct json_member members[] = {json_member(STR_LIT("text"), json_string(text)),
                                    json_member(STR_LIT("words"), json_array(w.words, w.count))};
    return *json_keep(arena, json_object(arena, members, of_words ? 2 : 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct policy *policy = load();
    struct arena *arena = arena_new();
    struct json arguments = arguments_of(arena, data, size < TEXT_MAX_BYTES ? size : TEXT_MAX_BYTES);
    const struct policy_call call = {.tool = STR("reads"), .session = STR("s")};
    struct policy_outcome outcome;
    policy_run(policy, &call, &arguments, arena, &outcome);
    if (outcome.kind != OUTCOME_VALUE || !str_is(json_str(outcome.value), "ok")) {
        struct str said = outcome.kind == OUTCOME_VALUE ? json_str(outcome.value) : str_of(outcome.why.text);
        fprintf(stderr, "fuzz_shell: " STR_FMT "\n", STR_ARG(said));
        abort();
    }
    arena_free(arena);
    return 0;
}

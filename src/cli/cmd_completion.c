/*
 * toolgate completion: the scripts of the shells, and the candidates that these
 * scripts ask for while somebody types. The candidates come from the tables of
 * commands and options, so that a new option is completed without more.
 */
#include "base/arena.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/term.h"
#include "policy/reference.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMPLETION_DAEMON_MAX_S 2u /* for the daemon's list of tools; then the shell gets what there is */

/* A candidate and its description on one line, or a request to the shell: ":files", ":folders". */
static const char bash_script[] =
    "# bash completion of toolgate\n"
    "_toolgate() {\n"
    "    local line current=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o filenames\n"
    "            mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
    "        :folders) compopt -o filenames\n"
    "            mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"$1\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _toolgate toolgate\n";

static const char zsh_script[] =
    "#compdef toolgate\n"
    "# zsh completion of toolgate\n"
    "_toolgate() {\n"
    "    local line found_none=1\n"
    "    local -a found\n"
    "    for line in \"${(@f)$(${words[1]} completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; "
    "do\n"
    "        case $line in\n"
    "        '') ;;\n"
    "        :files) _files && found_none=0 ;;\n"
    "        :folders) _files -/ && found_none=0 ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( ${#found} )) && _describe toolgate found && found_none=0\n"
    "    return found_none\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _toolgate ]; then _toolgate \"$@\"; else compdef _toolgate toolgate; fi\n";

static const char fish_script[] =
    "# fish completion of toolgate\n"
    "function __toolgate_candidates\n"
    "    set -l before (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    command -q $before[1]; or return\n"
    "    for line in ($before[1] completion words -- $before[2..] \"$current\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path \"$current\"\n"
    "            case :folders\n"
    "                __fish_complete_directories \"$current\"\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c toolgate -f -a '(__toolgate_candidates)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

/* The words of a command line after the program's name; the last one is being typed and may be empty. */
struct completion {
    char **words;
    int count;
    const struct command *command; /* words[0] */
    const struct cli_option *options;
    const char *current;
    const char *socket; /* of --socket, if it was typed */
};

static void add(const struct completion *c, const char *candidate, const char *words)
{
    if (strncmp(candidate, c->current, strlen(c->current)) == 0)
        printf("%s\t%s\n", candidate, words);
}

static void add_commands(const struct completion *c)
{
    for (size_t i = 0; i < toolgate_commands.count; i++)
        add(c, toolgate_commands.commands[i]->name, toolgate_commands.commands[i]->summary);
}

static void add_files(const struct completion *c)
{
    (void)c;
    puts(":files");
}

static void add_folders(const struct completion *c)
{
    (void)c;
    puts(":folders");
}

/* A shell puts a candidate on its line as it is: `$(…)` in a name would run at the next Enter. */
static bool is_one_plain_word(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_letter(name.at[i]) && !ascii_is_digit(name.at[i]) &&
            (!name.at[i] || !strchr("_-./:@", name.at[i])))
            return false;
    return name.len > 0;
}

/* What a running daemon serves. Without a daemon, or without an answer in time, nothing. */
static void add_tools(const struct completion *c)
{
    struct arena *arena = arena_new();
    struct daemon_client *client;
    struct json answer;
    struct why why;
    alarm(COMPLETION_DAEMON_MAX_S);
    if (daemon_client_connect(c->socket, &client, &why) == OK &&
        daemon_client_call(client, arena, "toolgate/tools", STR_LIT("{\"format\":\"mcp\"}"), &answer, &why) ==
            OK) {
        const struct json *tools = json_get_text(&answer, "tools");
        for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
            struct str name = json_str(json_get_text(&tools->items[i], "name"));
            if (is_one_plain_word(name))
                add(c, arena_dup(arena, name).at, "tool");
        }
    }
    daemon_client_close(client);
    arena_free(arena);
}

static void add_vocabulary(const struct completion *c)
{
    size_t count;
    const struct vocabulary_word *words = vocabulary_words(&count);
    for (size_t i = 0; i < count; i++)
        add(c, words[i].name, words[i].group);
}

/* What the argument of an option or an operand is, by its name in --help. */
static const struct {
    const char *name;
    void (*complete)(const struct completion *c);
} kinds[] = {
    {"PATH", add_files},   {"FILE", add_files},     {"DIR|FILE", add_files},
    {"SCHEMA", add_files}, {"INSTANCE", add_files}, {"SOCKET", add_files},
    {"DIR", add_folders},  {"TOOL", add_tools},     {"WORD", add_vocabulary},
};

/* "text|json": a candidate each. */
static void add_choices(const struct completion *c, struct str names)
{
    while (names.len) {
        const char *bar = memchr(names.at, '|', names.len);
        size_t len = bar ? (size_t)(bar - names.at) : names.len;
        if (len >= strlen(c->current) && memcmp(names.at, c->current, strlen(c->current)) == 0)
            printf("%.*s\t\n", (int)len, names.at);
        names = str_from(names, len + (bar ? 1 : 0));
    }
}

static void add_values(const struct completion *c, struct str what)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_is(what, kinds[i].name)) {
            kinds[i].complete(c);
            return;
        }
    if (what.len && what.at[0] >= 'a' && what.at[0] <= 'z')
        add_choices(c, what);
}

static const struct cli_option *option_of(const struct completion *c, const char *word)
{
    for (const struct cli_option *option = c->options; option->name; option++) {
        bool is_letter = option->letter && word[0] == '-' && word[1] == option->letter && !word[2];
        if (is_letter || (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0))
            return option;
    }
    return NULL;
}

static void add_options(const struct completion *c)
{
    char name[64];
    for (const struct cli_option *option = c->options; option->name; option++) {
        snprintf(name, sizeof(name), "--%s", option->name);
        if (option->words)
            add(c, name, option->words);
    }
    add(c, "--help", "print this help");
}

/* The name of the operand at an index, without brackets; of "SCHEMA INSTANCE..." the last one is any later
 * one too. */
static struct str operand_at(const char *operands, int index)
{
    struct str name = STR_NONE;
    for (const char *at = operands; *at && index >= 0; index--) {
        size_t len = strcspn(at, " "), from = at[0] == '[';
        name = (struct str){at + from, strcspn(at + from, " ].")};
        bool repeats = memmem(at, len, "...", 3) != NULL;
        at += len + (at[len] == ' ');
        if (!*at && index > 0 && !repeats)
            return STR_NONE; /* more words than operands */
    }
    return name;
}

/* options_read hands over the table; its targets are valid only now. */
static void complete_command(const struct cli_option *options, void *owner)
{
    struct completion *c = owner;
    const struct cli_option *pending = NULL; /* its value is next */
    int operands = 0;
    c->options = options;
    for (int i = 1; i < c->count - 1; i++) {
        const char *word = c->words[i];
        if (strcmp(word, "=") == 0) /* bash takes --socket=PATH apart */
            continue;
        if (pending && strcmp(pending->name, "socket") == 0)
            c->socket = word;
        const struct cli_option *option = pending ? NULL : option_of(c, word);
        operands += !pending && !option && word[0] != '-';
        pending = option && option->argument ? option : NULL;
    }
    if (strcmp(c->current, "=") == 0)
        c->current = "";
    if (pending)
        add_values(c, str_of(pending->argument));
    else if (c->current[0] == '-')
        add_options(c);
    else
        add_values(c, operand_at(c->command->operands, operands));
}

static void complete(char **words, int count)
{
    struct completion c = {.words = words, .count = count, .current = words[count - 1]};
    bool help = strcmp(words[0], "help") == 0;
    if (count == 1 || (help && count == 2)) {
        add_commands(&c);
        return;
    }
    for (size_t i = 0; i < toolgate_commands.count; i++) {
        struct command command = *toolgate_commands.commands[i];
        if (strcmp(command.name, words[0]) != 0)
            continue;
        c.command = toolgate_commands.commands[i];
        command.visit = complete_command;
        command.visit_owner = &c;
        command.run(&command, 0, NULL);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    int status;
    const struct cli_option table[] = {{0}};
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    if (strcmp(argv[0], "words") == 0) {
        if (argc > 1)
            complete(argv + 1, argc - 1);
        return CLI_OK;
    }
    for (size_t i = 0; argc == 1 && i < sizeof(scripts) / sizeof(scripts[0]); i++)
        if (strcmp(argv[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return CLI_OK;
        }
    term_error(command->name, "expected bash, zsh or fish, got '%s'", argv[argc == 1 ? 0 : 1]);
    return CLI_ERROR;
}

const struct command command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a shell's completion script",
    .about =
        "Prints the script that makes bash, zsh or fish complete toolgate's commands, options, files and "
        "the\n"
        "tools of a running daemon. The Debian package and `make install` install these scripts. A script\n"
        "calls `toolgate completion words -- WORD...`, which prints what may stand for the last WORD.",
    .exits = "  0  printed\n"
             "  2  usage",
    .example = "  source <(toolgate completion bash)\n"
               "  toolgate completion fish > ~/.config/fish/completions/toolgate.fish",
    .least = 1,
    .most = 1000,
    .run = run,
};

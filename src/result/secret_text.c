/*
 * The scan stops at bytes that every form of secret has ('=', ':', '-', '_', …), and looks around them. Where
 * a form is in doubt, it is a secret: a word too many in the mask harms less than one too few.
 */
#include "result/secret_text.h"

/* A span of a text. */
struct span {
    size_t at, len; /* len 0: nothing */
};

static const struct span none = {0, 0};

/* ---- characters ---- */

static bool is_name_char(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '-';
}

/* Of a token in base64, base64url or hex. */
static bool is_token_char(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '/' || c == '=' ||
           c == '~';
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char char_at(struct str text, size_t at)
{
    return at < text.len ? text.at[at] : '\0';
}

static size_t token_end(struct str text, size_t at)
{
    while (at < text.len && is_token_char(text.at[at]))
        at++;
    return at;
}

/* ---- keys of known form ---- */

#define KEY_BODY_LEAST     10u
#define COMMAND_NEAR_BYTES 128u /* before its flag */

/* `body`: at least this many characters of a token follow, KEY_BODY_LEAST or more. `name`: of the pattern. */
static const struct key_form {
    struct str prefix;
    size_t body;
    struct str name;
} key_forms[] = {
    /* clang-format off */
    {STR("sk-"), 16, STR("api_key")}, {STR("sk_live_"), 10, STR("stripe_key")},
    {STR("sk_test_"), 10, STR("stripe_key")}, {STR("rk_live_"), 10, STR("stripe_key")},
    {STR("rk_test_"), 10, STR("stripe_key")}, {STR("ghp_"), 20, STR("github_token")},
    {STR("gho_"), 20, STR("github_token")}, {STR("ghu_"), 20, STR("github_token")},
    {STR("ghs_"), 20, STR("github_token")}, {STR("ghr_"), 20, STR("github_token")},
    {STR("github_pat_"), 20, STR("github_token")}, {STR("glpat-"), 16, STR("gitlab_token")},
    {STR("xoxb-"), 10, STR("slack_token")}, {STR("xoxp-"), 10, STR("slack_token")},
    {STR("xoxa-"), 10, STR("slack_token")}, {STR("xoxr-"), 10, STR("slack_token")},
    {STR("xoxs-"), 10, STR("slack_token")}, {STR("xapp-"), 10, STR("slack_token")},
    {STR("npm_"), 20, STR("npm_token")}, {STR("pypi-"), 20, STR("pypi_token")},
    {STR("hf_"), 20, STR("huggingface_token")}, {STR("gsk_"), 20, STR("groq_key")},
    {STR("xai-"), 20, STR("xai_key")}, {STR("nvapi-"), 20, STR("nvidia_key")},
    {STR("tvly-"), 16, STR("tavily_key")}, {STR("dop_v1_"), 20, STR("digitalocean_token")},
    {STR("shpat_"), 20, STR("shopify_token")}, {STR("lin_api_"), 20, STR("linear_key")},
    {STR("whsec_"), 16, STR("webhook_secret")}, {STR("SG."), 20, STR("sendgrid_key")},
    {STR("ya29."), 20, STR("google_token")}, {STR("AKIA"), 12, STR("aws_access_key")},
    {STR("ASIA"), 12, STR("aws_access_key")}, {STR("AIz"), 30, STR("google_api_key")},
    {STR("eyJ"), 30, STR("jwt")}, {STR("r8_"), 20, STR("replicate_token")},
    {STR("figd_"), 20, STR("figma_token")}, {STR("sntrys_"), 20, STR("sentry_token")},
    /* clang-format on */
};

/* The last byte of a prefix is at `last`: '-', '_', '.', or a letter. */
static struct span key_form_ending(struct str text, size_t last, struct str *name)
{
    /* Whether as many characters of a token may follow; most words are too short, and dates begin with a
     * digit. */
    if (!(text.len - last > KEY_BODY_LEAST && last &&
          !(text.at[last] == '-' && ascii_is_digit(text.at[last - 1])) && is_token_char(text.at[last + 1]) &&
          is_token_char(text.at[last + KEY_BODY_LEAST / 2]) && is_token_char(text.at[last + KEY_BODY_LEAST])))
        return none;
    for (size_t i = 0; i < sizeof(key_forms) / sizeof(*key_forms); i++) {
        struct str prefix = key_forms[i].prefix;
        if (prefix.at[prefix.len - 1] != text.at[last] || last + 1 < prefix.len)
            continue;
        size_t from = last + 1 - prefix.len;
        if (memcmp(text.at + from, prefix.at, prefix.len) != 0 || (from && ascii_is_alnum(text.at[from - 1])))
            continue;
        size_t end = token_end(text, last + 1);
        *name = key_forms[i].name;
        if (end - last - 1 >= key_forms[i].body)
            return (struct span){from, end - from};
    }
    return none;
}

/* -----BEGIN RSA PRIVATE KEY----- … -----END …, or to the end of the text. */
static struct span private_key(struct str text, size_t dash)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----END ";
    struct str rest = str_from(text, dash);
    const char *line = NULL, *close = NULL;
    if (char_at(text, dash + 1) != '-' || !str_starts(rest, begin) ||
        !(line = memmem(rest.at, rest.len < 80 ? rest.len : 80, "PRIVATE KEY", 11)))
        return none;
    close = memmem(line, (size_t)(rest.at + rest.len - line), end, sizeof(end) - 1);
    return (struct span){dash, close ? (size_t)(close - rest.at) : rest.len};
}

/* ---- name=value ---- */

/* The value at `at`: quoted, else up to the next blank or bracket; of a whole line, up to its end. */
static struct span value_at(struct str text, size_t at, bool line)
{
    static const char *const no_secrets[] = {"true", "false", "null",      "none",
                                             "None", "nil",   "undefined", "***"};
    size_t escaped = char_at(text, at) == '\\' && is_quote(char_at(text, at + 1));
    char quote = char_at(text, at + escaped);
    bool quoted = is_quote(quote);
    size_t from = quoted ? at + escaped + 1 : at, end = from;
    /* A variable or a placeholder, as its first bytes show: its end is not searched for, because a text can
     * hold many of them. */
    if (char_at(text, from) == '$' || char_at(text, from) == '<' ||
        str_starts(str_from(text, from), "[redacted"))
        return none;
    for (; end < text.len; end++) {
        char c = text.at[end];
        if (quoted ? c == quote : is_quote(c) || c == '\n' || c == '\r')
            break;
        if (quoted && c == '\\' && !escaped)
            end++;
        if (!quoted && !line && (is_blank(c) || strchr("&;,)}]>|\\", c)))
            break;
    }
    if (end > text.len)
        end = text.len;
    if (quoted && escaped && end > from && text.at[end - 1] == '\\')
        end--;
    struct str value = {text.at + from, end - from};
    return !value.len || STR_IS_ONE_OF(value, no_secrets) ? none : (struct span){from, value.len};
}

static bool is_secret_name(const struct secret_names *names, struct str name)
{
    return name.len >= 3 && names->is_secret(names->owner, name);
}

/* Back over name characters; not far. */
static size_t name_start(struct str text, size_t end)
{
    size_t from = end;
    while (from && end - from < SECRET_TEXT_NAME_MAX_BYTES && is_name_char(text.at[from - 1]))
        from--;
    return from;
}

static size_t back_over(struct str text, size_t at, const char *chars)
{
    size_t least = at > SECRET_TEXT_NAME_MAX_BYTES ? at - SECRET_TEXT_NAME_MAX_BYTES : 0;
    while (at > least && text.at[at - 1] && strchr(chars, text.at[at - 1]))
        at--;
    return at;
}

/* `value` at `from`, as in name="API_KEY" value="x": what stands before it says whether it is secret. */
static bool is_named_before(struct str text, const struct secret_names *names, size_t from)
{
    static const char *const words[] = {"name", "key", "header", "param", "parameter", "variable"};
    size_t end = back_over(text, from, "\"'\\, \t\r\n"), start = name_start(text, end);
    struct str name = {text.at + start, end - start};
    size_t sign = back_over(text, start, "\"'\\ \t");
    if (end == from || !sign || (text.at[sign - 1] != '=' && text.at[sign - 1] != ':'))
        return false;
    size_t key_end = back_over(text, sign - 1, "\"'\\ \t"), key = name_start(text, key_end);
    return STR_IS_ONE_OF(((struct str){text.at + key, key_end - key}), words) && is_secret_name(names, name);
}

/* The name that ends with `name` at `from`, or what it belongs to: "api key: x", "api.key=x". */
static bool names_secret(struct str text, const struct secret_names *names, size_t from, size_t end)
{
    struct str name = {text.at + from, end - from};
    if (is_secret_name(names, name))
        return true;
    if (str_is(name, "value"))
        return is_named_before(text, names, from);
    bool two = name.len == 3 && str_starts_nocase(name, "key") && from && strchr(". ", text.at[from - 1]);
    size_t first = two ? name_start(text, from - 1) : from;
    return first < from && is_secret_name(names, (struct str){text.at + first, end - first});
}

/* At '=' or ':'. A name in quotes takes a quoted value only: 'password': expected a string. */
static struct span assigned(struct str text, const struct secret_names *names, size_t sign)
{
    size_t end = sign;
    char next = char_at(text, sign + 1);
    if (next == '=' || next == '\0' || (text.at[sign] == ':' && next == '/') ||
        (sign && text.at[sign - 1] == '='))
        return none;
    end -= end && text.at[sign] == '=' && text.at[end - 1] == ':'; /* := */
    while (end && is_blank(text.at[end - 1]))
        end--;
    bool quoted = end && is_quote(text.at[end - 1]);
    end -= quoted;
    end -= quoted && end && text.at[end - 1] == '\\';
    size_t from = name_start(text, end);
    while (from < end && text.at[from] == '-')
        from++;
    struct str name = {text.at + from, end - from};
    if (!names_secret(text, names, from, end))
        return none;
    size_t at = str_span(text, sign + 1, " \t");
    char first = char_at(text, at);
    if (quoted && text.at[sign] == ':' && !is_quote(first) &&
        !(first == '\\' && is_quote(char_at(text, at + 1))))
        return none;
    bool line =
        str_contains_nocase(name, STR_LIT("authorization")) || str_contains_nocase(name, STR_LIT("cookie"));
    return value_at(text, at, line);
}

/* user:password, "user:password". A name without a password is no secret, so only its first bytes are
 * searched for the colon: a text full of such names must not be read once for each of them. */
static struct span password_of_user(struct str text, size_t at)
{
    size_t near = at + SECRET_TEXT_NAME_MAX_BYTES;
    struct span user = value_at((struct str){text.at, text.len < near ? text.len : near}, at, false);
    const char *colon = user.len ? memchr(text.at + user.at, ':', user.len) : NULL;
    size_t from = colon ? (size_t)(colon - text.at) + 1 : 0;
    if (!colon || from >= user.at + user.len || text.at[from] == '$')
        return none;
    user = value_at(text, at, false);
    return (struct span){from, user.at + user.len - from};
}

/* mysql -phunter2: of these commands alone, as -p is a port or a path elsewhere. */
static bool names_mysql(struct str text, size_t dash)
{
    static const char *const commands[] = {"mysql", "mariadb", "sshpass"};
    size_t from = dash > COMMAND_NEAR_BYTES ? dash - COMMAND_NEAR_BYTES : 0;
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (memmem(text.at + from, dash - from, commands[i], strlen(commands[i])))
            return true;
    return false;
}

/* --password x, --token "x", -u user:password, -phunter2; `dash` is the last one before the name. */
static struct span flag(struct str text, const struct secret_names *names, size_t dash)
{
    char before = dash ? text.at[dash - 1] : ' ';
    bool is_long = before == '-';
    if (!is_long && !is_blank(before) && before != '\n' && !is_quote(before))
        return none;
    if (is_long && dash > 1 && is_name_char(text.at[dash - 2])) /* in a run of dashes only one is looked at */
        return none;
    size_t from = dash + 1, end = from;
    if (!is_long && char_at(text, from) == 'p' && names_mysql(text, dash))
        return value_at(text, from + 1, false);
    while (end < text.len && end - from <= SECRET_TEXT_NAME_MAX_BYTES && is_name_char(text.at[end]))
        end++;
    struct str name = {text.at + from, end - from};
    size_t at = str_span(text, end, " \t");
    if (at == end || !name.len || name.len > SECRET_TEXT_NAME_MAX_BYTES)
        return none;
    if (is_long && is_secret_name(names, name))
        return char_at(text, at) == '-' ? none : value_at(text, at, false);
    return str_is(name, is_long ? "user" : "u") ? password_of_user(text, at) : none;
}

/* ---- others ---- */

/* Whether base64 begins a text with a colon: "dXNlcjpwYXNz" is "user:pass". */
static bool encodes_colon(struct str token)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < token.len && i < SECRET_TEXT_NAME_MAX_BYTES; i++) {
        const char *digit = strchr(digits, token.at[i]);
        if (!digit || !token.at[i])
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        unsigned char byte = (unsigned char)(bits >> count);
        if (byte < ' ' || byte == ':')
            return byte == ':';
    }
    return false;
}

/* "bearer capability" */
static bool is_word(struct str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (!(token.at[i] >= 'a' && token.at[i] <= 'z'))
            return false;
    return true;
}

/* "Bearer eyJ…", "bearer abc", "Basic dXNlcjpwYXNz"; 'B' is at `at`. */
static struct span credentials(struct str text, size_t at)
{
    bool is_bearer = (char_at(text, at + 1) | 32) == 'e';
    if (!str_starts_nocase(str_from(text, at), is_bearer ? "bearer" : "basic ") ||
        (is_bearer && !is_blank(char_at(text, at + 6))) || (at && is_name_char(text.at[at - 1])))
        return none;
    size_t from = str_span(text, at + 6, " \t"), end = token_end(text, from);
    struct str token = {text.at + from, end - from};
    bool is_secret = is_bearer ? token.len >= 8 && !is_word(token) : encodes_colon(token);
    return is_secret ? (struct span){from, token.len} : none;
}

/* <password>x</password>; '>' is at `at`. */
static struct span element(struct str text, const struct secret_names *names, size_t at)
{
    size_t from = name_start(text, at);
    if (!from || text.at[from - 1] != '<' || !is_secret_name(names, (struct str){text.at + from, at - from}))
        return none;
    size_t end = str_find(text, at + 1, "<");
    return end > at + 1 ? (struct span){at + 1, end - at - 1} : none;
}

/* IDENTIFIED BY 'x', PASSWORD 'x'; the quote is at `at`. */
static struct span after_word(struct str text, const struct secret_names *names, size_t at)
{
    size_t end = back_over(text, at, " \t"), from = name_start(text, end);
    struct str word = {text.at + from, end - from};
    if (end == at || !word.len)
        return none;
    size_t before = back_over(text, from, " \t");
    bool is_by = word.len == 2 && str_starts_nocase(word, "by") && before >= strlen("identified") &&
                 str_starts_nocase(str_from(text, before - strlen("identified")), "identified");
    return is_by || is_secret_name(names, word) ? value_at(text, at, false) : none;
}

/* ://user:password@host, ://token@host; ':' is at `at`. */
static struct span in_url(struct str text, size_t at)
{
    size_t from = at + 3, colon = 0, end = from;
    if (char_at(text, at + 1) != '/' || !str_starts(str_from(text, at), "://"))
        return none;
    while (end < text.len && !is_blank(text.at[end]) && !is_quote(text.at[end]) &&
           !strchr("/?#@\n\r<>", text.at[end])) {
        if (text.at[end] == ':' && !colon)
            colon = end;
        end++;
    }
    if (char_at(text, end) != '@')
        return none;
    from = colon ? colon + 1 : from;
    bool is_secret = end > from && text.at[from] != '$' && (colon || end - from >= 20);
    return is_secret ? (struct span){from, end - from} : none;
}

/* ---- the scan ---- */

static const bool is_anchor[256] = {
    ['='] = true, [':'] = true, ['-'] = true, ['_'] = true, ['.'] = true, ['J'] = true,
    ['A'] = true, ['z'] = true, ['b'] = true, ['B'] = true, ['>'] = true, ['\''] = true};

static struct span secret_around(struct str text, const struct secret_names *names, size_t at)
{
    struct span found = none;
    struct str name;
    switch (text.at[at]) {
    case ':':
        found = in_url(text, at);
        return found.len ? found : assigned(text, names, at);
    case '=':
        return assigned(text, names, at);
    case 'b':
    case 'B':
        return credentials(text, at);
    case '>':
        return element(text, names, at);
    case '\'':
        return after_word(text, names, at);
    case '-':
        found = key_form_ending(text, at, &name);
        if (!found.len)
            found = flag(text, names, at);
        return found.len ? found : private_key(text, at);
    default:
        return key_form_ending(text, at, &name);
    }
}

bool secret_text_find(struct str text, size_t from, const struct secret_names *names, size_t *at, size_t *len)
{
    const unsigned char *p = (const unsigned char *)text.at, *end = p + text.len;
    if (text.len < SECRET_TEXT_MIN_BYTES)
        return false;
    for (p += from;; p++) {
        while (end - p >= 4 && !(is_anchor[p[0]] | is_anchor[p[1]] | is_anchor[p[2]] | is_anchor[p[3]]))
            p += 4;
        while (p < end && !is_anchor[*p])
            p++;
        if (p >= end)
            return false;
        size_t i = (size_t)(p - (const unsigned char *)text.at);
        /* Dates, times, numbers and ports: no form of secret has its sign between two digits. */
        bool is_between_digits =
            i && i + 1 < text.len && ascii_is_digit(text.at[i - 1]) && ascii_is_digit(text.at[i + 1]);
        struct span found = is_between_digits ? none : secret_around(text, names, i);
        if (!found.len || found.at < from)
            continue;
        *at = found.at;
        *len = found.len;
        return true;
    }
}

/* ---- keys alone ---- */

#define KEY_RUN_LEAST 10u /* letters and digits in a row */
#define JWT_DOTS      2u

/* "sk-learn-some-words" has the form of a key, and base64 of any JSON object begins as a JWT does. */
static bool is_certain(struct str key, struct str name)
{
    size_t run = 0, longest = 0, dots = 0;
    bool digits = false, letters = false;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i];
        run = ascii_is_alnum(c) ? run + 1 : 0;
        longest = run > longest ? run : longest;
        digits |= ascii_is_digit(c);
        letters |= ascii_is_letter(c);
        dots += c == '.';
    }
    return digits && letters && longest >= KEY_RUN_LEAST && (!str_is(name, "jwt") || dots >= JWT_DOTS);
}

static const bool ends_prefix[256] = {
    ['-'] = true, ['_'] = true, ['.'] = true, ['J'] = true, ['A'] = true, ['z'] = true};

/* A token that is no certain key is read once: what its end lacks, its parts lack, too. Only a JWT without
 * its dots may contain a key of another form. */
bool secret_text_find_key(struct str text, size_t from, size_t *at, size_t *len, struct str *name)
{
    size_t no_jwt_before = from;
    for (size_t i = from; i < text.len; i++) {
        if (!ends_prefix[(unsigned char)text.at[i]] || (text.at[i] == 'J' && i < no_jwt_before))
            continue;
        struct span found = key_form_ending(text, i, name);
        if (!found.len && text.at[i] == '-' && (found = private_key(text, i)).len)
            *name = STR_LIT("private_key");
        if (!found.len || found.at < from)
            continue;
        struct str key = {text.at + found.at, found.len};
        if (!str_is(*name, "private_key") && !is_certain(key, *name)) {
            if (is_certain(key, STR_NONE))
                no_jwt_before = found.at + found.len;
            else
                i = found.at + found.len - 1;
            continue;
        }
        *at = found.at;
        *len = found.len;
        return true;
    }
    return false;
}

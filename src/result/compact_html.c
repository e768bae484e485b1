/* One pass, tag by tag: good enough to read, not a parser of HTML. */
#include "result/compact_internal.h"

#include "base/arena.h"
#include "base/buf.h"

#define TAG_NAME_MAX_BYTES 12u

struct html_reader {
    struct buf out;
    const char *at, *end;
    bool space; /* before the next word */
};

static bool begins(const char *at, const char *end, const char *with)
{
    return str_starts_nocase((struct str){at, (size_t)(end - at)}, with);
}

bool compact_html_detect(struct str text)
{
    text = str_trim(text);
    return str_starts_nocase(text, "<!doctype html") || str_starts_nocase(text, "<html");
}

static const char *after(const struct html_reader *r, const char *from, const char *what)
{
    size_t n = strlen(what);
    for (const char *p = from; p + n <= r->end; p++)
        if (begins(p, r->end, what))
            return p + n;
    return r->end;
}

static void break_line(struct html_reader *r, const char *mark)
{
    if (r->out.len && r->out.at[r->out.len - 1] != '\n')
        buf_byte(&r->out, '\n');
    buf_text(&r->out, mark);
    r->space = false;
}

static void read_tag(struct html_reader *r)
{
    static const char *const unseen[] = {"script", "style", "svg", "noscript", "template", "iframe"};
    static const char *const blocks[] = {
        "p",      "div",    "br",  "tr",   "table", "ul", "ol", "section", "article", "title",     "main",
        "header", "footer", "nav", "form", "pre",   "dl", "dt", "dd",      "body",    "blockquote"};
    char letters[TAG_NAME_MAX_BYTES];
    if (begins(r->at, r->end, "<!--")) {
        r->at = after(r, r->at + 4, "-->");
        return;
    }
    bool closes = r->at + 1 < r->end && r->at[1] == '/';
    struct str name = {letters, 0};
    for (const char *at = r->at + 1 + closes; at < r->end && name.len < TAG_NAME_MAX_BYTES; at++) {
        if (!ascii_is_letter(*at) && !(name.len && ascii_is_digit(*at)))
            break;
        letters[name.len++] = ascii_is_letter(*at) ? (char)(*at | 32) : *at;
    }
    r->at = after(r, r->at, ">");
    if (!closes && STR_IS_ONE_OF(name, unseen)) {
        char closing[TAG_NAME_MAX_BYTES + 3] = "</";
        memcpy(closing + 2, name.at, name.len);
        r->at = after(r, after(r, r->at, closing), ">");
    } else if (str_is(name, "li") && !closes) {
        break_line(r, "- ");
    } else if (name.len == 2 && name.at[0] == 'h' && name.at[1] >= '1' && name.at[1] <= '6') {
        break_line(r, closes ? "" : "# ");
    } else if (STR_IS_ONE_OF(name, blocks)) {
        break_line(r, "");
    } else if (str_is(name, "td") || str_is(name, "th")) {
        buf_text(&r->out, closes ? " |" : "");
    }
}

static void read_text(struct html_reader *r)
{
    static const struct {
        const char *name, *text;
    } entities[] = {{"&amp;", "&"}, {"&lt;", "<"},   {"&gt;", ">"},  {"&quot;", "\""},
                    {"&#39;", "'"}, {"&apos;", "'"}, {"&nbsp;", " "}};
    if ((unsigned char)*r->at <= ' ') {
        r->space = true;
        r->at++;
        return;
    }
    if (r->space && r->out.len && r->out.at[r->out.len - 1] != '\n' && r->out.at[r->out.len - 1] != ' ')
        buf_byte(&r->out, ' ');
    r->space = false;
    for (size_t i = 0; *r->at == '&' && i < sizeof(entities) / sizeof(*entities); i++)
        if (begins(r->at, r->end, entities[i].name)) {
            buf_text(&r->out, entities[i].text);
            r->at += strlen(entities[i].name);
            return;
        }
    buf_byte(&r->out, *r->at++);
}

struct str compact_html_to_text(struct arena *arena, struct str page)
{
    struct html_reader r = {.out = buf_in(arena), .at = page.at, .end = page.at + page.len};
    while (r.at < r.end) {
        bool is_tag = *r.at == '<' && r.at + 1 < r.end &&
                      (r.at[1] == '/' || r.at[1] == '!' || ascii_is_letter(r.at[1]));
        if (is_tag)
            read_tag(&r);
        else
            read_text(&r);
    }
    return str_trim(buf_view(&r.out));
}

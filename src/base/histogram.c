/* The bounds of histograms, and Prometheus' text format. */
#include "base/histogram.h"

#define US 1000LL
#define MS 1000000LL
#define S  1000000000LL

const struct histogram_bounds histogram_fine_bounds = {
    {{1 * US, "0.000001"}, {2 * US, "0.000002"}, {5 * US, "0.000005"}, {10 * US, "0.00001"},
     {20 * US, "0.00002"}, {50 * US, "0.00005"}, {100 * US, "0.0001"}, {200 * US, "0.0002"},
     {500 * US, "0.0005"}, {1 * MS, "0.001"},    {2 * MS, "0.002"},    {5 * MS, "0.005"},
     {10 * MS, "0.01"},    {20 * MS, "0.02"},    {50 * MS, "0.05"},    {100 * MS, "0.1"},
     {200 * MS, "0.2"},    {500 * MS, "0.5"},    {1 * S, "1"},         {2 * S, "2"},
     {5 * S, "5"},         {10 * S, "10"}},
    22};

const struct histogram_bounds histogram_mcp_bounds = {{{10 * MS, "0.01"},
                                                       {20 * MS, "0.02"},
                                                       {50 * MS, "0.05"},
                                                       {100 * MS, "0.1"},
                                                       {200 * MS, "0.2"},
                                                       {500 * MS, "0.5"},
                                                       {1 * S, "1"},
                                                       {2 * S, "2"},
                                                       {5 * S, "5"},
                                                       {10 * S, "10"},
                                                       {30 * S, "30"},
                                                       {60 * S, "60"},
                                                       {120 * S, "120"},
                                                       {300 * S, "300"}},
                                                      14};

/* ---- Prometheus; buf_printf only where it does not matter: a scrape may have tens of thousands of lines
 * ---- */

#define NS_PER_S 1000000000

void prometheus_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prometheus_name(struct buf *out, const char *name)
{
    buf_text(out, name);
}

/* Bytes that are no UTF-8 would make the whole scrape unreadable: they become U+FFFD. */
static void put_escaped(struct buf *out, struct str value)
{
    const char *end = value.at + value.len;
    for (const char *at = value.at; at < end;) {
        size_t len = str_utf8_length(at, end);
        if (!len)
            buf_text(out, "\xef\xbf\xbd");
        else if (*at == '\\' || *at == '"')
            buf_byte(out, '\\'), buf_byte(out, *at);
        else if (*at == '\n')
            buf_text(out, "\\n");
        else
            buf_add(out, at, len);
        at += len ? len : 1;
    }
}

void prometheus_label(struct buf *out, const char *key, struct str value)
{
    bool first = !out->len || (out->at[out->len - 1] != '"');
    buf_byte(out, first ? '{' : ',');
    buf_text(out, key);
    buf_text(out, "=\"");
    put_escaped(out, value);
    buf_byte(out, '"');
}

static void end_labels(struct buf *out)
{
    if (out->len && out->at[out->len - 1] == '"')
        buf_byte(out, '}');
    buf_byte(out, ' ');
}

void prometheus_value(struct buf *out, uint64_t value)
{
    end_labels(out);
    buf_int(out, (int64_t)value);
    buf_byte(out, '\n');
}

void prometheus_seconds(struct buf *out, int64_t ns)
{
    end_labels(out);
    buf_printf(out, "%lld.%09lld\n", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
}

void prometheus_metric(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    prometheus_head(out, name, type, help);
    prometheus_name(out, name);
    prometheus_value(out, value);
}

static void put_bucket(struct buf *out, const char *name, struct str labels, const char *le, uint64_t count)
{
    buf_text(out, name);
    buf_text(out, "_bucket");
    buf_str(out, labels);
    buf_text(out, labels.len ? ",le=\"" : "{le=\"");
    buf_text(out, le);
    buf_byte(out, '"');
    prometheus_value(out, count);
}

void prometheus_histogram(struct buf *out, const char *name, struct str labels, const struct histogram *h,
                          const struct histogram_bounds *bounds)
{
    uint64_t count = 0;
    for (size_t i = 0; i < bounds->count; i++)
        put_bucket(out, name, labels, bounds->list[i].seconds, count += h->buckets[i]);
    put_bucket(out, name, labels, "+Inf", count += h->buckets[bounds->count]);
    buf_text(out, name);
    buf_text(out, "_sum");
    buf_str(out, labels);
    prometheus_seconds(out, (int64_t)h->sum_ns);
    buf_text(out, name);
    buf_text(out, "_count");
    buf_str(out, labels);
    prometheus_value(out, count);
}

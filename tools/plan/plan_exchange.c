/* tools/plan/plan_exchange.c: see plan_exchange.h. */
#include "tools/plan/plan_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

enum { FIT_TIMES = 10, FIT_ROUNDS = 40 };
#define FIT_LEAST 0.05 /* of a step */

/* ---- --link RATE,LATENCY ---- */

typedef struct link_item {
    uint64_t bytes;
    double seconds;
} link_item;

static const opt bytes_item = MRI_ROW(link_item, bytes, SIZE, .option = "link", .least = 1, .most = 0x1p50);
static const opt latency_item = MRI_ROW(link_item, seconds, SECONDS, .option = "link", .most = 3600);

/* "1Gbit", "100Mbit/s": bits, in powers of ten. False: another unit. */
static bool read_bits(const char *text, double *bytes_per_s)
{
    static const struct {
        const char *unit;
        double bits;
    } units[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"mbit", 1e6}, {"Gbit", 1e9}, {"gbit", 1e9}};
    char *end;
    const double number = strtod(text, &end);
    const size_t bytes = strcspn(end, "/");
    if (end == text || !(number > 0) || number > 1e6 || (end[bytes] && strcmp(end + bytes, "/s") != 0))
        return false;
    for (size_t k = 0; k < OPT_COUNT(units); k++) {
        if (strlen(units[k].unit) != bytes || strncmp(end, units[k].unit, bytes) != 0) continue;
        *bytes_per_s = number * units[k].bits / 8;
        return true;
    }
    return false;
}

static int refuse(const char *text)
{
    say("--link: expected RATE,LATENCY such as 1Gbit,0.1ms, with a rate in kbit, Mbit, Gbit or bytes "
        "per second (100M); found '%s'",
        text);
    return EXIT_MISUSED;
}

int plan_link_read(const char *text, plan_link *out)
{
    char rate[32], message[256];
    link_item item = {0};
    *out = (plan_link){0};
    if (!text) return EXIT_DONE;
    const char *comma = strchr(text, ',');
    if (!comma || (size_t)(comma - text) >= sizeof rate) return refuse(text);
    snprintf(rate, sizeof rate, "%.*s", (int)(comma - text), text);
    if (!mri_setting_parse(&latency_item, &item, comma + 1, message, sizeof message)) return refuse(text);
    out->latency_s = item.seconds;
    if (read_bits(rate, &out->bytes_per_s)) return EXIT_DONE;
    if (!mri_setting_parse(&bytes_item, &item, rate, message, sizeof message)) return refuse(text);
    out->bytes_per_s = (double)item.bytes;
    return EXIT_DONE;
}

const char *plan_link_text(const plan_link *l, char *buf, size_t buf_bytes)
{
    const double bits = 8 * l->bytes_per_s;
    if (bits >= 1e9) snprintf(buf, buf_bytes, "%.3g Gbit/s", 1e-9 * bits);
    else snprintf(buf, buf_bytes, "%.3g Mbit/s", 1e-6 * bits);
    return buf;
}

/* ---- predictions ---- */

int plan_exchange_predict(const tool_session *s, double alone_ms, plan_exchange *x)
{
    mr_error err = MR_ERROR_INIT;
    mr_exchange_config cfg;
    if (x->ranks < 2) return EXIT_DONE;
    mr_exchange_defaults(&cfg);
    cfg.ranks = x->ranks;
    cfg.latency_s = x->link.latency_s;
    cfg.bytes_per_s = x->link.bytes_per_s;
    cfg.step_s = 1e-3 * alone_ms;
    cfg.bucket_bytes = s->compute->bucket_bytes;
    cfg.no_overlap = mr_device_info_of(s->devices[0])->simulated; /* their whole step is spent in the loss */
    const int status = exit_status(mr_exchange_predict(s->net, &cfg, &x->time, &err), &err);
    x->time.exposed_s += x->not_hidden * (x->time.sum_s - x->time.exposed_s);
    return status;
}

static int predict_slower(const tool_session *s, double alone_ms, const plan_exchange *x, double times,
                          plan_exchange *out)
{
    *out = *x;
    out->link.latency_s *= times;
    out->link.bytes_per_s /= times;
    return plan_exchange_predict(s, alone_ms, out);
}

/* Of the speed of *found's link. False: no such network takes exposed_ms. */
static bool find_speed(const tool_session *s, double alone_ms, double exposed_ms, plan_exchange *found,
                       int *status)
{
    const plan_exchange from = *found;
    double low = 1.0 / FIT_TIMES, high = FIT_TIMES; /* of the network's times */
    plan_exchange fast, slow;
    *status = predict_slower(s, alone_ms, &from, low, &fast);
    if (*status == EXIT_DONE) *status = predict_slower(s, alone_ms, &from, high, &slow);
    if (*status || 1e3 * fast.time.exposed_s > exposed_ms || 1e3 * slow.time.exposed_s < exposed_ms)
        return false;
    for (int k = 0; *status == EXIT_DONE && k < FIT_ROUNDS; k++) {
        const double middle = 0.5 * (low + high);
        *status = predict_slower(s, alone_ms, &from, middle, found);
        if (1e3 * found->time.exposed_s < exposed_ms) low = middle;
        else high = middle;
    }
    return *status == EXIT_DONE;
}

int plan_exchange_fit(const tool_session *s, double alone_ms, double exposed_ms, plan_exchange *x)
{
    plan_exchange found = *x;
    const double more_s = 1e-3 * exposed_ms - x->time.exposed_s, hidden_s = x->time.sum_s - x->time.exposed_s;
    int status = EXIT_DONE;
    if (x->ranks < 2 || exposed_ms < FIT_LEAST * (alone_ms + exposed_ms)) return EXIT_DONE;
    if (more_s > 0) found.not_hidden = more_s < hidden_s ? more_s / hidden_s : 1;
    if (found.not_hidden > 0 && found.not_hidden < 1) status = plan_exchange_predict(s, alone_ms, &found);
    else if (!find_speed(s, alone_ms, exposed_ms, &found, &status)) return status;
    if (status == EXIT_DONE) *x = found;
    return status;
}

int plan_exchange_others(const tool_session *s, double alone_ms, const plan_exchange *now,
                         const plan_link *given, plan_exchange out[PLAN_RANKS_MOST])
{
    static const uint32_t sizes[PLAN_RANKS_MOST] = {1, 2, 4, 8};
    const bool own = !(given->bytes_per_s > 0);
    const plan_link link = own ? now->link : *given;
    int status = EXIT_DONE;
    for (uint32_t k = 0, at = 0; status == EXIT_DONE && k < PLAN_RANKS_MOST; k++) {
        const bool as_now = sizes[k] == now->ranks && (sizes[k] == 1 || own);
        if (as_now || !(link.bytes_per_s > 0)) continue;
        out[at] = (plan_exchange){.ranks = sizes[k], .link = link, .not_hidden = own ? now->not_hidden : 0};
        status = plan_exchange_predict(s, alone_ms, &out[at++]);
    }
    return status;
}

/* tools/cli/json.c: see json.h. */
#include "tools/cli/json.h"

#include <inttypes.h>
#include <math.h>

#include "settings/json_put.h"
#include "tools/cli/output.h"

static void put_key(json_line *j, const char *key)
{
    if (j->comma) fputs(", ", j->out);
    j->comma = true;
    if (!key) return;
    mri_json_put_text(j->out, key);
    fputs(": ", j->out);
}

json_line json_begin(FILE *out, const char *event)
{
    json_line j = {out, false};
    fputc('{', out);
    json_text(&j, "event", event);
    return j;
}

void json_end(json_line *j)
{
    fputs("}\n", j->out);
    fflush(j->out);
}

void json_text(json_line *j, const char *key, const char *value)
{
    put_key(j, key);
    if (value) mri_json_put_text(j->out, value);
    else fputs("null", j->out);
}

void json_u64(json_line *j, const char *key, uint64_t value)
{
    put_key(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

void json_i64(json_line *j, const char *key, int64_t value)
{
    put_key(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void json_real(json_line *j, const char *key, double value)
{
    put_key(j, key);
    if (isfinite(value)) fprintf(j->out, "%.9g", value);
    else fputs("null", j->out);
}

void json_float(json_line *j, const char *key, float value)
{
    char text[32];
    put_key(j, key);
    fputs(isfinite(value) ? float_text(value, text, sizeof text) : "null", j->out);
}

void json_setting(json_line *j, const mri_setting *s, const void *settings)
{
    const void *value = (const char *)settings + s->at;
    char text[512];
    switch (s->kind) {
    case MRI_SETTING_FLOAT: json_float(j, s->member, *(const float *)value); return;
    case MRI_SETTING_REAL:
    case MRI_SETTING_SECONDS: json_real(j, s->member, *(const double *)value); return;
    case MRI_SETTING_FLAG: json_bool(j, s->member, *(const bool *)value); return;
    case MRI_SETTING_U32:
    case MRI_SETTING_COUNT_OR_OFF: json_u64(j, s->member, *(const uint32_t *)value); return;
    case MRI_SETTING_U64:
    case MRI_SETTING_SIZE: json_u64(j, s->member, *(const uint64_t *)value); return;
    default: json_text(j, s->member, mri_setting_text(s, settings, text, sizeof text)); return;
    }
}

void json_bool(json_line *j, const char *key, bool value)
{
    put_key(j, key);
    fputs(value ? "true" : "false", j->out);
}

static void open_with(json_line *j, const char *key, char bracket)
{
    put_key(j, key);
    fputc(bracket, j->out);
    j->comma = false;
}

static void close_with(json_line *j, char bracket)
{
    fputc(bracket, j->out);
    j->comma = true;
}

void json_object(json_line *j, const char *key) { open_with(j, key, '{'); }
void json_close_object(json_line *j) { close_with(j, '}'); }
void json_array(json_line *j, const char *key) { open_with(j, key, '['); }
void json_close_array(json_line *j) { close_with(j, ']'); }

/* kernels/backend/spec.c: device texts such as "cpu:4" and "sim:8,step=3.1ms,h2d=25GB/s" taken apart. Text
 * in, numbers out: nothing here knows which kinds exist. Every message quotes the part it could not read and
 * shows one that works. */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/number.h"
#include "kernels/backend/spec.h"

/* One comma-separated item as a number of at most 9 digits; false when it is anything else. */
static bool parse_number(const char *text, size_t len, uint32_t *out)
{
    if (len == 0 || len > 9) return false;
    uint32_t v = 0;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i])) return false;
        v = v * 10 + (uint32_t)(text[i] - '0');
    }
    *out = v;
    return true;
}

static int add_option(struct mri_spec *spec, const char *item, size_t len, const char *equals, mr_error *err)
{
    const size_t name_len = (size_t)(equals - item), value_len = len - name_len - 1;
    if (spec->option_count == MRI_MAX_SPEC_OPTIONS)
        return mr_error_set(err, MR_EINVAL, "devices: more than %u options", MRI_MAX_SPEC_OPTIONS);
    struct mri_spec_option *o = &spec->options[spec->option_count];
    if (name_len == 0 || name_len >= sizeof o->name || value_len == 0 || value_len >= sizeof o->value)
        return mr_error_set(err, MR_EINVAL, "devices: \"%.*s\" is not NAME=VALUE, such as step=3.1ms",
                            (int)len, item);
    memcpy(o->name, item, name_len);
    o->name[name_len] = '\0';
    memcpy(o->value, equals + 1, value_len);
    o->value[value_len] = '\0';
    for (uint32_t i = 0; i < spec->option_count; i++)
        if (strcmp(spec->options[i].name, o->name) == 0)
            return mr_error_set(err, MR_EINVAL, "devices: option %s is given twice", o->name);
    spec->option_count++;
    return MR_OK;
}

static int add_item(struct mri_spec *spec, const char *item, size_t len, mr_error *err)
{
    const char *equals = memchr(item, '=', len);
    if (equals) return add_option(spec, item, len, equals, err);

    const size_t kind_len = strlen(spec->kind); /* "cuda:0,cuda:1" names the kind again */
    const char *digits = item;
    if (len > kind_len && memcmp(item, spec->kind, kind_len) == 0 && item[kind_len] == ':')
        digits += kind_len + 1;
    uint32_t number;
    if (!parse_number(digits, len - (size_t)(digits - item), &number))
        return mr_error_set(err, MR_EINVAL, "devices: \"%.*s\" is neither a number nor NAME=VALUE", (int)len,
                            item);
    if (spec->option_count > 0)
        return mr_error_set(err, MR_EINVAL, "devices: number %u comes after an option; numbers come first",
                            number);
    if (spec->number_count == MRI_MAX_REPLICAS)
        return mr_error_set(err, MR_EINVAL, "devices: more than %u devices", MRI_MAX_REPLICAS);
    spec->numbers[spec->number_count++] = number;
    return MR_OK;
}

int mri_spec_parse(struct mri_spec *out, const char *text, mr_error *err)
{
    memset(out, 0, sizeof *out);
    const size_t kind_len = strcspn(text, ":,=");
    if (kind_len == 0 || kind_len >= sizeof out->kind || text[kind_len] == '=')
        return mr_error_set(err, MR_EINVAL,
                            "devices: \"%.64s\" does not start with a device kind, such as cpu or sim:2",
                            text);
    memcpy(out->kind, text, kind_len);
    const char *at = text + kind_len;
    if (*at == '\0') return MR_OK;
    out->all = strcmp(at, ":all") == 0;
    if (out->all) return MR_OK;
    for (;;) {
        at++; /* over ':' or ',' */
        const size_t len = strcspn(at, ",");
        const int rc = add_item(out, at, len, err);
        if (rc) return rc;
        at += len;
        if (*at == '\0') return MR_OK;
    }
}

int mri_spec_replicas(struct mri_spec *spec, mr_error *err)
{
    if (spec->all)
        return mr_error_set(err, MR_EINVAL, "devices: %s:all: expected how many replicas, such as %s:2",
                            spec->kind, spec->kind);
    if (spec->number_count > 1)
        return mr_error_set(err, MR_EINVAL,
                            "devices: %s takes one number, how many replicas, not %u numbers; try %s:%u",
                            spec->kind, spec->number_count, spec->kind, spec->number_count);
    spec->count = spec->number_count ? spec->numbers[0] : 1;
    if (spec->count < 1 || spec->count > MRI_MAX_REPLICAS)
        return mr_error_set(err, MR_EINVAL, "devices: %s:%u asks for %u replicas; expected 1..%u", spec->kind,
                            spec->count, spec->count, MRI_MAX_REPLICAS);
    return MR_OK;
}

int mri_spec_ordinals(struct mri_spec *spec, uint32_t there, mr_error *err)
{
    if (spec->all && there > MRI_MAX_REPLICAS)
        return mr_error_set(err, MR_ELIMIT, "devices: %s:all: there are %u; at most %u can be named",
                            spec->kind, there, MRI_MAX_REPLICAS);
    for (uint32_t i = 0; spec->all && i < there; i++) spec->numbers[spec->number_count++] = i;
    if (spec->number_count == 0) spec->numbers[spec->number_count++] = 0;
    spec->count = spec->number_count;
    return MR_OK;
}

/* A positive number and its unit. */
static bool parse_quantity(const char *text, double *value, const char **unit)
{
    if (!isdigit((unsigned char)text[0])) return false; /* strtod also takes signs, "inf" and "nan" */
    char *end;
    errno = 0;
    *value = mri_strtod(text, &end);
    *unit = end;
    return errno == 0 && isfinite(*value) && *value > 0;
}

static bool scale_of(const char *unit, const char *const *names, const double *scales, double *out)
{
    for (; *names; names++, scales++) {
        if (strcmp(unit, *names) != 0) continue;
        *out = *scales;
        return true;
    }
    return false;
}

int mri_spec_time(const struct mri_spec_option *o, double *out_ns, mr_error *err)
{
    static const char *const names[] = {"ns", "us", "ms", "s", NULL};
    static const double scales[] = {1, 1e3, 1e6, 1e9};
    double value, scale;
    const char *unit;
    if (!parse_quantity(o->value, &value, &unit) || !scale_of(unit, names, scales, &scale) ||
        value * scale > 3.6e12)
        return mr_error_set(err, MR_EINVAL,
                            "devices: %s=%s is not a time; expected a number with ns, us, ms or s (at most "
                            "one hour), such as %s=3.1ms",
                            o->name, o->value, o->name);
    *out_ns = value * scale;
    return MR_OK;
}

int mri_spec_rate(const struct mri_spec_option *o, double *out_bytes_per_s, mr_error *err)
{
    static const char *const names[] = {"KB/s", "MB/s", "GB/s", "TB/s", NULL};
    static const double scales[] = {1e3, 1e6, 1e9, 1e12};
    double value, scale;
    const char *unit;
    if (!parse_quantity(o->value, &value, &unit) || !scale_of(unit, names, scales, &scale) ||
        value * scale < 1e3)
        return mr_error_set(err, MR_EINVAL,
                            "devices: %s=%s is not a rate; expected a number with KB/s, MB/s, GB/s or TB/s "
                            "(at least 1KB/s), such as %s=25GB/s",
                            o->name, o->value, o->name);
    *out_bytes_per_s = value * scale;
    return MR_OK;
}

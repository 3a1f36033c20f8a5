/* formats/record/source_own.c: a source whose samples the program makes when they are wanted
 * (mr_source_create()).
 *
 *   whoever reads ──mri_source_read_bytes()──► fetch(context, sample, to) ──mr_own_sample_give(to, values)──┐
 *   parse() as of any record ◄── the reader's buffer: a record (FORMAT.md, 1.4) ◄───────────────────────────┘
 *
 * Values are copied while the program's function runs, so their memory is never asked for later, and what
 * they must be is checked by the rules of record files. Nothing lies on disk: no path, no extents, no labels
 * without reading. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/record/record.h"
#include "formats/source/sample_name.h"
#include "formats/source/value.h"

typedef struct own {
    mri_meta meta;
    mr_own_fetch *fetch;
    mr_own_begin *begin; /* or NULL */
    void *context;
    int name; /* the field that says what samples are called; -1: none does */
    uint64_t count, most, fingerprint;
} own;

struct mr_own_sample { /* one that is asked for: on the stack of whoever reads, or begun and of its own */
    const own *source;
    uint64_t sample;
    mri_making *making; /* where it goes */
    bool begun;
    atomic_bool given;   /* or failed */
    atomic_uint holders; /* of one that was begun: who may still use it */
};

void mr_own_defaults_sized(mr_own_config *cfg, size_t struct_size)
{
    const mr_own_config all = {.sample_bytes_most = (uint64_t)16 << 20};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- one sample ---- */
static int check_values(const own *o, const mr_value *values, mri_record_size *size, mr_error *err)
{
    const mri_meta *m = &o->meta;
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < m->field_count; k++)
        rc = mri_value_check(&m->fields[k], &values[k], MR_EFORMAT, err);
    if (rc != MR_OK) return rc;
    if (m->label_field >= 0 && m->class_count > 0) {
        const int64_t label = values[m->label_field].i;
        if (label < 0 || label >= m->class_count)
            return mr_error_set(err, MR_EFORMAT, "label %lld is outside the %u classes", (long long)label,
                                m->class_count);
    }
    if (mri_record_measure(values, m->field_count, size) && size->record_bytes <= o->most) return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the sample is larger than the %llu bytes that were said to suffice",
                        (unsigned long long)o->most);
}

static int need(mri_making *m, uint64_t bytes, mr_error *err)
{
    if (m->buffer && bytes <= m->buffer_bytes) return MR_OK;
    void *larger = realloc(m->buffer, (size_t)bytes);
    if (!larger)
        return mr_error_set(err, MR_ENOMEM, "no memory for a sample of %llu bytes",
                            (unsigned long long)bytes);
    m->buffer = larger;
    m->buffer_bytes = (size_t)bytes;
    return MR_OK;
}

static int write_record(mr_own_sample *to, const mr_value *values, mr_error *err)
{
    const mri_meta *m = &to->source->meta;
    mri_record_size size;
    int rc = check_values(to->source, values, &size, err);
    if (rc == MR_OK) rc = need(to->making, size.record_bytes, err);
    if (rc != MR_OK) return rc;
    uint8_t header[MRI_RECORD_HEADER_MAX], scratch[8], *at = to->making->buffer;
    mri_record_encode(values, m->field_count, to->sample, &size, header);
    memcpy(at, header, size.header_bytes);
    at += size.header_bytes;
    for (uint32_t k = 0; k < m->field_count; k++) {
        size_t bytes;
        const void *data = mri_value_bytes(&values[k], scratch, &bytes);
        const size_t gap = k + 1 < m->field_count ? (size_t)(mri_align_up(bytes, 8) - bytes) : 0;
        if (bytes) memcpy(at, data, bytes);
        memset(at + bytes, 0, gap);
        at += bytes + gap;
    }
    to->making->bytes = size.record_bytes;
    return MR_OK;
}

/* ---- a sample that was begun ---- */
static void let_go(mr_own_sample *to)
{
    if (atomic_fetch_sub(&to->holders, 1) == 1) free(to);
}

/* Nothing of its mri_making is used after this. */
static void finish(mr_own_sample *to, int rc, const mr_error *why)
{
    mri_making *m = to->making;
    m->rc = rc;
    if (rc != MR_OK) {
        m->error = *why;
        mri_error_place(&m->error, rc, NULL, MR_NOWHERE, to->sample);
    }
    m->done(m);
    let_go(to);
}

int mr_own_sample_give(mr_own_sample *to, const mr_value *values, mr_error *err)
{
    MRI_GIVEN(err, to);
    MRI_GIVEN(err, values);
    mr_error why = MR_ERROR_INIT;
    if (atomic_exchange(&to->given, true)) return mr_error_set(err, MR_EINVAL, "a sample is given once");
    const int rc = write_record(to, values, &why);
    if (rc != MR_OK && err) *err = why;
    if (to->begun) finish(to, rc, &why);
    else if (rc != MR_OK) atomic_store(&to->given, false); /* the function may try again */
    return rc;
}

void mr_own_sample_fail(mr_own_sample *to, int status, const mr_error *why)
{
    mr_error mine = MR_ERROR_INIT;
    if (!to || !to->begun || atomic_exchange(&to->given, true)) return;
    if (why) mine = *why;
    const int rc = mri_error_of_program(&mine, status ? status : MR_EINVAL, "the program that makes samples");
    finish(to, rc, &mine);
}

static void own_begin(const mr_source *src, uint64_t sample, mri_making *m)
{
    const own *o = src->state;
    mr_own_sample *to = calloc(1, sizeof *to);
    m->bytes = 0;
    m->error = (mr_error)MR_ERROR_INIT;
    if (!to) {
        m->rc = mr_error_set(&m->error, MR_ENOMEM, "no memory for a sample");
        m->done(m);
        return;
    }
    to->source = o;
    to->sample = sample;
    to->making = m;
    to->begun = true;
    atomic_init(&to->holders, 2); /* this call, and whoever gives it */
    mr_error why = MR_ERROR_INIT;
    const int status = o->begin(o->context, sample, to, &why);
    if (status != MR_OK) mr_own_sample_fail(to, status, &why);
    let_go(to);
}

typedef struct awaited {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
} awaited;

static void has_come(mri_making *m)
{
    awaited *a = m->owner;
    pthread_mutex_lock(&a->lock);
    a->done = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void begin_and_wait(const mr_source *src, uint64_t sample, mri_making *m)
{
    awaited a = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    m->done = has_come;
    m->owner = &a;
    own_begin(src, sample, m);
    pthread_mutex_lock(&a.lock);
    while (!a.done) pthread_cond_wait(&a.changed, &a.lock);
    pthread_mutex_unlock(&a.lock);
    pthread_cond_destroy(&a.changed);
    pthread_mutex_destroy(&a.lock);
}

static void make_here(const own *o, uint64_t sample, mri_making *m)
{
    mr_own_sample to = {.source = o, .sample = sample, .making = m};
    const int status = o->fetch(o->context, sample, &to, &m->error);
    m->rc = mri_error_of_program(&m->error, status, "the function that makes samples");
    if (m->rc == MR_OK && m->bytes == 0)
        m->rc = mr_error_set(&m->error, MR_EINVAL, "the function that makes samples gave none");
}

static int own_fetch(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                     uint64_t *bytes, mr_error *err)
{
    const own *o = src->state;
    mri_making m = {.buffer = *buffer, .buffer_bytes = *buffer_bytes, .error = MR_ERROR_INIT};
    if (o->begin) begin_and_wait(src, sample, &m);
    else make_here(o, sample, &m);
    *buffer = m.buffer;
    *buffer_bytes = m.buffer_bytes;
    *bytes = m.bytes;
    if (m.rc == MR_OK) return MR_OK;
    if (err) *err = m.error;
    return mri_error_place(err, m.rc, NULL, MR_NOWHERE, sample);
}

/* ---- the source ---- */
static void own_close(mr_source *src)
{
    own *o = src->state;
    if (!o) return;
    mri_meta_fini(&o->meta);
    free(o);
}

static int own_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)sample, (void)err;
    *out = (mr_extent){MR_FILE_OF_SAMPLE, 0, src->info.max_extent_bytes};
    return MR_OK;
}

static void own_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    (void)src, (void)sample;
    if (buf_bytes) buf[0] = '\0'; /* none is a file */
}

static int own_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const own *o = src->state;
    mri_record_facts facts;
    const int rc = mri_record_parse(&o->meta, data, bytes, out, &facts, err);
    return rc == MR_OK ? MR_OK : mri_error_place(err, rc, NULL, MR_NOWHERE, sample);
}

static int own_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err)
{
    const own *o = src->state;
    (void)sample;
    return mri_record_parse_trusted(&o->meta, data, bytes, out, err);
}

static int own_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                    size_t buf_bytes, mr_error *err)
{
    const own *o = src->state;
    const uint8_t *text;
    size_t text_bytes;
    (void)sample, (void)err;
    if (o->name < 0 || !mri_record_payload(&o->meta, data, bytes, (uint32_t)o->name, &text, &text_bytes))
        return MR_OK;
    snprintf(buf, buf_bytes, "%.*s", (int)mri_min_u64(text_bytes, buf_bytes), (const char *)text);
    return MR_OK;
}

static int own_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const own *o = src->state;
    const mri_meta *m = &o->meta;
    mr_source_info *info = &src->info;
    uint8_t *prefix;
    mri_mrec_header h;
    (void)cfg;
    const int rc = mri_meta_encode(m, 0, &h, &prefix, err);
    if (rc != MR_OK) return rc;
    free(prefix);
    info->format = "own";
    info->count = o->count;
    info->class_count = m->class_count;
    info->class_names = m->class_names;
    info->field_count = m->field_count;
    info->fields = m->fields;
    info->image_field = m->image_field;
    info->label_field = m->label_field;
    info->max_extent_bytes = o->most;
    info->total_bytes = mri_times(o->count, o->most);
    const mr_field *image = m->image_field >= 0 ? &m->fields[m->image_field] : NULL;
    if (image && image->ndim == 3 && mri_max_u64(image->dim[0], image->dim[1]) <= UINT32_MAX) {
        info->height = (uint32_t)image->dim[0];
        info->width = (uint32_t)image->dim[1];
        info->channels = (uint32_t)image->dim[2];
    }
    info->fingerprint = mri_mix64(mri_mix64(o->fingerprint ^ mri_mix64(o->count)) ^
                                  ((uint64_t)h.schema_crc << 32 | h.classes_crc));
    return MR_OK;
}

#define OWN_OPS                                                                                              \
    .name = "own", .help = "samples that the program makes", .open = own_open, .close = own_close,           \
    .extent = own_extent, .sample_path = own_path, .sample_name = own_name, .parse = own_parse,              \
    .parse_trusted = own_parse_trusted, .fetch = own_fetch
static const mri_source_ops own_ops = {OWN_OPS}, begun_ops = {OWN_OPS, .begin = own_begin};

enum { NUMBER_BYTES = 11 }; /* of a uint32_t as text */

/* Classes without names are called by their numbers: one block, to be freed. */
static const char **numbers_as_names(uint32_t count)
{
    const char **names = calloc(count, sizeof *names + NUMBER_BYTES);
    char *text = names ? (char *)(names + count) : NULL;
    for (uint32_t k = 0; names && k < count; k++, text += NUMBER_BYTES) {
        snprintf(text, NUMBER_BYTES, "%u", k);
        names[k] = text;
    }
    return names;
}

static int make(mr_source *src, const mr_own_config *cfg, mr_error *err)
{
    own *o = calloc(1, sizeof *o);
    src->path = strdup(cfg->name ? cfg->name : "samples of the program");
    src->state = o;
    if (!o || !src->path) return mr_error_set(err, MR_ENOMEM, "no memory for a source");
    o->fetch = cfg->fetch;
    o->begin = cfg->begin;
    o->context = cfg->context;
    o->count = cfg->count;
    o->most = cfg->sample_bytes_most;
    o->fingerprint = cfg->fingerprint;
    mr_writer_config as_written;
    mr_source_config usual;
    mr_writer_defaults(&as_written);
    mr_source_defaults(&usual);
    as_written.field_count = cfg->field_count;
    as_written.fields = cfg->fields;
    as_written.class_count = cfg->class_count;
    const char **numbers = NULL;
    if (cfg->class_count && !cfg->class_names && !(numbers = numbers_as_names(cfg->class_count)))
        return mr_error_set(err, MR_ENOMEM, "no memory for the names of %u classes", cfg->class_count);
    as_written.class_names = numbers ? numbers : cfg->class_names;
    const int rc = mri_meta_copy(&o->meta, &as_written, err);
    free(numbers);
    if (rc != MR_OK) return rc;
    o->name = mri_field_name(o->meta.fields, o->meta.field_count);
    return mri_source_begin(src, &usual, err);
}

int mr_source_create(mr_source **out, const mr_own_config *cfg, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    mr_own_config mine;
    mr_own_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "source", err);
    if (rc != MR_OK) return rc;
    if (!mine.fetch && !mine.begin)
        return mr_error_set(err, MR_EINVAL, "a source of one's own needs a function: set fetch or begin");
    if (mine.sample_bytes_most == 0 || mine.sample_bytes_most > MRI_MAX_SAMPLE_BYTES)
        return mr_error_set(err, MR_EINVAL, "sample_bytes_most %llu: expected 1 to 2 GiB",
                            (unsigned long long)mine.sample_bytes_most);
    mr_source *src = calloc(1, sizeof *src);
    if (!src) return mr_error_set(err, MR_ENOMEM, "no memory for a source");
    src->process = mri_process();
    src->ops = mine.begin ? &begun_ops : &own_ops;
    rc = make(src, &mine, err);
    if (rc != MR_OK) mr_source_close(src);
    else *out = src;
    return rc;
}

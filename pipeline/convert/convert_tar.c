/* pipeline/convert/convert_tar.c: conversion to WebDataset: tar archives whose members are grouped by name.
 *
 *   __classes__       the names of the classes, one a line, where they are known; first in each archive
 *                     (tar_classes.h)
 *   KEY.jpg KEY.png   the picture, by the ending of its kind (KEY.gif, ...)
 *   KEY.cls           the label as a number, from 0
 *   KEY.NAME.ENDING   every other field: text and numbers .txt (text named txt, text, transcript or json
 *                     keeps that name), tensors .npy, pictures as above, bytes without an ending of ours.
 *                     A name that has the ending already gets no second one. A field of no bytes has no
 *                     member
 *   __checksums__/N   checksums of the members before it (tar_sums.h)
 *
 * With a sample index, STEM.wids.json lists the archives (convert_wids.h).
 *
 * KEY is the sample's name (its file's path below the data set's folder, its key in another
 * archive), without the ending; where that is not known, and where a key comes again, it is the sample's
 * number. Points in it become _ (a key ends at its first point). Members have owner 0, mode 0644 and time 0:
 * the same samples make the same bytes. Archives end as tar ends them: with zeros up to a multiple of 10,240
 * bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/arrays/npy.h"
#include "formats/image/picture_files.h"
#include "formats/source/elements.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_sample.h"
#include "formats/tar/tar_sums.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_files.h"
#include "pipeline/convert/convert_wids.h"

enum {
    TAR_RECORD = 20 * MRI_TAR_BLOCK,
    ENDING_ROOM = 8,
    NAME_ROOM = MRI_TAR_MAX_NAME + 1,
    HEAD_ROOM = 4 * MRI_TAR_BLOCK + 2 * MRI_TAR_MAX_NAME,
    LEAST_DIGITS = 6,
    DST_MOST = 4096,
    PATH_ROOM = DST_MOST + 104
};

typedef struct member {
    char ending[MRI_CALLED_BYTES + ENDING_ROOM]; /* after the key and a point */
    uint8_t head[MRI_NPY_OWN_HEAD];              /* stands in front of data, or is all there is */
    size_t head_bytes;
    const void *data;
    size_t bytes;
    float *made; /* what data is, where it had to be made */
} member;

typedef struct tar_state {
    const mri_convert_plan *plan;
    const char *dst;
    char *classes; /* text of __classes__, or NULL */
    size_t classes_bytes;
    uint64_t *keys; /* hashes of those in use, open addressing, 0 is free; NULL where all keys are numbers */
    uint64_t key_room;
    int digits;
    mri_tar_sums sums;                                    /* of the archive being written */
    char key[NAME_ROOM];                                  /* of the sample being written */
    uint64_t renamed, renamed_sample[MR_CONVERT_RENAMED]; /* as in mr_convert_result */
    uint32_t count;
    member member[MR_MAX_FIELDS];
} tar_state;

/* ---- what members are called ---- */
static bool is_label(const mri_convert_plan *plan, uint32_t k)
{
    return (int)k == plan->label && plan->fields[k].type == MR_TYPE_INT;
}

static bool ends_as(const char *name, const char *end)
{
    const size_t m = strlen(name), n = strlen(end);
    return m >= n && strcmp(name + m - n, end) == 0 && (m == n || name[m - n - 1] == '.');
}

/* Letters, digits and few others: no name that another program takes for a folder or an option. */
static void tidy(char *name)
{
    for (char *c = name; *c; c++)
        if (!strchr("-_.", *c) && !(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'z') &&
            !(*c >= 'A' && *c <= 'Z'))
            *c = '_';
    if (name[0] == '.') name[0] = '_';
}

/* Lower case in whole: readers that know only that would else take two names for one. */
static void call(char *called, const mr_field *f)
{
    static const char *const texts[] = {"txt", "text", "transcript", "json"};
    const char *ending = f->type == MR_TYPE_TENSOR                                  ? "npy"
                         : f->type == MR_TYPE_BYTES || mri_type_is_picture(f->type) ? ""
                                                                                    : "txt";
    memcpy(called, f->name, strlen(f->name) + 1); /* a schema's name: shorter than there is room */
    tidy(called);
    for (char *c = called; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + ('a' - 'A'));
    for (size_t t = 0; f->type == MR_TYPE_TEXT && t < MRI_ARRAY_COUNT(texts); t++)
        if (ends_as(called, texts[t])) ending = "";
    if (!ending[0] || ends_as(called, ending)) return;
    strcat(called, ".");
    strcat(called, ending);
}

static void end_picture(char *out, size_t room, const char *called, const char *ending)
{
    const bool has = ends_as(called, ending) || (strcmp(ending, "jpg") == 0 && ends_as(called, "jpeg"));
    snprintf(out, room, "%s%s%s", called, !called[0] || has ? "" : ".", has ? "" : ending);
}

/* Could the two be called the same? */
static bool clash(const mri_convert_plan *plan, uint32_t a, uint32_t b)
{
    const char *first, *second;
    for (size_t x = 0; (first = mri_picture_ending_at(x)) != NULL; x++)
        for (size_t y = 0; (second = mri_picture_ending_at(y)) != NULL; y++) {
            char p[MRI_CALLED_BYTES + ENDING_ROOM], q[MRI_CALLED_BYTES + ENDING_ROOM];
            snprintf(p, sizeof p, "%s", plan->called[a]);
            snprintf(q, sizeof q, "%s", plan->called[b]);
            if (mri_type_is_picture(plan->fields[a].type)) end_picture(p, sizeof p, plan->called[a], first);
            if (mri_type_is_picture(plan->fields[b].type)) end_picture(q, sizeof q, plan->called[b], second);
            if (strcmp(p, q) == 0) return true;
        }
    return false;
}

static int tar_plan(mri_convert_plan *plan, mr_error *err)
{
    for (uint32_t k = 0; k < plan->field_count; k++) {
        if ((int)k == plan->image || (int)k == plan->name) plan->called[k][0] = '\0';
        else if (is_label(plan, k)) snprintf(plan->called[k], sizeof plan->called[k], "cls");
        else call(plan->called[k], &plan->fields[k]);
        for (uint32_t other = 0; other < k && (int)k != plan->name; other++)
            if ((int)other != plan->name && clash(plan, k, other))
                return mr_error_set(err, MR_EINVAL,
                                    "fields \"%s\" and \"%s\" would be members of one name; rename one",
                                    plan->fields[other].name, plan->fields[k].name);
    }
    return MR_OK;
}

/* Without a class our reader would take a member with a class's name for it, and reject it. */
static bool tar_readable(const mri_convert_plan *plan)
{
    static const char *const usual[] = {"cls", "class", "label"};
    bool labelled = false, other = false;
    for (uint32_t k = 0; k < plan->field_count; k++) {
        labelled |= is_label(plan, k);
        other |= ends_as(plan->called[k], "json");
        for (size_t u = 0; u < MRI_ARRAY_COUNT(usual); u++) other |= strcmp(plan->called[k], usual[u]) == 0;
    }
    return plan->image >= 0 && (labelled || !other);
}

/* ---- keys ---- */
static bool leads_up(const char *path)
{
    for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return true;
    return false;
}

/* The key that a sample's name suggests; false: none. */
static bool key_of_name(const mr_value *name, char key[NAME_ROOM])
{
    const size_t longest = MRI_CALLED_BYTES + ENDING_ROOM;
    if (name->bytes + longest >= NAME_ROOM || (name->bytes && memchr(name->data, 0, name->bytes)))
        return false;
    if (name->bytes) memcpy(key, name->data, name->bytes);
    key[name->bytes] = '\0';
    if (!key[0] || key[0] == '/' || leads_up(key)) return false;
    char *last = strrchr(key, '/'), *dot;
    last = last ? last + 1 : key;
    if ((dot = strrchr(last, '.'))) *dot = '\0';
    for (char *c = last; *c; c++)
        if (*c == '.') *c = '_';
    return *last && !mri_tar_is_meta(key);
}

/* False: it is in use. */
static bool keys_put(tar_state *s, const char *key)
{
    uint64_t hash = XXH3_64bits(key, strlen(key));
    if (!s->keys) return true;
    if (hash == 0) hash = 1;
    uint64_t at = hash & (s->key_room - 1);
    for (; s->keys[at]; at = (at + 1) & (s->key_room - 1))
        if (s->keys[at] == hash) return false;
    s->keys[at] = hash;
    return true;
}

static void choose_key(tar_state *s, uint64_t sample, const mr_value *name)
{
    if (s->keys && key_of_name(name, s->key) && keys_put(s, s->key)) return;
    snprintf(s->key, sizeof s->key, "%0*" PRIu64, s->digits, sample);
    while (!keys_put(s, s->key) && strlen(s->key) < 64) /* a file is called like that */
        snprintf(s->key, sizeof s->key, "_%0*" PRIu64, (int)strlen(s->key), sample);
}

/* Counts a sample whose key is not its name without the ending. */
static void compare_key(tar_state *s, uint64_t sample, const mr_value *name)
{
    if (!name || name->bytes == 0) return;
    const char *text = name->data, *slash = memrchr(text, '/', name->bytes);
    const char *last = slash ? slash + 1 : text, *end = text + name->bytes;
    const char *dot = memrchr(last, '.', (size_t)(end - last));
    const size_t stem = (size_t)((dot ? dot : end) - text);
    if (strlen(s->key) == stem && memcmp(text, s->key, stem) == 0) return;
    if (s->renamed < MR_CONVERT_RENAMED) s->renamed_sample[s->renamed] = sample;
    s->renamed++;
}

/* ---- members of a sample ---- */
static member *add_member(tar_state *s, const char *ending)
{
    member *m = &s->member[s->count++];
    snprintf(m->ending, sizeof m->ending, "%s", ending);
    m->head_bytes = m->bytes = 0;
    m->data = NULL;
    return m;
}

static int add_tensor(member *m, const mr_value *v, mr_error *err)
{
    const bool wide = v->dtype == MR_BF16; /* NumPy knows no such numbers; f32 holds them all */
    m->head_bytes = mri_npy_head_write(wide ? MR_F32 : v->dtype, v->ndim, v->dim, m->head);
    m->data = v->data;
    m->bytes = v->bytes;
    if (!wide) return MR_OK;
    size_t bytes;
    if (!mri_mul_size(v->bytes, 2, &bytes) || !(m->made = malloc(bytes + 1)))
        return mr_error_set(err, MR_ENOMEM, "no memory for a tensor");
    mri_elements_to_floats(v->dtype, v->data, v->bytes / 2, m->made);
    m->data = m->made;
    m->bytes = bytes;
    return MR_OK;
}

static int add_value(tar_state *s, uint32_t k, const mr_value *v, mr_error *err)
{
    char ending[MRI_CALLED_BYTES + ENDING_ROOM];
    snprintf(ending, sizeof ending, "%s", s->plan->called[k]);
    if (mri_type_is_picture_file(v->type))
        end_picture(ending, sizeof ending, s->plan->called[k], mri_picture_ending_of(v->type));
    member *m = add_member(s, ending);
    if (v->type == MR_TYPE_TENSOR) return add_tensor(m, v, err);
    if (v->type == MR_TYPE_INT) {
        m->head_bytes = (size_t)snprintf((char *)m->head, sizeof m->head, "%" PRId64, v->i);
    } else if (v->type == MR_TYPE_FLOAT) {
        m->head_bytes = (size_t)snprintf((char *)m->head, sizeof m->head, "%.17g", v->f);
    } else {
        m->data = v->data;
        m->bytes = v->bytes;
    }
    return MR_OK;
}

/* A sample that lacks a member has no bytes of it: an empty member would be a damaged mask to readers. */
static bool is_none(const mr_value *v)
{
    return v->bytes == 0 && v->type != MR_TYPE_TENSOR && v->type != MR_TYPE_INT && v->type != MR_TYPE_FLOAT;
}

/* A key without any member would be no sample. */
static int add_one_at_least(tar_state *s, const mr_value *values, mr_error *err)
{
    for (uint32_t k = 0; s->count == 0 && k < s->plan->field_count; k++)
        if ((int)k != s->plan->name) return add_value(s, k, &values[k], err);
    return MR_OK;
}

static void drop_made(tar_state *s)
{
    for (uint32_t k = 0; k < s->count; k++) {
        free(s->member[k].made);
        s->member[k].made = NULL;
    }
    s->count = 0;
}

static uint64_t bytes_of(const char *name, uint64_t bytes)
{
    return mri_tar_head_bytes(name, bytes) + mri_align_up(bytes, MRI_TAR_BLOCK);
}

static void member_name(const tar_state *s, const member *m, char name[NAME_ROOM + sizeof m->ending])
{
    snprintf(name, NAME_ROOM + sizeof m->ending, "%s.%s", s->key, m->ending);
}

/* The picture and the label come first: who reads front to back wants them first. */
static int tar_take(void *state, uint64_t source_index, const mr_value *values, uint64_t *bytes,
                    mr_error *err)
{
    tar_state *s = state;
    const mri_convert_plan *plan = s->plan;
    char name[NAME_ROOM + sizeof s->member[0].ending];
    const mr_value *called = plan->name >= 0 ? &values[plan->name] : NULL;
    int rc = MR_OK;
    drop_made(s);
    choose_key(s, source_index, called);
    compare_key(s, source_index, called);
    if (plan->image >= 0) rc = add_value(s, (uint32_t)plan->image, &values[plan->image], err);
    for (uint32_t k = 0; !rc && k < plan->field_count; k++)
        if (is_label(plan, k)) rc = add_value(s, k, &values[k], err);
    for (uint32_t k = 0; !rc && k < plan->field_count; k++)
        if ((int)k != plan->image && (int)k != plan->name && !is_label(plan, k) && !is_none(&values[k]))
            rc = add_value(s, k, &values[k], err);
    if (!rc) rc = add_one_at_least(s, values, err);
    *bytes = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        member_name(s, &s->member[k], name);
        if (!rc && plan->cfg.sample_index == MR_SAMPLE_INDEX_WIDS) rc = mri_wids_check_member(name, err);
        *bytes += bytes_of(name, s->member[k].head_bytes + s->member[k].bytes);
    }
    *bytes += mri_tar_sums_due(&s->sums) ? 2 * mri_tar_sums_bytes(&s->sums, s->count)
                                         : mri_tar_sums_bytes(&s->sums, s->count);
    return rc;
}

static int put_member(mri_files *f, const char *name, const void *head, size_t head_bytes, const void *data,
                      size_t bytes, mr_error *err)
{
    uint8_t blocks[HEAD_ROOM];
    size_t used;
    const uint64_t all = (uint64_t)head_bytes + bytes;
    int rc = mri_tar_head_write(name, all, blocks, sizeof blocks, &used, err);
    if (!rc) rc = mri_files_put(f, blocks, used, err);
    if (!rc) rc = mri_files_put(f, head, head_bytes, err);
    if (!rc) rc = mri_files_put(f, data, bytes, err);
    return rc ? rc : mri_files_put_zeros(f, mri_align_up(all, MRI_TAR_BLOCK) - all, err);
}

static int put_sums(tar_state *s, mri_files *f, mr_error *err)
{
    const char *text;
    size_t bytes;
    const int rc = mri_tar_sums_make(&s->sums, mri_files_bytes(f), &text, &bytes, err);
    return rc ? rc : put_member(f, s->sums.name, text, bytes, NULL, 0, err);
}

static int tar_put(void *state, mri_files *f, mr_error *err)
{
    tar_state *s = state;
    char name[NAME_ROOM + sizeof s->member[0].ending];
    int rc = mri_tar_sums_due(&s->sums) ? put_sums(s, f, err) : MR_OK;
    for (uint32_t k = 0; !rc && k < s->count; k++) {
        const member *m = &s->member[k];
        const uint64_t all = (uint64_t)m->head_bytes + m->bytes;
        member_name(s, m, name);
        const uint64_t data = mri_files_bytes(f) + mri_tar_head_bytes(name, all);
        const uint32_t crc = mr_crc32c(mr_crc32c(0, m->head, m->head_bytes), m->data, m->bytes);
        rc = mri_tar_sums_add(&s->sums, name, data, all, crc, err);
        if (!rc) rc = put_member(f, name, m->head, m->head_bytes, m->data, m->bytes, err);
    }
    return rc;
}

/* ---- archives ---- */
static int tar_begin(void *state, mri_files *f, mr_error *err)
{
    tar_state *s = state;
    s->dst = mri_files_dst(f);
    mri_tar_sums_restart(&s->sums);
    if (!s->classes) return MR_OK;
    const int rc = mri_tar_sums_add(
        &s->sums, MRI_TAR_CLASSES, mri_files_bytes(f) + mri_tar_head_bytes(MRI_TAR_CLASSES, s->classes_bytes),
        s->classes_bytes, mr_crc32c(0, s->classes, s->classes_bytes), err);
    return rc ? rc : put_member(f, MRI_TAR_CLASSES, s->classes, s->classes_bytes, NULL, 0, err);
}

static int tar_end(void *state, mri_files *f, mr_error *err)
{
    tar_state *s = state;
    return s->sums.count ? put_sums(s, f, err) : MR_OK;
}

static void tar_report(const void *state, mr_convert_result *out)
{
    const tar_state *s = state;
    out->renamed = s->renamed;
    memcpy(out->renamed_sample, s->renamed_sample, sizeof out->renamed_sample);
}

static uint64_t tar_zeros(uint64_t bytes)
{
    const uint64_t end = bytes + MRI_TAR_END;
    return (end + TAR_RECORD - 1) / TAR_RECORD * TAR_RECORD - bytes;
}

static void tar_destroy(void *state)
{
    tar_state *s = state;
    drop_made(s);
    mri_tar_sums_fini(&s->sums);
    free(s->classes);
    free(s->keys);
    free(s);
}

static int tar_create(void **state, const mri_convert_plan *plan, mr_error *err)
{
    const mr_source_info *info = plan->info;
    tar_state *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for an archive");
    s->plan = plan;
    s->digits = snprintf(NULL, 0, "%" PRIu64, info->count);
    if (s->digits < LEAST_DIGITS) s->digits = LEAST_DIGITS;
    int rc =
        info->class_names && info->class_count
            ? mri_tar_classes_text(info->class_names, info->class_count, &s->classes, &s->classes_bytes, err)
            : MR_OK;
    if (!rc && plan->name >= 0) {
        for (s->key_room = 1024; s->key_room < 2 * info->count;) s->key_room *= 2;
        s->keys = calloc(s->key_room, sizeof *s->keys);
        if (!s->keys)
            rc = mr_error_set(err, MR_ENOMEM, "no memory for the keys of %" PRIu64 " samples", info->count);
    }
    if (rc) tar_destroy(s);
    else *state = s;
    return rc;
}

/* ---- names: STEM-000017.tar; STEM is DST without ".tar" ---- */
static int stem_bytes(const char *dst)
{
    const size_t n = strlen(dst);
    return (int)(n > 4 && strcmp(dst + n - 4, ".tar") == 0 ? n - 4 : n);
}

static void tar_shard_name(char *out, size_t room, const char *dst, uint32_t at, uint32_t count)
{
    (void)count;
    snprintf(out, room, "%.*s-%06u.tar", stem_bytes(dst), dst, at);
}

static bool tar_is_shard(const char *dst, const char *name)
{
    const size_t n = (size_t)stem_bytes(dst);
    uint64_t number;
    if (strncmp(name, dst, n) != 0) return false;
    if (strcmp(name + n, MRI_WIDS_ENDING) == 0) return true;
    if (name[n] != '-') return false;
    const char *at = name + n + 1;
    return mri_files_digits(&at, &number) >= 6 && strcmp(at, ".tar") == 0;
}

/* ---- the index of samples ---- */
static void index_path(char *out, size_t room, const char *dst)
{
    snprintf(out, room, "%.*s" MRI_WIDS_ENDING, stem_bytes(dst), dst);
}

static void archive_path(const void *context, uint32_t at, char *out, size_t room)
{
    const tar_state *s = context;
    if (s->plan->cfg.shard_bytes) tar_shard_name(out, room, s->dst, at, 0);
    else snprintf(out, room, "%s", s->dst);
}

/* An old index next to a new archive would name wrong numbers of samples. */
static int remove_index(const char *dst, const mri_output_rules *rules, mr_error *err)
{
    char path[PATH_ROOM];
    index_path(path, sizeof path, dst);
    return mri_output_remove(path, rules, err);
}

static int tar_list(void *state, const mri_file_facts *facts, uint32_t count, const mri_output_rules *rules,
                    mr_error *err)
{
    const tar_state *s = state;
    char path[PATH_ROOM];
    if (s->plan->cfg.sample_index != MR_SAMPLE_INDEX_WIDS) return MR_OK;
    const mri_wids_set set = {.facts = facts, .count = count, .path_of = archive_path, .context = s};
    index_path(path, sizeof path, s->dst);
    return mri_wids_write(path, &set, rules, err);
}

static const mri_files_format format = {
    .source = "tar",
    .readable = tar_readable,
    .create = tar_create,
    .destroy = tar_destroy,
    .begin = tar_begin,
    .take = tar_take,
    .put = tar_put,
    .end = tar_end,
    .report = tar_report,
    .zeros = tar_zeros,
    .shard_name = tar_shard_name,
    .is_shard = tar_is_shard,
    .remove_list = remove_index,
    .list = tar_list,
};

static int tar_open(void **state, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                    uint64_t *resumed, mr_error *err)
{
    char path[PATH_ROOM];
    const mri_output_rules rules = {
        .force = plan->cfg.force, .input = mri_source_input, .context = plan->src};
    *first = *resumed = 0;
    if (strlen(dst) > DST_MOST) return mr_error_set(err, MR_EINVAL, "the name of the output is too long");
    if (plan->cfg.sample_index == MR_SAMPLE_INDEX_WIDS && !mri_text_is_utf8(dst, strlen(dst)))
        return mr_error_set(err, MR_EINVAL, "a WIDS index needs an output whose name is UTF-8");
    index_path(path, sizeof path, dst);
    const int rc = plan->cfg.shard_bytes ? MR_OK : mri_output_check(path, &rules, err);
    return rc ? rc : mri_files_open(state, plan, dst, &format, err);
}

const mri_convert_kind mri_convert_tar = {
    .name = "tar",
    .stores = 1 << MR_STORE_JPEG,
    .picture_files = true,
    .plan = tar_plan,
    .open = tar_open,
    .append = mri_files_append,
    .report = mri_files_report,
    .finish = mri_files_finish,
    .close = mri_files_close,
};

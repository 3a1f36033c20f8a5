/* formats/record/shard_facts.c: the facts that a shard list of version 2 gives about all files together,
 * summed up from their headers, and the check that a file matches its line. */
#include <stdarg.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/record/shards.h"

void mri_shard_facts_init(mri_shard_facts *f)
{
    *f = (mri_shard_facts){.fingerprint = XXH3_64bits("shards", 6)};
}

uint64_t mri_shard_facts_print(uint64_t fingerprint, uint64_t of_file)
{
    return mri_mix64(fingerprint ^ of_file);
}

static int add_labels(mri_shard_facts *f, const mr_mrec *m, mr_error *err)
{
    int64_t min, max;
    const int rc = mri_mrec_labels(m, &min, &max, err);
    if (rc) return rc;
    if (!f->has_labels || min < f->label_min) f->label_min = min;
    if (!f->has_labels || max > f->label_max) f->label_max = max;
    f->has_labels = true;
    return MR_OK;
}

int mri_shard_facts_add(mri_shard_facts *f, const mr_mrec *m, bool labels, mr_error *err)
{
    f->fingerprint = mri_shard_facts_print(f->fingerprint, m->h.fingerprint);
    f->schema_crc = m->h.schema_crc;
    f->classes_crc = m->h.classes_crc;
    f->record_bytes_max = mri_max_u64(f->record_bytes_max, m->h.record_bytes_max);
    f->record_bytes_total += m->h.record_bytes_total; /* below the sum of file sizes */
    f->coef |= m->meta.coef;
    return labels && m->h.count > 0 && m->meta.label_field >= 0 ? add_labels(f, m, err) : MR_OK;
}

bool mri_shard_facts_equal(const mri_shard_facts *a, const mri_shard_facts *b)
{
    return a->fingerprint == b->fingerprint && a->schema_crc == b->schema_crc &&
           a->classes_crc == b->classes_crc && a->record_bytes_total == b->record_bytes_total &&
           a->record_bytes_max == b->record_bytes_max && a->coef == b->coef &&
           a->has_labels == b->has_labels && a->label_min == b->label_min && a->label_max == b->label_max;
}

/* ---- is this the file of that line? ---- */
static bool same_field(const mr_field *a, const mr_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->type == b->type && a->dtype == b->dtype &&
           a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

static bool same_meta(const mri_meta *a, const mri_meta *b)
{
    bool same = a->field_count == b->field_count && a->class_count == b->class_count &&
                a->label_start == b->label_start;
    for (uint32_t k = 0; same && k < a->field_count; k++) same = same_field(&a->fields[k], &b->fields[k]);
    for (uint32_t k = 0; same && k < a->class_count; k++)
        same = strcmp(a->class_names[k], b->class_names[k]) == 0;
    return same;
}

int mri_shard_check_meta(const mr_mrec *first, const mr_mrec *m, mr_error *err)
{
    if (same_meta(&first->meta, &m->meta)) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "fields or class names differ from %s", first->path);
    return mri_error_place(err, MR_EFORMAT, m->path, MR_NOWHERE, MR_NOWHERE);
}

static MR_PRINTF(3, 4) int differs(const mr_mrec *m, mr_error *err, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mr_error_set(err, MR_EFORMAT, "the shard list expects %s", text);
    return mri_error_place(err, MR_EFORMAT, m->path, MR_NOWHERE, MR_NOWHERE);
}

/* The facts that sizes of memory and the set's description rely on must hold for every file. */
static int check_facts(const mri_shard_facts *f, const mr_mrec *m, mr_error *err)
{
    const mri_mrec_header *h = &m->h;
    if (h->schema_crc != f->schema_crc || h->classes_crc != f->classes_crc)
        return differs(m, err,
                       "a schema of checksum %08x and classes of %08x in all files, found %08x and %08x",
                       f->schema_crc, f->classes_crc, h->schema_crc, h->classes_crc);
    if (h->record_bytes_max > f->record_bytes_max)
        return differs(m, err, "records of %llu bytes at most, found one of %llu",
                       (unsigned long long)f->record_bytes_max, (unsigned long long)h->record_bytes_max);
    if (m->meta.coef && !f->coef)
        return differs(m, err, "no coefficients in any file, found a file with them");
    const bool ranged = h->count > 0 && m->meta.label_field >= 0;
    if (ranged && !f->has_labels) return differs(m, err, "no labels in any file, found a file with them");
    if (ranged && mri_mrec_header_has_labels(h) &&
        (h->label_min < f->label_min || h->label_max > f->label_max))
        return differs(m, err, "labels from %lld to %lld, found %lld to %lld", (long long)f->label_min,
                       (long long)f->label_max, (long long)h->label_min, (long long)h->label_max);
    return MR_OK;
}

int mri_shard_check(const mri_shard *line, const mri_shard_facts *facts, const mr_mrec *m, mr_error *err)
{
    const mri_mrec_header *h = &m->h;
    if (h->count != line->count)
        return differs(m, err, "%llu records here, found %llu", (unsigned long long)line->count,
                       (unsigned long long)h->count);
    if (!facts) return MR_OK;
    if (h->file_bytes != line->file_bytes)
        return differs(m, err, "a file of %llu bytes here, found %llu", (unsigned long long)line->file_bytes,
                       (unsigned long long)h->file_bytes);
    if (h->fingerprint != line->fingerprint)
        return differs(m, err, "records of fingerprint %016llx here, found %016llx",
                       (unsigned long long)line->fingerprint, (unsigned long long)h->fingerprint);
    return check_facts(facts, m, err);
}

/* formats/tar/tar_parse.c: a sample of a WebDataset from the bytes of its extent: its members, its class, its
 * picture and further fields, and its name. See source_tar.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/tar/source_tar.h"

typedef struct in_memory {
    const uint8_t *data;
    uint64_t offset, bytes; /* which part of the file it is */
} in_memory;

static int memory_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    const in_memory *m = context;
    if (offset < m->offset || offset - m->offset > m->bytes || bytes > m->bytes - (offset - m->offset)) {
        mr_error_set(err, MR_EFORMAT,
                     "expected %zu bytes of the sample here, found its end: has the file changed?", bytes);
        return mri_error_place(err, MR_EFORMAT, NULL, offset, MR_NOWHERE);
    }
    *out = m->data + (offset - m->offset);
    return MR_OK;
}

static int wrong_group(const mri_tar_group *g, mr_error *err, int code, uint64_t offset, const char *what,
                       const char *found)
{
    char key[128];
    mr_error_set(err, code, "sample \"%s\": %s%s", mr_text_shown(g->key, key, sizeof key), what, found);
    return mri_error_place(err, code, NULL, offset, MR_NOWHERE);
}

static int check_parts(const mri_tar_group *g, mr_error *err)
{
    if (g->more)
        return wrong_group(g, err, MR_ELIMIT, g->begin, "expected at most 64 members, found more", "");
    for (uint32_t k = 0; k < g->count; k++) {
        const mri_tar_part *part = &g->part[k];
        if (part->sparse)
            return wrong_group(g, err, MR_EUNSUPPORTED, part->data,
                               "a member is stored as a sparse file, write the archive without them: .",
                               part->ext);
        if (part->ext[0] && mri_tar_group_find(g, part->ext) != part)
            return wrong_group(g, err, MR_EFORMAT, part->data, "expected each member once, found a second .",
                               part->ext);
    }
    return MR_OK;
}

/* The archive was changed, with its size and times kept: what else the index says of it may be wrong, too. */
static int other_label(const mri_tar_source *t, int64_t found, int64_t own, mr_error *err)
{
    mri_framed_index_drop(&t->f);
    return mr_error_set(
        err, MR_EFORMAT,
        "the index has class %lld for this sample, the sample itself %lld: the archive was changed "
        "after the index, which is removed; run it again",
        (long long)found, (long long)own);
}

static int parse_label(const mri_tar_source *t, uint64_t sample, const mri_tar_group *g, in_memory *m,
                       mr_value *out, mr_error *err)
{
    char key[128], names[256];
    const mri_tar_part *part = NULL;
    mri_entry e;
    int64_t found = MRI_NO_LABEL, own;
    if (mri_framed_entry(&t->f, sample, &e, NULL) == MR_OK) found = e.label;
    for (uint32_t k = 0; !part && k < g->count; k++)
        if (mri_tar_schema_is_label(&t->schema, &g->part[k])) part = &g->part[k];
    if (!part) {
        mr_text_shown(g->key, key, sizeof key);
        mr_error_set(
            err, MR_EFORMAT,
            "sample \"%s\": expected a class in .%s, found %s (members of one sample must be neighbours)",
            key, t->schema.label_kind == MRI_TAR_LABEL_TEXT ? t->schema.label : "json",
            mri_tar_group_names(g, names, sizeof names));
        return mri_error_place(err, MR_EFORMAT, NULL, g->begin, MR_NOWHERE);
    }
    int rc = mri_tar_schema_label(&t->schema, part, memory_get, m, &own, err);
    if (!rc && found != MRI_NO_LABEL && found != own) rc = other_label(t, found, own, err);
    if (!rc) rc = mri_framed_check_label(&t->f, own, &out->i, err);
    if (rc) return mri_error_place(err, rc, NULL, part->data, MR_NOWHERE);
    out->type = MR_TYPE_INT;
    return MR_OK;
}

static int parse_field(const mri_tar_schema *s, int at, const mri_tar_group *g, const in_memory *m,
                       mr_value *out, mr_error *err)
{
    const mr_field *field = &s->field[at];
    const mri_tar_part *part = mri_tar_group_find(g, field->name);
    mr_error what = MR_ERROR_INIT;
    *out = s->none[at];
    out->data = m->data; /* of nothing, but not NULL */
    const int rc = part ? mri_tar_schema_value(field, m->data + (part->data - m->offset), (size_t)part->bytes,
                                               out, &what)
                        : MR_OK;
    if (!rc) return MR_OK;
    char report_text[sizeof what.text], name[4 * MR_MAX_NAME + 1];
    snprintf(report_text, sizeof report_text, "member .%s: %.*s",
             mr_text_shown(field->name, name, sizeof name), (int)(sizeof report_text - sizeof name - 10),
             what.text);
    return wrong_group(g, err, rc, part->data, report_text, "");
}

static int parse_group(const mri_tar_source *t, uint64_t sample, const mri_tar_group *g, in_memory *m,
                       mr_sample *out, mr_error *err)
{
    const mri_tar_schema *s = &t->schema;
    const mri_tar_part *image = NULL;
    int rc = check_parts(g, err);
    out->value_count = s->field_count;
    for (int k = 0; !rc && k < (int)s->field_count; k++) {
        mr_value *v = &out->value[k];
        *v = (mr_value){0};
        if (k == s->label_field) {
            rc = parse_label(t, sample, g, m, v, err);
        } else if (k != s->image_field) {
            rc = parse_field(s, k, g, m, v, err);
        } else {
            rc = mri_tar_schema_image(s, g, memory_get, m, &image, &v->type, err);
            if (rc) continue;
            v->data = m->data + (image->data - m->offset);
            v->bytes = (size_t)image->bytes;
        }
    }
    return rc;
}

int mri_tar_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                         mr_sample *out, mr_error *err)
{
    const mri_tar_source *t = src->state;
    mr_extent e;
    mri_tar_samples it;
    mri_tar_group g;
    int rc = mri_framed_extent(&t->f, sample, &e, err);
    if (rc) return rc;
    in_memory m = {data, e.offset, bytes};
    mri_tar_samples_init(&it, memory_get, &m, e.offset, e.offset + bytes, NULL);
    it.dot = t->dot;
    rc = mri_tar_samples_next(&it, &g, err);
    if (rc == MR_EEND)
        rc = mr_error_set(err, MR_EFORMAT,
                          "expected the members of a sample here, found none: has the file changed?");
    if (!rc) rc = parse_group(t, sample, &g, &m, out, err);
    return rc ? mri_error_place(err, rc, t->f.file[e.file].path,
                                err && err->offset != MR_NOWHERE ? MR_NOWHERE : e.offset, sample)
              : MR_OK;
}

/* The key and, where there is a picture, the end of its member's name: "train/0017.jpg". */
static void name_group(const mri_tar_source *t, const mri_tar_group *g, in_memory *m, char *buf,
                       size_t buf_bytes)
{
    const mri_tar_part *image = NULL;
    mr_type type;
    const bool found = t->schema.image_field >= 0 &&
                       mri_tar_schema_image(&t->schema, g, memory_get, m, &image, &type, NULL) == MR_OK;
    const char *dot = found ? strrchr(image->ext, '.') : NULL;
    const char *ending = !found ? "" : dot ? dot + 1 : image->ext;
    snprintf(buf, buf_bytes, "%s%s%s", g->key, found ? "." : "", ending);
}

int mri_tar_source_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                        size_t buf_bytes, mr_error *err)
{
    const mri_tar_source *t = src->state;
    mr_extent e;
    const int rc = mri_framed_extent(&t->f, sample, &e, err);
    if (rc) return rc;
    mri_tar_samples *it = malloc(sizeof *it);
    mri_tar_group *g = malloc(sizeof *g);
    in_memory m = {data, e.offset, bytes};
    const bool room = it && g;
    if (room) {
        mri_tar_samples_init(it, memory_get, &m, e.offset, e.offset + bytes, NULL);
        it->dot = t->dot;
        if (mri_tar_samples_next(it, g, NULL) == MR_OK) name_group(t, g, &m, buf, buf_bytes);
    }
    free(it);
    free(g);
    return room ? MR_OK
                : mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the name of a sample"),
                                  t->f.file[e.file].path, e.offset, sample);
}

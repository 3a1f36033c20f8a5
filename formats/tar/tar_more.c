/* formats/tar/tar_more.c: see tar_more.h.
 *
 * A name that was the picture of some sample (.png, where the schema has .jpg) is no field: samples that have
 * nothing else would lose their picture. Where there are more names than are remembered they are different
 * for each sample: a name that comes once is no field then. */
#include "formats/tar/tar_more.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

enum { MOST_NAMES = 64, MOST_PICTURES = 16, LINE_ROOM = MR_MAX_NAME + 24 };

typedef struct more_name {
    char ext[MR_MAX_NAME + 1];
    bool picture;
    uint64_t count, sample, offset; /* where it is not the picture: how many, and the first */
    uint32_t file;
} more_name;

struct mri_tar_more {
    more_name name[MOST_NAMES];
    uint32_t count, pictures;
    bool too_many;
};

mri_tar_more *mri_tar_more_create(void) { return calloc(1, sizeof(mri_tar_more)); }
void mri_tar_more_free(mri_tar_more *m) { free(m); }

static more_name *find(mri_tar_more *m, const char *ext)
{
    for (uint32_t k = 0; k < m->count; k++)
        if (strcmp(m->name[k].ext, ext) == 0) return &m->name[k];
    if (m->count == MOST_NAMES) return NULL;
    more_name *n = &m->name[m->count++];
    *n = (more_name){0};
    memcpy(n->ext, ext, strlen(ext) + 1);
    return n;
}

/* One that belongs to another picture stays a field where a sample has lost that picture. */
static void add_picture(mri_tar_more *m, const mri_tar_part *part)
{
    if (mri_tar_is_mask(part->ext) || m->pictures == MOST_PICTURES) return;
    more_name *n = find(m, part->ext);
    if (!n || n->picture) return;
    n->picture = true;
    m->pictures++;
}

/* Lines of the text end with one. */
static bool is_line(const char *ext) { return !strchr(ext, '\n'); }

static void add_other(mri_tar_more *m, const mri_tar_schema *s, const mri_tar_part *part, uint64_t sample,
                      mri_tar_notes *notes)
{
    if (s->label_kind == MRI_TAR_NO_LABEL && !s->label_key[0] && mri_tar_is_class(part->ext))
        mri_tar_note(notes, MRI_TAR_LATE_CLASS, part->data, part->ext);
    const bool can = mri_tar_schema_may_add(s, part->ext) && is_line(part->ext);
    more_name *n = can ? find(m, part->ext) : NULL;
    m->too_many |= can && !n;
    if (!n) {
        mri_tar_note(notes, MRI_TAR_LEFT_OUT, part->data, part->ext);
        return;
    }
    if (n->count++ > 0) return;
    n->sample = sample;
    n->offset = part->data;
    n->file = notes->file;
}

int mri_tar_more_add(mri_tar_more *m, const mri_tar_schema *s, const mri_tar_group *g, uint64_t sample,
                     mri_tar_notes *notes, mri_tar_get *get, void *context, mr_error *err)
{
    const mri_tar_part *image = NULL;
    mr_type type;
    uint32_t unknown = 0;
    for (uint32_t k = 0; k < g->count; k++) unknown += !mri_tar_schema_knows(s, &g->part[k]);
    if (unknown == 0) return MR_OK;
    if (s->image_field >= 0) {
        image = mri_tar_group_find(g, s->image);
        const int rc = image ? MR_OK : mri_tar_schema_image(s, g, get, context, &image, &type, err);
        if (rc == MR_EIO || rc == MR_ENOMEM) return rc;
        if (rc && err) *err = (mr_error)MR_ERROR_INIT; /* reported when it is read */
    }
    for (uint32_t k = 0; k < g->count; k++) {
        const mri_tar_part *part = &g->part[k];
        if (mri_tar_schema_knows(s, part)) continue;
        if (part == image) add_picture(m, part);
        else if (!image || strcmp(part->ext, image->ext) != 0) add_other(m, s, part, sample, notes);
    }
    return MR_OK;
}

/* ---- after the last sample ---- */
static void leave_out(mri_tar_notes *notes, const more_name *n)
{
    const uint32_t file = notes->file;
    notes->file = n->file;
    mri_tar_note(notes, MRI_TAR_LEFT_OUT, n->offset, n->ext);
    notes->file = file;
    notes->of[MRI_TAR_LEFT_OUT].count += n->count - 1;
}

char *mri_tar_more_text(const mri_tar_more *m, const mri_tar_schema *s, mri_tar_notes *notes)
{
    char *text = calloc(MR_MAX_FIELDS, LINE_ROOM);
    uint32_t fields = s->field_count;
    for (size_t k = 0, at = 0; text && k < m->count; k++) {
        const more_name *n = &m->name[k];
        if (n->count == 0) continue;
        if (n->picture || fields == MR_MAX_FIELDS || (m->too_many && n->count == 1)) {
            leave_out(notes, n);
            continue;
        }
        at += (size_t)sprintf(text + at, "%" PRIu64 " %s\n", n->sample, n->ext);
        fields++;
    }
    return text;
}

bool mri_tar_more_next(const char **at, size_t *bytes, uint64_t *sample, char name[MR_MAX_NAME + 1])
{
    const char *end = memchr(*at, '\n', *bytes), *c = *at;
    if (!end) return false;
    for (*sample = 0; c < end && *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(*sample, 10, sample) ||
            __builtin_add_overflow(*sample, (uint64_t)(*c - '0'), sample))
            return false;
    if (c == *at || c == end || *c++ != ' ' || c == end || end - c > MR_MAX_NAME) return false;
    memcpy(name, c, (size_t)(end - c));
    name[end - c] = '\0';
    *bytes -= (size_t)(end + 1 - *at);
    *at = end + 1;
    return true;
}

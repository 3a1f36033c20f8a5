/* pipeline/repair/repair_again.c: records made again from the source, by the settings that the set's
 * provenance holds. That they are the old settings and the old source is proved: the provenance that they
 * give now must be the set's, letter by letter. */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/source/columns.h"
#include "pipeline/convert/convert_sample.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/repair/repair.h"

struct mri_repair_again {
    mri_convert_plan plan;
    mri_convert_desk desk;
    mri_convert_item item;
    mr_budget *budget;
};

typedef struct settings { /* of a provenance */
    char format[64], fingerprint[17], store[8], flag[5][6], pictures[MRI_PICTURES_TEXT];
    unsigned long long count, max_pixels, shard_bytes;
    unsigned resize, quality, channels, max_scans;
} settings;

enum { ENTRIES, TRANSCODE, SQUARE, IGNORE_EXIF, CHECK };

/* As convert.c writes it. */
static bool read_provenance(const char *text, settings *s)
{
    int scans = -1, kinds = 0, end = -1;
    const int n =
        sscanf(text,
               "{\"source\": {\"format\": \"%63[^\"]\", \"count\": %llu, \"fingerprint\": \"%16[0-9a-f]\"}, "
               "\"store\": \"%7[a-z]\", \"entries\": %5[a-z], \"transcode\": %5[a-z], \"resize\": %u, "
               "\"quality\": %u, \"center_square\": %5[a-z], \"channels\": %u, \"ignore_exif\": %5[a-z], "
               "\"check\": %5[a-z], \"max_pixels\": %llu, \"max_scans\": %u, %n",
               s->format, &s->count, s->fingerprint, s->store, s->flag[ENTRIES], s->flag[TRANSCODE],
               &s->resize, &s->quality, s->flag[SQUARE], &s->channels, s->flag[IGNORE_EXIF], s->flag[CHECK],
               &s->max_pixels, &s->max_scans, &scans);
    if (n != 14 || scans < 0) return false;
    if (sscanf(text + scans, "\"pictures\": \"%63[a-z,]\", %n", s->pictures, &kinds) != 1)
        s->pictures[0] = '\0';
    kinds += (int)mri_columns_text_bytes(text + scans + kinds);
    if (sscanf(text + scans + kinds, "\"shard_bytes\": %llu, \"note\": %n", &s->shard_bytes, &end) != 1)
        return false;
    return end > 0;
}

/* The note of the conversion's caller; to be freed. NULL: no note. */
static char *note_of(const char *provenance)
{
    static const char key[] = "\"note\": ";
    const char *at = strstr(provenance, key), *end = strrchr(provenance, '}');
    at += at ? sizeof key - 1 : 0;
    return at && end > at && strncmp(at, "null", 4) != 0 ? strndup(at, (size_t)(end - at)) : NULL;
}

static bool is_on(const settings *s, int flag) { return strcmp(s->flag[flag], "true") == 0; }

static int differs(const settings *s, const mri_convert_plan *plan, const char *like, mr_error *err)
{
    const mr_source_info *info = plan->info;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, info->fingerprint);
    if (strcmp(s->format, info->format) != 0)
        mr_error_set(err, MR_EINVAL, "expected the source of this set, which was of format %s, found %s (%s)",
                     s->format, info->path, info->format);
    else if (s->count != info->count)
        mr_error_set(err, MR_EINVAL,
                     "expected the source of this set, which had %llu samples, found %s with %" PRIu64
                     "; of a set that grew, 'repair SET DST' saves the whole samples, and 'convert SRC LIST "
                     "--update' with the list in DST appends the lost ones again",
                     s->count, info->path, info->count);
    else if (strcmp(s->fingerprint, fingerprint) != 0)
        mr_error_set(
            err, MR_EINVAL,
            "expected the source of this set, found %s, whose samples have other names, sizes or labels",
            info->path);
    else
        mr_error_set(err, MR_EINVAL,
                     "this set was made with settings that this program does not know, or with other fields");
    return mri_error_place(err, MR_EINVAL, like, MR_NOWHERE, MR_NOWHERE);
}

int mri_repair_config_of(mr_convert_config *out, const mr_mrec *m, const char *path, mr_error *err)
{
    const mr_mrec_info *info = mr_mrec_info_of(m);
    settings s = {0};
    mr_convert_config cfg;
    if (!read_provenance(info->provenance, &s)) {
        mr_error_set(err, MR_EINVAL,
                     "this file does not say how it was made: it was not made by 'millrace convert'");
        return mri_error_place(err, MR_EINVAL, path, MR_NOWHERE, MR_NOWHERE);
    }
    mr_convert_defaults(&cfg);
    cfg.store = strcmp(s.store, "raw") == 0    ? MR_STORE_RAW
                : strcmp(s.store, "coef") == 0 ? MR_STORE_COEF
                                               : MR_STORE_JPEG;
    cfg.entries = is_on(&s, ENTRIES);
    cfg.transcode = is_on(&s, TRANSCODE);
    cfg.resize = s.resize;
    cfg.quality = s.quality;
    cfg.center_square = is_on(&s, SQUARE);
    cfg.decode.channels = s.channels;
    cfg.decode.ignore_exif = is_on(&s, IGNORE_EXIF);
    cfg.check = is_on(&s, CHECK);
    cfg.decode.max_pixels = s.max_pixels;
    cfg.decode.max_scans = s.max_scans;
    if (s.pictures[0] && !mri_pictures_parse(&cfg.decode, s.pictures)) cfg.decode.pictures = 0;
    cfg.shard_bytes = s.shard_bytes;
    cfg.no_names = true;
    for (uint32_t k = 0; k < info->field_count; k++)
        cfg.no_names = cfg.no_names && strcmp(info->fields[k].name, "sample.name") != 0;
    *out = cfg;
    return MR_OK;
}

uint32_t mri_repair_other_field(const mri_convert_plan *plan, const mr_mrec *m)
{
    const mr_mrec_info *info = mr_mrec_info_of(m);
    uint32_t k = 0;
    while (k < plan->field_count && k < info->field_count &&
           strcmp(plan->fields[k].name, info->fields[k].name) == 0 &&
           plan->fields[k].type == info->fields[k].type)
        k++;
    return k == plan->field_count && k == info->field_count ? UINT32_MAX : k;
}

static int plan_again(mri_repair_again *a, const mr_source *src, const mr_mrec *m, const char *like,
                      mr_error *err)
{
    settings s = {0};
    mr_convert_config cfg;
    int rc = mri_repair_config_of(&cfg, m, like, err);
    char *note = rc ? NULL : note_of(mr_mrec_info_of(m)->provenance);
    cfg.provenance = note;
    if (!rc) rc = mri_convert_plan_make(&a->plan, src, &cfg, err);
    a->plan.cfg.provenance = NULL; /* it is in plan.provenance */
    free(note);
    if (rc) return rc;
    read_provenance(mr_mrec_info_of(m)->provenance, &s);
    const bool same = strcmp(a->plan.provenance, mr_mrec_info_of(m)->provenance) == 0 &&
                      mri_repair_other_field(&a->plan, m) == UINT32_MAX;
    return same ? MR_OK : differs(&s, &a->plan, like, err);
}

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to make records again");
}

static int open_again(mri_repair_again **out, int planned, mri_repair_again *a, mr_error *err)
{
    int rc = planned;
    if (!rc && mr_budget_create(&a->budget, mri_memory_limit_bytes() / 2) != MR_OK) rc = no_memory(err);
    if (!rc) mri_convert_desk_init(&a->desk, a->budget);
    if (!rc) {
        *out = a;
        return MR_OK;
    }
    if (a) free(a->plan.provenance);
    free(a);
    return rc;
}

int mri_repair_again_open(mri_repair_again **out, const mr_source *src, const char *like, mr_error *err)
{
    mr_mrec *m;
    *out = NULL;
    int rc = mr_mrec_open(&m, like, 0, err);
    if (rc) return rc;
    mri_repair_again *a = calloc(1, sizeof *a);
    rc = a ? plan_again(a, src, m, like, err) : no_memory(err);
    mr_mrec_close(m);
    return open_again(out, rc, a, err);
}

int mri_repair_again_like(mri_repair_again **out, const mr_source *src, const mr_mrec *m, const char *path,
                          mr_error *err)
{
    mr_convert_config cfg;
    mri_repair_again *a = calloc(1, sizeof *a);
    *out = NULL;
    int rc = a ? mri_repair_config_of(&cfg, m, path, err) : no_memory(err);
    if (!rc) rc = mri_convert_plan_make(&a->plan, src, &cfg, err);
    return open_again(out, rc, a, err);
}

void mri_repair_again_close(mri_repair_again *a)
{
    if (!a) return;
    mri_convert_item_fini(&a->item);
    mri_convert_desk_fini(&a->desk);
    mr_budget_destroy(a->budget);
    free(a->plan.provenance);
    free(a);
}

bool mri_repair_again_is(const mri_repair_again *a, const char *provenance)
{
    return strcmp(a->plan.provenance, provenance) == 0;
}

uint32_t mri_repair_again_fields(const mri_repair_again *a) { return a->plan.field_count; }
uint64_t mri_repair_again_count(const mri_repair_again *a) { return a->plan.info->count; }
uint64_t mri_repair_again_shard_bytes(const mri_repair_again *a) { return a->plan.cfg.shard_bytes; }

int mri_repair_again_make(mri_repair_again *a, uint64_t i, const mr_value **values, char *name, size_t room,
                          mr_error *err)
{
    mri_convert_item *item = &a->item;
    mri_convert_item_clear(item);
    item->source_index = i;
    mri_convert_sample(&a->plan, &a->desk, item);
    if (item->fatal || (item->rc && !mr_error_of_sample(item->rc, &item->error))) {
        if (err) *err = item->error;
        return item->rc;
    }
    if (item->rc) return MR_EEND;
    mr_source_sample_name(a->plan.src, i, item->buffer, (size_t)item->bytes_in, name, room);
    *values = item->values;
    return MR_OK;
}

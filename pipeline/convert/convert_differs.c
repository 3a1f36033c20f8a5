/* pipeline/convert/convert_differs.c: what makes two conversions two, by name. Both texts are as convert.c
 * writes them; of others nothing is said but that they differ. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "formats/record/mrec_salvage.h"
#include "pipeline/convert/convert.h"

/* What stands behind "key": in the text; NULL: no such key. */
static const char *value_of(const char *text, const char *key, size_t *bytes)
{
    char want[64];
    snprintf(want, sizeof want, "\"%s\": ", key);
    const char *at = strstr(text, want);
    if (!at) return NULL;
    at += strlen(want);
    if (*at == '"') {
        *bytes = strcspn(++at, "\"");
        return at;
    }
    *bytes = strcspn(at, ",}");
    return at;
}

char *mri_convert_differs(const char *was, const char *is, char *buf, size_t room)
{
    static const struct {
        const char *key, *name;
    } known[] = {
        {"format", "format of the source"},
        {"count", "samples of the source"},
        {"store", "--store"},
        {"entries", "entry points"},
        {"transcode", "--transcode"},
        {"resize", "--resize"},
        {"quality", "--quality"},
        {"center_square", "--center-square"},
        {"channels", "--channels"},
        {"ignore_exif", "--ignore-exif"},
        {"check", "check of pictures"},
        {"max_pixels", "--max-pixels"},
        {"max_scans", "--max-scans"},
        {"pictures", "--pictures"},
        {"shard_bytes", "--shard-size"},
    };
    size_t at = 0, a, b;
    buf[0] = '\0';
    for (size_t k = 0; k < MRI_ARRAY_COUNT(known) && at < room; k++) {
        const char *x = value_of(was, known[k].key, &a), *y = value_of(is, known[k].key, &b);
        if (strcmp(known[k].key, "pictures") == 0) { /* without this key: all kinds */
            if (!x) x = "all", a = 3;
            if (!y) y = "all", b = 3;
        }
        if (!x || !y || (a == b && memcmp(x, y, a) == 0)) continue;
        at += (size_t)snprintf(buf + at, room - at, "%s%s was %.*s, is %.*s", at ? "; " : "", known[k].name,
                               (int)a, x, (int)b, y);
    }
    const char *x = value_of(was, "fingerprint", &a), *y = value_of(is, "fingerprint", &b);
    if (at == 0 && x && y && (a != b || memcmp(x, y, a) != 0))
        at = (size_t)snprintf(buf, room, "the source has other samples, names, sizes or classes");
    if (at == 0) snprintf(buf, room, "fields, classes or settings are others");
    return buf;
}

int mri_convert_part_differs(const mri_convert_plan *plan, const char *dst, const char *part, mr_error *err)
{
    void *walk;
    char text[512], file[480];
    if (mri_salvage_mrec.open(&walk, part, NULL, NULL) != MR_OK) return MR_EEXIST;
    const char *was = mri_mrec_salvage_provenance(walk);
    const bool named = was && mri_taken_differs(plan, dst, file, sizeof file);
    if (was)
        mri_error_place(
            err,
            mr_error_set(
                err, MR_EEXIST,
                "cannot resume: it was begun otherwise: %s%s%s; give the same data and settings, or begin "
                "anew with force (--force)",
                mri_convert_differs(was, plan->provenance, text, sizeof text), named ? ": " : "",
                named ? file : ""),
            part, MR_NOWHERE, MR_NOWHERE);
    mri_salvage_mrec.close(walk);
    return MR_EEXIST;
}

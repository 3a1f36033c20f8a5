/* formats/arrays/npy_names.c: see npy_names.h.
 *
 *   x_train  train_images  images_train  ...      pictures of a part: a word of parts.h and one of these
 *   images  x  X  data  arr_0                     pictures of no part in particular */
#include "formats/arrays/npy_names.h"

#include <stdio.h>
#include <unistd.h>

#include "base/util.h"

static const char *const templates[] = {"x_%s",    "X_%s",    "%s_images", "%s_x", "%s_X",
                                        "%s_data", "data_%s", "images_%s", "x%s",  "X%s"};
static const char *const plain_names[] = {"images", "x", "X", "data", "arr_0"};
static const char *const part_words[MRI_PART_COUNT][6] = {
    [MRI_TRAIN] = {"train", "training"},
    [MRI_VALIDATION] = {"val", "valid", "validation", "dev", "eval"},
    [MRI_TEST] = {"test", "testing"},
};
static const char *const label_names[] = {"labels", "y", "label", "targets"};
static const char *const pairs[][2] = {
    /* part of a name, and what stands there in the name of its classes */
    {"images", "labels"}, {"image", "label"}, {"arr_0", "arr_1"}, {"x_", "y_"}, {"X_", "y_"}, {"_x", "_y"},
    {"_X", "_y"},         {"data", "labels"}, {"x", "y"},         {"X", "y"},   {"X", "Y"},
};

bool mri_npy_has(const mri_npy_store *s, const char *name)
{
    char file[MRI_NPY_NAME_BYTES + 8];
    if ((size_t)snprintf(file, sizeof file, "%s.npy", name) >= sizeof file) return false;
    if (s->is_zip) return mri_zip_find(&s->zip, file) != NULL;
    char path[sizeof s->path + sizeof file];
    snprintf(path, sizeof path, "%s/%s", s->path, file);
    return access(path, F_OK) == 0;
}

static const char *first_of(const mri_npy_store *s, const char *const *names, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (mri_npy_has(s, names[k])) return names[k];
    return NULL;
}

/* name with the first `from` in it replaced; false: `from` does not occur, or the result is too long. */
static bool replaced(const char *name, const char *from, const char *to, char out[MRI_NPY_NAME_BYTES])
{
    const char *at = strstr(name, from);
    if (!at) return false;
    return snprintf(out, MRI_NPY_NAME_BYTES, "%.*s%s%s", (int)(at - name), name, to, at + strlen(from)) <
           MRI_NPY_NAME_BYTES;
}

bool mri_npy_find_labels(const mri_npy_store *s, const char *image, char out[MRI_NPY_NAME_BYTES])
{
    static const char *const tails[] = {"_labels", "_label"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(tails); k++)
        if (snprintf(out, MRI_NPY_NAME_BYTES, "%s%s", image, tails[k]) < MRI_NPY_NAME_BYTES &&
            mri_npy_has(s, out))
            return true;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(pairs); k++)
        if (replaced(image, pairs[k][0], pairs[k][1], out) && mri_npy_has(s, out)) return true;
    const char *usual = first_of(s, label_names, MRI_ARRAY_COUNT(label_names));
    if (!usual || strcmp(usual, image) == 0) return false;
    snprintf(out, MRI_NPY_NAME_BYTES, "%s", usual);
    return true;
}

/* "x_train, y_train" of an archive, for messages. */
static const char *names_text(const mri_npy_store *s, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; s->is_zip && k < s->zip.count && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%.60s", k ? ", " : "", s->zip.member[k].name);
    return buf;
}

int mri_npy_no_array(const mri_npy_store *s, const char *name, const char *what, mr_error *err)
{
    char names[300];
    if (s->is_zip)
        mr_error_set(err, MR_ENOENT, "no array %s%s%s; there are: %s", name ? "named " : "with a usual name",
                     name ? name : "", what, names_text(s, names, sizeof names));
    else mr_error_set(err, MR_ENOENT, "no %s.npy%s", name ? name : "x_train", what);
    return mri_error_place(err, MR_ENOENT, s->path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- parts ---- */
static bool find_part(const mri_npy_store *s, mri_part part, char out[MRI_NPY_NAME_BYTES])
{
    for (size_t w = 0; w < MRI_ARRAY_COUNT(part_words[part]) && part_words[part][w]; w++)
        for (size_t t = 0; t < MRI_ARRAY_COUNT(templates); t++) {
            const char *mark = strstr(templates[t], "%s");
            snprintf(out, MRI_NPY_NAME_BYTES, "%.*s%s%s", (int)(mark - templates[t]), templates[t],
                     part_words[part][w], mark + 2);
            if (mri_npy_has(s, out)) return true;
        }
    out[0] = '\0';
    return false;
}

bool mri_npy_find_parts(const mri_npy_store *s, mri_npy_parts *out)
{
    bool found = false;
    *out = (mri_npy_parts){0};
    for (int part = MRI_TRAIN; part < MRI_PART_COUNT; part++)
        found |= find_part(s, (mri_part)part, out->name[part]);
    const char *plain =
        out->name[MRI_TRAIN][0] ? NULL : first_of(s, plain_names, MRI_ARRAY_COUNT(plain_names));
    if (plain) snprintf(out->name[MRI_TRAIN], sizeof out->name[MRI_TRAIN], "%s", plain);
    return found || plain;
}

static const char *const key_words[] = {"train", "test", "validation", "valid", "val", "dev", "eval"};

/* "train_labels" with the name of a part: "labels". false: it has no part, or nothing else. */
static bool without_part(const char *key, char out[MRI_NPY_NAME_BYTES])
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(key_words); k++) {
        const size_t n = strlen(key_words[k]), all = strlen(key);
        if (all < n + 2 || all >= MRI_NPY_NAME_BYTES) continue;
        if (strncmp(key, key_words[k], n) == 0 && key[n] == '_') {
            snprintf(out, MRI_NPY_NAME_BYTES, "%s", key + n + 1);
            return true;
        }
        if (strcmp(key + all - n, key_words[k]) == 0 && key[all - n - 1] == '_') {
            snprintf(out, MRI_NPY_NAME_BYTES, "%.*s", (int)(all - n - 1), key);
            return true;
        }
    }
    return false;
}

/* The array of this name for the part that the pictures are of. */
static bool of_same_part(const mri_npy_store *s, const char *image, const char *key,
                         char out[MRI_NPY_NAME_BYTES])
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(key_words); k++) {
        if (!strstr(image, key_words[k])) continue;
        if (snprintf(out, MRI_NPY_NAME_BYTES, "%s_%s", key, key_words[k]) < MRI_NPY_NAME_BYTES &&
            mri_npy_has(s, out))
            return true;
        if (snprintf(out, MRI_NPY_NAME_BYTES, "%s_%s", key_words[k], key) < MRI_NPY_NAME_BYTES &&
            mri_npy_has(s, out))
            return true;
    }
    return false;
}

bool mri_npy_find_targets(const mri_npy_store *s, const char *image, const char *key,
                          char out[MRI_NPY_NAME_BYTES])
{
    char bare[MRI_NPY_NAME_BYTES];
    if (of_same_part(s, image, key, out)) return true;
    if (without_part(key, bare) && of_same_part(s, image, bare, out)) return true;
    return snprintf(out, MRI_NPY_NAME_BYTES, "%s", key) < MRI_NPY_NAME_BYTES && mri_npy_has(s, out);
}

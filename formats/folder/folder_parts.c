/* formats/folder/folder_parts.c: folders that are parts of a data set: train/ and test/ or val/ with the
 * classes in them, train2017/ and val2017/, seg_train/ and seg_test/.
 *
 * A class may be called train, too (beside bus and tram), and test-tube is one. So a name alone decides
 * nothing:
 *
 *   train, val, test, maybe with a year   with folders in it, or with pictures where no other folder has any
 *   a longer name with such a word        the same, and only if its counterpart (the same name with the
 *                                         other word) is there as well
 *
 * Two parts need the same digits (train2017, val2017), or one of them is without digits and the only one of
 * its kind (train1, test). Two train parts that differ in their digits alone (train1, train2) are refused:
 * which one is meant, or both, is not guessed.
 *
 * Without a train part the one to test with is all there is. */
#include <stdio.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/source/parts.h"

enum { TEMPLATE = 256 };

typedef struct role { /* the meaning of a folder's name */
    mri_part part;
    uint32_t rank;       /* of its word (parts.h) */
    bool alone;          /* there is no other word */
    char rest[TEMPLATE]; /* the name with its word replaced, in lower case: what two parts of one data set
                            share */
} role;

static char lower(char c) { return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c); }

static role role_of(const char *name)
{
    role r = {.part = MRI_NO_PART, .alone = true};
    size_t used = 0;
    if (strlen(name) >= TEMPLATE) return r;
    for (const char *at = name; *at;) {
        const mri_part_piece p = mri_part_piece_at(name, at);
        if (p.part != MRI_NO_PART) {
            r.part = r.part == MRI_NO_PART ? p.part : MRI_TWO_PARTS;
            r.rank = p.rank;
            r.rest[used++] = '%';
        } else {
            r.alone = r.alone && !p.is_word;
            for (size_t k = 0; k < p.bytes; k++) r.rest[used++] = lower(at[k]);
        }
        at += p.bytes;
    }
    return r;
}

static bool is_to_test(const role *r) { return r->part == MRI_VALIDATION || r->part == MRI_TEST; }

typedef struct search {
    mri_dir root;
    const char *where;
    const mri_listing *folders;
    mr_error *err;
} search;

static int look(const search *s, const char *name, bool all, mri_contents *out)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", s->where, name);
    return mri_look_into(s->root, name, path, all, out, s->err);
}

/* Does a folder that is named like no part hold pictures? Then they are classes. */
static int others_hold_pictures(const search *s, bool *out)
{
    int rc = MR_OK;
    *out = false;
    for (size_t k = 0; !rc && !*out && k < s->folders->count; k++) {
        mri_contents c;
        const char *name = mri_listing_name(s->folders, k);
        if (role_of(name).part != MRI_NO_PART) continue;
        rc = look(s, name, false, &c);
        *out = !rc && c.pictures;
    }
    return rc;
}

/* The split to test with: the folder with the same rest of its name, or, if rest is NULL, the only one. like:
 * the contents it must have. *at: its index among the folders, or -1. */
static int find_test(const search *s, const char *like_rest, const mri_contents *like, uint32_t from_rank,
                     int *at, uint32_t *at_rank)
{
    int rc = MR_OK;
    *at = -1;
    for (uint32_t rank = from_rank; !rc && *at < 0 && rank < MRI_PART_WORDS; rank++)
        for (size_t k = 0; !rc && *at < 0 && k < s->folders->count; k++) {
            mri_contents c;
            const char *name = mri_listing_name(s->folders, k);
            const role r = role_of(name);
            if (!is_to_test(&r) || r.rank != rank) continue;
            if (like_rest ? strcmp(r.rest, like_rest) != 0 : !r.alone) continue;
            rc = look(s, name, true, &c);
            if (rc || !(like->folders ? c.folders : c.pictures && !c.folders)) continue;
            *at = (int)k;
            *at_rank = rank;
        }
    return rc;
}

static int set_test(const search *s, mri_folder_parts *out, const char *rest, const mri_contents *like)
{
    int at, other;
    uint32_t rank, other_rank;
    int rc = find_test(s, rest, like, 0, &at, &rank);
    if (rc || at < 0) return rc;
    snprintf(out->test, sizeof out->test, "%s", mri_listing_name(s->folders, (size_t)at));
    rc = find_test(s, rest, like, rank + 1, &other, &other_rank);
    if (!rc && other >= 0)
        snprintf(out->passed, sizeof out->passed, "%s", mri_listing_name(s->folders, (size_t)other));
    return rc;
}

/* The part to test with where no name has the same digits: the only one of its rank, and one of both names is
 * the word itself. */
static int set_only_test(const search *s, mri_folder_parts *out, const char *rest, const mri_contents *like)
{
    int rc = MR_OK;
    size_t found = 0, at = 0;
    for (uint32_t rank = 0; !rc && found == 0 && rank < MRI_PART_WORDS; rank++)
        for (size_t k = 0; !rc && k < s->folders->count; k++) {
            mri_contents c;
            const char *name = mri_listing_name(s->folders, k);
            const role r = role_of(name);
            if (!is_to_test(&r) || r.rank != rank || !r.alone) continue;
            if (strcmp(rest, "%") != 0 && strcmp(r.rest, "%") != 0) continue;
            rc = look(s, name, true, &c);
            if (rc || !(like->folders ? c.folders : c.pictures && !c.folders)) continue;
            found++;
            at = k;
        }
    if (!rc && found == 1) snprintf(out->test, sizeof out->test, "%s", mri_listing_name(s->folders, at));
    return rc;
}

/* train1/ and train2/ without train/. */
static int check_one_train(const search *s, const char *name, const role *train, const mri_contents *like)
{
    int rc = MR_OK;
    if (strcmp(train->rest, "%") == 0) return MR_OK;
    for (size_t k = 0; !rc && k < s->folders->count; k++) {
        mri_contents c;
        const char *other = mri_listing_name(s->folders, k);
        const role r = role_of(other);
        if (r.part != MRI_TRAIN || !r.alone || strcmp(other, name) == 0) continue;
        rc = look(s, other, true, &c);
        if (rc || c.folders != like->folders || (!c.folders && !c.pictures)) continue;
        rc =
            mr_error_set(s->err, MR_EFORMAT,
                         "%s/ and %s/ are both called like the train part: name one of them as the data set, "
                         "make one folder train/ of them, or name both in a mix file",
                         name, other);
        mri_error_place(s->err, rc, s->where, MR_NOWHERE, MR_NOWHERE);
    }
    return rc;
}

/* Could this folder be the train part? Then its counterpart is found, too. */
static int try_train(const search *s, mri_folder_parts *out, const char *name, const role *r)
{
    mri_contents c;
    bool classes = false;
    int rc = look(s, name, true, &c);
    if (rc || !(c.folders || c.pictures)) return rc;
    if (!c.folders) rc = others_hold_pictures(s, &classes);
    if (!rc && !classes && r->alone) rc = check_one_train(s, name, r, &c);
    if (!rc && !classes) rc = set_test(s, out, r->rest, &c);
    if (!rc && !classes && r->alone && !out->test[0]) rc = set_only_test(s, out, r->rest, &c);
    if (!rc && !classes && (r->alone || out->test[0])) snprintf(out->train, sizeof out->train, "%s", name);
    return rc;
}

static int find_train(const search *s, mri_folder_parts *out)
{
    int rc = MR_OK;
    for (int longer = 0; longer < 2; longer++) /* names of the word alone first */
        for (size_t k = 0; !rc && !out->train[0] && k < s->folders->count; k++) {
            const char *name = mri_listing_name(s->folders, k);
            const role r = role_of(name);
            if (r.part == MRI_TRAIN && r.alone == !longer) rc = try_train(s, out, name, &r);
        }
    return rc;
}

static int find_test_alone(const search *s, mri_folder_parts *out)
{
    static const mri_contents kinds[] = {{.folders = true}, {.pictures = true}};
    bool classes;
    int rc = MR_OK;
    for (size_t k = 0; !rc && !out->test[0] && k < MRI_ARRAY_COUNT(kinds); k++)
        rc = set_test(s, out, NULL, &kinds[k]);
    if (rc || !out->test[0]) return rc;
    rc = others_hold_pictures(s, &classes);
    if (classes) *out = (mri_folder_parts){0};
    return rc;
}

static bool any_part(const mri_listing *folders)
{
    for (size_t k = 0; k < folders->count; k++) {
        const role r = role_of(mri_listing_name(folders, k));
        if (r.part == MRI_TRAIN || is_to_test(&r)) return true;
    }
    return false;
}

int mri_folder_find_parts(mri_folder_parts *out, mri_dir root, const char *where, const mri_listing *folders,
                          mri_left_out *left, mr_error *err)
{
    const search s = {root, where, folders, err};
    *out = (mri_folder_parts){0};
    if (!any_part(folders)) return MR_OK;
    int rc = find_train(&s, out);
    if (!rc && !out->train[0]) rc = find_test_alone(&s, out);
    if (rc || !(out->train[0] || out->test[0])) return rc;
    for (size_t k = 0; k < folders->count; k++) {
        const char *name = mri_listing_name(folders, k);
        if (strcmp(name, out->train) == 0 || strcmp(name, out->test) == 0 || strcmp(name, out->passed) == 0)
            continue;
        mri_contents c;
        const bool named = role_of(name).part != MRI_NO_PART;
        if (named && (rc = look(&s, name, true, &c))) return rc;
        mri_leave_out(left, MRI_LEFT_NO_PART, where, name,
                      named && c.pictures && !c.folders
                          ? "its pictures are in no folders, the train part has folders"
                          : NULL);
    }
    return MR_OK;
}

/* A pair of names such as train and val is no pair of classes. A class called train alone is one. */
int mri_splits_are_no_classes(const mri_listing *out, const char *where, mr_error *err)
{
    for (size_t k = 0; k < out->count; k++) {
        const char *name = mri_listing_name(out, k);
        const role train = role_of(name);
        if (train.part != MRI_TRAIN) continue;
        for (size_t m = 0; m < out->count; m++) {
            const char *other = mri_listing_name(out, m);
            const role test = role_of(other);
            if (!is_to_test(&test) || strcmp(test.rest, train.rest) != 0) continue;
            mr_error_set(
                err, MR_EFORMAT,
                "%s/ and %s/ are called like splits, and would be classes, since other folders have "
                "pictures, too: name one folder as the data set (%s/%s), with --val for the other, or "
                "make a class of each folder (--classes depth)",
                name, other, where, name);
            return mri_error_place(err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
        }
    }
    return MR_OK;
}

/* formats/fileset/filelist_gaps.c: finds missing numbers among files whose names do not state their total.
 *
 *   a-000.tar  a-001.tar  a-004.tar       reported: of a-000.tar to a-004.tar 002, 003 are missing
 *   a-20240101.tar  a-20240301.tar        nothing: these numbers do not count files
 *
 * The number is the last one in front of a name's ending; names that differ in it alone count together. A
 * number counts files when it is written with zeros in front, or when at least half of the numbers between
 * the lowest and the highest are there. Files of sets that say their total (-of-) are never missing: that is
 * an error elsewhere. */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/fileset/filelist.h"

enum { RANGES_TOLD = 6 };

typedef struct numbered { /* HEAD 0017 TAIL */
    const char *path;
    size_t head_bytes;
    int digits;
    uint32_t number;
} numbered;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *tail_of(const numbered *f) { return f->path + f->head_bytes + f->digits; }

/* Where the ending of the name begins: the last dot's, and one before .gz. */
static const char *ending_of(const char *name)
{
    const char *end = name + strlen(name), *dot;
    if (end - name > 3 && strcasecmp(end - 3, ".gz") == 0) end -= 3;
    dot = memrchr(name, '.', (size_t)(end - name));
    return dot && dot > name ? dot : end;
}

static bool number_of(const char *path, numbered *out)
{
    mri_piece piece;
    const char *name = mri_file_name(path), *end = ending_of(name);
    if (mri_piece_of(name, &piece)) return false;
    while (end > name && !is_digit(end[-1])) end--;
    const char *from = end;
    while (from > name && is_digit(from[-1])) from--;
    if (from == end || end - from > MRI_MOST_DIGITS) return false;
    *out = (numbered){path, (size_t)(from - path), (int)(end - from), (uint32_t)strtoul(from, NULL, 10)};
    return true;
}

static int of_one_set(const numbered *x, const numbered *y)
{
    if (x->head_bytes != y->head_bytes) return x->head_bytes < y->head_bytes ? -1 : 1;
    const int order = memcmp(x->path, y->path, x->head_bytes);
    return order ? order : strcmp(tail_of(x), tail_of(y));
}

static int by_set_and_number(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    const int order = of_one_set(x, y);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static bool has_zeros_in_front(const numbered *f) { return f->digits > 1 && f->path[f->head_bytes] == '0'; }

/* f: the files of one set, by number. Their missing numbers as "003, 007 to 009 and 2 more". */
static void list_missing(const numbered *f, uint32_t count, char *text, size_t room)
{
    uint32_t ranges = 0;
    size_t at = 0;
    for (uint32_t k = 1; k < count; k++) {
        const uint32_t from = f[k - 1].number + 1, to = f[k].number;
        const int width = has_zeros_in_front(&f[k - 1]) ? f[k - 1].digits : 1;
        if (to <= from) continue;
        if (ranges++ >= RANGES_TOLD) continue;
        at += (size_t)snprintf(text + at, room - at, "%s%0*u", ranges > 1 ? ", " : "", width, from);
        if (to - from > 1) at += (size_t)snprintf(text + at, room - at, " to %0*u", width, to - 1);
    }
    if (ranges > RANGES_TOLD) snprintf(text + at, room - at, " and more");
}

static void tell_set(mri_filelist *l, const numbered *f, uint32_t count)
{
    char text[256] = "";
    uint64_t missing = 0;
    bool zeros = false;
    for (uint32_t k = 0; k < count; k++) {
        zeros = zeros || has_zeros_in_front(&f[k]);
        if (k > 0 && f[k].number > f[k - 1].number) missing += f[k].number - f[k - 1].number - 1;
    }
    if (missing == 0 || (!zeros && missing > count)) return;
    list_missing(f, count, text, sizeof text);
    l->missing += (uint32_t)missing;
    mri_filelist_note(l,
                      "between %.200s and %.200s %llu number%s missing (%s): if files were lost, copy them",
                      mri_file_name(f[0].path), mri_file_name(f[count - 1].path), (unsigned long long)missing,
                      missing == 1 ? " is" : "s are", text);
}

int mri_filelist_note_gaps(mri_filelist *l, mr_error *err)
{
    uint32_t count = 0, from = 0;
    numbered *f = malloc((l->count ? l->count : 1) * sizeof *f);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory for a list of files");
    for (uint32_t k = 0; k < l->count; k++) count += number_of(l->path[k], &f[count]);
    qsort(f, count, sizeof *f, by_set_and_number);
    for (uint32_t k = 1; k <= count; k++) {
        if (k < count && of_one_set(&f[from], &f[k]) == 0) continue;
        tell_set(l, f + from, k - from);
        from = k;
    }
    free(f);
    return MR_OK;
}

/* formats/source/classes.c: see classes.h. */
#include "formats/source/classes.h"

#include <ctype.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/choice.h"
#include "formats/source/names.h"

enum {
    TWICE = UINT32_MAX, /* in place of a number: two classes have this name */
    MOST_DIGITS = 18,   /* of a name that is a number */
};

const char **mri_class_names_copy(const char *const *names, uint32_t count)
{
    size_t bytes, text = 0;
    for (uint32_t k = 0; k < count; k++) text += strlen(names[k]) + 1; /* in memory already: no overflow */
    if (!mri_mul_size(count, sizeof *names, &bytes) || !mri_add_size(bytes, text, &text)) return NULL;
    const char **copy = malloc(text ? text : 1);
    if (!copy) return NULL;
    char *at = (char *)copy + bytes;
    for (uint32_t k = 0; k < count; k++) {
        const size_t n = strlen(names[k]) + 1;
        memcpy(at, names[k], n);
        copy[k] = at;
        at += n;
    }
    return copy;
}

void mri_classes_fini(mri_classes *c)
{
    free(c->number);
    free(c->names);
    *c = (mri_classes){0};
}

static int no_class(int64_t label, uint32_t count, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "label %lld is out of range: expected 0..%u", (long long)label,
                        count ? count - 1 : 0);
}

int mri_classes_renumber(const mri_classes *c, int64_t *label, mr_error *err)
{
    const int64_t found = *label;
    if (c->subtract && (__builtin_sub_overflow(found, c->subtract, label) || *label < 0))
        return mr_error_set(err, MR_EFORMAT,
                            "label %lld: expected %lld or more, the number of the first class",
                            (long long)found, (long long)c->subtract);
    if (!c->number) {
        const bool known = !c->limit || *label < (int64_t)c->limit;
        return known ? MR_OK : no_class(*label, c->limit, err);
    }
    if (*label < 0 || *label >= (int64_t)c->format_class_count)
        return no_class(*label, c->format_class_count, err);
    if (c->number[*label] == MRI_NO_CLASS)
        return mr_error_set(err, MR_EFORMAT, "label %lld is not among the classes expected",
                            (long long)found);
    *label = c->number[*label];
    return MR_OK;
}

/* ---- names ---- */
bool mri_class_name_number(const char *name, int64_t *out)
{
    size_t n = 0;
    *out = 0;
    while (isdigit((unsigned char)name[n])) n++;
    if (n == 0 || n > MOST_DIGITS || name[n]) return false;
    *out = strtoll(name, NULL, 10);
    return true;
}

bool mri_class_names_are_numbers(const char *const *names, uint32_t count)
{
    bool any = false;
    for (uint32_t k = 0; k < count; k++) {
        int64_t ignored;
        if (!names[k][0]) continue;
        if (!mri_class_name_number(names[k], &ignored)) return false;
        any = true;
    }
    return any;
}

const char *mri_class_name_key(const char *name, bool are_numbers)
{
    while (are_numbers && name[0] == '0' && name[1]) name++;
    return name;
}

const char *mri_class_names_text(const char *const *names, uint32_t count, char *buf, size_t buf_bytes)
{
    enum { SHOWN = 5 };
    size_t at = 0;
    uint32_t shown = 0, left = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < count; k++) {
        if (!names[k][0]) continue;
        if (shown == SHOWN || at >= buf_bytes) left++;
        else at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%.40s", shown++ ? ", " : "", names[k]);
    }
    if (left && at < buf_bytes) snprintf(buf + at, buf_bytes - at, " and %u more", left);
    return buf;
}

static const char *numbers_text(int64_t first, int64_t last, char *buf, size_t buf_bytes)
{
    snprintf(buf, buf_bytes, "the numbers %lld to %lld", (long long)first, (long long)last);
    return buf;
}

/* ---- the offset ---- */
static int offset_of_names(const mr_source_info *info, int64_t rest, mr_error *err)
{
    bool empty = rest > 0 && rest < (int64_t)info->class_count;
    for (int64_t k = 0; empty && k < rest; k++) empty = !info->class_names[k][0];
    return empty ? MR_OK
                 : mr_error_set(err, MR_EINVAL,
                                "--label-offset: classes have names here, and each sample "
                                "has one of them: leave it out");
}

int mri_classes_offset(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mr_source_info *info = &src->info;
    const int64_t asked = cfg->label_offset == MR_LABEL_AUTO ? 0 : cfg->label_offset;
    int64_t rest;
    if (info->label_field < 0 || asked == info->label_offset) return MR_OK;
    if (info->class_names && cfg->class_count) return MR_OK; /* names are matched with those expected */
    int rc = __builtin_sub_overflow(asked, info->label_offset, &rest)
                 ? mr_error_set(err, MR_EINVAL, "--label-offset %lld is out of range", (long long)asked)
                 : MR_OK;
    if (!rc && info->class_names) rc = offset_of_names(info, rest, err);
    if (rc) return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE);
    int64_t count;
    if (info->class_names) info->class_names += rest;
    if (__builtin_sub_overflow((int64_t)info->class_count, rest, &count) || count < 0) count = 0;
    info->class_count = count <= MRI_MAX_CLASSES ? (uint32_t)count : 0;
    info->label_offset = asked;
    info->fingerprint = mri_mix64(info->fingerprint ^ (uint64_t)rest); /* other labels */
    src->classes.subtract = rest;
    return MR_OK;
}

/* ---- both lists ---- */
static const char *theirs_text(const mr_source_config *cfg, char *buf, size_t buf_bytes)
{
    const int64_t first = cfg->class_first;
    return cfg->class_names ? mri_class_names_text(cfg->class_names, cfg->class_count, buf, buf_bytes)
                            : numbers_text(first, first + cfg->class_count - 1, buf, buf_bytes);
}

/* Smallest and largest number of a set without names. */
static void range_of(const mr_source *src, int64_t *first, int64_t *last)
{
    const bool known = src->labels.min <= src->labels.max;
    *first = known ? src->labels.min : src->info.label_offset;
    *last = known ? src->labels.max : src->info.label_offset + src->info.class_count - 1;
}

static const char *ours_text(const mr_source *src, char *buf, size_t buf_bytes)
{
    const mr_source_info *info = &src->info;
    int64_t first, last;
    if (info->class_names) return mri_class_names_text(info->class_names, info->class_count, buf, buf_bytes);
    range_of(src, &first, &last);
    return numbers_text(first, last, buf, buf_bytes);
}

/* An error with the mismatch, both lists, and the remedy. */
static int mismatch(const mr_source *src, const mr_source_config *cfg, const char *what, const char *advice,
                    mr_error *err)
{
    char theirs[280], ours[280];
    return mr_error_set(err, MR_EFORMAT, "%s: expected %u classes%s%.120s (%s), found %s; %s", what,
                        cfg->class_count, cfg->classes_of ? " as in " : "",
                        cfg->classes_of ? cfg->classes_of : "", theirs_text(cfg, theirs, sizeof theirs),
                        ours_text(src, ours, sizeof ours), advice);
}

#define TAKE_OUT "take it out, or add it to the data trained on"
#define BY_ORDER "--match-classes order takes the first here for the first there, and so on"

/* ---- by name ---- */
static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for the numbers of classes");
}

static int add(mri_names *names, const char *name, uint32_t *at, bool *is_new, mr_error *err)
{
    const int rc = mri_names_add(names, name, strlen(name), at, is_new);
    if (rc == MR_ENOMEM) return no_memory(err);
    return rc ? mr_error_set(err, rc, "more class names than can be kept") : MR_OK;
}

/* number[k]: of the k-th different name among those to follow. */
static int list_given_classes(mri_names *names, uint32_t *number, const mr_source_config *cfg, bool numeric,
                              mr_error *err)
{
    for (uint32_t k = 0; k < cfg->class_count; k++) {
        uint32_t at;
        bool is_new;
        if (!cfg->class_names[k][0]) continue;
        const int rc = add(names, mri_class_name_key(cfg->class_names[k], numeric), &at, &is_new, err);
        if (rc) return rc;
        number[at] = is_new ? k : TWICE;
    }
    return MR_OK;
}

/* Where some names are the same, an order would turn them around: nobody can mean that. */
static bool share_a_name(const mr_source_info *info, const mr_source_config *cfg)
{
    for (uint32_t k = 0; info->class_names && cfg->class_names && k < info->class_count; k++)
        for (uint32_t i = 0; i < cfg->class_count; i++)
            if (info->class_names[k][0] && strcmp(info->class_names[k], cfg->class_names[i]) == 0)
                return true;
    return false;
}

static int not_among(const mr_source *src, const mr_source_config *cfg, uint32_t class_at, mr_error *err)
{
    const mr_source_info *info = &src->info;
    char some[280], found[280];
    return mr_error_set(
        err, MR_EFORMAT, "class %.100s is not among the %u expected%s%.120s (%s), found %s: %s",
        info->class_names[class_at], cfg->class_count, cfg->classes_of ? " as in " : "",
        cfg->classes_of ? cfg->classes_of : "", theirs_text(cfg, some, sizeof some),
        ours_text(src, found, sizeof found),
        info->class_count == cfg->class_count && !share_a_name(info, cfg) ? TAKE_OUT "; " BY_ORDER
                                                                          : TAKE_OUT);
}

static int number_format_classes(mri_classes *c, mri_names *names, const uint32_t *theirs,
                                 const mr_source *src, const mr_source_config *cfg, bool numeric,
                                 mr_error *err)
{
    const mr_source_info *info = &src->info;
    for (uint32_t k = 0; k < info->class_count; k++) {
        uint32_t at;
        bool is_new;
        c->number[k] = MRI_NO_CLASS;
        if (!info->class_names[k][0]) continue;
        const int rc = add(names, mri_class_name_key(info->class_names[k], numeric), &at, &is_new, err);
        if (rc) return rc;
        if (is_new) return not_among(src, cfg, k, err);
        if (theirs[at] == TWICE)
            return mr_error_set(err, MR_EFORMAT,
                                "class %.100s: two of the classes expected have this name, so that it "
                                "does not say which is meant",
                                info->class_names[k]);
        c->number[k] = theirs[at];
    }
    return MR_OK;
}

static int by_name(mri_classes *c, const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    const bool numeric = mri_class_names_are_numbers(cfg->class_names, cfg->class_count) &&
                         mri_class_names_are_numbers(info->class_names, info->class_count);
    mri_names names = {0};
    uint32_t *theirs = malloc(cfg->class_count * sizeof *theirs);
    int rc = theirs ? list_given_classes(&names, theirs, cfg, numeric, err) : no_memory(err);
    if (!rc) rc = number_format_classes(c, &names, theirs, src, cfg, numeric, err);
    mri_names_fini(&names);
    free(theirs);
    return rc;
}

/* ---- names here that are numbers, among numbers ---- */
static int names_to_numbers(mri_classes *c, const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    if (!mri_class_names_are_numbers(info->class_names, info->class_count))
        return mismatch(src, cfg, "names of classes on one side, numbers on the other",
                        "name the folders or classes by these numbers, or " BY_ORDER, err);
    for (uint32_t k = 0; k < info->class_count; k++) {
        int64_t number;
        c->number[k] = MRI_NO_CLASS;
        if (!mri_class_name_number(info->class_names[k], &number)) continue; /* empty */
        if (__builtin_sub_overflow(number, cfg->class_first, &number) || number < 0 ||
            number >= cfg->class_count)
            return mismatch(src, cfg, "a class is not among those expected",
                            info->class_count == cfg->class_count ? BY_ORDER : TAKE_OUT, err);
        c->number[k] = (uint32_t)number;
    }
    return MR_OK;
}

/* ---- numbers here, among names that are numbers ---- */
typedef struct named_number {
    int64_t number;
    uint32_t class_at;
} named_number;

static int by_number(const void *a, const void *b)
{
    const named_number *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Some numbers below the largest have no sample; one that has must be among those expected. Where labels are
 * not known without reading, the sample is refused when it is read. */
static int check_used(const mri_classes *c, const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    int64_t label;
    if (!src->ops->label) return MR_OK;
    for (uint64_t k = 0; k < src->info.count; k++) {
        const int rc = src->ops->label(src, mri_choice_number(&src->choice, k), &label);
        if (rc == MR_EUNSUPPORTED || rc == MR_EFORMAT) continue;
        if (rc) return mr_error_set(err, rc, "cannot read the labels");
        if (mri_classes_renumber(c, &label, NULL) == MR_OK) continue;
        return mismatch(src, cfg, "a class is not among those expected", TAKE_OUT, err);
    }
    return MR_OK;
}

static int numbers_to_names(mri_classes *c, const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    if (!mri_class_names_are_numbers(cfg->class_names, cfg->class_count))
        return mismatch(src, cfg, "numbers of classes here, names on the other side",
                        "give these data the names, or " BY_ORDER, err);
    named_number *named = malloc(cfg->class_count * sizeof *named);
    uint32_t count = 0;
    int rc = named ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < cfg->class_count; k++) {
        named[count].class_at = k;
        count += mri_class_name_number(cfg->class_names[k], &named[count].number);
    }
    if (!rc) qsort(named, count, sizeof *named, by_number);
    for (uint32_t k = 1; !rc && k < count; k++)
        if (named[k].number == named[k - 1].number)
            rc = mismatch(src, cfg, "two of the names expected are one number", "rename one of them", err);
    for (uint32_t k = 0; k < info->class_count; k++) c->number[k] = MRI_NO_CLASS;
    for (uint32_t k = 0; !rc && k < count; k++) {
        int64_t at;
        if (__builtin_sub_overflow(named[k].number, info->label_offset, &at)) continue;
        if (at >= 0 && at < (int64_t)info->class_count) c->number[at] = named[k].class_at;
    }
    free(named);
    return rc ? rc : check_used(c, src, cfg, err);
}

/* ---- numbers on both sides ---- */
static int among_numbers(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    int64_t first, last, from = cfg->class_first, shift, end;
    mr_source_info *info = &src->info;
    range_of(src, &first, &last);
    const bool among = first >= from && !__builtin_add_overflow(from, cfg->class_count, &end) && last < end,
               as_many = last - first == (int64_t)cfg->class_count - 1;
    if (!among && !(as_many && cfg->match == MR_MATCH_ORDER))
        return mismatch(src, cfg, "a class is not among those expected", as_many ? BY_ORDER : TAKE_OUT, err);
    if (!among) from = first;
    if (__builtin_sub_overflow(from, info->label_offset, &shift))
        return mr_error_set(err, MR_EFORMAT, "classes from %lld are out of range", (long long)from);
    src->classes.subtract += shift;
    src->classes.limit = cfg->class_count;
    if (shift) info->fingerprint = mri_mix64(info->fingerprint ^ (uint64_t)shift); /* other labels */
    info->label_offset = from;
    info->class_count = cfg->class_count;
    return MR_OK;
}

/* ---- in order, because somebody says so ---- */
/* The next class from k on that has samples, as far as names tell. */
static uint32_t next_class(const char *const *names, uint32_t count, uint32_t k)
{
    while (names && k < count && !names[k][0]) k++;
    return k;
}

static int in_order(mri_classes *c, const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    int64_t first, last;
    range_of(src, &first, &last);
    uint32_t here = info->class_names ? 0 : (uint32_t)(first - info->label_offset), there = 0;
    for (uint32_t k = 0; k < info->class_count; k++) c->number[k] = MRI_NO_CLASS;
    for (;; here++, there++) {
        here = next_class(info->class_names, info->class_count, here);
        there = next_class(cfg->class_names, cfg->class_count, there);
        if (here >= info->class_count || there >= cfg->class_count) break;
        c->number[here] = there;
    }
    return here >= info->class_count && there >= cfg->class_count
               ? MR_OK
               : mismatch(src, cfg, "--match-classes order", "it needs as many classes on both sides", err);
}

/* ---- together ---- */
static bool same_names(const mr_source_info *info, const mr_source_config *cfg)
{
    bool same = info->class_names && cfg->class_names && info->class_count == cfg->class_count;
    for (uint32_t k = 0; same && k < cfg->class_count; k++)
        same = info->class_names[k][0] && strcmp(info->class_names[k], cfg->class_names[k]) == 0;
    return same;
}

static int fill(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_classes *c = &src->classes;
    const mr_source_info *info = &src->info;
    c->format_class_count = info->class_count;
    c->number = malloc((info->class_count ? info->class_count : 1) * sizeof *c->number);
    if (cfg->class_names) c->names = mri_class_names_copy(cfg->class_names, cfg->class_count);
    if (!c->number || (cfg->class_names && !c->names)) return no_memory(err);
    mr_error why = MR_ERROR_INIT;
    const int rc = !info->class_names ? numbers_to_names(c, src, cfg, &why)
                   : cfg->class_names ? by_name(c, src, cfg, &why)
                                      : names_to_numbers(c, src, cfg, &why);
    if (rc == MR_EFORMAT && cfg->match == MR_MATCH_ORDER && !share_a_name(info, cfg))
        return in_order(c, src, cfg, err);
    if (rc && err) *err = why;
    return rc;
}

/* Make the source follow the given classes from here on. */
static int take_theirs(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mr_source_info *info = &src->info;
    const mri_classes *c = &src->classes;
    for (uint32_t k = 0; k < c->format_class_count; k++)
        info->fingerprint = mri_mix64(info->fingerprint ^ c->number[k]); /* other labels */
    info->memory_bytes += c->format_class_count * sizeof *c->number;
    for (uint32_t k = 0; c->names && k < cfg->class_count; k++)
        info->memory_bytes += sizeof *c->names + strlen(c->names[k]) + 1;
    info->class_names = c->names;
    info->class_count = cfg->class_count;
    if (!c->names) info->label_offset = cfg->class_first;
    return mri_source_budget(cfg, info->memory_bytes, src->path, err);
}

int mri_classes_follow(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    if (cfg->class_count == 0 || info->class_count == 0 || info->label_field < 0 || same_names(info, cfg))
        return MR_OK;
    const bool numbers = !info->class_names && !cfg->class_names;
    const int rc = numbers ? among_numbers(src, cfg, err) : fill(src, cfg, err);
    if (rc) return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE);
    return numbers ? MR_OK : take_theirs(src, cfg, err);
}

/* ---- as a program says ---- */
static int check_names(const mr_source *src, const uint32_t *to, const char *const *names, uint32_t count,
                       mr_error *err)
{
    const mr_source_info *info = &src->info;
    if (info->label_field < 0 || info->class_count == 0)
        return mr_error_set(err, MR_EINVAL, "%s: the data have no classes to name", src->path);
    if (count == 0 || count > MRI_MAX_CLASSES)
        return mr_error_set(err, MR_EINVAL, "expected 1 to %lld classes, found %u",
                            (long long)MRI_MAX_CLASSES, count);
    for (uint32_t k = 0; k < info->class_count; k++)
        if (to[k] >= count && to[k] != MRI_NO_CLASS)
            return mr_error_set(err, MR_EINVAL, "class %u: expected a number below %u, found %u", k, count,
                                to[k]);
    for (uint32_t k = 0; k < count; k++)
        if (!names[k])
            return mr_error_set(err, MR_EINVAL, "mr_source_name_classes: name %u must not be NULL", k);
    return MR_OK;
}

int mr_source_name_classes(mr_source *src, const uint32_t *to, const char *const *names, uint32_t count,
                           mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, to);
    MRI_GIVEN(err, names);
    int rc = check_names(src, to, names, count, err);
    if (rc) return rc;
    mri_classes *c = &src->classes;
    mr_source_info *info = &src->info;
    bool same = info->class_names && info->class_count == count;
    for (uint32_t k = 0; same && k < count; k++)
        same = to[k] == k && strcmp(info->class_names[k], names[k]) == 0;
    if (same) return MR_OK;
    const uint32_t before = c->number ? c->format_class_count : info->class_count;
    uint32_t *number = malloc(before * sizeof *number);
    const char **copy = mri_class_names_copy(names, count);
    if (!number || !copy) {
        free(number);
        free(copy);
        return no_memory(err);
    }
    for (uint32_t k = 0; k < before; k++) {
        const uint32_t now = c->number ? c->number[k] : k;
        number[k] = now == MRI_NO_CLASS ? MRI_NO_CLASS : to[now];
        info->fingerprint = mri_mix64(info->fingerprint ^ number[k]); /* other labels */
    }
    for (uint32_t k = 0; k < count; k++) /* other names */
        info->fingerprint = XXH3_64bits_withSeed(names[k], strlen(names[k]) + 1, info->fingerprint);
    free(c->number);
    free(c->names);
    c->number = number;
    c->names = copy;
    c->format_class_count = before;
    c->limit = 0;
    info->class_names = copy;
    info->class_count = count;
    info->label_offset = 0;
    src->labels.min = 0; /* of names, whatever the numbers were */
    src->labels.max = (int64_t)count - 1;
    src->labels.start = MR_LABEL_AUTO;
    src->labels.unsure = false;
    return MR_OK;
}

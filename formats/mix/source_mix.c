/* formats/mix/source_mix.c: several data sets as one, named with their shares by a text (mix_file.h).
 *
 *   sample ──► set by search over first ──► sample in that set ──► what its format says
 *
 * Samples are numbered set after set. Each set is a source of its own, opened with the caller's settings,
 * and answers for its samples; here numbers of samples, files and classes are moved to the numbers of the
 * whole, and of its fields image and label are handed on. Classes that have names are one list, in order of
 * first appearance. The shares decide nothing here: whoever orders samples looks at info.mix.
 *
 * A mix in a mix is refused: its numbers and weights would no longer follow from the text. */
#include <stdio.h>

#include "base/util.h"
#include "formats/mix/mix_file.h"
#include "formats/source/census.h"
#include "formats/source/classes.h"
#include "formats/source/names.h"
#include "formats/source/sample_name.h"
#include "formats/source/source.h"
#include "formats/source/value.h"

typedef struct part { /* one of the sets */
    mr_source *src;
    uint64_t first;      /* sample */
    uint32_t first_file; /* of the files that samples share */
    int image, label;    /* its fields; -1: none */
    size_t line;         /* that names it */
    mri_classes classes; /* number: of each of its classes in the whole; NULL: the same */
} part;

typedef struct mix { /* fixed after open */
    uint32_t count;
    mri_names names; /* of all classes */
    const char **class_names;
    part part[];
} mix;

static bool mix_probe(const mri_probe *p) { return !p->is_folder && mri_mix_magic(p->head, p->head_bytes); }

static void mix_close(mr_source *src)
{
    mix *m = src->state;
    if (!m) return;
    for (uint32_t k = 0; k < m->count; k++) {
        mri_classes_fini(&m->part[k].classes);
        mr_source_close(m->part[k].src);
    }
    mri_names_fini(&m->names);
    free(m->class_names);
    free(m);
}

static const mr_source_info *info_of(const part *p) { return mr_source_info_of(p->src); }

/* ---- the sets ---- */
/* The file and line that name the set. */
static int name_line(const mr_source *src, const mri_mix_line *line, const char *path, int rc, mr_error *err)
{
    if (!err || rc == MR_ENOMEM || rc == MR_ECANCELED) return rc;
    mri_error_place(err, rc, err->file[0] ? NULL : path, MR_NOWHERE, MR_NOWHERE);
    const size_t at = strlen(err->text);
    snprintf(err->text + at, sizeof err->text - at, "; line %zu of %.200s names it", line->line, src->path);
    return rc;
}

static int check_set(const part *p, mr_error *err)
{
    if (info_of(p)->count == 0) return mr_error_set(err, MR_EFORMAT, "the data set holds no samples");
    if (p->image < 0)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "expected pictures, as in all data sets of a mix, found none");
    if (mri_source_is_made(p->src)) /* the samples of a mix lie in files */
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "a zip archive of deflated members cannot be part of a mix: unpack it, or "
                            "convert it (millrace convert)");
    return MR_OK;
}

static int open_set(mr_source *src, const mri_mix_line *line, const mr_source_config *cfg, mr_error *err)
{
    mix *m = src->state;
    part *p = &m->part[m->count];
    mr_source_config mine = *cfg; /* numbers of classes, and which samples are taken, go with the whole */
    mine.format = mine.target_key = NULL;
    mine.class_names = NULL;
    mine.class_count = 0;
    mine.label_offset = MR_LABEL_AUTO; /* the offset is subtracted from the whole */
    mine.take_from = 0;
    mine.take_to = 1;
    mine.memory_bytes -= mri_min_u64(mine.memory_bytes, src->info.memory_bytes);
    char *path = mri_mix_resolve(src->path, line->path);
    if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for the path of a data set");
    int rc = src->open_member(&p->src, path, &mine, err);
    if (!rc) {
        m->count++;
        p->line = line->line;
        p->image = info_of(p)->image_field;
        p->label = info_of(p)->label_field;
        src->info.memory_bytes = mri_plus(src->info.memory_bytes, info_of(p)->memory_bytes);
        src->withdrawn_count += p->src->withdrawn_count;
        rc = check_set(p, err);
    }
    if (rc) name_line(src, line, path, rc, err);
    free(path);
    return rc;
}

/* ---- do they go together? ---- */
static int differ(const mr_source *src, const part *a, const part *b, const char *what, mr_error *err)
{
    mr_error_set(err, MR_EFORMAT,
                 "expected %s in all data sets of a mix or in none: %.200s (line %zu) has them, "
                 "%.200s (line %zu) lacks them",
                 what, info_of(a)->path, a->line, info_of(b)->path, b->line);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

typedef bool has_fn(const part *p);
static bool has_labels(const part *p) { return p->label >= 0; }
static bool has_names(const part *p) { return info_of(p)->class_names && info_of(p)->class_count > 0; }
static bool has_classes(const part *p) { return info_of(p)->class_count > 0; }

/* All of them, or none. */
static int check_all(const mr_source *src, has_fn *has, const char *what, mr_error *err)
{
    const mix *m = src->state;
    for (uint32_t k = 1; k < m->count; k++) {
        const bool here = has(&m->part[k]);
        if (here == has(&m->part[0])) continue;
        return differ(src, &m->part[here ? k : 0], &m->part[here ? 0 : k], what, err);
    }
    return MR_OK;
}

/* ---- classes ---- */
static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for classes of a mix"); }

static int number_classes_of(part *p, mr_error *err)
{
    mri_classes *c = &p->classes;
    c->format_class_count = info_of(p)->class_count;
    c->number = malloc(c->format_class_count * sizeof *c->number);
    for (uint32_t k = 0; c->number && k < c->format_class_count; k++) c->number[k] = MRI_NO_CLASS;
    return c->number ? MR_OK : no_memory(err);
}

/* Names that are numbers in all sets are compared as such. */
static int add_names(mix *m, part *p, bool numbers, mr_error *err)
{
    const mr_source_info *info = info_of(p);
    int rc = number_classes_of(p, err);
    if (rc) return rc;
    const char **more = realloc(m->class_names, (m->names.count + (size_t)info->class_count) * sizeof *more);
    if (!more) return no_memory(err);
    m->class_names = more;
    for (uint32_t k = 0; k < info->class_count; k++) {
        bool is_new;
        const char *name = info->class_names[k], *key = mri_class_name_key(name, numbers);
        if (!name[0]) continue; /* a number without samples */
        uint32_t *number = &p->classes.number[k];
        rc = mri_names_add(&m->names, key, strlen(key), number, &is_new);
        if (rc == MR_ENOMEM) return no_memory(err);
        if (rc || m->names.count > MRI_MAX_CLASSES)
            return mr_error_set(err, MR_ELIMIT, "more classes than can be numbered");
        if (is_new) m->class_names[*number] = name;
    }
    return MR_OK;
}

static bool names_are_numbers(const part *p)
{
    return mri_class_names_are_numbers(info_of(p)->class_names, info_of(p)->class_count);
}

static int merge_names(mr_source *src, mr_error *err)
{
    mix *m = src->state;
    bool numbers = true;
    int rc = MR_OK;
    for (uint32_t k = 0; k < m->count; k++) numbers = numbers && names_are_numbers(&m->part[k]);
    for (uint32_t k = 0; !rc && k < m->count; k++) {
        rc = add_names(m, &m->part[k], numbers, err);
        src->info.memory_bytes += info_of(&m->part[k])->class_count * sizeof(uint32_t);
    }
    if (rc) return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE);
    mri_names_seal(&m->names);
    src->info.class_names = m->class_names;
    src->info.class_count = m->names.count;
    src->info.memory_bytes += mri_names_memory(&m->names) + m->names.count * sizeof *m->class_names;
    return MR_OK;
}

/* Of a set whose classes have names: each is a number. */
static int names_to_numbers(part *p, mr_error *err)
{
    const mr_source_info *info = info_of(p);
    const int rc = number_classes_of(p, err);
    for (uint32_t k = 0; !rc && k < info->class_count; k++) {
        int64_t number;
        if (!mri_class_name_number(info->class_names[k], &number)) continue; /* empty */
        if (number >= MRI_MAX_CLASSES)
            return mr_error_set(err, MR_EFORMAT, "class %.100s: expected a number below %lld",
                                info->class_names[k], (long long)MRI_MAX_CLASSES);
        p->classes.number[k] = (uint32_t)number;
    }
    return rc;
}

/* Names in some sets, numbers in others: the names are numbers, or nobody knows which class is which. */
static int check_names(const mr_source *src, const part *named, const part *numbered, mr_error *err)
{
    char some[280];
    if (names_are_numbers(named)) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "expected names of classes in all data sets of a mix or in none: %.150s (line %zu) has them (%s), "
        "%.150s (line %zu) has the numbers %lld to %lld: name classes by these numbers, or give both names",
        info_of(named)->path, named->line,
        mri_class_names_text(info_of(named)->class_names, info_of(named)->class_count, some, sizeof some),
        info_of(numbered)->path, numbered->line, (long long)mr_source_labels_of(numbered->src)->min,
        (long long)mr_source_labels_of(numbered->src)->max);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

static void widen(mr_source_labels *all, int64_t min, int64_t max)
{
    const bool first = all->min > all->max;
    if (first || min < all->min) all->min = min;
    if (first || max > all->max) all->max = max;
}

/* A number means the same in all sets. */
static int merge_numbers(mr_source *src, const part *numbered, mr_error *err)
{
    mix *m = src->state;
    mr_source_info *info = &src->info;
    for (uint32_t k = 0; k < m->count; k++) {
        part *p = &m->part[k];
        const mr_source_labels *l = mr_source_labels_of(p->src);
        if (has_names(p)) {
            int rc = check_names(src, p, numbered, err);
            if (!rc) rc = names_to_numbers(p, err);
            if (rc)
                return mri_error_place(err, rc, err && err->file[0] ? NULL : src->path, MR_NOWHERE,
                                       MR_NOWHERE);
            for (uint32_t c = 0; c < p->classes.format_class_count; c++)
                if (p->classes.number[c] != MRI_NO_CLASS)
                    widen(&src->labels, p->classes.number[c], p->classes.number[c]);
        } else if (l->min <= l->max) {
            widen(&src->labels, l->min, l->max);
        }
        if (l->start != MR_LABEL_AUTO) src->labels.start = l->start;
        src->labels.unsure |= l->unsure;
        const uint32_t count = has_names(p) ? (uint32_t)(src->labels.max + 1) : info_of(p)->class_count;
        if (count > info->class_count) info->class_count = count;
    }
    return MR_OK;
}

static int settle_classes(mr_source *src, mr_error *err)
{
    const mix *m = src->state;
    const part *numbered = NULL;
    int rc = check_all(src, has_labels, "labels", err);
    if (rc || !has_labels(&m->part[0])) return rc;
    rc = check_all(src, has_classes, "classes", err);
    for (uint32_t k = 0; k < m->count; k++)
        if (!numbered && !has_names(&m->part[k])) numbered = &m->part[k];
    return rc ? rc : numbered ? merge_numbers(src, numbered, err) : merge_names(src, err);
}

/* ---- fields ---- */
static bool same_shape(const mr_field *a, const mr_field *b)
{
    bool same = a->ndim == b->ndim;
    for (uint32_t k = 0; same && k < a->ndim; k++) same = a->dim[k] == b->dim[k];
    return same;
}

static void set_fields(mr_source *src)
{
    const mix *m = src->state;
    mr_source_info *info = &src->info;
    const mr_source_info *one = info_of(&m->part[0]);
    mr_field image = one->fields[m->part[0].image];
    bool same_size = true;
    snprintf(image.name, sizeof image.name, "image");
    for (uint32_t k = 1; k < m->count; k++) {
        const mr_source_info *other = info_of(&m->part[k]);
        const mr_field *f = &other->fields[m->part[k].image];
        if (f->type != image.type) image.type = MR_TYPE_IMAGE;
        if (!same_shape(f, &image)) image.ndim = 0;
        same_size &=
            other->height == one->height && other->width == one->width && other->channels == one->channels;
    }
    if (image.ndim == 0) memset(image.dim, 0, sizeof image.dim);
    mri_source_set_image_label(src, image);
    if (same_size) {
        info->height = one->height;
        info->width = one->width;
        info->channels = one->channels;
    }
    if (has_labels(&m->part[0])) return;
    info->field_count = 1;
    info->label_field = -1;
}

/* Entry points and names of samples go with the picture. */
static void tell_left_out(mr_source *src, const part *p)
{
    const mr_source_info *info = info_of(p);
    char names[512] = "";
    for (uint32_t k = 0; k < info->field_count; k++) {
        const char *name = info->fields[k].name;
        if ((int)k == p->image || (int)k == p->label || strcmp(name, MRI_ENTRIES_NAME) == 0 ||
            strcmp(name, MRI_NAME_FIELD) == 0)
            continue;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", name);
    }
    if (names[0])
        mri_source_tell(src, "a mix has pictures and labels: left out are the fields %s (%s)", names,
                        info->path);
}

/* The lines of a set, with its name after each line: the beginning of a line gives its subject. */
static void tell_of(mr_source *src, const part *p)
{
    const char *line = info_of(p)->told;
    while (line && *line) {
        const size_t bytes = strcspn(line, "\n");
        mri_source_tell(src, "%.*s (%s)", (int)mri_min_u64(bytes, 700), line, info_of(p)->path);
        line += bytes + (line[bytes] == '\n');
    }
    tell_left_out(src, p);
}

/* ---- the whole ---- */
static int no_room(const mr_source *src, const char *what, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ELIMIT, "more %s than can be numbered", what), src->path,
                           MR_NOWHERE, MR_NOWHERE);
}

static int add_up(mr_source *src, part *p, mr_error *err)
{
    mr_source_info *info = &src->info;
    const mr_source_info *one = info_of(p);
    p->first = info->count;
    p->first_file = info->file_count;
    if (__builtin_add_overflow(info->count, one->count, &info->count)) return no_room(src, "samples", err);
    if (one->file_count > UINT32_MAX - MRI_MIX_MOST - info->file_count) return no_room(src, "files", err);
    info->file_count += one->file_count;
    src->some_files_of_samples |= one->file_count == 0;
    info->max_extent_bytes = mri_max_u64(info->max_extent_bytes, one->max_extent_bytes);
    info->total_bytes = mri_plus(info->total_bytes, one->total_bytes);
    info->skipped_files += one->skipped_files;
    info->only_test |= one->only_test;
    info->parts.there |= one->parts.there;
    tell_of(src, p);
    return MR_OK;
}

/* The part that is taken of all sets that have parts; 0 where they do not agree. */
static uint32_t part_taken(const mix *m)
{
    uint32_t taken = 0;
    bool known = false;
    for (uint32_t k = 0; k < m->count; k++) {
        const mr_source_parts *one = &info_of(&m->part[k])->parts;
        if (one->there == 0) continue;
        if (known && one->taken != taken) return 0;
        taken = one->taken;
        known = true;
    }
    return taken;
}

/* A property that is equal in all sets is a property of the whole. */
static void set_common(mr_source *src)
{
    const mix *m = src->state;
    mr_source_info *info = &src->info;
    info->has_test = true;
    info->parts.taken = part_taken(m);
    for (uint32_t k = 0; k < m->count; k++) {
        const mr_source_info *one = info_of(&m->part[k]);
        info->has_test &= one->has_test;
    }
}

static int take_beside(mr_source *src, const mr_source *one, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < one->beside.count; k++)
        rc = mri_source_add_beside(src, one->beside.path[k], err);
    return rc;
}

static int set_shares(mr_source *src, const mri_mix_file *f, mr_error *err)
{
    const mix *m = src->state;
    src->mix = calloc(m->count, sizeof *src->mix);
    if (!src->mix) return mr_error_set(err, MR_ENOMEM, "no memory for %u data sets", m->count);
    for (uint32_t k = 0; k < m->count; k++)
        src->mix[k] = (mr_mix_set){info_of(&m->part[k])->path, m->part[k].first, info_of(&m->part[k])->count,
                                   f->set[k].share};
    src->info.mix = src->mix;
    src->info.mix_count = m->count;
    return MR_OK;
}

/* Shares to 2^-32: the same ratios written with other numbers may differ in their last bit. */
static uint64_t fingerprint(const mr_source *src)
{
    const mix *m = src->state;
    uint64_t print = mri_mix64(UINT64_C(0x6D6978) + m->count);
    for (uint32_t k = 0; k < m->count; k++) {
        const mri_classes *c = &m->part[k].classes;
        print = mri_mix64(print ^ info_of(&m->part[k])->fingerprint);
        print = mri_mix64(print ^ info_of(&m->part[k])->count);
        print = mri_mix64(print ^ (uint64_t)(src->mix[k].share * 4294967296.0 + 0.5));
        for (uint32_t n = 0; n < c->format_class_count; n++) print = mri_mix64(print ^ c->number[n]);
    }
    return print;
}

static int describe(mr_source *src, const mri_mix_file *f, mr_error *err)
{
    mix *m = src->state;
    int rc = settle_classes(src, err);
    for (uint32_t k = 0; !rc && k < m->count; k++) rc = add_up(src, &m->part[k], err);
    for (uint32_t k = 0; !rc && k < m->count; k++) rc = take_beside(src, m->part[k].src, err);
    if (!rc) rc = set_shares(src, f, err);
    if (rc) return rc;
    set_fields(src);
    set_common(src);
    src->info.format = "mix";
    src->info.fingerprint = fingerprint(src);
    return MR_OK;
}

/* A server would choose which files are read here. */
static int check_place(const mr_source *src, mr_error *err)
{
    const char *why = !src->open_member ? "a mix is no part of another one: name its data sets instead"
                      : src->view ? "a mix is read from a file here, which may name data sets on servers"
                                  : NULL;
    return why ? mri_error_place(err, mr_error_set(err, MR_EUNSUPPORTED, "%s", why), src->path, MR_NOWHERE,
                                 MR_NOWHERE)
               : MR_OK;
}

static int mix_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_mix_file f;
    int rc = check_place(src, err);
    if (!rc) rc = mri_mix_file_read(&f, src->path, err);
    if (rc) return rc;
    src->info.memory_bytes = sizeof(mix) + f.count * sizeof(part);
    if (!(src->state = calloc(1, sizeof(mix) + f.count * sizeof(part))))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for %u data sets", f.count);
    for (uint32_t k = 0; !rc && k < f.count; k++) rc = open_set(src, &f.set[k], cfg, err);
    if (!rc) rc = describe(src, &f, err);
    if (!rc && cfg->target_key)
        mri_source_tell(src, "a mix has pictures and labels: the further field %s is passed over",
                        cfg->target_key);
    mri_mix_file_fini(&f);
    return rc ? rc : mri_source_budget(cfg, src->info.memory_bytes, src->path, err);
}

/* ---- samples ---- */
/* The last set that begins at or before it: none is empty. */
static const part *part_of(const mr_source *src, uint64_t sample)
{
    const mix *m = src->state;
    uint32_t low = 0, high = m->count;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (m->part[mid].first <= sample) low = mid;
        else high = mid;
    }
    return &m->part[low];
}

/* Those without shared files begin where the next one does: the last that begins there has some. */
static const part *part_of_file(const mr_source *src, uint32_t *file)
{
    const mix *m = src->state;
    uint32_t low = 0, high = m->count;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (m->part[mid].first_file <= *file) low = mid;
        else high = mid;
    }
    while (info_of(&m->part[low])->file_count == 0) low--;
    *file -= m->part[low].first_file;
    return &m->part[low];
}

/* A set's own numbering must not reach the caller. */
static int in_mix(int rc, uint64_t sample, mr_error *err)
{
    return rc ? mri_error_place(err, rc, NULL, MR_NOWHERE, sample) : MR_OK;
}

static int mix_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const part *p = part_of(src, sample);
    const int rc = mr_source_extent(p->src, sample - p->first, out, err);
    if (!rc && out->file != MR_FILE_OF_SAMPLE) out->file += p->first_file;
    return in_mix(rc, sample, err);
}

static int mix_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const part *p = part_of(src, sample);
    const int rc = p->label >= 0 ? mr_source_label(p->src, sample - p->first, out) : MR_EUNSUPPORTED;
    return rc || !p->classes.number ? rc : mri_classes_renumber(&p->classes, out, NULL);
}

static bool mix_labels_near(const mr_source *src)
{
    const mix *m = src->state;
    bool near = true;
    for (uint32_t k = 0; near && k < m->count; k++) near = mri_source_labels_near(m->part[k].src);
    return near;
}

static int mix_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    const part *p = part_of_file(src, &file);
    return mr_source_file_at(p->src, file, out);
}

static int mix_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    const part *p = part_of_file(src, &file);
    return mri_source_file_acquire(p->src, file, must, fd, err);
}

static void mix_file_release(const mr_source *src, uint32_t file)
{
    const part *p = part_of_file(src, &file);
    mr_source_file_release(p->src, file);
}

static mri_remote_file *mix_remote_at(const mr_source *src, uint32_t file)
{
    const part *p = part_of_file(src, &file);
    return mri_source_remote_at(p->src, file);
}

static void mix_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const part *p = part_of(src, sample);
    mr_source_sample_path(p->src, sample - p->first, buf, buf_bytes);
}

static int mix_sample_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                           size_t buf_bytes, mr_error *err)
{
    const part *p = part_of(src, sample);
    return in_mix(mr_source_sample_name_get(p->src, sample - p->first, data, bytes, buf, buf_bytes, err),
                  sample, err);
}

/* Of all fields of the set the picture and the label. */
static int hand_on(const part *p, uint64_t sample, mr_sample *out, mr_error *err)
{
    const mr_value image = out->value[p->image];
    if (p->label >= 0) out->value[1] = out->value[p->label];
    out->value[0] = image;
    out->value_count = p->label >= 0 ? 2 : 1;
    const int rc = p->classes.number ? mri_classes_renumber(&p->classes, &out->value[1].i, err) : MR_OK;
    char path[4096];
    return rc ? mri_error_place(err, rc, mr_source_sample_path(p->src, sample - p->first, path, sizeof path),
                                MR_NOWHERE, sample)
              : MR_OK;
}

static int mix_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const part *p = part_of(src, sample);
    const int rc = mr_source_parse(p->src, sample - p->first, data, bytes, out, err);
    return rc ? in_mix(rc, sample, err) : hand_on(p, sample, out, err);
}

static int mix_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err)
{
    const part *p = part_of(src, sample);
    const int rc = mri_source_parse_trusted(p->src, sample - p->first, data, bytes, out, err);
    return rc ? in_mix(rc, sample, err) : hand_on(p, sample, out, err);
}

static int mix_check(const mr_source *src, mr_error *err)
{
    const mix *m = src->state;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < m->count; k++) rc = mr_source_check(m->part[k].src, err);
    return rc;
}

const mri_source_ops mri_source_mix = {
    .name = "mix",
    .help = "a text that names data sets and their shares, as one data set",
    .class_rules = true, /* each set says whether it has a use for them */
    .probe = mix_probe,
    .open = mix_open,
    .close = mix_close,
    .extent = mix_extent,
    .label = mix_label,
    .labels_near = mix_labels_near,
    .file_at = mix_file_at,
    .file_acquire = mix_file_acquire,
    .file_release = mix_file_release,
    .check = mix_check,
    .sample_path = mix_sample_path,
    .parse = mix_parse,
    .remote_at = mix_remote_at,
    .parse_trusted = mix_parse_trusted,
    .sample_name = mix_sample_name,
};

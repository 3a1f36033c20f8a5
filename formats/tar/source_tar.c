/* formats/tar/source_tar.c: WebDataset: samples in tar archives, plain or packed, one file or many.
 *
 *   NAME.tar   | 0017.jpg | 0017.cls | 0017.json | 0018.jpg | 0018.cls | ...
 *                └──────── one extent ─────────┘   └─ ...
 *
 * The extent of a sample is all from its first member's header to its last member's data, so that one read
 * brings it; parse() walks the headers again. For the members of a sample and their meaning see tar_sample.h,
 * tar_schema.c. The schema is taken from the first sample (of the first 64) that has both picture and class,
 * and from the first sample with each further member (tar_more.h), which the index names. An archive that
 * names its classes (tar_classes.h) also gives their number, and its labels count from 0.
 *
 * Framing that is wrong ends the opening. A sample whose members are wrong (no picture, no class, two members
 * of one name, one that is sparse) is a bad sample; where it has its place in the order. Harmless
 * irregularities are counted and reported. */
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/fileset.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"
#include "formats/tar/source_tar.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_keys.h"
#include "formats/tar/tar_sums.h"

enum { NOTE = '0', NOTE_CUT = 1, NOTE_LAST_DOT = 2 }; /* the first byte of the note: NOTE and these */
enum { LOOKED_AT = 64, VERSION = 6 };

/* ---- bytes from where they are ---- */
static int scan_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_scan_get(context, offset, bytes, out, err);
}

static int window_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

/* ---- the schema ---- */
/* A sample that is itself wrong (a member twice) represents the others only if no better one is found. */
static bool is_sound(const mri_tar_group *g)
{
    bool sound = !g->more;
    for (uint32_t k = 0; k < g->count; k++)
        sound = sound && !g->part[k].sparse &&
                (!g->part[k].ext[0] || mri_tar_group_find(g, g->part[k].ext) == &g->part[k]);
    return sound;
}

enum { BEST_SCORE = 7 };
static int score(const mri_tar_schema *s, const mri_tar_group *g)
{
    return 4 * (s->image_field >= 0) + 2 * (s->label_field >= 0) + is_sound(g);
}

/* CIFAR as it is downloaded is an archive, too, but of five files of records. */
static int check_cifar(const mri_tar_group *g, const char *path, mr_error *err)
{
    const char *slash = strrchr(g->key, '/'), *name = slash ? slash + 1 : g->key;
    const mri_tar_part *part = mri_tar_group_find(g, "bin");
    const bool ten = strncmp(name, "data_batch_", 11) == 0 || strcmp(name, "test_batch") == 0;
    const bool hundred = strcmp(name, "train") == 0 || strcmp(name, "test") == 0;
    if (!part || part->bytes == 0 || part->bytes % (ten ? 3073 : 3074) || !(ten || hundred)) return MR_OK;
    mr_error_set(
        err, MR_EUNSUPPORTED,
        "this is the archive of CIFAR-%s, which is read unpacked: tar xf it and open the folder %.*s "
        "that it makes",
        ten ? "10" : "100", slash ? (int)(slash - g->key) : 1, slash ? g->key : ".");
    return mri_error_place(err, MR_EUNSUPPORTED, path, 0, MR_NOWHERE);
}

static int check_keys(const mri_tar_schema *s, const char *path, mr_error *err)
{
    const bool image = s->image_key[0] && s->image_field < 0;
    if (!image && !(s->label_key[0] && s->label_field < 0)) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "none of the first %d samples has %s \"%s\": name another, or leave --%s-key out for the usual names",
        LOOKED_AT, image ? "a picture in member" : "a member or a field in .json named",
        image ? s->image_key : s->label_key, image ? "image" : "label");
    return mri_error_place(err, MR_EFORMAT, path, 0, MR_NOWHERE);
}

/* A sample as the dot that is tried makes it. t->folds: to be opened once more by the other. */
static int check_dots(mri_tar_source *t, const mri_tar_group *g, mr_error *err)
{
    if (t->keys_settle) return MR_OK;
    if (t->dot == MRI_TAR_LAST_DOT) return mri_tar_dots_check(g, err);
    const mri_tar_dots dots = mri_tar_dots_of(g);
    if (dots == MRI_TAR_DOTS_UNCLEAR) return mri_tar_dots_unclear(g, err);
    t->folds = dots == MRI_TAR_DOTS_LAST;
    return t->folds ? mr_error_set(err, MR_EFORMAT, "names with dots in them") : MR_OK;
}

/* From the first samples of a file; a file without any leaves it to the next one. scan() reports errors of
 * the framing. */
static int choose(mri_tar_source *t, mri_tar_get *get, void *context, uint64_t file_bytes, const char *path,
                  mr_error *err)
{
    mri_tar_samples it;
    mri_tar_group g;
    mri_tar_schema s = t->schema;
    int best = -1, rc = MR_OK;
    mri_tar_samples_init(&it, get, context, 0, file_bytes, NULL);
    it.dot = t->dot;
    for (int k = 0; k < LOOKED_AT && best < BEST_SCORE && !rc; k++) {
        const int end = mri_tar_samples_next(&it, &g, err);
        if (end == MR_EIO || end == MR_ENOMEM) return end;
        if (end) break;
        rc = check_cifar(&g, path, err);
        if (!rc) rc = check_dots(t, &g, err);
        if (!rc) rc = mri_tar_schema_take(&s, &g, get, context, err);
        if (rc || score(&s, &g) <= best) continue;
        best = score(&s, &g);
        t->schema = s;
    }
    if (rc || best < 0) return rc;
    t->has_schema = true;
    return check_keys(&t->schema, path, err);
}

/* The same from an open file, when nothing was scanned. */
static int choose_again(mri_tar_source *t, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && !t->has_schema && k < t->f.file_count; k++) {
        const mri_framed_file *file = &t->f.file[k];
        mri_file_scan w;
        int fd;
        rc = mri_framed_file_acquire(&t->f, k, true, &fd, err);
        if (rc) break;
        mri_file_scan_init(&w, fd, file->path, file->bytes);
        rc = choose(t, window_get, &w, file->bytes, file->path, err);
        mri_file_scan_fini(&w);
        mri_framed_file_release(&t->f, k);
    }
    if (!rc && t->schema.field_count == 0)
        rc = mri_error_place(err,
                             mr_error_set(err, MR_EFORMAT, "no member of the first samples can be a field"),
                             t->f.file[0].path, 0, 0);
    return rc;
}

/* ---- the scan ---- */
typedef struct scanning {
    mri_tar_source *t;
    mri_scan *s;
    mri_tar_keys keys;
    int64_t label; /* of the sample being gathered */
    mri_tar_samples it;
    mri_tar_group g;
} scanning;

/* An invalid class is reported when its sample is read. */
static int on_part(void *context, const mri_tar_part *part, mr_error *err)
{
    scanning *w = context;
    if (w->label != MRI_NO_LABEL || !mri_tar_schema_is_label(&w->t->schema, part)) return MR_OK;
    const int rc = mri_tar_schema_label(&w->t->schema, part, scan_get, w->s, &w->label, err);
    return rc == MR_EIO || rc == MR_ENOMEM ? rc : MR_OK;
}

static size_t line_bytes(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\n', bytes);
    return end ? (size_t)(end - text) : bytes;
}

/* Two archives number their classes differently: one number would be two classes. A list may be longer by
 * classes behind the others. *longer: this one is. label_key: the user takes the numbers. */
static int check_classes(mri_tar_source *t, const mri_tar_member *m, const char *text, size_t bytes,
                         bool *longer, mr_error *err)
{
    const char *known = (const char *)t->class_text;
    const size_t both = bytes < t->class_bytes ? bytes : t->class_bytes;
    char one[400], other[400], one_shown[100], other_shown[100];
    size_t at = 0, n = 0;
    uint32_t number = 0;
    for (; at < both; at += n + 1, number++) {
        n = line_bytes(known + at, t->class_bytes - at);
        if (n != line_bytes(text + at, bytes - at) || memcmp(known + at, text + at, n) != 0) break;
    }
    *longer = at >= both && bytes > t->class_bytes;
    if (at >= both) return MR_OK;
    mri_tar_note(&t->notes, MRI_TAR_CLASSES_DIFFER, m->head, "");
    if (t->cfg->label_key) return MR_OK;
    snprintf(one, sizeof one, "%.*s", (int)n, known + at);
    snprintf(other, sizeof other, "%.*s", (int)line_bytes(text + at, bytes - at), text + at);
    mr_error_set(err, MR_EFORMAT,
                 "class %u is \"%s\" in this archive (" MRI_TAR_CLASSES ") and \"%s\" in one before it: open "
                 "them as a mix, which matches classes by their names, or take the numbers as they are "
                 "(--label-key cls)",
                 number, mr_text_shown(other, other_shown, sizeof other_shown),
                 mr_text_shown(one, one_shown, sizeof one_shown));
    return mri_error_place(err, MR_EFORMAT, NULL, m->head, MR_NOWHERE);
}

static int on_note(void *context, const mri_tar_member *m, mr_error *err)
{
    const scanning *w = context;
    mri_tar_source *t = w->t;
    const uint8_t *p = NULL;
    bool longer = true;
    if (strcmp(m->name, MRI_TAR_CLASSES) != 0) return MR_OK;
    if (m->bytes > MRI_TAR_MAX_CLASSES) {
        mri_tar_note(&t->notes, MRI_TAR_CLASSES_LARGE, m->head, "");
        return MR_OK;
    }
    const size_t bytes = (size_t)m->bytes;
    int rc = bytes ? scan_get(w->s, m->data, bytes, &p, err) : MR_OK;
    if (!rc && t->class_text) rc = check_classes(t, m, (const char *)p, bytes, &longer, err);
    if (rc || !longer) return rc;
    rc = mri_source_budget(t->cfg, bytes, NULL, err);
    if (rc) return rc;
    free(t->class_text);
    t->class_text = malloc(bytes + 1);
    if (!t->class_text) return mr_error_set(err, MR_ENOMEM, "no memory for the names of classes");
    if (bytes) memcpy(t->class_text, p, bytes);
    t->class_bytes = bytes;
    return MR_OK;
}

static int add_sample(scanning *w, int64_t label, mr_error *err)
{
    const mri_tar_group *g = &w->g;
    bool again;
    int rc = check_dots(w->t, g, err);
    if (!rc) rc = mri_tar_keys_put(&w->keys, g->key, g->key_bytes, w->t->cfg, &again, err);
    if (rc) return rc;
    if (again) mri_tar_note(&w->t->notes, MRI_TAR_KEY_AGAIN, g->begin, g->key);
    rc = mri_tar_more_add(w->t->more, &w->t->schema, g, w->t->f.count, &w->t->notes, scan_get, w->s, err);
    if (rc) return rc;
    return mri_scan_add(w->s, g->begin, g->end - g->begin, label, err);
}

static int scan_samples(scanning *w, mr_error *err)
{
    for (;;) {
        w->label = MRI_NO_LABEL;
        int rc = mri_tar_samples_next(&w->it, &w->g, err);
        if (!rc) rc = add_sample(w, w->label, err);
        if (rc) return rc;
    }
}

static int tar_scan(void *context, mri_scan *s, uint32_t file, mr_error *err)
{
    mri_tar_source *t = context;
    const uint64_t bytes = mri_scan_file_bytes(s);
    int rc = t->has_schema ? MR_OK : choose(t, scan_get, s, bytes, NULL, err);
    if (!rc && !t->more) t->more = mri_tar_more_create();
    scanning *w = rc || !t->more ? NULL : calloc(1, sizeof *w);
    if (!w) return rc ? rc : mr_error_set(err, MR_ENOMEM, "no memory to scan an archive");
    t->notes.file = file;
    w->t = t;
    w->s = s;
    mri_tar_samples_init(&w->it, scan_get, s, 0, bytes, &t->notes);
    w->it.dot = t->dot;
    w->it.on_part = on_part;
    w->it.on_note = on_note;
    w->it.on_context = w;
    rc = scan_samples(w, err);
    if (rc == MR_EEND) rc = mri_tar_finish(&w->it.walk, err);
    if (!rc && w->it.walk.end_blocks < 2) mri_tar_note(&t->notes, MRI_TAR_NO_END, w->it.walk.at, "");
    if (!rc && w->it.walk.end_blocks == 0 && t->cut++ == 0) t->first_cut = file;
    mri_tar_keys_fini(&w->keys);
    free(w);
    return rc;
}

/* Some writers leave the end mark out, of all their archives. Where others of the set have it, the one
 * without was cut, or its writer was: samples are missing. */
static int check_ends(const mri_tar_source *t, mr_error *err)
{
    if (t->cut == 0 || t->cut == t->f.file_count) return MR_OK;
    mr_error_set(err, MR_EFORMAT,
                 "the archive has no end mark, and others of the set have theirs: it was cut between two "
                 "members; copy it again, or name the files to use by a pattern");
    return mri_error_place(err, MR_EFORMAT, t->f.file[t->first_cut].path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- reports ---- */
static size_t say(char *buf, size_t room, const mri_tar_source *t, mri_tar_irregularity what)
{
    static const struct {
        const char *one, *more, *why;
    } texts[MRI_TAR_IRREGULARITIES] = {
        [MRI_TAR_NO_BYTES] = {"member that is no file was passed over",
                              "members that are no files were passed over", ""},
        [MRI_TAR_NO_KEY] = {"member without a key was passed over", "members without a key were passed over",
                            ""},
        [MRI_TAR_OUTSIDE] = {"name leads out of its folder", "names lead out of their folder",
                             "; nothing is unpacked by name"},
        [MRI_TAR_KEY_AGAIN] = {"key comes again", "keys come again",
                               "; members of one sample must be neighbours"},
        [MRI_TAR_CLASSES_LARGE] = {"list of classes was passed over", "lists of classes were passed over",
                                   ": more than 16 MiB"},
        [MRI_TAR_CLASSES_DIFFER] = {"list of classes is another than the first",
                                    "lists of classes are others than the first", "; all were passed over"},
        [MRI_TAR_LEFT_OUT] = {"member was left out", "members were left out",
                              ": their name, or the number of names, allows no field"},
        [MRI_TAR_LATE_CLASS] = {"sample has a class", "samples have a class",
                                ", and none of the first 64: no class is taken"},
        [MRI_TAR_NO_END] = {"archive has no end mark", "archives have no end mark",
                            ": some writers leave it out; otherwise the end is missing, and samples with it"},
    };
    const unsigned long long count = t->notes.of[what].count, offset = t->notes.of[what].offset;
    if (count == 0) return 0;
    const int n =
        snprintf(buf, room, "%llu %s (first: %s%s%soffset %llu of file %u)%s; ", count,
                 count == 1 ? texts[what].one : texts[what].more, t->notes.of[what].what[0] ? "\"" : "",
                 t->notes.of[what].what, t->notes.of[what].what[0] ? "\", " : "", offset,
                 t->notes.of[what].file + 1, texts[what].why);
    return n < 0 || (size_t)n >= room ? room - 1 : (size_t)n;
}

static size_t say_all(const mri_tar_source *t, char *text, size_t room)
{
    size_t at = 1;
    text[0] = (char)(NOTE + (t->cut == 1 && t->f.file_count == 1 ? NOTE_CUT : 0) +
                     (t->dot == MRI_TAR_LAST_DOT ? NOTE_LAST_DOT : 0));
    text[at] = '\0';
    for (int k = 0; k < MRI_TAR_IRREGULARITIES; k++)
        at += say(text + at, room - at, t, (mri_tar_irregularity)k);
    if (at > 2) at -= 2; /* the last "; " */
    text[at] = '\0';
    return at + 1;
}

/* Kept with the index, so that the next run reports the same irregularities and has the same fields. | '0'
 * plus the bits NOTE_CUT (a lone archive without end mark), NOTE_LAST_DOT | text | 0 | further fields
 * (tar_more.h) | 0 | names of classes, as they stand | */
static int tar_note(void *context, uint8_t **out, size_t *bytes, mr_error *err)
{
    mri_tar_source *t = context;
    char text[sizeof t->report_text];
    const int rc = check_ends(t, err);
    if (rc) return rc;
    char *more = t->more ? mri_tar_more_text(t->more, &t->schema, &t->notes) : calloc(1, 1);
    const size_t head = say_all(t, text, sizeof text), fields = more ? strlen(more) + 1 : 0;
    const size_t names = t->notes.of[MRI_TAR_CLASSES_DIFFER].count ? 0 : t->class_bytes;
    *bytes = head + fields + names;
    *out = more ? malloc(*bytes) : NULL;
    if (*out) {
        memcpy(*out, text, head);
        memcpy(*out + head, more, fields);
        if (names) memcpy(*out + head + fields, t->class_text, names);
    }
    free(more);
    return *out ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a note");
}

static void tell(mri_tar_source *t, const char *text)
{
    const size_t at = strlen(t->report_text);
    if (text[0]) snprintf(t->report_text + at, sizeof t->report_text - at, "%s%s", at ? "\n" : "", text);
}

/* ---- names of classes ---- */
/* One wrong label makes names doubtful, not the other way round: data stay as readable as they are
 * without. */
static void doubt(mri_tar_source *t, const mri_framed *f)
{
    const int64_t largest = f->entries.sums.class_max;
    char text[160] = "";
    if (t->classes.wrong)
        snprintf(text, sizeof text, "names of classes passed over: %s of %s", t->classes.wrong,
                 MRI_TAR_CLASSES);
    else if (t->schema.label_kind != MRI_TAR_LABEL_TEXT || strcmp(t->schema.label, "cls") != 0)
        snprintf(text, sizeof text,
                 "names of classes passed over: they are for labels in .cls, which are not used");
    else if (largest >= (int64_t)t->classes.count)
        snprintf(text, sizeof text, "names of classes passed over: %u names in %s, but a label %lld",
                 t->classes.count, MRI_TAR_CLASSES, (long long)largest);
    if (!text[0]) return;
    mri_tar_classes_fini(&t->classes);
    tell(t, text);
}

/* ---- fields that the sample of the schema lacks ---- */
static int add_field_of(mri_tar_source *t, mri_file_scan *w, const mr_extent *e, const char *name,
                        mr_error *err)
{
    mri_tar_samples it;
    mri_tar_group g;
    mri_tar_samples_init(&it, window_get, w, e->offset, e->offset + e->bytes, NULL);
    it.dot = t->dot;
    const int rc = mri_tar_samples_next(&it, &g, err);
    const mri_tar_part *part = rc ? NULL : mri_tar_group_find(&g, name);
    if (rc || !part) return rc == MR_EEND ? MR_OK : rc; /* the archive was changed: parse() reports it */
    return mri_tar_schema_add(&t->schema, part, window_get, w, err);
}

static int add_fields(mri_tar_source *t, const char *at, size_t bytes, mr_error *err)
{
    char name[MR_MAX_NAME + 1];
    uint64_t sample;
    int rc = MR_OK;
    while (!rc && mri_tar_more_next(&at, &bytes, &sample, name)) {
        mr_extent e;
        mri_file_scan w;
        int fd;
        if (sample >= t->f.count || !mri_tar_schema_may_add(&t->schema, name)) continue;
        rc = mri_framed_extent(&t->f, sample, &e, err);
        if (!rc) rc = mri_framed_file_acquire(&t->f, e.file, true, &fd, err);
        if (rc) break;
        mri_file_scan_init(&w, fd, t->f.file[e.file].path, t->f.file[e.file].bytes);
        rc = add_field_of(t, &w, &e, name, err);
        if (rc) mri_error_place(err, rc, t->f.file[e.file].path, MR_NOWHERE, sample);
        mri_file_scan_fini(&w);
        mri_framed_file_release(&t->f, e.file);
    }
    return rc;
}

static int take_classes(mri_tar_source *t, mri_framed *f, const char *text, size_t bytes, mr_error *err)
{
    f->memory_bytes += bytes;
    const int rc = mri_tar_classes_take(&t->classes, text, bytes, err);
    if (rc) return rc;
    doubt(t, f);
    return mri_source_budget(
        t->cfg, f->memory_bytes + f->note_bytes + t->classes.count * sizeof *t->classes.name, NULL, err);
}

/* The note may come from a file that anybody could write. */
static int tar_known(void *context, mri_framed *f, mr_error *err)
{
    mri_tar_source *t = context;
    char raw[sizeof t->report_text];
    const char *note = (const char *)f->note, *end = note + f->note_bytes;
    const size_t text = f->note_bytes ? strnlen(note, f->note_bytes) : 0,
                 shown = text ? mri_min_u64(text - 1, sizeof raw - 1) : 0;
    const unsigned flags = text ? (unsigned)(f->note[0] - NOTE) : 0;
    t->dot = flags & NOTE_LAST_DOT ? MRI_TAR_LAST_DOT : MRI_TAR_FIRST_DOT;
    int rc = choose_again(t, err);
    if (rc) return rc;
    t->alone_cut = flags & NOTE_CUT;
    if (shown) memcpy(raw, f->note + 1, shown);
    raw[shown] = '\0';
    mr_text_shown(raw, t->report_text, sizeof t->report_text);
    if (t->dot == MRI_TAR_LAST_DOT)
        tell(
            t,
            "names of members have dots in them: the last dot ends the name of a sample, since the first one "
            "would make one sample of several, or hide their classes");
    if (text == f->note_bytes) return MR_OK;
    const char *fields = note + text + 1;
    const size_t fields_bytes = strnlen(fields, (size_t)(end - fields));
    rc = add_fields(t, fields, fields_bytes, err);
    const char *names = fields + fields_bytes + 1;
    return rc || names >= end ? rc : take_classes(t, f, names, (size_t)(end - names), err);
}

/* If the user sets another first label, the first names belong to no class. */
static void name_classes(mr_source_info *info, const mri_tar_source *t)
{
    const mri_tar_classes *c = &t->classes;
    if (info->label_offset < 0 || info->label_offset >= (int64_t)c->count) return;
    info->class_names = c->name + info->label_offset;
    info->class_count = c->count - (uint32_t)info->label_offset;
    info->memory_bytes += c->count * sizeof *c->name;
    for (uint32_t k = 0; k < c->count; k++)
        info->fingerprint = XXH3_64bits_withSeed(c->name[k], strlen(c->name[k]), info->fingerprint);
}

/* ---- open, close ---- */
static bool tar_accept(const uint8_t *head, size_t bytes) { return mri_tar_is_header(head, bytes); }

static bool tar_probe(const mri_probe *p)
{
    if (p->is_folder || p->is_pattern) return mri_filelist_probe(p->path, tar_accept, p->trouble);
    return tar_accept(p->head, p->head_bytes) || tar_accept(p->inner, p->inner_bytes);
}

static uint64_t settings_of(const mri_tar_schema *s)
{
    return XXH3_64bits_withSeed(s->image_key, sizeof s->image_key,
                                XXH3_64bits(s->label_key, sizeof s->label_key));
}

static void fill_info(mr_source *src, mri_tar_source *t)
{
    mri_framed_info(&t->f, &src->info);
    mri_framed_labels(&t->f, &src->labels);
    src->info.format = "tar";
    src->info.fields = t->schema.field;
    src->info.field_count = t->schema.field_count;
    src->info.image_field = t->schema.image_field;
    src->info.label_field = t->schema.label_field;
    src->info.memory_bytes += sizeof *t;
    for (uint32_t k = 0; k < t->schema.field_count; k++)
        src->info.fingerprint = XXH3_64bits_withSeed(t->schema.field[k].name, strlen(t->schema.field[k].name),
                                                     src->info.fingerprint);
    name_classes(&src->info, t);
    if (t->schema.no_class[0])
        mri_source_tell(src, "no class is taken: %s, as in the first sample", t->schema.no_class);
    tell(t, t->f.report_text);
    src->info.told = t->report_text[0] ? t->report_text : NULL;
}

static int open_by(mr_source *src, mri_tar_source *t, mri_tar_dot dot, const mr_source_config *cfg,
                   mr_error *err)
{
    mri_filelist files;
    *t = (mri_tar_source){.cfg = cfg, .dot = dot};
    int rc = mri_tar_schema_init(&t->schema, cfg->image_key, cfg->label_key, err);
    t->keys_settle = strchr(t->schema.image_key, '.') || strchr(t->schema.label_key, '.');
    if (!rc) rc = mri_filelist_find(&files, src->path, cfg->split, tar_accept, err);
    if (rc) return rc;
    if (dot == MRI_TAR_FIRST_DOT) mri_filelist_tell(&files, src);
    const mri_framed_format format = {.name = "tar",
                                      .version = VERSION,
                                      .settings = settings_of(&t->schema),
                                      .scan = tar_scan,
                                      .note = tar_note,
                                      .known = tar_known,
                                      .context = t};
    rc = mri_framed_open(&t->f, &files, &format, cfg, err);
    free(t->class_text);
    t->class_text = NULL;
    mri_tar_more_free(t->more);
    t->more = NULL;
    t->cfg = NULL;
    return rc;
}

static int tar_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_tar_source *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory for an archive");
    src->state = t;
    int rc = open_by(src, t, MRI_TAR_FIRST_DOT, cfg, err);
    if (rc && t->folds) {
        mri_framed_close(&t->f);
        mri_tar_classes_fini(&t->classes);
        if (err) *err = (mr_error)MR_ERROR_INIT;
        rc = open_by(src, t, MRI_TAR_LAST_DOT, cfg, err);
    }
    if (!rc) fill_info(src, t);
    return rc;
}

static void tar_close(mr_source *src)
{
    mri_tar_source *t = src->state;
    if (!t) return;
    mri_framed_close(&t->f);
    mri_tar_classes_fini(&t->classes);
    free(t);
}

/* ---- samples ---- */
static int tar_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    return mri_framed_extent(&((const mri_tar_source *)src->state)->f, sample, out, err);
}

static int tar_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    return mri_framed_label(&((const mri_tar_source *)src->state)->f, sample, out);
}

static bool tar_labels_near(const mr_source *src)
{
    return mri_framed_labels_near(&((const mri_tar_source *)src->state)->f);
}

static int tar_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    return mri_framed_file_at(&((const mri_tar_source *)src->state)->f, file, out);
}

static int tar_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    return mri_framed_file_acquire(&((const mri_tar_source *)src->state)->f, file, must, fd, err);
}

static void tar_file_release(const mr_source *src, uint32_t file)
{
    mri_framed_file_release(&((const mri_tar_source *)src->state)->f, file);
}

typedef int look_at_file(bool *out, int fd, const char *path, uint64_t bytes, mr_error *err);

static int with_file(const mri_tar_source *t, uint32_t k, look_at_file *look, bool *out, mr_error *err)
{
    int fd;
    *out = false;
    int rc = mri_framed_file_acquire(&t->f, k, true, &fd, err);
    if (rc) return rc;
    rc = look(out, fd, t->f.file[k].path, t->f.file[k].bytes, err);
    mri_framed_file_release(&t->f, k);
    return rc;
}

/* A file that cannot be read denies nothing: the check of the source fails there with the error. */
static bool tar_has_sums(const mr_source *src)
{
    static look_at_file *const looks[] = {mri_tar_sums_at_end, mri_tar_sums_fit};
    const mri_tar_source *t = src->state;
    bool has = t->f.file_count > 0;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(looks); i++)
        for (uint32_t k = 0; has && k < t->f.file_count; k++)
            if (with_file(t, k, looks[i], &has, NULL)) has = true;
    return has;
}

static int tar_check(const mr_source *src, mr_error *err)
{
    const mri_tar_source *t = src->state;
    int rc = mri_framed_check(src, &t->f, err);
    for (uint32_t k = 0; !rc && k < t->f.file_count; k++) {
        bool fit;
        rc = with_file(t, k, mri_tar_sums_check, &fit, err);
    }
    if (rc || !t->alone_cut) return rc;
    mr_error_set(err, MR_EFORMAT,
                 "the archive has no end mark: some writers leave it out; otherwise it was cut between two "
                 "members, and samples are missing: compare its size with the original's, or copy it again");
    return mri_error_place(err, MR_EFORMAT, t->f.file[0].path, t->f.file[0].bytes, MR_NOWHERE);
}

static void tar_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_framed *f = &((const mri_tar_source *)src->state)->f;
    snprintf(buf, buf_bytes, "%s", f->file[mri_framed_file_of(f, sample)].path);
}

const mri_source_ops mri_source_tar = {
    .name = "tar",
    .help = "WebDataset: tar archives, plain or gzip, whose members are grouped by name (0017.jpg, "
            "0017.cls); a file, a set, a folder or a pattern",
    .probe = tar_probe,
    .open = tar_open,
    .close = tar_close,
    .extent = tar_extent,
    .label = tar_label,
    .labels_near = tar_labels_near,
    .file_at = tar_file_at,
    .file_acquire = tar_file_acquire,
    .file_release = tar_file_release,
    .check = tar_check,
    .has_sums = tar_has_sums,
    .sample_path = tar_sample_path,
    .parse = mri_tar_source_parse,
    .sample_name = mri_tar_source_name,
};

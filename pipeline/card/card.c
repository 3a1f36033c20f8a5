/* pipeline/card/card.c: the content of a card: splits, files, kinds of pictures, classes. See card.h. */
#include "pipeline/card/card.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/storage/text.h"
#include "millrace/manifest.h"

typedef struct kind {
    const char *ending;
    void (*put)(const mri_card *c, FILE *out);
    const char *left; /* for the user to add */
} kind;

static const kind kinds[] = {
    {".json", mri_card_put_croissant, "license, url, creator, datePublished"},
    {".jsonld", mri_card_put_croissant, "license, url, creator, datePublished"},
    {".md", mri_card_put_huggingface, "license"},
};

static const kind *kind_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t k = 0; dot && k < sizeof kinds / sizeof kinds[0]; k++)
        if (strcasecmp(dot, kinds[k].ending) == 0) return &kinds[k];
    return NULL;
}

/* The folder that `path` lies in, without a slash at its end. */
static void folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(out, PATH_MAX, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
}

static void strip(const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    for (size_t n = strlen(out); n > 1 && out[n - 1] == '/';) out[--n] = '\0';
}

static bool is_below(const char *home, const char *folder)
{
    const size_t h = strlen(home);
    return strncmp(folder, home, h) == 0 && (!folder[h] || folder[h] == '/' || home[h - 1] == '/');
}

/* The existing folder for `path`: itself if it is a folder, or the folder that contains it. */
static bool real_folder(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    struct stat st;
    strip(path, folder);
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)) folder_of(path, folder);
    return realpath(folder, out) != NULL;
}

/* A file can be put there, or a file of that name replaced. */
static int check_place(const char *path, const char *folder, mr_error *err)
{
    struct stat st;
    const bool is_other = lstat(path, &st) == 0 && !S_ISREG(st.st_mode); /* a device would be replaced by a
                                                                            file */
    if (is_other)
        return mr_error_set(err, MR_EEXIST,
                            "--card %s: expected a file or a new name, found a folder, link or device", path);
    return access(folder, W_OK | X_OK) == 0 ? MR_OK : mr_error_sys(err, errno, "--card %s", path);
}

int mr_card_check(const char *path, const char *set, bool force, mr_error *err)
{
    mr_output_config cfg;
    char folder[PATH_MAX], made[PATH_MAX], home[PATH_MAX], of_set[PATH_MAX];
    struct stat st;
    MRI_GIVEN(err, path);
    MRI_GIVEN(err, set);
    if (!kind_of(path))
        return mr_error_set(err, MR_EINVAL,
                            "--card %s: expected a name that ends in .md (a dataset card of Hugging Face), "
                            ".json or .jsonld (Croissant)",
                            path);
    folder_of(path, folder);
    strip(set, made);
    if (strcmp(folder, made) == 0 && lstat(folder, &st) != 0) return MR_OK; /* it will be made */
    const int rc = check_place(path, folder, err);
    if (rc) return rc;
    if (realpath(folder, home) && real_folder(set, of_set) && !is_below(home, of_set))
        return mr_error_set(err, MR_EINVAL,
                            "--card %s: the card names files relative to its folder: put it into the folder "
                            "of %s, or above it",
                            path, set);
    mr_output_defaults(&cfg);
    cfg.force = force;
    return mr_output_check(path, &cfg, err);
}

const char *mr_card_missing(const char *path)
{
    const kind *k = path ? kind_of(path) : NULL;
    return k ? k->left : NULL;
}

/* ---- texts ---- */

/* Bytes of the UTF-8 character at s; 0: invalid. */
static size_t character_bytes(const unsigned char *s)
{
    const size_t left = strnlen((const char *)s, 4);
    for (size_t n = 1; n <= left; n++)
        if (mri_is_utf8(s, n)) return n;
    return 0;
}

void mri_card_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = character_bytes(s);
        if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
        else if (*s == '\n') fputs("\\n", out);
        else if (*s < 0x20 || *s == 0x7f || n == 0) fprintf(out, "\\u%04x", *s);
        else if (*s == 0xc2 && s[1] < 0xa0) fprintf(out, "\\u%04x", s[1]); /* control characters, too */
        else fwrite(s, 1, n, out);
        s += n ? n : 1;
    }
    fputc('"', out);
}

const char *mri_card_media_type(const char *ending)
{
    static const char *const types[][2] = {
        {"jpg", "image/jpeg"},  {"jpeg", "image/jpeg"}, {"png", "image/png"},   {"gif", "image/gif"},
        {"bmp", "image/bmp"},   {"webp", "image/webp"}, {"tif", "image/tiff"},  {"tiff", "image/tiff"},
        {"heic", "image/heic"}, {"heif", "image/heic"}, {"avif", "image/avif"},
    };
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (strcasecmp(ending, types[k][0]) == 0) return types[k][1];
    return "application/octet-stream";
}

const char *mri_card_format_text(const mri_card *c)
{
    static const char *const texts[][2] = {
        {"folder", "picture files"},
        {"tar", "WebDataset (tar)"},
        {"mrec", "record files of millrace"},
        {"shards", "record files of millrace"},
        {"tfrecord", "TFRecord"},
        {"mds", "MDS (Mosaic Streaming)"},
        {"recordio", "RecordIO (MXNet)"},
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (strcmp(c->format, texts[k][0]) == 0) return texts[k][1];
    return c->format;
}

uint64_t mri_card_count(const mri_card *c)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < c->parts; k++) n += mr_source_info_of(c->part[k].src)->count;
    return n;
}

uint64_t mri_card_sample_bytes(const mri_card *c)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < c->parts; k++) n += mr_source_info_of(c->part[k].src)->total_bytes;
    return n;
}

const mr_source_info *mri_card_info(const mri_card *c) { return mr_source_info_of(c->part[0].src); }

/* The last component of the set's path, without the ending; letters, digits and few others. */
static void name_set(mri_card *c)
{
    char real[PATH_MAX];
    const char *path = realpath(c->set, real) ? real : c->set, *slash = strrchr(path, '/');
    struct stat st;
    snprintf(c->name, sizeof c->name, "%.*s", MRI_CARD_NAME - 1, slash && slash[1] ? slash + 1 : path);
    char *dot = strrchr(c->name, '.');
    if (dot && dot > c->name && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode))) *dot = '\0';
    for (char *p = c->name; *p; p++)
        if (!strchr("-_.", *p) && !(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'z') &&
            !(*p >= 'A' && *p <= 'Z'))
            *p = '_';
    for (size_t n = strlen(c->name); n > 1 && (c->name[n - 1] == '_' || c->name[n - 1] == '-');)
        c->name[--n] = '\0';
}

/* ---- names of files ---- */
/* `path` from the card's folder; false: it is elsewhere. */
static bool from_home(const mri_card *c, const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t h = strlen(c->home);
    folder_of(path, folder);
    if (!realpath(folder, real)) return false;
    const char *gap = real[strlen(real) - 1] == '/' ? "" : "/";
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s%s", real, gap, slash ? slash + 1 : path);
    if (!is_below(c->home, whole)) return false;
    return (size_t)snprintf(out, PATH_MAX, "%s", whole + h + (whole[h] == '/')) < PATH_MAX;
}

static int elsewhere(mri_card *c, const char *path)
{
    mr_error_set(&c->err, MR_EINVAL,
                 "the card names files relative to its folder, and %.300s is not below it: put the card into "
                 "the folder of the set, or above it",
                 path);
    return mr_error_at(&c->err, c->path, MR_NOWHERE, MR_NOWHERE);
}

static int find_home(mri_card *c)
{
    char folder[PATH_MAX];
    const char *path = c->path;
    folder_of(path, folder);
    if (realpath(folder, c->home)) return MR_OK;
    mr_error_sys(&c->err, errno, "cannot resolve the card's folder");
    return mr_error_at(&c->err, path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- files with sums ---- */
static bool is_card(const mri_card *c, const char *path)
{
    struct stat a, b;
    const char *dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".md") == 0) return true;
    return stat(c->path, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A file may have the samples of several splits. */
static bool is_listed(const mri_card *c, const mri_card_part *p, const char *name)
{
    for (uint64_t k = 0; k < p->first_file; k++)
        if (strcmp(c->file[k].name, name) == 0) return true;
    return false;
}

static int add_file(mri_card *c, mri_card_part *p, const mr_manifest_file *f)
{
    char name[PATH_MAX];
    if (is_card(c, f->path)) return MR_OK;
    if (!from_home(c, f->path, name)) return elsewhere(c, f->path);
    if (is_listed(c, p, name)) return MR_OK;
    if (c->files == c->room) {
        const uint64_t room = c->room ? 2 * c->room : 64;
        mri_card_file *more = realloc(c->file, room * sizeof *more);
        if (!more) return mr_error_set(&c->err, MR_ENOMEM, "no memory for the names of files");
        c->file = more;
        c->room = room;
    }
    mri_card_file *to = &c->file[c->files];
    *to = (mri_card_file){.name = strdup(name), .bytes = f->bytes};
    if (!to->name) return mr_error_set(&c->err, MR_ENOMEM, "no memory for the names of files");
    for (size_t k = 0; k < sizeof f->sha256; k++) sprintf(to->sha256 + 2 * k, "%02x", f->sha256[k]);
    c->file_bytes += f->bytes;
    c->files++;
    p->files++;
    return MR_OK;
}

typedef struct summing {
    mri_card *c;
    mri_card_part *part;
} summing;

static void on_file(void *context, const mr_manifest_file *f)
{
    const summing *s = context;
    if (!s->c->failed) s->c->failed = add_file(s->c, s->part, f);
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    const mr_card_config *cfg = ((const summing *)context)->c->cfg;
    if (cfg->on_progress) cfg->on_progress(cfg->context, done, count);
}

/* The set's own file counts for the first split: a list of shards, the index of MDS. */
static int name_files(mri_card *c, const mri_card_part *p, char out[PATH_MAX])
{
    mr_source_file first = {.struct_size = sizeof first};
    struct stat st;
    const char *set = c->set;
    const bool is_dir = stat(set, &st) == 0 && S_ISDIR(st.st_mode); /* which may have other files, too */
    if (p == c->part && !is_dir) snprintf(out, PATH_MAX, "%s", set);
    else if (p == c->part && strcmp(c->format, "mds") == 0)
        snprintf(out, PATH_MAX, "%.4000s/index.json", set);
    else if (mr_source_file_at(p->src, 0, &first) == MR_OK) snprintf(out, PATH_MAX, "%s", first.path);
    else return mr_error_set(&c->err, MR_EUNSUPPORTED, "the data set does not say which files it has");
    return MR_OK;
}

static int take_files(mri_card *c)
{
    summing s = {.c = c};
    mr_manifest_config cfg;
    char set[PATH_MAX];
    mr_manifest_defaults(&cfg);
    cfg.threads = c->cfg->threads;
    cfg.on_file = on_file;
    cfg.on_progress = on_progress;
    cfg.context = &s;
    cfg.stop = c->cfg->stop;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < c->parts; k++) {
        s.part = &c->part[k];
        s.part->first_file = c->files;
        rc = name_files(c, s.part, set);
        if (!rc) rc = mr_manifest_make(NULL, set, s.part->src, &cfg, NULL, &c->err);
    }
    return rc ? rc : c->failed;
}

/* ---- kinds of pictures, classes of folders ---- */
static void take_ending(mri_card_part *p, const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    const char *ending = dot && strlen(dot) < sizeof p->ending[0] ? dot + 1 : "";
    for (uint32_t k = 0; k < p->endings; k++)
        if (strcmp(p->ending[k], ending) == 0) return;
    if (p->endings < MRI_CARD_ENDINGS) snprintf(p->ending[p->endings++], sizeof p->ending[0], "%s", ending);
}

/* Names have the form PREFIX CLASS / ...; the first sample sets the prefix. */
static void take_class(mri_card_part *p, uint64_t at, const char *name)
{
    const mr_source_info *info = mr_source_info_of(p->src);
    int64_t label;
    if (at > 0 && !p->by_class) return;
    p->by_class = false;
    if (!info->class_names || mr_source_label(p->src, at, &label) != MR_OK || label < 0 ||
        label >= (int64_t)info->class_count)
        return;
    const char *class_name = info->class_names[label], *found = at ? name + strlen(p->prefix) : name;
    const size_t n = strlen(class_name);
    if (at && strncmp(name, p->prefix, strlen(p->prefix)) != 0) return;
    while (strncmp(found, class_name, n) != 0 || found[n] != '/') {
        found = at ? NULL : strchr(found, '/');
        if (!found) return;
        found++;
    }
    if (!at) {
        if ((size_t)(found - name) >= sizeof p->prefix) return;
        snprintf(p->prefix, sizeof p->prefix, "%.*s", (int)(found - name), name);
    }
    p->deep |= strchr(class_name, '/') != NULL;
    p->by_class = true;
}

/* Which of the usual members has the class: from the first sample. */
static int take_label(mri_card *c, mri_card_part *p)
{
    static const char *const usual[] = {"cls", "class", "label"};
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    mr_extent e;
    if (mr_source_info_of(p->src)->label_field < 0) return MR_OK;
    int rc = mr_source_extent(p->src, 0, &e, &c->err);
    if (!rc) rc = mr_source_read(p->src, 0, &buffer, &room, &sample, &c->err);
    for (size_t k = 0; !rc && !p->label[0] && k < sizeof usual / sizeof usual[0]; k++) {
        char name[16];
        const size_t n = (size_t)snprintf(name, sizeof name, ".%s", usual[k]) + 1; /* names end with a zero */
        if (memmem(buffer, (size_t)e.bytes, name, n)) snprintf(p->label, sizeof p->label, "%s", usual[k]);
    }
    free(buffer);
    return mr_error_of_sample(rc, &c->err) ? MR_OK : rc;
}

static int take_names(mri_card *c, mri_card_part *p)
{
    const uint64_t count = mr_source_info_of(p->src)->count;
    char name[PATH_MAX];
    const int label_rc = c->is_folder ? MR_OK : take_label(c, p);
    if (label_rc) return label_rc;
    for (uint64_t k = 0; k < count; k++) {
        if (mri_is_stopped(c->cfg->stop))
            return mr_error_set(&c->err, MR_ECANCELED, "the card is not written");
        const int rc = mr_source_sample_name_get(p->src, k, NULL, 0, name, sizeof name, &c->err);
        if (rc) return rc;
        take_ending(p, name);
        if (c->is_folder) take_class(p, k, name);
    }
    return MR_OK;
}

/* ---- splits ---- */
static int open_part(mri_card *c, mr_split split, mr_source **out)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = !c->cfg->opened; /* it would lie next to a set that is for others */
    const int rc =
        c->cfg->opened ? mri_settings_take(&cfg, sizeof cfg, c->cfg->opened, "source", &c->err) : MR_OK;
    if (rc) return rc;
    cfg.split = split;
    cfg.stop = c->cfg->stop;
    return mr_source_open(out, c->set, &cfg, &c->err);
}

static void add_part(mri_card *c, mr_source *src, uint32_t part)
{
    const char *name = mr_part_name(part);
    c->part[c->parts++] = (mri_card_part){.name = name ? name : "train", .src = src};
}

/* The split that was chosen; else all of them. */
static int open_parts(mri_card *c)
{
    const mr_split chosen = c->cfg->opened ? c->cfg->opened->split : MR_SPLIT_AUTO;
    mr_source *src;
    int rc = open_part(c, chosen, &src);
    if (rc) return rc;
    const mr_source_info *info = mr_source_info_of(src);
    const mr_source_parts parts = info->parts;
    add_part(c, src, parts.taken ? parts.taken : c->cfg->part);
    c->format = info->format;
    c->is_folder = info->file_count == 0;
    c->plain = info->image_field >= 0;
    for (uint32_t k = 0; k < info->field_count; k++)
        c->plain = c->plain && ((int)k == info->image_field || (int)k == info->label_field ||
                                strcmp(info->fields[k].name, "sample.name") == 0);
    if (chosen != MR_SPLIT_AUTO || !(parts.there & ~parts.taken) || !parts.taken) return MR_OK;
    rc = open_part(c, MR_SPLIT_TEST, &src);
    if (!rc) add_part(c, src, mr_source_info_of(src)->parts.taken);
    return rc;
}

/* Other programs do not know the list of withdrawn samples: they would take them. */
static int check_withdrawn(mri_card *c)
{
    uint64_t count = 0;
    for (uint32_t k = 0; k < c->parts; k++) count += mr_source_withdrawn_count(c->part[k].src);
    if (!count) return MR_OK;
    mr_error_set(&c->err, MR_EUNSUPPORTED,
                 "%" PRIu64 " sample%s withdrawn from the set, and programs that read a card would take %s: "
                 "convert or export the set, which leaves %s out, and describe that",
                 count, count == 1 ? " is" : "s are", count == 1 ? "it" : "them", count == 1 ? "it" : "them");
    return mr_error_at(&c->err, c->set, MR_NOWHERE, MR_NOWHERE);
}

static int collect(mri_card *c)
{
    char real[PATH_MAX];
    int rc = find_home(c);
    if (!rc) rc = open_parts(c);
    if (!rc) rc = check_withdrawn(c);
    if (rc) return rc;
    name_set(c);
    if (c->is_folder) {
        const bool here = realpath(c->set, real) && strcmp(real, c->home) == 0;
        if (!here && !from_home(c, real, c->inside)) return elsewhere(c, c->set);
        const size_t n = strlen(c->inside);
        if (n && n + 1 < sizeof c->inside) memcpy(c->inside + n, "/", 2);
    } else rc = take_files(c);
    const bool named = c->is_folder || (c->plain && strcmp(c->format, "tar") == 0);
    for (uint32_t k = 0; !rc && named && k < c->parts; k++) rc = take_names(c, &c->part[k]);
    return rc;
}

static int write_text(mri_card *c, const char *text, size_t bytes)
{
    const mr_source *inputs[MRI_CARD_PARTS] = {c->part[0].src, c->part[1].src};
    mr_output *out;
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.inputs = inputs;
    cfg.input_count = c->parts;
    cfg.force = c->cfg->force;
    int rc = mr_output_open(&out, c->path, &cfg, &c->err);
    if (rc) return rc;
    rc = mr_output_write(out, text, bytes, &c->err);
    if (rc == MR_OK) return mr_output_commit(out, &c->err);
    mr_output_abandon(out, false);
    return rc;
}

static int put(mri_card *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return mr_error_set(&c->err, MR_ENOMEM, "no memory for the card");
    kind_of(c->path)->put(c, out);
    const bool good = !ferror(out);
    int rc = fclose(out) == 0 && good ? MR_OK : mr_error_set(&c->err, MR_ENOMEM, "no memory for the card");
    if (!rc) rc = write_text(c, text, bytes);
    free(text);
    return rc;
}

static void discard(mri_card *c)
{
    for (uint64_t k = 0; k < c->files; k++) free(c->file[k].name);
    free(c->file);
    for (uint32_t k = 0; k < c->parts; k++) mr_source_close(c->part[k].src);
    free(c);
}

void mr_card_defaults_sized(mr_card_config *cfg, size_t struct_size)
{
    const mr_card_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mr_card_write(const char *path, const char *set, const mr_card_config *cfg, mr_error *err)
{
    mr_card_config mine;
    MRI_GIVEN(err, path);
    MRI_GIVEN(err, set);
    mr_card_defaults(&mine);
    int rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "card", err) : MR_OK;
    if (!rc && mine.part && !mr_part_name(mine.part))
        rc = mr_error_set(err, MR_EINVAL, "part is %u: expected one MR_PART_..., or 0", mine.part);
    if (!rc) rc = mr_card_check(path, set, mine.force, err);
    if (rc) return rc;
    mri_card *c = calloc(1, sizeof *c);
    if (!c) return mr_error_set(err, MR_ENOMEM, "out of memory for the card");
    c->path = path;
    c->set = set;
    c->cfg = &mine;
    c->err = (mr_error)MR_ERROR_INIT;
    rc = collect(c);
    if (!rc) rc = put(c);
    if (rc && err) *err = c->err;
    discard(c);
    return rc;
}

/* A mix: sets of different formats as one source; it passes on their samples under new numbers; and every way
 * in which sets do not go together or the text is wrong. */
#include <unistd.h>

#include "formats/mix/mix_file.h"
#include "formats/source/source.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

enum { H = 3, W = 2, PIXELS = H * W };

static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3};

/* ---- sets ---- */
/* Folder NAME with COUNT pictures a class, each of another size. */
static void make_folder(const char *name, const char *const *classes, int count)
{
    uint8_t bytes[40];
    mrt_mkdir(mrt_path("%s", name));
    for (int c = 0; classes[c]; c++) {
        mrt_mkdir(mrt_path("%s/%s", name, classes[c]));
        for (int k = 0; k < count; k++) {
            mrt_noise(bytes, sizeof bytes, (uint64_t)(c * 10 + k));
            memcpy(bytes, jpeg, sizeof jpeg);
            mrt_write_file(mrt_path("%s/%s/%d.jpg", name, classes[c], k), bytes,
                           sizeof jpeg + (size_t)(c * count + k));
        }
    }
}

static void put_pixels(uint8_t *to, uint64_t i) { mrt_noise(to, PIXELS, 100 + i); }

/* A record file of COUNT samples whose labels go round, with a further field; classes NULL: no names. */
static void make_records(const char *name, const char *const *classes, uint32_t class_count, uint64_t count)
{
    const mr_field fields[] = {{.name = "weight", .type = MR_TYPE_FLOAT},
                               {.name = "label", .type = MR_TYPE_INT},
                               {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 1}}};
    mr_writer_config cfg;
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 3;
    cfg.class_names = classes;
    cfg.class_count = classes ? class_count : 0;
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, mrt_path("%s", name), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t pixels[PIXELS];
        put_pixels(pixels, i);
        const mr_value v[] = {
            {.type = MR_TYPE_FLOAT, .f = 0.5},
            {.type = MR_TYPE_INT, .i = (int64_t)(i % class_count)},
            {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 1}, .data = pixels, .bytes = PIXELS}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

/* IDX: images and their labels, without names of classes. */
static void make_idx(const char *name, uint8_t count, uint8_t classes)
{
    uint8_t images[16 + 255 * PIXELS] = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, H, 0, 0, 0, W},
                              labels[8 + 255] = {0, 0, 8, 1, 0, 0, 0, count};
    mrt_mkdir(mrt_path("%s", name));
    for (uint8_t k = 0; k < count; k++) {
        put_pixels(images + 16 + k * PIXELS, k);
        labels[8 + k] = (uint8_t)(k % classes);
    }
    mrt_write_file(mrt_path("%s/train-images-idx3-ubyte", name), images, 16 + (size_t)count * PIXELS);
    mrt_write_file(mrt_path("%s/train-labels-idx1-ubyte", name), labels, 8 + (size_t)count);
}

static const char *const cat_dog[] = {"cat", "dog", NULL}, *const dog_ant_cat[] = {"dog", "ant", "cat", NULL};

static void make_sets(void)
{
    static bool made;
    if (made) return;
    made = true;
    make_folder("a folder", cat_dog, 2);
    make_records("photos.mrec", dog_ant_cat, 3, 5);
    make_idx("idx", 6, 4);
    make_records("plain.mrec", NULL, 7, 7);
}

/* ---- opening ---- */
static const char *put_mix(const char *text)
{
    mrt_write_file(mrt_path("mix.txt"), text, strlen(text));
    return mrt_path("mix.txt");
}

static int open_by(const char *text, const mr_source_config *cfg, mr_source **src, mr_error *err)
{
    make_sets();
    *src = (mr_source *)&err;
    const int rc = mr_source_open(src, put_mix(text), cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

static mr_source *open_mix(const char *text)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(open_by(text, NULL, &src, &err), &err);
    return src;
}

static mr_source *open_set(const char *name)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, mrt_path("%s", name), NULL, &err), &err);
    return src;
}

static void wrong(const char *text, int code, const char *what, const char *file)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(open_by(text, NULL, &src, &err), code);
    MRT_HAS(err.text, what);
    MRT_HAS(err.file, file);
}

static char *classes_of(const mr_source *src, char *text, size_t room)
{
    const mr_source_info *info = mr_source_info_of(src);
    text[0] = '\0';
    for (uint32_t k = 0; k < info->class_count; k++)
        snprintf(text + strlen(text), room - strlen(text), "%s%s", k ? "," : "", info->class_names[k]);
    return text;
}

/* Sample i of the mix is sample k of the set, but for the number of its class. */
static void same_sample(const mr_source *mixed, uint64_t i, const mr_source *set, uint64_t k)
{
    const mr_source_info *info = mr_source_info_of(mixed), *theirs = mr_source_info_of(set);
    mr_error err = MR_ERROR_INIT;
    void *buffer[2] = {NULL, NULL};
    size_t room[2] = {0, 0};
    mr_sample a, b;
    mr_extent ea, eb;
    char path[2][512];
    MRT_OK(mr_source_read(mixed, i, &buffer[0], &room[0], &a, &err), &err);
    MRT_OK(mr_source_read(set, k, &buffer[1], &room[1], &b, &err), &err);
    const mr_value *image = &b.value[theirs->image_field], *label = &b.value[theirs->label_field];
    MRT_EQ(a.value_count, 2);
    MRT_EQ(a.value[0].type, image->type);
    MRT_EQ(a.value[0].bytes, image->bytes);
    assert_memory_equal(a.value[0].data, image->data, image->bytes);
    if (info->class_names) MRT_STR(info->class_names[a.value[1].i], theirs->class_names[label->i]);
    else MRT_EQ(a.value[1].i, label->i);
    int64_t known;
    MRT_EQ(mr_source_label(mixed, i, &known), MR_OK);
    MRT_EQ(known, a.value[1].i);
    MRT_OK(mr_source_extent(mixed, i, &ea, &err), &err);
    MRT_OK(mr_source_extent(set, k, &eb, &err), &err);
    MRT_EQ(ea.offset, eb.offset);
    MRT_EQ(ea.bytes, eb.bytes);
    MRT_EQ(ea.file == MR_FILE_OF_SAMPLE, eb.file == MR_FILE_OF_SAMPLE);
    MRT_OK(mri_source_parse_trusted(mixed, i, buffer[0], (size_t)ea.bytes, &b, &err), &err);
    MRT_EQ(b.value[1].i, known);
    MRT_STR(mr_source_sample_path(mixed, i, path[0], sizeof path[0]),
            mr_source_sample_path(set, k, path[1], sizeof path[1]));
    MRT_STR(mr_source_sample_name(mixed, i, NULL, 0, path[0], sizeof path[0]),
            mr_source_sample_name(set, k, NULL, 0, path[1], sizeof path[1]));
    if (ea.file != MR_FILE_OF_SAMPLE) {
        mr_source_file fa, fb;
        int fd;
        MRT_EQ(mr_source_file_at(mixed, ea.file, &fa), MR_OK);
        MRT_EQ(mr_source_file_at(set, eb.file, &fb), MR_OK);
        MRT_STR(fa.path, fb.path);
        MRT_OK(mr_source_file_acquire(mixed, ea.file, &fd, &err), &err);
        mr_source_file_release(mixed, ea.file);
    }
    free(buffer[0]);
    free(buffer[1]);
}

static void same_set(const mr_source *mixed, uint32_t at, const char *name, uint64_t first, double share)
{
    mr_source *set = open_set(name);
    const mr_mix_set *one = &mr_source_info_of(mixed)->mix[at];
    MRT_STR(one->path, mrt_path("%s", name));
    MRT_EQ(one->first, first);
    MRT_EQ(one->count, mr_source_info_of(set)->count);
    MRT_TRUE(one->share > share - 1e-12 && one->share < share + 1e-12);
    for (uint64_t k = 0; k < one->count; k++) same_sample(mixed, first + k, set, k);
    mr_source_close(set);
}

/* ---- contents ---- */
static void classes_are_merged_by_name(void **state)
{
    (void)state;
    char text[100];
    mr_source *src = open_mix("millrace mix 1\n0.7 photos.mrec\n0.3 a folder\n");
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "mix");
    MRT_EQ(info->count, 9);
    MRT_EQ(info->mix_count, 2);
    MRT_EQ(info->field_count, 2);
    MRT_STR(info->fields[0].name, "image");
    MRT_EQ(info->fields[0].type, MR_TYPE_IMAGE);
    MRT_EQ(info->fields[0].ndim, 0);
    MRT_EQ(info->height + info->width + info->channels, 0);
    MRT_EQ(info->file_count, 1);
    MRT_EQ(info->length_field, MR_NO_FIELD);
    MRT_STR(classes_of(src, text, sizeof text), "dog,ant,cat");
    MRT_HAS(info->told, "left out are the fields weight (");
    same_set(src, 0, "photos.mrec", 0, 0.7);
    same_set(src, 1, "a folder", 5, 0.3);
    MRT_EQ(mr_source_check(src, NULL), MR_OK);
    mr_source_close(src);

    src = open_mix("millrace mix 1\n1 a folder\n3 photos.mrec\n4 photos.mrec\n"); /* the other way round */
    MRT_STR(classes_of(src, text, sizeof text), "cat,dog,ant");
    MRT_EQ(mr_source_info_of(src)->file_count, 2);
    same_set(src, 0, "a folder", 0, 0.125);
    same_set(src, 1, "photos.mrec", 4, 0.375);
    same_set(src, 2, "photos.mrec", 9, 0.5);
    mr_source_close(src);
}

static void labels_without_names_stay(void **state)
{
    (void)state;
    mr_source *src = open_mix("millrace mix 1\n2 idx\n2 plain.mrec\n");
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->class_count, 7);
    MRT_TRUE(info->class_names == NULL);
    MRT_EQ(info->height, H);
    MRT_EQ(info->width, W);
    MRT_EQ(info->channels, 1);
    MRT_EQ(info->fields[0].type, MR_TYPE_PIXELS);
    MRT_EQ(info->fields[0].ndim, 3);
    same_set(src, 0, "idx", 0, 0.5);
    same_set(src, 1, "plain.mrec", 6, 0.5);
    MRT_EQ(info->file_count, info->mix[0].count ? 2 : 0);
    mr_source_close(src);
}

static void sizes_add_up(void **state)
{
    (void)state;
    mr_source *src = open_mix("millrace mix 1\n1 a folder\n1 photos.mrec\n"), *a = open_set("a folder"),
              *b = open_set("photos.mrec");
    const mr_source_info *info = mr_source_info_of(src), *ia = mr_source_info_of(a),
                         *ib = mr_source_info_of(b);
    MRT_EQ(info->total_bytes, ia->total_bytes + ib->total_bytes);
    MRT_EQ(info->max_extent_bytes,
           ia->max_extent_bytes > ib->max_extent_bytes ? ia->max_extent_bytes : ib->max_extent_bytes);
    MRT_TRUE(info->memory_bytes > ia->memory_bytes + ib->memory_bytes);
    mr_source_close(a);
    mr_source_close(b);
    mr_source_close(src);
}

static uint64_t print_of(const char *text)
{
    mr_source *src = open_mix(text);
    const uint64_t print = mr_source_info_of(src)->fingerprint;
    mr_source_close(src);
    return print;
}

static void fingerprints_tell_mixes_apart(void **state)
{
    (void)state;
    const uint64_t one = print_of("millrace mix 1\n0.7 photos.mrec\n0.3 a folder\n");
    MRT_TRUE(one == print_of("millrace mix 1\n7 photos.mrec\n3 a folder\n"));
    MRT_TRUE(one != print_of("millrace mix 1\n6 photos.mrec\n4 a folder\n"));
    MRT_TRUE(one != print_of("millrace mix 1\n3 a folder\n7 photos.mrec\n"));
    MRT_TRUE(one != print_of("millrace mix 1\n7 photos.mrec\n"));
}

static void other_numbers_of_classes(void **state)
{
    (void)state;
    static const char *const asked[] = {"ant", "bee", "cat", "dog"};
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    int64_t label;
    mr_source_defaults(&cfg);
    cfg.class_names = asked;
    cfg.class_count = 4;
    MRT_OK(open_by("millrace mix 1\n1 a folder\n1 photos.mrec\n", &cfg, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->class_count, 4);
    same_set(src, 0, "a folder", 0, 0.5);
    same_set(src, 1, "photos.mrec", 4, 0.5);
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    MRT_EQ(label, 2);
    mr_source_close(src);
}

static void settings_go_to_the_sets(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.classes = MR_CLASSES_NONE;
    MRT_OK(open_by("millrace mix 1\n1 a folder\n2 a folder\n", &cfg, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->class_count, 0);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_EQ(mr_source_info_of(src)->field_count, 1);
    MRT_EQ(mr_source_info_of(src)->file_count, 0);
    mr_source_close(src);
    MRT_EQ(open_by("millrace mix 1\n1 photos.mrec\n2 a folder\n", &cfg, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "expected labels in all data sets of a mix or in none");
    MRT_HAS(err.text, "photos.mrec (line 2) has them");
    MRT_HAS(err.text, "a folder (line 3) lacks them");
    mr_source_defaults(&cfg);
    cfg.split = MR_SPLIT_TEST;
    MRT_EQ(open_by("millrace mix 1\n1 photos.mrec\n", &cfg, &src, &err), MR_ENOENT);
    MRT_HAS(err.text, "no test part");
    mr_source_defaults(&cfg);
    cfg.memory_bytes = 100;
    MRT_EQ(open_by("millrace mix 1\n1 a folder\n", &cfg, &src, &err), MR_ELIMIT);
    mr_source_defaults(&cfg);
    cfg.image_key = "picture";
    MRT_EQ(open_by("millrace mix 1\n1 photos.mrec\n", &cfg, &src, &err), MR_EINVAL);
    MRT_HAS(err.text, "line 2 of ");
    MRT_HAS(err.file, "photos.mrec");
}

/* Samples that are taken keep their order, so each set stays in one piece. */
static void some_of_the_samples(void **state)
{
    (void)state;
    static const char text[] = "millrace mix 1\n1 plain.mrec\n3 idx\n3 plain.mrec\n";
    mr_source *all = open_mix(text), *src;
    mr_source_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.take_to = 0.5;
    MRT_OK(open_by(text, &cfg, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    uint64_t at = 0;
    MRT_EQ(info->count, 10);
    for (uint32_t k = 0; k < info->mix_count; k++) {
        const mr_mix_set *set = &info->mix[k], *whole = &mr_source_info_of(all)->mix[k];
        MRT_EQ(set->first, at);
        MRT_TRUE(set->count > 0 && set->count <= whole->count && set->share == whole->share);
        for (uint64_t i = 0; i < set->count; i++, at++) {
            const uint64_t number = src->choice.number[at];
            MRT_TRUE(number >= whole->first && number < whole->first + whole->count);
            same_sample(src, at, all, number);
        }
    }
    MRT_EQ(at, info->count);
    mr_source_close(src);
    cfg.take_to = 0.06; /* one of them */
    MRT_EQ(open_by(text, &cfg, &src, &err), MR_EINVAL);
    MRT_HAS(err.text, "that takes no sample of ");
    mr_source_close(all);
}

/* ---- texts ---- */
static void what_a_text_may_look_like(void **state)
{
    (void)state;
    mr_source *src = open_mix("millrace mix 1\r\n\r\n# 5 nothing\r\n \t\r\n1e0\t  a folder \t\r\n"
                              "  .5 photos.mrec");
    MRT_EQ(mr_source_info_of(src)->mix_count, 2);
    same_set(src, 0, "a folder", 0, 2.0 / 3);
    same_set(src, 1, "photos.mrec", 4, 1.0 / 3);
    mr_source_close(src);
    char text[600];
    snprintf(text, sizeof text, "millrace mix 1\n1 %s\n", mrt_path("photos.mrec"));
    src = open_mix(text);
    same_set(src, 0, "photos.mrec", 0, 1);
    mr_source_close(src);
}

/* Folders, which share no files, and record files in turns: each sample is found in its set. */
static void a_hundred_sets(void **state)
{
    (void)state;
    char text[4096] = "millrace mix 1\n";
    for (int k = 0; k < 100; k++) strcat(text, k % 3 ? "1 photos.mrec\n" : "1 a folder\n");
    mr_source *src = open_mix(text), *one[2] = {open_mix("millrace mix 1\n1 a folder\n"),
                                                open_mix("millrace mix 1\n1 photos.mrec\n")};
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->mix_count, 100);
    for (uint32_t k = 0; k < 100; k++) {
        const mr_source *own = one[k % 3 != 0];
        MRT_EQ(info->mix[k].count, mr_source_info_of(own)->count);
        for (uint64_t i = 0; i < info->mix[k].count; i++) {
            char found[4096], expected[4096];
            int64_t label, its;
            MRT_OK(mr_source_label(src, info->mix[k].first + i, &label), NULL);
            MRT_OK(mr_source_label(own, i, &its), NULL);
            assert_string_equal(mr_source_sample_path(src, info->mix[k].first + i, found, sizeof found),
                                mr_source_sample_path(own, i, expected, sizeof expected));
            mr_extent e, want;
            MRT_OK(mr_source_extent(src, info->mix[k].first + i, &e, NULL), NULL);
            MRT_OK(mr_source_extent(own, i, &want, NULL), NULL);
            MRT_EQ(e.offset, want.offset);
            MRT_EQ(e.bytes, want.bytes);
        }
    }
    mr_source_close(src);
    mr_source_close(one[0]);
    mr_source_close(one[1]);
}

static void wrong_lines(void **state)
{
    (void)state;
    static const char one[] = "1 photos.mrec\n";
    static char text[32 * MRI_MIX_MOST] = "millrace mix 1\n";
    wrong("millrace mix 2\n1 photos.mrec\n", MR_EFORMAT,
          "line 1: expected \"millrace mix 1\", found \"millrace mix 2\"", "mix.txt");
    wrong("millrace mix 1 \n1 photos.mrec\n", MR_EFORMAT, "line 1: expected", "mix.txt");
    wrong("millrace mix 1\n", MR_EFORMAT, "expected a line with a share and a path, found none", "mix.txt");
    wrong("millrace mix 1", MR_EFORMAT, "expected a line with a share and a path, found none", "mix.txt");
    wrong("millrace mix 1\n\nphotos.mrec\n", MR_EFORMAT, "line 3: expected a share", "mix.txt");
    static const char *const no_shares[] = {"0",      "-1",    "nan", "inf", "0x10", "1e400",
                                            "1e-400", "1.2.3", "1,5", "e",   "1e10"};
    for (size_t k = 0; k < sizeof no_shares / sizeof *no_shares; k++) {
        snprintf(text, sizeof text, "millrace mix 1\n%s photos.mrec\n", no_shares[k]);
        wrong(text, MR_EFORMAT, "line 2: expected ", "mix.txt");
        MRT_HAS(text, no_shares[k]);
    }
    wrong("millrace mix 1\n1\n", MR_EFORMAT, "line 2: expected blanks and a path", "mix.txt");
    wrong("millrace mix 1\n1photos.mrec\n", MR_EFORMAT, "found \"1photos.mrec\"", "mix.txt");
    snprintf(text, sizeof text, "millrace mix 1\n");
    for (int k = 0; k <= MRI_MIX_MOST; k++) strcat(text, one);
    wrong(text, MR_EFORMAT, "line 1026: expected at most 1024 data sets", "mix.txt");
    mri_mix_file f;
    mr_error err = MR_ERROR_INIT;
    mrt_write_file(mrt_path("zero"), "millrace mix 1\n1 a\0b\n", 22);
    MRT_EQ(mri_mix_file_read(&f, mrt_path("zero"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "zero byte");
    MRT_TRUE(f.text == NULL && f.count == 0);
    MRT_EQ(mri_mix_file_read(&f, mrt_path("nowhere"), &err), MR_ENOENT);
    const int size = truncate(mrt_path("zero"), 2 << 20);
    MRT_EQ(size, 0);
    MRT_EQ(mri_mix_file_read(&f, mrt_path("zero"), &err), MR_ELIMIT);
}

static void sets_that_do_not_go_together(void **state)
{
    (void)state;
    wrong("millrace mix 1\n1 photos.mrec\n1 gone.mrec\n", MR_ENOENT, "; line 3 of ", "gone.mrec");
    wrong("millrace mix 1\n1 idx\n1 photos.mrec\n", MR_EFORMAT,
          "expected names of classes in all data sets of a mix or in none", "mix.txt");
    wrong("millrace mix 1\n1 mix.txt\n", MR_EUNSUPPORTED, "a mix is no part of another one", "mix.txt");
    make_records("none.mrec", cat_dog, 2, 0);
    wrong("millrace mix 1\n1 photos.mrec\n1 none.mrec\n", MR_EFORMAT, "the data set holds no samples",
          "none.mrec");
    static const char rows[] = "a,b\n";
    mrt_write_file(mrt_path("text.txt"), rows, sizeof rows - 1);
    wrong("millrace mix 1\n1 text.txt\n", MR_EUNSUPPORTED, "line 2 of ", "text.txt");
}

/* A fault of a sample names it by its number in the mix, and by the file and offset where it lies. */
static void damage_is_placed(void **state)
{
    (void)state;
    size_t bytes, room = 0;
    void *buffer = NULL;
    mr_sample s;
    mr_extent e;
    mr_error err = MR_ERROR_INIT;
    make_sets();
    uint8_t *whole = mrt_read_file(mrt_path("photos.mrec"), &bytes);
    mr_source *set = open_set("photos.mrec");
    MRT_OK(mr_source_extent(set, 2, &e, &err), &err);
    mr_source_close(set);
    whole[e.offset + e.bytes - 1] ^= 1;
    whole[e.offset + e.bytes / 2] ^= 1;
    mrt_write_file(mrt_path("damaged.mrec"), whole, bytes);
    free(whole);
    make_folder("lost", cat_dog, 1);
    mr_source *src = open_mix("millrace mix 1\n1 lost\n1 damaged.mrec\n1 lost\n");
    const int rc = mr_source_read(src, 4, &buffer, &room, &s, &err);
    MRT_TRUE(rc == MR_ECHECKSUM || rc == MR_EFORMAT);
    MRT_EQ(err.sample, 4);
    MRT_HAS(err.file, "damaged.mrec");
    MRT_TRUE(err.offset != MR_NOWHERE);
    MRT_OK(mr_source_read(src, 5, &buffer, &room, &s, &err), &err);
    unlink(mrt_path("lost/dog/0.jpg"));
    MRT_EQ(mr_source_read(src, 8, &buffer, &room, &s, &err), MR_ENOENT);
    MRT_EQ(err.sample, 8);
    MRT_HAS(err.file, "lost/dog/0.jpg");
    MRT_EQ(mr_source_read(src, 9, &buffer, &room, &s, &err), MR_EINVAL);
    free(buffer);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    make_sets();
    static const char *const texts[] = {"millrace mix 1\n1 a folder\n2 photos.mrec\n",
                                        "millrace mix 1\n1 idx\n2 plain.mrec\n"};
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    for (int k = 0; k < 4; k++)
        for (long n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            mr_source *src = (mr_source *)&cfg;
            const char *path = put_mix(texts[k % 2]);
            cfg.take_to = k < 2 ? 1 : 0.8;
            mrt_fail_alloc_at(n);
            const int rc = mr_source_open(&src, path, &cfg, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_merged_by_name),
        cmocka_unit_test(labels_without_names_stay),
        cmocka_unit_test(sizes_add_up),
        cmocka_unit_test(fingerprints_tell_mixes_apart),
        cmocka_unit_test(other_numbers_of_classes),
        cmocka_unit_test(settings_go_to_the_sets),
        cmocka_unit_test(some_of_the_samples),
        cmocka_unit_test(what_a_text_may_look_like),
        cmocka_unit_test(a_hundred_sets),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(sets_that_do_not_go_together),
        cmocka_unit_test(damage_is_placed),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}

/* tests/fuzz/sets/fuzz_mix.c: hostile text that names the data sets of a mix. Next to it are a.mrec and
 * b.mrec with named classes in another order, and c.mrec without names. Input: the text after its first
 * words, and all of it where it begins with them. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/mix/mix_file.h"
#include "tests/fuzz/fuzz_source.h"

enum { MOST = 64 << 10, TEXT_MOST = 4096, SETS = 40 << 20 /* of sets that are named often */ };
static const char first_line[] = "millrace mix 1\n";

typedef struct made {
    uint8_t bytes[MOST];
    ssize_t size;
} made;

/* Three samples, as the writer writes them, through a file on disk, once. */
static void make(made *m, const char *const *names)
{
    char folder[] = "/tmp/millrace-fuzz-XXXXXX", path[64];
    const mr_field fields[] = {{.name = "label", .type = MR_TYPE_INT},
                               {.name = "image", .type = MR_TYPE_PIXELS}};
    const uint8_t pixels[4] = {1, 2, 3, 4};
    mr_writer_config cfg;
    mr_writer *w;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    cfg.class_names = names;
    cfg.class_count = names ? 2 : 0;
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/x.mrec", folder);
    if (mr_writer_open(&w, path, &cfg, NULL, NULL) != MR_OK) abort();
    for (uint64_t k = 0; k < 3; k++) {
        const mr_value v[] = {
            {.type = MR_TYPE_INT, .i = (int64_t)k % 2},
            {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 1}, .data = pixels, .bytes = sizeof pixels}};
        if (mr_writer_append(w, k, v, NULL) != MR_OK) abort();
    }
    if (mr_writer_finish(w, NULL) != MR_OK) abort();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    m->size = pread(fd, m->bytes, sizeof m->bytes, 0);
    if (fd < 0 || m->size <= 0 || m->size == MOST) abort();
    close(fd);
    unlink(path);
    rmdir(folder);
}

/* Accepted files keep the promises of mix_file.h. */
static void check(const mri_mix_file *f)
{
    double all = 0;
    if (f->count < 1 || f->count > MRI_MIX_MOST) abort();
    for (uint32_t k = 0; k < f->count; k++) {
        const mri_mix_line *one = &f->set[k];
        if (!(one->share > 0 && one->share <= 1) || !one->path[0] || strpbrk(one->path, "\n")) abort();
        if (strchr(" \t", one->path[0]) || one->line < 2 || (k && one->line <= f->set[k - 1].line)) abort();
        all += one->share;
    }
    if (all < 1 - 1e-9 || all > 1 + 1e-9) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const classes[] = {"cat", "dog", "cat"};
    static made a, b, c;
    static char text[TEXT_MOST + sizeof first_line];
    if (a.size == 0) {
        make(&a, classes);
        make(&b, classes + 1);
        make(&c, NULL);
    }
    if (bytes > TEXT_MOST) return 0;
    const size_t head = mri_mix_magic(data, bytes) ? 0 : sizeof first_line - 1;
    memcpy(text, first_line, head);
    if (bytes) memcpy(text + head, data, bytes);
    mrt_fuzz_begin(head + bytes + (size_t)a.size, FUZZ_DECLARED + SETS);
    const char *path = mrt_fuzz_file("mix", text, head + bytes);
    mrt_fuzz_file("a.mrec", a.bytes, (size_t)a.size);
    mrt_fuzz_file("b.mrec", b.bytes, (size_t)b.size);
    mrt_fuzz_file("c.mrec", c.bytes, (size_t)c.size);
    mri_mix_file f;
    mr_error err = MR_ERROR_INIT;
    if (mri_mix_file_read(&f, path, &err) == MR_OK) {
        bool near = true; /* no servers, and nothing else of this machine */
        check(&f);
        for (uint32_t k = 0; k < f.count; k++) near &= !strchr(f.set[k].path, '/');
        mri_mix_file_fini(&f);
        if (near) fuzz_open_format(path, "mix", NULL);
    } else if (!err.text[0] || f.text || f.count) abort();
    mrt_fuzz_end();
    return 0;
}

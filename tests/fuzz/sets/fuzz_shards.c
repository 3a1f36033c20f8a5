/* tests/fuzz/sets/fuzz_shards.c: a hostile list of record files. Next to it are a.mrec, b.mrec with three
 * records and c.mrec of another schema. Input: the list after its first line; of version 2 where it begins
 * with "set ", its fingerprint and checksum made right. Each is opened with all files at once, and with room
 * for two. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/record/shards.h"
#include "formats/storage/open_pool.h"
#include "tests/fuzz/fuzz_source.h"

enum { MOST = 64 << 10 };
static const char first_line[] = "millrace shards 1\n";
enum { VERSION_AT = sizeof first_line - 3, CACHES = 8 << 20 }; /* CACHES: pages of indexes */

typedef struct made {
    uint8_t bytes[MOST];
    ssize_t size;
} made;

/* As the writer writes it, through a file on disk, once. */
static void make(made *m, const char *second_field)
{
    char folder[] = "/tmp/millrace-fuzz-XXXXXX", path[64];
    mr_field fields[] = {{.name = "label", .type = MR_TYPE_INT}, {.type = MR_TYPE_TEXT}};
    mr_writer_config cfg;
    mr_writer *w;
    mr_writer_defaults(&cfg);
    snprintf(fields[1].name, sizeof fields[1].name, "%s", second_field);
    cfg.fields = fields;
    cfg.field_count = 2;
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/x.mrec", folder);
    if (mr_writer_open(&w, path, &cfg, NULL, NULL) != MR_OK) abort();
    for (uint64_t k = 0; k < 3; k++) {
        const mr_value v[] = {{.type = MR_TYPE_INT, .i = (int64_t)k},
                              {.type = MR_TYPE_TEXT, .data = "word", .bytes = 4}};
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

/* Over the digits that stand there, if they do. */
static void put_hex(char *at, const char *end, const char *format, uint64_t value)
{
    char digits[17];
    const int count = snprintf(digits, sizeof digits, format, value);
    if (at && end - at >= count) memcpy(at, digits, (size_t)count);
}

/* list: text with a zero byte after it. */
static void make_right(char *list, size_t size)
{
    static const char set[] = "set fingerprint ", sum[] = " checksum ";
    char *const end = list + size, *const facts = list + sizeof first_line - 1;
    mri_shard_facts f;
    mri_shard_facts_init(&f);
    char *last = facts;
    for (char *line = strchr(facts, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char *at = line + 1;
        last = at;
        if (strncmp(at, "end ", 4) == 0) break;
        strtoull(at, &at, 10);
        strtoull(at, &at, 10);
        f.fingerprint = mri_shard_facts_print(f.fingerprint, strtoull(at, NULL, 16));
    }
    if ((size_t)(end - facts) > sizeof set)
        put_hex(facts + sizeof set - 1, end, "%016" PRIx64, f.fingerprint);
    char *const digits = strstr(last, sum);
    if (digits)
        put_hex(digits + sizeof sum - 1, end, "%08" PRIx64, mr_crc32c(0, list, (size_t)(last - list)));
}

/* Leaves little room for files: two of a list of more. */
static void open_few(const char *path)
{
    uint32_t taken = 0;
    for (int k = 0; k < 16; k++) taken += mri_open_allow(UINT32_MAX);
    fuzz_open_format(path, "shards", NULL);
    mri_open_give_back(taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static made same, other;
    static char list[4096 + sizeof first_line];
    if (same.size == 0) {
        make(&same, "text");
        make(&other, "words");
    }
    if (bytes > 4096) return 0;
    memcpy(list, first_line, sizeof first_line - 1);
    if (bytes) memcpy(list + sizeof first_line - 1, data, bytes);
    const size_t size = sizeof first_line - 1 + bytes;
    list[size] = '\0';
    if (bytes >= 4 && memcmp(data, "set ", 4) == 0) {
        list[VERSION_AT] = '2';
        make_right(list, size);
    }
    mrt_fuzz_begin(size + (size_t)same.size, FUZZ_DECLARED + CACHES);
    const char *path = mrt_fuzz_file("list", list, size);
    mrt_fuzz_file("a.mrec", same.bytes, (size_t)same.size);
    mrt_fuzz_file("b.mrec", same.bytes, (size_t)same.size);
    mrt_fuzz_file("c.mrec", other.bytes, (size_t)other.size);
    mri_shards s;
    mr_error err = MR_ERROR_INIT;
    if (mri_shards_read(&s, path, &err) == MR_OK) {
        if (s.count == 0) abort();
        mri_shards_fini(&s);
        fuzz_open_format(path, "shards", NULL);
        open_few(path);
    } else if (!err.text[0]) abort();
    mrt_fuzz_end();
    return 0;
}

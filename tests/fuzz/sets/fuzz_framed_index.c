/* tests/fuzz/sets/fuzz_framed_index.c: the kept index (NAME.mridx) of a TFRecord, tar or RecordIO file,
 * changed by somebody who can compute its checksum.
 *
 * Input: a byte for the format, then changes to the index the library wrote: u16 place, one byte count, so
 * many bytes for that place; a place at the end makes it longer. Bit 7 of the first byte: the rest stands
 * in place of all after the head. Checksums of head, note and pages are then made right. */
#include <stdio.h>

#include "base/util.h"
#include "formats/fileset/entries.h"
#include "formats/recordio/recordio.h"
#include "formats/tar/tar.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "tests/fuzz/fuzz_source.h"

enum {
    FORMATS = 3,
    MOST = 4 * 4096,
    FIELDS = 40 /* where counts begin */,
    HEAD = 4096 /* of the index of one file */
};

static const struct {
    const char *format, *name;
} sets[FORMATS] = {{"tfrecord", "x.tfrecord"}, {"tar", "x.tar"}, {"recordio", "x.rec"}};

static struct base {
    uint8_t file[8192], index[MOST];
    size_t file_bytes, index_bytes;
} bases[FORMATS];

static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff, 0xd9};

/* ---- three small data sets ---- */
static void put_example(struct base *b, int64_t label)
{
    static const float place[] = {0.25f, 0.5f};
    static const char name[] = "cat";
    mri_example_builder e = {0};
    mri_span s;
    mri_example_restart(&e);
    mri_example_add_bytes(&e, "image/encoded", jpeg, sizeof jpeg);
    mri_example_add_ints(&e, "image/class/label", &label, 1);
    mri_example_add_bytes(&e, "image/class/text", name, (size_t)label + 1);
    mri_example_add_floats(&e, "image/object/bbox/xmin", place, 2);
    mri_example_add_floats(&e, "image/object/bbox/ymin", place, 2);
    mri_example_add_floats(&e, "image/object/bbox/xmax", place, 2);
    mri_example_add_floats(&e, "image/object/bbox/ymax", place, 2);
    if (mri_example_finish(&e, &s, NULL) != MR_OK) abort();
    uint8_t *p = b->file + b->file_bytes;
    mri_tfrecord_put_head(p, s.bytes);
    memcpy(p + MRI_TFRECORD_HEAD, s.data, s.bytes);
    mri_tfrecord_put_tail(p + MRI_TFRECORD_HEAD + s.bytes, s.data, s.bytes);
    b->file_bytes += MRI_TFRECORD_HEAD + s.bytes + MRI_TFRECORD_TAIL;
    mri_example_fini(&e);
}

static void put_member(struct base *b, const char *name, const void *data, size_t bytes)
{
    size_t used;
    if (mri_tar_head_write(name, bytes, b->file + b->file_bytes, sizeof b->file - b->file_bytes, &used,
                           NULL) != MR_OK)
        abort();
    memcpy(b->file + b->file_bytes + used, data, bytes);
    b->file_bytes += used + MRI_TAR_BLOCK;
}

static void put_picture(struct base *b, float label)
{
    uint8_t record[MRI_PICTURE_HEAD_BYTES + sizeof jpeg];
    memcpy(mri_picture_head_build(&(mri_picture_head){.label = label}, NULL, record), jpeg, sizeof jpeg);
    b->file_bytes = (size_t)(mri_recordio_build(record, sizeof record, b->file + b->file_bytes) - b->file);
}

static void make_files(void)
{
    for (int64_t k = 0; k < 3; k++) {
        put_example(&bases[0], k);
        put_picture(&bases[2], (float)k);
    }
    put_member(&bases[1], "__classes__", "ant\nbee\n", 8);
    put_member(&bases[1], "a.jpg", jpeg, sizeof jpeg);
    put_member(&bases[1], "a.cls", "1", 1);
    put_member(&bases[1], "a.txt", "words", 5);
    put_member(&bases[1], "b.jpg", jpeg, sizeof jpeg);
    put_member(&bases[1], "b.cls", "0", 1);
    bases[1].file_bytes += MRI_TAR_END;
}

/* ---- their indexes ---- */
static mr_source_config config(int at)
{
    mr_source_config cfg = fuzz_config(sets[at].format, NULL);
    cfg.no_index_file = false;
    cfg.index_folder = MRT_FUZZ_FOLDER;
    return cfg;
}

static void keep(int at)
{
    struct base *b = &bases[at];
    const mr_source_config cfg = config(at);
    char name[64];
    mrt_fuzz_begin(b->file_bytes, FUZZ_DECLARED);
    if (fuzz_open(mrt_fuzz_file(sets[at].name, b->file, b->file_bytes), &cfg) != MR_OK) abort();
    snprintf(name, sizeof name, ".%s.mridx", sets[at].name);
    b->index_bytes = mrt_fuzz_read(name, b->index, sizeof b->index);
    mrt_fuzz_end();
    if (b->index_bytes <= HEAD || b->index_bytes > sizeof b->index) abort(); /* it was written */
}

static void prepare(void)
{
    if (bases[0].file_bytes) return;
    make_files();
    for (int k = 0; k < FORMATS; k++) keep(k);
}

/* ---- a changed one ---- */
static size_t change(uint8_t *index, size_t size, const uint8_t *data, size_t bytes)
{
    while (bytes >= 3) {
        size_t at = FIELDS + (data[0] | (size_t)data[1] << 8) % (MOST - FIELDS), n = data[2];
        data += 3;
        bytes -= 3;
        if (n > bytes) n = bytes;
        if (at > size) at = size;
        if (n > MOST - at) n = MOST - at;
        memcpy(index + at, data, n);
        if (at + n > size) size = at + n;
        data += n;
        bytes -= n;
    }
    return size;
}

/* As an attacker would who forges valid checksums. */
static void make_checksums(uint8_t *index, size_t size)
{
    const uint64_t pages = mri_entries_pages(mri_le64(index + FIELDS));
    uint32_t crc = mr_crc32c(0, index + 12, HEAD - 12);
    for (uint64_t k = 0; k < pages && HEAD + (k + 1) * MRI_ENTRY_PAGE <= size; k++) {
        uint8_t *page = index + HEAD + k * MRI_ENTRY_PAGE;
        mri_put_le32(page, mr_crc32c(0, page + 4, MRI_ENTRY_PAGE - 4));
    }
    if (pages < MOST && HEAD + pages * MRI_ENTRY_PAGE <= size)
        crc = mr_crc32c(crc, index + HEAD + pages * MRI_ENTRY_PAGE, size - HEAD - pages * MRI_ENTRY_PAGE);
    mri_put_le32(index + 8, crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t index[MOST];
    prepare();
    if (bytes < 1) return 0;
    const int mode = *data++, at = (mode & 0x7f) % FORMATS;
    const struct base *b = &bases[at];
    bytes--;
    size_t size = b->index_bytes;
    memcpy(index, b->index, size);
    if (mode & 0x80 && bytes > 24) { /* the first 24 bytes: count, files, labels, note */
        memcpy(index + FIELDS, data, 24);
        size = HEAD + (bytes - 24 < MOST - HEAD ? bytes - 24 : MOST - HEAD);
        memcpy(index + HEAD, data + 24, size - HEAD);
    } else size = change(index, size, data, bytes);
    make_checksums(index, size);
    char name[64];
    const mr_source_config cfg = config(at);
    fuzz_labels_are_hints = true; /* the labels of the index are unchecked */
    snprintf(name, sizeof name, ".%s.mridx", sets[at].name);
    mrt_fuzz_begin(b->file_bytes + size, FUZZ_DECLARED);
    const char *path = mrt_fuzz_file(sets[at].name, b->file, b->file_bytes);
    mrt_fuzz_file(name, index, size);
    fuzz_open(path, &cfg);
    mrt_fuzz_end();
    return 0;
}

/* bad_containers FOLDER: TFRecord, tar and RecordIO files with one thing wrong each, FOLDER/NAME, and a line
 * on stdout for each:
 *
 *   NAME TAB the defect TAB offset or "-" TAB words of the message
 *
 *   file    all of it: nothing can be read        sample  the second of three samples
 *   odd     nothing, but something is said         good    nothing */
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/recordio/recordio.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "tests/formats/tar/mrt_tar.h"
#include "tests/pipeline/decode/odd.h"

static const char *folder;

typedef struct buffer {
    uint8_t *data;
    size_t bytes;
} buffer;

static buffer file; /* the one being made */
static size_t last; /* where its last record begins */
static mrt_odd jpeg;

static void add(const void *data, size_t bytes)
{
    file.data = realloc(file.data, file.bytes + bytes + 1);
    if (!file.data) exit(1);
    if (bytes) memcpy(file.data + file.bytes, data, bytes);
    file.bytes += bytes;
}

static void restart(void) { file.bytes = last = 0; }

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wbe");
    if (!f || (bytes && fwrite(data, 1, bytes, f) != bytes) || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void save(const char *name, const char *what, long long offset, const char *words)
{
    write_file(name, file.data, file.bytes);
    if (offset < 0) printf("%s\t%s\t-\t%s\n", name, what, words);
    else printf("%s\t%s\t%lld\t%s\n", name, what, offset, words);
}

/* cut: bytes that are left out at the end. */
static void pack(size_t from, size_t to, size_t cut)
{
    const size_t room = 2 * (to - from) + 4096;
    uint8_t *out = malloc(room);
    struct isal_zstream z;
    isal_deflate_stateless_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = file.data + from;
    z.avail_in = (uint32_t)(to - from);
    z.next_out = out;
    z.avail_out = (uint32_t)room;
    if (!out || isal_deflate_stateless(&z) != COMP_OK) exit(1);
    add(out, z.total_out - cut);
    free(out);
}

/* What has been made becomes gzip: one member, or two, or less than one. */
static void packed(size_t split, size_t cut)
{
    const size_t all = file.bytes;
    if (split) pack(0, split, 0);
    pack(split, all, cut);
    memmove(file.data, file.data + all, file.bytes - all);
    file.bytes -= all;
}

/* ---- TFRecord ---- */

static void record(const void *data, size_t bytes)
{
    uint8_t head[MRI_TFRECORD_HEAD], tail[MRI_TFRECORD_TAIL];
    last = file.bytes;
    mri_tfrecord_put_head(head, bytes);
    mri_tfrecord_put_tail(tail, data, bytes);
    add(head, sizeof head);
    add(data, bytes);
    add(tail, sizeof tail);
}

/* key NULL: no picture; count of labels. */
static void example(const char *key, const void *picture, size_t bytes, const int64_t *labels, size_t count)
{
    static mri_example_builder b;
    mri_span e;
    mri_example_restart(&b);
    if (key) mri_example_add_bytes(&b, key, picture, bytes);
    if (labels) mri_example_add_ints(&b, "image/class/label", labels, count);
    if (mri_example_finish(&b, &e, NULL) != MR_OK) exit(1);
    record(e.data, e.bytes);
}

static void labelled(int64_t label) { example("image/encoded", jpeg.data, jpeg.bytes, &label, 1); }

static void begin(void)
{
    restart();
    labelled(0);
}

static void bad_example(const char *name, const char *words)
{
    const size_t offset = last;
    labelled(2);
    save(name, "sample", (long long)offset, words);
}

static void bad_label(const char *name, const int64_t *labels, size_t count, const char *words)
{
    begin();
    example("image/encoded", jpeg.data, jpeg.bytes, labels, count);
    bad_example(name, words);
}

static void tfrecord_samples(void)
{
    begin();
    labelled(1);
    file.data[last + 40] ^= 1;
    bad_example("sum.tfrecord", "checksum of the record's data does not match");
    begin();
    example("picture", jpeg.data, jpeg.bytes, &(int64_t){1}, 1);
    bad_example("no-image.tfrecord", "no feature \"image/encoded\" in this record; found: picture (bytes), "
                                     "image/class/label (whole numbers)");
    bad_label("label-missing.tfrecord", NULL, 0, "no feature \"image/class/label\" in this record");
    bad_label("label-negative.tfrecord", (const int64_t[]){-1}, 1,
              "expected a label from 0 to 16777215, found -1");
    bad_label("label-2-40.tfrecord", (const int64_t[]){(int64_t)1 << 40}, 1,
              "expected a label from 0 to 16777215, found 1099511627776");
    bad_label("label-list.tfrecord", (const int64_t[]){0, 1}, 2, "expected one number, found a list of 2");
    begin();
    record("\x0a\2\x0a\0\x12\0", 6);
    bad_example("one-sequence.tfrecord", "found a SequenceExample");
    begin();
    record("\x08\x96\1\x12\4text", 9);
    bad_example("one-foreign.tfrecord", "no tf.train.Example: its first field is no message");
    begin();
    example("image/encoded", "8BPS........", 12, &(int64_t){1}, 1);
    bad_example(
        "psd.tfrecord",
        "12 bytes that are no picture that is decoded (a Photoshop picture: convert it to JPEG or PNG)");
    begin();
    example("image/encoded", jpeg.data, jpeg.bytes / 2, &(int64_t){1}, 1);
    last += MRI_TFRECORD_HEAD; /* of its picture's record the data are wrong */
    bad_example("picture-cut.tfrecord", "no end marker (EOI)");
}

static void bad_length(const char *name, uint64_t bytes, const char *words)
{
    begin();
    labelled(1);
    mri_tfrecord_put_head(file.data + last, bytes); /* with a good checksum */
    save(name, "file", (long long)last, words);
}

static void tfrecord_files(void)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
                      page[] = "<!DOCTYPE html><html></html>\n";
    begin();
    labelled(1);
    file.data[last + 2] ^= 1;
    save("length-sum.tfrecord", "file", (long long)last, "checksum of a record's length does not match");
    bad_length("length-lie.tfrecord", 500000, "a record of 500000 bytes, but the file has no more than");
    bad_length("length-2-63.tfrecord", (uint64_t)1 << 63, "a record of 9223372036854775808 bytes");
    begin();
    labelled(1);
    file.bytes -= 3;
    save("cut.tfrecord", "file", (long long)last, "it was cut short");
    file.bytes = last + 7;
    save("cut-head.tfrecord", "file", (long long)last,
         "ends inside the head of a record: expected 12 bytes, found 7");
    begin();
    labelled(1);
    labelled(2);
    packed(0, 9);
    save("cut.tfrecord.gz", "file", -1, "ends early");
    begin();
    labelled(1);
    const size_t half = file.bytes;
    labelled(2);
    packed(half, 0);
    save("two-members.tfrecord.gz", "good", -1, "");
    restart();
    for (int k = 0; k < 3; k++) record("\x0a\2\x0a\0\x12\0", 6);
    save("sequences.tfrecord", "file", -1, "SequenceExample");
    restart();
    for (int k = 0; k < 3; k++) record("\x08\x96\1\x12\4text", 9);
    save("foreign.tfrecord", "file", -1, "no tf.train.Example");
    restart();
    add(pointer, sizeof pointer - 1);
    save("pointer.tfrecord", "file", -1, "git-lfs pointer");
    save("pointer.tar", "file", -1, "git-lfs pointer");
    save("pointer.rec", "file", -1, "git-lfs pointer");
    restart();
    add(page, sizeof page - 1);
    save("page.tfrecord", "file", -1, "a page of HTML");
    save("page.tar", "file", -1, "a page of HTML");
    save("page.rec", "file", -1, "a page of HTML");
}

/* ---- tar ---- */

static mrt_tar tar;

static void member(const char *key, int label)
{
    char name[300], text[16];
    snprintf(name, sizeof name, "%s.jpg", key);
    mrt_tar_file(&tar, name, jpeg.data, jpeg.bytes);
    snprintf(name, sizeof name, "%s.cls", key);
    snprintf(text, sizeof text, "%d", label);
    if (label >= 0) mrt_tar_text(&tar, name, text);
}

static void begin_tar(void)
{
    mrt_tar_fini(&tar);
    tar = (mrt_tar){0};
    member("a", 0);
}

static void save_tar(const char *name, const char *what, long long offset, const char *words)
{
    restart();
    add(tar.data, tar.bytes);
    save(name, what, offset, words);
}

static void end_tar(const char *name, const char *what, long long offset, const char *words)
{
    if (strcmp(what, "sample") == 0) member("z", 2);
    mrt_tar_end(&tar);
    save_tar(name, what, offset, words);
}

static void tar_samples(void)
{
    begin_tar();
    const long long second = (long long)tar.bytes, picture = (long long)((jpeg.bytes + 511) / 512 + 1) * 512;
    member("b", -1);
    end_tar("no-class.tar", "sample", second, "sample \"b\": expected a class in .cls, found .jpg");
    begin_tar();
    member("b", 1);
    mrt_tar_file(&tar, "b.jpg", jpeg.data, jpeg.bytes);
    end_tar("member-twice.tar", "sample", second + picture + 1536,
            "sample \"b\": expected each member once, found a second .jpg");
    begin_tar();
    mrt_tar_text(&tar, "b.cls", "1");
    mrt_tar_header(&tar, '2', "b.jpg", 0);
    end_tar("picture-link.tar", "sample", second, "a symbolic link without bytes of its own");
    begin_tar();
    member("b", 1);
    mrt_tar_header(&tar, 'S', "b.txt", 0);
    end_tar("sparse.tar", "sample", second + picture + 1536, "sparse file, write the archive without them");
    begin_tar();
    mrt_tar_file(&tar, "b.jpg", "BM not at all", 13);
    mrt_tar_text(&tar, "b.cls", "1");
    end_tar("text.tar", "sample", second + 512, "found text (\"BM not at all\")");
    begin_tar();
    mrt_tar_file(&tar, "b.jpg", jpeg.data, jpeg.bytes);
    mrt_tar_text(&tar, "b.cls", "1099511627776");
    end_tar("label-2-40.tar", "sample", second + picture + 512,
            "expected a label from 0 to 16777215, found 1099511627776");
    begin_tar();
    mrt_tar_file(&tar, "b\n\xff.jpg", jpeg.data, jpeg.bytes);
    end_tar("name.tar", "sample", second, "sample \"b\\x0a\\xff\": expected a class in .cls");
}

static void tar_files(void)
{
    begin_tar();
    mrt_tar_text(&tar, "b.jpg", "12345");
    const size_t header = tar.header;
    tar.bytes = header + 100;
    save_tar("cut-header.tar", "file", (long long)header,
             "expected a header of 512 bytes, found the end of the archive after 100");
    tar.bytes = header + 512 + 4;
    save_tar("cut-member.tar", "file", (long long)header + 516, "member \"b.jpg\": expected 5 bytes");
    begin_tar();
    mrt_tar_text(&tar, "b.jpg", "12345");
    tar.data[tar.header + 200] ^= 1;
    save_tar("sum.tar", "file", (long long)tar.header, "expected a tar header with checksum");
    begin_tar();
    mrt_tar_header(&tar, '0', "b.jpg", 0);
    memcpy(tar.data + tar.header + 124, "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12);
    mrt_tar_sum(&tar);
    save_tar("length-2-63.tar", "file", (long long)tar.header + 124, "2^63");
    begin_tar();
    mrt_tar_end(&tar);
    restart();
    add(tar.data, tar.bytes);
    packed(0, 9);
    save("cut.tar.gz", "file", -1, "ends early");
}

static void tar_odd(void)
{
    begin_tar();
    member("../b", 1);
    end_tar("dots.tar", "odd", -1, "2 names lead out of their folder (first: \"../b.jpg\"");
    begin_tar();
    member("/etc/b", 1);
    end_tar("absolute.tar", "odd", -1, "2 names lead out of their folder (first: \"/etc/b.jpg\"");
    begin_tar();
    member("b", 1);
    mrt_tar_header(&tar, '1', "c.jpg", 0);
    mrt_tar_header(&tar, '2', "lin\nk.jpg", 0);
    mrt_tar_header(&tar, '3', "device", 0);
    end_tar("links.tar", "odd", -1, "3 members that are no files were passed over (first: \"c.jpg\"");
    begin_tar();
    member("b", 1);
    member("a", 2);
    end_tar("not-adjacent.tar", "odd", -1, "1 key comes again (first: \"a\"");
    begin_tar();
    member("b", 1);
    save_tar("no-end.tar", "odd", -1, "1 archive has no end mark");
    begin_tar();
    member("b", 1);
    end_tar("good.tar", "good", -1, "");
}

/* ---- RecordIO ---- */

static uint64_t place[8];
static int places;

static void rec(const void *picture, size_t bytes, float label)
{
    const mri_picture_head h = {.label = label, .id = (uint64_t)places};
    uint8_t *data = malloc(bytes + 64), *out = malloc(2 * bytes + 256);
    uint8_t *at = data ? mri_picture_head_build(&h, NULL, data) : NULL;
    if (!at || !out) exit(1);
    memcpy(at, picture, bytes);
    last = place[places++] = file.bytes;
    add(out, (size_t)(mri_recordio_build(data, (uint32_t)((size_t)(at - data) + bytes), out) - out));
    free(data);
    free(out);
}

static void three_recs(const void *picture, size_t bytes)
{
    restart();
    places = 0;
    rec(jpeg.data, jpeg.bytes, 0);
    rec(picture, bytes, 1);
    rec(jpeg.data, jpeg.bytes, 2);
}

static void beside(const char *name, const char *format, int count)
{
    char text[512];
    size_t at = 0;
    for (int k = 0; k < count; k++) {
        if (*format == 'i')
            at += (size_t)snprintf(text + at, sizeof text - at, "%d\t%llu\n", k,
                                   k < places ? (unsigned long long)place[k] : 1000000);
        else at += (size_t)snprintf(text + at, sizeof text - at, "%d\t%d.0\t%d.jpg\n", k, k, k);
    }
    write_file(name, text, at);
}

static void recordio(void)
{
    three_recs(jpeg.data, jpeg.bytes);
    file.data[place[1]] ^= 0xff;
    save("magic.rec", "file", (long long)place[1], "no record starts here");
    three_recs(jpeg.data, jpeg.bytes);
    mri_put_le32(file.data + place[1] + 4, 0x1fffffff);
    save("length.rec", "file", (long long)place[1] + 4, "a record of 536870911 bytes");
    three_recs(jpeg.data, jpeg.bytes);
    file.bytes -= 40;
    save("cut.rec", "file", (long long)place[2] + 4, "cut short, or the length is damaged");
    three_recs(jpeg.data, jpeg.bytes);
    beside("idx-past.idx", "idx", 4);
    save("idx-past.rec", "file", -1, "lies past the end");
    beside("idx-short.idx", "idx", 2);
    save("idx-short.rec", "file", -1, "expected all records");
    beside("lst-long.lst", "lst", 4); /* reported, and not used */
    save("lst-long.rec", "good", -1, "");
    save("good.rec", "good", -1, "");
    three_recs("8BPS........", 12);
    save("psd.rec", "sample", (long long)place[1],
         "expected a picture, found a Photoshop picture: convert it to JPEG or PNG");
}

int main(int argc, char **argv)
{
    if (argc != 2 || mkdir(argv[1], 0777) != 0) {
        fprintf(stderr, "bad_containers FOLDER, a new one\n");
        return 2;
    }
    folder = argv[1];
    mrt_odd_base(&jpeg);
    tfrecord_samples();
    tfrecord_files();
    tar_samples();
    tar_files();
    tar_odd();
    recordio();
    mrt_odd_free(&jpeg);
    mrt_tar_fini(&tar);
    free(file.data);
    return 0;
}

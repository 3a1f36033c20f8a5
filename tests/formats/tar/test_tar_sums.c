/* Checksums in an archive (__checksums__): two changes in a header that cancel each other in its simple
 * checksum are found, and nothing changed is taken for whole. */
#include "formats/tar/tar_sums.h"

#include <fcntl.h>
#include <unistd.h>

#include "formats/tar/tar_salvage.h"
#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/tar/mrt_tar.h"

enum { SAMPLES = 3, CHECKSUM_FROM = 148, CHECKSUM_TO = 156 };

static mrt_tar archive;
static size_t header[16]; /* offsets */
static uint32_t headers;
static const char path[] = "a.tar";
static int fd = -1;

static void add(mri_tar_sums *s, const char *name, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mrt_tar_text(&archive, name, text);
    header[headers++] = archive.header;
    MRT_OK(mri_tar_sums_add(s, name, archive.header + MRI_TAR_BLOCK, strlen(text),
                            mr_crc32c(0, text, strlen(text)), &err),
           &err);
}

static void add_block(mri_tar_sums *s)
{
    mr_error err = MR_ERROR_INIT;
    const char *text;
    size_t bytes;
    MRT_OK(mri_tar_sums_make(s, archive.bytes, &text, &bytes, &err), &err);
    mrt_tar_file(&archive, s->name, text, bytes);
    header[headers++] = archive.header;
}

/* Names of classes, three samples of two members of one block and more, checksums in two blocks. */
static int fresh(void **state)
{
    (void)state;
    mri_tar_sums s = {0};
    headers = 0;
    add(&s, "__classes__", "cat\ndog\n");
    add(&s, "d/10.jpg", "picture ten, of some forty bytes of text");
    add(&s, "d/10.cls", "0");
    add(&s, "d/12.jpg", "picture twelve");
    add(&s, "d/12.cls", "1");
    add_block(&s);
    add(&s, "d/21.jpg", "picture twenty-one");
    add(&s, "d/21.cls", "0");
    add_block(&s);
    mri_tar_sums_fini(&s);
    mrt_tar_end(&archive);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    MRT_TRUE(fd >= 0);
    MRT_EQ(pwrite(fd, archive.data, archive.bytes, 0), (ssize_t)archive.bytes);
    return 0;
}

static int done(void **state)
{
    (void)state;
    close(fd);
    mrt_tar_fini(&archive);
    return 0;
}

static int check(bool *fit)
{
    mr_error err = MR_ERROR_INIT;
    const int rc = mri_tar_sums_check(fit, fd, path, archive.bytes, &err);
    if (rc) MRT_TRUE(err.text[0] && err.offset != MR_NOWHERE);
    return rc;
}

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    (void)bytes;
    (void)err;
    *out = (const uint8_t *)context + offset;
    return MR_OK;
}

/* Kinds, names and data of all members that a reader takes, as one number. A block of checksums that is still
 * known as one may have another number. */
static uint32_t meaning(const void *data, size_t bytes, uint32_t *files)
{
    static mri_tar t;
    mri_tar_member m;
    uint32_t crc = 0;
    *files = 0;
    mri_tar_init(&t, get, (void *)(uintptr_t)data, 0, bytes);
    while (mri_tar_next(&t, &m, NULL) == MR_OK) {
        if (m.kind != MRI_TAR_FILE || mri_tar_is_sums(m.name)) continue;
        ++*files;
        crc = mr_crc32c(crc, m.name, m.name_bytes + 1);
        crc = mr_crc32c(crc, (const uint8_t *)data + m.data, (size_t)m.bytes);
    }
    return crc;
}

static uint32_t sample_crc[SAMPLES];

/* Every sample that is given out is one of those written. Number of samples; *lost: a loss was reported. */
static uint32_t salvage(bool learn, bool *lost)
{
    mr_error err = MR_ERROR_INIT;
    mri_salvage_item item;
    void *walk;
    uint32_t whole = 0, files;
    bool unknown = false;
    int rc;
    *lost = false;
    MRT_OK(mri_salvage_tar.open(&walk, path, NULL, &err), &err);
    while ((rc = mri_salvage_tar.next(walk, &item, &err)) == MR_OK) {
        *lost |= item.what == MRI_SALVAGE_LOST;
        if (item.what != MRI_SALVAGE_WHOLE) continue;
        const uint32_t crc = meaning(item.data, (size_t)item.bytes, &files);
        if (learn) sample_crc[whole] = crc;
        bool known = false;
        for (int k = 0; k < SAMPLES; k++) known |= sample_crc[k] == crc;
        if (!known)
            print_error("sample \"%s\" at %llu: changed, or not whole\n", item.name,
                        (unsigned long long)item.offset);
        unknown |= !known;
        whole++;
    }
    MRT_EQ(rc, MR_EEND);
    mri_salvage_tar.close(walk);
    return unknown ? UINT32_MAX : whole;
}

/* All bytes of the fields with a meaning, and every seventh byte of the others; fewer with a sanitizer. */
static bool is_tried(uint32_t at)
{
    if (at >= CHECKSUM_FROM && at < CHECKSUM_TO) return false;
    return at < 24 || (at >= 124 && at < 136) || at == 156 || (at >= 257 && at < 265) ||
           (at >= 345 && at < 349) || at % (MRT_SANITIZED ? 29 : 7) == 0;
}

static void try_two(const uint8_t *before, size_t at, uint32_t i, uint8_t x, uint32_t j, uint8_t y,
                    uint32_t expected)
{
    bool fit, lost;
    uint32_t files;
    uint8_t *h = archive.data + at;
    h[i] = x;
    h[j] = y;
    MRT_EQ(pwrite(fd, h, MRI_TAR_BLOCK, (off_t)at), MRI_TAR_BLOCK);
    const int rc = check(&fit);
    const uint32_t whole = salvage(false, &lost);
    if ((rc == MR_OK && (!fit || meaning(archive.data, archive.bytes, &files) != expected)) ||
        whole > SAMPLES || (whole < SAMPLES && !lost)) {
        print_error("header at %zu, bytes %u and %u: %02x %02x: verify returns %d, %u samples whole%s\n", at,
                    i, j, x, y, rc, whole, lost ? ", some lost" : "");
        MRT_TRUE(false);
    }
    memcpy(h, before, MRI_TAR_BLOCK);
}

/* ---- tests ---- */
static void two_changes_that_cancel_are_found(void **state)
{
    (void)state;
    bool fit, lost;
    uint32_t files;
    MRT_EQ(check(&fit), MR_OK);
    MRT_TRUE(fit);
    MRT_EQ(salvage(true, &lost), SAMPLES);
    MRT_TRUE(!lost);
    const uint32_t expected = meaning(archive.data, archive.bytes, &files);
    for (uint32_t k = 0; k < headers; k++) {
        uint8_t before[MRI_TAR_BLOCK];
        memcpy(before, archive.data + header[k], sizeof before);
        for (uint32_t i = 0; i < MRI_TAR_BLOCK; i++)
            for (uint32_t j = i + 1; is_tried(i) && j < MRI_TAR_BLOCK; j++) {
                if (!is_tried(j)) continue;
                const uint8_t a = before[i], b = before[j];
                if (a != b) try_two(before, header[k], i, b, j, a, expected);
                if (a < 255 && b > 0)
                    try_two(before, header[k], i, (uint8_t)(a + 1), j, (uint8_t)(b - 1), expected);
                if (a > 0 && b < 255)
                    try_two(before, header[k], i, (uint8_t)(a - 1), j, (uint8_t)(b + 1), expected);
            }
        MRT_EQ(pwrite(fd, before, sizeof before, (off_t)header[k]), (ssize_t)sizeof before);
    }
}

/* Written again with members that are not listed, or without one that is. */
static int again(const char *leave_out, const char *more)
{
    static mri_tar t;
    mri_tar_member m;
    mrt_tar other = {0};
    bool fit;
    if (more) mrt_tar_text(&other, more, "x");
    mri_tar_init(&t, get, archive.data, 0, archive.bytes);
    while (mri_tar_next(&t, &m, NULL) == MR_OK)
        if (!leave_out || strcmp(leave_out, m.name) != 0) {
            mrt_tar_pax(&other, 'x', "mtime", "1.5"); /* as other programs do: all positions differ */
            mrt_tar_file(&other, m.name, archive.data + m.data, (size_t)m.bytes);
        }
    mrt_tar_end(&other);
    mrt_tar_fini(&archive);
    archive = other;
    MRT_EQ(ftruncate(fd, 0), 0);
    MRT_EQ(pwrite(fd, archive.data, archive.bytes, 0), (ssize_t)archive.bytes);
    const int rc = check(&fit);
    MRT_EQ(fit, rc == MR_OK);
    return rc;
}

static void a_member_that_is_missing_is_damage(void **state)
{
    (void)state;
    MRT_EQ(again("d/12.cls", NULL), MR_ECHECKSUM);
}

static void a_member_that_is_not_listed_is_damage(void **state)
{
    (void)state;
    MRT_EQ(again(NULL, "d/11.cls"), MR_ECHECKSUM);
}

static void an_archive_packed_anew_is_compared_by_names(void **state)
{
    (void)state;
    MRT_EQ(again(NULL, NULL), MR_OK);
}

static void a_changed_byte_behind_the_last_checksum_does_not_hide_them(void **state)
{
    (void)state;
    bool there;
    mr_error err = MR_ERROR_INIT;
    const uint8_t one = 1;
    MRT_EQ(pwrite(fd, &one, 1, (off_t)(archive.bytes - MRI_TAR_END - 1)), 1);
    MRT_OK(mri_tar_sums_at_end(&there, fd, path, archive.bytes, &err), &err);
    MRT_TRUE(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_changes_that_cancel_are_found, fresh, done),
        cmocka_unit_test_setup_teardown(a_member_that_is_missing_is_damage, fresh, done),
        cmocka_unit_test_setup_teardown(a_member_that_is_not_listed_is_damage, fresh, done),
        cmocka_unit_test_setup_teardown(an_archive_packed_anew_is_compared_by_names, fresh, done),
        cmocka_unit_test_setup_teardown(a_changed_byte_behind_the_last_checksum_does_not_hide_them, fresh,
                                        done),
    };
    return mrt_run(tests);
}

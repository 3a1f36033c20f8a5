/* formats/record/mrec_header.c: the first 4096 bytes of a .mrec file: encode, decode, and whether its numbers
 * fit together. */
#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/value.h"

/* The high bit catches 7-bit transfers, CR LF catches changed line ends, ^Z stops a listing on old
 * terminals. */
static const uint8_t magic[8] = {0x89, 'M', 'R', 'E', 'C', '\r', '\n', 0x1a};

enum { CRC_AT = MRI_MREC_BLOCK - 4, OLD_HEADER_BYTES = 160, LABELS_AT = 160, START_AT = 176 };

static bool mrec_magic(const void *data, size_t bytes)
{
    return bytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

void mri_mrec_header_encode(const mri_mrec_header *h, uint8_t block[MRI_MREC_BLOCK])
{
    memset(block, 0, MRI_MREC_BLOCK);
    memcpy(block, magic, sizeof magic);
    mri_put_le16(block + 8, h->major);
    mri_put_le16(block + 10, h->minor);
    mri_put_le32(block + 12, MRI_MREC_HEADER_BYTES);
    mri_put_le32(block + 16, h->flags);
    mri_put_le32(block + 20, h->record_align);
    const uint64_t words[] = {
        h->count,         h->file_bytes,        h->schema_offset,      h->schema_bytes,     h->classes_offset,
        h->classes_bytes, h->provenance_offset, h->provenance_bytes,   h->data_offset,      h->data_bytes,
        h->index_offset,  h->index_bytes,       h->record_bytes_total, h->record_bytes_max, h->fingerprint};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++) mri_put_le64(block + 24 + 8 * k, words[k]);
    mri_put_le32(block + 144, h->schema_crc);
    mri_put_le32(block + 148, h->classes_crc);
    mri_put_le32(block + 152, h->provenance_crc);
    mri_put_le64(block + LABELS_AT, (uint64_t)h->label_min);
    mri_put_le64(block + LABELS_AT + 8, (uint64_t)h->label_max);
    mri_put_le64(block + START_AT, (uint64_t)h->label_start);
    mri_put_le32(block + CRC_AT, mr_crc32c(0, block, CRC_AT));
}

static void decode_numbers(const uint8_t *block, mri_mrec_header *h)
{
    h->flags = mri_le32(block + 16);
    h->record_align = mri_le32(block + 20);
    uint64_t *const words[] = {&h->count,
                               &h->file_bytes,
                               &h->schema_offset,
                               &h->schema_bytes,
                               &h->classes_offset,
                               &h->classes_bytes,
                               &h->provenance_offset,
                               &h->provenance_bytes,
                               &h->data_offset,
                               &h->data_bytes,
                               &h->index_offset,
                               &h->index_bytes,
                               &h->record_bytes_total,
                               &h->record_bytes_max,
                               &h->fingerprint};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++) *words[k] = mri_le64(block + 24 + 8 * k);
    h->schema_crc = mri_le32(block + 144);
    h->classes_crc = mri_le32(block + 148);
    h->provenance_crc = mri_le32(block + 152);
    if (!mri_mrec_header_has_labels(h)) return;
    h->label_min = (int64_t)mri_le64(block + LABELS_AT);
    h->label_max = (int64_t)mri_le64(block + LABELS_AT + 8);
    if (mri_mrec_header_keeps_numbers(h)) h->label_start = (int64_t)mri_le64(block + START_AT);
}

/* Of the header block, in use in this version. */
static uint32_t bytes_in_use(const mri_mrec_header *h)
{
    return mri_mrec_header_keeps_numbers(h) ? MRI_MREC_HEADER_BYTES
           : mri_mrec_header_has_labels(h)  ? START_AT
                                            : OLD_HEADER_BYTES;
}

/* err with the place in the header the text is about */
static void at(mr_error *err, uint64_t offset) { mr_error_at(err, NULL, offset, MR_NOWHERE); }

static int not_our_magic(const uint8_t *block, mr_error *err)
{
    const bool mangled = memcmp(block + 1, "MREC", 4) == 0;
    mr_error_set(
        err, MR_EFORMAT, "%s",
        mangled
            ? "the signature is there but its line ends or high bits are changed: the file went through a "
              "text transfer; copy it again as binary"
            : "not a .mrec file: the first 8 bytes are not its signature");
    at(err, 0);
    return MR_EFORMAT;
}

int mri_mrec_header_decode(const uint8_t block[MRI_MREC_BLOCK], mri_mrec_header *h, mr_error *err)
{
    if (!mrec_magic(block, MRI_MREC_BLOCK)) return not_our_magic(block, err);
    *h = (mri_mrec_header){.major = mri_le16(block + 8), .minor = mri_le16(block + 10)};
    if (h->major != MRI_MREC_MAJOR) { /* before the checksum: another major version may keep it elsewhere */
        mr_error_set(err, MR_EUNSUPPORTED,
                     "format version %u.%u: this program reads version %d only; use a program that reads "
                     "it, or convert the data again",
                     h->major, h->minor, MRI_MREC_MAJOR);
        at(err, 8);
        return MR_EUNSUPPORTED;
    }
    const uint32_t stored = mri_le32(block + CRC_AT), found = mr_crc32c(0, block, CRC_AT);
    if (stored != found) {
        mr_error_set(err, MR_ECHECKSUM, "the header's checksum does not match: expected %08x, found %08x",
                     stored, found);
        at(err, CRC_AT);
        return MR_ECHECKSUM;
    }
    decode_numbers(block, h);
    const uint32_t header_bytes = mri_le32(block + 12);
    const bool known = h->minor <= MRI_MREC_MINOR;
    const uint32_t expected = bytes_in_use(h);
    if (known ? header_bytes != expected : header_bytes < expected || header_bytes > CRC_AT) {
        mr_error_set(err, MR_EFORMAT, "expected a header of %u bytes, found %u", expected, header_bytes);
        at(err, 12);
        return MR_EFORMAT;
    }
    const uint32_t features =
        MRI_MREC_COMPLETE | (h->minor >= 1 ? MRI_MREC_COEF : 0) | (h->minor >= 4 ? MRI_MREC_FILES : 0);
    if (h->flags & ~features) {
        mr_error_set(err, MR_EUNSUPPORTED, "the file uses features this program does not know (flags %#x)",
                     h->flags);
        at(err, 16);
        return MR_EUNSUPPORTED;
    }
    const size_t from = known && mri_le32(block + 156) ? 156 : header_bytes;
    if (!mri_all_zero(block + from, CRC_AT - from)) {
        mr_error_set(err, MR_EFORMAT, "reserved header bytes are not zero");
        at(err, from);
        return MR_EFORMAT;
    }
    return MR_OK;
}

/* One part of the file: it starts where the part before ends (rounded up), and ends inside the file. A later
 * minor version may put parts of its own between. */
static int check_part(const mri_mrec_header *h, const char *name, uint64_t header_at, uint64_t *end,
                      uint64_t align, uint64_t offset, uint64_t bytes, mr_error *err)
{
    const uint64_t expected = mri_align_up(*end, align); /* *end <= file size < 2^63 */
    const bool placed =
        h->minor <= MRI_MREC_MINOR ? offset == expected : offset >= expected && offset % align == 0;
    if (!placed || offset > h->file_bytes || bytes > h->file_bytes - offset) {
        mr_error_set(err, MR_EFORMAT,
                     "%s: expected at %llu and inside the %llu bytes of the file, found %llu bytes at %llu",
                     name, (unsigned long long)expected, (unsigned long long)h->file_bytes,
                     (unsigned long long)bytes, (unsigned long long)offset);
        at(err, header_at);
        return MR_EFORMAT;
    }
    *end = offset + bytes;
    return MR_OK;
}

static int check_parts(const mri_mrec_header *h, mr_error *err)
{
    uint64_t end = MRI_MREC_BLOCK;
    int rc = check_part(h, "schema", 40, &end, 8, h->schema_offset, h->schema_bytes, err);
    if (!rc) rc = check_part(h, "class names", 56, &end, 8, h->classes_offset, h->classes_bytes, err);
    if (!rc) rc = check_part(h, "provenance", 72, &end, 8, h->provenance_offset, h->provenance_bytes, err);
    if (!rc) rc = check_part(h, "data", 88, &end, MRI_MREC_BLOCK, h->data_offset, h->data_bytes, err);
    if (!rc) rc = check_part(h, "index", 104, &end, MRI_MREC_BLOCK, h->index_offset, h->index_bytes, err);
    if (rc) return rc;
    if (h->minor <= MRI_MREC_MINOR && end != h->file_bytes) {
        mr_error_set(err, MR_EFORMAT, "expected the index to end the file at %llu, it ends at %llu",
                     (unsigned long long)h->file_bytes, (unsigned long long)end);
        at(err, 112);
        return MR_EFORMAT;
    }
    return MR_OK;
}

int mri_mrec_header_check(const mri_mrec_header *h, uint64_t file_bytes, mr_error *err)
{
    if (!(h->flags & MRI_MREC_COMPLETE)) {
        mr_error_set(err, MR_EFORMAT,
                     "an unfinished file of an interrupted run: resume that run to finish it");
        at(err, 16);
        return MR_EFORMAT;
    }
    if (h->file_bytes != file_bytes) {
        mr_error_set(err, MR_EFORMAT, "the file is %s: expected %llu bytes, found %llu; copy it again",
                     file_bytes < h->file_bytes ? "cut short" : "longer than it says",
                     (unsigned long long)h->file_bytes, (unsigned long long)file_bytes);
        at(err, mri_min_u64(file_bytes, h->file_bytes));
        return MR_EFORMAT;
    }
    if (h->record_align < 8 || h->record_align > MRI_MREC_BLOCK ||
        (h->record_align & (h->record_align - 1))) {
        mr_error_set(err, MR_EFORMAT, "expected a record alignment of 8 to 4096, a power of two, found %u",
                     h->record_align);
        at(err, 20);
        return MR_EFORMAT;
    }
    const uint64_t pages = mri_index_pages(h->count);
    if (pages > file_bytes / MRI_MREC_BLOCK || h->index_bytes != pages * MRI_MREC_BLOCK) {
        mr_error_set(err, MR_EFORMAT, "%llu records need %llu index pages, found %llu bytes of index",
                     (unsigned long long)h->count, (unsigned long long)pages,
                     (unsigned long long)h->index_bytes);
        at(err, 112);
        return MR_EFORMAT;
    }
    if (h->schema_bytes > MRI_MAX_SCHEMA_BYTES || h->classes_bytes > MRI_MAX_CLASSES_BYTES ||
        h->provenance_bytes > MRI_MAX_PROVENANCE_BYTES || h->record_bytes_max > MRI_MAX_SAMPLE_BYTES) {
        mr_error_set(err, MR_ELIMIT,
                     "schema, class names, provenance or the largest record are over the format's limits");
        at(err, 40);
        return MR_ELIMIT;
    }
    return check_parts(h, err);
}

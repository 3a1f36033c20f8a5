/* formats/image/image_header.c: kind, size and orientation of a picture file from its first bytes, without
 * decoding it.
 *
 *   JPEG   FF D8 | FF APPn length ... | FF SOFn length precision height width components ... | FF SOS
 *   PNG    signature | length "IHDR" 13 bytes crc | length TYPE ... crc | ...
 *   others other_kinds.h
 *
 * The walk takes segment after segment by its stated length and looks at no byte that is not there, so it
 * works on the first few kilobytes of a file as well as on all of it. EXIF lies in a JPEG's APP1 or a PNG's
 * eXIf and is advice, not content: when it is broken or out of reach the orientation is 1. Whether the pixels
 * are whole is the decoder's matter. */
#include "base/abi.h"
#include "base/util.h"
#include "formats/image/coef.h"
#include "formats/image/exif.h"
#include "formats/image/other_kinds.h"
#include "formats/image/picture_kind.h"
#include "formats/source/value.h"

static const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

int mr_image_sniff(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    if (!p) return 0;
    if (bytes >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff) return MR_TYPE_JPEG;
    if (bytes >= sizeof png_signature && memcmp(p, png_signature, sizeof png_signature) == 0)
        return MR_TYPE_PNG;
    return (int)mri_other_sniff(p, bytes);
}

static int not_a_picture(const uint8_t *p, size_t bytes, mr_error *err)
{
    char kind[MRI_PICTURE_KIND_BYTES];
    return mr_error_set(err, MR_EFORMAT, "expected a picture, found %s", mri_picture_kind(p, bytes, kind));
}

/* ---- JPEG ---- */

enum { DHP = 0xde, JPEG_LS = 0xf7 };

static bool is_frame(unsigned marker) /* SOF0..SOF15; DHT, JPG and DAC lie between them */
{
    return (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) ||
           marker == DHP || marker == JPEG_LS;
}

/* Of a process that is not decoded, its name. */
static const char *other_process(unsigned marker)
{
    if (marker == 0xc3 || marker == 0xc7 || marker == 0xcb || marker == 0xcf) return "lossless";
    if (marker == 0xc5 || marker == 0xc6 || marker == 0xcd || marker == 0xce || marker == DHP)
        return "hierarchical";
    return marker == JPEG_LS ? "JPEG-LS" : NULL;
}

static int frame_parse(const uint8_t *body, size_t bytes, unsigned marker, mr_image_header *out,
                       mr_error *err)
{
    const char *other = other_process(marker);
    if (other)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "JPEG: %s (marker FF%02X); expected baseline, extended or progressive: convert it to "
            "one of these, or to PNG",
            other, marker);
    if (bytes < 6 || bytes != 6 + 3 * (size_t)body[5])
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: frame header (SOF%u) of %zu bytes does not fit its component count",
                            marker - 0xc0, bytes);
    out->bit_depth = body[0];
    out->height = mri_be16(body + 1);
    out->width = mri_be16(body + 3);
    out->channels = body[5];
    out->progressive = marker == 0xc2 || marker == 0xca;
    out->arithmetic = marker == 0xc9 || marker == 0xca;
    for (uint32_t k = 0; k < out->channels && k < 4; k++) {
        out->sampling[k][0] = body[7 + 3 * k] >> 4;
        out->sampling[k][1] = body[7 + 3 * k] & 15;
    }
    if (out->bit_depth != 8)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: %u bits per sample; expected 8: convert it to 8 bits, or to PNG",
                            out->bit_depth);
    if (out->width == 0) return mr_error_set(err, MR_EFORMAT, "JPEG: width is 0");
    if (out->height == 0)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: height is 0, to be given after the first scan (DNL); expected it "
                            "in the frame header: write it anew");
    if (out->channels != 1 && out->channels != 3 && out->channels != 4)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: %u components; expected 1 (gray), 3 (colour) or 4 (CMYK)", out->channels);
    return MR_OK;
}

/* Position of the next marker's code byte at or after at, or bytes. */
static size_t next_marker(const uint8_t *p, size_t bytes, size_t at)
{
    while (at < bytes && p[at] != 0xff) at++;
    while (at < bytes && p[at] == 0xff) at++; /* any number of fill bytes */
    return at;
}

static int jpeg_parse(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    bool framed = false;
    uint32_t exif = 0; /* orientation of the first EXIF part */
    size_t at = 2;
    for (;;) {
        at = next_marker(p, bytes, at);
        if (at >= bytes) break;
        const unsigned marker = p[at++];
        if (marker == 0x00 || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8))
            continue;                           /* these stand alone */
        if (marker == 0xd9 || marker == 0xda) { /* EOI, SOS */
            if (framed) return MR_OK;
            return mr_error_set(err, MR_EFORMAT, "JPEG: %s at byte %zu before any frame header (SOF)",
                                marker == 0xd9 ? "the end (EOI)" : "a scan (SOS)", at - 2);
        }
        if (bytes - at < 2) break;
        const size_t length = mri_be16(p + at);
        if (length < 2) {
            if (framed) return MR_OK;
            return mr_error_set(err, MR_EFORMAT,
                                "JPEG: segment FF%02X at byte %zu has length %zu; expected 2 or more", marker,
                                at - 2, length);
        }
        const uint8_t *body = p + at + 2;
        const size_t body_bytes = length - 2;
        if (body_bytes > bytes - at - 2) break;
        if (is_frame(marker) && !framed) {
            const int rc = frame_parse(body, body_bytes, marker, out, err);
            if (rc) return rc;
            framed = true;
        } else if (marker == 0xe1 && !exif) {
            exif = mri_exif_app1(body, body_bytes);
            if (exif) out->orientation = exif;
        }
        at += length;
    }
    if (framed) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "JPEG: ends at byte %zu before its frame header (SOF): truncated",
                        bytes);
}

/* ---- PNG ---- */

/* CRC-32 of ISO 3309, bit by bit: seventeen bytes once per picture need no table. */
static uint32_t crc32_iso(const uint8_t *p, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t at = 0; at < bytes; at++) {
        crc ^= p[at];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static int ihdr_parse(const uint8_t *body, mr_image_header *out, mr_error *err)
{
    static const uint8_t channels_of[7] = {1, 0, 3, 3, 2, 0, 4}; /* by colour type; a palette gives RGB */
    static const uint32_t depths_of[7] = {0x10116, 0, 0x10100, 0x116,
                                          0x10100, 0, 0x10100}; /* bit d: depth d exists */
    out->width = mri_be32(body);
    out->height = mri_be32(body + 4);
    out->bit_depth = body[8];
    out->progressive = body[12] == 1;
    const unsigned colour = body[9];
    if (out->width == 0 || out->height == 0 || out->width > INT32_MAX || out->height > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "PNG: size %u x %u; expected 1 to 2147483647 each", out->width,
                            out->height);
    if (colour > 6 || channels_of[colour] == 0)
        return mr_error_set(err, MR_EFORMAT, "PNG: colour type %u; expected 0, 2, 3, 4 or 6", colour);
    if (out->bit_depth > 16 || !(depths_of[colour] >> out->bit_depth & 1))
        return mr_error_set(err, MR_EFORMAT, "PNG: %u bits per sample do not go with colour type %u",
                            out->bit_depth, colour);
    if (body[10] != 0 || body[11] != 0 || body[12] > 1)
        return mr_error_set(err, MR_EFORMAT,
                            "PNG: compression %u, filter %u, interlace %u; expected 0, 0, 0 or 1", body[10],
                            body[11], body[12]);
    out->channels = channels_of[colour];
    return MR_OK;
}

static uint32_t png_orientation(const uint8_t *p, size_t bytes)
{
    for (size_t at = 33; bytes - at >= 12;) { /* length, type, body, CRC */
        const size_t length = mri_be32(p + at);
        if (length > bytes - at - 12) return 1;
        if (memcmp(p + at + 4, "eXIf", 4) == 0) return mri_exif_orientation(p + at + 8, length);
        at += 12 + length;
    }
    return 1;
}

static int png_parse(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    if (bytes < 33)
        return mr_error_set(err, MR_EFORMAT, "PNG: ends at byte %zu inside its header (33 bytes): truncated",
                            bytes);
    if (memcmp(p + 12, "CgBI", 4) == 0)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "PNG: in the form of Apple's devices (chunk CgBI), which others cannot read: convert it back "
            "(pngcrush -revert-iphone-optimizations)");
    if (mri_be32(p + 8) != 13 || memcmp(p + 12, "IHDR", 4) != 0)
        return mr_error_set(err, MR_EFORMAT,
                            "PNG: expected an IHDR chunk of 13 bytes at byte 8, found another");
    const uint32_t stated = mri_be32(p + 29), found = crc32_iso(p + 12, 17);
    if (stated != found)
        return mr_error_set(err, MR_EFORMAT, "PNG: IHDR states CRC %08x, its bytes have %08x: damaged",
                            stated, found);
    const int rc = ihdr_parse(p + 16, out, err);
    if (rc == MR_OK) out->orientation = png_orientation(p, bytes);
    return rc;
}

int mr_image_header_parse_sized(const void *data, size_t bytes, mr_image_header *out, mr_error *err)
{
    mr_image_header header = {.orientation = 1};
    MRI_GIVEN(err, data);
    MRI_GIVEN(err, out);
    const int type = mr_image_sniff(data, bytes);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    if (type == MR_TYPE_JPEG) rc = jpeg_parse(data, bytes, &header, err);
    else if (type == MR_TYPE_PNG) rc = png_parse(data, bytes, &header, err);
    else if (type) rc = mri_other_header((mr_type)type, data, bytes, &header, err);
    else rc = not_a_picture(data, bytes, err);
    if (rc) return rc;
    header.type = (mr_type)type;
    mri_result_give(out, &header, sizeof header);
    return MR_OK;
}

static int value_header(const mr_value *value, mr_image_header *out, mr_error *err)
{
    if (value->type == MR_TYPE_COEF) return mri_coef_header(value->data, value->bytes, out, err);
    if (mri_type_is_picture_file(value->type))
        return mr_image_header_parse(value->data, value->bytes, out, err);
    if (value->type != MR_TYPE_PIXELS || value->ndim != 3 || value->dim[0] > UINT32_MAX ||
        value->dim[1] > UINT32_MAX || value->dim[2] > 4)
        return mr_error_set(err, MR_EUNSUPPORTED, "expected a picture, found %s", mr_type_name(value->type));
    *out = (mr_image_header){.type = MR_TYPE_PIXELS,
                             .height = (uint32_t)value->dim[0],
                             .width = (uint32_t)value->dim[1],
                             .channels = (uint32_t)value->dim[2],
                             .bit_depth = 8,
                             .orientation = 1};
    return MR_OK;
}

int mr_value_header_sized(const mr_value *value, mr_image_header *out, mr_error *err)
{
    mr_image_header header = {0};
    MRI_GIVEN(err, value);
    MRI_GIVEN(err, out);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = value_header(value, &header, err);
    if (rc == MR_OK) mri_result_give(out, &header, sizeof header);
    return rc;
}

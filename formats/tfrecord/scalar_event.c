/* formats/tfrecord/scalar_event.c: events of TensorBoard, written only: mr_scalar_event_record().
 *
 *   Event   { 1: double wall_time, 2: int64 step, 3: string file_version | 5: Summary | 7: SessionLog }
 *   Summary { 1: Value { 1: string tag, 2: float simple_value } ... }
 *   SessionLog { 1: enum status: 1 is START }
 *
 * Fields that are zero are left out, as proto3 has it. A reader takes a record with a wrong checksum for the
 * end of the file, without a word: so the framing is the one that our own reader checks (tfrecord.h). */
#include "base/abi.h"
#include "formats/tfrecord/protobuf.h"
#include "formats/tfrecord/tfrecord.h"

enum { TAG_MOST = 64, SESSION_START = 1, FLOAT_BYTES = 5 /* with its tag */ };

static const char version[] = "brain.Event:2";

static uint64_t value_bytes(const mr_scalar *s) { return mri_pb_field_bytes(strlen(s->tag)) + FLOAT_BYTES; }

static uint64_t summary_bytes(const mr_scalar_event *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->count; i++) bytes += mri_pb_field_bytes(value_bytes(&e->scalars[i]));
    return bytes;
}

static uint8_t *put_value(uint8_t *p, const mr_scalar *s)
{
    uint32_t bits;
    memcpy(&bits, &s->value, sizeof bits);
    p = mri_pb_put_head(p, mri_pb_tag(1, MRI_PB_BYTES), value_bytes(s));
    p = mri_pb_put_bytes(p, 1, s->tag, strlen(s->tag));
    *p++ = mri_pb_tag(2, MRI_PB_32);
    mri_put_le32(p, bits);
    return p + sizeof bits;
}

static uint64_t event_bytes(const mr_scalar_event *e)
{
    uint64_t bytes = 1 + sizeof(double);
    if (e->step) bytes += 1 + mri_pb_varint_bytes((uint64_t)e->step);
    if (e->first) return bytes + mri_pb_field_bytes(sizeof version - 1);
    if (e->restart) return bytes + mri_pb_field_bytes(2);
    return bytes + mri_pb_field_bytes(summary_bytes(e));
}

static uint8_t *put_event(uint8_t *p, const mr_scalar_event *e)
{
    static const uint8_t start[] = {1 << 3 | MRI_PB_VARINT, SESSION_START};
    uint64_t bits;
    memcpy(&bits, &e->wall_s, sizeof bits);
    *p++ = mri_pb_tag(1, MRI_PB_64);
    mri_put_le64(p, bits);
    p += sizeof bits;
    if (e->step) {
        *p++ = mri_pb_tag(2, MRI_PB_VARINT);
        p = mri_pb_put_varint(p, (uint64_t)e->step);
    }
    if (e->first) return mri_pb_put_bytes(p, 3, version, sizeof version - 1);
    if (e->restart) return mri_pb_put_bytes(p, 7, start, sizeof start);
    p = mri_pb_put_head(p, mri_pb_tag(5, MRI_PB_BYTES), summary_bytes(e));
    for (uint32_t i = 0; i < e->count; i++) p = put_value(p, &e->scalars[i]);
    return p;
}

static bool can_be(const mr_scalar_event *e)
{
    if (e->first + e->restart + (e->count > 0) > 1 || e->count > MR_SCALARS_MOST) return false;
    if (e->count && !e->scalars) return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (!e->scalars[i].tag || strlen(e->scalars[i].tag) > TAG_MOST) return false;
    return true;
}

size_t mr_scalar_event_record_sized(const mr_scalar_event *event, void *out, size_t room)
{
    mr_scalar_event e = {0};
    uint8_t *p = out;
    if (!event || (!out && room)) return 0;
    if (mri_settings_take(&e, sizeof e, event, "scalar event", NULL) != MR_OK || !can_be(&e)) return 0;
    const uint64_t data = event_bytes(&e);
    const size_t all = MRI_TFRECORD_HEAD + (size_t)data + MRI_TFRECORD_TAIL;
    if (all > room) return all;
    mri_tfrecord_put_head(p, data);
    put_event(p + MRI_TFRECORD_HEAD, &e);
    mri_tfrecord_put_tail(p + MRI_TFRECORD_HEAD + data, p + MRI_TFRECORD_HEAD, (size_t)data);
    return all;
}

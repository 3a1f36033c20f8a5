/* Events for TensorBoard: bytes by hand, frames as our own reader checks them, and refused events. */
#include <math.h>

#include "formats/tfrecord/tfrecord.h"
#include "mrt.h"

/* The Event of a record that is framed right. */
static const uint8_t *data_of(const uint8_t *record, size_t bytes, uint64_t *data_bytes)
{
    MRT_TRUE(bytes > MRI_TFRECORD_HEAD + MRI_TFRECORD_TAIL);
    MRT_TRUE(mri_tfrecord_length(record, data_bytes));
    MRT_EQ(*data_bytes, bytes - MRI_TFRECORD_HEAD - MRI_TFRECORD_TAIL);
    const uint8_t *data = record + MRI_TFRECORD_HEAD;
    MRT_EQ(mri_tfrecord_crc(data, (size_t)*data_bytes), mri_le32(data + *data_bytes));
    return data;
}

static void check(const mr_scalar_event *e, const void *expected, size_t expected_bytes)
{
    uint8_t record[256];
    uint64_t bytes;
    const size_t all = mr_scalar_event_record(e, record, sizeof record);
    const uint8_t *data = data_of(record, all, &bytes);
    MRT_EQ(bytes, expected_bytes);
    assert_memory_equal(data, expected, expected_bytes);
}

static void bytes_by_hand(void **state)
{
    (void)state;
    static const uint8_t first[] = "\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d"
                                   "brain.Event:2"; /* 1.5 s */
    static const uint8_t restart[] = {9,    0,    0,    0, 0,    0, 0, 0xf8,
                                      0x3f, 0x10, 0xac, 2, 0x3a, 2, 8, 1}; /* 300 */
    static const uint8_t two[] = {9,    0,    0,    0,    0,    0,   0,    0xf8, 0x3f, 0x10, 7,
                                  0x2a, 20,   0x0a, 8,    0x0a, 1,   'a',  0x15, 0,    0,    0x80,
                                  0x3f, 0x0a, 8,    0x0a, 1,    'b', 0x15, 0,    0,    0,    0xc0};
    static const mr_scalar scalars[] = {{"a", 1.0f}, {"b", -2.0f}};
    check(&(mr_scalar_event){.wall_s = 1.5, .first = true}, first, sizeof first - 1);
    check(&(mr_scalar_event){.wall_s = 1.5, .step = 300, .restart = true}, restart, sizeof restart);
    check(&(mr_scalar_event){.wall_s = 1.5, .step = 7, .scalars = scalars, .count = 2}, two, sizeof two);
}

static void room_is_never_passed(void **state)
{
    (void)state;
    static const mr_scalar scalars[] = {{"loss", NAN}, {"epoch/accuracy", INFINITY}};
    const mr_scalar_event e = {.wall_s = 1e9, .step = INT64_MAX, .scalars = scalars, .count = 2};
    uint8_t record[256];
    const size_t all = mr_scalar_event_record(&e, NULL, 0);
    for (size_t room = 0; room <= all; room++) {
        memset(record, 0xee, sizeof record);
        MRT_EQ(mr_scalar_event_record(&e, record, room), all);
        for (size_t i = room < all ? 0 : all; i < sizeof record; i++) MRT_EQ(record[i], 0xee);
    }
}

static void what_cannot_be(void **state)
{
    (void)state;
    char tag[66] = "";
    memset(tag, 'x', 64);
    mr_scalar scalars[MR_SCALARS_MOST + 1];
    for (uint32_t i = 0; i <= MR_SCALARS_MOST; i++) scalars[i] = (mr_scalar){tag, (float)i};
    static uint8_t record[4096];
    mr_scalar_event e = {.scalars = scalars, .count = MR_SCALARS_MOST};
    uint64_t bytes;
    data_of(record, mr_scalar_event_record(&e, record, sizeof record), &bytes);
    e.count++;
    MRT_EQ(mr_scalar_event_record(&e, record, sizeof record), 0);
    tag[64] = 'x';
    e.count = 1;
    MRT_EQ(mr_scalar_event_record(&e, record, sizeof record), 0);
    tag[64] = '\0';
    e.first = true;
    MRT_EQ(mr_scalar_event_record(&e, record, sizeof record), 0);
    e.count = 0, e.restart = true;
    MRT_EQ(mr_scalar_event_record(&e, record, sizeof record), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(room_is_never_passed),
        cmocka_unit_test(what_cannot_be),
    };
    return mrt_run(tests);
}

/* Messages of ranks as bytes: each comes out as it went in; cut, lengthened, and changed at random it is
 * refused or is within its bounds. */
#include "base/random.h"
#include "mrt.h"
#include "ranks/transfer.h"
#include "ranks/wire.h"

enum { SIZE = 5, LANES = 3, KINDS = 8 };

static bool ended(const char *text, size_t room) { return memchr(text, 0, room) != NULL; }

/* Every reader over the same bytes: none may trust them. Which of them took them, as bits. */
static unsigned read_all(const uint8_t *in, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1); /* of its exact length, so that a sanitizer sees a byte too far
                                                */
    mri_wire_hello hello;
    mri_wire_welcome welcome;
    mri_wire_join join;
    mri_blame blame;
    mri_wire_muster muster;
    static mri_wire_mustered mustered;
    mri_wire_seat seats[SIZE];
    uint8_t nonce[MRI_WIRE_KEY_BYTES];
    char text[MRI_WIRE_TEXT_BYTES];
    unsigned took = 0;
    int code;
    memcpy(copy, in, bytes);
    if (mri_wire_get_hello(copy, bytes, &hello)) took |= 1, assert_true(ended(hello.host, sizeof hello.host));
    if (mri_wire_get_welcome(copy, bytes, &welcome)) took |= 2;
    if (mri_wire_get_reason(copy, bytes, &code, text))
        took |= 4, assert_true(ended(text, sizeof text) && code < 0 && code >= MR_EPEER);
    if (mri_wire_get_roster(copy, bytes, nonce, seats, SIZE))
        for (uint32_t r = 0; r < SIZE; r++)
            took |= 8, assert_true(ended(seats[r].host, sizeof seats[r].host));
    if (mri_wire_get_join(copy, bytes, SIZE, LANES, &join))
        took |= 16, assert_true(join.from < SIZE && join.to < SIZE && join.lane < LANES);
    if (mri_wire_get_blame(copy, bytes, SIZE, &blame))
        took |= 32, assert_true(blame.rank < SIZE && ended(blame.text, sizeof blame.text));
    if (mri_wire_get_muster(copy, bytes, &muster))
        took |= 64, assert_true(ended(muster.host, sizeof muster.host) && muster.port);
    if (mri_wire_get_mustered(copy, bytes, &mustered))
        took |= 128, assert_true(mustered.rank < mustered.size && mustered.size <= MRI_WIRE_MUSTER_MOST);
    free(copy);
    return took;
}

/* One of each kind. */
static size_t message(uint32_t kind, uint8_t *out)
{
    mri_wire_hello hello = {.token = 77, .rank = 3, .size = 5, .port = 4000, .host = "node-3"};
    mri_wire_welcome welcome = {.left_ms = 123};
    mri_wire_join join = {.from = 4, .to = 1, .lane = 2};
    mri_blame blame = {.rank = 2, .how = MRI_BLAME_GAVE_UP, .cause = MR_EINVAL, .text = "the disk is full"};
    mri_wire_muster muster = {.token = 78, .progress = 9, .expected = 3, .port = 4001, .host = "node-4"};
    static mri_wire_mustered mustered = {.rank = 1, .size = 2, .progress = 10, .tokens = {3, 4}};
    mri_wire_seat seats[SIZE] = {{.family = 4, .address = {10, 0, 0, 1}, .port = 5, .host = "a"}};
    for (uint32_t r = 1; r < SIZE; r++) seats[r] = seats[0];
    seats[4].family = 6;
    mrt_noise(hello.key, sizeof hello.key, 1);
    mrt_noise(muster.run, sizeof muster.run, 2);
    mrt_noise(mustered.run, sizeof mustered.run, 2);
    mustered.seats[0] = mustered.seats[1] = seats[0];
    memset(seats[2].host, 'x', sizeof seats[2].host - 1);
    switch (kind) {
    case 0: return mri_wire_put_hello(out, &hello);
    case 1: return mri_wire_put_welcome(out, &welcome);
    case 2: return mri_wire_put_reason(out, MR_EINVAL, "two processes are rank 2");
    case 3: return mri_wire_put_roster(out, hello.key, seats, SIZE);
    case 4: return mri_wire_put_join(out, &join);
    case 6: return mri_wire_put_muster(out, &muster);
    case 7: return mri_wire_put_mustered(out, &mustered);
    default: return mri_wire_put_blame(out, &blame);
    }
}

static void messages_come_out_as_they_went_in(void **state)
{
    (void)state;
    uint8_t out[MRI_WIRE_ROSTER_BYTES];
    mri_wire_hello hello;
    mri_blame blame;
    mri_wire_join join;
    mri_wire_seat seats[SIZE];
    uint8_t nonce[MRI_WIRE_KEY_BYTES], key[MRI_WIRE_KEY_BYTES];
    char text[MRI_WIRE_TEXT_BYTES];
    int code;
    mrt_noise(key, sizeof key, 1);
    MRT_TRUE(mri_wire_get_hello(out, message(0, out), &hello));
    MRT_TRUE(hello.token == 77 && hello.rank == 3 && hello.size == 5 && hello.port == 4000);
    MRT_STR(hello.host, "node-3");
    assert_memory_equal(hello.key, key, sizeof key);
    MRT_TRUE(mri_wire_get_reason(out, message(2, out), &code, text));
    MRT_EQ(code, MR_EINVAL);
    MRT_STR(text, "two processes are rank 2");
    MRT_TRUE(mri_wire_get_roster(out, message(3, out), nonce, seats, SIZE));
    MRT_TRUE(seats[4].family == 6 && seats[3].port == 5 && seats[0].address[0] == 10);
    MRT_EQ(strlen(seats[2].host), sizeof seats[2].host - 1);
    MRT_TRUE(mri_wire_get_join(out, message(4, out), SIZE, LANES, &join));
    MRT_TRUE(join.from == 4 && join.to == 1 && join.lane == 2);
    MRT_TRUE(mri_wire_get_blame(out, message(5, out), SIZE, &blame));
    MRT_TRUE(blame.rank == 2 && blame.how == MRI_BLAME_GAVE_UP && blame.cause == MR_EINVAL);
    MRT_STR(blame.text, "the disk is full");
    mri_wire_muster muster;
    static mri_wire_mustered mustered;
    MRT_TRUE(mri_wire_get_muster(out, message(6, out), &muster));
    MRT_TRUE(muster.token == 78 && muster.progress == 9 && muster.expected == 3 && muster.port == 4001);
    MRT_TRUE(mri_wire_get_mustered(out, message(7, out), &mustered));
    MRT_TRUE(mustered.rank == 1 && mustered.size == 2 && mustered.progress == 10 && mustered.tokens[1] == 4);
    assert_memory_equal(mustered.run, muster.run, sizeof muster.run);
}

static void heads_come_out_as_they_went_in(void **state)
{
    (void)state;
    uint8_t out[MRI_TRANSFER_HEAD_BYTES];
    mri_wire_head head;
    mri_transfer_head at = {MRI_CALL_GATHER, 1, 3, UINT64_C(1) << 40, 12345}, got;
    mri_wire_put_head(out, MRI_WIRE_BLAME, 700);
    MRT_TRUE(mri_wire_get_head(out, &head));
    MRT_TRUE(head.version == MRI_WIRE_VERSION && head.kind == MRI_WIRE_BLAME && head.bytes == 700);
    out[0] ^= 1;
    MRT_TRUE(!mri_wire_get_head(out, &head));
    mri_transfer_put_head(out, &at);
    MRT_TRUE(mri_transfer_get_head(out, &got));
    MRT_TRUE(got.call == at.call && got.channel == at.channel && got.round == at.round);
    MRT_TRUE(got.number == at.number && got.bytes == at.bytes);
    out[4] = 0;
    MRT_TRUE(!mri_transfer_get_head(out, &got));
}

static void texts_are_cut_to_their_room(void **state)
{
    (void)state;
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    char text[2000], got[MRI_WIRE_TEXT_BYTES];
    int code;
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const size_t bytes = mri_wire_put_reason(out, MR_EIO, text);
    MRT_TRUE(bytes <= sizeof out && mri_wire_get_reason(out, bytes, &code, got));
    MRT_EQ(strlen(got), MRI_WIRE_TEXT_BYTES - 1);
    out[10] = 0; /* a zero inside */
    MRT_TRUE(!mri_wire_get_reason(out, bytes, &code, got));
}

static void cut_and_longer_messages_are_refused(void **state)
{
    (void)state;
    static uint8_t out[MRI_WIRE_ROSTER_BYTES + 1];
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const size_t bytes = message(kind, out);
        MRT_TRUE(read_all(out, bytes) & 1u << kind);
        for (size_t cut = 0; cut < bytes; cut++) MRT_TRUE(!(read_all(out, cut) & 1u << kind));
        out[bytes] = 0;
        MRT_TRUE(!(read_all(out, bytes + 1) & 1u << kind));
    }
}

static void changed_messages_stay_in_their_bounds(void **state)
{
    (void)state;
    static uint8_t out[MRI_WIRE_ROSTER_BYTES];
    for (uint32_t i = 0; i < 60000; i++) {
        mri_philox word = mri_philox4x32(5, i, 0);
        size_t bytes = message(i % KINDS, out);
        for (uint32_t k = 0; k <= word.v[0] % 4; k++) {
            const mri_philox at = mri_philox4x32(5, i, k + 1);
            out[mri_below(at.v[0], (uint32_t)bytes)] = at.v[1] % 3 ? (uint8_t)at.v[2] : 0xff;
        }
        if (word.v[1] % 4 == 0) bytes = mri_below(word.v[2], (uint32_t)bytes + 1);
        read_all(out, bytes);
    }
}

static void differ(const char *a, const char *b, const char *a_said, const char *b_said)
{
    char a_line[80], b_line[80];
    MRT_TRUE(mri_wire_cards_differ(a, strlen(a), b, strlen(b), a_line, b_line));
    MRT_STR(a_line, a_said);
    MRT_STR(b_line, b_said);
}

static void the_first_line_that_differs(void **state)
{
    (void)state;
    char a_line[80], b_line[80];
    MRT_TRUE(!mri_wire_cards_differ("a\nb", 3, "a\nb", 3, a_line, b_line));
    MRT_TRUE(!mri_wire_cards_differ(NULL, 0, NULL, 0, a_line, b_line));
    MRT_TRUE(mri_wire_cards_differ(NULL, 0, "x", 1, a_line, b_line));
    differ("a 1\nb 2\nc 3\n", "a 1\nb 3\nc 4\n", "'b 2'", "'b 3'");
    differ("a\n", "a\nb\n", "nothing", "'b'");
    differ("a", "ab", "'a'", "'ab'");
    differ("a\n", "a", "2 bytes", "1 bytes, other ones");
    differ("", "a", "nothing", "'a'");
    differ("0123456789012345678901234567890123456789012345678901234567890123456789 x",
           "0123456789012345678901234567890123456789012345678901234567890123456789 y",
           "'...78901234567890123456789 x'", "'...78901234567890123456789 y'");
}

static void addresses_there_and_back(void **state)
{
    (void)state;
    mri_wire_seat seat = {.family = 6, .port = 80}, back = {.family = 0};
    struct sockaddr_storage at;
    seat.address[10] = seat.address[11] = 0xff; /* IPv4 in IPv6 */
    seat.address[12] = 127;
    seat.address[15] = 1;
    mri_wire_seat_to(&seat, &at);
    MRT_TRUE(mri_wire_seat_from(&back, (const struct sockaddr *)&at));
    MRT_TRUE(back.family == 4 && back.port == 80 && back.address[0] == 127 &&
             mri_wire_seat_is_loopback(&back));
    MRT_EQ(mri_wire_seat_to(&back, &at), sizeof(struct sockaddr_in));
    MRT_TRUE(mri_wire_seat_from(&seat, (const struct sockaddr *)&at));
    MRT_TRUE(seat.family == 4 && seat.address[3] == 1);
    at.ss_family = AF_UNIX;
    MRT_TRUE(!mri_wire_seat_from(&seat, (const struct sockaddr *)&at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_as_they_went_in),
        cmocka_unit_test(heads_come_out_as_they_went_in),
        cmocka_unit_test(texts_are_cut_to_their_room),
        cmocka_unit_test(cut_and_longer_messages_are_refused),
        cmocka_unit_test(changed_messages_stay_in_their_bounds),
        cmocka_unit_test(the_first_line_that_differs),
        cmocka_unit_test(addresses_there_and_back),
    };
    return mrt_run(tests);
}

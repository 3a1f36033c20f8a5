/* tests/ranks/test_secret.c: where the secret of a run comes from, and the proof of it as bytes: what is
 * replayed, reflected, altered, cut, repeated or put in another order does not fit. */
#include <sys/stat.h>
#include <unistd.h>

#include "mrt.h"
#include "ranks/seal.h"

#define SECRET "0123456789abcdef"

static void forget(void)
{
    unsetenv("MILLRACE_SECRET");
    unsetenv("MILLRACE_SECRET_FILE");
}

static const char *secret_file(const char *text, mode_t mode)
{
    const char *path = mrt_path("secret");
    unlink(path);
    mrt_write_file(path, text, strlen(text));
    MRT_EQ(chmod(path, mode), 0);
    setenv("MILLRACE_SECRET_FILE", path, 1);
    return path;
}

static void find(mri_secret *out)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_secret_find(out, NULL, 0, &err), &err);
}

static void the_file_comes_before_the_variable(void **state)
{
    (void)state;
    mri_secret none, by_file, by_variable, given;
    mr_error err = MR_ERROR_INIT;
    forget();
    find(&none);
    MRT_TRUE(!none.set);
    setenv("MILLRACE_SECRET", SECRET, 1);
    find(&by_variable);
    MRT_TRUE(by_variable.set);
    secret_file("another secret, of a file\r\n\n", 0600);
    find(&by_file);
    assert_memory_not_equal(by_file.key, by_variable.key, MRI_KEY_BYTES);
    secret_file(SECRET "\n", 0400);
    find(&by_file);
    assert_memory_equal(by_file.key, by_variable.key, MRI_KEY_BYTES);
    MRT_OK(mri_secret_find(&given, "something else here", 19, &err), &err);
    assert_memory_not_equal(given.key, by_variable.key, MRI_KEY_BYTES);
    forget();
}

static void refused(int rc, const char *said)
{
    mr_error err = MR_ERROR_INIT;
    mri_secret out;
    char line[1400];
    MRT_EQ(mri_secret_find(&out, NULL, 0, &err), rc);
    MRT_TRUE(!out.set);
    MRT_HAS(mr_error_format(&err, line, sizeof line), said);
    assert_null(strstr(line, SECRET)); /* it is quoted nowhere */
}

static void what_others_can_read_is_no_secret(void **state)
{
    (void)state;
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0644, 0610};
    forget();
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        char mode[16];
        secret_file(SECRET SECRET, modes[k]);
        snprintf(mode, sizeof mode, "mode %03o", (unsigned)modes[k]);
        refused(MR_EINVAL, "others can read or write it");
        refused(MR_EINVAL, mode);
    }
    unlink(secret_file(SECRET, 0600));
    refused(MR_ENOENT, "MILLRACE_SECRET_FILE");
    setenv("MILLRACE_SECRET_FILE", mrt_temp(), 1);
    refused(MR_EINVAL, "expected a regular file");
    forget();
}

static void what_is_too_short_is_no_secret(void **state)
{
    (void)state;
    char longest[MRI_SECRET_MOST + 2];
    forget();
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    secret_file("0123456789abcde\n\n", 0600);
    refused(MR_EINVAL, "a secret of 15 bytes: expected 16");
    secret_file("", 0600);
    refused(MR_EINVAL, "a secret of 0 bytes");
    secret_file(longest, 0600);
    refused(MR_EINVAL, "or more: expected 16 to 4096");
    forget();
    setenv("MILLRACE_SECRET", "short", 1);
    refused(MR_EINVAL, "MILLRACE_SECRET: a secret of 5 bytes");
    forget();
}

static void tags_are_those_of_hmac_sha_256(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xf0, 0x13, 0x37, 0x29, 0xc4, 0x16, 0x3d, 0xed, 0xe8, 0x1e, 0x21,
                                       0xcd, 0x47, 0x83, 0x92, 0x56, 0xda, 0x58, 0x17, 0x12, 0x38, 0xc8,
                                       0xa0, 0xd8, 0x74, 0x39, 0x7c, 0x73, 0xb1, 0x4e, 0x1e, 0x47};
    uint8_t key[MRI_KEY_BYTES], tag[MRI_KEY_BYTES];
    mri_secret any;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_secret_find(&any, SECRET, 16, &err), &err); /* opens the library */
    for (uint8_t k = 0; k < sizeof key; k++) key[k] = k;
    MRT_TRUE(mri_secret_tag(key, "abc", 3, tag));
    assert_memory_equal(tag, expected, sizeof tag);
    MRT_TRUE(mri_secret_equal(tag, expected, sizeof tag));
    tag[31] ^= 1;
    MRT_TRUE(!mri_secret_equal(tag, expected, sizeof tag));
}

/* ---- the proof ---- */

typedef struct pair {
    mri_secret of_guest, of_host;
    mri_seal guest, host;
    mri_seal_word knock, challenge, proof, proved;
} pair;

static mri_seal_step give(mri_seal *to, const mri_seal_word *word, mri_seal_word *reply)
{
    return mri_seal_take(to, word->kind, word->data, word->bytes, reply);
}

/* Up to the proof, which the host has not seen yet. */
static void begin(pair *p, const char *guest, const char *host)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_secret_find(&p->of_guest, guest, strlen(guest), &err), &err);
    MRT_OK(mri_secret_find(&p->of_host, host, strlen(host), &err), &err);
    MRT_TRUE(mri_seal_guest(&p->guest, &p->of_guest, &p->knock));
    mri_seal_host(&p->host, &p->of_host);
    MRT_EQ(give(&p->host, &p->knock, &p->challenge), MRI_SEAL_GOES_ON);
    MRT_EQ(give(&p->guest, &p->challenge, &p->proof), MRI_SEAL_GOES_ON);
}

static void prove(pair *p)
{
    begin(p, SECRET, SECRET);
    MRT_EQ(give(&p->host, &p->proof, &p->proved), MRI_SEAL_DONE);
    mri_seal_word none;
    MRT_EQ(give(&p->guest, &p->proved, &none), MRI_SEAL_DONE);
}

static void both_prove_it_and_understand_each_other(void **state)
{
    (void)state;
    pair p;
    uint8_t message[40] = "to the host", back[40] = "to the guest";
    prove(&p);
    for (int k = 0; k < 3; k++) {
        MRT_TRUE(mri_seal_close(&p.guest, message, 20) && mri_seal_check(&p.host, message, 20));
        MRT_TRUE(mri_seal_close(&p.host, back, 20) && mri_seal_check(&p.guest, back, 20));
        assert_memory_not_equal(message + 20, back + 20, MRI_SEAL_TAG_BYTES);
    }
    MRT_STR((char *)message, "to the host");
}

static void another_secret_is_wrong_on_both_sides(void **state)
{
    (void)state;
    pair p;
    begin(&p, SECRET, "0123456789abcdeF");
    MRT_EQ(give(&p.host, &p.proof, &p.proved), MRI_SEAL_WRONG);
    MRT_TRUE(p.host.state != MRI_SEAL_READY);
    begin(&p, SECRET, "0123456789abcdeF"); /* a host that lets everybody in proves nothing */
    memset(&p.proved, 7, sizeof p.proved);
    p.proved.kind = MRI_WIRE_PROVED;
    p.proved.bytes = MRI_KEY_BYTES;
    MRT_EQ(give(&p.guest, &p.proved, &p.knock), MRI_SEAL_WRONG);
    MRT_TRUE(p.guest.state != MRI_SEAL_READY);
}

static void every_bit_of_a_proof_counts(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 8 * MRI_KEY_BYTES; bit++) {
        pair p;
        begin(&p, SECRET, SECRET);
        p.proof.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        MRT_EQ(give(&p.host, &p.proof, &p.proved), MRI_SEAL_WRONG);
    }
}

static void what_was_heard_is_no_proof_later(void **state)
{
    (void)state;
    pair heard, now;
    mri_seal_word reply;
    prove(&heard);
    begin(&now, SECRET, SECRET);
    mri_seal_host(&now.host, &now.of_host); /* the whole conversation again: the host's number is new */
    MRT_EQ(give(&now.host, &heard.knock, &reply), MRI_SEAL_GOES_ON);
    MRT_EQ(give(&now.host, &heard.proof, &reply), MRI_SEAL_WRONG);
    begin(&now, SECRET, SECRET);
    MRT_EQ(give(&now.host, &heard.proof, &reply), MRI_SEAL_WRONG);
    begin(&now, SECRET, SECRET);
    MRT_EQ(give(&now.guest, &heard.proved, &reply), MRI_SEAL_WRONG);
}

/* A side's message is no proof for that side: the attacker sends it back. */
static void what_is_sent_back_is_no_proof(void **state)
{
    (void)state;
    pair p;
    mri_seal_word reply;
    begin(&p, SECRET, SECRET);
    p.proof.kind = MRI_WIRE_PROVED;
    MRT_EQ(give(&p.guest, &p.proof, &reply), MRI_SEAL_WRONG);
    prove(&p);
    uint8_t message[40] = "to the host";
    MRT_TRUE(mri_seal_close(&p.guest, message, 20));
    MRT_TRUE(!mri_seal_check(&p.guest, message, 20));
}

static void words_at_another_time_are_strange(void **state)
{
    (void)state;
    static const mri_wire_kind kinds[] = {MRI_WIRE_HELLO, MRI_WIRE_MUSTER, MRI_WIRE_JOIN,
                                          MRI_WIRE_BLAME, MRI_WIRE_OTHER,  MRI_WIRE_CHALLENGE,
                                          MRI_WIRE_PROOF, MRI_WIRE_PROVED, MRI_WIRE_WELCOME};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        pair p;
        mri_seal_word reply;
        const uint8_t data[64] = {0};
        begin(&p, SECRET, SECRET);
        mri_seal_host(&p.host, &p.of_host);
        for (size_t bytes = 0; bytes <= sizeof data; bytes += 16)
            MRT_EQ(mri_seal_take(&p.host, kinds[k], data, bytes, &reply), MRI_SEAL_STRANGE);
        for (size_t bytes = 0; bytes <= sizeof data; bytes++)
            if (bytes != MRI_SEAL_NONCE_BYTES)
                MRT_EQ(mri_seal_take(&p.host, MRI_WIRE_KNOCK, data, bytes, &reply), MRI_SEAL_STRANGE);
        MRT_EQ(p.host.state, MRI_SEAL_AT_KNOCK);
    }
}

static void messages_in_their_order_alone_fit(void **state)
{
    (void)state;
    pair p;
    uint8_t first[40] = "first", second[40] = "second", copy[40];
    prove(&p);
    MRT_TRUE(mri_seal_close(&p.guest, first, 20) && mri_seal_close(&p.guest, second, 20));
    mri_seal host = p.host;
    MRT_TRUE(!mri_seal_check(&host, memcpy(copy, second, 40), 20)); /* left out */
    host = p.host;
    MRT_TRUE(mri_seal_check(&host, memcpy(copy, first, 40), 20));
    MRT_TRUE(!mri_seal_check(&host, memcpy(copy, first, 40), 20)); /* repeated */
    host = p.host;
    MRT_TRUE(!mri_seal_check(&host, memcpy(copy, first, 40), 16)); /* cut */
    for (uint32_t bit = 0; bit < 8 * 36; bit++) {
        host = p.host;
        memcpy(copy, first, 40);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        MRT_TRUE(!mri_seal_check(&host, copy, 20)); /* altered, data or tag */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_comes_before_the_variable),
        cmocka_unit_test(what_others_can_read_is_no_secret),
        cmocka_unit_test(what_is_too_short_is_no_secret),
        cmocka_unit_test(tags_are_those_of_hmac_sha_256),
        cmocka_unit_test(both_prove_it_and_understand_each_other),
        cmocka_unit_test(another_secret_is_wrong_on_both_sides),
        cmocka_unit_test(every_bit_of_a_proof_counts),
        cmocka_unit_test(what_was_heard_is_no_proof_later),
        cmocka_unit_test(what_is_sent_back_is_no_proof),
        cmocka_unit_test(words_at_another_time_are_strange),
        cmocka_unit_test(messages_in_their_order_alone_fit),
    };
    return mrt_run(tests);
}

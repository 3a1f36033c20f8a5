/* Floats in fewer bits: the receivers' values, summed over steps, plus the residual equal the input, to the
 * bit; sizes, errors of a step, values that are not finite. And the exchange between ranks that is made of
 * it. */
#include <math.h>

#include "base/util.h"
#include "tests/mrt.h"
#include "train/packed/packer.h"

static const mr_exchange all[] = {MR_EXCHANGE_F32, MR_EXCHANGE_BF16, MR_EXCHANGE_F16, MR_EXCHANGE_INT8,
                                  MR_EXCHANGE_1BIT};
enum { MOST = 1100, GUARD = 64 };

static uint64_t next(uint64_t *state)
{
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

/* Gradients of sizes that differ by 2^12 at most. */
static void make(float *v, uint32_t count, uint64_t *state)
{
    for (uint32_t i = 0; i < count; i++) {
        const double size = ldexp(1 + (double)(next(state) >> 41) * 0x1p-23, (int)(next(state) >> 60) - 20);
        v[i] = (float)(next(state) >> 63 ? size : -size);
    }
}

typedef struct packing {
    float given[MOST], read[MOST];
    double residual[MOST], total_given[MOST], total_read[MOST];
    uint8_t bytes[MOST * 4 + GUARD];
} packing;

static void send_one(packing *p, mr_exchange how, uint32_t count)
{
    const size_t bytes = mri_pack_bytes(how, count);
    memset(p->bytes, 0xa5, sizeof p->bytes);
    mri_pack_floats(how, p->given, p->residual, count, p->bytes);
    for (size_t i = bytes; i < bytes + GUARD; i++) MRT_EQ(p->bytes[i], 0xa5);
    mri_unpack_floats(how, p->bytes, count, p->read);
}

/* Sums of floats of these sizes are exact in double. */
static void sent_and_residual_are_what_was_given(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 7, 255, 256, 257, 1000};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(all) * MRI_ARRAY_COUNT(counts); k++) {
        const mr_exchange how = all[k / MRI_ARRAY_COUNT(counts)];
        const uint32_t count = counts[k % MRI_ARRAY_COUNT(counts)];
        packing *p = calloc(1, sizeof *p);
        uint64_t seed = k + 1;
        bool left_out = false;
        for (int step = 0; step < 200; step++) {
            make(p->given, count, &seed);
            send_one(p, how, count);
            for (uint32_t i = 0; i < count; i++) {
                p->total_given[i] += (double)p->given[i];
                p->total_read[i] += (double)p->read[i];
                left_out = left_out || p->residual[i] != 0;
                if (p->total_read[i] + p->residual[i] != p->total_given[i])
                    fail_msg("%d, step %d, value %u of %u: read %a, left %a, given %a", how, step, i, count,
                             p->total_read[i], p->residual[i], p->total_given[i]);
            }
        }
        if (count > 1) MRT_EQ(left_out, how != MR_EXCHANGE_F32);
        free(p);
    }
}

static void values_are_near(void **state)
{
    (void)state;
    packing *p = calloc(1, sizeof *p);
    uint64_t seed = 5;
    make(p->given, 1000, &seed);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(all); k++) {
        memset(p->residual, 0, sizeof p->residual);
        send_one(p, all[k], 1000);
        for (uint32_t i = 0; i < 1000; i++) {
            float most = 0;
            for (uint32_t n = i / MRI_PACK_BLOCK * MRI_PACK_BLOCK;
                 n < 1000 && n / MRI_PACK_BLOCK == i / MRI_PACK_BLOCK; n++)
                most = fmaxf(most, fabsf(p->given[n]));
            const double size = fabs((double)p->given[i]), block = (double)most,
                         allowed[] = {0, size * 0x1p-8, fmax(size * 0x1p-11, 0x1p-25), block / 127, block};
            MRT_TRUE(fabs((double)p->given[i] - (double)p->read[i]) <= allowed[k]);
            if (all[k] == MR_EXCHANGE_1BIT) MRT_TRUE(signbit(p->read[i]) == signbit(p->given[i]));
        }
    }
    MRT_EQ(mri_pack_bytes(MR_EXCHANGE_F32, 1000), 4000);
    MRT_EQ(mri_pack_bytes(MR_EXCHANGE_BF16, 1000), 2000);
    MRT_EQ(mri_pack_bytes(MR_EXCHANGE_F16, 1000), 2000);
    MRT_EQ(mri_pack_bytes(MR_EXCHANGE_INT8, 1000), 1000 + 4);
    MRT_EQ(mri_pack_bytes(MR_EXCHANGE_1BIT, 1000), 4 * 8 + 125);
    free(p);
}

/* Halves as IEEE 754 and bfloat16 have them, read back: exact values, ties, the largest, the least. */
static void halves_are_those_of_the_standards(void **state)
{
    (void)state;
    static const struct {
        mr_exchange how;
        float given, read;
    } cases[] = {
        {MR_EXCHANGE_F16, 1, 1},
        {MR_EXCHANGE_F16, -0.0f, -0.0f},
        {MR_EXCHANGE_F16, 1 + 0x1p-11f, 1},
        {MR_EXCHANGE_F16, 1 + 3 * 0x1p-11f, 1 + 0x1p-9f},
        {MR_EXCHANGE_F16, 0x1p-24f, 0x1p-24f},
        {MR_EXCHANGE_F16, 0x1p-25f, 0},
        {MR_EXCHANGE_F16, 0x1.8p-25f, 0x1p-24f},
        {MR_EXCHANGE_F16, 0x1.fffp-15f, 0x1p-14f},
        {MR_EXCHANGE_F16, 65504, 65504},
        {MR_EXCHANGE_F16, 70000, 65504},
        {MR_EXCHANGE_F16, -1e30f, -65504},
        {MR_EXCHANGE_BF16, 1 + 0x1p-8f, 1},
        {MR_EXCHANGE_BF16, 1 + 3 * 0x1p-8f, 1 + 0x1p-6f},
        {MR_EXCHANGE_BF16, -0x1.fep127f, -0x1.fep127f},
        {MR_EXCHANGE_BF16, 0x1.fffffep127f, 0x1.fep127f},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        double residual = 0;
        uint8_t bytes[4];
        float read;
        mri_pack_floats(cases[k].how, &cases[k].given, &residual, 1, bytes);
        mri_unpack_floats(cases[k].how, bytes, 1, &read);
        if (read != cases[k].read)
            fail_msg("case %zu: %a, expected %a", k, (double)read, (double)cases[k].read);
        MRT_TRUE(residual == (double)cases[k].given - (double)read);
    }
}

/* A run that diverges must not be hidden, nor be carried on. */
static void what_is_not_finite_arrives(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(all) * MRI_ARRAY_COUNT(bad); k++) {
        const mr_exchange how = all[k / MRI_ARRAY_COUNT(bad)];
        packing *p = calloc(1, sizeof *p);
        uint64_t seed = 9;
        make(p->given, 600, &seed);
        p->given[300] = bad[k % MRI_ARRAY_COUNT(bad)];
        send_one(p, how, 600);
        MRT_TRUE(!isfinite(p->read[300]));
        for (uint32_t i = 0; i < 600; i++) {
            MRT_TRUE(isfinite(p->residual[i]));
            if (i / MRI_PACK_BLOCK != 1) MRT_TRUE(isfinite(p->read[i]));
        }
        make(p->given, 600, &seed);
        send_one(p, how, 600);
        for (uint32_t i = 0; i < 600; i++) MRT_TRUE(isfinite(p->read[i]));
        free(p);
    }
}

/* ---- between ranks: a wire that returns sent bytes ---- */

typedef struct mirror {
    uint32_t size;
    size_t bytes;
} mirror;

static int reflect(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err)
{
    mirror *m = context;
    (void)err;
    for (uint32_t r = 0; r < m->size; r++) {
        MRT_EQ(send[r].bytes, receive[r].bytes);
        if (send[r].bytes) memcpy(receive[r].data, send[r].data, send[r].bytes);
        m->bytes += send[r].bytes;
    }
    return MR_OK;
}

/* Pieces of nodes have residuals of their own; a slice is packed once, and its rank keeps the values that the
 * others read. */
static void pieces_and_slices(void **state)
{
    (void)state;
    enum { RANKS = 3, COUNT = 300 };
    for (size_t k = 1; k < MRI_ARRAY_COUNT(all); k++) {
        mr_error err = MR_ERROR_INIT;
        mri_packer p;
        mirror m = {.size = RANKS};
        const mr_wire wire = {0, RANKS, &m, reflect};
        static float given[RANKS][COUNT], got[RANKS][COUNT], slice[COUNT], slice_given[COUNT];
        static double sum_given[RANKS][COUNT], sum_got[RANKS][COUNT];
        uint64_t seed = k;
        memset(sum_given, 0, sizeof sum_given);
        memset(sum_got, 0, sizeof sum_got);
        MRT_OK(mri_packer_init(&p, all[k], RANKS, &err), &err);
        for (int step = 0; step < 20; step++) {
            mr_piece send[RANKS] = {{0}}, receive[RANKS] = {{0}};
            m.bytes = 0;
            for (uint32_t r = 1; r < RANKS; r++) {
                make(given[r], COUNT, &seed);
                send[r] = (mr_piece){given[r], COUNT * sizeof(float)};
                receive[r] = (mr_piece){got[r], COUNT * sizeof(float)};
            }
            MRT_OK(mri_packer_exchange(&p, &wire, 0, false, send, receive, &err), &err);
            MRT_EQ(m.bytes, 2 * mri_pack_bytes(all[k], COUNT));
            for (uint32_t r = 1; r < RANKS; r++)
                for (int i = 0; i < COUNT; i++)
                    sum_given[r][i] += (double)given[r][i], sum_got[r][i] += (double)got[r][i];
            make(slice, COUNT, &seed);
            memcpy(slice_given, slice, sizeof slice);
            for (uint32_t r = 1; r < RANKS; r++) send[r] = (mr_piece){slice, COUNT * sizeof(float)};
            MRT_OK(mri_packer_exchange(&p, &wire, 1, true, send, receive, &err), &err);
            MRT_EQ(memcmp(got[1], slice, sizeof slice), 0);
            MRT_EQ(memcmp(got[2], slice, sizeof slice), 0);
            MRT_TRUE(memcmp(slice, slice_given, sizeof slice) != 0);
        }
        MRT_EQ(p.count, 2);
        for (uint32_t r = 1; r < RANKS; r++)
            for (int i = 0; i < COUNT; i++)
                MRT_TRUE(sum_got[r][i] + p.sent[0].residual[(r - 1) * COUNT + (uint32_t)i] ==
                         sum_given[r][i]);
        mri_packer_forget(&p);
        MRT_EQ(p.count, 0);
        mri_packer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sent_and_residual_are_what_was_given),
        cmocka_unit_test(values_are_near),
        cmocka_unit_test(halves_are_those_of_the_standards),
        cmocka_unit_test(what_is_not_finite_arrives),
        cmocka_unit_test(pieces_and_slices),
    };
    return mrt_run(tests);
}

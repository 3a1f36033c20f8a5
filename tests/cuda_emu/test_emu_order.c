/* The emulation finds unordered accesses, names both operations, and accepts programs that order
 * everything. */
#include "tests/cuda_emu/emut.h"

static struct emut_gpu g;

static void pattern(unsigned char *at, unsigned step)
{
    for (unsigned i = 0; i < EMUT_BYTES; i++) at[i] = (unsigned char)(i * 7 + step * 31);
}

/* Steps through one pinned slot in, one device buffer on its way, one pinned slot out; without what `leave`
 * names. */
enum leave { LEAVE_NOTHING, LEAVE_WAIT_COPIED, LEAVE_WAIT_USED, LEAVE_SLOT };

static void feed(enum leave leave)
{
    emut_open(&g, 0);
    for (unsigned step = 0; step < 5; step++) {
        if (step > 0 && leave != LEAVE_SLOT)
            EMUT_MUST(cuEventSynchronize(g.copied)); /* the slot is free again */
        pattern(g.in, step);
        if (leave != LEAVE_WAIT_USED) EMUT_MUST(cuStreamWaitEvent(g.copy, g.used, CU_EVENT_WAIT_DEFAULT));
        EMUT_MUST(cuMemcpyHtoDAsync(g.a, g.in, EMUT_BYTES, g.copy));
        EMUT_MUST(cuEventRecord(g.copied, g.copy));
        if (leave != LEAVE_WAIT_COPIED)
            EMUT_MUST(cuStreamWaitEvent(g.compute, g.copied, CU_EVENT_WAIT_DEFAULT));
        EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.compute));
        EMUT_MUST(cuEventRecord(g.used, g.compute));
        EMUT_MUST(cuMemcpyDtoHAsync(g.out, g.b, EMUT_BYTES, g.compute));
    }
    EMUT_MUST(cuStreamSynchronize(g.compute));
    static unsigned char expected[EMUT_BYTES];
    pattern(expected, 4);
    if (leave == LEAVE_NOTHING) EMUT_CHECK(memcmp(g.out, expected, EMUT_BYTES) == 0);
    emut_close(&g);
}

static void all_ordered(void) { feed(LEAVE_NOTHING); }
static void wait_for_copy_left_out(void) { feed(LEAVE_WAIT_COPIED); }
static void wait_for_use_left_out(void) { feed(LEAVE_WAIT_USED); }
static void slot_written_early(void) { feed(LEAVE_SLOT); }

static void test_ordered_program_is_fine(void **state)
{
    (void)state;
    emut_always_fine(all_ordered, 300);
}

static void test_missing_wait_names_both(void **state)
{
    (void)state;
    emut_always_caught(wait_for_copy_left_out, "cuMemcpyDtoDAsync (#", "cuMemcpyHtoDAsync (#");
    emut_always_caught(wait_for_use_left_out, "cuMemcpyHtoDAsync (#", "cuMemcpyDtoDAsync (#");
}

/* The rest of the order is kept, so only the changed source reveals the fault. Where every copy runs at once,
 * nothing can. */
static void test_slot_rewritten(void **state)
{
    (void)state;
    char text[1024];
    const int status = emut_run(slot_written_early, "MILLRACE_EMU_ORDER=late MILLRACE_EMU_VIOLATION=count",
                                text, sizeof text);
    MRT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    MRT_HAS(text, "cuMemcpyHtoDAsync");
    MRT_HAS(text, "changed between its queueing and its running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered_program_is_fine),
        cmocka_unit_test(test_missing_wait_names_both),
        cmocka_unit_test(test_slot_rewritten),
    };
    return mrt_run(tests);
}

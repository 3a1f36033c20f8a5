/* tests/cli/usage/progress.c: rate and time left of what goes on, by a clock of the test's own. Standard
 * error is a file here, so lines are written and no bar is drawn. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "mrt.h"
#include "tools/cli/clock.h"
#include "tools/cli/progress.h"

static uint64_t now_ns = 1000000000u;

uint64_t clock_ns(void) { return now_ns; }

/* The standard error output while `steps` were shown, a call each second. */
static const char *shown(const uint64_t *done, uint32_t steps, uint64_t count)
{
    static char text[1024];
    progress_bar bar;
    const int kept = dup(STDERR_FILENO),
              file = open(mrt_path("err"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    progress_start(&bar, "convert", "samples", false);
    for (uint32_t k = 0; k < steps; k++) {
        progress_show(&bar, done[k], count, NULL);
        now_ns += 1000000000u;
    }
    progress_end(&bar);
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    const ssize_t n = pread(file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(file);
    close(kept);
    return text;
}

static void the_first_line_has_a_rate(void **state)
{
    (void)state;
    static const uint64_t done[] = {1, 2000, 4000, 6000, 8000, 10001, 12000, 14000, 16000, 18000, 20001};
    MRT_STR(shown(done, 11, 44001), "convert: 10001 of 44001 samples, 2000/s, 0:17 left\nconvert: 20001 of "
                                    "44001 samples, 2000/s, 0:12 left\n");
}

static void what_an_earlier_run_did_is_no_rate(void **state)
{
    (void)state;
    static const uint64_t done[] = {90000, 90001, 90002, 90003, 90004, 90005};
    MRT_STR(shown(done, 6, 100005), "convert: 90005 of 100005 samples, 1.0/s, 2:46:40 left\n");
}

static void nothing_done_has_no_rate(void **state)
{
    (void)state;
    static const uint64_t done[] = {7, 7, 7, 7, 7, 7};
    MRT_STR(shown(done, 6, 10), "convert: 7 of 10 samples\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_has_a_rate),
        cmocka_unit_test(what_an_earlier_run_did_is_no_rate),
        cmocka_unit_test(nothing_done_has_no_rate),
    };
    return mrt_run(tests);
}

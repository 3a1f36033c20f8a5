/* tests/cli/watch/step_line.c: the note after the bar, at any width, and the bar on a terminal too narrow for
 * it. */
#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mrt.h"
#include "tools/cli/progress.h"
#include "tools/watch/step_line.h"

static const mr_step_report usual = {
    .steps = 1, .loss = 0.43214, .accuracy = 0.871, .lr = 0.01f, .samples_per_s = 1, .seconds_left = 205};

static void notes(void **state)
{
    (void)state;
    char text[192];
    mr_step_report r = usual;
    MRT_STR(step_note(NULL, 0, 0, 12, 5230.4, text, sizeof text), "epoch 1 of 12, 5230 samples/s");
    MRT_STR(step_note(&r, 0, 0, 12, 5230.4, text, sizeof text),
            "epoch 1 of 12, loss 0.4321, acc 0.8710, lr 0.01, 5230 samples/s, 3:25 left");
    MRT_HAS(step_note(&r, 5, 0, 12, 1, text, sizeof text), ", 3:20 left");
    MRT_HAS(step_note(&r, 500, 0, 12, 1, text, sizeof text), ", 0:00 left");
    r.seconds_left = 3723;
    MRT_HAS(step_note(&r, 0, 0, 12, 1, text, sizeof text), ", 1:02:03 left");
    r.seconds_left = 86400 * 3.2;
    MRT_HAS(step_note(&r, 0, 0, 12, 1, text, sizeof text), ", 3 days left");
    r.seconds_left = 1e300;
    MRT_HAS(step_note(&r, 0, 0, 12, 1, text, sizeof text), " days left");
    r.seconds_left = -1;
    MRT_TRUE(!strstr(step_note(&r, 0, 0, 12, 1, text, sizeof text), "left"));
    r.simulated = true;
    MRT_TRUE(!strstr(step_note(&r, 0, 0, 12, 1, text, sizeof text), "loss"));
}

static void any_room(void **state)
{
    (void)state;
    char whole[512], text[512];
    mr_step_report r = usual;
    r.loss = 1e300; /* 305 characters */
    step_note(&r, 0, UINT64_MAX - 1, UINT64_MAX, 1e30, whole, sizeof whole);
    for (size_t room = 1; room < sizeof text; room++) {
        memset(text, '#', sizeof text);
        step_note(&r, 0, UINT64_MAX - 1, UINT64_MAX, 1e30, text, room);
        MRT_TRUE(strlen(text) < room && memcmp(text, whole, strlen(text)) == 0);
        for (size_t i = room; i < sizeof text; i++) MRT_EQ(text[i], '#');
    }
}

static void a_bar_has_one_line(void **state)
{
    (void)state;
    const struct winsize narrow = {.ws_row = 24, .ws_col = 60};
    char text[4096] = "", note[192];
    int master, slave;
    const int before = dup(STDERR_FILENO);
    MRT_EQ(openpty(&master, &slave, NULL, NULL, &narrow), 0);
    dup2(slave, STDERR_FILENO);
    progress_bar bar;
    progress_start(&bar, "train", "steps", false);
    progress_show(&bar, 5, 100, step_note(&usual, 0, 0, 12, 5230, note, sizeof note));
    progress_end(&bar);
    dup2(before, STDERR_FILENO);
    close(before);
    close(slave);
    size_t got = 0; /* a terminal hands over written text in pieces; EIO follows the last of them */
    for (ssize_t n; got < sizeof text - 1 && (n = read(master, text + got, sizeof text - 1 - got)) > 0;)
        got += (size_t)n;
    close(master);
    text[got] = '\0';
    static const char wipe[] = "\r\033[K";
    MRT_EQ(memcmp(text, wipe, 4), 0);
    const char *end = strstr(text + 4, wipe);
    MRT_TRUE(end != NULL);
    MRT_EQ(end - (text + 4), 59);
    MRT_HAS(text, "train [#");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes),
        cmocka_unit_test(any_room),
        cmocka_unit_test(a_bar_has_one_line),
    };
    return mrt_run(tests);
}

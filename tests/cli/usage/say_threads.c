/* tests/cli/usage/say_threads.c: messages from many threads while a bar is drawn, ended and drawn again: each
 * message has a line of its own, whole, and no bar in front of it. stderr leads to a file that is read back.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/progress.h"

enum { THREADS = 4, MESSAGES = 300, STEPS = 3000 };

static void *talk(void *number)
{
    for (int i = 1; i < MESSAGES; i++) say("thread %d message %d", *(int *)number, i);
    return NULL;
}

/* The visible text of a line: after its last erase sequence. */
static const char *visible(char *line)
{
    const char *seen = line;
    for (const char *at = line; (at = strstr(at, "\r\033[K")); at += 4) seen = at + 4;
    return seen;
}

static int check(FILE *f)
{
    static int next[THREADS];
    char *line = NULL;
    size_t room = 0;
    int lines = 0, bad = 0;
    while (bad < 100 && getline(&line, &room, f) > 0) { /* after the first bad line may come a sanitizer's */
        int thread = -1, message = -1, end = 0;
        const char *seen = visible(line);
        if (!strchr(seen, '\n')) break; /* the last bar */
        sscanf(seen, "millrace: thread %d message %d\n%n", &thread, &message, &end);
        if (bad || end == 0 || seen[end] || thread < 0 || thread >= THREADS || next[thread]++ != message) {
            printf("line %d: %s", lines + 1, seen);
            bad++;
        }
        lines++;
    }
    free(line);
    printf("%d lines\n", lines);
    return !bad && lines == THREADS * MESSAGES ? 0 : 1;
}

static void draw(progress_bar *bar, uint64_t step)
{
    bar->next_ns = 0;
    progress_show(bar, step, STEPS, "note");
}

/* A bar, and messages at the same time. */
static int show(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    progress_bar bar;
    progress_start(&bar, "test", "steps", false);
    bar.terminal = true;
    for (int i = 0; i < THREADS; i++) {
        draw(&bar, 0);
        progress_end(&bar); /* an epoch is over, and the next one draws the bar again */
        draw(&bar, 0);
        say("thread %d message 0", i);
    }
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        if (pthread_create(&thread[i], NULL, talk, &number[i]) != 0) return 2;
    }
    for (uint64_t i = 0; i < STEPS; i++) {
        draw(&bar, i);
        if (i % 100 == 0) progress_end(&bar);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    progress_end(&bar);
    return 0;
}

int main(void)
{
    FILE *f = tmpfile();
    const int before = dup(STDERR_FILENO);
    if (!f || dup2(fileno(f), STDERR_FILENO) < 0) return 2;
    const int rc = show();
    fflush(stderr);
    if (before >= 0) dup2(before, STDERR_FILENO);
    rewind(f); /* stderr had the same position */
    return rc ? rc : check(f);
}

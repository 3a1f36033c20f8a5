/* tools/watch/step_line.h: a stretch of steps as text: the note after the bar, the JSON line. */
#ifndef TOOLS_STEP_LINE_H
#define TOOLS_STEP_LINE_H

#include "millrace/train.h"

/* "0:07", "1:02:03", "3 days". Returns buf; 32 bytes are enough. */
char *step_time_text(double seconds, char *buf, size_t buf_bytes);
/* "epoch 1 of 12, loss 0.4321, acc 0.8710, lr 0.01, 5230 samples/s, 3:25 left". r: the newest, or NULL;
 * since_s: seconds since it came; rate: samples/s of the whole run. Returns buf. */
char *step_note(const mr_step_report *r, double since_s, uint64_t epoch, uint64_t epochs, double rate,
                char *buf, size_t buf_bytes);
/* The event `step` on stdout. */
void step_json(const mr_step_report *r);

#endif

/* tools/session/schedule.h: what schedules are called and how they are written. */
#ifndef TOOLS_SCHEDULE_H
#define TOOLS_SCHEDULE_H

#include <millrace/train.h>

const char *schedule_name(const mr_schedule *s); /* "cosine" */
/* As --schedule takes it; what begins with lr is left out. */
const char *schedule_text(const mr_schedule *s, char *out, size_t bytes);
/* Whatever their lr. */
bool schedule_same(const mr_schedule *a, const mr_schedule *b);

#endif

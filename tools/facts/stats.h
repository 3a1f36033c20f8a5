/* tools/facts/stats.h: prints the counts of a data set (millrace/stats.h), as text or as one JSON object,
 * with an estimate of what limits a training on it. */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include "millrace/report.h"

void stats_print_text(const mr_stats *s, const mr_stats_bound *bound);
void stats_print_json(const mr_stats *s, const mr_stats_bound *bound);

#endif

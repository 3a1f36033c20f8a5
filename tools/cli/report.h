/* tools/cli/report.h: the figures of one epoch as a table row and as JSON, the same in every command
 * that trains. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "millrace/train.h"
#include "tools/cli/json.h"

/* "plain", ...: names of mr_role, in their order; NULL after them. */
extern const char *const report_roles[];

void report_table_head(bool has_val);
void report_table_row(const mr_report *r, bool has_val); /* has_val: of the head */

/* Every figure of r, as keys of the object that is open. replicas: how many entries bytes_copied has. */
void report_json(json_line *j, const mr_report *r, uint32_t replicas);
/* read, decode, copy: parts of the time that their threads were working or waiting. */
void report_stages_json(json_line *j, const mr_loader_stats *s, double seconds);
/* An object of causes, parts of the devices' time; together they are idle. */
void report_idle_json(json_line *j, const char *key, double idle, const mr_causes *causes);
/* The network between the processes of a run, as "network"; nothing for one process. */
void report_link_json(json_line *j, const mr_trainer_link *l);
/* A cause's share of the devices' time, 0 to 1; of MR_CAUSE_NETWORK, too. */
double report_cause_part(const mr_report *r, int cause);
/* A column for each of the reports, a row for each cause that one of them has. */
void report_causes_text(const char *const *names, const mr_report *const *reports, uint32_t count);
/* cache_hits, cache_entries, cache_bytes. */
void report_cache_json(json_line *j, const mr_loader_stats *s);
/* fields: name, role, dtype, and of those whose rows differ in length the most; nothing where there are
 * none. */
void report_fields_json(json_line *j, const mr_loader_info *info);
void report_fields_text(const mr_loader_info *info);
void report_stages_text(const mr_loader_stats *s, double seconds);

#endif

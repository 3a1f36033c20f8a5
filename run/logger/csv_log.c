/* run/logger/csv_log.c: see csv_log.h. */
#include "run/logger/csv_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

static const char header[] =
    "event,epoch,updates,steps,samples,samples_per_s,loss,accuracy,lr,val_loss,val_accuracy,"
    "stall_fraction,step_ms,seconds\n";
enum { HEADER = sizeof header - 1, LINE = 1024 /* no line of ours is as long */ };

static int wrong(const mri_csv_log *c, const char *found, mr_error *err)
{
    mr_error_set(err, MR_EEXIST,
                 "expected to go on with a file whose first line is '%.*s', found %s: remove "
                 "it, or choose another name",
                 HEADER - 1, header, found);
    return mr_error_at(err, c->file.path, 0, MR_NOWHERE);
}

static int read_at(const mri_csv_log *c, char *out, size_t bytes, uint64_t offset, mr_error *err)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t n = pread(mr_output_fd(c->file.out), out + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) {
            mr_error_sys(err, errno, "cannot read it");
            return mr_error_at(err, c->file.path, offset + got, MR_NOWHERE);
        }
        got += (size_t)n;
    }
    return MR_OK;
}

/* Check that the existing file is ours, and ends with a whole line. */
static int go_on(mri_csv_log *c, mr_error *err)
{
    char text[LINE > HEADER ? LINE : HEADER];
    const uint64_t bytes = c->file.bytes;
    const size_t first = bytes < HEADER ? (size_t)bytes : HEADER;
    int rc = read_at(c, text, first, 0, err);
    if (rc) return rc;
    if (memcmp(text, header, first) != 0) return wrong(c, "another", err);
    if (first < HEADER) return mri_log_file_cut(&c->file, 0, err); /* killed in the middle of it */
    const size_t last = bytes < LINE ? (size_t)bytes : LINE;
    rc = read_at(c, text, last, bytes - last, err);
    if (rc) return rc;
    const char *end = memrchr(text, '\n', last);
    if (!end) return wrong(c, "a last line longer than any of ours", err);
    const uint64_t whole = bytes - last + (uint64_t)(end + 1 - text);
    return whole < bytes ? mri_log_file_cut(&c->file, whole, err) : MR_OK;
}

int mri_csv_log_open(mri_csv_log *c, const char *path, const mri_log_file_config *cfg, mr_error *err)
{
    int rc = mri_log_file_open(&c->file, path, cfg, err);
    if (rc) return rc;
    if (c->file.bytes > 0) rc = go_on(c, err);
    if (rc == MR_OK && c->file.bytes == 0 && (rc = mri_log_file_put(&c->file, header, HEADER, false)))
        *err = c->file.failure;
    if (rc) mri_log_file_close(&c->file);
    return rc;
}

/* Empty where the network does not predict classes. */
static const char *part_text(double accuracy, char *buf, size_t bytes)
{
    buf[0] = '\0';
    if (!isnan(accuracy)) snprintf(buf, bytes, "%.9g", accuracy);
    return buf;
}

void mri_csv_log_step(mri_csv_log *c, const mr_step_report *r)
{
    char line[LINE], lr[32], part[32];
    const locale_t before = mri_c_numbers_begin();
    const int n = snprintf(line, sizeof line,
                           "step,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9g,%.9g,%s,%s,,,,,\n",
                           r->epoch, r->updates, r->steps, r->samples, r->samples_per_s, r->loss,
                           part_text(r->accuracy, part, sizeof part), mri_float_text(r->lr, lr, sizeof lr));
    mri_c_numbers_end(before);
    mri_log_file_put(&c->file, line, (size_t)n, true);
}

void mri_csv_log_eval(mri_csv_log *c, const mr_eval_report *r)
{
    char line[LINE], part[32];
    const locale_t before = mri_c_numbers_begin();
    const int n = snprintf(
        line, sizeof line, "eval,%" PRIu64 ",%" PRIu64 ",,%" PRIu64 ",,,,,%.9g,%s,,,%.9g\n", r->epoch,
        r->updates, r->samples, r->loss, part_text(r->accuracy, part, sizeof part), r->seconds);
    mri_c_numbers_end(before);
    mri_log_file_put(&c->file, line, (size_t)n, true);
}

void mri_csv_log_epoch(mri_csv_log *c, const mr_report *r, uint64_t updates)
{
    char line[LINE], lr[32], part[32], val[64] = ",";
    const locale_t before = mri_c_numbers_begin();
    if (r->has_val)
        snprintf(val, sizeof val, "%.9g,%s", r->val_loss, part_text(r->val_accuracy, part, sizeof part));
    const int n = snprintf(
        line, sizeof line,
        "epoch,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9g,%.9g,%s,%s,%s,%.9g,%.9g,%.9g\n", r->epoch,
        updates, r->steps, r->samples, r->samples_per_s, r->loss, part_text(r->accuracy, part, sizeof part),
        mri_float_text(r->lr, lr, sizeof lr), val, r->stall_fraction, r->step_ms, r->seconds);
    mri_c_numbers_end(before);
    mri_log_file_put(&c->file, line, (size_t)n, true);
    mri_log_file_sync(&c->file);
}

int mri_csv_log_close(mri_csv_log *c) { return mri_log_file_close(&c->file); }

/* formats/verify.c: mr_source_verify(): a whole data set, every byte of record files, every sample of other
 * formats. Decodes no picture. Everything goes through the public functions; nothing is kept. */
#include <errno.h>

#include "base/abi.h"
#include "base/file.h"
#include "base/util.h"
#include "formats/source/source.h"

typedef struct verification {
    const mr_source *src;
    const volatile int *stop;
    mr_verify_report *report;
    void *context;
    mr_verify_result result;
    mr_error first; /* defect */
    bool over;      /* the caller has seen enough */
} verification;

static bool on_defect(void *context, const mr_error *what)
{
    verification *v = context;
    if (v->result.wrong++ == 0) v->first = *what;
    if (v->report && !v->report(v->context, what)) v->over = true;
    return !v->over;
}

static bool goes_on(const verification *v) { return !v->over && !mri_is_stopped(v->stop); }

static void check_numbers(verification *v)
{
    const uint32_t missing = mr_source_missing_files(v->src);
    mr_error what = MR_ERROR_INIT;
    if (missing == 0) return;
    mr_error_set(&what, MR_ENOENT,
                 "%u number%s missing between the numbers of the files: copy the files that were lost",
                 missing, missing == 1 ? " is" : "s are");
    mr_error_at(&what, mr_source_info_of(v->src)->path, MR_NOWHERE, MR_NOWHERE);
    on_defect(v, &what);
}

/* Record files on this machine: all of a source's files are, or none. */
static bool has_record_files(const mr_source *src)
{
    const char *format = mr_source_info_of(src)->format;
    mr_source_file file;
    return (strcmp(format, "mrec") == 0 || strcmp(format, "shards") == 0) &&
           mr_source_file_at(src, 0, &file) == MR_OK && file.direct_ok;
}

/* A file that is not the one of its line in the list, or is missing, is a defect: *is_there false. */
static int compare_with_list(verification *v, uint32_t f, bool *is_there, mr_error *err)
{
    mr_error what = MR_ERROR_INIT;
    int fd;
    const int rc = mr_source_file_acquire(v->src, f, &fd, &what);
    *is_there = rc == MR_OK;
    if (rc == MR_OK) {
        mr_source_file_release(v->src, f);
        return MR_OK;
    }
    if (what.sys_errno == ESTALE) {
        on_defect(v, &what);
        return MR_OK;
    }
    if (err) *err = what;
    return rc;
}

static int check_file(verification *v, uint32_t f, mr_error *err)
{
    mr_source_file file;
    mr_error what = MR_ERROR_INIT;
    mr_verify_result one;
    bool is_there;
    int rc = mr_source_file_at(v->src, f, &file);
    if (rc == MR_OK) rc = compare_with_list(v, f, &is_there, err);
    if (rc != MR_OK || !is_there || !goes_on(v)) return rc;
    const uint64_t before = v->result.wrong;
    rc = mr_mrec_verify_until(file.path, v->stop, on_defect, v, &one, &what);
    v->result.records += one.records;
    v->result.bytes += one.bytes;
    if (rc == MR_OK || mr_error_of_sample(rc, &what)) {
        if (rc != MR_OK && v->result.wrong == before) on_defect(v, &what); /* it is gone */
        return MR_OK;
    }
    if (err) *err = what;
    return rc;
}

static int check_files(verification *v, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(v->src);
    int rc = MR_OK;
    check_numbers(v);
    for (uint32_t f = 0; has_record_files(v->src) && f < info->file_count && rc == MR_OK && goes_on(v); f++)
        rc = check_file(v, f, err);
    return rc;
}

static int check_label(const mr_source_info *info, const mr_sample *sample, mr_error *err)
{
    if (info->label_field < 0 || info->class_count == 0) return MR_OK;
    const mr_value *label = &sample->value[info->label_field];
    if (label->type != MR_TYPE_INT || (label->i >= 0 && label->i < (int64_t)info->class_count)) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %lld", info->class_count - 1,
                        (long long)label->i);
}

static int check_sample(verification *v, uint64_t at, void **buffer, size_t *room, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(v->src);
    mr_error what = MR_ERROR_INIT;
    mr_extent extent = {0};
    mr_sample sample;
    int rc = mr_source_extent(v->src, at, &extent, &what);
    if (rc == MR_OK) rc = mr_source_read(v->src, at, buffer, room, &sample, &what);
    if (rc == MR_OK) rc = check_label(info, &sample, &what);
    v->result.records++;
    v->result.bytes += extent.bytes;
    if (rc == MR_OK) return MR_OK;
    mri_source_place(v->src, at, &what);
    if (mr_error_of_sample(rc, &what)) {
        on_defect(v, &what);
        return MR_OK;
    }
    if (err) *err = what;
    return rc;
}

static int check_samples(verification *v, mr_error *err)
{
    const uint64_t count = mr_source_info_of(v->src)->count;
    void *buffer = NULL;
    size_t room = 0;
    mr_error what = MR_ERROR_INIT;
    int rc = MR_OK;
    for (uint64_t at = 0; at < count && rc == MR_OK && goes_on(v); at++)
        rc = check_sample(v, at, &buffer, &room, err);
    free(buffer);
    if (rc != MR_OK || !goes_on(v)) return rc;
    rc = mr_source_check(v->src, &what);
    if (rc == MR_ECHECKSUM || rc == MR_EFORMAT) {
        on_defect(v, &what);
        return MR_OK;
    }
    if (rc != MR_OK && err) *err = what;
    return rc;
}

static int verify(const mr_source *src, bool samples, const volatile int *stop, mr_verify_report *report,
                  void *context, mr_verify_result *out, mr_error *err)
{
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc != MR_OK) return rc;
    verification v = {.src = src, .stop = stop, .report = report, .context = context, .first = MR_ERROR_INIT};
    const volatile int *before = mri_stop_at(stop);
    rc = check_files(&v, err);
    if (rc == MR_OK && samples && !has_record_files(src) && goes_on(&v)) rc = check_samples(&v, err);
    mri_stop_at(before);
    if (rc == MR_OK && mri_is_stopped(stop)) rc = mr_error_set(err, MR_ECANCELED, "stopped on request");
    if (rc == MR_OK && v.result.wrong) {
        rc = v.first.code == MR_ECHECKSUM ? MR_ECHECKSUM : MR_EFORMAT;
        v.first.code = rc;
        if (err) *err = v.first;
    }
    mri_result_give(out, &v.result, sizeof v.result);
    return rc;
}

int mr_source_verify_files_sized(const mr_source *src, const volatile int *stop, mr_verify_report *report,
                                 void *context, mr_verify_result *out, mr_error *err)
{
    return verify(src, false, stop, report, context, out, err);
}

int mr_source_verify_sized(const mr_source *src, const volatile int *stop, mr_verify_report *report,
                           void *context, mr_verify_result *out, mr_error *err)
{
    return verify(src, true, stop, report, context, out, err);
}

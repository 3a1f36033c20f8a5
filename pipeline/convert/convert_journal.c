/* pipeline/convert/convert_journal.c: see convert_journal.h. */
#include "pipeline/convert/convert_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define MOST_BYTES ((off_t)1 << 30)
static const char first_line[] = "millrace conversion 1\n";

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "out of memory for the state of the conversion");
}

/* ---- what stands there ---- */
static bool keep_file(mri_journal *j, const mri_journal_file *f)
{
    if ((j->count & (j->count - 1)) == 0) { /* full at every power of two */
        mri_journal_file *more = realloc(j->file, (j->count ? j->count * 2 : 1) * sizeof *more);
        if (!more) return false;
        j->file = more;
    }
    j->file[j->count++] = *f;
    return true;
}

/* Take one whole line. false: the line is not valid here. */
static bool take_line(mri_journal *j, const char *line, bool *memory)
{
    mri_journal_file f;
    uint32_t named, replaced;
    if (j->stage == MRI_JOURNAL_NEW) {
        if (sscanf(line, "source %" SCNx64, &j->source) != 1) return false;
        j->stage = MRI_JOURNAL_BEGUN;
    } else if (sscanf(line, "shard %" SCNu64 " %" SCNx64, &f.records, &f.fingerprint) == 2) {
        if (j->stage != MRI_JOURNAL_BEGUN) return false;
        *memory = keep_file(j, &f);
        return *memory;
    } else if (sscanf(line, "named %" SCNu32 " replacing %" SCNu32, &named, &replaced) == 2) {
        if (j->stage != MRI_JOURNAL_BEGUN || named != j->count || named == 0) return false;
        j->replaced = replaced;
        j->stage = MRI_JOURNAL_NAMED;
    } else if (strcmp(line, "cleared") == 0 && j->stage == MRI_JOURNAL_NAMED) {
        j->stage = MRI_JOURNAL_CLEARED;
    } else {
        return false;
    }
    return true;
}

static int foreign(const mri_journal *j, mr_error *err)
{
    return mri_error_place(
        err,
        mr_error_set(err, MR_EEXIST, "expected the state of an interrupted conversion: remove this file"),
        mri_output_part(j->out), MR_NOWHERE, MR_NOWHERE);
}

static int parse(mri_journal *j, char *text, size_t bytes, mr_error *err)
{
    const size_t head = sizeof first_line - 1;
    bool memory = true;
    if (memcmp(text, first_line, bytes < head ? bytes : head) != 0) return foreign(j, err);
    if (bytes < head) return MR_OK; /* killed as it began */
    for (char *line = text + head, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        const uint32_t before = j->stage;
        if (!take_line(j, line, &memory)) return memory ? foreign(j, err) : no_memory(err);
        if (j->stage != before) j->end = (uint64_t)(end + 1 - text);
    }
    if (j->stage == MRI_JOURNAL_BEGUN) j->count = 0; /* the list of files is not whole */
    return MR_OK;
}

static int load(mri_journal *j, mr_error *err)
{
    const char *part = mri_output_part(j->out);
    struct stat st;
    if (fstat(mri_output_fd(j->out), &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), part, MR_NOWHERE,
                               MR_NOWHERE);
    if (st.st_size > MOST_BYTES) return foreign(j, err);
    char *text = malloc((size_t)st.st_size + 1);
    if (!text) return no_memory(err);
    int rc = mri_pread_all(mri_output_fd(j->out), text, (size_t)st.st_size, 0, part, err);
    text[rc ? 0 : st.st_size] = '\0';
    if (!rc && strlen(text) != (size_t)st.st_size) rc = foreign(j, err);
    if (!rc) rc = parse(j, text, (size_t)st.st_size, err);
    free(text);
    return rc;
}

int mri_journal_open(mri_journal *j, const char *dst, const mri_output_rules *rules, mr_error *err)
{
    mri_output_rules mine = *rules;
    struct stat st;
    const size_t room = strlen(dst) + 32;
    char *name = malloc(room);
    *j = (mri_journal){0};
    if (!name) return no_memory(err);
    snprintf(name, room, "%s.conversion.part", dst);
    const bool found = lstat(name, &st) == 0;
    name[strlen(name) - strlen(".part")] = '\0';
    mine.resume = mine.force = true; /* it never gets that name */
    int rc = mri_output_open(&j->out, name, &mine, err);
    free(name);
    if (!rc) rc = load(j, err);
    if (!rc) mri_output_adopt(j->out);
    j->found = found; /* a run may have been killed before it wrote anything */
    if (rc) mri_journal_close(j, true);
    return rc;
}

/* ---- adding lines ---- */
static int append(mri_journal *j, const char *text, size_t bytes, mr_error *err)
{
    const int fd = mri_output_fd(j->out);
    if (ftruncate(fd, (off_t)j->end) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot shorten it"), mri_output_part(j->out),
                               MR_NOWHERE, MR_NOWHERE);
    int rc = mri_pwrite_all(fd, text, bytes, j->end, mri_output_part(j->out), err);
    if (!rc) rc = mri_output_sync(j->out, err);
    if (!rc) j->end += bytes;
    return rc;
}

int mri_journal_begin(mri_journal *j, uint64_t source, mr_error *err)
{
    char text[128];
    const int n = snprintf(text, sizeof text, "%ssource %016" PRIx64 "\n", first_line, source);
    j->end = 0;
    j->count = 0;
    const int rc = append(j, text, (size_t)n, err);
    if (rc) return rc;
    j->stage = MRI_JOURNAL_BEGUN;
    j->source = source;
    return mri_sync_folder_of(mri_output_part(j->out), err);
}

int mri_journal_name(mri_journal *j, const mri_journal_file *file, uint32_t count, uint32_t replaced,
                     mr_error *err)
{
    const size_t room = ((size_t)count + 1) * 64;
    char *text = malloc(room);
    size_t at = 0;
    if (!text) return no_memory(err);
    for (uint32_t k = 0; k < count; k++)
        at += (size_t)snprintf(text + at, room - at, "shard %" PRIu64 " %016" PRIx64 "\n", file[k].records,
                               file[k].fingerprint);
    at +=
        (size_t)snprintf(text + at, room - at, "named %" PRIu32 " replacing %" PRIu32 "\n", count, replaced);
    const int rc = append(j, text, at, err);
    free(text);
    if (rc) return rc;
    j->stage = MRI_JOURNAL_NAMED;
    j->replaced = replaced;
    return MR_OK;
}

int mri_journal_cleared(mri_journal *j, mr_error *err)
{
    static const char line[] = "cleared\n";
    const int rc = append(j, line, sizeof line - 1, err);
    if (!rc) j->stage = MRI_JOURNAL_CLEARED;
    return rc;
}

int mri_journal_end(mri_journal *j, mr_error *err)
{
    int rc = mri_output_discard(j->out, err);
    if (!rc) rc = mri_sync_folder_of(mri_output_part(j->out), err); /* a power cut does not restore it */
    if (!rc) mri_journal_close(j, true);
    return rc;
}

void mri_journal_close(mri_journal *j, bool keep)
{
    mri_output_close(j->out, keep);
    free(j->file);
    *j = (mri_journal){0};
}

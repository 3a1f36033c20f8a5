/* pipeline/convert/convert_rec_list.c: see convert_rec_list.h. */
#include "pipeline/convert/convert_rec_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define MEMORY_BYTES ((uint64_t)4 << 20)
enum { NUMBER_ROOM = 24 };

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for a list of records");
}

static bool fits_line(const char *name, size_t bytes)
{
    if (bytes == 0 || name[0] == ' ' || name[bytes - 1] == ' ') return false;
    for (size_t k = 0; k < bytes; k++)
        if (strchr("\t\n\r", name[k])) return false; /* a zero, too */
    return true;
}

int mri_rec_list_add(mri_rec_list *l, uint64_t number, const float *labels, uint32_t count, const void *name,
                     size_t name_bytes, mr_error *err)
{
    const size_t room = ((size_t)count + 2) * NUMBER_ROOM + name_bytes + 2;
    int rc = l->used ? MR_OK : mri_spill_open(&l->lines, MEMORY_BYTES, err);
    if (rc) return rc;
    l->used = true;
    if (room > l->room) {
        char *more = realloc(l->line, room);
        if (!more) return no_memory(err);
        l->line = more;
        l->room = room;
    }
    size_t n = (size_t)sprintf(l->line, "%" PRIu64, number);
    for (uint32_t k = 0; k < count; k++) n += (size_t)sprintf(l->line + n, "\t%.9g", (double)labels[k]);
    l->line[n++] = '\t';
    if (fits_line(name, name_bytes)) {
        memcpy(l->line + n, name, name_bytes);
        n += name_bytes;
    } else n += (size_t)sprintf(l->line + n, "%" PRIu64, number);
    l->line[n++] = '\n';
    return mri_spill_write(&l->lines, l->line, n, err);
}

static int begin(mri_rec_list *l, mr_error *err)
{
    int rc = l->used ? mri_spill_finish(&l->lines, err) : mri_spill_open(&l->lines, MEMORY_BYTES, err);
    if (rc) return rc;
    l->used = true;
    const int fd = fcntl(l->lines.fd, F_DUPFD_CLOEXEC, 0);
    l->in = fd < 0 || lseek(fd, 0, SEEK_SET) != 0 ? NULL : fdopen(fd, "r");
    if (l->in) return MR_OK;
    rc = mr_error_sys(err, errno, "cannot read the list of records again");
    if (fd >= 0) close(fd);
    return rc;
}

static int copy_lines(mri_rec_list *l, uint64_t records, FILE *to, mr_error *err)
{
    for (uint64_t k = 0; k < records; k++) {
        errno = 0;
        const ssize_t n = getline(&l->line, &l->room, l->in);
        if (n <= 0) return mr_error_sys(err, errno ? errno : EIO, "cannot read the list of records again");
        if (fwrite(l->line, 1, (size_t)n, to) != (size_t)n)
            return mr_error_sys(err, errno, "cannot write the list");
    }
    return fflush(to) == 0 ? MR_OK : mr_error_sys(err, errno, "cannot write the list");
}

int mri_rec_list_write(mri_rec_list *l, const char *path, uint64_t records, const mri_output_rules *rules,
                       mr_error *err)
{
    mri_output *out = NULL;
    int rc = l->in ? MR_OK : begin(l, err);
    if (!rc) rc = mri_output_open(&out, path, rules, err);
    FILE *to = rc ? NULL : mri_output_stream(out, err);
    if (!rc && !to) rc = MR_ENOMEM;
    if (!rc) rc = copy_lines(l, records, to, err);
    if (!rc) rc = mri_output_commit(out, NULL, NULL, err);
    mri_output_close(out, false);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

void mri_rec_list_fini(mri_rec_list *l)
{
    if (l->in) fclose(l->in);
    if (l->used) mri_spill_close(&l->lines);
    free(l->line);
    *l = (mri_rec_list){0};
}

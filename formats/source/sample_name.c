/* formats/source/sample_name.c: see sample_name.h. */
#include "formats/source/sample_name.h"

#include <stdio.h>

#include "base/util.h"
#include "formats/source/choice.h"
#include "formats/source/value.h"

enum { LOOKED_AT = 8, TRIED_AT_MOST = 1024 };

int mri_field_name(const mr_field *fields, uint32_t field_count)
{
    const int at = mri_field_find(fields, field_count, MRI_NAME_FIELD);
    return at >= 0 && fields[at].type == MR_TYPE_BYTES ? at : -1;
}

/* The path relative to the data set's folder, or to the folder of the list that names the file; NULL: it lies
 * elsewhere. */
static const char *below_source(const char *root, const char *path)
{
    const char *slash = strrchr(root, '/');
    const size_t whole = strlen(root), folder = slash ? (size_t)(slash - root) + 1 : 0;
    if (strncmp(path, root, whole) == 0 && (path[whole] == '/' || (whole > 0 && root[whole - 1] == '/')))
        path += whole;
    else if (strncmp(path, root, folder) == 0) path += folder;
    else return NULL;
    return path + strspn(path, "/");
}

/* Each sample is a file. */
static void name_of_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    char path[MRI_NAME_ROOM];
    const char *name = below_source(src->info.path, mr_source_sample_path(src, sample, path, sizeof path));
    if (name && strlen(path) < sizeof path - 1) snprintf(buf, buf_bytes, "%s", name);
}

int mr_source_sample_name_get(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                              char *buf, size_t buf_bytes, mr_error *err)
{
    void *own = NULL;
    size_t own_bytes = 0;
    mr_extent e;
    int rc = MR_OK;
    MRI_GIVEN(err, buf);
    if (buf_bytes == 0) return MR_OK;
    buf[0] = '\0';
    MRI_OWN(err, src);
    if (sample >= src->info.count) return MR_OK;
    if (!src->ops->sample_name) {
        if (src->info.file_count == 0) name_of_path(src, sample, buf, buf_bytes);
        return MR_OK;
    }
    if (!data) {
        rc = mri_source_read_bytes(src, sample, &own, &own_bytes, &e, NULL, err);
        data = own;
        bytes = rc ? 0 : (size_t)e.bytes;
    }
    if (!rc)
        rc = src->ops->sample_name(src, mri_choice_number(&src->choice, sample), data, bytes, buf, buf_bytes,
                                   err);
    if (rc) buf[0] = '\0';
    free(own);
    return rc;
}

char *mr_source_sample_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                            size_t buf_bytes)
{
    mr_source_sample_name_get(src, sample, data, bytes, buf, buf_bytes, NULL);
    return buf;
}

int mri_source_has_names(const mr_source *src, bool *has, mr_error *err)
{
    char name[MRI_NAME_ROOM] = "";
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    uint64_t looked = 0;
    int rc = MR_OK;
    /* read to tell a damaged sample from a nameless one; not by a call of the program */
    const bool reads = src->ops->sample_name && src->info.total_bytes > 0;
    for (uint64_t k = 0; !rc && !name[0] && looked < LOOKED_AT && k < TRIED_AT_MOST && k < src->info.count;
         k++) {
        mr_error why = MR_ERROR_INIT;
        mr_sample sample;
        rc = mr_source_sample_name_get(src, k, NULL, 0, name, sizeof name, &why);
        if (!rc && !name[0] && reads) rc = mr_source_read(src, k, &buffer, &buffer_bytes, &sample, &why);
        looked += rc == MR_OK;
        if (rc && mr_error_of_sample(rc, &why)) rc = MR_OK;
        if (rc && err) *err = why;
    }
    free(buffer);
    *has = !rc && (name[0] || (looked == 0 && src->info.count > 0));
    return rc;
}

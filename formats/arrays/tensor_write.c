/* formats/arrays/tensor_write.c: writing files of named arrays; see tensor_file.h.
 *
 * A safetensors header says where every array lies before the first one comes, and follows from their shapes.
 * An archive has each member's CRC in front of it: numbers are there as a whole, so it is known. */
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/tensor_file.h"
#include "formats/arrays/zip.h"

enum { ALIGN = 8 /* where the numbers of a safetensors file begin, as the format asks */ };

struct mri_tensor_writer {
    mri_output *out;
    const char *path;
    const mri_tensor_entry *entry;
    uint32_t count, done;
    bool is_zip;
    uint64_t at;            /* bytes written */
    mri_zip_member *member; /* npz: entries of the directory */
};

const char *mri_tensor_file_kind(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".safetensors") == 0) return "safetensors";
    return dot && strcmp(dot, ".npz") == 0 ? "npz" : NULL;
}

static int put(mri_tensor_writer *w, const void *data, size_t bytes, mr_error *err)
{
    const int rc = mri_pwrite_all(mri_output_fd(w->out), data, bytes, w->at, mri_output_part(w->out), err);
    w->at += bytes;
    return rc;
}

/* ---- safetensors ---- */

static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') fprintf(out, "\\%c", *p);
        else if (*p < ' ') fprintf(out, "\\u%04x", *p);
        else fputc(*p, out);
    }
    fputc('"', out);
}

static void put_entry(FILE *out, const mri_tensor_entry *e, uint64_t begin)
{
    put_text(out, e->name);
    fputs(":{\"dtype\":\"F32\",\"shape\":[", out);
    for (uint32_t d = 0; d < e->ndim; d++) fprintf(out, d ? ",%" PRIu64 : "%" PRIu64, e->dim[d]);
    fprintf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + e->count * sizeof(float));
}

static int put_header(mri_tensor_writer *w, const mri_tensor_note *notes, uint32_t note_count, mr_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    uint64_t at = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return mr_error_set(err, MR_ENOMEM, "no memory for the header of a file of weights");
    fputs("{\"__metadata__\":{", out);
    for (uint32_t i = 0; i < note_count; i++) {
        if (i) fputc(',', out);
        put_text(out, notes[i].key);
        fputc(':', out);
        put_text(out, notes[i].text);
    }
    fputc('}', out);
    for (uint32_t i = 0; i < w->count; at += w->entry[i++].count * sizeof(float)) {
        fputc(',', out);
        put_entry(out, &w->entry[i], at);
    }
    fputc('}', out);
    fflush(out);
    for (size_t padding = (ALIGN - bytes % ALIGN) % ALIGN; padding > 0; padding--) fputc(' ', out);
    const bool failed = ferror(out) != 0;
    int rc = fclose(out) == 0 && !failed ? MR_OK : MR_ENOMEM;
    if (rc) mr_error_set(err, rc, "no memory for the header of a file of weights");
    uint8_t length[8];
    mri_put_le64(length, bytes);
    if (rc == MR_OK) rc = put(w, length, sizeof length, err);
    if (rc == MR_OK) rc = put(w, text, bytes, err);
    free(text);
    return rc;
}

/* ---- npz ---- */

static int put_member(mri_tensor_writer *w, const float *values, mr_error *err)
{
    const mri_tensor_entry *e = &w->entry[w->done];
    mri_zip_member *m = &w->member[w->done];
    uint8_t head[MRI_NPY_OWN_HEAD], *local = NULL;
    const size_t bytes = (size_t)e->count * sizeof *values,
                 head_bytes = mri_npy_head_write(MR_F32, e->ndim, e->dim, head);
    uint32_t crc = crc32_gzip_refl(0, head, head_bytes);
    for (size_t at = 0; at < bytes; at += 1u << 30)
        crc = crc32_gzip_refl(crc, (const uint8_t *)values + at, mri_min_u64(1u << 30, bytes - at));
    *m = (mri_zip_member){
        .header = w->at, .packed = head_bytes + bytes, .bytes = head_bytes + bytes, .crc = crc};
    if (asprintf(&m->name, "%s.npy", e->name) < 0) m->name = NULL;
    if (m->name) local = malloc(MRI_ZIP_OWN_HEAD + strlen(m->name));
    int rc = local ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the name of an array");
    if (rc == MR_OK) rc = put(w, local, mri_zip_local_write(m, local), err);
    if (rc == MR_OK) rc = put(w, head, head_bytes, err);
    if (rc == MR_OK) rc = put(w, values, bytes, err);
    free(local);
    return rc;
}

static int put_directory(mri_tensor_writer *w, mr_error *err)
{
    const uint64_t begin = w->at;
    uint8_t end[MRI_ZIP_OWN_END];
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < w->count; i++) {
        uint8_t *central = malloc(MRI_ZIP_OWN_HEAD + strlen(w->member[i].name));
        if (!central) return mr_error_set(err, MR_ENOMEM, "no memory for the directory of an archive");
        rc = put(w, central, mri_zip_central_write(&w->member[i], central), err);
        free(central);
    }
    return rc ? rc : put(w, end, mri_zip_end_write(w->count, begin, w->at, end), err);
}

/* ---- both ---- */

int mri_tensor_writer_open(mri_tensor_writer **out, const char *path, const mri_tensor_entry *entries,
                           uint32_t count, const mri_tensor_note *notes, uint32_t note_count,
                           const mri_output_rules *rules, mr_error *err)
{
    const char *kind = mri_tensor_file_kind(path);
    *out = NULL;
    if (!kind || (kind[0] == 'n' && count > MRI_ZIP_MEMBERS)) {
        if (!kind) mr_error_set(err, MR_EINVAL, "expected a name that ends in .safetensors or .npz");
        else
            mr_error_set(err, MR_EINVAL,
                         "%u arrays are more than the %d that .npz holds here: use .safetensors", count,
                         MRI_ZIP_MEMBERS);
        mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
        return MR_EINVAL;
    }
    mri_tensor_writer *w = calloc(1, sizeof *w);
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory to write weights");
    *w = (mri_tensor_writer){.path = path, .entry = entries, .count = count, .is_zip = kind[0] == 'n'};
    w->member = calloc(count ? count : 1, sizeof *w->member);
    int rc = w->member ? mri_output_open(&w->out, path, rules, err)
                       : mr_error_set(err, MR_ENOMEM, "no memory to write weights");
    if (rc == MR_OK && !w->is_zip) rc = put_header(w, notes, note_count, err);
    if (rc) {
        mri_tensor_writer_close(w);
        return rc;
    }
    *out = w;
    return MR_OK;
}

int mri_tensor_writer_put(mri_tensor_writer *w, const float *values, mr_error *err)
{
    if (w->done == w->count)
        return mr_error_set(err, MR_EINVAL, "there are %u arrays, and no more", w->count);
    const int rc = w->is_zip ? put_member(w, values, err)
                             : put(w, values, (size_t)w->entry[w->done].count * sizeof *values, err);
    w->done++;
    return rc;
}

int mri_tensor_writer_commit(mri_tensor_writer *w, uint64_t *bytes, mr_error *err)
{
    if (w->done < w->count)
        return mr_error_set(err, MR_EINVAL, "%u of %u arrays are there", w->done, w->count);
    int rc = w->is_zip ? put_directory(w, err) : MR_OK;
    if (rc == MR_OK) rc = mri_output_commit(w->out, NULL, NULL, err);
    if (rc == MR_OK && bytes) *bytes = w->at;
    return rc;
}

void mri_tensor_writer_close(mri_tensor_writer *w)
{
    if (!w) return;
    mri_output_close(w->out, false);
    for (uint32_t i = 0; w->member && i < w->count; i++) free(w->member[i].name);
    free(w->member);
    free(w);
}

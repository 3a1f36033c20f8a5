/* formats/tfrecord/tfrecord_salvage.c: the records of a damaged TFRecord file. A record is whole when both
 * its checksums are right. After a damaged length the next record is searched at every byte. */
#include "formats/tfrecord/tfrecord_salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/storage.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"

typedef struct walk {
    char *path;
    int fd;
    uint64_t file_bytes, at;
    mri_file_scan scan;
    bool empty_told;
} walk;

static void close_walk(void *state)
{
    walk *w = state;
    if (!w) return;
    mri_file_scan_fini(&w->scan);
    if (w->fd >= 0) close(w->fd);
    free(w->path);
    free(w);
}

static int open_walk(void **out, const char *path, const char *like, mr_error *err)
{
    struct stat st;
    walk *w = calloc(1, sizeof *w);
    (void)like;
    *out = NULL;
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory to look into a file");
    w->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = MR_OK;
    if (!(w->path = strdup(path))) rc = mr_error_set(err, MR_ENOMEM, "no memory to look into a file");
    else if (w->fd < 0) rc = mr_error_sys(err, errno, "cannot open");
    else if (fstat(w->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "not a regular file");
    if (rc) {
        mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
        close_walk(w);
        return rc;
    }
    w->file_bytes = (uint64_t)st.st_size;
    mri_file_scan_init(&w->scan, w->fd, w->path, w->file_bytes);
    *out = w;
    return MR_OK;
}

/* The length of the record at `at`, whole or not. */
static int head_at(walk *w, uint64_t at, uint64_t *bytes, bool *sound, mr_error *err)
{
    const uint8_t *p;
    *sound = false;
    if (at > w->file_bytes || w->file_bytes - at < MRI_TFRECORD_HEAD) return MR_OK;
    const int rc = mri_file_scan_get(&w->scan, at, MRI_TFRECORD_HEAD, &p, err);
    if (!rc) *sound = mri_tfrecord_length(p, bytes) && *bytes < (uint64_t)1 << 31;
    return rc;
}

static bool fits(const walk *w, uint64_t at, uint64_t bytes)
{
    return bytes <= w->file_bytes - at - MRI_TFRECORD_HEAD &&
           w->file_bytes - at - MRI_TFRECORD_HEAD - bytes >= MRI_TFRECORD_TAIL;
}

/* A record at `at` whose head is sound and which fits. */
static int data_sound(walk *w, uint64_t at, uint64_t bytes, const uint8_t **record, bool *sound,
                      mr_error *err)
{
    const uint8_t *p;
    const int rc =
        mri_file_scan_get(&w->scan, at, (size_t)(MRI_TFRECORD_HEAD + bytes + MRI_TFRECORD_TAIL), &p, err);
    if (rc) return rc;
    *record = p;
    *sound =
        mri_tfrecord_crc(p + MRI_TFRECORD_HEAD, (size_t)bytes) == mri_le32(p + MRI_TFRECORD_HEAD + bytes);
    return MR_OK;
}

/* The next record after a damaged head: both checksums are right, or `end`. */
static int find(walk *w, uint64_t from, uint64_t *out, mr_error *err)
{
    const uint8_t *p;
    for (*out = from; *out < w->file_bytes && !mri_stop_asked(); ++*out) {
        uint64_t bytes = 0;
        bool sound;
        int rc = head_at(w, *out, &bytes, &sound, err);
        if (!rc && sound && fits(w, *out, bytes)) {
            rc = data_sound(w, *out, bytes, &p, &sound, err);
            if (!rc && sound) return MR_OK;
        }
        if (rc) return rc;
    }
    return mri_stop_asked() ? mri_stopped(err) : MR_OK;
}

/* Keep a damaged Example's name, if that much of it can be read. */
static void keep_name(const uint8_t *data, size_t bytes, mri_salvage_item *item)
{
    static const char *const key[] = {"image/filename"};
    mri_feature f;
    mri_span text = {0};
    size_t count = 0;
    item->name[0] = '\0';
    if (mri_example_pick(data, bytes, key, 1, &f, NULL) != MR_OK || f.kind != MRI_FEATURE_BYTES ||
        mri_feature_bytes(&f, &text, 1, &count, NULL) != MR_OK || count != 1)
        return;
    const size_t n = text.bytes < sizeof item->name ? text.bytes : sizeof item->name - 1;
    memcpy(item->name, text.data, n);
    item->name[n] = '\0';
}

static int next(void *state, mri_salvage_item *item, mr_error *err)
{
    walk *w = state;
    const uint64_t at = w->at;
    uint64_t bytes = 0;
    bool sound;
    if (mri_stop_asked()) return mri_stopped(err);
    if (at >= w->file_bytes && (w->file_bytes || w->empty_told)) return MR_EEND;
    w->empty_told = true;
    *item = (mri_salvage_item){
        .what = MRI_SALVAGE_LOST, .offset = at, .number = MR_NOWHERE, .why = MR_ERROR_INIT};
    if (w->file_bytes == 0) {
        item->bytes = UINT64_MAX;
        mr_error_set(&item->why, MR_EFORMAT,
                     "the file is empty: some writers make such files, or all of it is lost");
        mr_error_at(&item->why, w->path, 0, MR_NOWHERE);
        return MR_OK;
    }
    int rc = head_at(w, at, &bytes, &sound, err);
    if (rc) return rc;
    if (sound && fits(w, at, bytes)) {
        const uint8_t *p;
        rc = data_sound(w, at, bytes, &p, &sound, err);
        if (rc) return rc;
        item->count = 1;
        item->bytes = MRI_TFRECORD_HEAD + bytes + MRI_TFRECORD_TAIL;
        item->what = sound ? MRI_SALVAGE_WHOLE : MRI_SALVAGE_LOST;
        item->data = p;
        keep_name(p + MRI_TFRECORD_HEAD, (size_t)bytes, item);
        mr_error_set(&item->why, MR_ECHECKSUM, "the checksum of the record's data is wrong");
        w->at = at + item->bytes;
    } else {
        uint64_t to;
        rc = find(w, at + 1, &to, err);
        if (rc) return rc;
        item->bytes = to < w->file_bytes ? to - at : UINT64_MAX - at;
        if (sound && to >= w->file_bytes)
            mr_error_set(&item->why, MR_EFORMAT,
                         "the file is cut off here: expected a record of %" PRIu64 " bytes, found %" PRIu64,
                         bytes, w->file_bytes - at);
        else mr_error_set(&item->why, MR_EFORMAT, "the length of a record is damaged here");
        w->at = to;
    }
    mr_error_at(&item->why, w->path, at, MR_NOWHERE);
    return MR_OK;
}

/* ---- the new file ---- */
typedef struct output {
    mri_output *file;
    FILE *stream;
    mri_output_rules rules;
} output;

static int create(void **out, const void *state, const char *path, bool force, mr_error *err)
{
    output *o = calloc(1, sizeof *o);
    (void)state;
    *out = NULL;
    if (!o) return mr_error_set(err, MR_ENOMEM, "no memory to write a file");
    o->rules = (mri_output_rules){.force = force, .take_part = force};
    int rc = mri_output_open(&o->file, path, &o->rules, err);
    if (!rc && !(o->stream = mri_output_stream(o->file, err))) rc = MR_ENOMEM;
    if (rc) {
        mri_output_close(o->file, false);
        free(o);
        return rc;
    }
    *out = o;
    return MR_OK;
}

static int put(void *out, const mri_salvage_item *whole, mr_error *err)
{
    output *o = out;
    if (fwrite(whole->data, 1, (size_t)whole->bytes, o->stream) == whole->bytes) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot write"), mri_output_part(o->file),
                           MR_NOWHERE, MR_NOWHERE);
}

static void abandon(void *out)
{
    output *o = out;
    if (!o) return;
    mri_output_close(o->file, false);
    free(o);
}

static int finish(void *out, mr_error *err)
{
    output *o = out;
    const int rc = mri_output_commit(o->file, NULL, NULL, err);
    abandon(o);
    return rc;
}

const mri_salvage_ops mri_salvage_tfrecord = {
    .format = "tfrecord",
    .open = open_walk,
    .next = next,
    .close = close_walk,
    .create = create,
    .put = put,
    .finish = finish,
    .abandon = abandon,
};

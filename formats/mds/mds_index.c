/* formats/mds/mds_index.c: index.json, the list of an MDS set's shards. See mds.h.
 *
 * Only names below the folder are followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/mds/mds.h"
#include "formats/storage/json_text.h"

#define MOST_BYTES ((uint64_t)256 << 20)
enum { MOST_SHARDS = 1 << 24, VERSION = 2 };

bool mri_mds_is_index(const uint8_t *head, size_t bytes)
{
    char text[4097];
    const size_t n = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    for (size_t k = 0; k < n; k++) text[k] = head[k] ? (char)head[k] : ' ';
    text[n] = '\0';
    const size_t spaces = strspn(text, " \t\r\n");
    return text[spaces] == '{' && strstr(text, "\"shards\"") && strstr(text, "\"mds\"") &&
           strstr(text, "\"column_names\"");
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for a list of shards"); }

/* A path below the folder, by names that lead nowhere else. */
static bool is_below(const char *name)
{
    if (!*name || *name == '/') return false;
    for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return false;
    return true;
}

/* ---- one file of a shard ---- */
static const cJSON *item(const cJSON *from, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(from, name);
}

static bool take_count(const cJSON *number, uint64_t *out)
{
    const double v = cJSON_IsNumber(number) ? number->valuedouble : -1;
    *out = v >= 0 && v <= 0x1p53 ? (uint64_t)v : 0;
    return v >= 0 && v <= 0x1p53 && (double)*out == v;
}

static void take_hash(mri_mds_shard *s, const cJSON *hashes)
{
    static const char *const known[] = {MRI_MDS_HASH, "xxh64"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(known) && !s->has_hash; k++) {
        const cJSON *one = item(hashes, known[k]);
        char *end;
        if (!cJSON_IsString(one) || strlen(one->valuestring) != 16) continue;
        s->hash = strtoull(one->valuestring, &end, 16);
        s->has_hash = !*end;
        s->hash_is_xxh64 = k == 1;
    }
}

static int take_file(mri_mds_shard *s, const char *folder, const cJSON *data, struct stat *st, mr_error *err)
{
    const cJSON *name = item(data, "basename");
    if (!cJSON_IsString(name) || !take_count(item(data, "bytes"), &s->bytes))
        return mr_error_set(err, MR_EFORMAT, "expected basename and bytes of the shard's file");
    if (!is_below(name->valuestring))
        return mr_error_set(err, MR_EFORMAT, "\"%s\": expected the name of a file below the folder",
                            name->valuestring);
    const size_t room = strlen(folder) + strlen(name->valuestring) + 2;
    free(s->path);
    s->path = malloc(room);
    if (!s->path) return no_memory(err);
    snprintf(s->path, room, "%s/%s", folder, name->valuestring);
    if (stat(s->path, st) != 0) return MR_ENOENT;
    take_hash(s, item(data, "hashes"));
    return MR_OK;
}

/* gzip is unpacked; whoever has others unpacks them first. */
static int check_packed(const cJSON *shard, mr_error *err)
{
    const cJSON *kind = item(shard, "compression");
    const char *name = cJSON_IsString(kind) ? kind->valuestring : "?";
    if (strcmp(name, "gz") == 0 || strncmp(name, "gz:", 3) == 0) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "the shard is packed with %s, and only plain and gz shards are read: unpack it into "
                        "the folder",
                        name);
}

static int take_shard(mri_mds_shard *s, const char *folder, const cJSON *shard, mr_error *err)
{
    struct stat st;
    const cJSON *format = item(shard, "format"), *raw = item(shard, "raw_data"),
                *zip = item(shard, "zip_data");
    if (!cJSON_IsString(format) || strcmp(format->valuestring, "mds") != 0)
        return mr_error_set(err, MR_EUNSUPPORTED, "expected a shard of the format mds, found \"%s\"",
                            cJSON_IsString(format) ? format->valuestring : "?");
    if (!take_count(item(shard, "samples"), &s->samples))
        return mr_error_set(err, MR_EFORMAT, "expected the number of samples of the shard");
    int rc = take_file(s, folder, raw, &st, err);
    if (rc == MR_ENOENT && cJSON_IsObject(zip)) {
        rc = take_file(s, folder, zip, &st, err);
        s->packed = true;
        if (!rc) rc = check_packed(shard, err);
    }
    if (rc == MR_ENOENT) {
        mr_error_sys(err, errno, "the shard is missing");
        return mri_error_place(err, rc, s->path, MR_NOWHERE, MR_NOWHERE);
    }
    if (!rc && (uint64_t)st.st_size != s->bytes)
        rc = mr_error_set(err, MR_EFORMAT,
                          "expected %llu bytes as in " MRI_MDS_INDEX ", found %llu: copy the shard again",
                          (unsigned long long)s->bytes, (unsigned long long)st.st_size);
    return rc && s->path ? mri_error_place(err, rc, s->path, MR_NOWHERE, MR_NOWHERE) : rc;
}

/* ---- names of classes, as our own writer adds them ---- */
static int take_classes(mri_mds_index *x, const cJSON *names, mr_error *err)
{
    const cJSON *one;
    size_t room = 1, at = 0;
    const int count = cJSON_IsArray(names) ? cJSON_GetArraySize(names) : 0;
    cJSON_ArrayForEach(one, names)
    {
        if (!cJSON_IsString(one)) return MR_OK;
        room += strlen(one->valuestring) + 1;
    }
    if (count <= 0) return MR_OK;
    x->class_text = malloc(room);
    x->class_name = calloc((size_t)count, sizeof *x->class_name);
    if (!x->class_text || !x->class_name) return no_memory(err);
    cJSON_ArrayForEach(one, names)
    {
        const size_t n = strlen(one->valuestring) + 1;
        memcpy(x->class_text + at, one->valuestring, n);
        x->class_name[x->class_count++] = x->class_text + at;
        at += n;
    }
    return MR_OK;
}

/* ---- the file ---- */
static int take_root(mri_mds_index *x, const char *folder, const cJSON *root, mr_error *err)
{
    uint64_t version = 0;
    const cJSON *shards = item(root, "shards"), *one;
    const int count = cJSON_IsArray(shards) ? cJSON_GetArraySize(shards) : 0;
    if (!take_count(item(root, "version"), &version) || version != VERSION)
        return mr_error_set(err, MR_EUNSUPPORTED, "expected version %d of the index, found %llu", VERSION,
                            (unsigned long long)version);
    if (count <= 0 || count > MOST_SHARDS)
        return mr_error_set(err, MR_EFORMAT, "expected 1 to %d shards, found %d", MOST_SHARDS, count);
    x->shard = calloc((size_t)count, sizeof *x->shard);
    if (!x->shard) return no_memory(err);
    int rc = MR_OK;
    cJSON_ArrayForEach(one, shards)
    {
        if (rc) break;
        rc = take_shard(&x->shard[x->count++], folder, one, err);
    }
    return rc ? rc : take_classes(x, item(root, "class_names"), err);
}

static int read_text(const char *path, char **text, size_t *bytes, mr_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *text = NULL;
    *bytes = 0;
    int rc =
        fd < 0 || fstat(fd, &st) != 0 ? mr_error_sys(err, errno, "cannot open the list of shards") : MR_OK;
    if (!rc && !S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "not a regular file");
    if (!rc && (uint64_t)st.st_size > MOST_BYTES)
        rc = mr_error_set(err, MR_ELIMIT, "a list of shards of %lld bytes: at most 256 MiB are read",
                          (long long)st.st_size);
    if (!rc) {
        *bytes = (size_t)st.st_size;
        *text = malloc(*bytes + 1);
        rc = *text ? mri_pread_all(fd, *text, *bytes, 0, path, err) : no_memory(err);
    }
    if (fd >= 0) close(fd);
    return rc;
}

int mri_mds_index_read(mri_mds_index *out, const char *folder, mr_error *err)
{
    char path[4096], *text = NULL;
    size_t bytes = 0;
    cJSON *root = NULL;
    *out = (mri_mds_index){0};
    if (snprintf(path, sizeof path, "%s/" MRI_MDS_INDEX, folder) >= (int)sizeof path)
        return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    int rc = read_text(path, &text, &bytes, err);
    bool none = false;
    if (!rc) root = mri_json_parse(text, bytes, NULL, &none);
    if (!rc && none) rc = no_memory(err);
    if (!rc && !cJSON_IsObject(root))
        rc = mr_error_set(err, MR_EFORMAT, "expected a JSON object with the shards: make the set anew");
    if (!rc) rc = take_root(out, folder, root, err);
    cJSON_Delete(root);
    free(text);
    if (!rc) return MR_OK;
    mri_mds_index_fini(out);
    return mri_error_place(err, rc, err && err->file[0] ? NULL : path, MR_NOWHERE, MR_NOWHERE);
}

void mri_mds_index_fini(mri_mds_index *x)
{
    for (uint32_t k = 0; k < x->count; k++) free(x->shard[k].path);
    free(x->shard);
    free(x->class_name);
    free(x->class_text);
    *x = (mri_mds_index){0};
}

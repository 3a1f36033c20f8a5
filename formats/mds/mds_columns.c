/* formats/mds/mds_columns.c: the columns of MDS shards: their names, encodings and sizes, from JSON and as
 * JSON. See mds.h. */
#include <stdio.h>

#include "formats/mds/mds.h"
#include "formats/storage/json_text.h"

/* ---- encodings ---- */
typedef struct number_type {
    const char *name;
    uint32_t bytes;
    bool is_float, is_unsigned;
    mr_dtype dtype; /* 0: no tensor has it */
} number_type;

static const number_type numbers[] = {
    {"int8", 1, false, false, MR_I8},    {"int16", 2, false, false, MR_I16},
    {"int32", 4, false, false, MR_I32},  {"int64", 8, false, false, MR_I64},
    {"uint8", 1, false, true, MR_U8},    {"uint16", 2, false, true, 0},
    {"uint32", 4, false, true, 0},       {"uint64", 8, false, true, 0},
    {"float16", 2, true, false, MR_F16}, {"float32", 4, true, false, MR_F32},
    {"float64", 8, true, false, MR_F64}};

static const number_type *find_number(const char *name, size_t bytes)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(numbers); k++)
        if (strlen(numbers[k].name) == bytes && memcmp(numbers[k].name, name, bytes) == 0) return &numbers[k];
    return NULL;
}

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(text, list[k]) == 0) return true;
    return false;
}

/* "3,224,224" */
static bool read_shape(mri_mds_column *c, const char *text, uint64_t element_bytes, uint64_t *bytes)
{
    *bytes = element_bytes;
    for (c->ndim = 0; *text; text++) {
        char *end;
        if (*text < '0' || *text > '9' || c->ndim == MR_MAX_DIMS) return false;
        const unsigned long long n = strtoull(text, &end, 10);
        if (n == 0 || (*end && *end != ',') || (*end == ',' && !end[1])) return false;
        c->dim[c->ndim++] = n;
        *bytes = mri_times(*bytes, n);
        text = *end ? end : end - 1;
    }
    return c->ndim > 0;
}

/* "ndarray", "ndarray:float32", "ndarray:float32:2,3"; *size: what every value has; 0: not fixed. */
static bool read_array(mri_mds_column *c, uint64_t *size)
{
    const char *type = c->encoding + strlen("ndarray");
    *size = 0;
    c->kind = MRI_MDS_OPAQUE;
    if (!*type) return true;
    if (*type++ != ':') return false;
    const char *shape = strchr(type, ':');
    const number_type *t = find_number(type, shape ? (size_t)(shape - type) : strlen(type));
    if (!t || (shape && !read_shape(c, shape + 1, t->bytes, size))) return false;
    if (!t->dtype) {
        c->ndim = 0;
        return true;
    }
    c->kind = MRI_MDS_ARRAY;
    c->dtype = t->dtype;
    return true;
}

static bool read_encoding(mri_mds_column *c, uint64_t *size)
{
    static const char *const texts[] = {"str", "json", "str_float", "str_decimal"};
    static const char *const pictures[] = {"jpeg", "png"};
    const char *e = c->encoding;
    const number_type *t = find_number(e, strlen(e));
    *size = 0;
    c->kind = MRI_MDS_OPAQUE;
    if (strncmp(e, "ndarray", 7) == 0) return read_array(c, size);
    if (t) c->kind = t->is_float ? MRI_MDS_FLOAT : MRI_MDS_INT;
    else if (strcmp(e, "int") == 0) c->kind = MRI_MDS_INT;
    else if (strcmp(e, "bytes") == 0) c->kind = MRI_MDS_BYTES;
    else if (strcmp(e, "str_int") == 0) c->kind = MRI_MDS_STR_INT;
    else if (strcmp(e, "pil") == 0) c->kind = MRI_MDS_PIL;
    else if (is_one_of(e, texts, MRI_ARRAY_COUNT(texts))) c->kind = MRI_MDS_TEXT;
    else if (is_one_of(e, pictures, MRI_ARRAY_COUNT(pictures))) c->kind = MRI_MDS_PICTURE;
    if (t || c->kind == MRI_MDS_INT) *size = t ? t->bytes : 8;
    c->is_unsigned = t && t->is_unsigned;
    return true;
}

int mri_mds_column_settle(mri_mds_column *c, uint64_t size, mr_error *err)
{
    uint64_t expected;
    if (!read_encoding(c, &expected))
        return mr_error_set(err, MR_EFORMAT,
                            "column \"%s\": expected an encoding such as ndarray:float32:2,3, found \"%s\"",
                            c->name, c->encoding);
    if (expected && size != expected)
        return mr_error_set(err, MR_EFORMAT, "column \"%s\": expected %s to have %llu bytes, found %llu",
                            c->name, c->encoding, (unsigned long long)expected, (unsigned long long)size);
    if (size > UINT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "column \"%s\": values of %llu bytes are more than 4 GiB",
                            c->name, (unsigned long long)size);
    c->bytes = (uint32_t)size;
    return MR_OK;
}

/* ---- from JSON ---- */
static int read_text(char *out, size_t room, const cJSON *item, const char *what, mr_error *err)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : NULL;
    const size_t n = text ? strlen(text) : 0;
    if (n == 0 || n >= room)
        return mr_error_set(err, n ? MR_EUNSUPPORTED : MR_EFORMAT,
                            "columns: expected %s of 1 to %zu bytes, found %zu", what, room - 1, n);
    memcpy(out, text, n + 1);
    return MR_OK;
}

static int read_size(const cJSON *item, uint64_t *out, mr_error *err)
{
    const double v = cJSON_IsNumber(item) ? item->valuedouble : -1;
    *out = 0;
    if (cJSON_IsNull(item)) return MR_OK;
    if (!(v >= 0 && v <= 0x1p53) || v != (double)(uint64_t)v)
        return mr_error_set(err, MR_EFORMAT, "columns: expected a size in bytes or null");
    *out = (uint64_t)v;
    return MR_OK;
}

static int read_column(mri_mds_schema *s, const cJSON *name, const cJSON *encoding, const cJSON *size,
                       mr_error *err)
{
    mri_mds_column *c = &s->column[s->count];
    uint64_t bytes = 0;
    int rc = read_text(c->name, sizeof c->name, name, "a name", err);
    if (!rc) rc = read_text(c->encoding, sizeof c->encoding, encoding, "an encoding", err);
    if (!rc) rc = read_size(size, &bytes, err);
    if (!rc) rc = mri_mds_column_settle(c, bytes, err);
    for (uint32_t k = 0; !rc && k < s->count; k++)
        if (strcmp(s->column[k].name, c->name) == 0)
            rc = mr_error_set(err, MR_EFORMAT, "columns: \"%s\" comes twice", c->name);
    s->count += !rc;
    s->varied += !rc && c->bytes == 0;
    return rc;
}

static int read_columns(mri_mds_schema *s, const cJSON *root, mr_error *err)
{
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(root, "column_names"),
                *encodings = cJSON_GetObjectItemCaseSensitive(root, "column_encodings"),
                *sizes = cJSON_GetObjectItemCaseSensitive(root, "column_sizes");
    const int count = cJSON_IsArray(names) ? cJSON_GetArraySize(names) : 0;
    if (count == 0 || !cJSON_IsArray(encodings) || !cJSON_IsArray(sizes) ||
        cJSON_GetArraySize(encodings) != count || cJSON_GetArraySize(sizes) != count)
        return mr_error_set(err, MR_EFORMAT,
                            "columns: expected column_names, column_encodings and column_sizes of one "
                            "length, the first of %d",
                            count);
    if (count > MR_MAX_FIELDS)
        return mr_error_set(err, MR_EUNSUPPORTED, "%d columns: at most %d are read", count, MR_MAX_FIELDS);
    const cJSON *n = names->child, *e = encodings->child, *z = sizes->child;
    int rc = MR_OK;
    for (; !rc && n; n = n->next, e = e->next, z = z->next) rc = read_column(s, n, e, z, err);
    return rc;
}

int mri_mds_schema_read(mri_mds_schema *out, const void *text, size_t bytes, mr_error *err)
{
    *out = (mri_mds_schema){0};
    bool no_memory;
    cJSON *root = mri_json_parse(text, bytes, NULL, &no_memory);
    int rc = MR_OK;
    if (no_memory) rc = mr_error_set(err, MR_ENOMEM, "no memory for columns");
    else if (!cJSON_IsObject(root))
        rc = mr_error_set(err, MR_EFORMAT, "expected the columns as a JSON object in these %zu bytes", bytes);
    const cJSON *format = rc ? NULL : cJSON_GetObjectItemCaseSensitive(root, "format");
    if (!rc && format && (!cJSON_IsString(format) || strcmp(format->valuestring, "mds") != 0))
        rc = mr_error_set(err, MR_EUNSUPPORTED, "expected a shard of the format mds, found \"%s\"",
                          cJSON_IsString(format) ? format->valuestring : "?");
    if (!rc) rc = read_columns(out, root, err);
    cJSON_Delete(root);
    return rc;
}

bool mri_mds_schema_same(const mri_mds_schema *a, const mri_mds_schema *b)
{
    bool same = a->count == b->count;
    for (uint32_t k = 0; same && k < a->count; k++)
        same = strcmp(a->column[k].name, b->column[k].name) == 0 &&
               strcmp(a->column[k].encoding, b->column[k].encoding) == 0 &&
               a->column[k].bytes == b->column[k].bytes;
    return same;
}

/* ---- as JSON ---- */
static bool add_columns(cJSON *to, const mri_mds_schema *s)
{
    cJSON *encodings = cJSON_AddArrayToObject(to, "column_encodings"),
          *names = cJSON_AddArrayToObject(to, "column_names"),
          *sizes = cJSON_AddArrayToObject(to, "column_sizes");
    bool fine = encodings && names && sizes;
    for (uint32_t k = 0; fine && k < s->count; k++) {
        const mri_mds_column *c = &s->column[k];
        fine = cJSON_AddItemToArray(encodings, cJSON_CreateString(c->encoding)) &&
               cJSON_AddItemToArray(names, mri_json_string(c->name)) &&
               cJSON_AddItemToArray(sizes, c->bytes ? cJSON_CreateNumber(c->bytes) : cJSON_CreateNull());
    }
    return fine;
}

/* The members that a shard's head and its entry in the index share. */
static bool add_config(cJSON *to, const mri_mds_schema *s, uint64_t size_limit)
{
    cJSON *hashes;
    return add_columns(to, s) && cJSON_AddNullToObject(to, "compression") &&
           cJSON_AddStringToObject(to, "format", "mds") &&
           (hashes = cJSON_AddArrayToObject(to, "hashes")) != NULL &&
           cJSON_AddItemToArray(hashes, cJSON_CreateString(MRI_MDS_HASH)) &&
           cJSON_AddNumberToObject(to, "size_limit", (double)size_limit) &&
           cJSON_AddNumberToObject(to, "version", 2);
}

char *mri_mds_schema_text(const mri_mds_schema *s, uint64_t size_limit)
{
    cJSON *root = cJSON_CreateObject();
    char *text = root && add_config(root, s, size_limit) ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    return text;
}

struct mri_mds_index_writer {
    cJSON *root, *shards;
};

mri_mds_index_writer *mri_mds_index_begin(const char *const *class_names, uint32_t class_count)
{
    mri_mds_index_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->root = cJSON_CreateObject();
    w->shards = w->root ? cJSON_AddArrayToObject(w->root, "shards") : NULL;
    cJSON *names = w->shards && class_names ? cJSON_AddArrayToObject(w->root, "class_names") : NULL;
    bool fine = w->shards && (names || !class_names) && cJSON_AddNumberToObject(w->root, "version", 2);
    for (uint32_t k = 0; fine && names && k < class_count; k++)
        fine = cJSON_AddItemToArray(names, mri_json_string(class_names[k]));
    if (fine) return w;
    mri_mds_index_end(w);
    return NULL;
}

int mri_mds_index_add(mri_mds_index_writer *w, const mri_mds_schema *s, uint64_t size_limit, const char *name,
                      uint64_t bytes, uint64_t samples, uint64_t hash)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    cJSON *shard = cJSON_CreateObject(), *raw = NULL, *hashes = NULL;
    if (!shard || !cJSON_AddItemToArray(w->shards, shard)) {
        cJSON_Delete(shard);
        return MR_ENOMEM;
    }
    const bool fine = add_config(shard, s, size_limit) &&
                      (raw = cJSON_AddObjectToObject(shard, "raw_data")) != NULL &&
                      cJSON_AddStringToObject(raw, "basename", name) &&
                      cJSON_AddNumberToObject(raw, "bytes", (double)bytes) &&
                      (hashes = cJSON_AddObjectToObject(raw, "hashes")) != NULL &&
                      cJSON_AddStringToObject(hashes, MRI_MDS_HASH, digits) &&
                      cJSON_AddNumberToObject(shard, "samples", (double)samples) &&
                      cJSON_AddNullToObject(shard, "zip_data");
    return fine ? MR_OK : MR_ENOMEM;
}

char *mri_mds_index_text(mri_mds_index_writer *w) { return cJSON_PrintUnformatted(w->root); }

void mri_mds_index_end(mri_mds_index_writer *w)
{
    if (!w) return;
    cJSON_Delete(w->root);
    free(w);
}

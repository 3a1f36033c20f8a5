/* formats/source/columns.c: see millrace/columns.h and columns.h. */
#include "formats/source/columns.h"

#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/source/classes.h"
#include "formats/storage/json_text.h"

static const char entry_key[] = "\"columns\": ";

uint32_t mr_source_columns(const mr_source *src, uint32_t *field, const char *const **names)
{
    if (!src || mri_is_inherited(src->process) || !src->columns.count) return 0;
    if (field) *field = src->columns.field;
    if (names) *names = src->columns.names;
    return src->columns.count;
}

int mri_source_set_columns(mr_source *src, uint32_t field, const char *const *names, uint32_t count,
                           mr_error *err)
{
    const char **copy = mri_class_names_copy(names, count);
    if (!copy) return mr_error_set(err, MR_ENOMEM, "no memory for the names of %u columns", count);
    for (uint32_t k = 0; k < count; k++)
        for (char *at = (char *)copy[k]; *at; at++)
            if ((unsigned char)*at < ' ' || *at == 127) *at = ' ';
    free(src->columns.names);
    src->columns.names = copy;
    src->columns.count = count;
    src->columns.field = field;
    return MR_OK;
}

/* ---- compared ---- */
static const char *list_text(const char *const *names, uint32_t count, char *buf, size_t room)
{
    char shown[64];
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < count && at < room; k++)
        at += (size_t)snprintf(buf + at, room - at, "%s%s", k ? ", " : "",
                               mr_text_shown(names[k], shown, sizeof shown));
    if (at >= room) memcpy(buf + room - 4, "...", 4);
    return buf;
}

int mr_source_columns_check(const mr_source *src, const char *const *names, uint32_t count, const char *of,
                            mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, of);
    const uint32_t own = src->columns.count;
    char here[400], there[400];
    uint32_t k = 0;
    if (!own || !count) return MR_OK;
    MRI_GIVEN(err, names);
    while (k < own && k < count && strcasecmp(src->columns.names[k], names[k]) == 0) k++;
    if (k == own && k == count) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "the columns of the targets (field %s) are %s; expected the columns of %.200s in the same "
                 "order: %s (number %u differs). Put the columns of the table in this order",
                 src->info.fields[src->columns.field].name,
                 list_text(src->columns.names, own, here, sizeof here), of,
                 list_text(names, count, there, sizeof there), k + 1);
    return mri_error_place(err, MR_EINVAL, src->path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- kept in a provenance ---- */
static bool add_names(cJSON *to, const mr_source *src)
{
    for (uint32_t k = 0; k < src->columns.count; k++) {
        cJSON *name = cJSON_CreateString(src->columns.names[k]);
        if (!name || !cJSON_AddItemToArray(to, name)) {
            cJSON_Delete(name);
            return false;
        }
    }
    return true;
}

char *mri_columns_text(const mr_source *src)
{
    if (!src->columns.count) return calloc(1, 1);
    const char *field = src->info.fields[src->columns.field].name;
    cJSON *root = cJSON_CreateObject();
    cJSON *names =
        cJSON_AddStringToObject(root, "field", field) ? cJSON_AddArrayToObject(root, "names") : NULL;
    char *json = names && add_names(names, src) ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    const size_t room = json ? strlen(json) + sizeof entry_key + 2 : 0;
    char *text = json ? malloc(room) : NULL;
    if (text) snprintf(text, room, "%s%s, ", entry_key, json);
    cJSON_free(json);
    return text;
}

size_t mri_columns_text_bytes(const char *text)
{
    const char *end;
    bool no_memory;
    const size_t key = sizeof entry_key - 1;
    if (strncmp(text, entry_key, key) != 0) return 0;
    cJSON *value = mri_json_parse(text + key, strlen(text + key), &end, &no_memory);
    const bool whole = value && strncmp(end, ", ", 2) == 0;
    cJSON_Delete(value);
    return whole ? (size_t)(end - text) + 2 : 0;
}

static uint32_t field_of(const mr_source *src, const cJSON *columns)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(columns, "field");
    uint32_t k = 0;
    if (!cJSON_IsString(name)) return src->info.field_count;
    while (k < src->info.field_count && strcmp(src->info.fields[k].name, name->valuestring) != 0) k++;
    return k;
}

static uint64_t numbers_of(const mr_field *f)
{
    uint64_t count = f->ndim ? 1 : 0;
    if (f->type != MR_TYPE_TENSOR) return 1;
    for (uint32_t d = 0; d < f->ndim && count <= UINT32_MAX; d++) count *= f->dim[d];
    return count;
}

static int take(mr_source *src, const cJSON *columns, mr_error *err)
{
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(columns, "names"), *item;
    const uint32_t field = field_of(src, columns);
    const uint32_t count = cJSON_IsArray(names) ? (uint32_t)cJSON_GetArraySize(names) : 0;
    uint32_t k = 0;
    if (!count || field == src->info.field_count || numbers_of(&src->info.fields[field]) != count)
        return MR_OK;
    const char **list = malloc(count * sizeof *list);
    if (!list) return mr_error_set(err, MR_ENOMEM, "no memory for the names of %u columns", count);
    cJSON_ArrayForEach(item, names) if (cJSON_IsString(item)) list[k++] = item->valuestring;
    const int rc = k == count ? mri_source_set_columns(src, field, list, count, err) : MR_OK;
    free(list);
    return rc;
}

int mri_source_columns_from(mr_source *src, const char *provenance, mr_error *err)
{
    bool no_memory = false;
    if (!provenance || !strstr(provenance, entry_key)) return MR_OK;
    cJSON *root = mri_json_parse(provenance, strlen(provenance), NULL, &no_memory);
    const cJSON *columns = root ? cJSON_GetObjectItemCaseSensitive(root, "columns") : NULL;
    const int rc = no_memory ? mr_error_set(err, MR_ENOMEM, "no memory for the text of a record file")
                   : columns ? take(src, columns, err)
                             : MR_OK;
    cJSON_Delete(root);
    return rc;
}

int mri_source_columns_fit(const mr_source *src, const mr_field *fields, uint32_t count,
                           const char *provenance, const char *of, mr_error *err)
{
    mr_source like = {.process = src->process, .info = {.fields = fields, .field_count = count}};
    int rc = mri_source_columns_from(&like, provenance, err);
    if (!rc) rc = mr_source_columns_check(src, like.columns.names, like.columns.count, of, err);
    free(like.columns.names);
    return rc;
}

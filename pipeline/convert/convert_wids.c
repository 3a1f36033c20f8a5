/* pipeline/convert/convert_wids.c: see convert_wids.h. */
#include "pipeline/convert/convert_wids.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/source/value.h"

enum { NAME_MOST = 100 };

int mri_wids_check_member(const char *name, mr_error *err)
{
    const size_t n = strlen(name);
    char shown[256];
    if (n > NAME_MOST)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "member %s: its name has %zu bytes, and a WIDS index needs up to %d: leave the index "
            "or the names out (--no-names)",
            mr_text_shown(name, shown, sizeof shown), n, NAME_MOST);
    if (!mri_text_is_utf8(name, n))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "member %s: its name is not UTF-8, which a WIDS index needs: leave the index or the "
            "names out (--no-names)",
            mr_text_shown(name, shown, sizeof shown));
    return MR_OK;
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool add_shard(cJSON *list, const mri_wids_set *set, uint32_t at)
{
    char path[4200];
    cJSON *shard = cJSON_CreateObject();
    set->path_of(set->context, at, path, sizeof path);
    if (!shard || !cJSON_AddItemToArray(list, shard)) {
        cJSON_Delete(shard);
        return false;
    }
    return cJSON_AddStringToObject(shard, "url", last_of(path)) &&
           cJSON_AddNumberToObject(shard, "nsamples", (double)set->facts[at].records) &&
           cJSON_AddNumberToObject(shard, "filesize", (double)set->facts[at].bytes);
}

static char *make_text(const mri_wids_set *set)
{
    char *text = NULL;
    cJSON *index = cJSON_CreateObject();
    bool good = index && cJSON_AddStringToObject(index, "__kind__", "wids-shard-index-v1") &&
                cJSON_AddNumberToObject(index, "wids_version", 1);
    cJSON *list = good ? cJSON_AddArrayToObject(index, "shardlist") : NULL;
    good = list != NULL;
    for (uint32_t k = 0; good && k < set->count; k++) good = add_shard(list, set, k);
    if (good) text = cJSON_Print(index);
    cJSON_Delete(index);
    return text;
}

int mri_wids_write(const char *path, const mri_wids_set *set, const mri_output_rules *rules, mr_error *err)
{
    char *text = make_text(set);
    if (!text) return mr_error_set(err, MR_ENOMEM, "no memory for the index of samples");
    const int rc = mri_output_write_whole(path, text, strlen(text), rules, err);
    free(text);
    return rc;
}

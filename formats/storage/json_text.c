/* formats/storage/json_text.c: see json_text.h. */
#include "formats/storage/json_text.h"

#include <errno.h>
#include <pthread.h>

#include "base/util.h"

/* The library keeps the place of its last error in a global of its own. */
cJSON *mri_json_parse(const char *text, size_t bytes, const char **end, bool *no_memory)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    mri_lock_global(&lock);
    errno = 0;
    cJSON *root = cJSON_ParseWithLengthOpts(text, bytes, end, 0);
    *no_memory = !root && errno == ENOMEM;
    pthread_mutex_unlock(&lock);
    return root;
}

/* formats/storage/json_text.c: see json_text.h. */
#include "formats/storage/json_text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
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

cJSON *mri_json_string(const char *text)
{
    char *whole = malloc(2 * strlen(text) + 1), *to = whole;
    if (!whole) return NULL;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = mri_utf8_bytes(s);
        if (n) {
            memcpy(to, s, n);
            to += n;
        } else {
            *to++ = (char)(0xc0 | *s >> 6);
            *to++ = (char)(0x80 | (*s & 0x3f));
        }
        s += n ? n : 1;
    }
    *to = '\0';
    cJSON *out = cJSON_CreateString(whole);
    free(whole);
    return out;
}

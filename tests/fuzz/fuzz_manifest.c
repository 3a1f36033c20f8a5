/* tests/fuzz/fuzz_manifest.c: the lines of a manifest over hostile bytes. A line of a file comes back the
 * same when it is written again and read. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static mri_manifest_line one, again;
    static char text[MRI_MANIFEST_LINE];
    const char *at = (const char *)data, *end = at + bytes;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((stop ? stop : end) - at);
        if (mri_manifest_parse_line(at, n, &one) == MRI_MANIFEST_FILE) {
            const size_t made = mri_manifest_format_line(one.sum, one.name, text);
            if (made == 0 || made > sizeof text || text[made - 1] != '\n') abort();
            if (mri_manifest_parse_line(text, made - 1, &again) != MRI_MANIFEST_FILE) abort();
            if (memcmp(one.sum, again.sum, sizeof one.sum) != 0 || strcmp(one.name, again.name) != 0) abort();
        }
        at += n + 1;
    }
    return 0;
}

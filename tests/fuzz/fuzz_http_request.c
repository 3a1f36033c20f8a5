/* tests/fuzz/fuzz_http_request.c: requests to the page of figures, each in memory of exactly its size;
 * however it comes in pieces, the first status is the one that counts. */
#include <stdlib.h>
#include <string.h>

#include "run/logger/http_request.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    bool head;
    for (size_t part = 1; part <= bytes && part <= 4096; part++) {
        char *text = malloc(part);
        if (!text) return 0;
        memcpy(text, data, part);
        const int status = mri_http_request_status(text, part, &head);
        free(text);
        if (status && !mri_http_status_text(status)[0]) abort();
        if (head && status != 200 && status != 404) abort();
        if (status) break;
    }
    return 0;
}

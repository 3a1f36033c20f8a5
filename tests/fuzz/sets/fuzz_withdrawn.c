/* tests/fuzz/sets/fuzz_withdrawn.c: a hostile list of withdrawn samples. Input: its first byte says whether
 * the last line is made right (count and checksum), the rest is the list. An accepted list keeps the promises
 * of withdrawn_list.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "formats/source/withdrawn_list.h"
#include "millrace/formats.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1 << 16, DECLARED = 1 << 16 };

/* A last line for these lines. */
static size_t add_end(char *list, size_t bytes)
{
    size_t lines = 0;
    for (size_t k = 0; k < bytes; k++) lines += list[k] == '\n';
    return bytes + (size_t)snprintf(list + bytes, 64, "end %zu samples checksum %08x\n",
                                    lines ? lines - 1 : 0, mr_crc32c(0, list, bytes));
}

static void check(const mri_withdrawn_list *l)
{
    for (uint64_t k = 0; k < l->count; k++) {
        const mri_withdrawn_entry *e = &l->entry[k];
        uint64_t end;
        if (!e->file[0] || strchr(e->file, '/')) abort();
        if (k && mri_withdrawn_order(e - 1, e) >= 0) abort();
        const uint64_t first = mri_withdrawn_of_file(l, e->file, &end);
        if (first > k || end <= k) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char list[MOST + 64];
    mri_withdrawn_list l;
    mr_error err = MR_ERROR_INIT;
    if (bytes < 1 || bytes > MOST) return 0;
    size_t size = bytes - 1;
    memcpy(list, data + 1, size);
    if (data[0] & 1) size = add_end(list, size);
    mrt_fuzz_begin(size, DECLARED);
    const int rc = mri_withdrawn_list_read(&l, mrt_fuzz_file(MRI_WITHDRAWN_NAME, list, size), &err);
    if (rc == MR_OK) check(&l);
    else if (!err.text[0] || err.code != rc) abort();
    mri_withdrawn_list_fini(&l);
    mrt_fuzz_end();
    return 0;
}

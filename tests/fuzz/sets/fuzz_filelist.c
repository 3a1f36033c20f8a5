/* tests/fuzz/sets/fuzz_filelist.c: which files a path, folder or pattern names.
 *
 * Input: a byte for the part asked for, then lines: the request, and the names of the files that are
 * there. A file is one of ours unless its name ends in '~'. Patterns with [ are left out: a range inside of
 * one can name the same file a million times, which is the limit of a list and not of this test's
 * patience. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "formats/fileset/filelist.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_NAMES = 20, MOST_NAME = 100, DECLARED = 256 << 10 };

static bool ours(const uint8_t *head, size_t bytes) { return bytes > 0 && head[0] == 'x'; }

/* The next line, cut out of the text; NULL after the last. */
static char *line_of(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (end) *end = '\0';
    *at = end ? end + 1 : NULL;
    return line;
}

static void put_files(char *at)
{
    char *name;
    for (int k = 0; k < MOST_NAMES && (name = line_of(&at));) {
        const size_t bytes = strlen(name);
        if (bytes == 0 || bytes > MOST_NAME || strchr(name, '/') || strcmp(name, ".") == 0 ||
            strcmp(name, "..") == 0)
            continue;
        mrt_fuzz_file(name, name[bytes - 1] == '~' ? "no" : "x", 1);
        k++;
    }
}

static void find(const char *path, mr_split split, bool is_folder)
{
    mri_filelist l;
    mr_error err = MR_ERROR_INIT;
    const int rc = mri_filelist_find(&l, path, split, ours, &err);
    if ((rc == MR_OK) != (l.count > 0) || (rc && !err.text[0])) abort();
    for (uint32_t k = 0; k < l.count; k++) {
        if (strncmp(l.path[k], MRT_FUZZ_FOLDER "/", sizeof MRT_FUZZ_FOLDER) != 0) abort();
        for (uint32_t n = 0; is_folder && n < k; n++)
            if (strcmp(l.path[k], l.path[n]) == 0) abort(); /* a folder names each file once */
    }
    mri_filelist_fini(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char text[4096], path[4200];
    if (bytes < 1 || bytes > sizeof text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    char *at = text;
    const char *asked = line_of(&at);
    if (strchr(asked, '[')) return 0;
    mrt_fuzz_begin(bytes, DECLARED);
    put_files(at);
    strcpy(path, MRT_FUZZ_FOLDER "/");
    strcat(path, asked);
    find(path, data[0] % 3 == 0 ? MR_SPLIT_AUTO : data[0] % 3 == 1 ? MR_SPLIT_TRAIN : MR_SPLIT_TEST, !*asked);
    mri_filelist_probe(path, ours, NULL);
    mrt_fuzz_end();
    return 0;
}

/* tests/fuzz/replay_main.c: run a fuzz target over files and folders named on the command line, without
 * libFuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int files;

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (!f) return;
    struct stat st;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode)) {
        uint8_t *data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1); /* nothing after it */
        if (data && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size) {
            LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
            files++;
        }
        free(data);
    }
    fclose(f);
}

static void replay(const char *path)
{
    DIR *d = opendir(path);
    if (!d) {
        replay_file(path);
        return;
    }
    const struct dirent *e;
    while ((e = readdir(d))) {
        char name[4096];
        if (e->d_name[0] != '.' &&
            (size_t)snprintf(name, sizeof name, "%s/%s", path, e->d_name) < sizeof name)
            replay_file(name);
    }
    closedir(d);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput(NULL, 0);
    for (int k = 1; k < argc; k++) replay(argv[k]);
    printf("%d files replayed\n", files);
    return files > 0 ? 0 : 1; /* an empty corpus tests nothing */
}

/* odd_files FOLDER: the pictures of tests/pipeline/decode/odd.h as files, FOLDER/GROUP/all/NAME, and a line
 * on stdout for each, of kinds whose library is here:
 *
 *   GROUP TAB NAME TAB "good", "bad" or "own" (libjpeg does not read it) TAB the error of our decoder
 *   TAB the error of libjpeg, or of a check */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/pipeline/decode/odd.h"

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void folder(const char *path)
{
    if (mkdir(path, 0777) != 0) die(path);
}

static void put(const char *path, const mrt_odd *o)
{
    FILE *f = fopen(path, "wbe");
    if (!f || (o->bytes && fwrite(o->data, 1, o->bytes, f) != o->bytes) || fclose(f) != 0) die(path);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 2) {
        fprintf(stderr, "odd_files FOLDER\n");
        return 2;
    }
    folder(argv[1]);
    for (size_t g = 0; g < MRT_ODD_GROUPS; g++) {
        const mrt_odd_group *group = &mrt_odd_groups[g];
        mr_error err = MR_ERROR_INIT;
        if (group->type && mr_image_can_decode(group->type, &err) != MR_OK) {
            fprintf(stderr, "left out: %s\n", err.text);
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", argv[1], group->name);
        folder(path);
        snprintf(path, sizeof path, "%s/%s/all", argv[1], group->name);
        folder(path);
        for (const mrt_odd_case *c = group->cases; c->name; c++) {
            mrt_odd o = {0};
            c->make(&o, c->variant);
            snprintf(path, sizeof path, "%s/%s/all/%s", argv[1], group->name, c->name);
            put(path, &o);
            mrt_odd_free(&o);
            const char *says = c->says ? c->says : "";
            printf("%s\t%s\t%s\t%s\t%s\n", group->name, c->name,
                   c->code                  ? "bad"
                   : c->flags & MRT_ODD_OWN ? "own"
                                            : "good",
                   says, c->otherwise ? c->otherwise : says);
        }
    }
    return 0;
}

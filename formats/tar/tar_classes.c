/* formats/tar/tar_classes.c: see tar_classes.h. */
#include "formats/tar/tar_classes.h"

#include "base/util.h"

enum { MOST_NAME = 1000 };

static int wrong(mri_tar_classes *c, const char *why)
{
    mri_tar_classes_fini(c);
    c->wrong = why;
    return MR_OK;
}

/* Names are displayed, and become folders: characters that a terminal does not show are not allowed. */
static bool is_name(const char *line, size_t bytes)
{
    char shown[4 * MOST_NAME + 1];
    return bytes >= 1 && bytes <= MOST_NAME && strlen(line) == bytes &&
           strcmp(mr_text_shown(line, shown, sizeof shown), line) == 0;
}

int mri_tar_classes_take(mri_tar_classes *out, const char *text, size_t bytes, mr_error *err)
{
    size_t count = 0;
    *out = (mri_tar_classes){0};
    if (bytes == 0 || text[bytes - 1] != '\n') return wrong(out, "expected a line for each class");
    for (size_t k = 0; k < bytes; k++) count += text[k] == '\n'; /* bytes is bounded: so is this */
    out->name = malloc(count * sizeof *out->name);
    out->text = malloc(bytes);
    if (!out->name || !out->text) {
        mri_tar_classes_fini(out);
        return mr_error_set(err, MR_ENOMEM, "no memory for the names of %zu classes", count);
    }
    memcpy(out->text, text, bytes);
    for (char *line = out->text, *end; line < out->text + bytes; line = end + 1) {
        end = memchr(line, '\n', (size_t)(out->text + bytes - line));
        *end = '\0';
        if (!is_name(line, (size_t)(end - line)))
            return wrong(out, "expected a name of 1 to 1000 printable bytes in each line");
        out->name[out->count++] = line;
    }
    return MR_OK;
}

void mri_tar_classes_fini(mri_tar_classes *c)
{
    free(c->name);
    free(c->text);
    *c = (mri_tar_classes){0};
}

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

/* ---- names in lines ---- */
static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* Of \xHH at this place; -1: something else stands there. */
static int escaped(const char *at)
{
    if (at[0] != '\\' || at[1] != 'x' || hex(at[2]) < 0 || hex(at[3]) < 0) return -1;
    return hex(at[2]) << 4 | hex(at[3]);
}

/* out: 4 bytes for each of the name, and 5. */
static size_t put_name(const char *name, char *out)
{
    size_t room = 4 * strlen(name) + 1, used = 0;
    char *plain = malloc(room);
    if (!plain) return 0;
    for (const char *at = name; *at; at++) {
        if (escaped(at) >= 0) memcpy(plain + used, "\\x5c", 4), used += 4;
        else plain[used++] = *at;
    }
    plain[used] = '\0';
    mr_text_shown(name[0] ? plain : "\\x00", out, room + 4);
    free(plain);
    used = strlen(out);
    out[used] = '\n';
    return used + 1;
}

int mri_tar_classes_text(const char *const *names, uint32_t count, char **text, size_t *bytes, mr_error *err)
{
    size_t room = 1;
    for (uint32_t k = 0; k < count; k++) room += 4 * strlen(names[k]) + 6;
    *bytes = 0;
    *text = malloc(room);
    for (uint32_t k = 0; *text && k < count; k++) {
        const size_t own = put_name(names[k], *text + *bytes);
        *bytes += own;
        if (own) continue;
        free(*text);
        *text = NULL;
    }
    return *text ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the names of %u classes", count);
}

/* The name in a line, in its place. Lines are displayed: characters that a terminal does not show are not
 * allowed. */
static bool take_name(char *line, size_t bytes)
{
    char shown[4 * MOST_NAME + 1], *to = line;
    if (bytes < 1 || bytes > 4 * MOST_NAME || strlen(line) != bytes) return false;
    if (strcmp(mr_text_shown(line, shown, sizeof shown), line) != 0) return false;
    if (strcmp(line, "\\x00") == 0) return line[0] = '\0', true;
    for (const char *at = line; *at;) {
        const int byte = escaped(at);
        if (byte == 0) return false;
        *to++ = byte < 0 ? *at : (char)byte;
        at += byte < 0 ? 1 : 4;
    }
    *to = '\0';
    return to - line <= MOST_NAME;
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
        if (!take_name(line, (size_t)(end - line)))
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

/* formats/text/csv_columns.c: see csv_table.h. */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/image/picture_files.h"
#include "formats/text/csv_table.h"
#include "formats/text/json_rows.h"

static const char *const image_names[] = {"path",      "file",      "filename",   "image", "filepath",
                                          "file_path", "file_name", "image_path", "img"};
/* Kaggle's: names without folder and ending. Only where no column has a name of those above. */
static const char *const id_names[] = {"id", "image_id", "id_code", "image_name", "img_id", "uuid"};
static const char *const label_names[] = {"label",      "class",  "target", "category",
                                          "class_name", "labels", "y"};

static bool is_name(const char *place, const char *name)
{
    size_t n;
    const char *text = mri_csv_trimmed(place, &n);
    return n == strlen(name) && strncasecmp(text, name, n) == 0;
}

static int find_column(const mri_csv *c, const char *name)
{
    return mri_csv_find_name(c, name, strlen(name));
}

static int find_usual(const mri_csv *c, const char *const *names, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const int at = find_column(c, names[k]);
        if (at >= 0) return at;
    }
    return -1;
}

static bool is_number(const char *key) { return key && *key && strspn(key, "0123456789") == strlen(key); }

static int find_key(const mri_csv *c, const char *key, const char *const *names, size_t count)
{
    return key && !is_number(key) ? find_column(c, key) : find_usual(c, names, count);
}

/* "a, b, c" of a header, for messages. */
static const char *columns_text(const mri_csv *c, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < c->count && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%.40s", k ? ", " : "", mri_csv_place(c, k));
    return buf;
}

/* For a table without a column of classes, but with several columns next to the picture's. */
static const char *targets_text(const mri_csv *c, uint32_t image, char *buf, size_t buf_bytes)
{
    const uint32_t first = image == 0 ? 1 : 0, last = image == c->count - 1 ? c->count - 2 : c->count - 1;
    buf[0] = '\0';
    if (c->count > 2 && (image <= first || image >= last))
        snprintf(
            buf, buf_bytes,
            "; where each class has a column of 0 and 1, their numbers are read as targets (--target-key "
            "%.40s..%.40s, with the first and the last of them)",
            mri_csv_place(c, first), mri_csv_place(c, last));
    return buf;
}

static int choose_column(const mri_csv *c, const char *key, int found, uint32_t fallback, bool header,
                         const char *what, const char *option, const char *more, uint32_t *out, mr_error *err)
{
    char buf[256];
    if (is_number(key)) {
        const unsigned long number = strlen(key) < 9 ? strtoul(key, NULL, 10) : 0;
        if (number < 1 || number > c->count)
            return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                                     "%s in column %s: there are columns 1 to %u", what, key, c->count);
        *out = (uint32_t)number - 1;
        return MR_OK;
    }
    if (found >= 0) {
        *out = (uint32_t)found;
        return header ? mri_csv_named_once(c, *out, key != NULL, option, err) : MR_OK;
    }
    if (header || key)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "no column %s%s for the %s; there are: %s; name the one to take (%s NAME)%s",
                                 key ? "named " : "with a usual name", key ? key : "", what,
                                 columns_text(c, buf, sizeof buf), option, more);
    *out = fallback;
    return MR_OK;
}

int mri_csv_find_image(const mri_csv *names, const mr_source_config *cfg)
{
    const int image = find_key(names, cfg->image_key, image_names, MRI_ARRAY_COUNT(image_names));
    return image >= 0 || cfg->image_key ? image : find_usual(names, id_names, MRI_ARRAY_COUNT(id_names));
}

/* From the first row; *header: it holds names, no sample. */
int mri_csv_table_choose(mri_csv_table *t, const mri_csv *c, const mr_source_config *cfg, bool *header,
                         mr_error *err)
{
    const int image = mri_csv_find_image(c, cfg);
    int label = find_key(c, cfg->label_key, label_names, MRI_ARRAY_COUNT(label_names));
    if (label >= 0 && !cfg->label_key && is_name(mri_csv_place(c, (uint32_t)label), "y") &&
        find_column(c, "x") >= 0)
        label = -1; /* a place in the picture */
    *header = image >= 0 || (label >= 0 && cfg->label_key) || (label >= 0 && is_number(cfg->image_key));
    t->column.count = c->count;
    if (cfg->target_key) {
        int rc = mri_table_numbers_choose(&t->numbers, c, cfg->target_key, err);
        if (!rc && *header) rc = mri_table_numbers_take_names(&t->numbers, c, err);
        if (rc) return rc;
        if (!cfg->label_key && label >= 0 && mri_table_numbers_has(&t->numbers, (uint32_t)label)) label = -1;
    }
    t->column.labelled = !cfg->target_key || cfg->label_key || label >= 0;
    if (c->count < 2)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "expected at least two columns (picture and class) between "
                                 "commas, semicolons, tabs, bars or blanks, found one");
    char targets[256];
    int rc = choose_column(c, cfg->image_key, image, 0, *header, "picture", "--image-key", "",
                           &t->column.image, err);
    if (!rc && t->column.labelled)
        rc = choose_column(c, cfg->label_key, label, t->column.image == 1 ? 0 : 1, *header, "class",
                           "--label-key", targets_text(c, t->column.image, targets, sizeof targets),
                           &t->column.label, err);
    if (!rc && mri_table_numbers_has(&t->numbers, t->column.image))
        rc = mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                               "column %u cannot be picture and target at once", t->column.image + 1);
    if (!rc && t->column.labelled && t->column.image == t->column.label)
        rc = mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                               "column %u cannot be picture and class at once", t->column.image + 1);
    return rc;
}

bool mri_csv_is_class_name(const char *text, size_t bytes)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(label_names); k++)
        if (bytes > 1 && bytes == strlen(label_names[k]) && strncasecmp(text, label_names[k], bytes) == 0)
            return true;
    return false;
}

/* ---- does it look like a table of pictures? ---- */
static void trim(const char **place, size_t *bytes)
{
    while (*bytes > 0 && strchr(" \t\"", **place)) (*place)++, (*bytes)--;
    while (*bytes > 0 && strchr(" \t\"", (*place)[*bytes - 1])) (*bytes)--;
}

static bool is_usual_name(const char *place, size_t bytes)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(image_names); k++)
        if (bytes == strlen(image_names[k]) && strncasecmp(place, image_names[k], bytes) == 0) return true;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(id_names); k++)
        if (bytes == strlen(id_names[k]) && strncasecmp(place, id_names[k], bytes) == 0) return true;
    return false;
}

bool mri_csv_is_known_name(const char *name)
{
    return is_usual_name(name, strlen(name)) || mri_csv_is_class_name(name, strlen(name)) ||
           mri_table_parts_is_name(name);
}

/* Does it end as a picture's name does? */
static bool ends_as_picture(const char *place, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && place[bytes - n - 1] != '.') n++;
    return n + 1 < bytes && mri_picture_ending(place + bytes - n, n);
}

/* header: a usual column name is enough. */
static bool looks_like_row(const char *row, size_t bytes, char separator, bool header)
{
    uint32_t places = 0;
    bool found = false;
    if (separator == ' ') { /* only in front of the last one */
        trim(&row, &bytes);
        while (bytes && row[bytes - 1] != ' ') bytes--;
        trim(&row, &bytes);
        return bytes && ends_as_picture(row, bytes);
    }
    for (size_t at = 0; at <= bytes; places++) {
        const char *end = memchr(row + at, separator, bytes - at), *place = row + at;
        const size_t n = end ? (size_t)(end - row) - at : bytes - at;
        size_t own = n;
        trim(&place, &own);
        found |= ends_as_picture(place, own) || (header && is_usual_name(place, own));
        at += n + 1;
    }
    return found && places >= 2;
}

static size_t line_bytes(const uint8_t *text, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && text[n] != '\n' && text[n] != '\r') n++;
    return n;
}

static bool looks_like_table(const uint8_t *head, size_t bytes, bool by_second_line)
{
    if (bytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) head += 3, bytes -= 3;
    while (bytes > 0 && (*head == '\n' || *head == '\r')) head++, bytes--;
    if (mri_json_begins(head, bytes)) return mri_json_first_keys(head, bytes, is_usual_name);
    const size_t n = line_bytes(head, bytes);
    if (n == 0 || memchr(head, '\0', n) || !mri_is_utf8(head, n) || head[0] == '<') return false;
    const char separator = mri_csv_separator(head, bytes);
    const bool first = looks_like_row((const char *)head, n, separator, true);
    if (first || !by_second_line) return first;
    /* a header with other names */
    const uint8_t *second = head + n;
    size_t left = bytes - n;
    while (left > 0 && (*second == '\n' || *second == '\r')) second++, left--;
    const size_t more = line_bytes(second, left);
    return more < left && memchr(head, separator, n) && !memchr(second, '\0', more) &&
           looks_like_row((const char *)second, more, separator, false);
}

/* A table in UTF-16, by every second byte: the error of opening it names the remedy. */
static bool looks_like_utf16(const uint8_t *head, size_t bytes, bool by_second_line)
{
    uint8_t half[MRI_PROBE_BYTES / 2];
    const size_t low = head[0] == 0xff ? 0 : 1;
    size_t n = 0;
    for (size_t at = 2; at + 1 < bytes && n < sizeof half; at += 2) {
        const bool is_ascii = head[at + 1 - low] == 0 && head[at + low] < 0x80;
        half[n++] = is_ascii ? head[at + low] : '?';
    }
    return looks_like_table(half, n, by_second_line);
}

static bool looks_like(const uint8_t *head, size_t bytes, bool by_second_line)
{
    const bool utf16 = bytes > 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0);
    return utf16 ? looks_like_utf16(head, bytes, by_second_line)
                 : looks_like_table(head, bytes, by_second_line);
}

bool mri_csv_looks_like_table(const uint8_t *head, size_t bytes) { return looks_like(head, bytes, true); }
bool mri_csv_begins_as_table(const uint8_t *head, size_t bytes) { return looks_like(head, bytes, false); }

/* formats/folder/accents.c: names that look the same and are not: letters with accents are one character of
 * Unicode (NFC, as most systems write it) or a letter and a mark after it (NFD, as macOS does).
 *
 * For messages alone: only Latin letters up to U+017F are known, and no name is changed. */
#include "base/util.h"
#include "formats/folder/folder.h"

/* The base letters of U+00C0 to U+017F; '?': no base letter. */
static const char plain[] = "AAAAAA?CEEEEIIII?NOOOOO??UUUUY??aaaaaa?ceeeeiiii?nooooo??uuuuy?y"
                            "AaAaAaCcCcCcCcDd??EeEeEeEeEeGgGgGgGgHh??IiIiIiIiI?" /* to U+0131 */
                            "??JjKk?LlLlLl????NnNnNn???OoOoOo??RrRrRrSsSsSsSsTtTt"
                            "??UuUuUuUuUuUuWwYyYZzZzZz?";
_Static_assert(sizeof plain == 0x180 - 0xc0 + 1, "a letter for each");

static bool is_mark(const uint8_t *p)
{
    return (p[0] == 0xcc && p[1] >= 0x80) || (p[0] == 0xcd && p[1] >= 0x80 && p[1] <= 0xaf);
}

/* The next character without its marks; 0: the end. */
static int next_plain(const uint8_t **at, bool *marks)
{
    while (is_mark(*at)) *at += 2, *marks = true;
    const uint8_t *p = *at;
    if (p[0] >= 0xc3 && p[0] <= 0xc5 && (p[1] & 0xc0) == 0x80) {
        const char c = plain[((p[0] & 0x1f) << 6 | (p[1] & 0x3f)) - 0xc0];
        if (c != '?') return *at += 2, c;
    }
    return p[0] ? *(*at)++ : 0;
}

bool mri_names_look_alike(const char *a, const char *b)
{
    const uint8_t *p = (const uint8_t *)a, *q = (const uint8_t *)b;
    bool marks_a = false, marks_b = false;
    int one, other;
    if (strcmp(a, b) == 0) return false;
    do {
        one = next_plain(&p, &marks_a);
        other = next_plain(&q, &marks_b);
    } while (one == other && one);
    return one == other && marks_a != marks_b;
}

/* formats/storage/placeholder.c: see placeholder.h. Nothing here decides anything: it is asked when no format
 * knows the bytes. */
#include "formats/storage/placeholder.h"

#include <string.h>
#include <strings.h>

static bool begins(const uint8_t *head, size_t bytes, const char *text)
{
    return bytes >= strlen(text) && strncasecmp((const char *)head, text, strlen(text)) == 0;
}

const char *mri_placeholder_describe(const uint8_t *head, size_t bytes)
{
    if (begins(head, bytes, "version https://git-lfs.github.com/spec/"))
        return "this is a git-lfs pointer, not the data: fetch them (git lfs pull)";
    while (bytes > 0 && (*head == ' ' || (*head >= '\t' && *head <= '\r'))) {
        head++;
        bytes--;
    }
    if (begins(head, bytes, "<!doctype html") || begins(head, bytes, "<html"))
        return "this is a page of HTML, not the data: what was downloaded is an error or a login page";
    return NULL;
}

/* tools/trial/convert_command.c: see convert_command.h. */
#include "tools/trial/convert_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A word of a shell's command line. */
static void put_word(char *out, size_t room, const char *word)
{
    size_t at = strlen(out);
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
    const bool quoted = word[strspn(word, plain)] != '\0' || !word[0];
    if (quoted && at + 1 < room) out[at++] = '\'';
    for (; *word && at + 5 < room; word++) {
        if (*word == '\'') at += (size_t)snprintf(out + at, room - at, "'\\''");
        else out[at++] = *word;
    }
    if (quoted && at + 1 < room) out[at++] = '\'';
    out[at] = '\0';
}

/* The folder or file without what stands before its last name, and its ending: where the result would lie. */
static void name_result(char *out, size_t room, const char *src_text, const char *set)
{
    size_t bytes = strlen(src_text);
    while (bytes > 1 && src_text[bytes - 1] == '/') bytes--;
    size_t begin = bytes;
    while (begin > 0 && src_text[begin - 1] != '/') begin--;
    const char *dot = memrchr(src_text + begin, '.', bytes - begin);
    const size_t stem = dot && dot > src_text + begin ? (size_t)(dot - src_text) - begin : bytes - begin;
    const char *kind = strstr(set, "coef")    ? "-coef"
                       : strstr(set, "raw")   ? "-raw"
                       : strstr(set, "trans") ? "-sequential"
                                              : "";
    if (!kind[0] && bytes - begin == stem + 5 && memcmp(src_text + begin + stem, ".mrec", 5) == 0)
        kind = "-new"; /* not the input itself */
    const bool named = stem > 0 && src_text[begin] != '.' && src_text[begin] != '/';
    snprintf(out, room, "%.*s%s.mrec", named ? (int)stem : 4, named ? src_text + begin : "data", kind);
}

void convert_command(char *out, size_t room, const char *src_text, const char *set)
{
    char name[1024];
    name_result(name, sizeof name, src_text, set);
    snprintf(out, room, "millrace convert ");
    put_word(out, room / 2, src_text);
    strcat(out, " ");
    put_word(out, room - 64, name);
    strcat(out, set);
}

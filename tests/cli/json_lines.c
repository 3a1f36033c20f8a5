/* tests/cli/json_lines.c: reads lines from stdin; each must be one JSON object whose first key is "event",
 * with no key twice anywhere in it. Exit 0, or 1 after naming the first line that is not so. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *key_twice(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next) {
        for (const cJSON *b = a->next; a->string && b; b = b->next)
            if (strcmp(a->string, b->string) == 0) return a->string;
        const char *below = a->child ? key_twice(a) : NULL;
        if (below) return below;
    }
    return NULL;
}

static bool check_line(const char *line, long number)
{
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithOpts(line, &end, 0);
    const char *what = NULL;
    if (!object || !cJSON_IsObject(object) || strspn(end, " \n") != strlen(end)) what = "not one JSON object";
    else if (!object->child || strcmp(object->child->string, "event") != 0)
        what = "\"event\" is not the first key";
    const char *twice = what ? NULL : key_twice(object);
    if (what) printf("line %ld: %s: %s\n", number, what, line);
    if (twice) printf("line %ld: key \"%s\" twice\n", number, twice);
    cJSON_Delete(object);
    return !what && !twice;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    long number = 0;
    bool good = true;
    while (good && getline(&line, &room, stdin) > 0) good = check_line(line, ++number);
    if (number == 0) puts("no lines at all");
    free(line);
    return good && number ? 0 : 1;
}

/* tests/cli/watch/metrics_check.c: reads a page in Prometheus' text format from stdin; exit 0, or 1 after
 * naming the first line that is not as it should be. Stricter than the format: HELP, TYPE and then the
 * samples of each family, once; names begin with millrace_; of counters, and of them alone, they end in
 * _total; no unit but seconds and bytes; no sample twice; counters are not negative. */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512, NAME = 256 };

static char families[MOST][NAME], samples[MOST][1024];
static int family_count, sample_count, of_family;
static bool is_counter, has_type = true;

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_name(const char *name)
{
    if (strncmp(name, "millrace_", 9) != 0) return false;
    for (const char *c = name; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_') return false;
    static const char *const units[] = {"_ms", "_ns", "_s", "_kb", "_mib", "_percent"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (ends_with(name, units[i])) return false;
    return true;
}

static const char *check_help(const char *line)
{
    char name[NAME];
    int at = 0;
    if (!has_type || (family_count && of_family == 0)) return "the family before has no TYPE or no sample";
    if (sscanf(line, "# HELP %255s %n", name, &at) != 1 || !line[at]) return "no help";
    if (!is_name(name)) return "not a name";
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i], name) == 0) return "a family twice";
    if (family_count == MOST) return "too many families";
    strcpy(families[family_count++], name);
    has_type = false;
    of_family = 0;
    return NULL;
}

static const char *check_type(const char *line)
{
    char name[NAME], type[16], more;
    if (has_type || !family_count) return "TYPE without HELP";
    if (sscanf(line, "# TYPE %255s %15s %c", name, type, &more) != 2) return "not a TYPE";
    if (strcmp(name, families[family_count - 1]) != 0) return "TYPE of another family";
    is_counter = strcmp(type, "counter") == 0;
    if (!is_counter && strcmp(type, "gauge") != 0) return "neither counter nor gauge";
    if (is_counter != ends_with(name, "_total")) return "_total is for counters, and counters have it";
    has_type = true;
    return NULL;
}

/* The text after the labels, or NULL. */
static const char *skip_labels(const char *at)
{
    if (*at != '{') return at;
    do {
        const size_t n = strspn(++at, "abcdefghijklmnopqrstuvwxyz_");
        if (n == 0 || at[n] != '=' || at[n + 1] != '"') return NULL;
        for (at += n + 2; *at != '"'; at++) {
            if (!*at || (unsigned char)*at < 0x20) return NULL;
            if (*at == '\\' && !strchr("\\\"n", *++at)) return NULL;
        }
        at++;
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

static const char *check_sample(char *line)
{
    const char *family = family_count ? families[family_count - 1] : "";
    const size_t n = strcspn(line, "{ ");
    if (!has_type || n != strlen(family) || memcmp(line, family, n) != 0) return "not of the family above";
    const char *end = skip_labels(line + n);
    if (!end || *end != ' ') return "wrong labels";
    char *stop;
    const double value = strtod(end + 1, &stop);
    if (stop == end + 1 || *stop) return "not a number";
    if (is_counter && !(value >= 0)) return "a counter below zero";
    if (sample_count == MOST || end - line >= 1024) return "too many samples, or labels too long";
    snprintf(samples[sample_count], 1024, "%.*s", (int)(end - line), line);
    for (int i = 0; i < sample_count; i++)
        if (strcmp(samples[i], samples[sample_count]) == 0) return "a sample twice";
    sample_count++;
    of_family++;
    return NULL;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    const char *wrong = NULL;
    for (ssize_t n; !wrong && (n = getline(&line, &room, stdin)) > 0;) {
        if (line[n - 1] != '\n') wrong = "no end of line";
        line[n - 1] = '\0';
        if (wrong) break;
        if (strncmp(line, "# HELP ", 7) == 0) wrong = check_help(line);
        else if (strncmp(line, "# TYPE ", 7) == 0) wrong = check_type(line);
        else wrong = check_sample(line);
    }
    if (!wrong && (!has_type || of_family == 0)) wrong = "it ends in the middle of a family, or is empty";
    if (wrong) printf("%s: %s\n", wrong, line ? line : "");
    free(line);
    return wrong ? 1 : 0;
}

/* formats/fileset/file_names.c: see file_names.h. */
#include "formats/fileset/file_names.h"

#include <stdio.h>
#include <strings.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/parts.h"

const char *mri_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool mri_is_index_name(const char *name) { return strstr(name, ".mridx") != NULL; }

size_t mri_ending_bytes(const char *name, const char *const *endings)
{
    const size_t bytes = strlen(name);
    for (; *endings; endings++) {
        const size_t n = strlen(*endings);
        if (bytes > n && strcmp(name + bytes - n, *endings) == 0) return n;
    }
    return 0;
}

bool mri_is_remainder(const char *name)
{
    static const char *const endings[] = {".damaged", ".part", NULL};
    return mri_ending_bytes(name, endings) > 0;
}

/* ---- numbered sets ---- */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool mri_piece_of(const char *name, mri_piece *p)
{
    const char *of = NULL;
    for (const char *at = name; (at = strstr(at, "-of-")); at += 4) of = at;
    if (!of) return false;
    int digits = 0, total_digits = 0;
    while (of - digits > name && is_digit(of[-digits - 1])) digits++;
    while (is_digit(of[4 + total_digits])) total_digits++;
    if (!digits || !total_digits || digits > MRI_MOST_DIGITS || total_digits > MRI_MOST_DIGITS) return false;
    *p = (mri_piece){.stem_bytes = (size_t)(of - digits - name),
                     .digits = digits,
                     .total_digits = total_digits,
                     .number = (uint32_t)strtoul(of - digits, NULL, 10),
                     .total = (uint32_t)strtoul(of + 4, NULL, 10),
                     .ending = of + 4 + total_digits};
    return p->total > 0 && p->number <= p->total;
}

bool mri_piece_path(char *out, size_t out_bytes, const char *path, const mri_piece *p, uint32_t number)
{
    const int folder = (int)(mri_file_name(path) - path), stem = (int)p->stem_bytes;
    const int n = snprintf(out, out_bytes, "%.*s%0*u-of-%0*u%s", folder + stem, path, p->digits, number,
                           p->total_digits, p->total, p->ending);
    return n > 0 && (size_t)n < out_bytes;
}

/* ---- order ---- */
int mri_paths_by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int mri_paths_by_number(const void *a, const void *b)
{
    const char *x = mri_file_name(*(char *const *)a), *y = mri_file_name(*(char *const *)b);
    mri_piece p, q;
    if (!mri_piece_of(x, &p)) p = (mri_piece){.stem_bytes = strlen(x), .ending = ""};
    if (!mri_piece_of(y, &q)) q = (mri_piece){.stem_bytes = strlen(y), .ending = ""};
    const size_t both = p.stem_bytes < q.stem_bytes ? p.stem_bytes : q.stem_bytes;
    int order = memcmp(x, y, both);
    if (!order) order = (p.stem_bytes > q.stem_bytes) - (p.stem_bytes < q.stem_bytes);
    if (!order) order = strcmp(p.ending, q.ending);
    if (!order) order = (p.total > q.total) - (p.total < q.total);
    if (!order) order = (p.number > q.number) - (p.number < q.number);
    return order ? order : strcmp(x, y);
}

/* ---- names that are alike ---- */
static size_t without_gz(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes > 3 && strcasecmp(name + bytes - 3, ".gz") == 0 ? bytes - 3 : bytes;
}

/* The name with a mark for each run of digits, and for each word of a part. */
static uint64_t hash_pattern(const char *name, bool parts_too)
{
    const size_t end = without_gz(name);
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < end;) {
        size_t n = 0;
        while (at + n < end && is_digit(name[at + n])) n++;
        if (n) {
            hash = mri_mix64(hash ^ 1);
            at += n;
            continue;
        }
        while (at + n < end && ((name[at + n] | 0x20) >= 'a' && (name[at + n] | 0x20) <= 'z')) n++;
        if (n && parts_too && mri_part_of_word(name + at, n)) hash = mri_mix64(hash ^ 2);
        else hash = XXH3_64bits_withSeed(name + at, n ? n : 1, hash);
        at += n ? n : 1;
    }
    return hash ? hash : 1;
}

uint64_t mri_name_shape(const char *name) { return hash_pattern(name, false); }
uint64_t mri_name_kind(const char *name) { return hash_pattern(name, true); }

uint64_t mri_name_ending(const char *name)
{
    const size_t end = without_gz(name);
    const char *dot = memrchr(name, '.', end);
    if (!dot || dot == name) return 0;
    const size_t bytes = end - (size_t)(dot + 1 - name);
    char low[32];
    if (bytes == 0 || bytes > sizeof low) return 0;
    bool letters = false;
    for (size_t k = 0; k < bytes; k++) {
        const char c = dot[1 + k];
        low[k] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        letters = letters || !is_digit(c);
        if (c == '-') return 0; /* NAME.tfrecord-00000-of-00001: the kind of the name says it */
    }
    const uint64_t hash = XXH3_64bits(low, bytes);
    return !letters ? 0 : hash ? hash : 1;
}

/* ---- files that are not data ---- */
bool mri_is_about_data(const char *name)
{
    static const char *const begins[] = {
        "readme",  "license", "licence",  "notice",   "copying",  "changelog", "citation",    "md5sum",
        "sha1sum", "sha256",  "checksum", "manifest", "_success", "thumbs.db", "desktop.ini", "index.html"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(begins); k++)
        if (strncasecmp(name, begins[k], strlen(begins[k])) == 0) return true;
    return false;
}

bool mri_is_beside_data(const char *name)
{
    static const char *const ends[] = {
        ".json",   ".jsonl", ".md",   ".txt", ".rst", ".pdf",     ".html",  ".htm",  ".idx",    ".lst",
        ".yaml",   ".yml",   ".toml", ".ini", ".cfg", ".log",     ".md5",   ".sha1", ".sha256", ".sha512",
        ".crc",    ".sum",   ".sums", ".py",  ".sh",  ".ipynb",   ".csv",   ".tsv",  ".xml",    ".pbtxt",
        ".labels", ".index", ".lock", ".sig", ".asc", ".torrent", ".names",
    };
    if (mri_is_about_data(name)) return true;
    const size_t bytes = strlen(name);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(ends); k++) {
        const size_t n = strlen(ends[k]);
        if (bytes > n && strcasecmp(name + bytes - n, ends[k]) == 0) return true;
    }
    return false;
}

/* pipeline/card/croissant.c: a card as JSON-LD in the form of Croissant 1.0, which `mlcroissant` reads.
 *
 *   distribution   every file with size and SHA-256; of a folder, and of archives with pictures and classes
 *                  alone, also sets of files by ending
 *   recordSet      folder: a record for each picture, with its class, in a set for each split; archives:
 *                  pictures and labels, each with its key, for each split where no archive has samples of
 *                  two; always: the classes by number
 *
 * Formats that no reader of Croissant knows have files and classes alone. */
#include <inttypes.h>
#include <string.h>

#include "pipeline/card/card.h"

/* The context that the specification recommends. */
static const char context[] =
    "  \"@context\": {\n"
    "    \"@language\": \"en\", \"@vocab\": \"https://schema.org/\", \"citeAs\": \"cr:citeAs\",\n"
    "    \"column\": \"cr:column\", \"conformsTo\": \"dct:conformsTo\",\n"
    "    \"cr\": \"http://mlcommons.org/croissant/\", \"rai\": \"http://mlcommons.org/croissant/RAI/\",\n"
    "    \"data\": {\"@id\": \"cr:data\", \"@type\": \"@json\"},\n"
    "    \"dataType\": {\"@id\": \"cr:dataType\", \"@type\": \"@vocab\"},\n"
    "    \"dct\": \"http://purl.org/dc/terms/\", \"equivalentProperty\": \"cr:equivalentProperty\",\n"
    "    \"examples\": {\"@id\": \"cr:examples\", \"@type\": \"@json\"},\n"
    "    \"extract\": \"cr:extract\", \"field\": \"cr:field\", \"fileProperty\": \"cr:fileProperty\",\n"
    "    \"fileObject\": \"cr:fileObject\", \"fileSet\": \"cr:fileSet\", \"format\": \"cr:format\",\n"
    "    \"includes\": \"cr:includes\", \"isLiveDataset\": \"cr:isLiveDataset\",\n"
    "    \"jsonPath\": \"cr:jsonPath\", \"key\": \"cr:key\", \"md5\": \"cr:md5\",\n"
    "    \"parentField\": \"cr:parentField\", \"path\": \"cr:path\",\n"
    "    \"recordSet\": \"cr:recordSet\", \"references\": \"cr:references\", \"regex\": \"cr:regex\",\n"
    "    \"repeated\": \"cr:repeated\", \"replace\": \"cr:replace\", \"samplingRate\": \"cr:samplingRate\",\n"
    "    \"sc\": \"https://schema.org/\", \"separator\": \"cr:separator\", \"source\": \"cr:source\",\n"
    "    \"subField\": \"cr:subField\", \"transform\": \"cr:transform\"\n"
    "  },\n";

/* \"KEY\": \"TEXT\", the text escaped. */
static void put_pair(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\": ", key);
    mri_card_put_text(out, text);
}

/* Of an archive: its files as one split, or each split's. */
static bool is_split(const mri_card *c)
{
    bool all = c->parts > 1;
    for (uint32_t k = 0; k < c->parts; k++) all = all && c->part[k].files > 0 && c->part[k].endings > 0;
    return all;
}

/* "pictures", or "train-pictures" where splits are apart. */
static const char *id_of(const mri_card *c, const mri_card_part *p, const char *what, char out[64])
{
    snprintf(out, 64, "%s%s%s", is_split(c) ? p->name : "", is_split(c) ? "-" : "", what);
    return out;
}

static bool is_archive(const mri_card *c)
{
    return !c->is_folder && c->plain && strcmp(c->format, "tar") == 0 && c->part[0].endings > 0;
}

/* ---- files ---- */
static void put_files(const mri_card *c, FILE *out)
{
    const char *type = strcmp(c->format, "tar") == 0 ? "application/x-tar" : "application/octet-stream";
    for (uint64_t k = 0; k < c->files; k++) {
        const mri_card_file *f = &c->file[k];
        fputs(k ? ",\n    {\"@type\": \"cr:FileObject\", " : "\n    {\"@type\": \"cr:FileObject\", ", out);
        put_pair(out, "@id", f->name);
        fputs(", ", out);
        put_pair(out, "name", f->name);
        fputs(", ", out);
        put_pair(out, "contentUrl", f->name);
        fprintf(out,
                ",\n     \"contentSize\": \"%" PRIu64 " B\", \"encodingFormat\": \"%s\",\n     "
                "\"sha256\": \"%s\"}",
                f->bytes, type, f->sha256);
    }
}

static void put_endings(const mri_card_part *p, FILE *out, const char *before)
{
    char pattern[1200];
    fputs("\"encodingFormat\": [", out);
    for (uint32_t k = 0; k < p->endings; k++) { /* each once */
        bool again = false;
        for (uint32_t j = 0; j < k; j++)
            again |= strcmp(mri_card_media_type(p->ending[j]), mri_card_media_type(p->ending[k])) == 0;
        if (!again) fprintf(out, "%s\"%s\"", k ? ", " : "", mri_card_media_type(p->ending[k]));
    }
    fputs("], \"includes\": [", out);
    for (uint32_t k = 0; k < p->endings; k++) {
        snprintf(pattern, sizeof pattern, "%s*%s%s", before, p->ending[k][0] ? "." : "", p->ending[k]);
        if (k) fputs(", ", out);
        mri_card_put_text(out, pattern);
    }
    fputs("]", out);
}

/* Inside of the archives of a split, or of all. */
static void put_file_set(const mri_card *c, const mri_card_part *p, FILE *out, const char *what)
{
    char id[64];
    const uint64_t first = is_split(c) ? p->first_file : 0, count = is_split(c) ? p->files : c->files;
    id_of(c, p, what, id);
    fprintf(out, ",\n    {\"@type\": \"cr:FileSet\", \"@id\": \"%s\", \"name\": \"%s\", ", id, id);
    for (uint64_t k = 0; k < count; k++) {
        fputs(k ? ", {" : "\"containedIn\": [{", out);
        put_pair(out, "@id", c->file[first + k].name);
        fputs("}", out);
    }
    fputs("],\n     ", out);
}

static void put_archive_files(const mri_card *c, const mri_card_part *p, FILE *out)
{
    put_file_set(c, p, out, "picture-files");
    put_endings(p, out, "");
    fputs("}", out);
    if (!p->label[0]) return;
    put_file_set(c, p, out, "label-files");
    fprintf(out, "\"encodingFormat\": \"text/plain\", \"includes\": \"*.%s\"}", p->label);
}

static void put_distribution(const mri_card *c, FILE *out)
{
    char id[64], before[PATH_MAX + 1104];
    fputs("  \"distribution\": [", out);
    put_files(c, out);
    for (uint32_t k = 0; c->is_folder && k < c->parts; k++) {
        const mri_card_part *p = &c->part[k];
        snprintf(id, sizeof id, "%s-files", p->name);
        fprintf(out, "%s\n    {\"@type\": \"cr:FileSet\", \"@id\": \"%s\", \"name\": \"%s\", ", k ? "," : "",
                id, id);
        snprintf(before, sizeof before, "%s%s", c->inside, p->by_class ? p->prefix : "");
        if (p->by_class) strcat(before, "**/");
        put_endings(p, out, before);
        fputs("}", out);
    }
    for (uint32_t k = 0; is_archive(c) && k < (is_split(c) ? c->parts : 1); k++)
        put_archive_files(c, &c->part[k], out);
    fputs("\n  ],\n", out);
}

/* ---- records ---- */
static void put_field(FILE *out, const char *set, const char *name, const char *type, const char *files,
                      const char *property, const char *regex)
{
    fprintf(out,
            "      {\"@type\": \"cr:Field\", \"@id\": \"%s/%s\", \"name\": \"%s\", \"dataType\": \"%s\",\n"
            "       \"source\": {\"fileSet\": {\"@id\": \"%s\"}, \"extract\": {\"fileProperty\": \"%s\"}",
            set, name, name, type, files, property);
    if (regex) {
        fputs(",\n                  \"transform\": {\"regex\": ", out);
        mri_card_put_text(out, regex);
        fputs("}", out);
    }
    fputs("}}", out);
}

static void begin_set(FILE *out, bool *first, const char *name, const char *key)
{
    fprintf(out,
            "%s\n    {\"@type\": \"cr:RecordSet\", \"@id\": \"%s\", \"name\": \"%s\", \"key\": {\"@id\": "
            "\"%s/%s\"},\n",
            *first ? "" : ",", name, name, name, key);
    *first = false;
}

/* Characters that a regular expression takes for something else. */
static void escape(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (; *text && n + 3 < room; text++) {
        if (strchr("\\.+*?()|[]{}^$", *text)) out[n++] = '\\';
        out[n++] = *text;
    }
    out[n] = '\0';
}

static void put_folder_records(const mri_card *c, const mri_card_part *p, FILE *out, bool *first)
{
    char prefix[2 * (PATH_MAX + 1100)], regex[sizeof prefix + 64], before[PATH_MAX + 1100];
    char files[64];
    snprintf(files, sizeof files, "%s-files", p->name);
    snprintf(before, sizeof before, "%s%s", c->inside, p->prefix);
    escape(before, prefix, sizeof prefix);
    snprintf(regex, sizeof regex, p->deep ? "^%s(.+)/[^/]+$" : "^%s([^/]+)/.*$", prefix);
    begin_set(out, first, p->name, "path");
    fputs("     \"field\": [\n", out);
    put_field(out, p->name, "path", "sc:Text", files, "fullpath", NULL);
    fputs(",\n", out);
    put_field(out, p->name, "image", "sc:ImageObject", files, "content", NULL);
    if (p->by_class) {
        fputs(",\n", out);
        put_field(out, p->name, "class", "sc:Text", files, "fullpath", regex);
    }
    fputs("\n     ]}", out);
}

static void put_members(const mri_card *c, const mri_card_part *p, FILE *out, bool *first, const char *what,
                        const char *field, const char *type, const char *files_of)
{
    char name[64], files[64];
    id_of(c, p, what, name);
    id_of(c, p, files_of, files);
    begin_set(out, first, name, "key");
    fputs("     \"field\": [\n", out);
    put_field(out, name, "key", "sc:Text", files, "fullpath", "^((?:.*/)?[^./]+)\\.[^/]*$");
    fputs(",\n", out);
    put_field(out, name, field, type, files, "content", NULL);
    fputs("\n     ]}", out);
}

static void put_archive_records(const mri_card *c, const mri_card_part *p, FILE *out, bool *first)
{
    put_members(c, p, out, first, "pictures", "image", "sc:ImageObject", "picture-files");
    if (p->label[0]) put_members(c, p, out, first, "labels", "label", "sc:Integer", "label-files");
}

static void put_classes(const mri_card *c, FILE *out, bool *first)
{
    const mr_source_info *info = mri_card_info(c);
    if (!info->class_names || !info->class_count) return;
    begin_set(out, first, "classes", "label");
    fputs("     \"dataType\": \"sc:Enumeration\", \"field\": [\n"
          "      {\"@type\": \"cr:Field\", \"@id\": \"classes/label\", \"name\": \"label\", \"dataType\": "
          "\"sc:Integer\"},\n"
          "      {\"@type\": \"cr:Field\", \"@id\": \"classes/name\", \"name\": \"name\", \"dataType\": "
          "\"sc:Text\"}],\n     \"data\": [",
          out);
    for (uint32_t k = 0; k < info->class_count; k++) {
        fprintf(out, "%s\n      {\"classes/label\": %" PRIu32 ", ", k ? "," : "", k);
        put_pair(out, "classes/name", info->class_names[k]);
        fputs("}", out);
    }
    fputs("\n     ]}", out);
}

void mri_card_put_croissant(const mri_card *c, FILE *out)
{
    const mr_source_info *info = mri_card_info(c);
    bool first = true;
    fputs("{\n", out);
    fputs(context, out);
    fputs("  \"@type\": \"sc:Dataset\",\n  ", out);
    put_pair(out, "name", c->name);
    fprintf(out, ",\n  \"description\": \"%" PRIu64 " samples", mri_card_count(c));
    if (info->class_count) fprintf(out, " of %" PRIu32 " classes", info->class_count);
    fprintf(out, ", as %s\",\n  \"conformsTo\": \"http://mlcommons.org/croissant/1.0\",\n",
            mri_card_format_text(c));
    put_distribution(c, out);
    fputs("  \"recordSet\": [", out);
    for (uint32_t k = 0; c->is_folder && k < c->parts; k++) put_folder_records(c, &c->part[k], out, &first);
    for (uint32_t k = 0; is_archive(c) && k < (is_split(c) ? c->parts : 1); k++)
        put_archive_records(c, &c->part[k], out, &first);
    put_classes(c, out, &first);
    fputs(first ? "]\n}\n" : "\n  ]\n}\n", out);
}

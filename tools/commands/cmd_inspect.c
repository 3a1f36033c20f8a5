/* tools/commands/cmd_inspect.c: `millrace inspect FILE`: the content of a data set: schema, classes, sizes,
 * how it lies on disk, where it came from; or with --record one sample of it. Reads indexes and headers, not
 * the samples; with --bad all of them. With --model the layers of a network instead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "millrace/report.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/session/session.h"
#include "tools/session/setup.h"

enum { MAX_CLASSES_SHOWN = 20, MAX_FILES_SHOWN = 6 };
static const char left_out[] = "left out: "; /* the beginning of such lines for the user */
#define INDEX_MEMORY_BYTES ((uint64_t)64 << 20)

typedef struct inspect_args {
    const char *path;
    const char *model, *svg;
    bool force;
    const char *record; /* text: NULL when not given, and 0 is a record */
    bool bad;
    uint32_t workers;
    data_args data;
    output_args output;
} inspect_args;

/* "224 x 224 x 3", or "any shape". */
static const char *shape_text(uint32_t ndim, const uint64_t *dim, char *buf, size_t buf_bytes)
{
    size_t at = (size_t)snprintf(buf, buf_bytes, "%s", ndim ? "" : "any shape");
    for (uint32_t d = 0; d < ndim && at < buf_bytes; d++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, d ? " x %" PRIu64 : "%" PRIu64, dim[d]);
    return buf;
}

static bool has_shape(mr_type type) { return type == MR_TYPE_PIXELS || type == MR_TYPE_TENSOR; }

static void print_fields(const mr_source_info *info)
{
    char shape[128];
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_field *f = &info->fields[k];
        printf("field %-3u ", k);
        put_shown(f->name);
        printf(": %s", mr_type_name(f->type));
        if (f->type == MR_TYPE_TENSOR) printf(" %s", mr_dtype_name(f->dtype));
        if (has_shape(f->type)) printf(", %s", shape_text(f->ndim, f->dim, shape, sizeof shape));
        printf("%s\n", (int)k == info->image_field   ? "  (the picture)"
                       : (int)k == info->label_field ? "  (the label)"
                                                     : "");
    }
}

static void print_classes(const mr_source_info *info)
{
    if (info->class_count == 0) return;
    printf("classes   %u", info->class_count);
    for (uint32_t c = 0; info->class_names && c < info->class_count && c < MAX_CLASSES_SHOWN; c++) {
        fputs(c ? ", " : ": ", stdout);
        put_shown(info->class_names[c]);
    }
    puts(info->class_names && info->class_count > MAX_CLASSES_SHOWN ? ", ..." : "");
}

/* "parts     train (taken), validation". Each is a bit of its own. */
static void print_parts(const mr_source_info *info)
{
    const char *between = "parts     ";
    for (uint32_t bit = 1; bit && bit <= info->parts.there; bit <<= 1) {
        if (!(info->parts.there & bit)) continue;
        printf("%s%s%s", between, mr_part_name(bit), bit == info->parts.taken ? " (taken)" : "");
        between = ", ";
    }
    if (info->parts.there) puts(info->parts.taken ? "" : " (all taken)");
}

/* The name of a file that many samples share; NULL: it cannot be had. */
static const char *file_name(const mr_source *src, uint32_t file)
{
    mr_source_file f;
    if (mr_source_file_at(src, file, &f) != MR_OK || !f.path) return NULL;
    const char *slash = strrchr(f.path, '/');
    return slash ? slash + 1 : f.path;
}

static void print_files(const mr_source *src, const mr_source_info *info)
{
    if (info->file_count == 0) return;
    printf("files     %u", info->file_count);
    for (uint32_t k = 0; k < info->file_count && k < MAX_FILES_SHOWN; k++) {
        const char *name = file_name(src, k);
        fputs(k ? ", " : ": ", stdout);
        put_shown(name ? name : "?");
    }
    puts(info->file_count > MAX_FILES_SHOWN ? ", ..." : "");
}

/* "sets      2: photos.mrec (60000 samples, share 0.7), drawn (900 samples, share 0.3)" */
static void print_mix(const mr_source_info *info)
{
    if (info->mix_count == 0) return;
    printf("sets      %u", info->mix_count);
    for (uint32_t k = 0; k < info->mix_count && k < MAX_FILES_SHOWN; k++) {
        fputs(k ? ", " : ": ", stdout);
        put_shown(info->mix[k].path);
        printf(" (%" PRIu64 " samples, share %.4g)", info->mix[k].count, info->mix[k].share);
    }
    puts(info->mix_count > MAX_FILES_SHOWN ? ", ..." : "");
}

static bool is_of_index(const char *line)
{
    return strncmp(line, "index ", 6) == 0 || strncmp(line, "the index ", 10) == 0;
}

/* The next line for the user that concerns the set: a line about an index concerns this run. NULL: no more.
 */
static const char *next_told(const char *line, size_t *bytes)
{
    while (line && is_of_index(line)) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    *bytes = line ? strcspn(line, "\n") : 0;
    return line && line[0] ? line : NULL;
}

static bool is_left_out(const char *line) { return strncmp(line, left_out, sizeof left_out - 1) == 0; }

/* These lines are text that may be shown. */
static void print_told(const mr_source_info *info)
{
    size_t bytes;
    for (const char *line = info->told; (line = next_told(line, &bytes));) {
        const size_t skip = is_left_out(line) ? sizeof left_out - 1 : 0;
        printf("%s%.*s\n", skip ? "left out  " : "note      ", (int)(bytes - skip), line + skip);
        line += bytes + (line[bytes] == '\n');
    }
}

static void print_source(const inspect_args *a, const mr_source *src, const mr_mrec_info *mrec)
{
    const mr_source_info *info = mr_source_info_of(src);
    const bool test_too = info->has_test && !info->only_test && a->data.split != MR_SPLIT_TEST;
    char total[32], most[32];
    printf("data      %s\nformat    %s", shown_text(info->path), info->format);
    if (mrec) printf(" version %u.%u", mrec->version_major, mrec->version_minor);
    printf("\nsamples   %" PRIu64 "%s\n", info->count,
           test_too ? " (a test part is there too: --split test)" : "");
    print_parts(info);
    print_mix(info);
    printf("bytes     %s, largest sample %s\n", mri_size_text((double)info->total_bytes, total, sizeof total),
           mri_size_text((double)info->max_extent_bytes, most, sizeof most));
    if (info->height) printf("pictures  %u x %u x %u\n", info->height, info->width, info->channels);
    if (mrec)
        printf("layout    %" PRIu64 " bytes, records aligned to %u, data at %" PRIu64 ", index at %" PRIu64
               "\n",
               mrec->file_bytes, mrec->record_align, mrec->data_offset, mrec->index_offset);
    else print_files(src, info);
    if (info->skipped_files)
        printf("skipped   %" PRIu64 " %s no sample\n", info->skipped_files,
               info->skipped_files == 1 ? "entry that is in" : "entries that are in");
    print_fields(info);
    print_classes(info);
    print_told(info);
    printf("identity  %016" PRIx64 "\n", info->fingerprint);
    if (!mrec || !mrec->provenance[0]) return;
    fputs("made by   ", stdout);
    put_shown(mrec->provenance);
    putchar('\n');
}

static void json_shape(json_line *j, uint32_t ndim, const uint64_t *dim)
{
    json_array(j, "shape");
    for (uint32_t d = 0; d < ndim; d++) json_u64(j, NULL, dim[d]);
    json_close_array(j);
}

/* The lines for the user of this kind. */
static void json_told(json_line *j, const char *key, const mr_source_info *info, bool left)
{
    json_array(j, key);
    size_t bytes;
    for (const char *line = info->told; (line = next_told(line, &bytes));) {
        const size_t skip = is_left_out(line) ? sizeof left_out - 1 : 0;
        char *text = (skip > 0) == left ? strndup(line + skip, bytes - skip) : NULL;
        if (text) json_text(j, NULL, text);
        free(text);
        line += bytes + (line[bytes] == '\n');
    }
    json_close_array(j);
}

static void json_set(json_line *j, const mr_source *src, const mr_source_info *info)
{
    json_array(j, "parts");
    for (uint32_t bit = 1; bit && bit <= info->parts.there; bit <<= 1)
        if (info->parts.there & bit) json_text(j, NULL, mr_part_name(bit));
    json_close_array(j);
    json_text(j, "part", mr_part_name(info->parts.taken));
    json_array(j, "file_names");
    for (uint32_t k = 0; k < info->file_count; k++) json_text(j, NULL, file_name(src, k));
    json_close_array(j);
    json_told(j, "left_out", info, true);
    json_told(j, "notes", info, false);
}

static void json_mix(json_line *j, const mr_source_info *info)
{
    json_array(j, "mix");
    for (uint32_t k = 0; k < info->mix_count; k++) {
        json_object(j, NULL);
        json_text(j, "path", info->mix[k].path);
        json_u64(j, "first", info->mix[k].first);
        json_u64(j, "count", info->mix[k].count);
        json_real(j, "share", info->mix[k].share);
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_source(const mr_source *src, const mr_mrec_info *mrec)
{
    const mr_source_info *info = mr_source_info_of(src);
    char identity[24];
    json_line j = json_begin(stdout, "inspect");
    json_text(&j, "data", info->path);
    json_text(&j, "format", info->format);
    json_u64(&j, "samples", info->count);
    json_u64(&j, "bytes", info->total_bytes);
    json_u64(&j, "largest_sample_bytes", info->max_extent_bytes);
    json_u64(&j, "withdrawn", mr_source_withdrawn_count(src));
    json_bool(&j, "has_test", info->has_test);
    json_u64(&j, "height", info->height);
    json_u64(&j, "width", info->width);
    json_u64(&j, "channels", info->channels);
    json_u64(&j, "files", info->file_count);
    json_u64(&j, "skipped_files", info->skipped_files);
    json_array(&j, "fields");
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_field *f = &info->fields[k];
        json_object(&j, NULL);
        json_text(&j, "name", f->name);
        json_text(&j, "type", mr_type_name(f->type));
        if (f->type == MR_TYPE_TENSOR) json_text(&j, "dtype", mr_dtype_name(f->dtype));
        if (has_shape(f->type)) json_shape(&j, f->ndim, f->dim);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_u64(&j, "class_count", info->class_count);
    json_array(&j, "classes");
    for (uint32_t c = 0; info->class_names && c < info->class_count; c++)
        json_text(&j, NULL, info->class_names[c]);
    json_close_array(&j);
    snprintf(identity, sizeof identity, "%016" PRIx64, info->fingerprint);
    json_text(&j, "fingerprint", identity);
    json_set(&j, src, info);
    if (info->mix_count) json_mix(&j, info);
    if (mrec) {
        json_u64(&j, "version_major", mrec->version_major);
        json_u64(&j, "version_minor", mrec->version_minor);
        json_u64(&j, "file_bytes", mrec->file_bytes);
        json_u64(&j, "record_align", mrec->record_align);
        json_u64(&j, "data_offset", mrec->data_offset);
        json_u64(&j, "index_offset", mrec->index_offset);
        json_text(&j, "provenance", mrec->provenance);
    }
    json_end(&j);
}

static int show_source(const inspect_args *a, const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    mr_mrec *m = NULL;
    mr_source_file file;
    if (strcmp(info->format, "mrec") == 0 && mr_source_file_at(src, 0, &file) == MR_OK &&
        file.direct_ok) { /* it lies here */
        const int rc = mr_mrec_open(&m, info->path, INDEX_MEMORY_BYTES, &err);
        if (rc) return exit_status(rc, &err);
    }
    const mr_mrec_info *mrec = m ? mr_mrec_info_of(m) : NULL;
    if (a->output.json) json_source(src, mrec);
    else print_source(a, src, mrec);
    mr_mrec_close(m);
    return EXIT_DONE;
}

/* ---- one record ---- */

static const char *class_of(const mr_source_info *info, uint32_t field, int64_t label)
{
    if ((int)field != info->label_field || !info->class_names || label < 0 ||
        label >= (int64_t)info->class_count)
        return NULL;
    return info->class_names[label];
}

static bool header_of(const mr_value *v, mr_image_header *h)
{
    const bool file = v->data && mr_image_sniff(v->data, v->bytes) == (int)v->type;
    return (v->type == MR_TYPE_COEF || file) && mr_value_header(v, h, NULL) == MR_OK;
}

/* A name like "4:2:0", or the factors of each component; "" without subsampling. */
static const char *sampling_text(const mr_image_header *h, char buf[32])
{
    const uint8_t(*s)[2] = h->sampling;
    const bool chroma_alike =
        h->channels == 3 && s[1][0] == 1 && s[2][0] == 1 && s[1][1] == 1 && s[2][1] == 1;
    const int kind = chroma_alike ? 10 * s[0][0] + s[0][1] : 0;
    buf[0] = '\0';
    if (s[0][0] == 0 || h->channels == 1) return buf;
    const char *name = kind == 11   ? "4:4:4"
                       : kind == 21 ? "4:2:2"
                       : kind == 22 ? "4:2:0"
                       : kind == 12 ? "4:4:0"
                       : kind == 41 ? "4:1:1"
                                    : NULL;
    if (name) snprintf(buf, 32, "%s", name);
    else if (h->channels == 3)
        snprintf(buf, 32, "%ux%u,%ux%u,%ux%u", s[0][0], s[0][1], s[1][0], s[1][1], s[2][0], s[2][1]);
    return buf;
}

static void print_value(const mr_source_info *info, uint32_t k, const mr_value *v)
{
    char shape[128];
    mr_image_header h;
    const char *class_name = class_of(info, k, v->i);
    char shown[4 * 200 + 1], text[201];
    printf("%-9s %s", mr_text_shown(info->fields[k].name, shown, sizeof shown), mr_type_name(v->type));
    if (v->type == MR_TYPE_INT) printf(" %" PRId64, v->i);
    else if (v->type == MR_TYPE_FLOAT) printf(" %.17g", v->f);
    else printf(", %zu bytes", v->bytes);
    if (class_name) printf(" (%s)", mr_text_shown(class_name, shown, sizeof shown));
    if (has_shape(v->type)) printf(", %s", shape_text(v->ndim, v->dim, shape, sizeof shape));
    if (v->type == MR_TYPE_PIXELS) printf(", %s", v->planes == MR_CHW ? "planes" : "interleaved");
    if (v->type == MR_TYPE_TENSOR) printf(", %s", mr_dtype_name(v->dtype));
    if (v->type == MR_TYPE_TEXT) {
        snprintf(text, sizeof text, "%.*s", (int)(v->bytes < 200 ? v->bytes : 200), (const char *)v->data);
        printf(": %s", mr_text_shown(text, shown, sizeof shown));
    }
    if (header_of(v, &h)) {
        char sampling[32];
        printf(", %u x %u pixels, %u channels of %u bits%s, orientation %u", h.width, h.height, h.channels,
               h.bit_depth, h.progressive ? ", progressive" : "", h.orientation);
        if (sampling_text(&h, sampling)[0]) printf(", %s", sampling);
    }
    if (v->entries) printf(", entry points of %zu bytes", v->entries_bytes);
    putchar('\n');
}

static void json_value(json_line *j, const mr_source_info *info, uint32_t k, const mr_value *v)
{
    mr_image_header h;
    char sampling[32];
    json_object(j, NULL);
    json_text(j, "name", info->fields[k].name);
    json_text(j, "type", mr_type_name(v->type));
    if (v->type == MR_TYPE_INT) json_i64(j, "value", v->i);
    else if (v->type == MR_TYPE_FLOAT) json_real(j, "value", v->f);
    else json_u64(j, "bytes", v->bytes);
    if (class_of(info, k, v->i)) json_text(j, "class", class_of(info, k, v->i));
    if (has_shape(v->type)) json_shape(j, v->ndim, v->dim);
    if (header_of(v, &h)) {
        json_u64(j, "width", h.width);
        json_u64(j, "height", h.height);
        json_u64(j, "channels", h.channels);
        json_u64(j, "bit_depth", h.bit_depth);
        json_text(j, "sampling", sampling_text(&h, sampling));
        json_bool(j, "progressive", h.progressive);
        json_u64(j, "orientation", h.orientation);
    }
    json_close_object(j);
}

/* Why the sample was withdrawn; NULL: it was not. */
static const char *withdrawn_for(const mr_source *src, uint64_t number)
{
    mr_withdrawn_sample w;
    for (uint64_t k = 0; mr_source_withdrawn_at(src, k, &w) == MR_OK; k++)
        if (w.number == number) return w.reason;
    return NULL;
}

static int show_record(const inspect_args *a, const mr_source *src, uint64_t at)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    mr_sample sample;
    mr_extent extent;
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    char path[1024], name[4096] = "";
    const char *why = withdrawn_for(src, mr_source_number(src, at));
    int rc = mr_source_extent(src, at, &extent, &err);
    if (rc == MR_OK) rc = mr_source_read(src, at, &buffer, &buffer_bytes, &sample, &err);
    if (rc == MR_OK)
        rc = mr_source_sample_name_get(src, at, buffer, (size_t)extent.bytes, name, sizeof name, &err);
    if (rc == MR_OK && a->output.json) {
        json_line j = json_begin(stdout, "record");
        json_u64(&j, "record", at);
        json_text(&j, "file", mr_source_sample_path(src, at, path, sizeof path));
        if (name[0]) json_text(&j, "name", name);
        json_bool(&j, "withdrawn", why != NULL);
        if (why) json_text(&j, "reason", why);
        json_u64(&j, "offset", extent.offset);
        json_u64(&j, "bytes", extent.bytes);
        json_array(&j, "fields");
        for (uint32_t k = 0; k < sample.value_count && k < info->field_count; k++)
            json_value(&j, info, k, &sample.value[k]);
        json_close_array(&j);
        json_end(&j);
    } else if (rc == MR_OK) {
        printf("record    %" PRIu64 "\nfile      ", at);
        put_shown(mr_source_sample_path(src, at, path, sizeof path));
        printf(", offset %" PRIu64 ", %" PRIu64 " bytes\n", extent.offset, extent.bytes);
        if (name[0]) {
            fputs("name      ", stdout);
            put_shown(name);
            putchar('\n');
        }
        if (why) printf("withdrawn %s\n", why[0] ? shown_text(why) : "without a reason");
        for (uint32_t k = 0; k < sample.value_count && k < info->field_count; k++)
            print_value(info, k, &sample.value[k]);
    }
    free(buffer);
    return exit_status(rc, &err);
}

/* ---- the bad ones ---- */

typedef struct bad_count {
    const inspect_args *args;
    const mr_source *src;
    uint64_t bad;
    progress_bar bar;
} bad_count;

/* The lines of a list of bad samples, as convert and train write them. */
static bool show_bad(void *context, const mr_error *what)
{
    bad_count *b = context;
    char text[2048];
    b->bad++;
    if (b->args->output.json) {
        char *line = mr_bad_list_line(b->src, what);
        if (line) fputs(line, stdout);
        free(line);
        fflush(stdout);
    } else {
        printf("%s\n", mr_error_format(what, text, sizeof text));
    }
    return !interrupt_flag;
}

static void on_samples(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    bad_count *b = context;
    (void)bytes;
    progress_show(&b->bar, done, count, NULL);
}

static int show_all_bad(const inspect_args *a, const mr_source *src)
{
    bad_count b = {.args = a, .src = src};
    mr_error err = MR_ERROR_INIT;
    mr_decode_config decode;
    mr_verify_config cfg;
    mr_verify_result result = {0};
    setup_decode(&decode, &a->data);
    mr_verify_defaults(&cfg);
    cfg.workers = a->workers;
    cfg.decode = &decode;
    cfg.on_wrong = show_bad;
    cfg.on_progress = on_samples;
    cfg.context = &b;
    cfg.stop = &interrupt_flag;
    progress_start(&b.bar, "inspect", "samples", a->output.quiet);
    int rc = mr_verify_samples(src, &cfg, &result, &err);
    progress_end(&b.bar);
    const uint64_t bad = b.bad;
    if (rc == MR_OK) rc = mr_source_check(src, &err);
    if (interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    if (rc == MR_ECHECKSUM || rc == MR_EFORMAT) show_bad(&b, &err);
    else if (rc != MR_OK) return exit_status(rc, &err);
    if (a->output.json) {
        json_line j = json_begin(stdout, "inspect_bad");
        json_text(&j, "data", mr_source_info_of(src)->path);
        json_u64(&j, "samples", result.records);
        json_u64(&j, "bad", bad);
        json_end(&j);
    } else {
        printf("%s: %" PRIu64 " of %" PRIu64 " samples are bad\n", shown_text(mr_source_info_of(src)->path),
               bad, result.records);
    }
    return b.bad ? EXIT_BAD_SAMPLES : EXIT_DONE;
}

/* ---- a network ---- */

static void print_network(const mr_net *net)
{
    mr_layer_row row;
    char params[32], flops[32];
    double sum = 0;
    printf("%5s  %-36s %-16s %14s %12s\n", "layer", "", "output", "parameters", "MFLOP");
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++) {
        sum += row.flops;
        printf("%5u  %-36s %-16s %14s %12s\n", i, row.name, row.output,
               row.params ? mri_number_text((double)row.params, params) : "",
               row.flops > 0 ? mri_number_text(row.flops / 1e6, flops) : "");
    }
    printf("%5s  %-36s %-16s %14s %12s\n", "all", "", "",
           mri_number_text((double)mr_net_param_count(net), params), mri_number_text(sum / 1e6, flops));
    if (mr_net_state_count(net))
        printf("%s stored with them, running means and variances\n",
               mri_number_text((double)mr_net_state_count(net), params));
}

static void json_network(const mr_net *net)
{
    mr_layer_row row;
    json_line j = json_begin(stdout, "network");
    json_text(&j, "model", mr_net_name(net));
    json_u64(&j, "params", mr_net_param_count(net));
    json_u64(&j, "states", mr_net_state_count(net));
    json_u64(&j, "classes", mr_net_class_count(net));
    json_array(&j, "layers");
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++) {
        json_object(&j, NULL);
        json_text(&j, "name", row.name);
        json_text(&j, "output", row.output);
        json_u64(&j, "params", row.params);
        json_real(&j, "flops", row.flops);
        if (!row.is_input) json_u64(&j, "in", row.in);
        if (row.takes_two) json_u64(&j, "in2", row.in2);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_end(&j);
}

/* A named network, or the network of a checkpoint. */
static int find_network(const char *name, mr_net **net)
{
    mr_error err = MR_ERROR_INIT;
    tool_session s = {0};
    char found[4096], note[1024] = "";
    mr_checkpoint_info info;
    struct stat st;
    if (!mr_model_find(name) && stat(name, &st) == 0) {
        int rc = mr_checkpoint_find(name, found, sizeof found, &info, note, sizeof note, &err);
        if (note[0]) say("%s", note);
        if (rc == MR_OK) rc = mr_checkpoint_net(found, net, &err);
        return exit_status(rc, &err);
    }
    const int status = session_find_model(&s, name);
    return status ? status : exit_status(mr_model_build(s.model, 0, 0, 0, 0, net, &err), &err);
}

static int show_network(const inspect_args *a)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    mr_net *net = NULL;
    int status = find_network(a->model, &net);
    if (status) return status;
    mr_output_defaults(&cfg);
    cfg.force = a->force;
    if (a->svg) status = exit_status(mr_output_check(a->svg, &cfg, &err), &err);
    if (status) {
        mr_net_destroy(net);
        return status;
    }
    if (a->output.json) json_network(net);
    else if (!a->output.quiet) print_network(net);
    if (a->svg) status = exit_status(mr_net_graph_write(net, a->svg, a->force, &err), &err);
    mr_net_destroy(net);
    return status;
}

static int run(const void *args)
{
    const inspect_args *a = args;
    if (!a->path == !a->model || (a->svg && !a->model)) {
        say("expected a data set, or --model with the name of a network%s",
            a->svg ? ", which --svg draws" : "");
        return EXIT_MISUSED;
    }
    if (a->model) return show_network(a);
    char *end = NULL;
    const uint64_t at = a->record ? strtoull(a->record, &end, 10) : 0;
    if (a->record && (a->record[0] < '0' || a->record[0] > '9' || *end)) {
        say("--record: expected a whole number, found '%s'", a->record);
        return EXIT_MISUSED;
    }
    if (a->record && a->bad) {
        say("--record shows one sample, --bad all that are damaged: expected one of them");
        return EXIT_MISUSED;
    }
    mr_source *src;
    data_args data = a->data;
    data.takes_withdrawn = a->record != NULL; /* numbers stay, whatever is withdrawn */
    int status = setup_source(&src, a->path, &data);
    if (status) return status;
    const uint64_t count = mr_source_info_of(src)->count;
    if (a->record && at >= count) {
        say("--record: expected 0 to %" PRIu64 ", found %s", count - 1, a->record);
        status = EXIT_MISUSED;
    } else {
        status = a->record ? show_record(a, src, at) : a->bad ? show_all_bad(a, src) : show_source(a, src);
    }
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(inspect_args, __VA_ARGS__),
#include "settings/commands/inspect.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, inspect_args, data),
    GROUP(OUTPUT, inspect_args, output),
};
static const opt_positional positionals[] = {
    {"DATA", offsetof(inspect_args, path), false, "a record file, a shard list, or any data set"},
};

const command command_inspect = {
    .name = "inspect",
    .summary =
        "show the contents of a data set or of one record, its bad samples, or the layers of a network",
    .text =
        "Shows fields, classes, counts, sizes, layout and where the data came from; with --record the "
        "fields of one sample and the header of its picture. Reads indexes and headers, not the samples; "
        "but with --bad every sample, as 'convert' and 'train' would, and lists the ones they would pass "
        "over or stop at. 'verify' checks record files byte by byte. --model lists a network's layers: the "
        "output of each, its parameters, millions of operations forward for one sample.",
    .examples = "  millrace inspect train.mrec\n  millrace inspect train.mrec --record 17 --json\n  millrace "
                "inspect imagenet/train.rec --bad\n  millrace inspect --model resnet18 --svg resnet18.svg\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(inspect_args),
    .run = run,
};

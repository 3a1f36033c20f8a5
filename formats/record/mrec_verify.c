/* formats/record/mrec_verify.c: look at every byte of a .mrec file.
 *
 * The walk goes record by record from the start of the data. A sound index page says how long a record must
 * be; where the page is damaged the record's own header says it, so one bad page or record does not hide the
 * next. Nothing is repaired. */
#include "base/abi.h"
#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/storage/storage.h"

typedef struct check {
    const mr_mrec *m;
    mri_file_scan win;
    mri_index_walk walk;
    mri_fingerprint *print;
    mr_verify_report *report;
    void *context;
    mr_verify_result *result;
    int code;  /* of the first thing found wrong */
    bool stop; /* the caller has seen enough */
    uint8_t page[MRI_MREC_BLOCK];
    bool page_ok;
} check;

static void tell(check *c, mr_error *err)
{
    mr_error_at(err, c->m->path, MR_NOWHERE, MR_NOWHERE);
    c->result->wrong++;
    if (!c->code) c->code = err->code;
    if (c->report && !c->report(c->context, err)) c->stop = true;
}

/* Is this error the file's fault? Any other error ends the check. */
static bool is_finding(int code)
{
    return code == MR_EFORMAT || code == MR_ECHECKSUM || code == MR_ELIMIT || code == MR_EUNSUPPORTED;
}

static void report_text_at(check *c, uint64_t offset, uint64_t record, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_error_set(&err, MR_EFORMAT, "%s", text);
    mr_error_at(&err, NULL, offset, record);
    tell(c, &err);
}

static int check_zeros(check *c, uint64_t from, uint64_t to, uint64_t record, mr_error *err)
{
    const uint8_t *p;
    const int rc = mri_file_scan_get(&c->win, from, (size_t)(to - from), &p, err);
    if (rc) return rc;
    if (!mri_all_zero(p, (size_t)(to - from))) report_text_at(c, from, record, "padding that is not zero");
    return MR_OK;
}

static int load_page(check *c, uint64_t page, mr_error *err)
{
    const mri_mrec_header *h = &c->m->h;
    const uint64_t offset = h->index_offset + page * MRI_MREC_BLOCK;
    int rc = mri_pread_all(c->m->fd, c->page, sizeof c->page, offset, c->m->path, err);
    if (rc) return rc;
    mr_error found = MR_ERROR_INIT;
    c->page_ok = mri_index_check(c->page, page, mri_index_entries(h->count, page), &found) == MR_OK;
    if (!c->page_ok) {
        mr_error_at(&found, NULL, offset, MR_NOWHERE);
        tell(c, &found);
    }
    return MR_OK;
}

/* Read a record's index entry; false when its page is damaged or places the record where none can be. */
static bool index_says(check *c, uint64_t record, mri_index_entry *e)
{
    if (!c->page_ok) return false;
    mri_index_get(c->page, (uint32_t)(record % MRI_INDEX_PER_PAGE), e);
    mr_error err = MR_ERROR_INIT;
    mri_index_walk trial = c->walk;
    if (mri_index_walk_step(&trial, e, &err) == MR_OK) return true;
    mr_error_at(&err, NULL, c->m->h.index_offset + record / MRI_INDEX_PER_PAGE * MRI_MREC_BLOCK, record);
    tell(c, &err);
    return false;
}

/* Length of the record at walk.next by its own header; *found false when no record starts there. */
static int record_says(check *c, mri_index_entry *e, bool *found, mr_error *err)
{
    const uint64_t data_end = c->m->h.data_offset + c->m->h.data_bytes;
    const uint8_t *p;
    mri_record_size size;
    *found = false;
    if (c->walk.next > data_end || data_end - c->walk.next < MRI_RECORD_HEAD) return MR_OK;
    const int rc = mri_file_scan_get(&c->win, c->walk.next, MRI_RECORD_HEAD, &p, err);
    if (rc) return rc;
    if (!mri_record_peek(p, &size) || size.record_bytes > data_end - c->walk.next) return MR_OK;
    *e = (mri_index_entry){.offset = c->walk.next, .bytes = size.record_bytes};
    *found = true;
    return MR_OK;
}

static int check_record(check *c, uint64_t record, mri_index_entry *e, bool indexed, uint64_t *next_source,
                        mr_error *err)
{
    const uint8_t *p;
    int rc = mri_file_scan_get(&c->win, e->offset, (size_t)e->bytes, &p, err);
    if (rc) return rc;
    mr_error found = MR_ERROR_INIT;
    mr_sample sample;
    mri_record_facts facts;
    rc = mri_record_parse(&c->m->meta, p, (size_t)e->bytes, &sample, &facts, &found);
    if (rc) {
        mr_error_at(&found, NULL, e->offset + (found.offset == MR_NOWHERE ? 0 : found.offset), record);
        tell(c, &found);
        return MR_OK;
    }
    if (!indexed) e->label = facts.label, e->header_crc = facts.header_crc;
    else if (e->label != facts.label || e->header_crc != facts.header_crc)
        report_text_at(c, e->offset, record,
                       "the record is not the one the index knows here: label or header checksum differ");
    if (facts.source_index < *next_source || facts.source_index == UINT64_MAX)
        report_text_at(c, e->offset + 24, record, "the record's source index does not rise");
    else *next_source = facts.source_index + 1;
    return MR_OK;
}

static int check_records(check *c, mr_error *err)
{
    const mri_mrec_header *h = &c->m->h;
    uint64_t next_source = 0;
    for (uint64_t record = 0; record < h->count && !c->stop; record++) {
        int rc = record % MRI_INDEX_PER_PAGE == 0 ? load_page(c, record / MRI_INDEX_PER_PAGE, err) : MR_OK;
        if (rc) return rc;
        mri_index_entry e;
        const bool indexed = index_says(c, record, &e);
        bool known = indexed;
        if (!known) rc = record_says(c, &e, &known, err);
        if (rc) return rc;
        if (!known) {
            report_text_at(c, c->walk.next, record,
                           "neither index nor record say where the next one is: the rest is not checked");
            c->stop = true;
            return MR_OK;
        }
        rc = check_zeros(c, c->walk.end, c->walk.next, record, err);
        if (!rc) rc = check_record(c, record, &e, indexed, &next_source, err);
        if (rc) return rc;
        mri_index_walk_step(&c->walk, &e, NULL); /* holds: index_says or record_says checked it */
        mri_fingerprint_add(c->print, &e);
        c->result->records++;
    }
    return MR_OK;
}

static int check_end(check *c, mr_error *err)
{
    const mri_mrec_header *h = &c->m->h;
    int rc = MR_OK;
    if (h->minor <= MRI_MREC_MINOR) rc = check_zeros(c, c->walk.end, h->index_offset, MR_NOWHERE, err);
    if (rc || c->code) return rc; /* the sums below only mean something over sound records */
    mr_error found = MR_ERROR_INIT;
    if (mri_index_walk_end(&c->walk, &found) != MR_OK) {
        tell(c, &found);
    } else if (mri_fingerprint_value(c->print) != h->fingerprint) {
        report_text_at(c, 136, MR_NOWHERE, "the header's fingerprint differs from the records'");
    }
    return rc;
}

static int run(check *c, mr_error *err)
{
    c->print = mri_fingerprint_create(c->m->h.schema_crc, c->m->h.classes_crc);
    if (!c->print) return mr_error_set(err, MR_ENOMEM, "no memory to check a file");
    mri_file_scan_init(&c->win, c->m->fd, c->m->path, c->m->h.file_bytes);
    mri_index_walk_init(&c->walk, &c->m->h);
    int rc = check_records(c, err);
    if (!rc && !c->stop) rc = check_end(c, err);
    mri_file_scan_fini(&c->win);
    mri_fingerprint_destroy(c->print);
    c->result->bytes = c->m->h.file_bytes;
    return rc;
}

static int verify(const char *path, mr_verify_report *report, void *context, mr_verify_result *out,
                  mr_error *err)
{
    mr_error found = MR_ERROR_INIT;
    mr_mrec *m;
    int rc = mr_mrec_open(&m, path, 0, &found);
    if (rc) { /* without a sound header there is nothing to walk along */
        if (err) *err = found;
        if (!is_finding(rc)) return rc;
        out->wrong = 1;
        if (report) report(context, &found);
        return rc;
    }
    check c = {.m = m, .report = report, .context = context, .result = out};
    rc = run(&c, &found);
    if (is_finding(rc)) { /* as when the file ends before its end */
        tell(&c, &found);
        rc = MR_OK;
    }
    if (rc && err) *err = found;
    if (!rc && c.code) {
        rc = mr_error_set(err, c.code, "%llu thing%s wrong in %llu records", (unsigned long long)out->wrong,
                          out->wrong == 1 ? " is" : "s are", (unsigned long long)out->records);
        mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    mr_mrec_close(m);
    return rc;
}

int mr_mrec_verify_until_sized(const char *path, const volatile int *stop, mr_verify_report *report,
                               void *context, mr_verify_result *out, mr_error *err)
{
    mr_verify_result result = {0};
    MRI_GIVEN(err, path);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    const volatile int *before = mri_stop_at(stop);
    rc = verify(path, report, context, &result, err);
    mri_stop_at(before);
    mri_result_give(out, &result, sizeof result);
    return rc;
}

int mr_mrec_verify_sized(const char *path, mr_verify_report *report, void *context, mr_verify_result *out,
                         mr_error *err)
{
    return mr_mrec_verify_until_sized(path, NULL, report, context, out, err);
}

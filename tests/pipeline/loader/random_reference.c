/* A serial loader has no prefetch, one worker, no cache, nothing resident, no devices and one part: what is
 * left is the order and the pixels. The model knows the order from mr_order_sample() alone. */
#include "tests/pipeline/loader/random_reference.h"

#include "tests/pipeline/sets.h"

/* ---- the reference ---- */

static void *copy_of(const void *data, size_t bytes)
{
    if (!data) return NULL;
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    return memcpy(out, data, bytes);
}

static void keep(reference *ref, const mr_batch *b)
{
    mr_batch *k = &ref->batch[ref->kept++].b;
    *k = *b;
    k->parts = NULL;
    k->pixels = copy_of(b->pixels, b->count * ref->sample_bytes);
    k->labels = copy_of(b->labels, b->count * sizeof *b->labels);
    k->ids = copy_of(b->ids, b->count * sizeof *b->ids);
    k->affine = copy_of(b->affine, b->count * 2 * sizeof *b->affine);
    k->labels2 = copy_of(b->labels2, b->count * sizeof *b->labels2);
    k->share2 = copy_of(b->share2, b->count * sizeof *b->share2);
    for (uint32_t i = 0; i < ref->info.field_count; i++) {
        const mr_batch_field *f = &b->field[i];
        k->field[i].data = copy_of(f->data, b->count * f->width * ref->info.field[i].element_bytes);
        k->field[i].length = copy_of(f->length, b->count * sizeof *f->length);
    }
}

void free_reference(reference *ref)
{
    for (uint64_t i = 0; i < ref->kept; i++) {
        const mr_batch *k = &ref->batch[i].b;
        free((void *)(uintptr_t)k->pixels);
        free((void *)(uintptr_t)k->labels);
        free((void *)(uintptr_t)k->ids);
        free((void *)(uintptr_t)k->affine);
        free((void *)(uintptr_t)k->labels2);
        free((void *)(uintptr_t)k->share2);
        for (uint32_t f = 0; f < ref->info.field_count; f++) {
            free((void *)(uintptr_t)k->field[f].data);
            free((void *)(uintptr_t)k->field[f].length);
        }
    }
    free(ref->batch);
}

/* An endless loader in free order delivers whatever is full first: at most as many batches ahead as it has
 * slots. */
static uint64_t spare_of(const trial *t)
{
    return t->cfg.free_order && t->cfg.epochs != t->epochs ? t->cfg.prefetch + 1 : 0;
}

static mr_loader_config in_series(const trial *t)
{
    mr_loader_config c = t->cfg;
    c.prefetch = 0;
    c.workers = c.readers = c.depth = 1;
    c.io = MR_IO_PREAD;
    c.direct = c.keep_host = c.free_order = false;
    c.resident_bytes = 0;
    c.cache = MR_CACHE_OFF;
    c.devices = NULL;
    c.parts = 1;
    c.start_epoch = c.start_step = 0;
    c.epochs = t->epochs + (spare_of(t) + steps_of(t) - 1) / steps_of(t);
    if (c.bad == MR_BAD_STOP) c.bad = MR_BAD_SKIP; /* the others are to be compared, too */
    c.max_bad = UINT64_MAX;
    return c;
}

void run_reference(const trial *t, reference *ref)
{
    const mr_loader_config cfg = in_series(t);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    check_ok(mr_loader_open(&l, t->set->src, &cfg, &err), &err, "opening the reference");
    ref->info = *mr_loader_info_of(l);
    ref->sample_bytes = (size_t)ref->info.height * ref->info.width * ref->info.channels;
    ref->count = t->epochs * steps_of(t);
    ref->kept = 0;
    const uint64_t all = ref->count + spare_of(t);
    ref->batch = calloc((size_t)all, sizeof *ref->batch);
    assert_non_null(ref->batch);
    while (ref->kept < all) {
        check_ok(mr_loader_next(l, &b, MR_FOREVER, &err), &err, "the reference");
        keep(ref, &b);
        check_ok(mr_loader_release(l, &b, NULL), NULL, "giving a batch of the reference back");
    }
    if (all == ref->count)
        CHECK(mr_loader_next(l, &b, MR_FOREVER, &err) == MR_EEND,
              "the reference delivers more than %llu batches", (unsigned long long)all);
    mr_loader_close(l);
}

/* ---- the model ---- */

/* The sample that belongs to place i of a batch, without windows. */
static uint64_t sample_at(const trial *t, uint64_t batch, uint32_t i)
{
    const mr_loader_config *c = &t->cfg;
    const uint64_t n = samples_of(t), steps = steps_of(t), position = batch % steps * c->batch + i;
    return mr_order_sample(c->order, c->block, c->seed, batch / steps, n, position % n);
}

static uint32_t places_of(const trial *t, uint64_t batch)
{
    const uint64_t left = samples_of(t) - smaller(samples_of(t), batch % steps_of(t) * t->cfg.batch);
    return t->cfg.tail == MR_TAIL_KEEP ? (uint32_t)smaller(t->cfg.batch, left) : t->cfg.batch;
}

static void check_id(const trial *t, const mr_batch *b, uint64_t batch, uint32_t i)
{
    const uint64_t expected = sample_at(t, batch, i), found = b->ids[i];
    const bool damaged = is_bad(t->set, expected), padding = b->step * t->cfg.batch + i >= samples_of(t);
    if (padding || (damaged && t->cfg.bad != MR_BAD_REPLACE))
        CHECK(found == MR_NOWHERE, "place %u is padding or damaged and has number %llu", i,
              (unsigned long long)found);
    else if (damaged)
        CHECK(found < samples_of(t) && !is_bad(t->set, found), "place %u: %llu is no substitute", i,
              (unsigned long long)found);
    else
        CHECK(found == expected, "place %u: the order says %llu, found %llu", i, (unsigned long long)expected,
              (unsigned long long)found);
}

static void check_window(const trial *t, const mr_batch *b, uint32_t i)
{
    uint32_t before, here;
    if (i == 0 || b->ids[i] == MR_NOWHERE) return;
    CHECK(mr_source_length(t->set->src, b->ids[i - 1], &before) == MR_OK &&
              mr_source_length(t->set->src, b->ids[i], &here) == MR_OK && before <= here,
          "place %u is shorter than the one in front of it", i);
}

static void check_place(const trial *t, const reference *ref, const mr_batch *b, uint64_t batch, uint32_t i,
                        uint8_t *seen)
{
    int64_t label;
    const uint64_t id = b->ids[i];
    if (t->cfg.length_window) check_window(t, b, i);
    else check_id(t, b, batch, i);
    CHECK((id == MR_NOWHERE) == (b->labels[i] == -1), "place %u: number %llu with label %d", i,
          (unsigned long long)id, b->labels[i]);
    if (id == MR_NOWHERE) return;
    CHECK(id < samples_of(t), "place %u: there is no sample %llu", i, (unsigned long long)id);
    if (seen[id]++)
        CHECK(t->set->bad_count && t->cfg.bad == MR_BAD_REPLACE, "sample %llu comes twice",
              (unsigned long long)id);
    if (mr_source_label(t->set->src, id, &label) == MR_OK)
        CHECK(label == b->labels[i], "sample %llu: label %lld, found %d", (unsigned long long)id,
              (long long)label, b->labels[i]);
    if (!t->set->known_pixels || strcmp(t->cfg.augment, "none") != 0 || t->cfg.channels == 3) return;
    for (size_t k = 0; k < ref->sample_bytes; k++)
        CHECK(b->pixels[i * ref->sample_bytes + k] == mrt_idx_pixel(id, k), "sample %llu: pixel %zu is wrong",
              (unsigned long long)id, k);
}

void check_reference(const trial *t, const reference *ref)
{
    const uint64_t n = samples_of(t), steps = steps_of(t);
    uint8_t *seen = calloc((size_t)n, 1);
    assert_non_null(seen);
    for (uint64_t i = 0; i < ref->kept; i++) {
        const mr_batch *b = &ref->batch[i].b;
        uint32_t counted = 0;
        if (i % steps == 0) memset(seen, 0, (size_t)n);
        CHECK(b->epoch == i / steps && b->step == i % steps && b->global_step == i &&
                  b->last == (b->step + 1 == steps),
              "batch %llu of the reference: epoch %llu, step %llu, last %d", (unsigned long long)i,
              (unsigned long long)b->epoch, (unsigned long long)b->step, b->last);
        CHECK(b->count == places_of(t, i), "batch %llu: %u samples, expected %u", (unsigned long long)i,
              b->count, places_of(t, i));
        for (uint32_t k = 0; k < b->count; k++) {
            check_place(t, ref, b, i, k, seen);
            counted += b->labels[k] >= 0;
        }
        CHECK(counted == b->counted, "batch %llu: counted %u, %u have a label", (unsigned long long)i,
              b->counted, counted);
    }
    free(seen);
}

damage foresee(const trial *t, uint64_t count)
{
    damage d = {.first = count};
    uint64_t met[MOST_BAD];
    for (uint64_t i = start_of(t); i < count && t->set->bad_count && d.first == count; i++)
        for (uint32_t k = 0; k < places_of(t, i); k++) {
            const uint64_t sample = sample_at(t, i, k);
            uint64_t at = 0;
            if (!is_bad(t->set, sample)) continue;
            d.places++;
            while (at < d.distinct && met[at] != sample) at++;
            if (at == d.distinct) met[d.distinct++] = sample;
            if ((t->cfg.bad == MR_BAD_STOP || d.distinct > t->cfg.max_bad) && d.first == count) d.first = i;
        }
    return d;
}

/* ---- comparing ---- */

uint32_t pieces_of(const reference *ref, const mr_batch *k, const mr_part *p, piece *out)
{
    const size_t first = p->first, n = p->count;
    uint32_t count = 0;
    if (ref->sample_bytes)
        out[count++] =
            (piece){p->pixels, k->pixels + first * ref->sample_bytes, n * ref->sample_bytes, "pixels"};
    out[count++] = (piece){p->labels, k->labels + first, n * sizeof *k->labels, "labels"};
    if (k->affine)
        out[count++] = (piece){p->affine, k->affine + 2 * first, n * 2 * sizeof *k->affine, "affine numbers"};
    if (k->labels2) {
        out[count++] = (piece){p->labels2, k->labels2 + first, n * sizeof *k->labels2, "second labels"};
        out[count++] = (piece){p->share2, k->share2 + first, n * sizeof *k->share2, "shares"};
    }
    for (uint32_t i = 0; i < ref->info.field_count; i++) {
        const mr_batch_field *f = &k->field[i];
        const size_t row = f->width * (size_t)ref->info.field[i].element_bytes;
        out[count++] = (piece){p->field[i].data, (const uint8_t *)f->data + first * row, n * row,
                               ref->info.field[i].name};
        if (f->length)
            out[count++] = (piece){p->field[i].length, f->length + first, n * sizeof *f->length, "lengths"};
    }
    return count;
}

void compare_piece(const piece *p, uint64_t batch, uint32_t part, const char *when)
{
    const uint8_t *a = p->found, *b = p->expected;
    size_t at = 0;
    if (p->bytes == 0) return;
    CHECK(a != NULL, "batch %llu, part %u, %s: no %s", (unsigned long long)batch, part, when, p->what);
    if (memcmp(a, b, p->bytes) == 0) return;
    while (a[at] == b[at]) at++;
    differs("batch %llu, part %u, %s: %s differ from byte %zu of %zu on: expected %u, found %u",
            (unsigned long long)batch, part, when, p->what, at, p->bytes, b[at], a[at]);
}

static void compare_pieces(const reference *ref, const mr_batch *k, const mr_part *p, uint64_t batch,
                           uint32_t part, const char *when)
{
    piece pieces[MOST_PIECES];
    const uint32_t n = pieces_of(ref, k, p, pieces);
    for (uint32_t i = 0; i < n; i++) compare_piece(&pieces[i], batch, part, when);
}

void compare_host(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b, uint64_t batch,
                  const char *when)
{
    mr_part all = {.count = b->count,
                   .pixels = b->pixels,
                   .labels = b->labels,
                   .affine = b->affine,
                   .labels2 = b->labels2,
                   .share2 = b->share2};
    if (t->cfg.devices && !t->cfg.keep_host) {
        CHECK(!b->pixels && !b->labels && !b->ids && !b->affine && !b->labels2 && !b->share2,
              "batch %llu has a host copy", (unsigned long long)batch);
        return;
    }
    memcpy(all.field, b->field, sizeof all.field);
    compare_pieces(ref, k, &all, batch, MR_LOADER_MAX_PARTS, when);
    compare_piece(&(piece){b->ids, k->ids, b->count * sizeof *b->ids, "numbers"}, batch, MR_LOADER_MAX_PARTS,
                  when);
    for (uint32_t r = 0; r < b->part_count && !t->cfg.devices; r++)
        compare_pieces(ref, k, &b->parts[r], batch, r, when);
}

void compare_shape(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b)
{
    const uint32_t parts = t->cfg.devices ? t->cfg.device_count : t->cfg.parts;
    uint32_t at = 0;
    CHECK(b->epoch == k->epoch && b->step == k->step && b->last == k->last && b->count == k->count &&
              b->counted == k->counted,
          "epoch %llu, step %llu, last %d, count %u, counted %u; expected %llu, %llu, %d, %u, %u",
          (unsigned long long)b->epoch, (unsigned long long)b->step, b->last, b->count, b->counted,
          (unsigned long long)k->epoch, (unsigned long long)k->step, k->last, k->count, k->counted);
    CHECK(b->part_count == parts, "%u parts, expected %u", b->part_count, parts);
    for (uint32_t r = 0; r < parts; r++) {
        const mr_part *p = &b->parts[r];
        CHECK(p->first == at && p->count <= (b->count - 1) / parts + 1, "part %u: %u from %u on", r, p->count,
              p->first);
        CHECK(p->form == MR_PART_PIXELS && (p->ready != NULL) == (t->cfg.devices != NULL),
              "part %u has another form or event", r);
        at += p->count;
        for (uint32_t i = 0; i < ref->info.field_count; i++)
            CHECK(p->field[i].width == k->field[i].width && b->field[i].width == k->field[i].width,
                  "field %u is %u wide in part %u, expected %u", i, p->field[i].width, r, k->field[i].width);
    }
    CHECK(at == b->count, "the parts have %u samples together, the batch %u", at, b->count);
}

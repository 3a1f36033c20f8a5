/* tests/fuzz/pictures/fuzz_augment.c: hostile text as a specification of augmentation. Input: a byte for
 * training or not (1) and for operations of one's own (2), the text. An accepted text spells itself out, and
 * that spelling is accepted and spells itself out the same. */
#include <stdlib.h>
#include <string.h>

#include "millrace/pipeline.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1024, DECLARED = 64 << 10 };

static int change(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    (void)context, (void)picture, (void)pixels, (void)err;
    return MR_OK;
}

static const mr_own_operation own[] = {
    {.name = "my_a", .change = change, .arguments_most = MR_OWN_ARGUMENTS},
    {.name = "my_b", .change = change, .arguments_least = 1, .arguments_most = 2, .in_evaluation = true},
    {.name = "my_c", .change = change}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[MOST];
    if (bytes < 1 || bytes > MOST) return 0;
    const bool training = data[0] & 1;
    const uint32_t count = data[0] & 2 ? sizeof own / sizeof *own : 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    mrt_fuzz_begin(bytes, DECLARED);
    mr_augment *a, *again;
    mr_error err = MR_ERROR_INIT;
    if (mr_augment_create_own(&a, text, training, own, count, &err) == MR_OK) {
        uint32_t h, w;
        float mean[4], std[4];
        bool affine;
        if (mr_augment_output(a, 32, 48, &h, &w, &err) == MR_OK && (h == 0 || w == 0)) abort();
        mr_augment_output(a, 0, 0, &h, &w, NULL);
        mr_augment_normalise(a, mean, std, &affine);
        if (mr_augment_create_own(&again, mr_augment_text(a), training, own, count, &err) != MR_OK) abort();
        if (strcmp(mr_augment_text(a), mr_augment_text(again)) != 0) abort();
        mr_augment_destroy(again);
        mr_augment_destroy(a);
    } else if (!err.text[0]) abort();
    mrt_fuzz_end();
    return 0;
}

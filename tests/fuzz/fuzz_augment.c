/* tests/fuzz/fuzz_augment.c: hostile text as a specification of augmentation. Input: a byte for training or
 * not, the text. What is accepted spells itself out, and that is accepted and spells itself out the same. */
#include <stdlib.h>
#include <string.h>

#include "millrace/pipeline.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1024, DECLARED = 64 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[MOST];
    if (bytes < 1 || bytes > MOST) return 0;
    const bool training = data[0] & 1;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    mrt_fuzz_begin(bytes, DECLARED);
    mr_augment *a, *again;
    mr_error err = MR_ERROR_INIT;
    if (mr_augment_create(&a, text, training, &err) == MR_OK) {
        uint32_t h, w;
        float mean[4], std[4];
        bool affine;
        if (mr_augment_output(a, 32, 48, &h, &w, &err) == MR_OK && (h == 0 || w == 0)) abort();
        mr_augment_output(a, 0, 0, &h, &w, NULL);
        mr_augment_normalise(a, mean, std, &affine);
        if (mr_augment_create(&again, mr_augment_text(a), training, &err) != MR_OK) abort();
        if (strcmp(mr_augment_text(a), mr_augment_text(again)) != 0) abort();
        mr_augment_destroy(again);
        mr_augment_destroy(a);
    } else if (!err.text[0]) abort();
    mrt_fuzz_end();
    return 0;
}

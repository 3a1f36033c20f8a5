/* Names numbered with lookup: the same texts get the same number, and nobody who writes the texts decides
 * where they lie in the table. */
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/names.h"
#include "mrt.h"

static void names_keep_their_numbers(void **state)
{
    (void)state;
    mri_names n = {0};
    char text[32];
    uint32_t number;
    bool is_new;
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < 3000; k++) {
            const int bytes = snprintf(text, sizeof text, "%u", k);
            MRT_EQ(mri_names_add(&n, text, (size_t)bytes, &number, &is_new), MR_OK);
            MRT_EQ(number, k);
            MRT_EQ(is_new, round == 0);
        }
    MRT_STR(mri_name(&n, 2999), "2999");
    MRT_EQ(n.count, 3000);
    mri_names_fini(&n);
}

/* Slots in a row that are taken: as many may have to be compared with one text. */
static uint32_t longest_run(const mri_names *n)
{
    uint32_t longest = 0, run = 0;
    for (uint32_t k = 0; k < 2 * n->slot_count; k++) {
        run = n->slot[k & (n->slot_count - 1)] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Texts that all begin at one place of a table whose hash is known beforehand. */
static void chosen_names_do_not_meet(void **state)
{
    (void)state;
    enum { COUNT = 1024, MASK = 4 * COUNT - 1 };
    mri_names n = {0};
    char text[32];
    for (uint32_t k = 0; n.count < COUNT; k++) {
        uint32_t number;
        bool is_new;
        const size_t bytes = (size_t)snprintf(text, sizeof text, "image-%08u.jpg", k);
        if ((XXH3_64bits(text, bytes) & MASK) != 0) continue;
        MRT_EQ(mri_names_add(&n, text, bytes, &number, &is_new), MR_OK);
    }
    MRT_TRUE(n.slot_count <= MASK + 1);
    MRT_TRUE(longest_run(&n) < COUNT / 4); /* chance alone: some twenty */
    mri_names_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_keep_their_numbers),
        cmocka_unit_test(chosen_names_do_not_meet),
    };
    return mrt_run(tests);
}

/* formats/source/parts.c: see parts.h. */
#include "formats/source/parts.h"

#include <string.h>
#include <strings.h>

#include "base/util.h"

static const struct {
    const char *word;
    mri_part part;
} words[MRI_PART_WORDS] = {
    {"train", MRI_TRAIN},
    {"training", MRI_TRAIN},
    {"val", MRI_VALIDATION},
    {"valid", MRI_VALIDATION},
    {"validation", MRI_VALIDATION},
    {"validating", MRI_VALIDATION},
    {"eval", MRI_VALIDATION},
    {"dev", MRI_VALIDATION},
    {"test", MRI_TEST},
    {"testing", MRI_TEST},
    {"t10k", MRI_TEST}, /* MNIST's own, the one with digits in it */
};

enum { T10K = MRI_PART_WORDS - 1 };

/* MRI_PART_WORDS: not a split word. */
static uint32_t rank_of(const char *text, size_t bytes)
{
    uint32_t k = 0;
    while (k < MRI_PART_WORDS &&
           (strlen(words[k].word) != bytes || strncasecmp(text, words[k].word, bytes) != 0))
        k++;
    return k;
}

mri_part mri_part_of_word(const char *text, size_t bytes)
{
    const uint32_t rank = rank_of(text, bytes);
    return rank < MRI_PART_WORDS ? words[rank].part : MRI_NO_PART;
}

/* What lies beyond ASCII belongs to some alphabet. */
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_t10k(const char *name, const char *at)
{
    return strncasecmp(at, "t10k", 4) == 0 && (at == name || !(is_letter(at[-1]) || is_digit(at[-1]))) &&
           !is_letter(at[4]) && !is_digit(at[4]);
}

mri_part_piece mri_part_piece_at(const char *name, const char *at)
{
    size_t n = 0;
    if (is_t10k(name, at)) return (mri_part_piece){4, true, words[T10K].part, T10K};
    while (is_letter(at[n])) n++;
    const uint32_t rank = rank_of(at, n);
    return (mri_part_piece){.bytes = n ? n : 1,
                            .is_word = n > 0,
                            .part = rank < MRI_PART_WORDS ? words[rank].part : MRI_NO_PART,
                            .rank = rank};
}

mri_part mri_part_of_name(const char *name)
{
    mri_part found = MRI_NO_PART;
    for (const char *at = name; *at;) {
        const mri_part_piece p = mri_part_piece_at(name, at);
        if (p.part != MRI_NO_PART && found != MRI_NO_PART && p.part != found) return MRI_TWO_PARTS;
        if (p.part != MRI_NO_PART) found = p.part;
        at += p.bytes;
    }
    return found;
}

const char *mri_part_name(mri_part part)
{
    static const char *const names[] = {"no", "train", "validation", "test", "ambiguous"};
    return names[part];
}

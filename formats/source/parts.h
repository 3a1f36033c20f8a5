/* formats/source/parts.h: which part of a data set (train, validation, test) a name speaks of. Private.
 *
 * A name is cut into words at everything that is no letter: imagenet-train-000017.tar is imagenet, train,
 * tar; train2017 is train. The one word of a part among them says it, wherever it stands. Two words of
 * different parts in one name (train-val-0003) say nothing: whoever needs the part refuses such a name. All
 * formats whose parts are files or folders ask here, so that one name means the same everywhere.
 *
 * Of what there is to test with the validation part comes first: the labels of a test part are often kept
 * from the public. If both exist, the test split is taken only if the user names it by its path. */
#ifndef MRI_PARTS_H
#define MRI_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mri_part {
    MRI_NO_PART,
    MRI_TRAIN,
    MRI_VALIDATION,
    MRI_TEST,
    MRI_PART_COUNT,
    MRI_TWO_PARTS = MRI_PART_COUNT /* words of different parts */
} mri_part;

enum { MRI_PART_WORDS = 11 };

typedef struct mri_part_piece { /* of a name: a run of letters, MNIST's t10k, or one other character */
    size_t bytes;
    bool is_word;
    mri_part part; /* that it speaks of; MRI_NO_PART: none */
    uint32_t rank; /* of a part: of several words that there are, the one with the lowest is preferred */
} mri_part_piece;

mri_part_piece mri_part_piece_at(const char *name, const char *at); /* at: in name, not at its end */
mri_part mri_part_of_word(const char *text, size_t bytes);
mri_part mri_part_of_name(const char *name);
const char *mri_part_name(mri_part part); /* "train", "validation", "test" */

#endif

/* pipeline/cache/page_choice.c: see page_choice.h. */
#include "pipeline/cache/page_choice.h"

#define REMEMBERED ((uint64_t)16 << 20) /* bytes */

bool mri_page_choice_next(mri_page_choice *c)
{
    const bool again = ++c->pieces % MRI_PAGE_RETRY == 0;
    if (!c->bytes[1]) return true;
    if (!c->bytes[0]) return false;
    const bool huge = c->ns[1] * c->bytes[0] <= c->ns[0] * c->bytes[1]; /* ns per byte */
    return huge != again;
}

void mri_page_choice_note(mri_page_choice *c, bool huge, uint64_t bytes, uint64_t ns)
{
    c->ns[huge] += ns;
    c->bytes[huge] += bytes;
    while (c->bytes[huge] > REMEMBERED) { /* also keeps products below 64 bits */
        c->bytes[huge] /= 2;
        c->ns[huge] /= 2;
    }
}

/* formats/tar/tar_sums_match.c: members of an archive and lines of its checksums that did not meet in their
 * order. See tar_sums.h.
 *
 *   same name               a pair, wherever it lies: another program packed the archive anew
 *   same position           the member's name is damaged
 *   a line alone            the member is missing, or its header says that it is no file
 *   a member alone          nothing vouches for it */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/tar/tar_sums.h"

enum { NAME_SHOWN = 200 };

static int add(mri_tar_listed **list, uint64_t *count, uint64_t *room, const mri_tar_sum *sum, char *name,
               mr_error *err)
{
    if (*count == *room) {
        const uint64_t more_room = *room ? 2 * *room : 64;
        mri_tar_listed *more = realloc(*list, (size_t)more_room * sizeof *more);
        if (!more) return mr_error_set(err, MR_ENOMEM, "no memory to check an archive");
        *list = more;
        *room = more_room;
    }
    (*list)[(*count)++] = (mri_tar_listed){*sum, name};
    return MR_OK;
}

int mri_tar_unmatched_member(mri_tar_unmatched *u, const mri_tar_sum *sum, const char *name, mr_error *err)
{
    char *copy = strdup(name);
    if (!copy) return mr_error_set(err, MR_ENOMEM, "no memory to check an archive");
    const int rc = add(&u->member, &u->members, &u->member_room, sum, copy, err);
    if (rc) free(copy);
    return rc;
}

int mri_tar_unmatched_line(mri_tar_unmatched *u, const mri_tar_sum *sum, mr_error *err)
{
    return add(&u->line, &u->lines, &u->line_room, sum, NULL, err);
}

/* True: text is for the message to come, the first in the archive so far. */
static bool is_first(mri_tar_unmatched *u, uint64_t offset)
{
    const bool first = u->wrong++ == 0 || offset < u->first.offset;
    if (first) {
        u->first = (mr_error)MR_ERROR_INIT;
        mr_error_at(&u->first, NULL, offset, MR_NOWHERE);
    }
    return first;
}

void mri_tar_matched(mri_tar_unmatched *u, const mri_tar_sum *line, const mri_tar_sum *member,
                     const char *name, bool with_data)
{
    char shown[NAME_SHOWN];
    const bool named = line->name_crc == member->name_crc, whole = line->bytes == member->bytes;
    u->fitting++;
    if (named && whole && (!with_data || line->crc == member->crc)) return;
    if (!is_first(u, member->data)) return;
    mr_text_shown(name, shown, sizeof shown);
    if (!named)
        mr_error_set(&u->first, MR_ECHECKSUM,
                     "the name of a member is damaged: expected a name with the checksum %08x, found \"%s\" "
                     "(%08x): copy the archive again",
                     line->name_crc, shown, member->name_crc);
    else if (!whole)
        mr_error_set(&u->first, MR_ECHECKSUM,
                     "member \"%s\": its size is damaged: expected %" PRIu64 " bytes, found %" PRIu64
                     ": copy the archive again",
                     shown, line->bytes, member->bytes);
    else
        mr_error_set(
            &u->first, MR_ECHECKSUM,
            "member \"%s\": its checksum does not match: expected %08x, found %08x: copy the archive again",
            shown, line->crc, member->crc);
    mr_error_at(&u->first, NULL, member->data, MR_NOWHERE);
}

static int order(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_name(const void *a, const void *b)
{
    const mri_tar_sum *x = &((const mri_tar_listed *)a)->sum, *y = &((const mri_tar_listed *)b)->sum;
    return x->name_crc != y->name_crc ? order(x->name_crc, y->name_crc) : order(x->data, y->data);
}

static int by_position(const void *a, const void *b)
{
    return order(((const mri_tar_listed *)a)->sum.data, ((const mri_tar_listed *)b)->sum.data);
}

/* Take the pairs out of both lists; the rest stays in order. */
static void pair(mri_tar_unmatched *u, int (*compare)(const void *, const void *), bool names, bool with_data)
{
    uint64_t m = 0, l = 0, members = 0, lines = 0;
    if (u->members) qsort(u->member, (size_t)u->members, sizeof *u->member, compare);
    if (u->lines) qsort(u->line, (size_t)u->lines, sizeof *u->line, compare);
    while (m < u->members || l < u->lines) {
        const mri_tar_listed *a = m < u->members ? &u->member[m] : NULL;
        const mri_tar_listed *b = l < u->lines ? &u->line[l] : NULL;
        const int which = !a      ? 1
                          : !b    ? -1
                          : names ? order(a->sum.name_crc, b->sum.name_crc)
                                  : order(a->sum.data, b->sum.data);
        if (which < 0) u->member[members++] = u->member[m++];
        else if (which > 0) u->line[lines++] = u->line[l++];
        else {
            mri_tar_matched(u, &b->sum, &a->sum, a->name, with_data);
            free(a->name);
            m++, l++;
        }
    }
    u->members = members;
    u->lines = lines;
}

void mri_tar_unmatched_settle(mri_tar_unmatched *u, bool with_data)
{
    char shown[NAME_SHOWN];
    pair(u, by_name, true, with_data);
    pair(u, by_position, false, with_data);
    if (u->fitting == 0) return; /* about another archive */
    for (uint64_t k = 0; k < u->lines; k++) {
        const mri_tar_sum *s = &u->line[k].sum;
        if (!is_first(u, s->data)) continue;
        mr_error_set(&u->first, MR_ECHECKSUM,
                     "the archive's checksums list a file of %" PRIu64
                     " bytes here (checksum of its name: %08x), found none: copy the archive again",
                     s->bytes, s->name_crc);
        mr_error_at(&u->first, NULL, s->data, MR_NOWHERE);
    }
    for (uint64_t k = 0; k < u->members; k++) {
        const mri_tar_listed *m = &u->member[k];
        if (!is_first(u, m->sum.data)) continue;
        mr_error_set(&u->first, MR_ECHECKSUM,
                     "member \"%s\" is not listed in the archive's checksums: copy the archive again, or, "
                     "when the member was added, make the checksums anew (millrace repair ARCHIVE NEW.tar)",
                     mr_text_shown(m->name, shown, sizeof shown));
        mr_error_at(&u->first, NULL, m->sum.data, MR_NOWHERE);
    }
}

void mri_tar_unmatched_fini(mri_tar_unmatched *u)
{
    for (uint64_t k = 0; k < u->members; k++) free(u->member[k].name);
    free(u->member);
    free(u->line);
    u->member = u->line = NULL;
    u->members = u->lines = u->member_room = u->line_room = 0;
}

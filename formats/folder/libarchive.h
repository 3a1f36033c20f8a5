/* formats/folder/libarchive.h: every function of libarchive that is called, in one table. The library is
 * opened when the first archive needs it, so one program runs with and without it, and its headers are not
 * needed to build. Private to members_pack.c and libarchive.c. */
#ifndef MRI_LIBARCHIVE_H
#define MRI_LIBARCHIVE_H

#include <sys/types.h>

#include "millrace/base.h"

struct archive;
struct archive_entry;

/* result, name, parameters: as archive.h and archive_entry.h of libarchive 3 have them */
#define MRI_LIBARCHIVE_CALLS(X)                                                                              \
    X(struct archive *, archive_read_new, (void))                                                            \
    X(int, archive_read_free, (struct archive *))                                                            \
    X(int, archive_read_support_filter_bzip2, (struct archive *))                                            \
    X(int, archive_read_support_filter_xz, (struct archive *))                                               \
    X(int, archive_read_support_filter_zstd, (struct archive *))                                             \
    X(int, archive_read_support_format_raw, (struct archive *))                                              \
    X(int, archive_read_support_format_7zip, (struct archive *))                                             \
    X(int, archive_read_support_format_rar, (struct archive *))                                              \
    X(int, archive_read_support_format_rar5, (struct archive *))                                             \
    X(int, archive_read_open_fd, (struct archive *, int, size_t))                                            \
    X(int, archive_read_next_header, (struct archive *, struct archive_entry **))                            \
    X(ssize_t, archive_read_data, (struct archive *, void *, size_t))                                        \
    X(const char *, archive_error_string, (struct archive *))                                                \
    X(const char *, archive_entry_pathname, (struct archive_entry *))                                        \
    X(const char *, archive_entry_hardlink, (struct archive_entry *))                                        \
    X(int64_t, archive_entry_size, (struct archive_entry *))                                                 \
    X(int, archive_entry_size_is_set, (struct archive_entry *))                                              \
    X(int, archive_entry_is_encrypted, (struct archive_entry *))                                             \
    X(mode_t, archive_entry_filetype, (struct archive_entry *))

enum { MRI_ARCHIVE_OK = 0, MRI_ARCHIVE_EOF = 1 };

typedef struct mri_libarchive {
#define MRI_FIELD(result, f, parameters) result(*f) parameters;
    MRI_LIBARCHIVE_CALLS(MRI_FIELD)
#undef MRI_FIELD
} mri_libarchive;

/* The table, or NULL with MR_EUNSUPPORTED in err, which names what to install. The library stays open. Any
 * thread. */
const mri_libarchive *mri_libarchive_need(mr_error *err);

#endif

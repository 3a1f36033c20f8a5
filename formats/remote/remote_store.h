/* formats/remote/remote_store.h: the local store of fetched blocks. Private.
 *
 *   FOLDER/KEY.data   the file as it is on the server, sparse: only blocks that were fetched take room
 *   FOLDER/KEY.map    one page that says of what, then 8 bytes for each block: 0, or a mark and the CRC32C of
 *                     its bytes
 *   FOLDER/v-.../     names under which formats find whole files (remote_view.c)
 *   FOLDER/lock       held (flock) for the moment in which files come and go
 *
 * KEY is a hash of URL, size and the server's ETag or time of change: another version of a file is another
 * entry, and two versions cannot mix. If the server sends neither, or an unreliable one, the file is kept for
 * one run only, without a name.
 *
 * Blocks are trusted by the checksums stored next to them, so only this user or root may own the folder and
 * its files: a folder that others may write to is refused, a file of theirs is left alone (the entry is then
 * kept for this run only).
 *
 * Who uses an entry holds flock(LOCK_SH) on its map; entries nobody holds may be removed. Of one in use,
 * blocks are locked by byte ranges of the data file that belong to the open file (F_OFD_SETLK), so programs,
 * and data sets in one program, see one another's:
 *
 *   read lock    the block is in use, and may not be dropped
 *   write lock   somebody fetches or drops it
 *
 * Locks end with their program, however that ends. A block's bytes are written before its mark, and the mark
 * goes before the bytes: after a crash of the machine they may not match, so the first use in a run compares
 * them. */
#ifndef MRI_REMOTE_STORE_H
#define MRI_REMOTE_STORE_H

#include "base/file.h"

enum { MRI_BLOCK_BYTES = 1 << 20 };

typedef struct mri_closed_entry { /* one that nobody had open when it was looked for */
    char key[33];
    uint64_t used_ns, bytes;
} mri_closed_entry;

typedef struct mri_store {
    char *folder;
    int folder_fd, lock_fd;
    mri_closed_entry *closed; /* oldest use last */
    uint32_t closed_count, closed_cap;
    uint64_t closed_bytes;
} mri_store;

typedef struct mri_entry {
    char key[33]; /* "" for one without a name */
    int data_fd, map_fd;
    uint64_t bytes;
    uint64_t blocks;
    char distrust[MRI_DISTRUST_BYTES]; /* why existing content is not trusted; "" when it is */
} mri_entry;

/* folder NULL: $XDG_CACHE_HOME/millrace/remote, or ~/.cache. Made when it is not there. */
int mri_store_open(mri_store *s, const char *folder, mr_error *err);
void mri_store_close(mri_store *s); /* a zeroed one: nothing happens */
/* Scan for unused entries; unreadable ones are left out. */
int mri_store_scan(mri_store *s, mr_error *err);
/* Remove the least recently used of them. */
void mri_store_drop_oldest(mri_store *s);
/* Held for moments only. */
void mri_store_lock(const mri_store *s);
void mri_store_unlock(const mri_store *s);

/* version: ETag and such, "" for none. */
int mri_entry_open(const mri_store *s, mri_entry *e, const char *url, const char *shown, const char *version,
                   uint64_t bytes, mr_error *err);
void mri_entry_close(mri_entry *e);
size_t mri_entry_block_bytes(const mri_entry *e, uint64_t block); /* the last one is shorter */
/* The marks of count blocks. */
bool mri_entry_marks(const mri_entry *e, uint64_t first, size_t count, uint64_t *out);
bool mri_entry_set_mark(const mri_entry *e, uint64_t block, uint64_t mark);
static inline uint64_t mri_entry_mark(uint32_t crc) { return (uint64_t)1 << 32 | crc; }
/* type F_RDLCK, F_WRLCK or F_UNLCK; false when somebody else's lock is in the way. Never waits. */
bool mri_entry_lock(const mri_entry *e, uint64_t block, short type);
/* Give the block's room back; false when somebody uses it. */
bool mri_entry_drop(const mri_entry *e, uint64_t block);

#endif

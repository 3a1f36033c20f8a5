/* formats/storage/placeholder.c: see placeholder.h. Nothing here decides anything: it is asked when no format
 * knows the bytes. */
#include "formats/storage/placeholder.h"

#include <string.h>
#include <strings.h>

static bool begins(const uint8_t *head, size_t bytes, const char *text)
{
    return bytes >= strlen(text) && strncasecmp((const char *)head, text, strlen(text)) == 0;
}

/* A probe could not look inside without the library, or saw no class folders. */
#define OR_INSTALL "; archives of class folders are read as they are where libarchive13 is installed"

static const struct {
    const char *magic;
    size_t bytes;
    const char *what;
} others[] = {
    {"PK\3\4", 4,
     "this is a zip archive without pictures in folders and without arrays of NumPy: unpack it "
     "(unzip), and open the files"},
    {"PK\5\6", 4, "this is an empty zip archive"},
    {"PAR1", 4,
     "this is a Parquet file, which is read by Python: millrace.adapters.from_parquet(), and "
     "millrace.write_records() keeps it as a record file"},
    {"ARROW1", 6,
     "this is an Arrow file, which is read by Python: millrace.adapters.from_datasets(), and "
     "millrace.write_records() keeps it as a record file"},
    {"\211HDF\r\n\032\n", 8,
     "this is an HDF5 file: save its arrays with NumPy (h5py; numpy.savez('set.npz', x_train=..., "
     "y_train=...))"},
    {"(\265/\375", 4,
     "this is packed by zstd, which is not unpacked here: zstd -d, and open the unpacked "
     "files" OR_INSTALL},
    {"\3757zXZ\0", 6,
     "this is packed by xz, which is not unpacked here: xz -d (tar xf), and open the unpacked "
     "files" OR_INSTALL},
    {"BZh", 3,
     "this is packed by bzip2, which is not unpacked here: bzip2 -d (tar xf), and open what it "
     "makes" OR_INSTALL},
    {"7z\274\257\047\034", 6,
     "this is a 7z archive: unpack it (7z x), and open the unpacked "
     "files" OR_INSTALL},
    {"Rar!\032\007", 6,
     "this is a rar archive: unpack it (unrar x), and open the unpacked "
     "files" OR_INSTALL},
    {"\377\376", 2, "this is text in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it"},
    {"\376\377", 2, "this is text in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it"},
};

/* Python's, protocols 2 to 5: a frame, or what such files begin with. */
static bool is_pickle(const uint8_t *head, size_t bytes)
{
    return bytes >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
           strchr("\225}](cX\212", head[2]) && head[2];
}

const char *mri_placeholder_describe(const uint8_t *head, size_t bytes)
{
    if (begins(head, bytes, "version https://git-lfs.github.com/spec/"))
        return "this is a git-lfs pointer, not the data: fetch them (git lfs pull)";
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (bytes >= others[k].bytes && memcmp(head, others[k].magic, others[k].bytes) == 0)
            return others[k].what;
    if (is_pickle(head, bytes))
        return "this is a pickle of Python, which is a program and not read: save arrays of it with NumPy "
               "(numpy.savez('set.npz', x_train=..., y_train=...)); of CIFAR take the binary version";
    while (bytes > 0 && (*head == ' ' || (*head >= '\t' && *head <= '\r'))) {
        head++;
        bytes--;
    }
    if (begins(head, bytes, "<!doctype html") || begins(head, bytes, "<html"))
        return "this is a page of HTML, not the data: the download was an error or a login page";
    return NULL;
}

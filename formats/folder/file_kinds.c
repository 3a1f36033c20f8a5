/* formats/folder/file_kinds.c: is a file a picture? Opening a million files to look at their first bytes is
 * slow, so the ending of the name is asked first: an ending of pictures is trusted (a false one
 * is found when the file is read), and so is an ending of other kinds of files. Only if it means nothing,
 * or a kind of picture that is not decoded, the first bytes decide: pictures are often misnamed. A name
 * without an ending may belong to a damaged picture, which is a bad sample and must not be left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/image/picture_files.h"
#include "formats/image/picture_kind.h"
#include "formats/storage/outside.h"

enum { LOOK_BYTES = 512, LONGEST_ENDING = 10 };

static const struct {
    const char *ending, *what;
} undecoded[] = {
    {"dcm", "DICOM is not decoded"},     {"exr", "EXR is not decoded"},
    {"ico", "ICO is not decoded"},       {"j2k", "JPEG 2000 is not decoded"},
    {"jp2", "JPEG 2000 is not decoded"}, {"jxl", "JPEG XL is not decoded"},
    {"pbm", "PNM is not decoded"},       {"pgm", "PNM is not decoded"},
    {"pnm", "PNM is not decoded"},       {"ppm", "PNM is not decoded"},
    {"psd", "PSD is not decoded"},       {"svg", "SVG is not decoded"},
    {"tga", "TGA is not decoded"},
};

/* Kinds of files that lie beside pictures. */
static const char *const others[] = {
    "7z",     "arrow", "avi",   "bak",  "bib",      "bz2", "c",       "cfg",   "conf",    "cpp",    "crc",
    "css",    "csv",   "doc",   "docx", "dvc",      "exe", "flac",    "gz",    "h",       "h5",     "hdf5",
    "htm",    "html",  "idx",   "ini",  "ipynb",    "js",  "json",    "jsonl", "lnk",     "lock",   "log",
    "lst",    "m",     "m4v",   "mat",  "md",       "md5", "mkv",     "mov",   "mp3",     "mp4",    "mpeg",
    "mpg",    "mrec",  "mridx", "npy",  "npz",      "ogg", "parquet", "part",  "pdf",     "pickle", "pkl",
    "ppt",    "pptx",  "pt",    "pth",  "py",       "rar", "rec",     "rst",   "sh",      "sha1",   "sha256",
    "sqlite", "swp",   "tar",   "tex",  "tfrecord", "tgz", "tmp",     "toml",  "torrent", "tsv",    "txt",
    "url",    "wav",   "webm",  "xls",  "xlsx",     "xml", "xz",      "yaml",  "yml",     "zip",    "zst",
};

static const char *const clutter[] = {"thumbs.db", "desktop.ini", "ehthumbs.db", "icon\r"};

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (strcasecmp(text, list[k]) == 0) return true;
    return false;
}

mri_file_kind mri_file_kind_of_name(const char *name, const char **what)
{
    const char *dot = strrchr(name, '.');
    *what = NULL;
    if (is_one_of(name, clutter, MRI_ARRAY_COUNT(clutter))) return MRI_FILE_CLUTTER;
    if (!dot || strlen(dot + 1) > LONGEST_ENDING) return MRI_FILE_UNKNOWN;
    if (mri_picture_ending(dot + 1, strlen(dot + 1))) return MRI_FILE_PICTURE;
    if (is_one_of(dot + 1, others, MRI_ARRAY_COUNT(others))) return MRI_FILE_OTHER;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(undecoded); k++) {
        if (strcasecmp(dot + 1, undecoded[k].ending) != 0) continue;
        *what = undecoded[k].what;
        return MRI_FILE_UNDECODED;
    }
    return MRI_FILE_UNKNOWN;
}

static ssize_t read_head(int fd, uint8_t *head, size_t room)
{
    ssize_t n;
    do n = pread(fd, head, room, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool is_outside(const char *root, const char *where, const char *name)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", where, name);
    return mri_leads_outside(root, path);
}

static int head_on_disk(int dir, const char *where, const char *name, mri_file_kind *kind, uint8_t *head,
                        size_t *bytes, mr_error *err)
{
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t n = fd < 0 ? -1 : read_head(fd, head, *bytes);
    const int why = errno;
    if (fd >= 0) close(fd);
    if (n < 0 && (why == ENOENT || why == ELOOP)) return *kind = MRI_FILE_GONE, MR_OK;
    if (n < 0)
        return mri_folder_error(err, mri_error_denied(err, mr_error_sys(err, why, "cannot look into it")),
                                where, name);
    *bytes = (size_t)n;
    return MR_OK;
}

int mri_file_look(mri_dir dir, const char *root, const char *where, const char *name, mri_file_kind *kind,
                  const char **what, char *buf, size_t buf_bytes, mr_error *err)
{
    uint8_t head[LOOK_BYTES];
    char found[MRI_PICTURE_KIND_BYTES];
    size_t n = sizeof head;
    const int rc = dir.in ? mri_members_head(dir.in, mri_members_find(dir.in, dir.at, name), head, &n, err)
                          : head_on_disk(dir.at, where, name, kind, head, &n, err);
    if (rc || *kind == MRI_FILE_GONE) return rc;
    if (mr_image_sniff(head, n)) return *kind = MRI_FILE_PICTURE, MR_OK;
    if (!strchr(name, '.') && mri_picture_lost(head, n)) return *kind = MRI_FILE_PICTURE, MR_OK;
    if (*kind == MRI_FILE_UNDECODED) return MR_OK;
    *kind = MRI_FILE_OTHER;
    const char *text = mri_picture_kind(head, n, found);
    if (text == found && (!root || is_outside(root, where, name))) text = "not quoted";
    snprintf(buf, buf_bytes, "%.*s", (int)strcspn(text, ":"), text); /* without the advice */
    *what = buf;
    return MR_OK;
}

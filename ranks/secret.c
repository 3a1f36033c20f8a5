/* ranks/secret.c: see secret.h. */
#include "ranks/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/handle.h"
#include "base/library.h"

#define HOW "set a new one: (umask 077; openssl rand -hex 32 >FILE)"

/* ---- libcrypto ---- */

/* Of openssl/hmac.h and openssl/evp.h. Their types are opaque to us, and the functions are the same in 1.1
 * and 3. */
typedef struct crypto {
    const void *(*EVP_sha256)(void);
    unsigned char *(*HMAC)(const void *hash, const void *key, int key_bytes, const unsigned char *data,
                           size_t bytes, unsigned char *out, unsigned *out_bytes);
} crypto;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static crypto table; /* lock to write; does not change once it is filled */
static bool filled;  /* lock */

static const mri_symbol symbols[] = {{"EVP_sha256", offsetof(crypto, EVP_sha256)},
                                     {"HMAC", offsetof(crypto, HMAC)}};

static int fill(mr_error *err)
{
    static const char *const files[] = {"libcrypto.so.3", "libcrypto.so.1.1", NULL};
    const char *what;
    const int rc = mri_library_open(&table, files, symbols, MRI_ARRAY_COUNT(symbols), &what);
    if (rc == MR_ENOENT)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "a secret of the run needs OpenSSL's libcrypto, 3 or 1.1 (Debian and Ubuntu: apt "
                            "install libssl3): %s",
                            what);
    if (rc)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "libcrypto here has no %s: a secret of the run needs OpenSSL's libcrypto, 3 or 1.1", what);
    return MR_OK;
}

static int need_crypto(mr_error *err)
{
    mri_lock_global(&lock);
    const int rc = filled ? MR_OK : fill(err);
    filled = rc == MR_OK;
    pthread_mutex_unlock(&lock);
    return rc;
}

bool mri_secret_tag(const uint8_t key[MRI_KEY_BYTES], const void *data, size_t bytes,
                    uint8_t out[MRI_KEY_BYTES])
{
    unsigned made = 0;
    memset(out, 0, MRI_KEY_BYTES);
    return table.HMAC(table.EVP_sha256(), key, MRI_KEY_BYTES, data, bytes, out, &made) &&
           made == MRI_KEY_BYTES;
}

bool mri_secret_equal(const void *a, const void *b, size_t bytes)
{
    const volatile uint8_t *left = a, *right = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < bytes; i++) differ |= left[i] ^ right[i];
    return differ == 0;
}

bool mri_secret_draw(void *out, size_t bytes)
{
    ssize_t n;
    do n = getrandom(out, bytes, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

/* ---- where it comes from ---- */

/* Whoever can read the file can take part: nobody but its owner may. */
static int check_file(int fd, const char *path, mr_error *err)
{
    struct stat st;
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "MILLRACE_SECRET_FILE");
    else if (!S_ISREG(st.st_mode))
        rc = mr_error_set(err, MR_EINVAL, "MILLRACE_SECRET_FILE: expected a regular file");
    else if (st.st_uid != geteuid() && st.st_uid != 0)
        rc = mr_error_set(err, MR_EINVAL,
                          "MILLRACE_SECRET_FILE: it belongs to user %u: expected one of user %u, or root's",
                          (unsigned)st.st_uid, (unsigned)geteuid());
    else if (st.st_mode & 077)
        rc = mr_error_set(err, MR_EINVAL,
                          "MILLRACE_SECRET_FILE: others can read or write it (mode %03o): chmod 600, and "
                          "since they may have read it, " HOW,
                          (unsigned)(st.st_mode & 0777));
    if (rc) mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

static int read_file(const char *path, uint8_t *text, size_t room, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    *bytes = 0;
    if (fd < 0) {
        const int rc = mr_error_sys(err, errno, "MILLRACE_SECRET_FILE");
        mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
        return rc;
    }
    int rc = check_file(fd, path, err);
    while (rc == MR_OK && *bytes < room) {
        const ssize_t n = read(fd, text + *bytes, room - *bytes);
        if (n > 0) *bytes += (size_t)n;
        else if (n == 0) break;
        else if (errno != EINTR) {
            rc = mr_error_sys(err, errno, "MILLRACE_SECRET_FILE");
            mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
        }
    }
    close(fd);
    while (*bytes && (text[*bytes - 1] == '\n' || text[*bytes - 1] == '\r')) --*bytes;
    return rc;
}

static int take_bytes(mri_secret *out, const void *secret, size_t bytes, const char *where, mr_error *err)
{
    static const uint8_t label[MRI_KEY_BYTES] = "millrace ranks 2";
    if (bytes < MRI_SECRET_LEAST || bytes > MRI_SECRET_MOST)
        return mr_error_set(err, MR_EINVAL,
                            "%s: a secret of %zu bytes%s: expected %d to %d; 64 random digits are good: "
                            "openssl rand -hex 32",
                            where, bytes, bytes > MRI_SECRET_MOST ? " or more" : "", MRI_SECRET_LEAST,
                            MRI_SECRET_MOST);
    int rc = need_crypto(err);
    if (rc == MR_OK && !mri_secret_tag(label, secret, bytes, out->key))
        rc = mr_error_set(err, MR_EUNSUPPORTED, "libcrypto here makes no HMAC-SHA-256");
    out->set = rc == MR_OK;
    return rc;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

int mri_secret_find(mri_secret *out, const void *given, size_t bytes, mr_error *err)
{
    const char *path = variable("MILLRACE_SECRET_FILE"), *text = variable("MILLRACE_SECRET");
    uint8_t read[MRI_SECRET_MOST + 1];
    *out = (mri_secret){.set = false};
    if (given) return take_bytes(out, given, bytes, "secret", err);
    if (!path) return text ? take_bytes(out, text, strlen(text), "MILLRACE_SECRET", err) : MR_OK;
    int rc = read_file(path, read, sizeof read, &bytes, err);
    if (rc == MR_OK) {
        rc = take_bytes(out, read, bytes, "MILLRACE_SECRET_FILE", err);
        if (rc) mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    explicit_bzero(read, sizeof read);
    return rc;
}

void mri_secret_fini(mri_secret *s) { explicit_bzero(s, sizeof *s); }

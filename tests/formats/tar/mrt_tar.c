/* tests/formats/tar/mrt_tar.c: see mrt_tar.h. */
#include "tests/formats/tar/mrt_tar.h"

#include "mrt.h"

void mrt_tar_fini(mrt_tar *a)
{
    free(a->data);
    *a = (mrt_tar){0};
}

void mrt_tar_raw(mrt_tar *a, const void *data, size_t bytes)
{
    if (a->bytes + bytes > a->cap) {
        a->cap = 2 * (a->bytes + bytes);
        a->data = realloc(a->data, a->cap);
        assert_non_null(a->data);
    }
    if (bytes) memcpy(a->data + a->bytes, data, bytes);
    a->bytes += bytes;
}

void mrt_tar_pad(mrt_tar *a)
{
    static const uint8_t zeros[512];
    mrt_tar_raw(a, zeros, (512 - a->bytes % 512) % 512);
}

void mrt_tar_sum(mrt_tar *a)
{
    uint8_t *h = a->data + a->header;
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int k = 0; k < 512; k++) sum += h[k];
    char text[9];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(h + 148, text, 7);
}

void mrt_tar_header(mrt_tar *a, char type, const char *name, uint64_t size)
{
    char h[512] = {0};
    MRT_TRUE(strlen(name) <= 100);
    memcpy(h, name, strlen(name));
    memcpy(h + 100, "0000600", 8);
    memcpy(h + 108, "0001750", 8);
    memcpy(h + 116, "0001750", 8);
    snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    memcpy(h + 136, "14000000000", 12);
    h[156] = type;
    memcpy(h + 257, "ustar", 6);
    memcpy(h + 263, "00", 2);
    a->header = a->bytes;
    mrt_tar_raw(a, h, sizeof h);
    mrt_tar_sum(a);
}

void mrt_tar_file(mrt_tar *a, const char *name, const void *data, size_t bytes)
{
    mrt_tar_header(a, '0', name, bytes);
    mrt_tar_raw(a, data, bytes);
    mrt_tar_pad(a);
}

void mrt_tar_text(mrt_tar *a, const char *name, const char *text)
{
    mrt_tar_file(a, name, text, strlen(text));
}

void mrt_tar_extended(mrt_tar *a, char type, const void *data, size_t bytes)
{
    mrt_tar_header(a, type, "././@LongLink", bytes);
    mrt_tar_raw(a, data, bytes);
    mrt_tar_pad(a);
}

void mrt_tar_pax(mrt_tar *a, char type, const char *key, const char *value)
{
    char text[8192];
    const size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest;
    while ((size_t)snprintf(text, sizeof text, "%zu %s=%s\n", length, key, value) != length) length++;
    mrt_tar_extended(a, type, text, length);
}

void mrt_tar_end(mrt_tar *a)
{
    static const uint8_t zeros[1024];
    mrt_tar_raw(a, zeros, sizeof zeros);
}

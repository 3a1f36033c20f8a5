/* ranks/wire.c: see wire.h. */
#include "ranks/wire.h"

#include <stdio.h>

void mri_wire_put_head(uint8_t out[MRI_WIRE_HEAD_BYTES], mri_wire_kind kind, uint32_t bytes)
{
    mri_put_le32(out, MRI_WIRE_MAGIC);
    mri_put_le16(out + 4, MRI_WIRE_VERSION);
    mri_put_le16(out + 6, (uint16_t)kind);
    mri_put_le32(out + 8, bytes);
}

bool mri_wire_get_head(const uint8_t in[MRI_WIRE_HEAD_BYTES], mri_wire_head *out)
{
    *out = (mri_wire_head){mri_le16(in + 4), mri_le16(in + 6), mri_le32(in + 8)};
    return mri_le32(in) == MRI_WIRE_MAGIC;
}

/* The rest of a message; after one step too far it is empty, and bad stays. */
typedef struct reading {
    const uint8_t *at;
    size_t left;
    bool bad;
} reading;

static const uint8_t *get(reading *r, size_t bytes)
{
    static const uint8_t nothing[16];
    if (bytes > r->left) {
        r->bad = true;
        r->left = 0;
        return bytes <= sizeof nothing ? nothing : NULL;
    }
    const uint8_t *at = r->at;
    r->at += bytes;
    r->left -= bytes;
    return at;
}
static uint8_t get8(reading *r) { return *get(r, 1); }
static uint16_t get16(reading *r) { return mri_le16(get(r, 2)); }
static uint32_t get32(reading *r) { return mri_le32(get(r, 4)); }
static uint64_t get64(reading *r) { return mri_le64(get(r, 8)); }
static void get_key(reading *r, uint8_t key[16]) { memcpy(key, get(r, 16), 16); }

static void get_text(reading *r, char *out, size_t room)
{
    const size_t bytes = get16(r);
    const uint8_t *text = bytes < room ? get(r, bytes) : NULL;
    out[0] = '\0';
    if (!text || r->bad || memchr(text, 0, bytes)) {
        r->bad = true;
        return;
    }
    memcpy(out, text, bytes);
    out[bytes] = '\0';
}

static bool all_read(const reading *r) { return !r->bad && r->left == 0; }

static uint8_t *put16(uint8_t *at, uint16_t v)
{
    mri_put_le16(at, v);
    return at + 2;
}
static uint8_t *put32(uint8_t *at, uint32_t v)
{
    mri_put_le32(at, v);
    return at + 4;
}
static uint8_t *put64(uint8_t *at, uint64_t v)
{
    mri_put_le64(at, v);
    return at + 8;
}
static uint8_t *put_bytes(uint8_t *at, const void *data, size_t bytes)
{
    memcpy(at, data, bytes);
    return at + bytes;
}
static uint8_t *put_text(uint8_t *at, const char *text, size_t room)
{
    const size_t bytes = strnlen(text, room - 1);
    return put_bytes(put16(at, (uint16_t)bytes), text, bytes);
}

size_t mri_wire_put_hello(uint8_t *out, const mri_wire_hello *hello)
{
    uint8_t *at = put_bytes(out, hello->key, sizeof hello->key);
    at = put64(at, hello->token);
    at = put32(at, hello->rank);
    at = put32(at, hello->size);
    at = put16(at, hello->port);
    return (size_t)(put_text(at, hello->host, sizeof hello->host) - out);
}

bool mri_wire_get_hello(const void *in, size_t bytes, mri_wire_hello *out)
{
    reading r = {in, bytes, false};
    get_key(&r, out->key);
    out->token = get64(&r);
    out->rank = get32(&r);
    out->size = get32(&r);
    out->port = get16(&r);
    get_text(&r, out->host, sizeof out->host);
    return all_read(&r);
}

size_t mri_wire_put_welcome(uint8_t *out, const mri_wire_welcome *welcome)
{
    return (size_t)(put32(put_bytes(out, welcome->key, sizeof welcome->key), welcome->left_ms) - out);
}

bool mri_wire_get_welcome(const void *in, size_t bytes, mri_wire_welcome *out)
{
    reading r = {in, bytes, false};
    get_key(&r, out->key);
    out->left_ms = get32(&r);
    return all_read(&r);
}

size_t mri_wire_put_reason(uint8_t *out, int code, const char *text)
{
    return (size_t)(put_text(put32(out, (uint32_t)-code), text, MRI_WIRE_TEXT_BYTES) - out);
}

bool mri_wire_get_reason(const void *in, size_t bytes, int *code, char text[MRI_WIRE_TEXT_BYTES])
{
    reading r = {in, bytes, false};
    const uint32_t number = get32(&r);
    *code = number >= 1 && number <= (uint32_t)-MR_EPEER ? -(int)number : MR_EIO;
    get_text(&r, text, MRI_WIRE_TEXT_BYTES);
    return all_read(&r);
}

static uint8_t *put_seat(uint8_t *at, const mri_wire_seat *seat)
{
    *at++ = seat->family;
    at = put_bytes(at, seat->address, sizeof seat->address);
    return put_text(put16(at, seat->port), seat->host, sizeof seat->host);
}

static bool get_seat(reading *r, mri_wire_seat *out)
{
    out->family = get8(r);
    get_key(r, out->address);
    out->port = get16(r);
    get_text(r, out->host, sizeof out->host);
    return !r->bad && (out->family == 4 || out->family == 6) && out->port != 0;
}

size_t mri_wire_put_roster(uint8_t *out, const uint8_t nonce[MRI_WIRE_KEY_BYTES], const mri_wire_seat *seats,
                           uint32_t size)
{
    uint8_t *at = put32(put_bytes(out, nonce, MRI_WIRE_KEY_BYTES), size);
    for (uint32_t i = 0; i < size; i++) at = put_seat(at, &seats[i]);
    return (size_t)(at - out);
}

bool mri_wire_get_roster(const void *in, size_t bytes, uint8_t nonce[MRI_WIRE_KEY_BYTES],
                         mri_wire_seat *seats, uint32_t size)
{
    reading r = {in, bytes, false};
    get_key(&r, nonce);
    bool ok = get32(&r) == size;
    for (uint32_t i = 0; ok && i < size; i++) ok = get_seat(&r, &seats[i]);
    return ok && all_read(&r);
}

bool mri_wire_seat_from(mri_wire_seat *out, const struct sockaddr *from)
{
    memset(out->address, 0, sizeof out->address);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        out->family = 4;
        out->port = ntohs(v4->sin_port);
        memcpy(out->address, &v4->sin_addr, 4);
        return true;
    }
    if (from->sa_family != AF_INET6) return false;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    out->port = ntohs(v6->sin6_port);
    out->family = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? 4 : 6;
    if (out->family == 4) memcpy(out->address, v6->sin6_addr.s6_addr + 12, 4);
    else memcpy(out->address, &v6->sin6_addr, 16);
    return true;
}

socklen_t mri_wire_seat_to(const mri_wire_seat *seat, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (seat->family == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(seat->port);
        memcpy(&v4->sin_addr, seat->address, 4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(seat->port);
    memcpy(&v6->sin6_addr, seat->address, 16);
    return sizeof *v6;
}

bool mri_wire_seat_is_loopback(const mri_wire_seat *seat)
{
    static const uint8_t one[16] = {[15] = 1};
    return seat->family == 4 ? seat->address[0] == 127 : memcmp(seat->address, one, sizeof one) == 0;
}

size_t mri_wire_put_join(uint8_t *out, const mri_wire_join *join)
{
    uint8_t *at = put_bytes(out, join->nonce, sizeof join->nonce);
    return (size_t)(put32(put32(put32(at, join->from), join->to), join->lane) - out);
}

bool mri_wire_get_join(const void *in, size_t bytes, uint32_t size, uint32_t lanes, mri_wire_join *out)
{
    reading r = {in, bytes, false};
    get_key(&r, out->nonce);
    out->from = get32(&r);
    out->to = get32(&r);
    out->lane = get32(&r);
    return all_read(&r) && out->from < size && out->to < size && out->lane < lanes;
}

size_t mri_wire_put_blame(uint8_t *out, const mri_blame *blame)
{
    uint8_t *at = put32(put32(put32(out, blame->rank), (uint32_t)blame->how), (uint32_t)blame->cause);
    return (size_t)(put_text(at, blame->text, sizeof blame->text) - out);
}

bool mri_wire_get_blame(const void *in, size_t bytes, uint32_t size, mri_blame *out)
{
    reading r = {in, bytes, false};
    out->rank = get32(&r);
    const uint32_t how = get32(&r);
    out->how = (mri_blame_how)how;
    out->cause = (int)get32(&r);
    get_text(&r, out->text, sizeof out->text);
    return all_read(&r) && out->rank < size && how >= MRI_BLAME_GAVE_UP && how <= MRI_BLAME_LEFT;
}

size_t mri_wire_put_muster(uint8_t *out, const mri_wire_muster *muster)
{
    uint8_t *at = put_bytes(out, muster->key, sizeof muster->key);
    at = put_bytes(put64(at, muster->token), muster->run, sizeof muster->run);
    at = put16(put32(put64(at, muster->progress), muster->expected), muster->port);
    return (size_t)(put_text(at, muster->host, sizeof muster->host) - out);
}

bool mri_wire_get_muster(const void *in, size_t bytes, mri_wire_muster *out)
{
    reading r = {in, bytes, false};
    get_key(&r, out->key);
    out->token = get64(&r);
    get_key(&r, out->run);
    out->progress = get64(&r);
    out->expected = get32(&r);
    out->port = get16(&r);
    get_text(&r, out->host, sizeof out->host);
    return all_read(&r) && out->port != 0;
}

size_t mri_wire_put_mustered(uint8_t *out, const mri_wire_mustered *mustered)
{
    uint8_t *at = put_bytes(out, mustered->nonce, sizeof mustered->nonce);
    at = put_bytes(at, mustered->run, sizeof mustered->run);
    at = put64(put32(put32(at, mustered->rank), mustered->size), mustered->progress);
    for (uint32_t i = 0; i < mustered->size; i++)
        at = put64(put_seat(at, &mustered->seats[i]), mustered->tokens[i]);
    return (size_t)(at - out);
}

bool mri_wire_get_mustered(const void *in, size_t bytes, mri_wire_mustered *out)
{
    reading r = {in, bytes, false};
    get_key(&r, out->nonce);
    get_key(&r, out->run);
    out->rank = get32(&r);
    out->size = get32(&r);
    out->progress = get64(&r);
    bool ok = !r.bad && out->size >= 1 && out->size <= MRI_WIRE_MUSTER_MOST && out->rank < out->size;
    for (uint32_t i = 0; ok && i < out->size; i++) {
        ok = get_seat(&r, &out->seats[i]);
        out->tokens[i] = get64(&r);
    }
    return ok && all_read(&r);
}

/* The line at `at`, and where it ends; NULL after the last. */
static const char *line_at(const char *text, size_t bytes, size_t at, size_t *line_bytes)
{
    if (at >= bytes) return NULL;
    const char *end = memchr(text + at, '\n', bytes - at);
    *line_bytes = end ? (size_t)(end - text) - at : bytes - at;
    return text + at;
}

/* The part of a long line around `different`. */
static void show_line(char out[80], const char *line, size_t bytes, size_t different)
{
    enum { MOST = 64, BEFORE = 24 };
    if (!line) {
        snprintf(out, 80, "nothing");
        return;
    }
    const size_t from = bytes > MOST && different > BEFORE ? different - BEFORE : 0;
    const size_t shown = (size_t)mri_min_u64(bytes - from, MOST);
    char copy[MOST + 1];
    for (size_t i = 0; i < shown; i++) copy[i] = line[from + i] ? line[from + i] : '?';
    copy[shown] = '\0';
    snprintf(out, 80, "'%s%s%s'", from ? "..." : "", copy, from + shown < bytes ? "..." : "");
}

bool mri_wire_cards_differ(const void *a, size_t a_bytes, const void *b, size_t b_bytes, char a_line[80],
                           char b_line[80])
{
    const size_t shared = (size_t)mri_min_u64(a_bytes, b_bytes);
    const char *a_text = a, *b_text = b;
    size_t same = 0, start = 0;
    while (same < shared && a_text[same] == b_text[same])
        if (a_text[same++] == '\n') start = same;
    if (same == a_bytes && same == b_bytes) return false;
    size_t a_part = 0, b_part = 0;
    const char *in_a = line_at(a_text, a_bytes, start, &a_part);
    const char *in_b = line_at(b_text, b_bytes, start, &b_part);
    show_line(a_line, in_a, a_part, same - start);
    show_line(b_line, in_b, b_part, same - start);
    if (strcmp(a_line, b_line) == 0) { /* the end of a line, or what cannot be shown */
        snprintf(a_line, 80, "%zu bytes", a_bytes);
        snprintf(b_line, 80, "%zu bytes, other ones", b_bytes);
    }
    return true;
}

/* tests/fuzz/fuzz_net.c: hostile bytes of a network, as a checkpoint has them. Input: two bytes whether they
 * are changes to a sound one (u16 place, one byte count, the bytes, again and again) or all of it. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "train/net/code.h"

enum { MOST = 64 + 256 * 64, DECLARED = 4096 };

/* One with branches, a field and losses of its own. */
static size_t sound(uint8_t *p)
{
    mr_net *net;
    void *bytes;
    size_t count;
    if (mr_net_create(&net, "fuzz", 8, 8, 3) != MR_OK) abort();
    mr_net_conv2d(net, 4, 3, 2, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_NONE);
    const mr_point in = mr_net_here(net);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_add(net, in, MR_ACT_RELU);
    mr_net_global_avg_pool(net);
    const mr_point seen = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "kind", .w = 3, .values = 4});
    mr_net_gru(net, 4, false);
    mr_net_concat(net, &seen, 1);
    mr_net_dense(net, 3, MR_ACT_NONE);
    mr_net_loss_labels(net, 1);
    if (mr_net_encode(net, &bytes, &count, NULL) != MR_OK || count > MOST) abort();
    memcpy(p, bytes, count);
    free(bytes);
    mr_net_destroy(net);
    return count;
}

static size_t change(uint8_t *p, size_t size, const uint8_t *data, size_t bytes)
{
    while (bytes >= 3) {
        size_t at = (data[0] | (size_t)data[1] << 8) % MOST, n = data[2];
        data += 3;
        bytes -= 3;
        if (n > bytes) n = bytes;
        if (at > size) at = size;
        if (n > MOST - at) n = MOST - at;
        memcpy(p + at, data, n);
        if (at + n > size) size = at + n;
        data += n;
        bytes -= n;
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t code[MOST];
    if (bytes < 1) return 0;
    const bool whole = data[0] & 1;
    size_t size = whole ? bytes - 1 : change(code, sound(code), data + 1, bytes - 1);
    if (size > MOST) size = MOST;
    if (whole) memcpy(code, data + 1, size);
    mrt_fuzz_begin(size + 1, DECLARED + sizeof(mr_net));
    mr_net *net;
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_net_decode(&net, "fuzz", code, size, &err);
    if ((rc == MR_OK) != (net != NULL) || (rc && !err.text[0]) || (rc && bytes == 1 && !whole)) abort();
    if (net) {
        void *again;
        size_t count;
        if (mr_net_encode(net, &again, &count, &err) != MR_OK || count != size ||
            memcmp(again, code, size) != 0)
            abort();
        (void)mr_net_check(net, &err);
        free(again);
    }
    mr_net_destroy(net);
    mrt_fuzz_end();
    return 0;
}

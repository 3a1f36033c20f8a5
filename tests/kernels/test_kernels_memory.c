/* A device's memory account when several threads ask at once: the limit holds, and all of it can be used. */
#include <pthread.h>

#include "kernels/host/host.h"
#include "mrt.h"

enum { THREADS = 8 };

/* No block is taken from the system before each thread has reserved its bytes in the account, or was
 * refused. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t all;
    int decided, expected; /* lock; expected 0: nobody waits */
    bool none;             /* fixed while threads run: the system has no memory */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER};

static void decided(bool wait)
{
    pthread_mutex_lock(&gate.lock);
    gate.decided++;
    pthread_cond_broadcast(&gate.all);
    while (wait && gate.decided < gate.expected) pthread_cond_wait(&gate.all, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

void *__real_mri_alloc_aligned(size_t align, size_t bytes);
void *__wrap_mri_alloc_aligned(size_t align, size_t bytes);
void *__wrap_mri_alloc_aligned(size_t align, size_t bytes)
{
    if (gate.expected) decided(true);
    return gate.none ? NULL : __real_mri_alloc_aligned(align, bytes);
}

typedef struct asking {
    mr_device *device;
    size_t bytes;
    void *block;
    int rc;
} asking;

static void *ask(void *arg)
{
    asking *a = arg;
    mr_error err = MR_ERROR_INIT;
    a->rc = mr_device_alloc(a->device, a->bytes, &a->block, &err);
    if (a->rc != MR_OK && !gate.none) decided(false);
    return NULL;
}

/* Each asks for so much; how many got it. */
static int ask_at_once(mr_device *device, size_t bytes, asking a[THREADS])
{
    pthread_t thread[THREADS];
    int got = 0;
    gate.decided = 0;
    gate.expected = THREADS;
    for (int t = 0; t < THREADS; t++) {
        a[t] = (asking){.device = device, .bytes = bytes};
        MRT_EQ(pthread_create(&thread[t], NULL, ask, &a[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        MRT_EQ(pthread_join(thread[t], NULL), 0);
        MRT_TRUE(a[t].rc == MR_OK || a[t].rc == MR_ENOMEM);
        got += a[t].rc == MR_OK;
    }
    gate.expected = 0;
    return got;
}

static void give_back(asking a[THREADS])
{
    for (int t = 0; t < THREADS; t++)
        if (a[t].rc == MR_OK) mr_device_free(a[t].device, a[t].block);
}

static void the_limit_holds_for_all_together(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    asking a[THREADS];
    MRT_OK(mr_devices_open(&devices, &count, "cpu", NULL, &err), &err);
    mri_host_device *dev = mri_host_device_of(devices[0]);
    const size_t bytes = 1000;
    for (int room = 0; room <= THREADS; room++) {
        dev->memory_limit_bytes = (uint64_t)room * bytes + bytes - 1;
        MRT_EQ(ask_at_once(devices[0], bytes, a), room);
        MRT_EQ(dev->used_bytes, (size_t)room * bytes);
        give_back(a);
        MRT_EQ(dev->used_bytes, 0);
    }
    gate.none = true; /* an allocation that the system refuses is given back to the account */
    MRT_EQ(ask_at_once(devices[0], bytes, a), 0);
    gate.none = false;
    MRT_EQ(dev->used_bytes, 0);
    MRT_EQ(ask_at_once(devices[0], SIZE_MAX, a), 0);
    MRT_EQ(dev->used_bytes, 0);
    mr_devices_close(devices, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_holds_for_all_together),
    };
    return mrt_run(tests);
}

/* tests/cuda_emu/test_emu_place.c: see test_emu_place.h. */
#include "tests/cuda_emu/test_emu_place.h"

struct place places[PLACES];

int places_open(void **state)
{
    (void)state;
    EMUT_MUST(cuInit(0));
    for (int i = 0; i < PLACES; i++) {
        CUdevice dev;
        EMUT_MUST(cuDeviceGet(&dev, i));
        EMUT_MUST(cuDevicePrimaryCtxRetain(&places[i].context, dev));
        place_use(i);
        const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i}};
        EMUT_MUST(cuMemPoolCreate(&places[i].pool, &props));
        EMUT_MUST(cuStreamCreateWithPriority(&places[i].stream, CU_STREAM_NON_BLOCKING, 0));
    }
    place_use(0);
    return 0;
}

int places_close(void **state)
{
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        place_use(i);
        EMUT_MUST(cuStreamDestroy(places[i].stream));
        EMUT_MUST(cuMemPoolDestroy(places[i].pool));
        EMUT_MUST(cuDevicePrimaryCtxRelease(i));
    }
    return 0;
}

void place_use(int device) { EMUT_MUST(cuCtxSetCurrent(places[device].context)); }

void place_sync(int device)
{
    const int before = emu_current_device();
    place_use(device);
    EMUT_MUST(cuStreamSynchronize(places[device].stream));
    if (before >= 0) place_use(before);
}

void *place_alloc(int device, size_t bytes)
{
    const int before = emu_current_device();
    CUdeviceptr at;
    place_use(device);
    EMUT_MUST(cuMemAllocFromPoolAsync(&at, bytes, places[device].pool, places[device].stream));
    EMUT_MUST(cuStreamSynchronize(places[device].stream));
    if (before >= 0) place_use(before);
    return (void *)(uintptr_t)at;
}

void place_free(int device, void *at)
{
    const int before = emu_current_device();
    place_use(device);
    EMUT_MUST(cuMemFreeAsync((CUdeviceptr)(uintptr_t)at, places[device].stream));
    EMUT_MUST(cuStreamSynchronize(places[device].stream));
    if (before >= 0) place_use(before);
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

float test_number(uint64_t *seed) { return ((float)(next(seed) % 65536) - 32768) / 32768; }
size_t test_up_to(uint64_t *seed, size_t most) { return 1 + next(seed) % most; }

void test_fill(enum emu_type type, void *at, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) emu_store(type, at, (int64_t)i, test_number(seed));
}

double test_tolerance(enum emu_type stored)
{
    return stored == EMU_F32 ? 2e-6 : stored == EMU_F16 ? 6e-4 : 5e-3;
}

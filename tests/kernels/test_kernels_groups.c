/* kernels: groups of devices: sums in the order of a tree, broadcasts, a stream that fails or never comes, a
 * group that is given up. */
#include <semaphore.h>

#include "tests/kernels/crowd.h"

/* The sum of v[first] ... v[first + n - 1] at one place: the first 2^k of them, and the rest. */
static float tree_sum(float *const *v, uint32_t first, uint32_t n, uint64_t at)
{
    uint32_t half = 1;
    if (n == 1) return v[first][at];
    while (2 * half < n) half *= 2;
    return tree_sum(v, first, half, at) + tree_sum(v, first + half, n - half, at);
}

static void groups_add_in_the_order_of_the_tree(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 5, 7};
    static const uint64_t counts[] = {1, 6, 300007};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sizes); k++)
        for (size_t q = 0; q < MRI_ARRAY_COUNT(counts); q++) {
            struct crowd c;
            mr_error err = MR_ERROR_INIT;
            const uint64_t count = counts[q];
            float *values[CROWD_MOST], *copies[CROWD_MOST], *expected = calloc(count, 4);
            crowd_open(&c, "cpu", sizes[k]);
            for (uint32_t d = 0; d < c.count; d++) {
                values[d] = calloc(count, 4);
                copies[d] = calloc(count, 4);
                rig_noise(values[d], count, d + 1);
            }
            for (uint64_t i = 0; i < count; i++) expected[i] = tree_sum(values, 0, c.count, i);
            MRT_OK(mr_group_sum_async(c.group, values, count), NULL);
            for (uint32_t d = 0; d < c.count; d++) /* what follows on a stream sees the whole sum, the others'
                                                      slices too */
                MRT_OK(mr_copy_d2d_async(c.streams[d], copies[d], values[d], count * 4), NULL);
            for (uint32_t d = 0; d < c.count; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
            for (uint32_t d = 0; d < c.count; d++) {
                MRT_TRUE(memcmp(values[d], expected, count * 4) == 0);
                MRT_TRUE(memcmp(copies[d], expected, count * 4) == 0);
                free(copies[d]);
            }
            rig_noise(values[c.count - 1], count, 77);
            for (int i = 0; i < 50; i++)
                MRT_OK(mr_group_broadcast_async(c.group, values, count, c.count - 1), NULL);
            for (uint32_t d = 0; d < c.count; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
            for (uint32_t d = 0; d < c.count; d++) {
                MRT_TRUE(memcmp(values[d], values[c.count - 1], count * 4) == 0);
                if (d + 1 < c.count) free(values[d]);
            }
            free(values[c.count - 1]);
            free(expected);
            crowd_close(&c);
        }
}

static int run_fail(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)args;
    return mr_error_set(err, MR_EIO, "this task fails");
}

/* One stream has failed: no stream hangs, every one reports the error. */
static void groups_survive_a_failed_stream(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 3; victim++) {
        struct crowd c;
        mr_error err = MR_ERROR_INIT;
        float buffers[3][4] = {{0}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
        crowd_open(&c, "cpu", 3);
        MRT_OK(mr_group_sum_async(c.group, values, 4), NULL);
        MRT_OK(mri_host_push((mri_host_stream *)c.streams[victim], run_fail, "", 1, 0, NULL), NULL);
        for (int i = 0; i < 20; i++) mr_group_sum_async(c.group, values, 4);
        for (uint32_t d = 0; d < 3; d++) MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EIO);
        crowd_close(&c);
    }
}

static int run_until_posted(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    sem_t *go;
    memcpy(&go, args, sizeof go);
    while (sem_wait(go) != 0) {
    }
    return MR_OK;
}

/* One stream never comes: the others wait until the group is given up; then everything ends with an error,
 * the late one too. */
static void groups_can_be_given_up(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 3; victim++) {
        struct crowd c;
        mr_error err = MR_ERROR_INIT;
        mr_event *end[3];
        sem_t go, *address = &go;
        float buffers[3][4] = {{1}, {2}, {3}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
        sem_init(&go, 0, 0);
        crowd_open(&c, "cpu", 3);
        MRT_OK(mr_group_sum_async(c.group, values, 4), NULL); /* one that works */
        for (uint32_t d = 0; d < 3; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
        MRT_TRUE(values[0][0] == 6 && values[2][0] == 6);
        MRT_OK(mri_host_push((mri_host_stream *)c.streams[victim], run_until_posted, &address, sizeof address,
                             0, NULL),
               NULL);
        for (int i = 0; i < 3; i++) MRT_OK(mr_group_sum_async(c.group, values, 4), NULL);
        for (uint32_t d = 0; d < 3; d++) {
            MRT_OK(mr_event_create(&end[d], c.devices[d], &err), &err);
            MRT_OK(mr_event_record(end[d], c.streams[d]), NULL);
            MRT_EQ(mr_event_wait(end[d], d == victim ? 0 : 3000000, &err), MR_EAGAIN);
        }
        mr_group_abort(c.group);
        mr_group_abort(c.group);
        for (uint32_t d = 0; d < 3; d++)
            if (d != victim) MRT_EQ(mr_event_sync(end[d], &err), MR_EDEVICE);
        MRT_EQ(mr_event_query(end[victim]), MR_EAGAIN);
        sem_post(&go);
        for (uint32_t d = 0; d < 3; d++) {
            MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EDEVICE);
            MRT_HAS(err.text, "group of 3");
            MRT_EQ(mr_fill_async(c.streams[d], values[d], 0, 4), MR_EDEVICE); /* later work ends too */
            mr_event_destroy(end[d]);
        }
        crowd_close(&c);
        sem_destroy(&go);
    }
}

/* Given up with nothing queued: later work says so. */
static void idle_groups_can_be_given_up(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    float buffers[2][2] = {{0}}, *values[2] = {buffers[0], buffers[1]};
    crowd_open(&c, "cpu", 2);
    mr_group_abort(c.group);
    mr_group_abort(NULL);
    mr_group_sum_async(c.group, values, 2);
    for (uint32_t d = 0; d < 2; d++) {
        MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EDEVICE);
        MRT_HAS(err.text, "group of 2");
    }
    crowd_close(&c);
}

static void groups_are_checked(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    mr_group *g = (mr_group *)&err;
    crowd_open(&c, "cpu", 2);
    mr_stream *twice[2] = {c.streams[0], c.streams[0]};
    MRT_EQ(mr_group_create(&g, twice, 2, &err), MR_EINVAL);
    MRT_TRUE(g == NULL);
    MRT_EQ(mr_group_create(&g, twice, 0, &err), MR_EINVAL);
    float v = 0, *values[2] = {&v, NULL};
    MRT_EQ(mr_group_sum_async(c.group, values, 1), MR_EINVAL);
    values[1] = &v;
    MRT_EQ(mr_group_broadcast_async(c.group, values, 1, 2), MR_EINVAL);
    mr_group_destroy(NULL);
    crowd_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_add_in_the_order_of_the_tree),
        cmocka_unit_test(groups_survive_a_failed_stream),
        cmocka_unit_test(groups_can_be_given_up),
        cmocka_unit_test(idle_groups_can_be_given_up),
        cmocka_unit_test(groups_are_checked),
    };
    return mrt_run(tests);
}

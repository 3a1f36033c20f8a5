/* kernels: every kind of operation has its row on every device that shall have it, and a plain C reference.
 */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"
#include "kernels/ops/op_table.h"
#include "mrt.h"
#ifdef MRT_CUDA
#include "kernels/cuda/ops/cuda_op.h"
#endif

static void every_kind_is_told_apart(void **state)
{
    (void)state;
    for (int kind = 0; kind < MR_OP_KIND_COUNT; kind++) {
        const struct mri_op_class *is = mri_op_class_of((mr_op_kind)kind);
        MRT_TRUE(is != NULL && is->name != NULL);
        for (int other = 0; other < kind; other++)
            MRT_TRUE(strcmp(is->name, mri_op_class_of((mr_op_kind)other)->name) != 0);
    }
    MRT_TRUE(mri_op_class_of((mr_op_kind)MR_OP_KIND_COUNT) == NULL);
    MRT_TRUE(mri_op_class_of((mr_op_kind)-1) == NULL);
}

static void every_kind_has_a_reference(void **state)
{
    (void)state;
    for (int kind = 0; kind < MR_OP_KIND_COUNT; kind++) {
        const struct mri_op_class *is = mri_op_class_of((mr_op_kind)kind);
        MRT_TRUE(is->reference != NULL && is->reference->forward != NULL);
        MRT_EQ(is->entry, is->reference->backward == NULL);
    }
}

/* The rows that devices of the host choose: cpu, with and without the reference, and sim. */
static void every_host_device_has_rows(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        bool reference;
    } devices[] = {{"cpu", false}, {"cpu", true}, {"sim", false}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(devices); i++) {
        mr_devices_config cfg;
        mr_device **opened;
        uint32_t count;
        mr_error err = MR_ERROR_INIT;
        mr_devices_defaults(&cfg);
        cfg.reference = devices[i].reference;
        MRT_OK(mr_devices_open(&opened, &count, devices[i].spec, &cfg, &err), &err);
        for (int kind = 0; kind < MR_OP_KIND_COUNT; kind++) {
            mr_op head = {.device = opened[0], .is = mri_op_class_of((mr_op_kind)kind)};
            head.desc.kind = (mr_op_kind)kind;
            const struct mri_op_code *code = mri_host_device_of(opened[0])->code_for(&head);
            MRT_TRUE(code != NULL && code->forward != NULL);
            MRT_TRUE(head.is->entry || code->backward != NULL);
            MRT_TRUE(!cfg.reference || code == head.is->reference);
        }
        mr_devices_close(opened, count);
    }
}

static void every_kind_on_cuda_has_a_row(void **state)
{
    (void)state;
#ifdef MRT_CUDA
#define ON_CUDA                          true
#define NOT_ON_CUDA                      false
#define EXPECTED(kind_, name_, on_cuda_) {MR_OP_##kind_, on_cuda_},
    static const struct {
        mr_op_kind kind;
        bool on_cuda;
    } expected[] = {MRI_OP_CLASSES(EXPECTED)};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(expected); i++) {
        const struct mri_cuda_code *code = mri_cuda_code_of(expected[i].kind);
        MRT_EQ(code != NULL, expected[i].on_cuda);
        if (!code) continue;
        MRT_TRUE(code->forward != NULL && code->forward_text != NULL);
        MRT_EQ(mri_op_class_of(expected[i].kind)->entry, code->backward == NULL);
        MRT_EQ(code->backward == NULL, code->backward_text == NULL);
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_told_apart),
        cmocka_unit_test(every_kind_has_a_reference),
        cmocka_unit_test(every_host_device_has_rows),
        cmocka_unit_test(every_kind_on_cuda_has_a_row),
    };
    return mrt_run(tests);
}

/* kernels/cuda/plan/plan_table.c: which algorithm was chosen for which convolution, remembered for the
 * process.
 *
 * The key is the GPU's model, cuDNN's version and every number of the pass, so the second replica and the
 * next layer of the same shape take the first one's choice. A choice is an engine's number and its knobs:
 * another handle, on another GPU of the same model, can build the same plan from it. Entries are few (one per
 * distinct layer and pass), so a list under one lock does. */
#include "kernels/cuda/plan/plan.h"

struct entry {
    struct entry *next;
    char gpu[128];
    size_t version;
    struct mri_cuda_conv conv;
    struct mri_cuda_choice choice;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table; /* table_lock; never freed: it is for the whole process */

static struct entry **place_locked(const char *gpu, size_t version, const struct mri_cuda_conv *conv)
{
    struct entry **at = &table;
    while (*at && !((*at)->version == version && !memcmp(&(*at)->conv, conv, sizeof *conv) &&
                    !strcmp((*at)->gpu, gpu)))
        at = &(*at)->next;
    return at;
}

bool mri_cuda_choice_find(const mri_cuda_device *dev, const struct mri_cuda_conv *conv, bool measured,
                          struct mri_cuda_choice *out)
{
    const size_t version = dev->api->cudnnGetVersion();
    pthread_mutex_lock(&table_lock);
    const struct entry *e = *place_locked(dev->base.hardware, version, conv);
    const bool found = e && (!measured || e->choice.milliseconds > 0);
    if (found) *out = e->choice;
    pthread_mutex_unlock(&table_lock);
    return found;
}

bool mri_cuda_choice_keep(const mri_cuda_device *dev, const struct mri_cuda_conv *conv,
                          struct mri_cuda_choice *choice)
{
    const size_t version = dev->api->cudnnGetVersion();
    bool first = true;
    pthread_mutex_lock(&table_lock);
    struct entry **at = place_locked(dev->base.hardware, version, conv);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (*at) {
            memcpy((*at)->gpu, dev->base.hardware, sizeof(*at)->gpu);
            (*at)->version = version;
            (*at)->conv = *conv;
            (*at)->choice = *choice;
        }
    } else if (choice->milliseconds > 0 && !((*at)->choice.milliseconds > 0)) {
        (*at)->choice = *choice; /* measured is better than guessed */
    } else {
        *choice = (*at)->choice;
        first = false;
    }
    pthread_mutex_unlock(&table_lock);
    return first;
}

void mri_cuda_choice_forget(const mri_cuda_device *dev, const struct mri_cuda_conv *conv)
{
    const size_t version = dev->api->cudnnGetVersion();
    pthread_mutex_lock(&table_lock);
    struct entry **at = place_locked(dev->base.hardware, version, conv), *e = *at;
    if (e) *at = e->next;
    pthread_mutex_unlock(&table_lock);
    free(e);
}

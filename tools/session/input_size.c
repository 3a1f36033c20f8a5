/* tools/session/input_size.c: see session.h. */
#include "tools/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

enum { LOOKED_AT = 32 };

typedef struct picture_size {
    uint64_t sample;
    uint32_t width, height;
} picture_size;

/* Of a picture as it will be delivered; false where it is a bad sample, which is for the loader to say. */
static bool read_size(const mr_source *src, const data_args *data, void **buffer, size_t *bytes,
                      picture_size *out)
{
    mr_sample sample;
    mr_image_header h;
    const mr_source_info *info = mr_source_info_of(src);
    if (mr_source_read(src, out->sample, buffer, bytes, &sample, NULL) != MR_OK ||
        mr_value_header(&sample.value[info->image_field], &h, NULL) != MR_OK)
        return false;
    if ((uint64_t)h.width * h.height > data->max_pixels) return false;
    const bool turned = !data->ignore_exif && h.orientation >= 5;
    out->width = turned ? h.height : h.width;
    out->height = turned ? h.width : h.height;
    return true;
}

/* The first picture and the first one that differs from it, of LOOKED_AT spread over the data; false: all
 * that can be read are of the first one's size (0 x 0: none can). */
static bool find_two(const mr_source *src, const data_args *data, picture_size two[2])
{
    const uint64_t count = mr_source_info_of(src)->count, step = count > LOOKED_AT ? count / LOOKED_AT : 1;
    void *buffer = NULL;
    size_t bytes = 0;
    bool differ = false;
    two[0] = (picture_size){0};
    for (uint64_t i = 0; i < count && i / step < LOOKED_AT && !differ; i += step) {
        two[1] = (picture_size){.sample = i};
        if (!read_size(src, data, &buffer, &bytes, &two[1])) continue;
        if (!two[0].width) two[0] = two[1];
        differ = two[1].width != two[0].width || two[1].height != two[0].height;
    }
    free(buffer);
    return differ;
}

/* Does it make every picture the same size? */
static bool fixes_size(const char *augment)
{
    mr_augment *a;
    uint32_t h, w;
    if (mr_augment_create(&a, augment, true, NULL) != MR_OK) return true; /* the loader refuses it */
    const bool fixes = mr_augment_output(a, 0, 0, &h, &w, NULL) == MR_OK;
    mr_augment_destroy(a);
    return fixes;
}

static int refuse(const tool_session *s, const picture_size two[2], const char *augment)
{
    say("%s: pictures differ in size (sample %" PRIu64 " is %u x %u, sample %" PRIu64
        " is %u x %u), and --augment %s leaves them so; begin it with resize(%ux%u)",
        mr_source_info_of(s->src)->path, two[0].sample, two[0].width, two[0].height, two[1].sample,
        two[1].width, two[1].height, augment, s->model->w ? s->model->w : 224,
        s->model->h ? s->model->h : 224);
    return EXIT_FAILED;
}

/* Nothing is known of what cannot be read. */
static bool is_natural(const tool_session *s, const picture_size *p)
{
    return p->width == 0 || (p->width == s->model->w && p->height == s->model->h);
}

int input_size_choose(tool_session *s, const session_args *a, bool asked, run_args *run)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    const char *augment = run->augment ? run->augment : "none";
    picture_size two[2];
    if (s->model->numbers || info->image_field < 0 || (info->height && info->width) || fixes_size(augment))
        return EXIT_DONE;
    const bool differ = find_two(s->src, &a->data_opts, two);
    if (asked || !s->model->h || !s->model->w) return differ ? refuse(s, two, augment) : EXIT_DONE;
    const bool none = strcmp(augment, "none") == 0;
    snprintf(s->augment, sizeof s->augment, "resize(%ux%u)%s%s", s->model->h, s->model->w, none ? "" : ",",
             none ? "" : augment);
    run->augment = s->augment;
    const picture_size *other = is_natural(s, &two[0]) ? &two[1] : &two[0];
    if (differ || !is_natural(s, &two[0]))
        say("%s: pictures are resized to %u x %u, the input of %s (sample %" PRIu64 " is %u x %u); --augment "
            "chooses otherwise",
            info->path, s->model->w, s->model->h, s->model->name, other->sample, other->width, other->height);
    return EXIT_DONE;
}

/* augment: the language: texts in full, presets, modes, sizes, and errors that name the part and its
 * place. */
#include <math.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/exponent.h"
#include "pipeline/augment/op.h"

static bool same_op(const mri_op *a, const mri_op *b)
{
    return a->type == b->type && a->index == b->index && a->height == b->height && a->width == b->width &&
           a->shorter == b->shorter && a->takes_boxes == b->takes_boxes &&
           memcmp(a->args, b->args, sizeof a->args) == 0;
}

static void text_is(const char *spec, const char *expected)
{
    for (int training = 0; training < 2; training++) {
        mr_augment *a;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create(&a, spec, training, &err), &err);
        MRT_STR(mr_augment_text(a), expected);
        mr_augment *again; /* and the text means itself */
        MRT_OK(mr_augment_create(&again, mr_augment_text(a), training, &err), &err);
        MRT_STR(mr_augment_text(again), expected);
        MRT_EQ(again->op_count, a->op_count);
        for (uint32_t k = 0; k < a->op_count; k++) MRT_TRUE(same_op(&again->op[k], &a->op[k]));
        mr_augment_destroy(again);
        mr_augment_destroy(a);
    }
}

static void texts_are_spelled_out(void **state)
{
    (void)state;
    text_is("none", "none");
    text_is("rrc(32,filter=bicubic)", "rrc(32,scale=0.08:1,ratio=3/4:4/3,filter=bicubic)");
    text_is("rrc(32,filter=bilinear)", "rrc(32,scale=0.08:1,ratio=3/4:4/3)");
    text_is("rrc(8,covers=.10)", "rrc(8,scale=0.08:1,ratio=3/4:4/3,covers=0.1)");
    text_is("rrc(8,covers=1/3,filter=bicubic,scale=1:1),flip",
            "rrc(8,scale=1:1,ratio=3/4:4/3,filter=bicubic,covers=1/3),flip");
    text_is("rrc(8,covers=1)", "rrc(8,scale=0.08:1,ratio=3/4:4/3,covers=1)");
    text_is("resize(40,filter=bicubic)", "resize(40,filter=bicubic)");
    text_is("rrc224", "rrc(224,scale=0.08:1,ratio=3/4:4/3),flip,normalise(imagenet)");
    text_is("center224", "resize(256),center(224),normalise(imagenet)");
    text_is("cifar", "padcrop(4),flip");
    text_is("padcrop(4,border=mirror),padcrop( 2 , 9x8 , border=mirror )",
            "padcrop(4,border=mirror),padcrop(2,9x8,border=mirror)");
    text_is("cifar,normalise(none)", "padcrop(4),flip,normalise(none)");
    text_is(" rrc( 8 , ratio=1:2.50 ) , flip ", "rrc(8,scale=0.08:1,ratio=1:2.5),flip");
    text_is("resize(10x20),center(7x8),padcrop(2,5),padcrop(1,5x4)",
            "resize(10x20),center(7x8),padcrop(2,5),padcrop(1,5x4)");
    text_is("shift(0.1)", "shift(0.1,0.1)");
    text_is("brightness(63),contrast(0.2:1.8),saturation(.5:1),standardise",
            "brightness(63),contrast(0.2:1.8),saturation(0.5:1),standardise");
    text_is("normalise(1.5:2:3/10)", "normalise(1.5:2:3/10)");
    text_is("flip,normalise01(.4850:0.456:0.406/0.229:0.224:0.225)",
            "flip,normalise01(0.485:0.456:0.406/0.229:0.224:0.225)");
    text_is("normalise01(1/1.0)", "normalise01(1/1)");
    text_is("erase(.5)", "erase(0.5,scale=0.02:0.33,ratio=0.3:3.3,value=mean)");
    text_is("erase(1/4, value=random, ratio=1:2, scale=0:1)", "erase(1/4,scale=0:1,ratio=1:2,value=random)");
    text_is("cutout(16),cutout(3,value=zero)", "cutout(16,value=mean),cutout(3,value=zero)");
    text_is("hue(0.50),jitter(0.4,.4, 1/5,0.1)", "hue(0.5),jitter(0.4,0.4,1/5,0.1)");
    text_is("jitter(0,0,0,0,0.80),jitter(1,1,1,0.5,1.0)", "jitter(0,0,0,0,0.8),jitter(1,1,1,0.5)");
    text_is("gray(.1),invert(1),solarize(256,0.2),posterize(4, 0.5),autocontrast(0),equalize(1/3)",
            "gray(0.1),invert(1),solarize(256,0.2),posterize(4,0.5),autocontrast(0),equalize(1/3)");
    text_is("sharpness(.5:2),sharpness(0:1,.3),blur(23,0.10:2.0),blur(1,1:1,0.5)",
            "sharpness(0.5:2),sharpness(0:1,0.3),blur(23,0.1:2),blur(1,1:1,0.5)");
    text_is("rotate(15),rotate(7.5,fill=mean,filter=nearest),rotate(180,filter=bilinear,fill=0)",
            "rotate(15),rotate(7.5,filter=nearest,fill=mean),rotate(180)");
    text_is("affine(10),affine(0,translate=0.1,scale=.8:1.2,shear=5,fill=128)",
            "affine(10),affine(0,translate=0.1:0.1,scale=0.8:1.2,shear=5:0,fill=128)");
    text_is("affine(1/2,shear=0:3,translate=0:1,scale=1:1,filter=nearest)",
            "affine(1/2,translate=0:1,shear=0:3,filter=nearest)");
    text_is("randaugment(2,9),randaugment(1,30,fill=mean,filter=nearest)",
            "randaugment(2,9),randaugment(1,30,filter=nearest,fill=mean)");
    text_is("trivial,trivial(fill=3),trivial(filter=nearest)",
            "trivial,trivial(filter=bilinear,fill=3),trivial(filter=nearest)");
    text_is("randaugment(16,0)", "randaugment(16,0)"); /* as many turns as there may be */
}

/* As many operations as long as they can be: numbers without a leading 0 come out longer than they went
 * in. */
static void the_longest_texts_have_room(void **state)
{
    (void)state;
    static const char *const more[] = {"", ",covers=.123456789/.999999999"};
    for (int with = 0; with < 2; with++) {
        char spec[4200] = "", expected[6200] = "";
        for (;;) {
            char op[256], out[256];
            snprintf(op, sizeof op,
                     "%src(32768,scale=.123456789/.999999999:.123456789/.999999999,ratio=.123456789/"
                     ".999999999:.123456789/.999999999,"
                     "filter=bicubic%s)",
                     spec[0] ? ",r" : "r", more[with]);
            snprintf(out, sizeof out,
                     "%src(32768,scale=0.123456789/0.999999999:0.123456789/0.999999999,"
                     "ratio=0.123456789/0.999999999:0.123456789/0.999999999,filter=bicubic%s)",
                     spec[0] ? ",r" : "r", with ? ",covers=0.123456789/0.999999999" : "");
            if (strlen(spec) + strlen(op) > 4000) break;
            strcat(spec, op);
            strcat(expected, out);
        }
        MRT_TRUE(strlen(expected) > 4096); /* what there once was room for */
        mr_augment *a;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create(&a, spec, true, &err), &err);
        MRT_STR(mr_augment_text(a), expected);
        mr_augment_destroy(a);
    }
}

static void error_is(const char *spec, const char *part)
{
    mr_augment *a = (mr_augment *)1;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_augment_create(&a, spec, true, &err), MR_EINVAL);
    MRT_TRUE(a == NULL);
    MRT_HAS(err.text, part);
}

static void errors_name_part_and_place(void **state)
{
    (void)state;
    error_is("padcrop(4,border=edge)", "expected a number: padcrop(PAD[,SIZE][,border=mirror])");
    error_is("padcrop(4,3,5)", "expected border=mirror");
    error_is("padcrop(4,border=mirror,3)", "expected padcrop(PAD[,SIZE][,border=mirror])");
    error_is("", "character 1");
    error_is("flip,smear(3)", "character 6, \"smear(3\": unknown; operations are rrc");
    error_is("flip,,flip", "character 6");
    error_is("flip,", "character 6");
    error_is("flip flip", "expected \",\" or the end");
    error_is("flip(1)", "expected flip");
    error_is("rrc", "expected rrc(SIZE");
    error_is("rrc()", "expected a number");
    error_is("rrc(0)", "whole number from 1");
    error_is("rrc(2.5)", "whole number");
    error_is("rrc(224,foo=1)", "character 9, \"foo=1\": expected scale=");
    error_is("rrc(224,scale=0:1)", "character 15");
    error_is("rrc(224,scale=0.5:0.4)", "LO <= HI");
    error_is("rrc(224,ratio=1/0:1)", "division by zero");
    error_is("rrc(224", "expected rrc(SIZE");
    error_is("rrc(99999999999)", "nine digits");
    error_is("rrc(224,covers=0)", "character 16, \"0\": expected the part of a box's area that a crop covers "
                                  "at least: above 0, at most 1");
    error_is("rrc(224,covers=1.01)", "above 0, at most 1");
    error_is("rrc(224,covers=4/3)", "above 0, at most 1");
    error_is("rrc(224,covers=)", "expected a number: rrc(SIZE");
    error_is("rrc(224,covers=-1)", "expected a number");
    error_is("rrc(224,covers=nan)", "expected a number");
    error_is("rrc(224,cover=1)", "or covers=F");
    error_is("resize(8,covers=0.1)", "expected filter=");
    error_is("resize(5y6)", "expected resize");
    error_is("shift(1.5)", "0 to 1");
    error_is("brightness(300)", "0 to 255");
    error_is("contrast(1)", "LO:HI");
    error_is("contrast(0:17)", "16");
    error_is("normalise(1:2/3)", "one number or three");
    error_is("normalise(1/0)", "divide by zero");
    error_is("normalise(1)", "divide by");
    error_is(
        "flip,normalise(0.485:0.456:0.406/0.229:0.224:0.225)",
        "character 16, \"0.485:0.456:0.406/0.229:0.224:0.225\": deviations below 1 are for pixels from 0 "
        "to 1, and pixels are 0 to 255 here; write normalise01(0.485:0.456:0.406/0.229:0.224:0.225)");
    error_is("normalise(1/0.999)", "write normalise01(1/0.999)");
    error_is("normalise01", "expected normalise01(MEAN/STD)");
    error_is("normalise01(imagenet)", "expected a number: normalise01(MEAN/STD)");
    error_is("normalise01(0.5)", "divide by");
    error_is("normalise01(0.5/0)", "divide by zero");
    error_is("normalise01(0.5/58)",
             "character 17, \"58\": expected 0 to 1, for pixels from 0 to 1; normalise()");
    error_is("normalise01(0.5:1.01:0.5/0.2)", "character 17, \"1.01:0.5/0.2\": expected 0 to 1");
    error_is("normalise01(0.5:0.5/0.2)", "one number or three");
    error_is("normalise01(0/1),normalise(none)", "once");
    error_is("standardise,normalise(none)", "once");
    error_is("normalise(none),normalise(none)", "once");
    error_is("standardise,brightness(1)", "comes after");
    error_is("standardise,rrc224", "character 13, \"rrc224\"");
    error_is("flip\nflip", "expected");
    error_is("erase", "expected erase(P");
    error_is("erase()", "expected a number: erase(P");
    error_is("flip,erase(1.5)", "character 12, \"1.5\": expected a probability, 0 to 1: erase(P");
    error_is("erase(0.5,scale=0:1.1)", "0 <= LO <= HI <= 1");
    error_is("erase(0.5,ratio=0:1)", "0.01 <= LO");
    error_is("erase(0.5,value=black)", "character 17, \"black\": expected value=mean, value=zero or");
    error_is("erase(0.5,size=3)", "expected scale=LO:HI, ratio=LO:HI or value=");
    error_is("erase(0.5", "expected erase(P");
    error_is("cutout(0)", "whole number from 1");
    error_is("cutout(8,9)", "expected value=mean|zero|random");
    error_is("hue(0.51)", "expected 0 to 0.5, parts of a whole turn");
    error_is("hue", "expected hue(D)");
    error_is("jitter(0.4,0.4,0.4)", "character 19, \"\": expected jitter(B,C,S,H");
    error_is("jitter(16,0,0,0)", "character 8, \"16\": expected 0 to 15, for factors of 1 - it to 1 + it");
    error_is("jitter(0,0,0,0.6)", "expected 0 to 0.5");
    error_is("jitter(0,0,0,0,2)", "expected a probability");
    error_is("jitter(0,0,0,0,0.5,1)", "expected jitter(");
    error_is("gray(2)", "expected a probability, 0 to 1: gray(P)");
    error_is("gray", "expected gray(P)");
    error_is("solarize(257,1)", "whole number from 0 to 256");
    error_is("solarize(128)", "expected solarize(THRESHOLD,P)");
    error_is("posterize(0,1)", "whole number from 1 to 8");
    error_is("posterize(9,1)", "whole number from 1 to 8");
    error_is("sharpness(0:17)", "0 <= LO <= HI <= 16");
    error_is("sharpness(1)", "expected LO:HI: sharpness(LO:HI");
    error_is("blur(4,1:2)", "character 6, \"4\": expected an odd number");
    error_is("blur(65,1:2)", "whole number from 1 to 63");
    error_is("blur(5)", "expected blur(KERNEL,LO:HI");
    error_is("blur(5,0:1)", "0.01 <= LO");
    error_is("blur(5,1:2,3)", "expected a probability");
    error_is("rotate(181)", "character 8, \"181\": expected 0 to 180 degrees");
    error_is("rotate(10,fill=256)", "whole number from 0 to 255");
    error_is("rotate(10,fill=red)", "expected fill=mean or a value of 0 to 255");
    error_is("rotate(10,filter=bicubic)", "expected filter=bilinear or filter=nearest");
    error_is("rotate(10,shear=1)", "expected filter=bilinear|nearest or fill=mean|0..255");
    error_is("affine(0,translate=2)", "expected one number or two, as X:Y, of 0 to 1: parts of the sides");
    error_is("affine(0,shear=1:81)", "of 0 to 80: degrees");
    error_is("affine(0,scale=0:1)", "0.1 <= LO");
    error_is("affine(0,turn=1)", "expected translate=X[:Y], scale=LO:HI, shear=X[:Y]");
    error_is("randaugment(2)", "expected randaugment(N,M");
    error_is("randaugment(0,9)", "whole number from 1 to 16");
    error_is("randaugment(2,31)", "whole number from 0 to 30");
    error_is("randaugment(2,9,3)", "expected filter=");
    error_is("trivial()", "expected filter=bilinear|nearest or fill=");
    error_is("trivial(", "expected filter=");
    error_is("randaugment(16,9),flip,rotate(1)",
             "character 24, \"rotate(1\": expected at most 16 changes that turn, shear or scale, found 17");
    error_is("standardise,rotate(1)", "comes after");
    error_is("standardise,erase(1)", "comes after");
    error_is("standardise,gray(1)", "comes after");
    char many[400] = "flip";
    for (int k = 0; k < 32; k++) strcat(many, ",flip");
    error_is(many, "more than 32");
}

/* An unknown name is answered with all there are, and the manual has a text for each. */
static void every_operation_is_described(void **state)
{
    (void)state;
    static const char *const names[] = {
        "rrc",        "resize",       "center",     "padcrop",     "shift",  "flip",  "rotate", "affine",
        "brightness", "contrast",     "saturation", "hue",         "jitter", "gray",  "invert", "solarize",
        "posterize",  "autocontrast", "equalize",   "sharpness",   "blur",   "erase", "cutout", "randaugment",
        "trivial",    "standardise",  "normalise",  "normalise01", "mixup",  "cutmix"};
    const mri_op_type *type;
    size_t found = 0;
    for (size_t k = 0; (type = mri_op_type_at(k)) != NULL; k++) {
        const char *usage = NULL, *help = mr_augment_help((uint32_t)k, &usage);
        MRT_TRUE(help && help[0] && usage && strncmp(usage, type->name, strlen(type->name)) == 0);
        MRT_TRUE(mri_op_type_find(type->name, strlen(type->name)) == type);
        MRT_EQ((type->run != NULL) + (type->paint != NULL) + (type->touch != NULL) + (type->mirrors != NULL) +
                   (type->mix != NULL) + (type->fix != NULL),
               1);
        error_is("unheardof", type->name);
        for (size_t n = 0; n < MRI_ARRAY_COUNT(names); n++) found += strcmp(names[n], type->name) == 0;
    }
    const char *usage = "unchanged";
    MRT_TRUE(found == MRI_ARRAY_COUNT(names) && mr_augment_help(1000, &usage) == NULL);
    MRT_STR(usage, "unchanged");
    error_is("unheardof", "presets none, rrc224, center224, cifar");
}

/* Random operations are left out in evaluation, whatever its probability. */
static void random_operations_are_left_out(void **state)
{
    (void)state;
    mr_augment *a;
    MRT_EQ(
        mr_augment_create(&a,
                          "erase(1),cutout(4),hue(0.1),jitter(1,1,1,0.5),gray(1),invert(1),solarize(0,1),"
                          "posterize(1,1),autocontrast(1),equalize(1),sharpness(2:2),blur(3,1:1),rotate(9),"
                          "affine(9),randaugment(1,9),trivial",
                          false, NULL),
        MR_OK);
    MRT_EQ(a->op_count, 0);
    mr_augment_destroy(a);
}

static void output_is(const char *spec, bool training, uint32_t in_h, uint32_t in_w, uint32_t h, uint32_t w)
{
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    uint32_t found_h = 0, found_w = 0;
    MRT_OK(mr_augment_create(&a, spec, training, &err), &err);
    const int rc = mr_augment_output(a, in_h, in_w, &found_h, &found_w, &err);
    if (h == 0) {
        MRT_EQ(rc, MR_EINVAL);
        MRT_HAS(err.text, w ? "sides go up to" : "add rrc(224)");
    } else {
        MRT_OK(rc, &err);
        MRT_EQ(found_h, h);
        MRT_EQ(found_w, w);
    }
    mr_augment_destroy(a);
}

static void sizes_are_reported(void **state)
{
    (void)state;
    for (int training = 0; training < 2; training++) {
        output_is("none", training, 32, 30, 32, 30);
        output_is("none", training, 0, 0, 0, 0);
        output_is("rrc224", training, 0, 0, 224, 224);
        output_is("center224", training, 0, 0, 224, 224);
        output_is("resize(256)", training, 0, 0, 0, 0);
        output_is("resize(256)", training, 100, 200, 256, 512);
        output_is("resize(7)", training, 20, 10, 14, 7);
        output_is("resize(7x9),flip", training, 0, 0, 7, 9);
        output_is("cifar", training, 32, 32, 32, 32);
        output_is("cifar", training, 0, 0, 0, 0);
        output_is("padcrop(2,32)", training, 28, 28, 32, 32);
        output_is("resize(32000)", training, 1, 100, 0, 1);
    }
}

static void normalise_says(const char *spec, const float mean[4], const float std[4], bool affine)
{
    mr_augment *a;
    float m[4], s[4];
    bool uses;
    MRT_EQ(mr_augment_create(&a, spec, true, NULL), MR_OK);
    mr_augment_normalise(a, m, s, &uses);
    MRT_TRUE(memcmp(m, mean, sizeof m) == 0 && memcmp(s, std, sizeof s) == 0);
    MRT_EQ(uses, affine);
    mr_augment_destroy(a);
}

static void normalise_numbers(void **state)
{
    (void)state;
    normalise_says("none", (float[4]){0, 0, 0, 0}, (float[4]){255, 255, 255, 255}, false);
    normalise_says("standardise", (float[4]){0, 0, 0, 0}, (float[4]){1, 1, 1, 1}, true);
    normalise_says("normalise(none)", (float[4]){0, 0, 0, 0}, (float[4]){1, 1, 1, 1}, false);
    normalise_says("normalise(127.5/64)", (float[4]){127.5f, 127.5f, 127.5f, 127.5f},
                   (float[4]){64, 64, 64, 64}, false);
    normalise_says("rrc224", (float[4]){123.675f, 116.28f, 103.53f, 123.675f},
                   (float[4]){58.395f, 57.12f, 57.375f, 58.395f}, false);
    normalise_says("normalise(1:2:3/4:5:6)", (float[4]){1, 2, 3, 1}, (float[4]){4, 5, 6, 4}, false);
    normalise_says("normalise(1:2:3/0.5:0.5:6)", (float[4]){1, 2, 3, 1}, (float[4]){0.5f, 0.5f, 6, 0.5f},
                   false);
    normalise_says("normalise(1.5/0.5)", (float[4]){1.5f, 1.5f, 1.5f, 1.5f},
                   (float[4]){0.5f, 0.5f, 0.5f, 0.5f}, false);
    /* The same bits as normalise(imagenet). */
    normalise_says("normalise01(0.485:0.456:0.406/0.229:0.224:0.225)",
                   (float[4]){123.675f, 116.28f, 103.53f, 123.675f},
                   (float[4]){58.395f, 57.12f, 57.375f, 58.395f}, false);
    normalise_says("normalise01(0.5/1)", (float[4]){127.5f, 127.5f, 127.5f, 127.5f},
                   (float[4]){255, 255, 255, 255}, false);
}

static void exp_and_log_are_right(void **state)
{
    (void)state;
    for (double x = -12; x <= 12; x += 0.37) {
        MRT_TRUE(fabs(mri_exp(x) / exp(x) - 1) < 1e-12);
        MRT_TRUE(fabs(mri_log(exp(x)) - x) < 1e-11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_spelled_out),        cmocka_unit_test(errors_name_part_and_place),
        cmocka_unit_test(sizes_are_reported),           cmocka_unit_test(normalise_numbers),
        cmocka_unit_test(exp_and_log_are_right),        cmocka_unit_test(the_longest_texts_have_room),
        cmocka_unit_test(every_operation_is_described), cmocka_unit_test(random_operations_are_left_out),
    };
    return mrt_run(tests);
}

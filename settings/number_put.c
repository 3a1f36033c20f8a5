/* settings/number_put.c: see number_put.h. */
#include "settings/number_put.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

const char *mri_size_text(double bytes, char *buf, size_t buf_bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t k = 0;
    const locale_t before = mri_c_numbers_begin();
    while (bytes >= 1024 && k + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1024;
        k++;
    }
    snprintf(buf, buf_bytes, k ? "%.1f %s" : "%.0f %s", bytes, unit[k]);
    mri_c_numbers_end(before);
    return buf;
}

static void group_digits(const char *digits, char *out)
{
    const size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
}

const char *mri_number_text(double value, char *room)
{
    const double size = fabs(value);
    const locale_t before = mri_c_numbers_begin();
    if (isnan(value)) snprintf(room, MRI_NUMBER_ROOM, "-");
    else if (size >= 1e15 || isinf(value)) snprintf(room, MRI_NUMBER_ROOM, "%.3g", value);
    else if (size >= 1000 || (size >= 100 && value == floor(value))) {
        char digits[MRI_NUMBER_ROOM];
        snprintf(digits, sizeof digits, "%.0f", value);
        group_digits(digits, room);
    } else snprintf(room, MRI_NUMBER_ROOM, value == floor(value) ? "%.0f" : "%.3g", value);
    mri_c_numbers_end(before);
    return room;
}

/* base/library.c: see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "millrace/base.h"

int mri_library_open(void *table, const char *const *files, const mri_symbol *symbols, size_t count,
                     const char **what)
{
    void *handle = NULL;
    for (; *files && !handle; files++) handle = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        *what = dlerror();
        return MR_ENOENT;
    }
    for (size_t k = 0; k < count; k++) {
        void *function = dlsym(handle, symbols[k].name);
        if (!function) {
            dlclose(handle);
            *what = symbols[k].name;
            return MR_EUNSUPPORTED;
        }
        memcpy((char *)table + symbols[k].place, &function, sizeof function);
    }
    return MR_OK;
}

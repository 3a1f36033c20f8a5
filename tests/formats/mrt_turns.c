#include "tests/formats/mrt_turns.h"

#include "mrt.h"

bool mrt_last_turn(int rc, mr_source *src)
{
    if (rc == MR_OK) {
        mr_source_close(src);
        return !mrt_alloc_failed();
    }
    MRT_EQ(rc, MR_ENOMEM);
    MRT_TRUE(src == NULL);
    return false;
}

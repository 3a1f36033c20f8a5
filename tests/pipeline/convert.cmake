millrace_test(convert SOURCES test_convert.c LINK_OPTIONS ${MRT_WRAP_ALLOC} LABELS threads)

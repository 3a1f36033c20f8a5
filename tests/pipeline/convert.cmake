millrace_test(convert SOURCES test_convert.c LINK_OPTIONS ${MRT_WRAP_ALLOC} LABELS threads)
millrace_test(convert_coef SOURCES test_convert_coef.c coefs.c pictures.c LINK_OPTIONS ${MRT_WRAP_ALLOC} LABELS threads)

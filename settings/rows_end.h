/* settings/rows_end.h: at the end of each file of rows. See rows_begin.h. */
#undef MRI_SETTING
#undef MRI_KEPT
#undef MRI_KEPT_TEXT
#undef MRI_MEMBER
#undef MRI_OPTION
#undef MRI_OPTIONS

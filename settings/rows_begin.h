/* settings/rows_begin.h: words that whoever includes rows has not defined. At the top of each file of rows,
 * so without a guard. See setting.h. */
#ifdef MRI_OPTIONS
#define MRI_SETTING MRI_OPTIONS
#define MRI_OPTION  MRI_OPTIONS
#endif
#ifndef MRI_SETTING
#define MRI_SETTING(member, kind, ...)
#endif
#ifndef MRI_KEPT
#define MRI_KEPT MRI_SETTING
#endif
#ifndef MRI_KEPT_TEXT
#define MRI_KEPT_TEXT MRI_SETTING
#endif
#ifndef MRI_MEMBER
#define MRI_MEMBER(member, kind, ...)
#endif
#ifndef MRI_OPTION
#define MRI_OPTION(name, kind, ...)
#endif

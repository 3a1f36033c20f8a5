/* formats/folder/folder.h: a folder of pictures, one sub-folder for each class. Private.
 *
 * Takes a folder and looks at names and sizes only. Gives one format for the table in formats/open.c, which
 * is the only one to use it; each sample is a file of its own. */
#ifndef MRI_FOLDER_H
#define MRI_FOLDER_H

#include "formats/source/source.h"

#endif

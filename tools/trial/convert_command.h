/* tools/trial/convert_command.h: the command that makes another form of a set, to be copied into a shell as
 * it is. The result lies in the current folder, under the set's name. */
#ifndef TRIAL_CONVERT_COMMAND_H
#define TRIAL_CONVERT_COMMAND_H

#include <stddef.h>

/* src_text: the set as the user wrote it. set: the options that make the form, with a space before each, or
 * "". room: 2048 or more. */
void convert_command(char *out, size_t room, const char *src_text, const char *set);

#endif

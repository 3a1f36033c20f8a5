/* tests/faults/inject_stdio.c: files through FILE. The C library's writes below them cannot be seen from
 * here, so the calls fail themselves and set the error flag that a failed write sets. Messages (stderr) are
 * left alone. */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

enum { ERROR_SEEN = 0x20 }; /* glibc's _IO_ERR_SEEN: what ferror() looks at */

static bool output(FILE *file) { return file != stderr && __fwritable(file); }

/* True: the call fails with errno. A stream in memory can only be short of memory. */
static bool fails(FILE *file, const void *caller)
{
    if (!output(file)) return false;
    const bool in_memory = fileno(file) < 0;
    if (!in_memory && file != stdout) mrt_fault_change(false, caller);
    const mrt_fault_class class = in_memory        ? MRT_FAULT_ALLOC
                                  : file == stdout ? MRT_FAULT_PRINT
                                                   : MRT_FAULT_WRITE;
    const int error = mrt_fault(class, caller);
    if (error == 0 || error == MRT_FAULT_SHORT) return false;
    file->_flags |= ERROR_SEEN;
    errno = error;
    return true;
}

static bool read_fails(FILE *file, const void *caller)
{
    const int error = mrt_fault(MRT_FAULT_READ, caller);
    if (error == 0 || error == MRT_FAULT_SHORT) return false;
    file->_flags |= ERROR_SEEN;
    errno = error;
    return true;
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    MRT_REAL(fwrite)
    return fails(file, MRT_CALLER) ? 0 : real(data, size, count, file);
}

int fputs(const char *text, FILE *file)
{
    MRT_REAL(fputs)
    return fails(file, MRT_CALLER) ? EOF : real(text, file);
}

int fputc(int c, FILE *file)
{
    MRT_REAL(fputc)
    return fails(file, MRT_CALLER) ? EOF : real(c, file);
}

int putc(int c, FILE *file)
{
    MRT_REAL(putc)
    return fails(file, MRT_CALLER) ? EOF : real(c, file);
}

int putchar(int c)
{
    MRT_REAL(putchar)
    return fails(stdout, MRT_CALLER) ? EOF : real(c);
}

int puts(const char *text)
{
    MRT_REAL(puts)
    return fails(stdout, MRT_CALLER) ? EOF : real(text);
}

int vfprintf(FILE *file, const char *format, va_list args)
{
    MRT_REAL(vfprintf)
    return fails(file, MRT_CALLER) ? -1 : real(file, format, args);
}

int fprintf(FILE *file, const char *format, ...)
{
    MRT_REAL(vfprintf)
    va_list args;
    if (fails(file, MRT_CALLER)) return -1;
    va_start(args, format);
    const int rc = real(file, format, args);
    va_end(args);
    return rc;
}

int printf(const char *format, ...)
{
    MRT_REAL(vfprintf)
    va_list args;
    if (fails(stdout, MRT_CALLER)) return -1;
    va_start(args, format);
    const int rc = real(stdout, format, args);
    va_end(args);
    return rc;
}

int fflush(FILE *file)
{
    MRT_REAL(fflush)
    if (file && fails(file, MRT_CALLER)) {
        __fpurge(file);
        return EOF;
    }
    return real(file);
}

/* It is closed even so; unwritten data are lost. */
int fclose(FILE *file)
{
    MRT_REAL(fclose)
    if (fails(file, MRT_CALLER)) {
        const int error = errno;
        __fpurge(file);
        real(file);
        errno = error;
        return EOF;
    }
    return real(file);
}

size_t fread(void *data, size_t size, size_t count, FILE *file)
{
    MRT_REAL(fread)
    return read_fails(file, MRT_CALLER) ? 0 : real(data, size, count, file);
}

char *fgets(char *text, int bytes, FILE *file)
{
    MRT_REAL(fgets)
    return read_fails(file, MRT_CALLER) ? NULL : real(text, bytes, file);
}

/* getline() of a program that was compiled with optimisation */
ssize_t __getdelim(char **line, size_t *bytes, int end, FILE *file);
ssize_t __getdelim(char **line, size_t *bytes, int end, FILE *file)
{
    MRT_REAL(__getdelim)
    const int error = mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (!error) return read_fails(file, MRT_CALLER) ? -1 : real(line, bytes, end, file);
    file->_flags |= ERROR_SEEN;
    errno = error;
    return -1;
}

ssize_t getdelim(char **line, size_t *bytes, int end, FILE *file)
{
    MRT_REAL(getdelim)
    const int error = mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (!error) return read_fails(file, MRT_CALLER) ? -1 : real(line, bytes, end, file);
    file->_flags |= ERROR_SEEN;
    errno = error;
    return -1;
}

FILE *fopen(const char *path, const char *mode)
{
    MRT_REAL(fopen)
    const bool writes = mode[0] != 'r' || strchr(mode, '+');
    if (writes) mrt_fault_change(false, MRT_CALLER);
    int error = mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (!error) error = mrt_fault(MRT_FAULT_OPEN, MRT_CALLER);
    if (error) {
        errno = error;
        return NULL;
    }
    const bool own = writes && mrt_fault_own(MRT_CALLER);
    const bool made = own && mrt_journal_opening(AT_FDCWD, path, mode[0] == 'w');
    FILE *file = real(path, mode);
    if (own && file) mrt_journal_opened(fileno(file), AT_FDCWD, path, made);
    return file;
}

FILE *fdopen(int fd, const char *mode)
{
    MRT_REAL(fdopen)
    int error = mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (error) {
        errno = error;
        return NULL;
    }
    return real(fd, mode);
}

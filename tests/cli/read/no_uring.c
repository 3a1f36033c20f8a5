/* tests/cli/read/no_uring.c: no_uring ENOSYS|EPERM PROGRAM ARGUMENT...: runs a program in a world where
 * io_uring_setup() fails so, as it does under old kernels (ENOSYS) and under the policies of containers
 * (EPERM). Exit status 77 where the filter itself is refused. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: no_uring ENOSYS|EPERM PROGRAM ARGUMENT...\n", stderr);
        return 2;
    }
    const unsigned answer = strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS;
    /* one number suffices: io_uring came after calls were given the same numbers everywhere */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        fprintf(stderr, "no_uring: seccomp filters are refused here: %s\n", strerror(errno));
        return 77;
    }
    execv(argv[2], argv + 2);
    fprintf(stderr, "no_uring: cannot run %s: %s\n", argv[2], strerror(errno));
    return 127;
}

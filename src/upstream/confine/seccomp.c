/*
 * System calls, by a seccomp filter. Landlock does not restrict sockets, so
 * the filter decides which families exist: none, or IP and netlink (name
 * lookup). Unix sockets never do, since the daemon's, Docker's and systemd's
 * are among them; a pair without an address is fine, as node makes them.
 *
 * The kernel reads 32 bits of most arguments: each is compared by its low half, or a process could set the
 * other one. Only "is not 0" looks at all bits, which is stricter.
 */
#include "upstream/confine/seccomp.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IOPRIO_WHO_USER 3u /* the kernel's, which libc lacks */
#define LOW             0xffffffffu
#define SOCKET_TYPE     0xfu

#define DENY      EACCES
#define NOT_YOURS EPERM  /* as for another user's process */
#define MISSING   ENOSYS /* libraries then use an older call */

/* Names of system calls, with a space between. What reaches around the rules: keys are the user's, tracing is
 * control, and shared memory is beside the limit and other processes'. */
static const char denied[] =
    "ptrace process_vm_readv process_vm_writev keyctl add_key request_key bpf perf_event_open userfaultfd "
    "mount "
    "umount2 pivot_root unshare setns kexec_load init_module finit_module delete_module open_by_handle_at "
    "pidfd_getfd chroot kcmp process_madvise shmget shmat shmctl msgget msgctl semget semctl mq_open "
    "mq_unlink";

/* Landlock lets a process change the mode, the group and the attributes of every file of its user, by a path
 * or by a descriptor that cannot even be read: the daemon's configuration, state and sockets among them. The
 * mode is in `by_value`; of an open file it may be any (fchmod). */
static const char owners[] = "chown lchown fchownat";
static const char attributes[] = "setxattr lsetxattr removexattr lremovexattr";

/* The same, by newer calls, whose names libseccomp need not know: fchmodat2, setxattrat, removexattrat and
 * file_setattr. They have one number on all architectures. */
static const int newer[] = {452, 463, 466, 469};

/* The requests of a ring are not filtered; clone3's flags are in memory, which a filter cannot read. */
static const char missing[] = "io_uring_setup io_uring_enter io_uring_register clone3";

/* What the same user may do to any process, the daemon among them, a process may do to itself alone, and only
 * by the pid 0: a filter does not know other pids. */
static const struct {
    int call;
    unsigned pid; /* which argument it is */
} by_pid[] = {
    {SCMP_SYS(prlimit64), 0},     {SCMP_SYS(sched_setparam), 0},    {SCMP_SYS(sched_setscheduler), 0},
    {SCMP_SYS(sched_setattr), 0}, {SCMP_SYS(sched_setaffinity), 0}, {SCMP_SYS(migrate_pages), 0},
    {SCMP_SYS(move_pages), 0},    {SCMP_SYS(setpriority), 1},       {SCMP_SYS(ioprio_set), 1}};

/* Refused if the argument `arg` has these bits of `mask`. */
static const struct {
    int call;
    unsigned arg;
    uint32_t mask, value;
} by_value[] = {
    /* All processes of a user. */
    {SCMP_SYS(setpriority), 0, LOW, PRIO_USER},
    {SCMP_SYS(ioprio_set), 0, LOW, IOPRIO_WHO_USER},
    /* No children of the daemon, and no namespaces, in which a process would have capabilities. */
    {SCMP_SYS(clone), 0, CLONE_PARENT, CLONE_PARENT},
    {SCMP_SYS(clone), 0, CLONE_NEWNS, CLONE_NEWNS},
    {SCMP_SYS(clone), 0, CLONE_NEWCGROUP, CLONE_NEWCGROUP},
    {SCMP_SYS(clone), 0, CLONE_NEWUTS, CLONE_NEWUTS},
    {SCMP_SYS(clone), 0, CLONE_NEWIPC, CLONE_NEWIPC},
    {SCMP_SYS(clone), 0, CLONE_NEWUSER, CLONE_NEWUSER},
    {SCMP_SYS(clone), 0, CLONE_NEWPID, CLONE_NEWPID},
    {SCMP_SYS(clone), 0, CLONE_NEWNET, CLONE_NEWNET},
    /* No file that everybody may write to, or that runs as its owner. git, npm and uv need other modes. */
    {SCMP_SYS(chmod), 1, S_IWOTH, S_IWOTH},
    {SCMP_SYS(chmod), 1, S_ISUID, S_ISUID},
    {SCMP_SYS(chmod), 1, S_ISGID, S_ISGID},
    {SCMP_SYS(fchmodat), 2, S_IWOTH, S_IWOTH},
    {SCMP_SYS(fchmodat), 2, S_ISUID, S_ISUID},
    {SCMP_SYS(fchmodat), 2, S_ISGID, S_ISGID},
    /* No signal to the owner of a descriptor, and no input into a terminal. */
    {SCMP_SYS(fcntl), 1, LOW, F_SETOWN},
    {SCMP_SYS(fcntl), 1, LOW, F_SETOWN_EX},
    {SCMP_SYS(ioctl), 1, LOW, FIOSETOWN},
    {SCMP_SYS(ioctl), 1, LOW, SIOCSPGRP},
    {SCMP_SYS(ioctl), 1, LOW, TIOCSTI},
};

/* A filter while it is made. */
struct builder {
    scmp_filter_ctx filter;
    bool failed;
};

/* A call that this architecture lacks has a negative number, and needs no rule. */
static void check(struct builder *b, int call, int result)
{
    b->failed |= result != 0 && call >= 0;
}

static void refuse_all(struct builder *b, const char *names, unsigned error)
{
    char name[32];
    for (int n; sscanf(names, "%31s%n", name, &n) == 1; names += n) {
        int call = seccomp_syscall_resolve_name(name);
        b->failed |= call == __NR_SCMP_ERROR; /* libseccomp does not know it */
        check(b, call, seccomp_rule_add(b->filter, SCMP_ACT_ERRNO(error), call, 0));
    }
}

static void refuse_if(struct builder *b, int call, unsigned error, unsigned arg, uint32_t mask,
                      uint32_t value)
{
    check(b, call,
          seccomp_rule_add(b->filter, SCMP_ACT_ERRNO(error), call, 1,
                           SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value)));
}

bool seccomp_is_supported(void)
{
    uint32_t action = SCMP_ACT_ERRNO(0);
    return seccomp_arch_native() && syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) == 0;
}

/* The program that libseccomp writes to a file in memory. NULL: it could not be written. */
static const struct sock_fprog *export_program(struct arena *arena, scmp_filter_ctx filter)
{
    struct sock_fprog *program = ARENA_NEW(arena, struct sock_fprog);
    struct stat info;
    int fd = memfd_create("seccomp", MFD_CLOEXEC);
    bool written = fd >= 0 && seccomp_export_bpf(filter, fd) == 0 && fstat(fd, &info) == 0;
    if (written) {
        size_t size = (size_t)info.st_size;
        program->filter = arena_alloc(arena, size);
        program->len = (unsigned short)(size / sizeof(*program->filter));
        written = pread(fd, program->filter, size, 0) == (ssize_t)size;
    }
    if (fd >= 0)
        close(fd);
    return written ? program : NULL;
}

const struct sock_fprog *seccomp_filter(struct arena *arena, bool network, int abi)
{
    struct builder b = {.filter = seccomp_init(SCMP_ACT_ALLOW)};
    const struct sock_fprog *program = NULL;
    if (!b.filter)
        return NULL;
    b.failed = seccomp_attr_set(b.filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0;
    refuse_all(&b, denied, DENY);
    /* These seem to succeed: a process that left its group would survive it. */
    refuse_all(&b, "setsid setpgid", 0);
    refuse_all(&b, owners, NOT_YOURS);
    refuse_all(&b, attributes, EOPNOTSUPP); /* as on a file system without them */
    refuse_all(&b, missing, MISSING);
    for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++)
        check(&b, newer[i], seccomp_rule_add(b.filter, SCMP_ACT_ERRNO(MISSING), newer[i], 0));
    for (size_t i = 0; i < sizeof(by_pid) / sizeof(*by_pid); i++)
        check(&b, by_pid[i].call,
              seccomp_rule_add(b.filter, SCMP_ACT_ERRNO(NOT_YOURS), by_pid[i].call, 1,
                               SCMP_CMP64(by_pid[i].pid, SCMP_CMP_NE, 0)));
    for (size_t i = 0; i < sizeof(by_value) / sizeof(*by_value); i++)
        refuse_if(&b, by_value[i].call, NOT_YOURS, by_value[i].arg, by_value[i].mask, by_value[i].value);
    if (abi < 6) {
        /* Landlock keeps no signal from another process of the same user: the filter spares the daemon and
         * the user's processes together. Single other processes it cannot tell from the process's children.
         */
        static const int calls[] = {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill),
                                    SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo)};
        refuse_all(&b, "pidfd_send_signal", MISSING);
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
            refuse_if(&b, calls[i], NOT_YOURS, 0, LOW, (uint32_t)getpid());
            refuse_if(&b, calls[i], NOT_YOURS, 0, LOW, (uint32_t)-1);
        }
    }
    if (!network)
        refuse_all(&b, "connect bind listen socket", DENY);
    for (uint32_t family = 0; network && family < AF_NETLINK; family++)
        if (family != AF_INET && family != AF_INET6)
            refuse_if(&b, SCMP_SYS(socket), DENY, 0, LOW, family);
    if (network)
        check(&b, SCMP_SYS(socket),
              seccomp_rule_add(b.filter, SCMP_ACT_ERRNO(DENY), SCMP_SYS(socket), 1,
                               SCMP_A0_64(SCMP_CMP_GT, AF_NETLINK)));
    /* From a pair of datagram sockets, which SOCK_RAW makes as well, any address can be sent to. */
    for (uint32_t type = 0; type <= SOCKET_TYPE; type++)
        if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
            refuse_if(&b, SCMP_SYS(socketpair), DENY, 1, SOCKET_TYPE, type);
    if (abi < 3) {
        /* Landlock lets a process empty any file that its user may write. openat2's flags are in memory. */
        refuse_all(&b, "truncate", DENY);
        refuse_all(&b, "openat2", MISSING);
        refuse_if(&b, SCMP_SYS(openat), DENY, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
        refuse_if(&b, SCMP_SYS(open), DENY, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
    }
    if (!b.failed)
        program = export_program(arena, b.filter);
    seccomp_release(b.filter);
    return program;
}

/*
 * System calls, by a seccomp filter. Landlock does not restrict sockets, so
 * the filter decides which families exist: none, or IP and netlink (name
 * lookup). Unix sockets never do, since the daemon's, Docker's and systemd's
 * are among them; a pair without an address is fine, as node makes them.
 */
#include "confine/confine_internal.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define OTHER_ABI   0x40000000u /* x32: the same calls by other numbers */
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#define NATIVE_ARCH 0 /* not supported: a sandbox fails closed */
#endif

#define FILTER_MAX      256u /* instructions */
#define SOCKET_TYPE     0xfu
#define IOPRIO_WHO_USER 3u /* the kernel's, which libc lacks */
#define CLONE_DENIED                                                                                         \
    (CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |            \
     CLONE_NEWPID | CLONE_NEWNET)
#define DENY      (SECCOMP_RET_ERRNO | (EACCES & SECCOMP_RET_DATA))
#define NOT_YOURS (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))  /* as for another user's process */
#define MISSING   (SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA)) /* libraries then use an older call */
#define ARGUMENT(index)                                                                                      \
    (offsetof(struct seccomp_data, args) + 8 * (index)) /* its low half; little-endian                       \
                                                         */

struct filter {
    struct sock_filter *code;
    unsigned short len;
};

static void add(struct filter *filter, struct sock_filter instruction)
{
    if (filter->len < FILTER_MAX)
        filter->code[filter->len++] = instruction;
}

static void load(struct filter *filter, size_t offset)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void result(struct filter *filter, uint32_t value)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

/* If the loaded word is `value`, `skip` fewer instructions follow: the result of the next one holds. */
static void result_if(struct filter *filter, uint32_t value, uint32_t then)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    result(filter, then);
}

/* What reaches around the rules: requests of a ring are not filtered, keys are the user's, tracing is
 * control. */
static void deny_always(struct filter *filter)
{
    static const uint32_t denied[] = {SYS_ptrace,
                                      SYS_process_vm_readv,
                                      SYS_process_vm_writev,
                                      SYS_keyctl,
                                      SYS_add_key,
                                      SYS_request_key,
                                      SYS_bpf,
                                      SYS_perf_event_open,
                                      SYS_userfaultfd,
                                      SYS_mount,
                                      SYS_umount2,
                                      SYS_pivot_root,
                                      SYS_unshare,
                                      SYS_setns,
                                      SYS_kexec_load,
                                      SYS_init_module,
                                      SYS_finit_module,
                                      SYS_delete_module,
                                      SYS_open_by_handle_at,
                                      SYS_pidfd_getfd,
                                      SYS_chroot,
                                      SYS_kcmp,
                                      SYS_process_madvise,
                                      SYS_shmget, /* memory beside the limit, and other processes' */
                                      SYS_shmat,
                                      SYS_shmctl,
                                      SYS_msgget,
                                      SYS_msgctl,
                                      SYS_semget,
                                      SYS_semctl,
                                      SYS_mq_open,
                                      SYS_mq_unlink};
    static const uint32_t missing[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
                                       SYS_clone3}; /* its flags are in memory, which a filter cannot read */
    for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
        result_if(filter, denied[i], DENY);
    /* Succeed without effect, as a process that left its group would survive it. */
    result_if(filter, SYS_setsid, SECCOMP_RET_ERRNO);
    result_if(filter, SYS_setpgid, SECCOMP_RET_ERRNO);
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
        result_if(filter, missing[i], MISSING);
}

/* The next `count` instructions, which end with a result, are those of `call`. */
static void begin_call(struct filter *filter, uint32_t call, unsigned char count)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, count));
}

/* What the same user may do to any process, the daemon among them, a process may do to itself alone, and only
 * by the pid 0: a filter does not know other pids. */
static void keep_to_itself(struct filter *filter)
{
    static const uint32_t by_pid[] = {SYS_prlimit64,     SYS_sched_setparam,    SYS_sched_setscheduler,
                                      SYS_sched_setattr, SYS_sched_setaffinity, SYS_migrate_pages,
                                      SYS_move_pages};
    static const struct {
        uint32_t call, user; /* user: the first argument that means all processes of a user */
    } by_kind[] = {{SYS_setpriority, PRIO_USER}, {SYS_ioprio_set, IOPRIO_WHO_USER}};
    for (size_t i = 0; i < sizeof(by_pid) / sizeof(*by_pid); i++) {
        begin_call(filter, by_pid[i], 4);
        load(filter, ARGUMENT(0));
        result_if(filter, 0, SECCOMP_RET_ALLOW);
        result(filter, NOT_YOURS);
    }
    for (size_t i = 0; i < sizeof(by_kind) / sizeof(*by_kind); i++) {
        begin_call(filter, by_kind[i].call, 7);
        load(filter, ARGUMENT(0));
        result_if(filter, by_kind[i].user, NOT_YOURS);
        load(filter, ARGUMENT(1));
        result_if(filter, 0, SECCOMP_RET_ALLOW);
        result(filter, NOT_YOURS);
    }
    /* No children of the daemon, and no namespaces, in which it would have capabilities. */
    begin_call(filter, SYS_clone, 4);
    load(filter, ARGUMENT(0));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_DENIED, 0, 1));
    result(filter, NOT_YOURS);
    result(filter, SECCOMP_RET_ALLOW);
    /* No signal to the owner of a descriptor. */
    begin_call(filter, SYS_fcntl, 6);
    load(filter, ARGUMENT(1));
    result_if(filter, F_SETOWN, NOT_YOURS);
    result_if(filter, F_SETOWN_EX, NOT_YOURS);
    result(filter, SECCOMP_RET_ALLOW);
    begin_call(filter, SYS_ioctl, 8);
    load(filter, ARGUMENT(1));
    result_if(filter, FIOSETOWN, NOT_YOURS);
    result_if(filter, SIOCSPGRP, NOT_YOURS);
    result_if(filter, TIOCSTI, NOT_YOURS);
    result(filter, SECCOMP_RET_ALLOW);
}

/* Before ABI 6 Landlock keeps no signal from another process of the same user: the filter spares the daemon
 * and the user's processes together. Single other processes it cannot tell from the process's children. */
static void spare_daemon(struct filter *filter, uint32_t daemon)
{
    static const uint32_t calls[] = {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
                                     SYS_rt_tgsigqueueinfo};
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        begin_call(filter, calls[i], 6);
        load(filter, ARGUMENT(0));
        result_if(filter, daemon, NOT_YOURS);
        result_if(filter, (uint32_t)-1, NOT_YOURS);
        result(filter, SECCOMP_RET_ALLOW);
    }
    result_if(filter, SYS_pidfd_send_signal, MISSING);
}

static void filter_sockets(struct filter *filter, bool network)
{
    static const uint32_t families[] = {AF_INET, AF_INET6, AF_NETLINK};
    static const uint32_t addressed[] = {SYS_connect, SYS_bind, SYS_listen};
    for (size_t i = 0; !network && i < sizeof(addressed) / sizeof(*addressed); i++)
        result_if(filter, addressed[i], DENY);
    unsigned char allowed = network ? sizeof(families) / sizeof(*families) : 0;
    /* From a pair of datagram sockets, which SOCK_RAW makes as well, any address can be sent to. */
    begin_call(filter, SYS_socketpair, 7);
    load(filter, ARGUMENT(1));
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE));
    result_if(filter, SOCK_STREAM, SECCOMP_RET_ALLOW);
    result_if(filter, SOCK_SEQPACKET, SECCOMP_RET_ALLOW);
    result(filter, DENY);
    begin_call(filter, SYS_socket, (unsigned char)(2 + 2 * allowed));
    load(filter, ARGUMENT(0));
    for (unsigned char i = 0; i < allowed; i++)
        result_if(filter, families[i], SECCOMP_RET_ALLOW);
    result(filter, DENY);
}

/* Before ABI 3 Landlock lets a process empty any file that its user may write. */
static void deny_truncation(struct filter *filter)
{
    static const struct {
        uint32_t call, flags;
    } opens[] = {{SYS_openat, ARGUMENT(2)},
#ifdef SYS_open
                 {SYS_open, ARGUMENT(1)}
#endif
    };
    result_if(filter, SYS_truncate, DENY);
    result_if(filter, SYS_openat2, MISSING); /* its flags are in memory, which a filter cannot read */
    for (size_t i = 0; i < sizeof(opens) / sizeof(*opens); i++) {
        begin_call(filter, opens[i].call, 5);
        load(filter, opens[i].flags);
        add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE));
        result_if(filter, O_TRUNC | O_RDONLY, DENY);
        result(filter, SECCOMP_RET_ALLOW);
    }
}

bool seccomp_is_supported(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return NATIVE_ARCH && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

const struct sock_fprog *seccomp_filter(struct arena *arena, bool network, int abi)
{
    struct sock_fprog *program = ARENA_NEW(arena, struct sock_fprog);
    struct filter filter = {ARENA_ARRAY(arena, struct sock_filter, FILTER_MAX), 0};
    load(&filter, offsetof(struct seccomp_data, arch));
    add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    result(&filter, SECCOMP_RET_KILL_PROCESS);
    load(&filter, offsetof(struct seccomp_data, nr));
#ifdef OTHER_ABI
    add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHER_ABI, 0, 1));
    result(&filter, MISSING);
#endif
    deny_always(&filter);
    keep_to_itself(&filter);
    if (abi < 6)
        spare_daemon(&filter, (uint32_t)getpid());
    filter_sockets(&filter, network);
    if (abi < 3)
        deny_truncation(&filter);
    result(&filter, SECCOMP_RET_ALLOW);
    *program = (struct sock_fprog){filter.len, filter.code};
    return program;
}

// What a program that opens AMD's cards by the C library calls, led to the software card in a process of its own.
//
// Preloaded into a program, it answers for /dev/kfd and /dev/dri/renderD*: their requests go as messages of
// tg_hcq.simulate.amd.kfd.messages to a process that is started when the first of them is opened, and mmap maps the
// pages that come back. Files of sysfs are texts in a folder. Everything else is the C library's.
//
// Environment: AMD_CLIENT_TREE, the folder whose sys/… stands for /sys/…; AMD_CLIENT_PYTHON, AMD_CLIENT_ARCH and
// AMD_CLIENT_KFD, what the other process is started with; AMD_CLIENT_LOG, set to print each request.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHANNEL, EXISTS, LIST, TEXT, OPEN, IOCTL, MMAP, CLOSE };
enum { MOST = 1 << 16, FILES = 4096 };

struct request {
  uint32_t call, file;
  uint64_t first, second;
  char path[256];
};
struct answer {
  uint32_t error, zero;
  uint64_t result;
  char text[MOST];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int control = -1;
static pid_t owner;
static __thread int channel = -1;
static int files[FILES];  // of each descriptor, the other process' file and one; 0 for none

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

static int sent(int to, const void *data, size_t nbytes, int descriptor) {
  char space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {(void *)data, nbytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor >= 0) {
    message.msg_control = space, message.msg_controllen = sizeof space;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)nbytes;
}

static void start_server(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) abort();
  owner = getpid();
  int caller = (int)syscall(SYS_pidfd_open, owner, 0), memory = REAL(open)("/proc/self/mem", O_RDWR);
  if (caller < 0 || memory < 0) abort();
  char numbers[3][12];
  snprintf(numbers[0], 12, "%d", ends[1]);
  snprintf(numbers[1], 12, "%d", caller);
  snprintf(numbers[2], 12, "%d", memory);
  pid_t child = fork();
  if (child == 0) {
    unsetenv("LD_PRELOAD");
    REAL(close)(ends[0]);
    fcntl(caller, F_SETFD, 0);
    execl(getenv("AMD_CLIENT_PYTHON"), getenv("AMD_CLIENT_PYTHON"), "-m", "tg_hcq.simulate.amd.kfd.server", getenv("AMD_CLIENT_ARCH"), "1",
          numbers[0], numbers[1], numbers[2], getenv("AMD_CLIENT_KFD"), (char *)0);
    _exit(127);
  }
  REAL(close)(ends[1]);
  REAL(close)(caller);
  REAL(close)(memory);
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  control = ends[0];
}

// Has the other process execute a call; the result, or -1 with errno. A descriptor that comes along is put to *given.
static int64_t ask(struct request *what, int *given) {
  pthread_mutex_lock(&lock);
  if (control < 0) start_server();
  if (owner == getpid() && channel < 0) {
    int ends[2];
    struct request begin = {.call = CHANNEL};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) abort();
    if (sent(control, &begin, 24, ends[1])) channel = ends[0];
    REAL(close)(ends[1]);
  }
  pthread_mutex_unlock(&lock);
  static __thread struct answer found;
  char space[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&found, sizeof found};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  ssize_t count = -1;
  if (owner == getpid() && channel >= 0 && sent(channel, what, 24 + strlen(what->path), -1))
    do count = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
  if (count < 16) {
    errno = ENODEV;
    return -1;
  }
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  int came = -1;
  if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&came, CMSG_DATA(head), sizeof came);
  if (given) *given = came;
  if (getenv("AMD_CLIENT_LOG"))
    fprintf(stderr, "amd_client: call %u %s file %u %#lx %#lx: %d %.*s\n", what->call, what->path, what->file,
            (long)what->first, (long)what->second, found.error, (int)(count - 16), found.text);
  if (found.error) {
    errno = (int)found.error;
    return -1;
  }
  return (int64_t)found.result;
}

static const char *led(const char *path, char *space) {
  if (strncmp(path, "/sys/devices/virtual/kfd/", 25) && strncmp(path, "/sys/class/kfd/", 15)) return path;
  const char *rest = strstr(path + 10, "/kfd/") + 5;
  snprintf(space, PATH_MAX, "%s/%s", getenv("AMD_CLIENT_TREE"), rest);
  return space;
}

static int is_node(const char *path) {
  return strcmp(path, "/dev/kfd") == 0 || strncmp(path, "/dev/dri/renderD", 16) == 0;
}

static int file_of(int fd) {
  return fd >= 0 && fd < FILES ? files[fd] - 1 : -1;
}

static int opened(const char *path, int flags, mode_t mode) {
  char space[PATH_MAX];
  if (!is_node(path)) return REAL(open)(led(path, space), flags, mode);
  int fd = REAL(open)("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 || fd >= FILES) abort();
  struct request what = {.call = OPEN, .first = (uint64_t)fd};
  snprintf(what.path, sizeof what.path, "%s", path);
  int64_t file = ask(&what, 0);
  if (file < 0) {
    int error = errno;
    REAL(close)(fd);
    errno = error;
    return -1;
  }
  files[fd] = (int)file + 1;
  return fd;
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened(path, flags, mode);
}

int __open_2(const char *path, int flags) { return opened(path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(path, flags, 0); }

FILE *fopen(const char *path, const char *mode) {
  char space[PATH_MAX];
  return REAL(fopen)(led(path, space), mode);
}

FILE *fopen64(const char *path, const char *mode) {
  char space[PATH_MAX];
  return REAL(fopen64)(led(path, space), mode);
}

DIR *opendir(const char *path) {
  char space[PATH_MAX];
  return REAL(opendir)(led(path, space));
}

// The kernel's module is there as far as anybody asks.
FILE *popen(const char *command, const char *mode) {
  return REAL(popen)(strstr(command, "lsmod") ? "echo amdgpu 1 0" : command, mode);
}

int ioctl(int fd, unsigned long number, ...) {
  va_list more;
  va_start(more, number);
  void *argument = va_arg(more, void *);
  va_end(more);
  int file = file_of(fd);
  if (file < 0) return REAL(ioctl)(fd, number, argument);
  struct request what = {.call = IOCTL, .file = (uint32_t)file, .first = number, .second = (uint64_t)argument};
  return (int)ask(&what, 0);
}

static void *mapped(void *address, size_t nbytes, int prot, int flags, int fd, off_t offset) {
  int file = flags & MAP_ANONYMOUS ? -1 : file_of(fd), pages = -1;
  if (file < 0) return REAL(mmap)(address, nbytes, prot, flags, fd, offset);
  // The thunk maps what no host sees for debuggers, so that nobody may access it: that takes no pages.
  if (prot == PROT_NONE) return REAL(mmap)(address, nbytes, prot, (flags & MAP_FIXED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct request what = {.call = MMAP, .file = (uint32_t)file, .first = nbytes, .second = (uint64_t)offset};
  int64_t place = ask(&what, &pages);
  if (place < 0) return MAP_FAILED;
  void *found = REAL(mmap)(address, nbytes, prot, flags, pages, place & ~1L);
  if (found != MAP_FAILED && !(place & 1)) madvise(found, nbytes, MADV_DONTFORK);
  REAL(close)(pages);
  return found;
}

void *mmap(void *address, size_t nbytes, int prot, int flags, int fd, off_t offset) {
  return mapped(address, nbytes, prot, flags, fd, offset);
}

void *mmap64(void *address, size_t nbytes, int prot, int flags, int fd, off64_t offset) {
  return mapped(address, nbytes, prot, flags, fd, offset);
}

int close(int fd) {
  int file = file_of(fd);
  if (file >= 0) {
    struct request what = {.call = CLOSE, .file = (uint32_t)file};
    files[fd] = 0;
    ask(&what, 0);
  }
  return REAL(close)(fd);
}

/*
 * The recorder: preloaded into a process, it logs what that process does to the files of one directory, in order, and can make
 * one of those calls fail or be the last one. It changes nothing unless it was told to ("arm").
 *
 * Environment: SHIM_DIR, the directory (absolute, no links, no trailing slash); SHIM_LOG, the log to append to;
 * without a log, faults only.
 *
 * A log record is { op u8, 0 u8, name length u16, data length u32, offset u64 } in host order, then name, then data. A record is
 * written after its call succeeded and before the caller gets its answer; one lock is held over both, so the log is the order.
 *
 * Writing to descriptor 1000 reaches the shim instead of a file. Text that begins with '!' is an order, all else is a mark ('m'):
 *   !arm <class> <nth> <action> <times>   class: write | sync | any; action: errno's number, "short" or "kill"
 *   !disarm
 *   !struck                               fails with ENOENT unless the armed fault has come
 * The nth call of the class from now on, and as many after it as `times` says, fail that way. "kill" ends the process right after
 * the call has succeeded: a write that was made and never answered. "-shm" is left alone: it is shared memory, rebuilt by SQLite.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MARK_FD 1000
enum action { PASS, FAIL, SHORT, KILL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[1024];
static size_t directory_length;
static int log_fd = -1;

static char armed_class; /* 'w', 's', 'a' (any), or 0 for none */
static enum action armed_action;
static int armed_errno;
static long calls, armed_first, armed_last;

__attribute__((constructor)) static void start(void) {
  const char *dir = getenv("SHIM_DIR"), *log = getenv("SHIM_LOG");
  if (dir) directory_length = (size_t)snprintf(directory, sizeof directory, "%s/", dir);
  if (log) log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The name of a path inside the directory; "." for the directory itself; NULL for what is not ours to see. */
static const char *name_of_path(const char *path) {
  if (!directory_length || !path) return NULL;
  if (!strncmp(path, directory, directory_length - 1) && path[directory_length - 1] == 0) return ".";
  if (strncmp(path, directory, directory_length)) return NULL;
  const char *name = path + directory_length;
  size_t length = strlen(name);
  return length > 4 && !strcmp(name + length - 4, "-shm") ? NULL : name;
}

static const char *name_of_fd(int fd, char *buffer, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, size - 1);
  if (length <= 0) return NULL;
  buffer[length] = 0;
  return name_of_path(buffer);
}

static void record(char op, const char *name, const void *data, size_t data_length, uint64_t offset) {
  if (log_fd < 0) return;
  uint8_t head[16] = {(uint8_t)op};
  uint16_t name_length = (uint16_t)strlen(name);
  uint32_t length = (uint32_t)data_length;
  memcpy(head + 2, &name_length, 2);
  memcpy(head + 4, &length, 4);
  memcpy(head + 8, &offset, 8);
  struct iovec parts[3] = {{head, 16}, {(void *)name, name_length}, {(void *)data, data_length}};
  ssize_t written = syscall(SYS_writev, log_fd, parts, 3);
  if (written != (ssize_t)(16 + name_length + data_length)) abort(); /* A log with a hole proves nothing. */
}

static enum action next_action(char class) {
  if (!armed_class || (armed_class != 'a' && armed_class != class)) return PASS;
  calls++;
  return calls >= armed_first && calls <= armed_last ? armed_action : PASS;
}

static void killed(void) { syscall(SYS_kill, syscall(SYS_getpid), SIGKILL); }

static void obey(const char *order) {
  char class[16], action[16];
  long nth, times;
  calls = 0, armed_class = 0;
  if (sscanf(order, "!arm %15s %ld %15s %ld", class, &nth, action, &times) != 4) return;
  armed_first = nth, armed_last = nth + times - 1, armed_errno = atoi(action), armed_class = class[0];
  armed_action = !strcmp(action, "short") ? SHORT : !strcmp(action, "kill") ? KILL : FAIL;
}

static ssize_t mark(const char *data, size_t length) {
  char text[128] = {0};
  pthread_mutex_lock(&lock);
  if (length && data[0] == '!') {
    memcpy(text, data, length < sizeof text ? length : sizeof text - 1);
    int struck = armed_class && calls >= armed_first, asked = !strcmp(text, "!struck");
    if (!asked) obey(text);
    pthread_mutex_unlock(&lock);
    if (!asked || struck) return (ssize_t)length;
    errno = ENOENT;
    return -1;
  }
  record('m', "", data, length, 0);
  pthread_mutex_unlock(&lock);
  return (ssize_t)length;
}

static ssize_t written(int fd, const void *data, size_t length, off_t offset, int at_offset) {
  char buffer[1200];
  const char *name = name_of_fd(fd, buffer, sizeof buffer);
  if (!name) return at_offset ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
  pthread_mutex_lock(&lock);
  enum action action = next_action('w');
  ssize_t result = -1;
  int error = armed_errno;
  if (action == SHORT && length > 1) length /= 2;
  if (!at_offset) offset = syscall(SYS_lseek, fd, 0, SEEK_CUR);
  if (action != FAIL) {
    result = at_offset ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
    error = errno;
    if (result >= 0) record('w', name, data, (size_t)result, (uint64_t)offset);
  }
  if (action == KILL) killed();
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

static int synced(int fd, long call) {
  char buffer[1200];
  const char *name = name_of_fd(fd, buffer, sizeof buffer);
  if (!name) return (int)syscall(call, fd);
  pthread_mutex_lock(&lock);
  enum action action = next_action('s');
  /* A failed sync is not made, and recorded as 'f': what it should have saved may be gone for good. */
  int result = action == FAIL ? -1 : (int)syscall(call, fd), error = action == FAIL ? armed_errno : errno;
  record(result == 0 ? 's' : 'f', name, "", 0, 0);
  if (action == KILL) killed();
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

static int truncated(int fd, off_t length) {
  char buffer[1200];
  const char *name = name_of_fd(fd, buffer, sizeof buffer);
  if (!name) return (int)syscall(SYS_ftruncate, fd, length);
  pthread_mutex_lock(&lock);
  enum action action = next_action('w');
  if (action == FAIL && armed_errno == ENOSPC) action = PASS; /* Truncating needs no space. */
  int result = action == FAIL ? -1 : (int)syscall(SYS_ftruncate, fd, length), error = action == FAIL ? armed_errno : errno;
  if (result == 0) record('t', name, "", 0, (uint64_t)length);
  if (action == KILL) killed();
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

static int opened(int at, const char *path, int flags, mode_t mode) {
  const char *name = name_of_path(path);
  if (!name || !(flags & (O_CREAT | O_TRUNC))) return (int)syscall(SYS_openat, at, path, flags, mode);
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_openat, at, path, flags, mode), error = errno;
  if (result >= 0) record('c', name, "", 0, flags & O_TRUNC ? 1 : 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

/* Without a target: unlinked. */
static int renamed_at(const char *from, const char *to) {
  if (!to) return (int)syscall(SYS_unlinkat, AT_FDCWD, from, 0);
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int renamed(const char *from, const char *to) {
  const char *name = name_of_path(from), *target = to ? name_of_path(to) : NULL;
  if (!name) return renamed_at(from, to);
  pthread_mutex_lock(&lock);
  int result = renamed_at(from, to), error = errno;
  if (result == 0) record(to ? 'r' : 'u', name, target ? target : "", target ? strlen(target) : 0, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

#define MODE(last) (__extension__({ va_list list; va_start(list, last); mode_t m = (mode_t)va_arg(list, int); va_end(list); m; }))
int open(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int open64(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int openat(int at, const char *path, int flags, ...) { return opened(at, path, flags, MODE(flags)); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return written(fd, data, length, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) { return written(fd, data, length, offset, 1); }
ssize_t write(int fd, const void *data, size_t length) {
  return fd == MARK_FD ? mark(data, length) : written(fd, data, length, 0, 0);
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
int ftruncate(int fd, off_t length) { return truncated(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncated(fd, length); }
int unlink(const char *path) { return renamed(path, NULL); }
int rename(const char *from, const char *to) { return renamed(from, to); }

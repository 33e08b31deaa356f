/*
 * Preloaded into a program, it adds one offset to the wall clock that the program reads, and another one to the time since
 * the start of the machine, also in /proc/uptime; the monotonic clock stays true. The offsets, in microseconds, are the
 * two 64-bit numbers of the file that SIGNALBOX_CLOCK names.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WALL, UPTIME, OFFSETS };

static volatile int64_t *offsets;

__attribute__((constructor)) static void map_offsets(void) {
  const char *path = getenv("SIGNALBOX_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, OFFSETS * sizeof *offsets, PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) offsets = memory;
  close(file);
}

static void add(struct timespec *time, int64_t microseconds) {
  int64_t nanoseconds = time->tv_nsec + microseconds % 1000000 * 1000;
  time->tv_sec += microseconds / 1000000 + nanoseconds / 1000000000;
  time->tv_nsec = nanoseconds % 1000000000;
  if (time->tv_nsec < 0) {
    time->tv_nsec += 1000000000;
    time->tv_sec--;
  }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = syscall(SYS_clock_gettime, clock, time);
  if (failed || !offsets) return failed;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) add(time, offsets[WALL]);
  if (clock == CLOCK_BOOTTIME) add(time, offsets[UPTIME]);
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

/* A file with what Linux writes into /proc/uptime: whole hundredths of a second, and the idle time, which is not read. */
static int open_uptime(void) {
  struct timespec now;
  int file = memfd_create("uptime", MFD_CLOEXEC);
  if (file < 0 || clock_gettime(CLOCK_BOOTTIME, &now)) return -1;
  dprintf(file, "%lld.%02ld 0.00\n", (long long)now.tv_sec, now.tv_nsec / 10000000);
  lseek(file, 0, SEEK_SET);
  return file;
}

static int open_any(const char *path, int flags, mode_t mode) {
  if (offsets && strcmp(path, "/proc/uptime") == 0) return open_uptime();
  return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* A mode is given only where a file may be created. */
#define OPEN(name)                                                   \
  int name(const char *path, int flags, ...) {                       \
    va_list rest;                                                    \
    va_start(rest, flags);                                           \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                    \
    return open_any(path, flags, mode);                              \
  }

OPEN(open)
OPEN(open64)

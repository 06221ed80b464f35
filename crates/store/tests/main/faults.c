/* Stands between the store and its disk. Loaded before the C library (LD_PRELOAD) by tests.
 *
 * A folder named by STORE_FAULTS holds the orders, each a file that is read whenever it counts:
 *
 *   kill_before_commit  "n": killed before the n-th commit that is written
 *   fail_commits        "errno first count": these commits cannot be written, counted from 1
 *   fail_syncs          "errno first count": the same for syncs of the log
 *   syncs               each sync of the log adds a byte to it
 *   synced/             files of the store as they were when they were last synced: what a power
 *                       cut leaves at least
 *
 * A commit is the frame of the write-ahead log that names the size of the file. Counting begins when
 * the order is there and begins anew when it changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct order {
  const char *name;
  char text[64];
  int seen;
};

static struct order kill_before_commit = {"kill_before_commit", "", 0};
static struct order fail_commits = {"fail_commits", "", 0};
static struct order fail_syncs = {"fail_syncs", "", 0};

static int ends_with(const char *name, const char *end) {
  size_t length = strlen(name), tail = strlen(end);
  return length >= tail && !strcmp(name + length - tail, end);
}

static int name_of(int fd, char *name, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, size - 1);
  if (length < 0) return 0;
  name[length] = 0;
  return 1;
}

static int open_below(const char *name, int flags) {
  char path[4096];
  const char *folder = getenv("STORE_FAULTS");
  if (!folder) return -1;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return open(path, flags | O_CLOEXEC, 0600);
}

/* How often this order has counted so far, 0 if there is none. */
static int count(struct order *order) {
  char text[sizeof order->text] = "";
  int fd = open_below(order->name, O_RDONLY);
  if (fd < 0) {
    order->text[0] = 0;
    return 0;
  }
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length > 0 ? length : 0] = 0;
  if (strcmp(text, order->text)) {
    strcpy(order->text, text);
    order->seen = 0;
  }
  return text[0] ? ++order->seen : 0;
}

/* The error to answer with, or 0. */
static int failure(struct order *order) {
  int error = 0, first = 0, many = 0, seen = count(order);
  if (!seen || sscanf(order->text, "%d %d %d", &error, &first, &many) != 3) return 0;
  return seen >= first && seen < first + many ? error : 0;
}

static int before_write(int fd, const unsigned char *frame, size_t size) {
  char name[4096];
  if (size != 24 || !(frame[4] | frame[5] | frame[6] | frame[7])) return 0;
  if (!name_of(fd, name, sizeof name) || !ends_with(name, "-wal")) return 0;
  pthread_mutex_lock(&lock);
  int seen = count(&kill_before_commit);
  if (seen && seen >= atoi(kill_before_commit.text)) kill(getpid(), SIGKILL);
  int error = failure(&fail_commits);
  pthread_mutex_unlock(&lock);
  return error;
}

static void keep(const char *name) {
  static char block[1 << 16];
  char path[4096], aside[4200];
  const char *folder = getenv("STORE_FAULTS"), *base = strrchr(name, '/');
  int from = open(name, O_RDONLY | O_CLOEXEC);
  if (from < 0 || !folder) return;
  snprintf(path, sizeof path, "%s/synced%s", folder, base);
  snprintf(aside, sizeof aside, "%s.aside", path);
  int to = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  static ssize_t (*put)(int, const void *, size_t);
  if (!put) put = dlsym(RTLD_NEXT, "write");
  ssize_t length;
  while (to >= 0 && (length = read(from, block, sizeof block)) > 0)
    if (put(to, block, length) != length) abort();
  if (to >= 0) close(to), rename(aside, path);
  close(from);
}

static int before_sync(int fd) {
  char name[4096];
  int error = 0;
  if (!getenv("STORE_FAULTS") || !name_of(fd, name, sizeof name)) return 0;
  int log = ends_with(name, "-wal");
  if (!log && !ends_with(name, ".db")) return 0;
  pthread_mutex_lock(&lock);
  if (log) {
    int syncs = open_below("syncs", O_WRONLY | O_APPEND);
    if (syncs >= 0) {
      static ssize_t (*put)(int, const void *, size_t);
      if (!put) put = dlsym(RTLD_NEXT, "write");
      if (put(syncs, "s", 1) != 1) abort();
      close(syncs);
    }
    error = failure(&fail_syncs);
  }
  if (!error) keep(name);
  pthread_mutex_unlock(&lock);
  return error;
}

#define OR_FAIL(check)  \
  do {                  \
    int error = check;  \
    if (error) {        \
      errno = error;    \
      return -1;        \
    }                   \
  } while (0)

ssize_t write(int fd, const void *bytes, size_t size) {
  static ssize_t (*next)(int, const void *, size_t);
  if (!next) next = dlsym(RTLD_NEXT, "write");
  OR_FAIL(before_write(fd, bytes, size));
  return next(fd, bytes, size);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  static ssize_t (*next)(int, const void *, size_t, off64_t);
  if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
  OR_FAIL(before_write(fd, bytes, size));
  return next(fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  return pwrite64(fd, bytes, size, at);
}

int fsync(int fd) {
  static int (*next)(int);
  if (!next) next = dlsym(RTLD_NEXT, "fsync");
  OR_FAIL(before_sync(fd));
  return next(fd);
}

int fdatasync(int fd) {
  static int (*next)(int);
  if (!next) next = dlsym(RTLD_NEXT, "fdatasync");
  OR_FAIL(before_sync(fd));
  return next(fd);
}

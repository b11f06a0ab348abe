/* What the mock engine and the load generator share: the clock, sockets, and the head of an HTTP/1.1 message. */
#ifndef RIG_HTTP_H
#define RIG_HTTP_H

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct text {
  char *at;
  size_t len;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) die("out of memory: %zu bytes", bytes);
  return memory;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A benchmark that is killed must leave no server behind. */
static void die_with_parent(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
}

static void no_delay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static struct text read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die("cannot open %s: %s", path, strerror(errno));
  fseek(file, 0, SEEK_END);
  struct text text = {.len = (size_t)ftell(file)};
  rewind(file);
  text.at = allocate(text.len + 1);
  if (fread(text.at, 1, text.len, file) != text.len) die("cannot read %s", path);
  fclose(file);
  return text;
}

/* Cuts a file into its lines, without their newlines; a last line without one counts too. */
static struct text *lines_of(struct text file, size_t *count) {
  size_t room = 1;
  for (size_t i = 0; i < file.len; i++) room += file.at[i] == '\n';
  struct text *lines = allocate(room * sizeof *lines);
  *count = 0;
  for (char *at = file.at, *end = file.at + file.len; at < end;) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    char *stop = newline ? newline : end;
    if (stop > at) lines[(*count)++] = (struct text){at, (size_t)(stop - at)};
    at = stop + 1;
  }
  return lines;
}

/* Length of the head with its blank line, or 0 while it is incomplete. */
static size_t head_length(const char *at, size_t len) {
  const char *end = memmem(at, len, "\r\n\r\n", 4);
  return end ? (size_t)(end - at) + 4 : 0;
}

/* Value of a header within a complete head, or NULL; `name` comes with its colon, in lower case. */
static const char *header(const char *head, size_t len, const char *name) {
  size_t name_len = strlen(name);
  for (const char *at = head, *end = head + len; at && at + name_len < end;) {
    if (strncasecmp(at, name, name_len) == 0) {
      for (at += name_len; *at == ' ' || *at == '\t';) at++;
      return at;
    }
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  return NULL;
}

/* One command-line option: `--name VALUE`, or `fallback` where it is not given. */
static const char *option(int argc, char **argv, const char *name, const char *fallback) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  if (!fallback) die("%s needs %s", argv[0], name);
  return fallback;
}

#endif

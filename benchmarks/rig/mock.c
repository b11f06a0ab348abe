/* An engine that costs next to nothing: answers chat completions from memory, at once or paced, on one core.
 *
 *   mock --json FILE --stream FILE [--ttft-us N] [--itl-us N] [--port N]
 *
 * FILE of --json is the body of every plain answer. FILE of --stream holds one event's data a line; it is sent
 * when the first 512 bytes of the request's body hold "stream":true. As real engines do, the first write carries
 * the role and the first token, each further write one event, and the last one the finish, the usage and [DONE].
 * With --ttft-us 0 and --itl-us 0 the writes go out back to back. A GET of any path lists the one model.
 * Prints its port on stdout when it listens. */
#include "http.h"

enum { MAX_FD = 4096, OPENING_EVENTS = 2, CLOSING_EVENTS = 3, PEEK = 512 };

/* What is written to answer a request: pieces of constant memory, each in one write. */
struct answer {
  struct text *pieces;
  size_t count;
  uint64_t first_ns, gap_ns;
};

struct connection {
  int fd;
  struct text in;      /* bytes read and not yet consumed */
  size_t room;         /* size of the memory at in.at */
  size_t request_len;  /* head and body of the request being read; 0 until its head is complete */
  size_t head_len;
  const struct answer *answer; /* NULL: nothing to write */
  size_t piece, written;
  uint64_t due; /* when the next piece may go out; 0: now */
  int wants_write;
};

static struct connection *connections[MAX_FD];
static int epoll_fd, timer_fd, highest_fd;
static struct answer plain, streamed, models;

static struct text format_text(const char *format, ...) {
  char *at;
  va_list args;
  va_start(args, format);
  int len = vasprintf(&at, format, args);
  va_end(args);
  if (len < 0) die("out of memory");
  return (struct text){at, (size_t)len};
}

static struct answer json_answer(struct text body) {
  struct text *piece = allocate(sizeof *piece);
  *piece = format_text(
      "HTTP/1.1 200 OK\r\nServer: mock\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.*s", body.len,
      (int)body.len, body.at);
  return (struct answer){piece, 1, 0, 0};
}

static struct answer stream_answer(struct text file, uint64_t first_ns, uint64_t gap_ns) {
  size_t count;
  struct text *events = lines_of(file, &count);
  if (count <= OPENING_EVENTS + CLOSING_EVENTS) die("--stream needs more than %d events", OPENING_EVENTS + CLOSING_EVENTS);
  struct answer answer = {allocate(count * sizeof(struct text)), 0, first_ns, gap_ns};
  struct text piece = format_text(
      "HTTP/1.1 200 OK\r\nServer: mock\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0; i < count; i++) {
    size_t framed = events[i].len + strlen("data: \n\n");
    struct text joined = format_text("%.*s%zx\r\ndata: %.*s\n\n\r\n%s", (int)piece.len, piece.at, framed,
                                     (int)events[i].len, events[i].at, i + 1 == count ? "0\r\n\r\n" : "");
    free(piece.at);
    piece = joined;
    int opening = i + 1 < OPENING_EVENTS, closing = i + CLOSING_EVENTS >= count && i + 1 < count;
    if (!opening && !closing) {
      answer.pieces[answer.count++] = piece;
      piece = format_text("%s", "");
    }
  }
  free(piece.at);
  return answer;
}

static void hang_up(struct connection *c) {
  connections[c->fd] = NULL;
  close(c->fd);
  free(c->in.at);
  free(c);
}

static void watch(struct connection *c, int wants_write) {
  if (c->wants_write == wants_write) return;
  c->wants_write = wants_write;
  struct epoll_event event = {.events = EPOLLIN | (wants_write ? (uint32_t)EPOLLOUT : 0), .data.fd = c->fd};
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

/* Takes a complete request off the buffer and chooses its answer; 1 when there was one, -1 when it is no HTTP. */
static int take_request(struct connection *c) {
  if (!c->request_len) {
    c->head_len = head_length(c->in.at, c->in.len);
    if (!c->head_len) return c->in.len < 65536 ? 0 : -1;
    if (header(c->in.at, c->head_len, "transfer-encoding:")) return -1; /* gateways know the length they forward */
    const char *length = header(c->in.at, c->head_len, "content-length:");
    c->request_len = c->head_len + (length ? strtoul(length, NULL, 10) : 0);
  }
  if (c->in.len < c->request_len) return 0;
  const char *body = c->in.at + c->head_len;
  size_t peek = c->request_len - c->head_len;
  if (peek > PEEK) peek = PEEK;
  int stream = memmem(body, peek, "\"stream\":true", 13) || memmem(body, peek, "\"stream\": true", 14);
  c->answer = c->in.at[0] == 'G' ? &models : stream ? &streamed : &plain;
  c->piece = c->written = 0;
  c->due = c->answer->first_ns ? now_ns() + c->answer->first_ns : 0;
  c->in.len -= c->request_len;
  memmove(c->in.at, c->in.at + c->request_len, c->in.len);
  c->request_len = 0;
  return 1;
}

/* Writes what is due; returns -1 when the peer is gone. */
static int write_due(struct connection *c) {
  while (c->answer) {
    if (c->due && c->due > now_ns()) return watch(c, 0), 0;
    struct text piece = c->answer->pieces[c->piece];
    ssize_t n = send(c->fd, piece.at + c->written, piece.len - c->written, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN ? (watch(c, 1), 0) : -1;
    c->written += (size_t)n;
    if (c->written < piece.len) continue;
    c->written = 0;
    if (c->due) c->due += c->answer->gap_ns;
    if (++c->piece == c->answer->count) c->answer = NULL;
  }
  return watch(c, 0), 0;
}

static int serve(struct connection *c) {
  for (;;) {
    if (write_due(c) < 0) return -1;
    if (c->answer) return 0;
    int taken = take_request(c);
    if (taken <= 0) return taken;
  }
}

static int read_more(struct connection *c) {
  size_t wanted = c->request_len > c->in.len + 16384 ? c->request_len : c->in.len + 16384;
  if (c->room < wanted) {
    c->in.at = realloc(c->in.at, wanted);
    if (!c->in.at) die("out of memory: %zu bytes", wanted);
    c->room = wanted;
  }
  ssize_t n = recv(c->fd, c->in.at + c->in.len, c->room - c->in.len, 0);
  if (n < 0) return errno == EAGAIN ? 0 : -1;
  if (n == 0) return -1;
  c->in.len += (size_t)n;
  return 0;
}

static void accept_all(int listener) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    if (fd >= MAX_FD) {
      close(fd);
      continue;
    }
    no_delay(fd);
    struct connection *c = allocate(sizeof *c);
    c->fd = fd;
    connections[fd] = c;
    if (fd > highest_fd) highest_fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
  }
}

/* Serves every connection that is due and sets the timer to the next one. */
static void tick(void) {
  uint64_t next = 0, now = now_ns();
  for (int fd = 0; fd <= highest_fd; fd++) {
    struct connection *c = connections[fd];
    if (c && c->answer && c->due && c->due <= now && serve(c) < 0) hang_up(c);
    c = connections[fd];
    if (c && c->answer && c->due && (!next || c->due < next)) next = c->due;
  }
  struct itimerspec at = {.it_value = {.tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)}};
  timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int listen_on(int port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = loopback(port);
  socklen_t len = sizeof address;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, len) < 0 || listen(listener, 1024) < 0)
    die("cannot listen on port %d: %s", port, strerror(errno));
  getsockname(listener, (struct sockaddr *)&address, &len);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

int main(int argc, char **argv) {
  die_with_parent();
  uint64_t ttft = strtoul(option(argc, argv, "--ttft-us", "0"), NULL, 10) * 1000;
  uint64_t itl = strtoul(option(argc, argv, "--itl-us", "0"), NULL, 10) * 1000;
  plain = json_answer(read_file(option(argc, argv, "--json", NULL)));
  streamed = stream_answer(read_file(option(argc, argv, "--stream", NULL)), ttft, itl);
  models = json_answer(format_text("%s", "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\"}]}"));
  int paced = ttft || itl;
  int listener = listen_on((int)strtoul(option(argc, argv, "--port", "0"), NULL, 10));
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
  event.data.fd = timer_fd;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event);
  for (struct epoll_event events[256];;) {
    int ready = epoll_wait(epoll_fd, events, 256, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        accept_all(listener);
        continue;
      }
      struct connection *c = fd == timer_fd ? NULL : connections[fd];
      if (!c) continue; /* the timer: tick() below serves what is due */
      int gone = (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && read_more(c) < 0;
      if (gone || serve(c) < 0) hang_up(c);
    }
    if (paced) tick();
  }
}

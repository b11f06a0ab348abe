/* A closed loop of chat completions over kept-alive connections, on one core; checks every byte of every answer.
 *
 *   load --port N --connections N --seconds S --requests N --corpus FILE --turns K --expect FILE --mark N [--key KEY]
 *
 * The corpus holds one JSON body a line; each K lines are the turns of one conversation. A connection plays a
 * conversation turn by turn, then the next one. The MARKER in each body becomes 16 hex digits that are new for each
 * conversation played, so that no conversation is ever seen twice. The body of each answer, freed of its chunks, must
 * equal the file --expect; the first token counts as received when the first --mark bytes of it have arrived. An
 * empty --expect takes any answer that is 200 and has a body, for gateways that write answers anew.
 * After S seconds or N requests nothing new is sent and the answers in flight are awaited.
 * Prints one JSON object; any wrong answer ends the run with status 1 and says what came instead. */
#include "http.h"

#include <fcntl.h>
#include <sys/uio.h>

#define MARKER "@@conversation@@"
enum { MARKER_LEN = 16, HEAD_ROOM = 8192, READ_ROOM = 262144, PIECES = 4, GRACE_SECONDS = 15 };

enum phase { IDLE, HEAD, PLAIN_BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER };

struct connection {
  int fd;
  size_t conversation, turn;
  char id[MARKER_LEN + 1];
  struct iovec out[PIECES];
  int out_next, wants_write;
  char request_head[512], head[HEAD_ROOM];
  size_t head_len;
  enum phase phase;
  size_t left;    /* bytes left of the plain body or of the chunk */
  size_t line_len; /* of the chunk-size or trailer line read so far */
  size_t seen;    /* bytes of the answer's body so far */
  uint64_t started, first;
};

struct samples {
  uint64_t *at;
  size_t count, room;
};

static struct {
  int epoll_fd, port;
  size_t turns, conversations, limit, sent, in_flight, mark;
  uint64_t deadline, next_id;
  const char *key;
  struct text *bodies, expect;
  struct samples latency, first;
} run;

static void keep(struct samples *samples, uint64_t value) {
  if (samples->count == samples->room) {
    samples->room = samples->room ? samples->room * 2 : 65536;
    samples->at = realloc(samples->at, samples->room * sizeof *samples->at);
    if (!samples->at) die("out of memory");
  }
  samples->at[samples->count++] = value;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Nearest-rank percentile of sorted samples, in microseconds. */
static double percentile(const struct samples *samples, double share) {
  if (!samples->count) return 0;
  size_t rank = (size_t)(share * (double)samples->count + 0.999999);
  return (double)samples->at[rank ? rank - 1 : 0] / 1000.0;
}

static void flush_out(struct connection *c) {
  while (c->out_next < PIECES) {
    ssize_t n = writev(c->fd, c->out + c->out_next, PIECES - c->out_next);
    if (n < 0 && errno != EAGAIN) die("the server closed a connection while a request was sent: %s", strerror(errno));
    if (n < 0) break;
    for (; c->out_next < PIECES && (size_t)n >= c->out[c->out_next].iov_len; c->out_next++)
      n -= (ssize_t)c->out[c->out_next].iov_len;
    if (c->out_next < PIECES) {
      c->out[c->out_next].iov_base = (char *)c->out[c->out_next].iov_base + n;
      c->out[c->out_next].iov_len -= (size_t)n;
    }
  }
  int wants_write = c->out_next < PIECES;
  if (wants_write == c->wants_write) return;
  c->wants_write = wants_write;
  struct epoll_event event = {.events = EPOLLIN | (wants_write ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(run.epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void send_next(struct connection *c) {
  if (run.sent >= run.limit || now_ns() >= run.deadline) return;
  if (c->turn == 0) {
    snprintf(c->id, sizeof c->id, "%016llx", (unsigned long long)run.next_id++);
    c->conversation = (c->conversation + 1) % run.conversations;
  }
  struct text body = run.bodies[c->conversation * run.turns + c->turn];
  c->turn = (c->turn + 1) % run.turns;
  char *marker = memmem(body.at, body.len, MARKER, MARKER_LEN);
  if (!marker) die("a body of the corpus has no " MARKER);
  size_t before = (size_t)(marker - body.at), after = before + MARKER_LEN;
  int head = snprintf(c->request_head, sizeof c->request_head,
                      "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: application/json\r\n"
                      "Content-Type: application/json\r\nUser-Agent: load/1.0\r\nAuthorization: Bearer %s\r\n"
                      "Content-Length: %zu\r\n\r\n",
                      run.port, run.key, body.len);
  c->out[0] = (struct iovec){c->request_head, (size_t)head};
  c->out[1] = (struct iovec){body.at, before};
  c->out[2] = (struct iovec){c->id, MARKER_LEN};
  c->out[3] = (struct iovec){body.at + after, body.len - after};
  c->out_next = 0;
  c->phase = HEAD;
  c->head_len = c->seen = 0;
  c->first = 0;
  run.sent++;
  run.in_flight++;
  c->started = now_ns();
  flush_out(c);
}

static void finish(struct connection *c, uint64_t now) {
  if (run.expect.len ? c->seen != run.expect.len : !c->seen) die("an answer has %zu bytes, expected %zu", c->seen, run.expect.len);
  keep(&run.latency, now - c->started);
  keep(&run.first, c->first - c->started);
  run.in_flight--;
  c->phase = IDLE;
  send_next(c);
}

static void check_body(struct connection *c, const char *at, size_t len, uint64_t now) {
  if (run.expect.len && (c->seen + len > run.expect.len || memcmp(run.expect.at + c->seen, at, len) != 0))
    die("an answer differs from the expected one after byte %zu: %.*s", c->seen, (int)(len < 400 ? len : 400), at);
  c->seen += len;
  if (!c->first && c->seen >= run.mark) c->first = now;
}

/* Collects the head; returns how many of the bytes belong to it. */
static size_t take_head(struct connection *c, const char *at, size_t len) {
  size_t had = c->head_len, room = HEAD_ROOM - 1 - had, n = len < room ? len : room;
  memcpy(c->head + had, at, n);
  c->head_len += n;
  c->head[c->head_len] = 0;
  size_t head = head_length(c->head, c->head_len);
  if (!head) {
    if (c->head_len == HEAD_ROOM - 1) die("the head of an answer is larger than %d bytes", HEAD_ROOM);
    return n;
  }
  if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0) die("an answer is not 200: %.600s", c->head);
  const char *length = header(c->head, head, "content-length:");
  const char *encoding = header(c->head, head, "transfer-encoding:");
  if (!length && !encoding) die("an answer has neither a length nor chunks: %.600s", c->head);
  c->phase = encoding ? CHUNK_SIZE : PLAIN_BODY;
  c->left = length && !encoding ? strtoul(length, NULL, 10) : 0;
  c->line_len = 0;
  return head - had;
}

/* Takes one line of chunk framing, which may come in pieces; returns how many bytes it took. */
static size_t take_line(struct connection *c, const char *at, size_t len) {
  const char *newline = memchr(at, '\n', len);
  size_t n = newline ? (size_t)(newline - at) + 1 : len;
  if (c->line_len + n >= HEAD_ROOM) die("a line of chunk framing is longer than %d bytes", HEAD_ROOM);
  memcpy(c->head + c->line_len, at, n);
  c->line_len += n;
  if (!newline) return n;
  c->head[c->line_len] = 0;
  if (c->phase == CHUNK_SIZE) {
    c->left = strtoul(c->head, NULL, 16);
    c->phase = c->left ? CHUNK_DATA : TRAILER;
  } else if (c->phase == CHUNK_END) {
    c->phase = CHUNK_SIZE;
  } else if (c->line_len <= 2) {
    c->left = 0;
    c->phase = PLAIN_BODY; /* the blank line after the trailer: a body with nothing left */
  }
  c->line_len = 0;
  return n;
}

static void take(struct connection *c, const char *at, size_t len, uint64_t now) {
  while (len) {
    size_t n;
    if (c->phase == IDLE) die("the server sent bytes that no request asked for: %.*s", (int)(len < 400 ? len : 400), at);
    if (c->phase == HEAD) {
      n = take_head(c, at, len);
    } else if (c->phase == PLAIN_BODY || c->phase == CHUNK_DATA) {
      n = len < c->left ? len : c->left;
      check_body(c, at, n, now);
      c->left -= n;
      if (c->phase == CHUNK_DATA && !c->left) c->phase = CHUNK_END;
    } else {
      n = take_line(c, at, len);
    }
    at += n;
    len -= n;
    if (c->phase != PLAIN_BODY || c->left) continue;
    if (len) die("the server sent bytes after the end of an answer: %.*s", (int)(len < 400 ? len : 400), at);
    finish(c, now);
  }
}

static struct connection *connect_one(void) {
  struct connection *c = allocate(sizeof *c);
  struct sockaddr_in address = loopback(run.port);
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0)
    die("cannot connect to port %d: %s", run.port, strerror(errno));
  no_delay(c->fd);
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(run.epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
  return c;
}

static void loop(uint64_t give_up) {
  static char buffer[READ_ROOM];
  for (struct epoll_event events[256]; run.in_flight;) {
    int ready = epoll_wait(run.epoll_fd, events, 256, 1000);
    if (now_ns() > give_up) die("%zu answers had not ended %d s after the last request", run.in_flight, GRACE_SECONDS);
    for (int i = 0; i < ready; i++) {
      struct connection *c = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) flush_out(c);
      if (!(events[i].events & ~(uint32_t)EPOLLOUT)) continue;
      ssize_t n = recv(c->fd, buffer, READ_ROOM, 0);
      if (n < 0 && errno == EAGAIN) continue;
      if (n <= 0) die("the server closed a connection after %zu answers", run.latency.count);
      take(c, buffer, (size_t)n, now_ns());
    }
  }
}

int main(int argc, char **argv) {
  die_with_parent();
  size_t lines, connections = strtoul(option(argc, argv, "--connections", NULL), NULL, 10);
  double seconds = strtod(option(argc, argv, "--seconds", NULL), NULL);
  run.port = (int)strtoul(option(argc, argv, "--port", NULL), NULL, 10);
  run.limit = strtoul(option(argc, argv, "--requests", NULL), NULL, 10);
  run.turns = strtoul(option(argc, argv, "--turns", NULL), NULL, 10);
  run.mark = strtoul(option(argc, argv, "--mark", NULL), NULL, 10);
  run.key = option(argc, argv, "--key", "sk-none");
  if (strlen(run.key) > 200) die("--key is longer than a head has room for");
  run.expect = read_file(option(argc, argv, "--expect", NULL));
  run.bodies = lines_of(read_file(option(argc, argv, "--corpus", NULL)), &lines);
  if (!run.turns || lines % run.turns || !lines) die("the corpus has %zu lines, not a multiple of --turns", lines);
  run.conversations = lines / run.turns;
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  run.next_id = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
  run.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  struct connection **all = allocate(connections * sizeof *all);
  for (size_t i = 0; i < connections; i++) {
    all[i] = connect_one();
    all[i]->conversation = i % run.conversations;
  }
  uint64_t started = now_ns(), span = (uint64_t)(seconds * 1e9);
  run.deadline = started + span;
  for (size_t i = 0; i < connections; i++) send_next(all[i]);
  loop(run.deadline + GRACE_SECONDS * 1000000000ull);
  double took = (double)(now_ns() - started) / 1e9;
  qsort(run.latency.at, run.latency.count, sizeof(uint64_t), ascending);
  qsort(run.first.at, run.first.count, sizeof(uint64_t), ascending);
  printf("{\"answers\":%zu,\"seconds\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"first_p50_us\":%.1f,"
         "\"first_p99_us\":%.1f}\n",
         run.latency.count, took, percentile(&run.latency, 0.5), percentile(&run.latency, 0.99),
         percentile(&run.first, 0.5), percentile(&run.first, 0.99));
}

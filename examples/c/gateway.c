/* A small HTTP service (epoll, no framework) that limits each peer, and answers 429 with headers.
 *
 *     gateway PORT LIMITS [STORE]        gateway 8080 "5/10s window, 20/min" file:limits
 *
 * Port 0 takes any; the port is printed. Without STORE, counts end with the process. Ends cleanly
 * on SIGTERM or SIGINT. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tidegate.h>

enum { REQUEST = 4096, ANSWER = 2048, EVENTS = 64 };

/* A connection: what was read of its request, what is left of its answer, and whose it is. */
struct peer {
  int fd;
  size_t got, made, sent;
  tg_key key;
  char name[TG_IP_KEY_SIZE];
  char request[REQUEST];
  char answer[ANSWER];
};

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void hang_up(struct peer *peer) {
  close(peer->fd);
  free(peer);
}

/* One request is one hit. A request that can't be judged passes: a fault of the limiter should not
 * be an outage. */
static void answer(const tg_rule *rule, struct peer *peer) {
  tg_decision decision;
  char headers[1024] = "";
  size_t length = 0;
  int allowed = 1;
  if (tg_hit(rule, &peer->key, 1, &decision) == TG_STATUS_OK) {
    allowed = decision.allowed;
    if (tg_decision_headers(rule, &decision, TG_HEADERS_BOTH, headers, sizeof headers, &length) !=
        TG_STATUS_OK)
      headers[0] = '\0';
  } else {
    fprintf(stderr, "not limited: %s\n", tg_last_error());
  }
  const char *body = allowed ? "hello\n" : "too many requests\n";
  int made = snprintf(peer->answer, ANSWER,
                      "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      allowed ? "200 OK" : "429 Too Many Requests", headers, strlen(body), body);
  peer->made = made > 0 && made < ANSWER ? (size_t)made : 0;
}

/* 1 while the connection is to go on. */
static int serve(const tg_rule *rule, struct peer *peer) {
  while (peer->made == 0) {
    ssize_t n = recv(peer->fd, peer->request + peer->got, REQUEST - 1 - peer->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (n <= 0) return 0;
    peer->got += (size_t)n;
    peer->request[peer->got] = '\0';
    if (strstr(peer->request, "\r\n\r\n") != NULL) {
      answer(rule, peer);
      if (peer->made == 0) return 0;
    } else if (peer->got == REQUEST - 1) {
      return 0;
    }
  }
  while (peer->sent < peer->made) {
    ssize_t n = send(peer->fd, peer->answer + peer->sent, peer->made - peer->sent, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (n <= 0) return 0;
    peer->sent += (size_t)n;
  }
  return 0;
}

static void welcome(int epoll, int listener) {
  struct sockaddr_in6 from;
  socklen_t size = sizeof from;
  int fd;
  while ((fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
         0) {
    struct peer *peer = calloc(1, sizeof *peer);
    char address[INET6_ADDRSTRLEN];
    size_t length = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = peer};
    size = sizeof from;
    if (peer == NULL) {
      close(fd);
      continue;
    }
    peer->fd = fd;
    if (inet_ntop(AF_INET6, &from.sin6_addr, address, sizeof address) == NULL ||
        tg_ip_key(address, TG_V6_PREFIX, peer->name, sizeof peer->name, &length) != TG_STATUS_OK) {
      hang_up(peer);
      continue;
    }
    peer->key = (tg_key)TG_KEY_INIT(peer->name, length);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) hang_up(peer);
  }
}

static int listen_at(int port) {
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, no = 0;
  struct sockaddr_in6 at = {
      .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons((uint16_t)port)};
  socklen_t size = sizeof at;
  if (fd < 0) fail("socket", strerror(errno));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0)
    fail("listen", strerror(errno));
  if (getsockname(fd, (struct sockaddr *)&at, &size) < 0) fail("getsockname", strerror(errno));
  printf("%d\n", ntohs(at.sin6_port));
  fflush(stdout);
  return fd;
}

int main(int argc, char **argv) {
  tg_limiter *limiter = NULL;
  const tg_rule *rule = NULL;
  sigset_t ends;
  tg_options options = TG_OPTIONS_INIT;
  if (argc != 3 && argc != 4) fail("usage", "gateway PORT LIMITS [STORE]");
  options.store = argv[3];
  if (tg_limiter_new(argv[2], &options, &limiter) != TG_STATUS_OK ||
      tg_rule_get(limiter, "default", &rule) != TG_STATUS_OK)
    fail("limits", tg_last_error());
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, NULL);

  int epoll = epoll_create1(EPOLL_CLOEXEC), end = signalfd(-1, &ends, SFD_CLOEXEC),
      listener = listen_at(atoi(argv[1]));
  /* The two descriptors that are no peers are known by their addresses. */
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener},
                     over = {.events = EPOLLIN, .data.ptr = &end};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0 ||
      epoll_ctl(epoll, EPOLL_CTL_ADD, end, &over) < 0)
    fail("epoll", strerror(errno));
  for (int going = 1; going;) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr == &end) {
        going = 0;
      } else if (events[i].data.ptr == &listener) {
        welcome(epoll, listener);
      } else if (!serve(rule, events[i].data.ptr)) {
        hang_up(events[i].data.ptr);
      }
    }
  }
  close(listener);
  close(end);
  close(epoll);
  tg_limiter_free(limiter);
  return 0;
}

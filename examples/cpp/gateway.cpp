// examples/c/gateway.c in C++17: a small HTTP service (epoll) that limits each peer. It answers
// 429 with headers.
//
//     gateway PORT LIMITS        gateway 8080 "5/10s window, 20/min"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <map>
#include <string>
#include <system_error>

#include <tidegate.hpp>

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {
    if (fd < 0) throw std::system_error(errno, std::generic_category());
  }
  descriptor(descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

static void must(int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category());
}

struct peer {
  descriptor fd;
  std::string name, request, answer;
};

// One request is one hit.
static std::string answer(tidegate::rule rule, const std::string &name) {
  tidegate::decision decision = rule.hit(name);
  std::string body = decision ? "hello\n" : "too many requests\n";
  return std::string("HTTP/1.1 ") + (decision ? "200 OK" : "429 Too Many Requests") + "\r\n" +
         decision.headers() + "Content-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

// True while the connection is to go on.
static bool serve(tidegate::rule rule, peer &peer) {
  char bytes[1024];
  while (peer.answer.empty()) {
    ssize_t n = recv(peer.fd.get(), bytes, sizeof bytes, 0);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    peer.request.append(bytes, static_cast<size_t>(n));
    if (peer.request.find("\r\n\r\n") != std::string::npos) peer.answer = answer(rule, peer.name);
    else if (peer.request.size() > 4096) return false;
  }
  while (!peer.answer.empty()) {
    ssize_t n = send(peer.fd.get(), peer.answer.data(), peer.answer.size(), MSG_NOSIGNAL);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    peer.answer.erase(0, static_cast<size_t>(n));
  }
  return false;
}

static descriptor listen_at(int port) {
  descriptor fd(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int yes = 1, no = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 at{};
  socklen_t size = sizeof at;
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(static_cast<uint16_t>(port));
  must(bind(fd.get(), reinterpret_cast<sockaddr *>(&at), sizeof at));
  must(listen(fd.get(), 128));
  must(getsockname(fd.get(), reinterpret_cast<sockaddr *>(&at), &size));
  std::cout << ntohs(at.sin6_port) << std::endl;
  return fd;
}

static void watch(const descriptor &epoll, const descriptor &fd, uint32_t what) {
  epoll_event event{};
  event.events = what;
  event.data.fd = fd.get();
  must(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event));
}

static void run(int port, tidegate::rule rule) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  must(sigprocmask(SIG_BLOCK, &ends, nullptr));
  descriptor end(signalfd(-1, &ends, SFD_CLOEXEC)), epoll(epoll_create1(EPOLL_CLOEXEC)),
      listener = listen_at(port);
  watch(epoll, end, EPOLLIN);
  watch(epoll, listener, EPOLLIN);
  std::map<int, peer> peers;
  for (;;) {
    epoll_event events[64];
    int count = epoll_wait(epoll.get(), events, 64, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd == end.get()) return;
      if (fd != listener.get()) {
        auto found = peers.find(fd);
        if (found != peers.end() && !serve(rule, found->second)) peers.erase(found);
        continue;
      }
      sockaddr_in6 from{};
      socklen_t size = sizeof from;
      int fresh =
          accept4(fd, reinterpret_cast<sockaddr *>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fresh < 0) continue;
      char address[INET6_ADDRSTRLEN];
      inet_ntop(AF_INET6, &from.sin6_addr, address, sizeof address);
      auto [place, _] =
          peers.emplace(fresh, peer{descriptor(fresh), tidegate::ip_key(address), {}, {}});
      watch(epoll, place->second.fd, EPOLLIN | EPOLLOUT | EPOLLET);
    }
  }
}

int main(int argc, char **argv) try {
  if (argc != 3) return std::cerr << "usage: gateway PORT LIMITS\n", 1;
  tidegate::limiter limiter(argv[2]);
  run(std::atoi(argv[1]), limiter.rule());
  return 0;
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}

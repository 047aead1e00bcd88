// store/socket: see socket.h.
#include "store/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"

enum { BACKLOG = 1024 };

// The address of an abstract socket, or the name of a TCP host.
typedef struct endpoint {
  bool local;
  char host[256], port[16];
  struct sockaddr_un path;
  socklen_t path_size;
} endpoint;

static const char tcp[] = "tcp://", abstract[] = "abstract://";

static bool read_tcp(const char *at, endpoint *out)
{
  const bool six = *at == '[';
  at += six;
  const size_t n = strcspn(at, six ? "]" : ":");
  if (n == 0 || n >= sizeof out->host || at[n] == '\0') return false;
  const char *port = at + n + (six ? 1 : 0);
  const size_t digits = strspn(port + (*port == ':'), "0123456789");
  if (*port != ':' || digits == 0 || digits > 5 || port[1 + digits] != '\0') {
    return false;
  }
  memcpy(out->host, at, n);
  out->host[n] = '\0';
  snprintf(out->port, sizeof out->port, "%s", port + 1);
  return true;
}

// The name of an abstract socket follows a zero byte; there is no file.
static bool read_abstract(const char *name, endpoint *out)
{
  const size_t n = strlen(name);
  if (n == 0 || n + 1 > sizeof out->path.sun_path) return false;
  out->local = true;
  out->path.sun_family = AF_UNIX;
  memcpy(out->path.sun_path + 1, name, n);
  out->path_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
  return true;
}

static calx_status *read_url(const char *url, endpoint *out)
{
  *out = (endpoint){ 0 };
  bool good = false;
  if (strncmp(url, tcp, sizeof tcp - 1) == 0) {
    good = read_tcp(url + sizeof tcp - 1, out);
  } else if (strncmp(url, abstract, sizeof abstract - 1) == 0) {
    good = read_abstract(url + sizeof abstract - 1, out);
  }
  if (good) return NULL;
  return cx_error(CALX_UNAVAILABLE,
                  "'%.300s' is no address of a store: tcp://HOST:PORT or "
                  "abstract://NAME is wanted",
                  url);
}

calx_status *cx_store_socket_check(const char *url)
{
  endpoint e;
  return read_url(url, &e);
}

bool cx_store_socket_is_other_user(int fd)
{
  struct ucred other;
  socklen_t size = sizeof other;
  struct sockaddr_storage own;
  socklen_t own_size = sizeof own;
  if (getsockname(fd, (struct sockaddr *)&own, &own_size) != 0 ||
      own.ss_family != AF_UNIX) {
    return false;
  }
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0 ||
         other.uid != getuid();
}

// Unix sockets reject these options, and do not need them.
static void prepare(int fd)
{
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// ---- opening ----------------------------------------------------------------

// Uses a socket for an address: 0, or errno.
typedef int socket_fn(int fd, const struct sockaddr *address, socklen_t size,
                      int64_t until);

// Returns 0 with *out set, or errno.
static int open_socket(const struct sockaddr *address, socklen_t size,
                       socket_fn *use, int64_t until, int *out)
{
  *out =
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (*out < 0) return errno;
  int error = use(*out, address, size, until);
  if (error != 0) close(*out);
  return error;
}

// Tries each address of the endpoint until one can be used.
static calx_status *open_url(const char *url, socket_fn *use, int flags,
                             int64_t until, int *out)
{
  endpoint e;
  int error = EADDRNOTAVAIL;
  CALX_TRY(read_url(url, &e));
  if (e.local) {
    error = open_socket((const struct sockaddr *)&e.path, e.path_size, use,
                        until, out);
  } else {
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_NUMERICSERV | flags };
    struct addrinfo *all = NULL;
    int unknown = getaddrinfo(e.host, e.port, &wanted, &all);
    if (unknown != 0) {
      return cx_error(CALX_UNAVAILABLE, "%s: %s", e.host,
                      gai_strerror(unknown));
    }
    for (const struct addrinfo *a = all; a != NULL && error != 0;
         a = a->ai_next) {
      error = open_socket(a->ai_addr, a->ai_addrlen, use, until, out);
    }
    freeaddrinfo(all);
  }
  if (error == 0) return NULL;
  *out = -1;
  return cx_error(CALX_UNAVAILABLE, "%s", strerror(error));
}

// ---- listening --------------------------------------------------------------

static int listen_to(int fd, const struct sockaddr *address, socklen_t size,
                     int64_t until)
{
  const int on = 1;
  (void)until;
  // Allows the port of a job that has just ended, not one that is in use.
  if (address->sa_family != AF_UNIX) {
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  bool listens = bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0;
  return listens ? 0 : errno;
}

calx_status *cx_store_socket_listen(const char *url, int *out)
{
  *out = -1;
  return open_url(url, listen_to, AI_PASSIVE, 0, out);
}

int cx_store_socket_accept(int listener, bool *out_other_user)
{
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return -1;
  prepare(fd);
  *out_other_user = cx_store_socket_is_other_user(fd);
  return fd;
}

// ---- connecting -------------------------------------------------------------

// 0, or errno.
static int wait_until_connected(int fd, int64_t until)
{
  for (;;) {
    int64_t left = until - cx_now_ms();
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int n = poll(&p, 1, left > 0 ? (int)left : 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? ETIMEDOUT : errno;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    return error;
  }
}

// A Unix socket whose queue is full gives EAGAIN; the caller tries again.
static int connect_to(int fd, const struct sockaddr *address, socklen_t size,
                      int64_t until)
{
  int error = connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    error = wait_until_connected(fd, until);
  }
  if (error == 0) prepare(fd);
  return error;
}

calx_status *cx_store_socket_connect(const char *url, int64_t timeout_ms,
                                     int *out)
{
  *out = -1;
  return open_url(url, connect_to, 0, cx_now_ms() + timeout_ms, out);
}

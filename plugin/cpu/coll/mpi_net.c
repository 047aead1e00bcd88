// coll/mpi_net: which network interface connects the hosts.
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "coll/mpi_load.h"

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
  if (a == NULL || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    struct sockaddr_in x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a->sa_family != AF_INET6) return false;
  struct sockaddr_in6 x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
}

static bool name_of(const struct sockaddr *address, bool loopback, char *out,
                    size_t room)
{
  struct ifaddrs *all = NULL;
  bool found = false;
  if (getifaddrs(&all) != 0) return false;
  for (struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
    if (((i->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
    if (!same_address(i->ifa_addr, address)) continue;
    found = (size_t)snprintf(out, room, "%s", i->ifa_name) < room;
  }
  freeifaddrs(all);
  return found;
}

// To connect a datagram socket sends nothing. It finds the route, and so the
// own address on it.
static bool name_to(const struct addrinfo *to, bool loopback, char *out,
                    size_t room)
{
  struct sockaddr_storage own;
  socklen_t size = sizeof own;
  const int s = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (s < 0) return false;
  const bool known = connect(s, to->ai_addr, to->ai_addrlen) == 0 &&
                     getsockname(s, (struct sockaddr *)&own, &size) == 0;
  close(s);
  const struct sockaddr *found = (const struct sockaddr *)&own;
  return known && (!loopback || same_address(to->ai_addr, found)) &&
         name_of(found, loopback, out, room);
}

// The own host's name often resolves to 127.0.1.1, which belongs to no
// interface. A job at 127.0.0.1 has one host only, so the loopback interface
// serves it.
bool cpu_coll_mpi_net_to(const char *host, char *out, size_t room,
                         bool *out_loopback)
{
  const struct addrinfo wanted = { .ai_socktype = SOCK_DGRAM };
  struct addrinfo *all = NULL;
  bool found = false;
  if (getaddrinfo(host, "9", &wanted, &all) != 0) return false;
  for (int loopback = 0; loopback < 2 && !found; loopback++) {
    *out_loopback = loopback != 0;
    for (const struct addrinfo *a = all; a != NULL && !found; a = a->ai_next) {
      found = name_to(a, *out_loopback, out, room);
    }
  }
  freeaddrinfo(all);
  return found;
}

// The host of tcp://host:port or tcp://[host]:port.
static bool host_of_store(const char *url, char *out, size_t room)
{
  static const char scheme[] = "tcp://";
  if (url == NULL || strncmp(url, scheme, sizeof scheme - 1) != 0) return false;
  const char *at = url + sizeof scheme - 1;
  const bool six = *at == '[';
  at += six;
  const size_t n = strcspn(at, six ? "]" : ":");
  if (n == 0 || n >= room) return false;
  memcpy(out, at, n);
  out[n] = '\0';
  return true;
}

// UCX would not use InfiniBand if only the interface were named.
static void add_infiniband(cx_text *out)
{
  DIR *all = opendir("/sys/class/infiniband");
  if (all == NULL) return;
  for (struct dirent *e = readdir(all); e != NULL; e = readdir(all)) {
    if (e->d_name[0] != '.') cx_text_format(out, ",%s:1", e->d_name);
  }
  closedir(all);
}

void cpu_coll_mpi_choose_net(void)
{
  char host[256], name[64];
  const char *master = getenv("MASTER_ADDR");
  if (!host_of_store(getenv("CALX_STORE"), host, sizeof host)) {
    if (master == NULL || master[0] == '\0') return;
    snprintf(host, sizeof host, "%s", master);
  }
  bool loopback;
  if (!cpu_coll_mpi_net_to(host, name, sizeof name, &loopback)) return;
  cx_text devices = { 0 };
  cx_text_append(&devices, name);
  if (!loopback) add_infiniband(&devices);
  if (!cx_text_failed(&devices)) {
    setenv("UCX_NET_DEVICES", cx_text_str(&devices), 0);
  }
  cx_text_free(&devices);
  setenv("OMPI_MCA_btl_tcp_if_include", name, 0);
}

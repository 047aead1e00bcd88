// launcher/address: see address.h.
#include "launcher/address.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

const char *cx_launcher_host_name(const char *host)
{
  const char *user = strrchr(host, '@');
  return user != NULL ? user + 1 : host;
}

typedef struct address {
  struct sockaddr_storage bytes;
  socklen_t size;
  char numbers[256];  // empty: the name was not resolved
  bool loopback;
} address;

static void write_numbers(address *a)
{
  const struct sockaddr *bytes = (const struct sockaddr *)&a->bytes;
  if (getnameinfo(bytes, a->size, a->numbers, sizeof a->numbers, NULL, 0,
                  NI_NUMERICHOST) != 0) {
    a->numbers[0] = '\0';
  }
  a->loopback =
      strncmp(a->numbers, "127.", 4) == 0 || strcmp(a->numbers, "::1") == 0;
}

// Resolves a host's name to a numeric address.
static void look_up(const char *host, address *out)
{
  struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *found = NULL;
  const char *name = cx_launcher_host_name(host);
  *out = (address){ 0 };
  if (getaddrinfo(name, "9", &hints, &found) != 0) return;
  if (found->ai_addrlen <= sizeof out->bytes) {
    out->size = found->ai_addrlen;
    memcpy(&out->bytes, found->ai_addr, found->ai_addrlen);
    write_numbers(out);
  }
  freeaddrinfo(found);
}

// Finds this host's own address on the route to another. Nothing is sent.
static void find_own(const address *other, address *out)
{
  *out = (address){ .size = sizeof out->bytes };
  int fd = socket(other->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 &&
      connect(fd, (const struct sockaddr *)&other->bytes, other->size) == 0 &&
      getsockname(fd, (struct sockaddr *)&out->bytes, &out->size) == 0) {
    write_numbers(out);
  }
  if (fd >= 0) close(fd);
}

void cx_launcher_find_address(char *const *hosts, int count, char *out,
                              size_t size)
{
  address first, other, own;
  const char *name = cx_launcher_host_name(hosts[0]);
  look_up(name, &first);
  bool usable = first.numbers[0] != '\0' && strlen(first.numbers) < size;
  snprintf(out, size, "%s", usable && !first.loopback ? first.numbers : name);
  for (int i = 1; first.loopback && i < count; i++) {
    look_up(hosts[i], &other);
    if (other.loopback) continue;  // a name of this host as well
    own = (address){ 0 };
    if (other.numbers[0] != '\0') find_own(&other, &own);
    if (own.numbers[0] != '\0' && !own.loopback && strlen(own.numbers) < size) {
      snprintf(out, size, "%s", own.numbers);
    } else {
      cx_log(
          "host %s is this one, where its name means %s, which host %s cannot "
          "reach: MASTER_ADDR can say another address",
          name, first.numbers, hosts[i]);
    }
    return;
  }
}

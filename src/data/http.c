// data/http: see the header.
#include "data/http.h"

#ifndef CX_HAVE_CURL

calx_status *cx_data_http_get(const char *url, int fd, const char *path,
                              uint64_t most, uint64_t *at)
{
  (void)fd, (void)path, (void)most, (void)at;
  return cx_error(CALX_UNIMPLEMENTED,
                  "cannot download '%s': calx was built without libcurl: "
                  "install Debian's libcurl4-openssl-dev and build it again",
                  url);
}

#else

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/file.h"
#include "base/thread.h"

enum { CONNECT_S = 30, SILENT_S = 60, MAX_REDIRECTS = 5 };

// ---- the library ------------------------------------------------------------

typedef struct curl_table {
  CURLcode (*global_init)(long flags);
  CURL *(*init)(void);
  CURLcode (*set)(CURL *curl, CURLoption option, ...);
  CURLcode (*perform)(CURL *curl);
  CURLcode (*info)(CURL *curl, CURLINFO what, ...);
  const char *(*message)(CURLcode code);
  void (*cleanup)(CURL *curl);
} curl_table;

static cx_mutex lock = CX_MUTEX_INIT;
static curl_table loaded;
static bool is_loaded;

static bool take(void *library, const char *name, void *out)
{
  // A copy, as C does not convert objects' pointers to functions'.
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

// Never unloaded: libcurl keeps what it has set up.
static calx_status *load(void)
{
  static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4",
                                       "libcurl-nss.so.4" };
  void *library = NULL;
  for (size_t i = 0; library == NULL && i < 3; i++) {
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "libcurl is not installed: Debian's package is libcurl4: "
                    "%s",
                    dlerror());
  }
  curl_table t;
  bool whole = take(library, "curl_global_init", &t.global_init) &&
               take(library, "curl_easy_init", &t.init) &&
               take(library, "curl_easy_setopt", &t.set) &&
               take(library, "curl_easy_perform", &t.perform) &&
               take(library, "curl_easy_getinfo", &t.info) &&
               take(library, "curl_easy_strerror", &t.message) &&
               take(library, "curl_easy_cleanup", &t.cleanup);
  if (!whole || t.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return cx_error(CALX_UNIMPLEMENTED, "libcurl does not start");
  }
  loaded = t;
  is_loaded = true;
  return NULL;
}

static calx_status *table(const curl_table **out)
{
  cx_lock(&lock);
  calx_status *status = is_loaded ? NULL : load();
  cx_unlock(&lock);
  *out = &loaded;
  return status;
}

// ---- one request ------------------------------------------------------------

typedef struct request {
  const curl_table *curl;
  CURL *handle;
  const char *url, *path;
  int fd;
  uint64_t most, *at;
  calx_status *status;  // of a write
  char reason[CURL_ERROR_SIZE];
} request;

static size_t put(char *data, size_t one, size_t count, void *user)
{
  request *r = user;
  size_t size = one * count;
  if (size > r->most - *r->at) {
    r->status = cx_error(CALX_DATA_LOSS,
                         "'%s' has more than the %llu bytes "
                         "that are expected",
                         r->url, (unsigned long long)r->most);
    return 0;
  }
  r->status = cx_file_put(r->fd, r->path, data, size);
  if (r->status != NULL) return 0;
  *r->at += size;
  return size;
}

static bool set_up(request *r)
{
  const curl_table *c = r->curl;
  CURL *h = r->handle;
  return c->set(h, CURLOPT_URL, r->url) == CURLE_OK &&
         c->set(h, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         c->set(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         c->set(h, CURLOPT_FOLLOWLOCATION, 1L) == CURLE_OK &&
         c->set(h, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS) == CURLE_OK &&
         c->set(h, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
         c->set(h, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         c->set(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) == CURLE_OK &&
         c->set(h, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
         c->set(h, CURLOPT_LOW_SPEED_TIME, (long)SILENT_S) == CURLE_OK &&
         c->set(h, CURLOPT_ERRORBUFFER, r->reason) == CURLE_OK &&
         c->set(h, CURLOPT_WRITEFUNCTION, put) == CURLE_OK &&
         c->set(h, CURLOPT_WRITEDATA, r) == CURLE_OK &&
         c->set(h, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)*r->at) == CURLE_OK;
}

static calx_status *answered(const request *r, long http)
{
  calx_code code = http == 404 || http == 410   ? CALX_NOT_FOUND
                   : http == 401 || http == 403 ? CALX_PERMISSION_DENIED
                                                : CALX_UNAVAILABLE;
  return cx_error(code, "cannot download '%s': the server answers %ld", r->url,
                  http);
}

static calx_status *failed(request *r, CURLcode code)
{
  long http = 0;
  r->curl->info(r->handle, CURLINFO_RESPONSE_CODE, &http);
  if (code == CURLE_HTTP_RETURNED_ERROR) return answered(r, http);
  calx_code kind =
      code == CURLE_OUT_OF_MEMORY ? CALX_RESOURCE_EXHAUSTED
      : code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT
          ? CALX_INVALID_ARGUMENT
          : CALX_UNAVAILABLE;
  return cx_error(kind, "cannot download '%s': %s", r->url,
                  r->reason[0] != '\0' ? r->reason : r->curl->message(code));
}

// Sets *out_again where the server does not give a part of the file.
static calx_status *ask(request *r, bool *out_again)
{
  *out_again = false;
  r->handle = r->curl->init();
  if (r->handle == NULL) return cx_out_of_memory();
  CURLcode code = set_up(r) ? r->curl->perform(r->handle) : CURLE_FAILED_INIT;
  long http = 0;
  r->curl->info(r->handle, CURLINFO_RESPONSE_CODE, &http);
  calx_status *status = r->status;
  *out_again = status == NULL && *r->at > 0 &&
               (code == CURLE_RANGE_ERROR || http == 416);
  if (code != CURLE_OK && status == NULL && !*out_again) {
    status = failed(r, code);
  }
  r->curl->cleanup(r->handle);
  return status;
}

calx_status *cx_data_http_get(const char *url, int fd, const char *path,
                              uint64_t most, uint64_t *at)
{
  request r = { .url = url, .path = path, .fd = fd, .most = most, .at = at };
  CALX_TRY(table(&r.curl));
  bool again;
  CALX_TRY(ask(&r, &again));
  if (!again) return NULL;
  if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
    return cx_file_failed("empty", path);
  }
  *at = 0;
  return ask(&r, &again);
}

#endif

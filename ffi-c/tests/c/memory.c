/* memory HOW STORE: every call is done or is TG_STATUS_MEMORY, and the process lives.
 *
 * - malloc: the system refuses all allocations from some number on; many numbers are tried.
 * - limit: the process may have so much address space and no more, in many steps.
 * - capacity: tables that no machine has room for.
 * - shortage: many calls fail while there is no memory, and all is well when there is again. */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many allocations are still granted; below 0: all. */
static long granted = -1;
static long asked;
static bool refuse(void) {
  asked++;
  if (granted < 0) return false;
  if (granted > 0) granted--;
  if (granted == 0) errno = ENOMEM;
  return granted == 0;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *malloc(size_t size) { return refuse() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refuse() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return refuse() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) {
  return refuse() ? NULL : __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  void *block = memalign(alignment, size);
  if (block != NULL) *out = block;
  return block == NULL ? ENOMEM : 0;
}

static const char *policy =
    "{version: 1, rules: {a: {capacity: 2000, limits: {m: {max: 3, per: 1m, cooldown: 1s},"
    " h: 100/h window}, attach: {x: 1}, alert: {violations: 2, within: 1m}, budget: {daily: 9},"
    " when: [{match: {role: x}, limits: {m: {max: 9}}}]},"
    " jobs: {capacity: 2000, limits: 2 concurrent}}}";

/* How many calls there was no memory for. */
static int refused;
static int done(int result) {
  int status = result < 0 ? -result : 0;
  if (result > 0) status = result;
  if (status != TG_STATUS_OK && status != TG_STATUS_MEMORY) {
    fprintf(stderr, "status %d: %s\n", status, tg_last_error());
    _exit(1);
  }
  refused += status == TG_STATUS_MEMORY;
  return status == TG_STATUS_OK;
}
/* As `done`, of a call that says yes or no. */
static int answered(int answer) { return answer >= 0 || !done(answer); }

static void keyed(const tg_rule *rule, const tg_rule *jobs) {
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_attribute role = {TG_BYTES("role"), TG_BYTES("x")};
  tg_decision d;
  tg_recorded r;
  tg_key_stats s;
  tg_budget_state b;
  tg_reservation *reservation = NULL;
  tg_permit_handle *permit = NULL;
  tg_error e;
  uint8_t mask[3];
  size_t lens[3] = {1, 1, 1};
  char headers[1024];
  size_t length;
  for (int i = 0; i < 5; i++) done(tg_hit(rule, &k, 1, &d));
  if (done(tg_hit_bytes(rule, k.bytes.data, 5, 1, &d, &e)))
    done(tg_decision_headers(rule, &d, TG_HEADERS_BOTH, headers, sizeof headers, &length));
  answered(tg_allow(rule, k.bytes.data, 5));
  done(tg_check(rule, &k, 1, &d));
  done(tg_record(rule, &k, 1, &r));
  done(tg_refund(rule, &k, 1));
  done(tg_stats(rule, &k, &s));
  done(tg_spend(rule, &k, 1, &b));
  done(tg_allow_many_bytes(rule, k.bytes.data, 3, lens, 3, mask, &e));
  k.attributes = &role;
  k.attribute_count = 1;
  done(tg_hit(rule, &k, 1, &d));
  if (done(tg_reserve(rule, &k, 1, &d, &reservation)) && reservation) tg_settle(reservation, 0);
  tg_reservation_free(reservation);
  /* What was taken is given back also when memory is short. */
  if (done(tg_permit(jobs, &k, &d, &permit)) && permit) CHECK(tg_release(permit) == 1);
  tg_permit_free(permit);
}

static void changed(const tg_limiter *limiter, const tg_rule *rule) {
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_decision d;
  char *text = NULL;
  done(tg_set_override(rule, &k, "{\"m\": {\"max\": 60}}"));
  done(tg_hit(rule, &k, 1, &d));
  answered(tg_clear_override(rule, &k));
  done(tg_block(rule, &k, NULL, NULL));
  done(tg_hit(rule, &k, 1, &d));
  answered(tg_unblock(rule, &k));
#define TEXT(call)                         \
  text = NULL;                             \
  if (done(call)) CHECK(text[0] != '\0'); \
  tg_string_free(text)
  TEXT(tg_metrics(limiter, &text));
  TEXT(tg_events(limiter, NULL, &text));
  TEXT(tg_changes(limiter, 0, &text));
  TEXT(tg_audit(limiter, &text));
  TEXT(tg_why(rule, &k, 1, &text));
  done(tg_reset(rule, &k));
}

static void all(const char *store) {
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter = NULL;
  const tg_rule *rule = NULL, *jobs = NULL;
  tg_manual_clock *clock = NULL;
  tg_limiter *wrong = NULL;
  options.store = store;
  done(tg_manual_clock_new(0, 0, &clock));
  if (done(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &limiter))) {
    if (done(tg_rule_get(limiter, "a", &rule)) && done(tg_rule_get(limiter, "jobs", &jobs))) {
      keyed(rule, jobs);
      changed(limiter, rule);
    }
  }
  int status = tg_limiter_new("1/x", NULL, &wrong);
  CHECK(status == TG_STATUS_POLICY || status == TG_STATUS_MEMORY);
  tg_limiter_free(limiter);
  tg_manual_clock_free(clock);
}

/* Runs `all` in a child where `limit` is in force: how many calls there was no memory for. */
/* A child that is done exits with this and the number. */
#define OFFSET 10
static int in_a_child(void (*limit)(long), long how, const char *store) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    limit(how);
    all(store);
    granted = -1;
    _exit(OFFSET + (refused > 100 ? 100 : refused));
  }
  CHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status)) fprintf(stderr, "at %ld: signal %d\n", how, WTERMSIG(status));
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= OFFSET);
  return WEXITSTATUS(status) - OFFSET;
}

static void some_allocations(long how) { granted = how; }

static void address_space(long how) {
  struct rlimit limit;
  limit.rlim_cur = limit.rlim_max = (rlim_t)how;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static long address_space_now(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld", &pages) == 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void capacity(void) {
  uint64_t many[] = {1000000000000ull, UINT64_MAX / 2, UINT64_MAX, 1ull << 40, 1ull << 58};
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter = NULL;
  options.memory = UINT64_MAX;
  for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
    options.capacity = many[i];
    int status = tg_limiter_new("4000/h window", &options, &limiter);
    CHECK(status == TG_STATUS_MEMORY || status == TG_STATUS_POLICY);
    CHECK(limiter == NULL && tg_last_error()[0] != '\0');
  }
}

static const tg_rule *limited, *slots;
static pthread_barrier_t both;

/* A thread that was there before memory was short, and waits for work afterwards. */
static void *other_thread(void *store) {
  CHECK(tg_allow(limited, (const uint8_t *)"a", 1) == 1);
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  all((const char *)store);
  CHECK(refused > 0 && tg_refund(limited, NULL, 1) == TG_STATUS_NULL);
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  return NULL;
}

static void failing_calls(const tg_limiter *limiter) {
  static tg_bytes keys[65520];
  static uint8_t mask[65520];
  tg_decision d;
  char *text;
  for (int i = 0; i < 50000; i++) {
    CHECK(tg_metrics(limiter, &text) == TG_STATUS_MEMORY);
    CHECK(tg_hit(limited, NULL, 1, &d) == TG_STATUS_NULL);
    CHECK(tg_allow(limited, NULL, 5) == -TG_STATUS_NULL);
  }
  CHECK(strstr(tg_last_error(), "NULL") != NULL);
  CHECK(tg_allow_many(limited, keys, 65520, mask) == TG_STATUS_MEMORY);
}

static void shortage(char *store) {
  tg_key k = TG_KEY_INIT("bob", 3);
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter, *later;
  tg_decision d;
  tg_permit_handle *permit;
  pthread_t thread;
  char *text;
  options.store = store;
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &limiter));
  OK(tg_rule_get(limiter, "a", &limited));
  OK(tg_rule_get(limiter, "jobs", &slots));
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
  CHECK(pthread_create(&thread, NULL, other_thread, store) == 0);
  pthread_barrier_wait(&both);
  granted = 0;
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  /* What stays from now on lies in the reserve, and must not keep the rest of it. */
  OK(tg_permit(slots, &k, &d, &permit));
  failing_calls(limiter);
  granted = -1;
  OK(tg_hit(limited, &k, 1, &d));
  OK(tg_metrics(limiter, &text));
  OK(tg_limiter_new("1/s", NULL, &later));
  CHECK(permit != NULL && tg_release(permit) == 1);
  pthread_barrier_wait(&both);
  CHECK(pthread_join(thread, NULL) == 0);
  tg_string_free(text);
  tg_permit_free(permit);
  tg_limiter_free(later);
  tg_limiter_free(limiter);
}

int main(int count, char **arguments) {
  const char *what = arguments[1];
  char *store = arguments[2];
  int most = 0;
  CHECK(count == 3);
  all(store); /* a child inherits what is made once */
  CHECK(refused == 0);
  if (strcmp(what, "capacity") == 0) capacity();
  if (strcmp(what, "shortage") == 0) shortage(store);
  if (strcmp(what, "malloc") == 0) {
    asked = 0;
    all(store);
    long every = asked;
    for (long grant = 1; grant <= every; grant += 1 + grant / 50) {
      int here = in_a_child(some_allocations, grant, store);
      if (here > most) most = here;
    }
    printf("c: %ld allocations, each refused with all that follow\n", every);
    CHECK(most > 0);
  }
  if (strcmp(what, "limit") == 0) {
    long now = address_space_now(), step = 64 << 10;
    int last = 1;
    for (long more = 0; more < 40 << 20; more += step + more / 16) {
      last = in_a_child(address_space, now + more, store);
      if (last > most) most = last;
    }
    CHECK(most > 0 && last == 0);
  }
  return 0;
}

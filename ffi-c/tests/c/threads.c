/* Eight threads share one limiter and grant exactly the limit. Each thread has its own error. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>

static const tg_rule *rule;

static void *hits(void *allowed) {
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_decision d;
  int i;
  SAME(tg_last_error(), "");
  for (i = 0; i < 5000; i++) {
    OK(tg_hit(rule, &k, 1, &d));
    *(int *)allowed += d.allowed;
    *(int *)allowed += tg_allow(rule, k.bytes.data, k.bytes.len);
    if (!d.allowed) {
      SAME(d.reason, "10000/h");
    }
  }
  return NULL;
}

int main(void) {
  tg_limiter *limiter;
  pthread_t threads[8];
  int allowed[8] = {0}, sum = 0, i;
  tg_manual_clock *clock;
  tg_options options = TG_OPTIONS_INIT;
  OK(tg_manual_clock_new(0, 0, &clock));
  options.clock = clock;
  OK(tg_limiter_new("10000/h", &options, &limiter));
  tg_manual_clock_free(clock); /* the limiter keeps it */
  OK(tg_rule_get(limiter, "default", &rule));
  FAILS(tg_reload(limiter), TG_STATUS_OPERATION);
  for (i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, hits, &allowed[i]) == 0);
  for (i = 0; i < 8; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    sum += allowed[i];
  }
  CHECK(sum == 10000);
  tg_limiter_free(limiter);
  return 0;
}

/* One of two processes, each from a language of its own, that share a folder of tables: the same as
 * tests/src/share.rs. They meet in the rule "meet", whose counts both see. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <sched.h>
#include <time.h>

enum { HITS = 60000, PATIENCE = 60 };

static tg_limiter *limiter;

static const tg_rule *rule_of(const char *name) {
  const tg_rule *rule = NULL;
  OK(tg_rule_get(limiter, name, &rule));
  return rule;
}

/* Waits until so many have come to a meeting. */
static void await_others(const char *at, int count) {
  const tg_rule *meet = rule_of("meet");
  tg_key key = TG_KEY_INIT(at, strlen(at));
  tg_decision d;
  time_t started = time(NULL);
  for (;;) {
    OK(tg_peek(meet, &key, 0, &d));
    if (d.remaining == 2 - count) return;
    CHECK(time(NULL) - started < PATIENCE);
    sched_yield();
  }
}

static void come_to(const char *at) {
  CHECK(tg_allow(rule_of("meet"), (const uint8_t *)at, strlen(at)) == 1);
}

int main(int argc, char **argv) {
  const char *names[5] = {"bucket", "window", "counter", "fixed", "several"};
  tg_key vip = TG_KEY_INIT("vip", 3), guest = TG_KEY_INIT("guest", 5);
  tg_decision d;
  int i, hit;
  CHECK(argc == 2);
  OK(tg_limiter_from_file(argv[1], NULL, &limiter));
  come_to("start");
  await_others("start", 2);
  for (i = 0; i < 5; i++) {
    const tg_rule *rule = rule_of(names[i]);
    int granted = 0;
    for (hit = 0; hit < HITS; hit++) granted += tg_allow(rule, (const uint8_t *)"hot", 3) == 1;
    printf("%s %d\n", names[i], granted);
  }
  /* This process lowers a limit, and the other sees it at once; then the other way round. */
  const tg_rule *rule = rule_of("bucket");
  await_others("looked", 1);
  OK(tg_set_override(rule, &vip, "{\"each\": {\"max\": 7}}"));
  come_to("lowered");
  OK(tg_hit(rule, &guest, 1, &d));
  await_others("exempted", 1);
  OK(tg_hit(rule, &guest, 1, &d));
  SAME(d.reason, "exempt");
  tg_limiter_free(limiter);
  return 0;
}

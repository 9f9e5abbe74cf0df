/* leaks STORE: everything is used, from threads that end too, and freed. What the library keeps for
 * the life of the process is pointed at by its start, so that valgrind calls nothing lost. */
#include "check.h"

#include <pthread.h>

static const char *policy =
    "version: 1\n"
    "rules:\n"
    "  a:\n"
    "    limits: {m: {max: 5, per: 1m, cooldown: 10s}, n: {max: 100, per: 1h, algorithm: window}}\n"
    "    attach: {upgrade: {url: here}}\n"
    "    budget: {daily: 5}\n"
    "    alert: {violations: 2, within: 1m}\n"
    "    backoff: {steps: [1s], quiet: 10s}\n"
    "    exempt: [{role: admin}]\n"
    "    when: [{match: {role: x}, limits: {m: {max: 9}}, attach: {more: 1}}]\n"
    "  jobs: {limits: 2 concurrent}\n";
static const tg_rule *rule, *jobs;

static void *hits(void *unused) {
  tg_limiter *none = NULL;
  for (int i = 0; i < 200; i++) {
    tg_decision d;
    tg_error e;
    uint8_t name[2] = {(uint8_t)i, 'k'};
    tg_key k = TG_KEY_INIT(name, 2);
    tg_attribute role = {TG_BYTES("role"), TG_BYTES("x")};
    CHECK(tg_allow(rule, name, 2) >= 0);
    OK(tg_hit_bytes(rule, name, 2, 1, &d, &e));
    OK(tg_hit(rule, &k, 100000, &d));
    k.attributes = &role;
    k.attribute_count = 1;
    OK(tg_hit(rule, &k, 1, &d));
  }
  FAILS(tg_limiter_new("1/x", NULL, &none), TG_STATUS_POLICY);
  return unused;
}

int main(int count, char **arguments) {
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter = NULL, *other = NULL;
  tg_reservation *reservation = NULL;
  tg_permit_handle *permit = NULL;
  tg_key_stats stats;
  tg_decision d;
  tg_key k = TG_KEY_INIT("x", 1);
  pthread_t threads[4];
  char *text = NULL;
  CHECK(count == 2);
  options.store = arguments[1];
  options.capacity = 1000;
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &limiter));
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &other));
  OK(tg_rule_get(limiter, "a", &rule));
  OK(tg_rule_get(limiter, "jobs", &jobs));
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, hits, NULL) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  hits(NULL);
  OK(tg_permit(jobs, &k, &d, &permit));
  OK(tg_reserve(rule, &k, 1, &d, &reservation));
  OK(tg_set_override(rule, &k, "{\"m\": {\"max\": 60}}"));
  OK(tg_add_exempt(rule, "{\"role\": \"y\"}"));
  OK(tg_block(rule, &k, NULL, NULL));
  OK(tg_hit(rule, &k, 1, &d));
  OK(tg_stats(rule, &k, &stats));
  OK(tg_metrics(limiter, &text));
  tg_string_free(text);
  tg_permit_free(permit);
  tg_reservation_free(reservation);
  tg_limiter_free(limiter);
  tg_limiter_free(other);
  return 0;
}

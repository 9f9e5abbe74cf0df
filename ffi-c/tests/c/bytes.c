/* Calls for other languages: keys that are bytes, and errors in the caller's memory. Each does what
 * the function of its name does; and whatever is wrong, it says why where the caller wants it. */
#include "check.h"

static tg_limiter *limiter;
static const tg_rule *rule, *jobs, *spent;
static const uint8_t *alice = (const uint8_t *)"alice";
static tg_error e;

static void nothing_said(void) { memset(&e, 0x5a, sizeof e); }

/* Fails as said, with the reason in `e`, and leaves `variable` as it was. */
#define KEEPS(variable, call, wanted)                             \
  do {                                                            \
    unsigned char was[sizeof(variable)];                          \
    memset(&(variable), 0x5a, sizeof(variable));                  \
    memcpy(was, &(variable), sizeof(variable));                   \
    nothing_said();                                               \
    CHECK((int)(call) == (int)(wanted));                          \
    CHECK(e.status == (wanted < 0 ? -(int)(wanted) : (int)(wanted))); \
    CHECK(e.reserved == 0 && e.length == strlen(e.text));         \
    SAME(e.text, tg_last_error());                                \
    CHECK(memcmp(was, &(variable), sizeof(variable)) == 0);       \
  } while (0)
#define FAILS_BYTES(call, wanted) \
  do {                            \
    int none;                     \
    KEEPS(none, call, wanted);    \
  } while (0)

static void hits(void) {
  tg_decision d;
  tg_recorded r;
  tg_key_stats s;
  char *text;
  nothing_said();
  OK(tg_hit_bytes(rule, alice, 5, 1, &d, &e));
  CHECK(d.allowed && d.remaining == 2 && d.limits[0].reset_after_ms == 334);
  CHECK(d.limits[0].more_after_ms == 334); /* milliseconds, rounded up once */
  OK(tg_check_bytes(rule, alice, 5, 2, &d, NULL));
  CHECK(d.allowed);
  OK(tg_peek_bytes(rule, alice, 5, 0, &d, &e));
  CHECK(d.remaining == 2);
  OK(tg_record_bytes(rule, alice, 5, 2, &r, &e));
  CHECK(r.version == TG_RECORDED_VERSION && r.used == 3 && r.limit == 3 && r.remaining == 0);
  CHECK(r.reset_after_ms == 1000 && r.reserved == 0 && r.reserved_words[3] == 0);
  CHECK(tg_is_limited_bytes(rule, alice, 5, &e) == 1);
  OK(tg_refund_bytes(rule, alice, 5, 1, &e));
  CHECK(tg_is_limited_bytes(rule, alice, 5, &e) == 0);
  OK(tg_stats_bytes(rule, alice, 5, &s, &e));
  CHECK(s.version == TG_KEY_STATS_VERSION && s.known == 1 && s.limits[0].used == 2);
  CHECK(s.budget.version == TG_BUDGET_STATE_VERSION && s.reserved_words[7] == 0);
  OK(tg_why_bytes(rule, alice, 5, 9, &text, &e));
  HAS(text, "\"cost\"");
  tg_string_free(text);
  OK(tg_reset_bytes(rule, alice, 5, &e));
  OK(tg_stats_bytes(rule, alice, 5, &s, &e));
  CHECK(s.version == TG_KEY_STATS_VERSION && s.known == 0 && s.limits[0].name == NULL);
  OK(tg_hit_bytes(rule, NULL, 0, 1, &d, &e)); /* the empty key */
  CHECK(d.allowed && e.status == 0x5a5a5a5a); /* nothing failed, nothing said */
}

static void batches(void) {
  static const uint8_t keys[] = "aabaabc";
  size_t lens[] = {2, 1, 2, 1, 0, 1};
  uint8_t mask[6];
  OK(tg_allow_many_bytes(rule, keys, 7, lens, 6, mask, &e));
  CHECK(memcmp(mask, "\1\1\1\1\1\1", 6) == 0);
  OK(tg_allow_many_bytes(rule, keys, 7, lens, 6, mask, &e));
  CHECK(memcmp(mask, "\1\1\0\0\1\1", 6) == 0); /* "aa" and "b" had 3, and the 4th is too many */
  OK(tg_allow_many_bytes(rule, NULL, 0, NULL, 0, NULL, NULL));
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 6, lens, 6, mask, &e), TG_STATUS_LENGTH);
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 8, lens, 6, mask, &e), TG_STATUS_LENGTH);
  HAS(e.text, "sum");
  lens[0] = SIZE_MAX;
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 7, lens, 6, mask, &e), TG_STATUS_LENGTH);
  KEEPS(mask, tg_allow_many_bytes(rule, keys, SIZE_MAX, lens, 6, mask, &e), TG_STATUS_LENGTH);
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 7, lens, SIZE_MAX, mask, &e), TG_STATUS_LENGTH);
  KEEPS(mask, tg_allow_many_bytes(NULL, keys, 7, lens, 6, mask, &e), TG_STATUS_NULL);
  KEEPS(mask, tg_allow_many_bytes(rule, NULL, 7, lens, 6, mask, &e), TG_STATUS_NULL);
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 7, NULL, 6, mask, &e), TG_STATUS_NULL);
  KEEPS(mask, tg_allow_many_bytes(rule, keys, 7, lens, 6, NULL, &e), TG_STATUS_NULL);
}

static void held(void) {
  tg_decision d;
  tg_reservation *reservation;
  tg_permit_handle *permit, *other;
  tg_budget_state b;
  OK(tg_reserve_bytes(rule, alice, 5, 3, &d, &reservation, &e));
  CHECK(reservation && tg_settle(reservation, 1) == 1);
  tg_reservation_free(reservation);
  OK(tg_reserve_bytes(rule, alice, 5, 3, &d, &reservation, &e));
  CHECK(!d.allowed && reservation == NULL);
  OK(tg_permit_bytes(jobs, alice, 5, &d, &permit, &e));
  OK(tg_permit_bytes(jobs, alice, 5, &d, &other, &e));
  CHECK(permit && other == NULL && tg_release(permit) == 1);
  tg_permit_free(permit);
  OK(tg_spend_bytes(spent, alice, 5, 4, &b, &e));
  CHECK(b.version == TG_BUDGET_STATE_VERSION && b.spent == 4 && b.remaining == 1);
  OK(tg_budget_bytes(spent, alice, 5, &b, &e));
  CHECK(b.spent == 4 && !b.over && b.reserved == 0 && b.reserved_words[3] == 0);
  KEEPS(permit, tg_permit_bytes(rule, alice, 5, &d, &permit, &e), TG_STATUS_OPERATION);
  KEEPS(reservation, tg_reserve_bytes(jobs, alice, 5, 1, &d, &reservation, &e),
        TG_STATUS_OPERATION);
  KEEPS(b, tg_spend_bytes(rule, alice, 5, 1, &b, &e), TG_STATUS_OPERATION);
  KEEPS(b, tg_budget_bytes(rule, alice, 5, &b, &e), TG_STATUS_OPERATION);
}

static void changes(void) {
  tg_change_options options = TG_CHANGE_OPTIONS_INIT;
  tg_decision d;
  uint64_t n;
  options.for_ms = 60000;
  OK(tg_block_bytes(rule, alice, 5, &options, &n, &e));
  OK(tg_hit_bytes(rule, alice, 5, 1, &d, &e));
  SAME(d.reason, "blocked");
  CHECK(n > 0 && d.retry_after_ms == 60000);
  CHECK(tg_unblock_bytes(rule, alice, 5, NULL, &e) == 1);
  CHECK(tg_unblock_bytes(rule, alice, 5, NULL, &e) == 0);
  OK(tg_set_override_bytes(rule, alice, 5, "\"9/s\"", NULL, &n, &e));
  OK(tg_peek_bytes(rule, alice, 5, 0, &d, &e));
  CHECK(d.limit == 9);
  OK(tg_clear_override_bytes(rule, alice, 5, NULL, &n, &e));
  OK(tg_peek_bytes(rule, alice, 5, 0, &d, &e));
  CHECK(n > 0 && d.limit == 3);
  options.version = 0;
  KEEPS(n, tg_block_bytes(rule, alice, 5, &options, &n, &e), TG_STATUS_ARGUMENT);
  FAILS_BYTES(tg_unblock_bytes(rule, alice, 5, &options, &e), -TG_STATUS_ARGUMENT);
  KEEPS(n, tg_set_override_bytes(rule, alice, 5, "{", NULL, &n, &e), TG_STATUS_ARGUMENT);
  KEEPS(n, tg_clear_override_bytes(rule, alice, 5, &options, &n, &e), TG_STATUS_ARGUMENT);
}

/* A key at NULL, one of a length that is none, no rule, and a rule whose keys have two parts. */
static void wrong_keys(const tg_rule *pairs) {
  tg_decision d;
  tg_recorded r;
  tg_key_stats s;
  tg_budget_state b;
  tg_reservation *reservation;
  tg_permit_handle *permit;
  char *text;
  uint64_t n;
  struct {
    const tg_rule *rule;
    const uint8_t *key;
    size_t len;
    int status;
  } wrong[] = {{rule, NULL, 5, TG_STATUS_NULL},
               {rule, alice, SIZE_MAX, TG_STATUS_LENGTH},
               {NULL, alice, 5, TG_STATUS_NULL},
               {pairs, alice, 5, TG_STATUS_KEY}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const tg_rule *at = wrong[i].rule;
    const uint8_t *key = wrong[i].key;
    size_t len = wrong[i].len;
    int status = wrong[i].status;
    KEEPS(d, tg_hit_bytes(at, key, len, 1, &d, &e), status);
    KEEPS(d, tg_check_bytes(at, key, len, 1, &d, &e), status);
    KEEPS(d, tg_peek_bytes(at, key, len, 1, &d, &e), status);
    KEEPS(r, tg_record_bytes(at, key, len, 1, &r, &e), status);
    FAILS_BYTES(tg_refund_bytes(at, key, len, 1, &e), status);
    KEEPS(reservation, tg_reserve_bytes(at, key, len, 1, &d, &reservation, &e), status);
    FAILS_BYTES(tg_is_limited_bytes(at, key, len, &e), -status);
    KEEPS(s, tg_stats_bytes(at, key, len, &s, &e), status);
    KEEPS(text, tg_why_bytes(at, key, len, 1, &text, &e), status);
    FAILS_BYTES(tg_reset_bytes(at, key, len, &e), status);
    KEEPS(n, tg_block_bytes(at, key, len, NULL, &n, &e), status);
    FAILS_BYTES(tg_unblock_bytes(at, key, len, NULL, &e), -status);
    KEEPS(n, tg_set_override_bytes(at, key, len, "\"9/s\"", NULL, &n, &e), status);
    /* Pairs have no permits and no budget, and no override of such a key. */
    if (status == TG_STATUS_KEY) continue;
    KEEPS(n, tg_clear_override_bytes(at, key, len, NULL, &n, &e), status);
    KEEPS(permit, tg_permit_bytes(at ? jobs : at, key, len, &d, &permit, &e), status);
    KEEPS(b, tg_spend_bytes(at ? spent : at, key, len, 1, &b, &e), status);
    KEEPS(b, tg_budget_bytes(at ? spent : at, key, len, &b, &e), status);
  }
  KEEPS(n, tg_hit_bytes(rule, alice, 5, 1, NULL, &e), TG_STATUS_NULL);
  CHECK(tg_hit_bytes(rule, alice, 5, 1, NULL, NULL) == TG_STATUS_NULL);
}

static void errors(void) {
  static char policy[4000] = "{version: 1, rules: {}";
  tg_limiter *none = NULL;
  OK(tg_last_error_copy(&e));
  CHECK(e.status == 0 && e.text[0] == '\0' && e.length == 0);
  CHECK(tg_last_error_copy(NULL) == TG_STATUS_NULL);
  CHECK(tg_limiter_new("1/x", NULL, &none) == TG_STATUS_POLICY);
  OK(tg_last_error_copy(&e));
  CHECK(e.status == TG_STATUS_POLICY && e.reserved == 0 && e.length == strlen(e.text));
  SAME(e.text, tg_last_error());
  /* Of a message that is too long, the start. */
  for (int i = 0; i < 100; i++) {
    char field[20];
    snprintf(field, sizeof field, ", unknown%d: 1", i);
    strcat(policy, field);
  }
  strcat(policy, "}");
  CHECK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), NULL, &none) ==
        TG_STATUS_POLICY);
  OK(tg_last_error_copy(&e));
  CHECK(e.length > 5000 && strlen(tg_last_error()) == 4095);
  CHECK(strlen(e.text) == TG_ERROR_TEXT_SIZE - 1);
  CHECK(strncmp(e.text, tg_last_error(), TG_ERROR_TEXT_SIZE - 1) == 0);
}

int main(void) {
  const char *policy =
      "{version: 1, rules: {r: {limits: 3/s}, jobs: {limits: 1 concurrent},"
      " spent: {limits: 9/s, budget: {daily: 5}}, pairs: {key: [a, b], limits: 9/s}}}";
  const tg_rule *pairs;
  tg_manual_clock *clock;
  tg_options options = TG_OPTIONS_INIT;
  errors();
  OK(tg_manual_clock_new(0, 1700000000000, &clock));
  options.clock = clock;
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &limiter));
  OK(tg_rule_get(limiter, "r", &rule));
  OK(tg_rule_get(limiter, "jobs", &jobs));
  OK(tg_rule_get(limiter, "spent", &spent));
  OK(tg_rule_get(limiter, "pairs", &pairs));
  hits();
  OK(tg_reset_all(rule));
  batches();
  OK(tg_reset_all(rule));
  held();
  changes();
  wrong_keys(pairs);
  tg_limiter_free(limiter);
  tg_manual_clock_free(clock);
  return 0;
}

/* Whatever is wrong with an argument: a status and a message, and nothing written. */
#include "check.h"

/* Fails as said, and leaves `variable` as it was. */
#define KEEPS(variable, call, status)                       \
  do {                                                      \
    unsigned char was[sizeof(variable)];                    \
    memset(&(variable), 0x5a, sizeof(variable));            \
    memcpy(was, &(variable), sizeof(variable));             \
    FAILS(call, status);                                    \
    CHECK(memcmp(was, &(variable), sizeof(variable)) == 0); \
  } while (0)

static tg_limiter *limiter;
static const tg_rule *rule;

static void making(void) {
  tg_limiter *out;
  tg_manual_clock *clock;
  const tg_rule *got;
  uint64_t now;
  tg_options options = TG_OPTIONS_INIT;
  const uint8_t *bytes = (const uint8_t *)"\xff";
  KEEPS(out, tg_limiter_new(NULL, NULL, &out), TG_STATUS_NULL);
  FAILS(tg_limiter_new("1/s", NULL, NULL), TG_STATUS_NULL);
  KEEPS(out, tg_limiter_new("1/x", NULL, &out), TG_STATUS_POLICY);
  KEEPS(out, tg_limiter_new("\xff", NULL, &out), TG_STATUS_UTF8);
  KEEPS(out, tg_limiter_from_policy(NULL, 3, NULL, &out), TG_STATUS_NULL);
  KEEPS(out, tg_limiter_from_policy(NULL, 0, NULL, &out), TG_STATUS_POLICY);
  KEEPS(out, tg_limiter_from_policy(bytes, 1, NULL, &out), TG_STATUS_UTF8);
  KEEPS(out, tg_limiter_from_policy(bytes, SIZE_MAX, NULL, &out), TG_STATUS_LENGTH);
  FAILS(tg_limiter_from_policy(bytes, 1, NULL, NULL), TG_STATUS_NULL);
  KEEPS(out, tg_limiter_from_file(NULL, NULL, &out), TG_STATUS_NULL);
  KEEPS(out, tg_limiter_from_file("/nowhere/policy.yaml", NULL, &out), TG_STATUS_FILE);
  FAILS(tg_limiter_from_file("/nowhere", NULL, NULL), TG_STATUS_NULL);
  options.version = 0;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_ARGUMENT);
  options.version = TG_OPTIONS_VERSION + 1;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_ARGUMENT);
  options.version = TG_OPTIONS_VERSION;
  options.memory = 1;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_MEMORY);
  options.memory = 0;
  options.on_full = 4;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_ARGUMENT);
  options.on_full = TG_ON_FULL_ALLOW;
  options.recreate = 2;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_ARGUMENT);
  options.recreate = 0;
  options.group = 2;
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_ARGUMENT);
  options.group = 0;
  options.store = "nonsense:";
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_STORE);
  options.store = "\xff";
  KEEPS(out, tg_limiter_new("1/s", &options, &out), TG_STATUS_UTF8);
  options.store = NULL;
  options.capacity = UINT64_MAX;
  memset(&out, 0, sizeof out);
  CHECK(tg_limiter_new("1/s", &options, &out) != TG_STATUS_OK && out == NULL);
  KEEPS(got, tg_rule_get(NULL, "default", &got), TG_STATUS_NULL);
  KEEPS(got, tg_rule_get(limiter, NULL, &got), TG_STATUS_NULL);
  KEEPS(got, tg_rule_get(limiter, "defualt", &got), TG_STATUS_RULE);
  HAS(tg_last_error(), "default");
  FAILS(tg_rule_get(limiter, "default", NULL), TG_STATUS_NULL);
  FAILS(tg_limiter_close(NULL), TG_STATUS_NULL);
  FAILS(tg_reload(NULL), TG_STATUS_NULL);
  FAILS(tg_reload(limiter), TG_STATUS_OPERATION);
  FAILS(tg_manual_clock_new(0, 0, NULL), TG_STATUS_NULL);
  KEEPS(clock, tg_manual_clock_new(UINT64_MAX, 0, &clock), TG_STATUS_RANGE);
  KEEPS(clock, tg_manual_clock_new(0, UINT64_MAX, &clock), TG_STATUS_RANGE);
  FAILS(tg_manual_clock_advance(NULL, 0), TG_STATUS_NULL);
  FAILS(tg_manual_clock_set(NULL, 0), TG_STATUS_NULL);
  FAILS(tg_manual_clock_set_wall(NULL, 0), TG_STATUS_NULL);
  KEEPS(now, tg_manual_clock_now(NULL, &now), TG_STATUS_NULL);
  OK(tg_manual_clock_new(0, 0, &clock));
  FAILS(tg_manual_clock_now(clock, NULL), TG_STATUS_NULL);
  FAILS(tg_manual_clock_advance(clock, UINT64_MAX), TG_STATUS_RANGE);
  FAILS(tg_manual_clock_set(clock, UINT64_MAX), TG_STATUS_RANGE);
  FAILS(tg_manual_clock_set_wall(clock, UINT64_MAX), TG_STATUS_RANGE);
  tg_manual_clock_free(clock);
  /* Freeing nothing is fine. */
  tg_manual_clock_free(NULL);
  tg_limiter_free(NULL);
  tg_permit_free(NULL);
  tg_reservation_free(NULL);
  tg_string_free(NULL);
}

static void wrong_keys(void) {
  tg_decision d;
  tg_bytes parts[9] = {TG_BYTES("a"), TG_BYTES("b")};
  tg_attribute attributes[33] = {{TG_BYTES("role"), TG_BYTES("\xff")}};
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_key bad = k;
#define REFUSED(status)                            \
  KEEPS(d, tg_hit(rule, &bad, 1, &d), status); \
  bad = k
  bad.version = 0;
  REFUSED(TG_STATUS_ARGUMENT);
  bad.version = TG_KEY_VERSION + 1;
  REFUSED(TG_STATUS_ARGUMENT);
  bad.has_max = 2;
  REFUSED(TG_STATUS_ARGUMENT);
  bad.bytes.data = NULL;
  REFUSED(TG_STATUS_NULL);
  bad.bytes.len = SIZE_MAX;
  REFUSED(TG_STATUS_LENGTH);
  bad.parts = parts; /* both */
  bad.part_count = 1;
  REFUSED(TG_STATUS_ARGUMENT);
  bad.bytes.len = 0;
  bad.part_count = 1; /* at NULL */
  REFUSED(TG_STATUS_NULL);
  bad.bytes.len = 0;
  bad.parts = parts;
  bad.part_count = 2; /* the rule has one */
  REFUSED(TG_STATUS_KEY);
  bad.bytes.len = 0;
  bad.parts = parts; /* none */
  REFUSED(TG_STATUS_KEY);
  bad.bytes.len = 0;
  bad.parts = parts;
  bad.part_count = 9;
  REFUSED(TG_STATUS_KEY);
  bad.bytes.len = 0;
  bad.parts = parts;
  bad.part_count = SIZE_MAX;
  REFUSED(TG_STATUS_KEY);
  parts[0].data = NULL;
  bad.bytes.len = 0;
  bad.parts = parts;
  bad.part_count = 1;
  REFUSED(TG_STATUS_NULL);
  bad.attribute_count = 1;
  REFUSED(TG_STATUS_NULL);
  bad.attributes = attributes;
  bad.attribute_count = 33;
  REFUSED(TG_STATUS_LENGTH);
  bad.attributes = attributes;
  bad.attribute_count = 1;
  REFUSED(TG_STATUS_UTF8);
  attributes[0].name.data = NULL;
  bad.attributes = attributes;
  bad.attribute_count = 1;
  REFUSED(TG_STATUS_NULL);
}

static void nulls(void) {
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_decision d;
  tg_recorded r;
  tg_budget_state b;
  tg_key_stats s;
  tg_reservation *reservation;
  tg_permit_handle *permit;
  char *text;
  size_t n;
  uint8_t mask[1];
  tg_bytes keys[1] = {TG_BYTES("a")};
  FAILS(-tg_allow(NULL, NULL, 0), TG_STATUS_NULL);
  FAILS(-tg_allow(rule, NULL, 1), TG_STATUS_NULL);
  FAILS(-tg_allow(rule, (const uint8_t *)"a", SIZE_MAX), TG_STATUS_LENGTH);
  KEEPS(mask, tg_allow_many(NULL, keys, 1, mask), TG_STATUS_NULL);
  KEEPS(mask, tg_allow_many(rule, NULL, 1, mask), TG_STATUS_NULL);
  KEEPS(mask, tg_allow_many(rule, keys, SIZE_MAX / 2, mask), TG_STATUS_LENGTH);
  FAILS(tg_allow_many(rule, keys, 1, NULL), TG_STATUS_NULL);
  keys[0].data = NULL;
  KEEPS(mask, tg_allow_many(rule, keys, 1, mask), TG_STATUS_NULL);
#define DECIDES(function)                                  \
  KEEPS(d, function(NULL, &k, 1, &d), TG_STATUS_NULL);     \
  KEEPS(d, function(rule, NULL, 1, &d), TG_STATUS_NULL);   \
  FAILS(function(rule, &k, 1, NULL), TG_STATUS_NULL)
  DECIDES(tg_hit);
  DECIDES(tg_check);
  DECIDES(tg_peek);
  KEEPS(r, tg_record(NULL, &k, 1, &r), TG_STATUS_NULL);
  KEEPS(r, tg_record(rule, NULL, 1, &r), TG_STATUS_NULL);
  FAILS(tg_record(rule, &k, 1, NULL), TG_STATUS_NULL);
  FAILS(tg_refund(NULL, &k, 1), TG_STATUS_NULL);
  FAILS(tg_refund(rule, NULL, 1), TG_STATUS_NULL);
  KEEPS(b, tg_spend(NULL, &k, 1, &b), TG_STATUS_NULL);
  KEEPS(b, tg_spend(rule, NULL, 1, &b), TG_STATUS_NULL);
  KEEPS(b, tg_spend(rule, &k, 1, &b), TG_STATUS_OPERATION);
  FAILS(tg_spend(rule, &k, 1, NULL), TG_STATUS_NULL);
  KEEPS(b, tg_budget(NULL, &k, &b), TG_STATUS_NULL);
  KEEPS(b, tg_budget(rule, NULL, &b), TG_STATUS_NULL);
  FAILS(tg_budget(rule, &k, NULL), TG_STATUS_NULL);
  FAILS(-tg_is_limited(NULL, &k), TG_STATUS_NULL);
  FAILS(-tg_is_limited(rule, NULL), TG_STATUS_NULL);
  KEEPS(s, tg_stats(NULL, &k, &s), TG_STATUS_NULL);
  KEEPS(s, tg_stats(rule, NULL, &s), TG_STATUS_NULL);
  FAILS(tg_stats(rule, &k, NULL), TG_STATUS_NULL);
  FAILS(tg_reset(NULL, &k), TG_STATUS_NULL);
  FAILS(tg_reset(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_reset_all(NULL), TG_STATUS_NULL);
  KEEPS(n, tg_prune(NULL, &n), TG_STATUS_NULL);
  FAILS(tg_prune(rule, NULL), TG_STATUS_NULL);
  KEEPS(n, tg_len(NULL, &n), TG_STATUS_NULL);
  FAILS(tg_len(rule, NULL), TG_STATUS_NULL);

  KEEPS(reservation, tg_reserve(NULL, &k, 1, &d, &reservation), TG_STATUS_NULL);
  KEEPS(reservation, tg_reserve(rule, NULL, 1, &d, &reservation), TG_STATUS_NULL);
  KEEPS(reservation, tg_reserve(rule, &k, 1, NULL, &reservation), TG_STATUS_NULL);
  KEEPS(d, tg_reserve(rule, &k, 1, &d, NULL), TG_STATUS_NULL);
  FAILS(-tg_settle(NULL, 1), TG_STATUS_NULL);
  FAILS(-tg_cancel(NULL), TG_STATUS_NULL);
  KEEPS(permit, tg_permit(NULL, &k, &d, &permit), TG_STATUS_NULL);
  KEEPS(permit, tg_permit(rule, NULL, &d, &permit), TG_STATUS_NULL);
  KEEPS(permit, tg_permit(rule, &k, NULL, &permit), TG_STATUS_NULL);
  KEEPS(permit, tg_permit(rule, &k, &d, &permit), TG_STATUS_OPERATION);
  KEEPS(d, tg_permit(rule, &k, &d, NULL), TG_STATUS_NULL);
  FAILS(-tg_release(NULL), TG_STATUS_NULL);
  FAILS(-tg_renew(NULL), TG_STATUS_NULL);

  KEEPS(text, tg_metrics(NULL, &text), TG_STATUS_NULL);
  FAILS(tg_metrics(limiter, NULL), TG_STATUS_NULL);
  KEEPS(text, tg_events(NULL, NULL, &text), TG_STATUS_NULL);
  FAILS(tg_events(limiter, NULL, NULL), TG_STATUS_NULL);
  KEEPS(text, tg_events(limiter, "yesterday", &text), TG_STATUS_RANGE);
  KEEPS(text, tg_audit(NULL, &text), TG_STATUS_NULL);
  FAILS(tg_audit(limiter, NULL), TG_STATUS_NULL);
}

static void changes(void) {
  tg_key k = TG_KEY_INIT("alice", 5);
  char *text;
  const char *limits = "{\"2/min\": {\"max\": 3}}", *match = "{\"role\": \"x\"}";
  FAILS(tg_set_override(NULL, &k, limits), TG_STATUS_NULL);
  FAILS(tg_set_override(rule, NULL, limits), TG_STATUS_NULL);
  FAILS(tg_set_override(rule, &k, NULL), TG_STATUS_NULL);
  FAILS(tg_set_override(rule, &k, "{"), TG_STATUS_ARGUMENT);
  FAILS(tg_set_override(rule, &k, "\xff"), TG_STATUS_UTF8);
  FAILS(tg_set_override(rule, &k, "{\"3/min\": {\"max\": 3}}"), TG_STATUS_POLICY);
  FAILS(tg_set_override_match(NULL, match, limits), TG_STATUS_NULL);
  FAILS(tg_set_override_match(rule, NULL, limits), TG_STATUS_NULL);
  FAILS(tg_set_override_match(rule, match, NULL), TG_STATUS_NULL);
  FAILS(tg_set_override_match(rule, "7", limits), TG_STATUS_POLICY);
  FAILS(-tg_clear_override(NULL, &k), TG_STATUS_NULL);
  FAILS(-tg_clear_override(rule, NULL), TG_STATUS_NULL);
  FAILS(-tg_clear_override_match(NULL, match), TG_STATUS_NULL);
  FAILS(-tg_clear_override_match(rule, NULL), TG_STATUS_NULL);
  KEEPS(text, tg_why(NULL, &k, 1, &text), TG_STATUS_NULL);
  KEEPS(text, tg_why(rule, NULL, 1, &text), TG_STATUS_NULL);
  FAILS(tg_why(rule, &k, 1, NULL), TG_STATUS_NULL);
  KEEPS(text, tg_overrides(NULL, &text), TG_STATUS_NULL);
  FAILS(tg_overrides(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_set_default(NULL, limits), TG_STATUS_NULL);
  FAILS(tg_set_default(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_add_exempt(NULL, match), TG_STATUS_NULL);
  FAILS(tg_add_exempt(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_add_exempt(rule, "{\"ip\": \"10.0.0.0/99\"}"), TG_STATUS_POLICY);
  FAILS(-tg_remove_exempt(NULL, match), TG_STATUS_NULL);
  FAILS(-tg_remove_exempt(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_set_exempts(NULL, "[]"), TG_STATUS_NULL);
  FAILS(tg_set_exempts(rule, NULL), TG_STATUS_NULL);
  FAILS(tg_set_exempts(rule, "{}"), TG_STATUS_ARGUMENT);
  KEEPS(text, tg_exempts(NULL, &text), TG_STATUS_NULL);
  FAILS(tg_exempts(rule, NULL), TG_STATUS_NULL);
}

static void changes_with_options(void) {
  tg_key k = TG_KEY_INIT("alice", 5), two = k;
  tg_bytes parts[2] = {TG_BYTES("a"), TG_BYTES("b")};
  uint64_t n;
  char *text, long_by[202], long_reason[1002];
  const char *limits = "{\"2/min\": {\"max\": 3}}", *match = "{\"role\": \"x\"}";
  tg_change_options o = TG_CHANGE_OPTIONS_INIT, bad = o, hour = o;
  two.bytes.len = 0;
  two.parts = parts;
  two.part_count = 2;
  hour.for_ms = 3600000;
  memset(long_by, 'x', sizeof long_by);
  long_by[201] = '\0';
  memset(long_reason, 'x', sizeof long_reason);
  long_reason[1001] = '\0';

  KEEPS(n, tg_set_override_with(NULL, &k, limits, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_with(rule, NULL, limits, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_with(rule, &k, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_with(rule, &k, "{", &o, &n), TG_STATUS_ARGUMENT);
  KEEPS(n, tg_set_override_with(rule, &two, limits, &o, &n), TG_STATUS_KEY);
  KEEPS(n, tg_set_override_match_with(NULL, match, limits, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_match_with(rule, NULL, limits, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_match_with(rule, match, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_override_match_with(rule, "]", limits, &o, &n), TG_STATUS_ARGUMENT);
  KEEPS(n, tg_clear_override_with(NULL, &k, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_clear_override_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_clear_override_match_with(NULL, match, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_clear_override_match_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_default_with(NULL, limits, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_default_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_add_exempt_with(NULL, match, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_add_exempt_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_remove_exempt_with(NULL, match, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_remove_exempt_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_exempts_with(NULL, "[]", &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_exempts_with(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_exempts_with(rule, "{}", &o, &n), TG_STATUS_ARGUMENT);
  KEEPS(n, tg_set_mode(NULL, "off", &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_mode(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_set_mode(rule, "\xff", &o, &n), TG_STATUS_UTF8);
  KEEPS(n, tg_set_mode(rule, "loud\n", &o, &n), TG_STATUS_ARGUMENT);
  SAME(tg_last_error(), "`mode` is \"enforce\", \"shadow\" or \"off\", not \"loud\\n\"");
  KEEPS(n, tg_clear_mode(NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_block(NULL, &k, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_block(rule, NULL, &o, &n), TG_STATUS_NULL);
  KEEPS(n, tg_block(rule, &two, &o, &n), TG_STATUS_KEY);
  FAILS(-tg_unblock(NULL, &k), TG_STATUS_NULL);
  FAILS(-tg_unblock(rule, NULL), TG_STATUS_NULL);
  FAILS(-tg_unblock(rule, &two), TG_STATUS_KEY);
  FAILS(-tg_unblock_with(NULL, &k, &o), TG_STATUS_NULL);
  FAILS(-tg_unblock_with(rule, NULL, &o), TG_STATUS_NULL);
  KEEPS(text, tg_blocks(NULL, &text), TG_STATUS_NULL);
  FAILS(tg_blocks(rule, NULL), TG_STATUS_NULL);
  KEEPS(text, tg_changes(NULL, 0, &text), TG_STATUS_NULL);
  FAILS(tg_changes(limiter, 0, NULL), TG_STATUS_NULL);

  /* Options that can't be had, whatever they are for. */
#define EVERY(options, status)                                                                \
  KEEPS(n, tg_set_override_with(rule, &k, limits, &options, &n), status);                     \
  KEEPS(n, tg_set_override_match_with(rule, match, limits, &options, &n), status);            \
  KEEPS(n, tg_clear_override_with(rule, &k, &options, &n), status);                           \
  KEEPS(n, tg_clear_override_match_with(rule, match, &options, &n), status);                  \
  KEEPS(n, tg_set_default_with(rule, limits, &options, &n), status);                          \
  KEEPS(n, tg_add_exempt_with(rule, match, &options, &n), status);                            \
  KEEPS(n, tg_remove_exempt_with(rule, match, &options, &n), status);                         \
  KEEPS(n, tg_set_exempts_with(rule, "[]", &options, &n), status);                            \
  KEEPS(n, tg_set_mode(rule, "off", &options, &n), status);                                   \
  KEEPS(n, tg_clear_mode(rule, &options, &n), status);                                        \
  KEEPS(n, tg_block(rule, &k, &options, &n), status);                                         \
  FAILS(-tg_unblock_with(rule, &k, &options), status)
  bad.version = 0;
  EVERY(bad, TG_STATUS_ARGUMENT);
  HAS(tg_last_error(), "TG_CHANGE_OPTIONS_INIT");
  bad.version = TG_CHANGE_OPTIONS_VERSION + 1;
  EVERY(bad, TG_STATUS_ARGUMENT);
  bad = o;
  bad.reserved = 1;
  EVERY(bad, TG_STATUS_ARGUMENT);
  HAS(tg_last_error(), "TG_CHANGE_OPTIONS_INIT");
  bad = o;
  bad.for_ms = 36600ull * 86400000 + 1;
  EVERY(bad, TG_STATUS_RANGE);
  HAS(tg_last_error(), "options.for_ms: a change is made for 1 ms to 36,600 days");
  bad.for_ms = UINT64_MAX;
  EVERY(bad, TG_STATUS_RANGE);
  bad = o;
  bad.by = long_by;
  EVERY(bad, TG_STATUS_RANGE);
  HAS(tg_last_error(), "by: it has more than 200 bytes");
  bad.by = "\xff";
  EVERY(bad, TG_STATUS_UTF8);
  HAS(tg_last_error(), "options.by");
  bad = o;
  bad.reason = long_reason;
  EVERY(bad, TG_STATUS_RANGE);
  HAS(tg_last_error(), "reason: it has more than 1000 bytes");
  bad.reason = "\xff";
  EVERY(bad, TG_STATUS_UTF8);
  HAS(tg_last_error(), "options.reason");

  /* What takes something back has no end. */
#define ENDLESS(call)              \
  FAILS(call, TG_STATUS_OPERATION); \
  HAS(tg_last_error(), "options.for_ms: ")
  ENDLESS(tg_clear_override_with(rule, &k, &hour, NULL));
  ENDLESS(tg_clear_override_match_with(rule, match, &hour, NULL));
  ENDLESS(tg_remove_exempt_with(rule, match, &hour, NULL));
  ENDLESS(tg_clear_mode(rule, &hour, NULL));
  ENDLESS(-tg_unblock_with(rule, &k, &hour));

  /* Nothing of all that was done. */
  OK(tg_changes(limiter, 0, &text));
  SAME(text, "{\"changes\":[],\"next\":0,\"missed\":0}");
  tg_string_free(text);
}

static void texts(void) {
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_decision d, bad;
  char buffer[256];
  size_t n;
  OK(tg_peek(rule, &k, 1, &d));
  KEEPS(n, tg_decision_headers(NULL, &d, 0, buffer, 256, &n), TG_STATUS_NULL);
  KEEPS(n, tg_decision_headers(rule, NULL, 0, buffer, 256, &n), TG_STATUS_NULL);
  KEEPS(n, tg_decision_headers(rule, &d, 0, NULL, 256, &n), TG_STATUS_NULL);
  KEEPS(n, tg_decision_headers(rule, &d, 3, buffer, 256, &n), TG_STATUS_ARGUMENT);
  KEEPS(n, tg_decision_headers(rule, &d, 0, buffer, SIZE_MAX, &n), TG_STATUS_LENGTH);
  KEEPS(buffer, tg_decision_headers(rule, &d, 0, buffer, 256, NULL), TG_STATUS_NULL);
  KEEPS(buffer, tg_decision_headers(rule, &d, 0, buffer, 1, &n), TG_STATUS_BUFFER);
  bad = d;
  bad.version = 0;
  KEEPS(n, tg_decision_headers(rule, &bad, 0, buffer, 256, &n), TG_STATUS_ARGUMENT);
  bad = d;
  bad.limit_count = 9;
  KEEPS(n, tg_decision_headers(rule, &bad, 0, buffer, 256, &n), TG_STATUS_ARGUMENT);
  bad = d; /* nonsense, but no harm */
  bad.allowed = 77;
  bad.reset_after_ms = INT64_MAX;
  bad.at_ns = UINT64_MAX;
  OK(tg_decision_headers(rule, &bad, 0, buffer, 256, &n));

  KEEPS(n, tg_ip_key(NULL, 56, buffer, 256, &n), TG_STATUS_NULL);
  KEEPS(n, tg_ip_key("localhost", 56, buffer, 256, &n), TG_STATUS_ADDRESS);
  KEEPS(n, tg_ip_key("::1", 129, buffer, 256, &n), TG_STATUS_ADDRESS);
  KEEPS(n, tg_ip_key("::1", 1000, buffer, 256, &n), TG_STATUS_ADDRESS);
  KEEPS(n, tg_ip_key("::1", 128, NULL, 256, &n), TG_STATUS_NULL);
  KEEPS(buffer, tg_ip_key("::1", 128, buffer, 3, &n), TG_STATUS_BUFFER);
  KEEPS(buffer, tg_ip_key("::1", 128, buffer, 256, NULL), TG_STATUS_NULL);
}

/* A closed limiter says so, whatever it is asked; what it has handed out can still be freed. */
static void closed(void) {
  const char *policy =
      "{version: 1, rules: {a: {limits: 9/min, budget: {daily: 5}}, b: {limits: 1 concurrent}}}";
  tg_limiter *one;
  const tg_rule *a, *b, *late;
  tg_key k = TG_KEY_INIT("alice", 5);
  tg_bytes keys[1] = {TG_BYTES("a")};
  tg_decision d;
  tg_recorded r;
  tg_budget_state s;
  tg_key_stats stats;
  tg_reservation *reservation, *other;
  tg_permit_handle *permit, *slot;
  char *text;
  size_t n;
  uint64_t number;
  uint8_t mask[1];
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), NULL, &one));
  OK(tg_rule_get(one, "a", &a));
  OK(tg_rule_get(one, "b", &b));
  OK(tg_reserve(a, &k, 1, &d, &reservation));
  OK(tg_permit(b, &k, &d, &permit));
  OK(tg_limiter_close(one));
  OK(tg_limiter_close(one));
  KEEPS(late, tg_rule_get(one, "b", &late), TG_STATUS_CLOSED);
  FAILS(tg_reload(one), TG_STATUS_CLOSED);
  FAILS(-tg_allow(a, NULL, 0), TG_STATUS_CLOSED);
  KEEPS(mask, tg_allow_many(a, keys, 1, mask), TG_STATUS_CLOSED);
  KEEPS(d, tg_hit(a, &k, 1, &d), TG_STATUS_CLOSED);
  KEEPS(d, tg_check(a, &k, 1, &d), TG_STATUS_CLOSED);
  KEEPS(d, tg_peek(a, &k, 1, &d), TG_STATUS_CLOSED);
  KEEPS(r, tg_record(a, &k, 1, &r), TG_STATUS_CLOSED);
  FAILS(tg_refund(a, &k, 1), TG_STATUS_CLOSED);
  KEEPS(other, tg_reserve(a, &k, 1, &d, &other), TG_STATUS_CLOSED);
  KEEPS(slot, tg_permit(b, &k, &d, &slot), TG_STATUS_CLOSED);
  KEEPS(s, tg_spend(a, &k, 1, &s), TG_STATUS_CLOSED);
  KEEPS(s, tg_budget(a, &k, &s), TG_STATUS_CLOSED);
  FAILS(-tg_is_limited(a, &k), TG_STATUS_CLOSED);
  KEEPS(stats, tg_stats(a, &k, &stats), TG_STATUS_CLOSED);
  FAILS(tg_reset(a, &k), TG_STATUS_CLOSED);
  FAILS(tg_reset_all(a), TG_STATUS_CLOSED);
  KEEPS(n, tg_prune(a, &n), TG_STATUS_CLOSED);
  KEEPS(n, tg_len(a, &n), TG_STATUS_CLOSED);
  FAILS(tg_set_override(a, &k, "{}"), TG_STATUS_CLOSED);
  FAILS(-tg_clear_override(a, &k), TG_STATUS_CLOSED);
  KEEPS(text, tg_why(a, &k, 1, &text), TG_STATUS_CLOSED);
  KEEPS(text, tg_overrides(a, &text), TG_STATUS_CLOSED);
  FAILS(tg_set_default(a, "{}"), TG_STATUS_CLOSED);
  FAILS(tg_add_exempt(a, "{\"role\": \"x\"}"), TG_STATUS_CLOSED);
  FAILS(-tg_remove_exempt(a, "{\"role\": \"x\"}"), TG_STATUS_CLOSED);
  FAILS(tg_set_exempts(a, "[]"), TG_STATUS_CLOSED);
  KEEPS(text, tg_exempts(a, &text), TG_STATUS_CLOSED);
  KEEPS(number, tg_set_override_with(a, &k, "{}", NULL, &number), TG_STATUS_CLOSED);
  KEEPS(number, tg_set_mode(a, "off", NULL, &number), TG_STATUS_CLOSED);
  KEEPS(number, tg_clear_mode(a, NULL, &number), TG_STATUS_CLOSED);
  KEEPS(number, tg_block(a, &k, NULL, &number), TG_STATUS_CLOSED);
  FAILS(-tg_unblock(a, &k), TG_STATUS_CLOSED);
  KEEPS(text, tg_blocks(a, &text), TG_STATUS_CLOSED);
  KEEPS(text, tg_changes(one, 0, &text), TG_STATUS_CLOSED);
  KEEPS(text, tg_metrics(one, &text), TG_STATUS_CLOSED);
  KEEPS(text, tg_events(one, NULL, &text), TG_STATUS_CLOSED);
  KEEPS(text, tg_audit(one, &text), TG_STATUS_CLOSED);
  tg_reservation_free(reservation);
  tg_permit_free(permit);
  tg_limiter_free(one);
}

#ifdef TEST_HOOKS
tg_status tg_test_panic(void);
#endif

int main(void) {
  tg_decision d;
  tg_key k = TG_KEY_INIT("alice", 5);
  SAME(tg_last_error(), "");
  OK(tg_limiter_new("2/min", NULL, &limiter));
  OK(tg_rule_get(limiter, "default", &rule));
#ifdef TEST_HOOKS
  FAILS(tg_test_panic(), TG_STATUS_PANIC);
  HAS(tg_last_error(), "on purpose");
#endif
  making();
  wrong_keys();
  nulls();
  changes();
  changes_with_options();
  texts();
  closed();
  /* Nothing of all that was counted. */
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.remaining == 2);
  tg_limiter_free(limiter);
  return 0;
}

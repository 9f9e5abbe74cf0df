/* Every function does what the header says. Time is a manual clock's. */
#include "check.h"

static tg_manual_clock *clock_;

static tg_limiter *from(const char *policy) {
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter = NULL;
  options.clock = clock_;
  OK(tg_limiter_from_policy((const uint8_t *)policy, strlen(policy), &options, &limiter));
  return limiter;
}

static const tg_rule *rule_of(const tg_limiter *limiter, const char *name) {
  const tg_rule *rule = NULL;
  OK(tg_rule_get(limiter, name, &rule));
  return rule;
}

static tg_key key(const char *text) {
  tg_key key = TG_KEY_INIT(text, strlen(text));
  return key;
}

static void versions(void) {
  SAME(tg_version(), TIDEGATE_VERSION);
  CHECK(tg_abi_version() == TG_ABI_VERSION);
  CHECK(tg_abi_version_oldest() == TG_ABI_VERSION_OLDEST);
  SAME(tg_status_name(TG_STATUS_OK), "ok");
  SAME(tg_status_name(TG_STATUS_KEY), "key");
  SAME(tg_status_name(-TG_STATUS_KEY), "key");
  SAME(tg_status_name(TG_STATUS_PANIC), "panic");
  SAME(tg_status_name(999), "unknown");
  SAME(tg_status_name(INT32_MIN), "unknown");
}

static void clocks(void) {
  tg_manual_clock *clock = NULL;
  uint64_t now = 0;
  OK(tg_manual_clock_new(5, 1000, &clock));
  OK(tg_manual_clock_advance(clock, 7));
  OK(tg_manual_clock_now(clock, &now));
  CHECK(now == 12);
  OK(tg_manual_clock_set(clock, 3));
  OK(tg_manual_clock_set_wall(clock, 1700000000000));
  OK(tg_manual_clock_now(clock, &now));
  CHECK(now == 3);
  tg_manual_clock_free(clock);
}

static void hits(void) {
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter = NULL;
  tg_decision d;
  tg_recorded r;
  tg_key_stats s;
  size_t n = 0;
  const uint8_t *alice = (const uint8_t *)"alice";
  tg_key k = key("alice");
  options.clock = clock_;
  options.capacity = 100;
  options.store = "memory";
  options.on_full = TG_ON_FULL_DENY;
  {
    tg_options small = TG_OPTIONS_INIT;
    char *text = NULL;
    OK(tg_limiter_new("500/h window", NULL, &limiter));
    OK(tg_audit(limiter, &text));
    HAS(text, "capacity_adapted");
    tg_string_free(text);
    tg_limiter_free(limiter);
    small.memory = 1000;
    CHECK(tg_limiter_new("3/min", &small, &limiter) == TG_STATUS_MEMORY);
    HAS(tg_last_error(), "1024 keys");
    /* A structure of version 1 ends before it. */
    small.version = 1;
    OK(tg_limiter_new("3/min", &small, &limiter));
    tg_limiter_free(limiter);
  }
  OK(tg_limiter_new("3/min", &options, &limiter));
  const tg_rule *rule = rule_of(limiter, "default");
  CHECK(rule == rule_of(limiter, "default"));

  CHECK(tg_allow(rule, alice, 5) == 1);
  OK(tg_hit(rule, &k, 1, &d));
  CHECK(d.version == TG_DECISION_VERSION && d.allowed && d.reason == NULL && d.would_deny == NULL);
  CHECK(d.attach == NULL && d.limit == 3 && d.remaining == 1 && d.retry_after_ms == 0);
  CHECK(d.reset_after_ms == 40000 && !d.warning && !d.alert && !d.notify);
  SAME(d.rule, "default");
  CHECK(d.limit_count == 1 && d.limits[0].max == 3 && d.limits[0].remaining == 1);
  CHECK(d.limits[0].window_seconds == 60 && d.limits[0].more_after_ms == 20000);
  SAME(d.limits[0].name, "3/min");
  OK(tg_check(rule, &k, 1, &d));
  CHECK(d.allowed);
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.allowed && d.remaining == 1);
  OK(tg_record(rule, &k, 5, &r));
  CHECK(r.used == 3 && r.limit == 3 && r.remaining == 0 && r.reset_after_ms == 60000);
  CHECK(tg_is_limited(rule, &k) == 1);
  OK(tg_hit(rule, &k, 1, &d));
  CHECK(!d.allowed && d.retry_after_ms == 20000 && d.notify);
  SAME(d.reason, "3/min");
  OK(tg_hit(rule, &k, 4, &d));
  CHECK(!d.allowed && d.retry_after_ms == TG_NONE);
  SAME(d.reason, "cost");
  CHECK(tg_allow(rule, alice, 5) == 0);
  OK(tg_refund(rule, &k, 2));
  CHECK(tg_is_limited(rule, &k) == 0);
  OK(tg_stats(rule, &k, &s));
  CHECK(s.known == 1 && s.limit_count == 1 && s.limits[0].used == 1 && s.limits[0].max == 3);
  CHECK(s.limits[0].remaining == 2 && s.has_budget == 0 && s.limits[1].name == NULL);
  SAME(s.limits[0].name, "3/min");
  OK(tg_len(rule, &n));
  CHECK(n == 1);
  OK(tg_reset(rule, &k));
  OK(tg_stats(rule, &k, &s));
  CHECK(s.known == 0);
  OK(tg_prune(rule, &n));
  OK(tg_len(rule, &n));
  CHECK(n == 0);

  /* A batch; the empty key is one too, and may be at NULL. */
  tg_bytes keys[5] = {TG_BYTES("a"), TG_BYTES("a"), TG_BYTES("a"), TG_BYTES("a"), {NULL, 0}};
  uint8_t mask[5] = {9, 9, 9, 9, 9};
  OK(tg_allow_many(rule, keys, 5, mask));
  CHECK(mask[0] == 1 && mask[1] == 1 && mask[2] == 1 && mask[3] == 0 && mask[4] == 1);
  OK(tg_allow_many(rule, NULL, 0, NULL));
  CHECK(tg_allow(rule, NULL, 0) == 1);
  OK(tg_reset_all(rule));
  OK(tg_len(rule, &n));
  CHECK(n == 0);

  /* A `max` of the call. */
  k.has_max = 1;
  k.max = 1;
  OK(tg_hit(rule, &k, 1, &d));
  CHECK(d.allowed && d.limit == 1 && d.remaining == 0);
  tg_limiter_free(limiter);
}

static void parts_and_attributes(void) {
  tg_limiter *limiter = from(
      "version: 1\n"
      "rules:\n"
      "  messages:\n"
      "    key: [channel, sender]\n"
      "    limits: 1/min\n"
      "    exempt: [{ role: admin }]\n"
      "    attach: { upgrade: 'https://example.org/\"plus\"' }\n");
  const tg_rule *rule = rule_of(limiter, "messages");
  tg_decision d;
  char *text = NULL;
  tg_bytes ab_c[2] = {TG_BYTES("a:b"), TG_BYTES("c")};
  tg_bytes a_bc[2] = {TG_BYTES("a"), TG_BYTES("b:c")};
  tg_key one = TG_KEY_PARTS_INIT(ab_c, 2);
  tg_key other = TG_KEY_PARTS_INIT(a_bc, 2);
  OK(tg_hit(rule, &one, 1, &d));
  CHECK(d.allowed);
  OK(tg_hit(rule, &other, 1, &d));
  CHECK(d.allowed);
  OK(tg_hit(rule, &one, 1, &d));
  CHECK(!d.allowed);
  SAME(d.attach, "{\"upgrade\":\"https://example.org/\\\"plus\\\"\"}");
  tg_attribute admin[1] = {{TG_BYTES("role"), TG_BYTES("admin")}};
  one.attributes = admin;
  one.attribute_count = 1;
  OK(tg_hit(rule, &one, 1, &d));
  CHECK(d.allowed && d.limit == TG_NONE && d.remaining == TG_NONE);
  SAME(d.reason, "exempt");
  size_t len = 9;
  OK(tg_decision_headers(rule, &d, TG_HEADERS_BOTH, NULL, 0, &len));
  CHECK(len == 0);
  CHECK(tg_allow(rule, (const uint8_t *)"a", 1) == -TG_STATUS_KEY);

  OK(tg_metrics(limiter, &text));
  HAS(text, "\"rule\":\"messages\"");
  HAS(text, "\"denied\":{\"1/min\":1}");
  tg_string_free(text);
  OK(tg_events(limiter, NULL, &text));
  HAS(text, "\"key\":[\"a:b\",\"c\"]");
  HAS(text, "\"missed\":0");
  {
    char next[64];
    const char *found = strstr(text, "\"next\":\"");
    CHECK(found != NULL && sscanf(found, "\"next\":\"%63[^\"]", next) == 1);
    tg_string_free(text);
    OK(tg_events(limiter, next, &text));
    HAS(text, "\"events\":[]");
    tg_string_free(text);
  }
  OK(tg_audit(limiter, &text));
  CHECK(text[0] == '[');
  tg_string_free(text);
  tg_limiter_free(limiter);
}

static void headers(void) {
  tg_limiter *limiter = from("{\"version\": 1, \"rules\": {\"default\": {\"limits\": \"2/min\"}}}");
  const tg_rule *rule = rule_of(limiter, "default");
  tg_decision d;
  char text[512];
  size_t len = 0;
  tg_key k = key("alice");
  OK(tg_hit(rule, &k, 2, &d));
  OK(tg_decision_headers(rule, &d, TG_HEADERS_IETF, text, sizeof text, &len));
  SAME(text, "RateLimit-Policy: \"2/min\";q=2;w=60\r\nRateLimit: \"2/min\";r=0;t=30\r\n");
  CHECK(len == strlen(text));
  OK(tg_hit(rule, &k, 1, &d));
  OK(tg_decision_headers(rule, &d, TG_HEADERS_LEGACY, text, sizeof text, &len));
  SAME(text,
       "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1700000030\r\n"
       "Retry-After: 30\r\n");
  size_t both = 0;
  OK(tg_decision_headers(rule, &d, TG_HEADERS_BOTH, NULL, 0, &both));
  CHECK(both > len && both < sizeof text);
  /* One byte too few writes nothing; as many as needed do. */
  memset(text, 'x', sizeof text);
  len = 7;
  FAILS(tg_decision_headers(rule, &d, TG_HEADERS_BOTH, text, both, &len), TG_STATUS_BUFFER);
  CHECK(text[0] == 'x' && len == 7);
  OK(tg_decision_headers(rule, &d, TG_HEADERS_BOTH, text, both + 1, &len));
  CHECK(len == both && text[both] == '\0' && text[both + 1] == 'x');
  tg_limiter_free(limiter);

  char ip[TG_IP_KEY_SIZE];
  OK(tg_ip_key("2001:db8:1:2ff::7", TG_V6_PREFIX, ip, sizeof ip, &len));
  SAME(ip, "2001:db8:1:200::/56");
  OK(tg_ip_key("::ffff:203.0.113.9", TG_V6_PREFIX, ip, sizeof ip, &len));
  SAME(ip, "203.0.113.9");
  CHECK(len == 11);
}

static void held(void) {
  tg_limiter *limiter = from(
      "version: 1\n"
      "rules:\n"
      "  tokens: { limits: 1000/min }\n"
      "  jobs: { limits: 1 concurrent lease 30s }\n");
  const tg_rule *tokens = rule_of(limiter, "tokens");
  const tg_rule *jobs = rule_of(limiter, "jobs");
  tg_decision d;
  tg_reservation *r = NULL;
  tg_permit_handle *p = NULL, *q = NULL;
  tg_key k = key("alice");
  OK(tg_reserve(tokens, &k, 400, &d, &r));
  CHECK(d.allowed && r != NULL);
  CHECK(tg_settle(r, 150) == 1 && tg_settle(r, 0) == 0 && tg_cancel(r) == 0);
  tg_reservation_free(r);
  OK(tg_peek(tokens, &k, 0, &d));
  CHECK(d.remaining == 850);
  OK(tg_reserve(tokens, &k, 100, &d, &r));
  CHECK(tg_cancel(r) == 1);
  tg_reservation_free(r);
  OK(tg_reserve(tokens, &k, 100, &d, &r));
  tg_reservation_free(r); /* stays spent */
  OK(tg_peek(tokens, &k, 0, &d));
  CHECK(d.remaining == 750);
  OK(tg_reserve(tokens, &k, 800, &d, &r));
  CHECK(!d.allowed && r == NULL);

  OK(tg_permit(jobs, &k, &d, &p));
  CHECK(d.allowed && p != NULL);
  OK(tg_permit(jobs, &k, &d, &q));
  CHECK(!d.allowed && q == NULL);
  OK(tg_manual_clock_advance(clock_, 20000));
  CHECK(tg_renew(p) == 1);
  OK(tg_manual_clock_advance(clock_, 20000));
  CHECK(tg_release(p) == 1 && tg_release(p) == 0 && tg_renew(p) == 0);
  tg_permit_free(p);
  OK(tg_permit(jobs, &k, &d, &p));
  tg_permit_free(p); /* releases */
  OK(tg_permit(jobs, &k, &d, &p));
  CHECK(d.allowed);
  CHECK(tg_allow(jobs, NULL, 0) == -TG_STATUS_OPERATION);
  HAS(tg_last_error(), "permit");
  /* A permit may outlive its limiter. */
  tg_limiter_free(limiter);
  CHECK(tg_release(p) == 1);
  tg_permit_free(p);
}

static void budgets(void) {
  tg_limiter *limiter = from(
      "{\"version\": 1, \"rules\": {\"default\": {\"limits\": \"100/min\","
      " \"budget\": {\"daily\": 500, \"per_hit\": 100}}}}");
  const tg_rule *rule = rule_of(limiter, "default");
  tg_budget_state b;
  tg_key_stats s;
  tg_key k = key("alice");
  OK(tg_spend(rule, &k, 499, &b));
  CHECK(b.spent == 499 && b.remaining == 1 && !b.over && b.over_per_hit && b.reset_after_ms > 0);
  OK(tg_spend(rule, &k, 1, &b));
  OK(tg_budget(rule, &k, &b));
  CHECK(b.spent == 500 && b.over && !b.over_per_hit);
  OK(tg_stats(rule, &k, &s));
  CHECK(s.has_budget == 1 && s.budget.spent == 500);
  tg_limiter_free(limiter);
}

static void changes(void) {
  tg_limiter *limiter = from("{\"version\": 1, \"rules\": {\"default\": {\"limits\": \"2/min\"}}}");
  const tg_rule *rule = rule_of(limiter, "default");
  tg_decision d;
  char *text = NULL;
  tg_key k = key("alice");
  tg_attribute staff[1] = {{TG_BYTES("role"), TG_BYTES("staff")}};
  OK(tg_set_override(rule, &k, "{\"2/min\": {\"max\": 60}}"));
  OK(tg_hit(rule, &k, 1, &d));
  CHECK(d.limit == 60);
  OK(tg_set_override_match(rule, "{\"role\": \"staff\"}", "{\"2/min\": {\"max\": 7}}"));
  tg_key bob = key("bob");
  bob.attributes = staff;
  bob.attribute_count = 1;
  OK(tg_hit(rule, &bob, 1, &d));
  CHECK(d.limit == 7);
  OK(tg_overrides(rule, &text));
  HAS(text, "\"key\":[\"alice\"]");
  HAS(text, "\"match\":{\"role\":[\"staff\"]}");
  HAS(text, "\"limits\":{\"2/min\":{\"max\":60}}");
  tg_string_free(text);
  OK(tg_why(rule, &k, 61, &text));
  HAS(text, "\"reason\":\"cost\"");
  HAS(text, "\"source\":\"override\"");
  HAS(text, "\"value\":60");
  tg_string_free(text);
  CHECK(tg_clear_override(rule, &k) == 1 && tg_clear_override(rule, &k) == 0);
  CHECK(tg_clear_override_match(rule, "{\"role\": \"staff\"}") == 1);
  CHECK(tg_clear_override_match(rule, "{\"role\": \"staff\"}") == 0);
  OK(tg_set_default(rule, "{\"2/min\": {\"max\": 9}}"));
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.limit == 9);
  OK(tg_set_default(rule, "{}"));
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.limit == 2);

  OK(tg_add_exempt(rule, "{\"role\": [\"staff\", \"admin\"]}"));
  OK(tg_hit(rule, &bob, 1, &d));
  SAME(d.reason, "exempt");
  OK(tg_exempts(rule, &text));
  SAME(text, "[{\"role\":[\"staff\",\"admin\"]}]");
  tg_string_free(text);
  CHECK(tg_remove_exempt(rule, "{\"role\": [\"staff\", \"admin\"]}") == 1);
  CHECK(tg_remove_exempt(rule, "{\"role\": [\"staff\", \"admin\"]}") == 0);
  OK(tg_set_exempts(rule, "[{\"key\": \"carol\"}]"));
  tg_key carol = key("carol");
  OK(tg_hit(rule, &carol, 1, &d));
  SAME(d.reason, "exempt");
  tg_limiter_free(limiter);
}

/* Changes with an end, a name and a reason; the mode; blocks; and the trail of them all. */
static void changes_with_options(void) {
  tg_limiter *limiter = from("{\"version\": 1, \"rules\": {\"default\": {\"limits\": \"2/min\"}}}");
  const tg_rule *rule = rule_of(limiter, "default");
  const char *staff = "{\"role\": \"staff\"}";
  tg_decision d;
  char *text = NULL;
  uint64_t n = 0;
  tg_key k = key("alice");
  tg_attribute role[1] = {{TG_BYTES("role"), TG_BYTES("staff")}};
  tg_key bob = key("bob");
  tg_change_options minute = TG_CHANGE_OPTIONS_INIT, named = TG_CHANGE_OPTIONS_INIT;
  bob.attributes = role;
  bob.attribute_count = 1;
  minute.for_ms = 60000;
  minute.by = "ops";
  minute.reason = "a \"trial\"";
  named.by = "support";

  /* Each ends by itself. The numbers count on. */
  OK(tg_set_override_with(rule, &k, "{\"2/min\": {\"max\": 60}}", &minute, &n));
  CHECK(n == 1);
  OK(tg_set_override_match_with(rule, staff, "{\"2/min\": {\"max\": 7}}", &minute, &n));
  CHECK(n == 2);
  OK(tg_set_default_with(rule, "{\"2/min\": {\"max\": 5}}", &minute, &n));
  CHECK(n == 3);
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.limit == 60);
  OK(tg_peek(rule, &bob, 0, &d));
  CHECK(d.limit == 7);
  tg_key carol = key("carol");
  OK(tg_peek(rule, &carol, 0, &d));
  CHECK(d.limit == 5);
  OK(tg_why(rule, &k, 1, &text));
  HAS(text, "\"by\":\"ops\"");
  tg_string_free(text);
  OK(tg_manual_clock_advance(clock_, 60000));
  OK(tg_peek(rule, &k, 0, &d));
  CHECK(d.limit == 2);
  OK(tg_peek(rule, &bob, 0, &d));
  CHECK(d.limit == 2);
  OK(tg_peek(rule, &carol, 0, &d));
  CHECK(d.limit == 2);
  OK(tg_clear_override_with(rule, &k, &named, &n));
  CHECK(n == 0);
  OK(tg_set_override(rule, &k, "{\"2/min\": {\"max\": 60}}"));
  OK(tg_clear_override_with(rule, &k, &named, &n));
  CHECK(n == 5);
  OK(tg_clear_override_match_with(rule, staff, NULL, &n));
  CHECK(n == 0);
  OK(tg_set_override_match(rule, staff, "{\"2/min\": {\"max\": 7}}"));
  OK(tg_clear_override_match_with(rule, staff, NULL, NULL));
  CHECK(tg_clear_override_match(rule, staff) == 0);

  OK(tg_add_exempt_with(rule, staff, &minute, &n));
  CHECK(n == 8);
  OK(tg_hit(rule, &bob, 1, &d));
  SAME(d.reason, "exempt");
  OK(tg_remove_exempt_with(rule, staff, &named, &n));
  CHECK(n == 9);
  OK(tg_remove_exempt_with(rule, staff, &named, &n));
  CHECK(n == 0);
  OK(tg_set_exempts_with(rule, "[{\"key\": \"carol\"}]", &minute, &n));
  CHECK(n == 10);
  OK(tg_hit(rule, &carol, 9, &d));
  SAME(d.reason, "exempt");
  OK(tg_manual_clock_advance(clock_, 60000));
  OK(tg_hit(rule, &carol, 9, &d));
  SAME(d.reason, "cost");

  OK(tg_set_mode(rule, "shadow", NULL, &n));
  CHECK(n == 11);
  OK(tg_hit(rule, &carol, 9, &d));
  CHECK(d.allowed);
  SAME(d.would_deny, "cost");
  OK(tg_set_mode(rule, "off", &minute, NULL));
  OK(tg_hit(rule, &carol, 9, &d));
  SAME(d.reason, "off");
  OK(tg_set_mode(rule, "enforce", NULL, NULL));
  OK(tg_hit(rule, &carol, 9, &d));
  CHECK(!d.allowed);
  OK(tg_clear_mode(rule, &named, &n));
  CHECK(n == 14);
  OK(tg_clear_mode(rule, NULL, &n));
  CHECK(n == 0);

  /* The trail: from one number on, and from none. */
  OK(tg_changes(limiter, 13, &text));
  SAME(text, "{\"changes\":[{\"number\":14,\"at_ms\":1700000120000,\"rule\":\"default\","
             "\"op\":\"clear_mode\",\"target\":null,\"before\":\"enforce\",\"after\":null,"
             "\"until_ms\":null,\"by\":\"support\",\"reason\":null}],\"next\":14,\"missed\":0}");
  tg_string_free(text);
  OK(tg_changes(limiter, 0, &text));
  HAS(text, "\"until_ms\":1700000060000,\"by\":\"ops\",\"reason\":\"a \\\"trial\\\"\"");
  HAS(text, "\"target\":{\"key\":[\"alice\"]}");
  HAS(text, "\"target\":{\"match\":{\"role\":[\"staff\"]}}");
  HAS(text, "\"next\":14");
  tg_string_free(text);
  OK(tg_changes(limiter, UINT64_MAX, &text));
  HAS(text, "\"changes\":[],\"next\":18446744073709551615,\"missed\":0");
  tg_string_free(text);
  tg_limiter_free(limiter);
}

static void blocks(void) {
  tg_limiter *limiter = from("{version: 1, rules: {a: {limits: 2/min}, b: {key: [channel, sender], "
                             "limits: 2/min, capacity: 2}}}");
  const tg_rule *a = rule_of(limiter, "a"), *b = rule_of(limiter, "b");
  tg_change_options options = TG_CHANGE_OPTIONS_INIT;
  tg_decision d;
  tg_key_stats s;
  char *text = NULL;
  uint64_t n = 0;
  tg_key mallory = key("mallory"), bytes = TG_KEY_INIT("\xff\x00", 2);
  options.for_ms = 1500;
  options.by = "ops";
  options.reason = "spam";
  OK(tg_block(a, &mallory, &options, &n));
  CHECK(n == 1);
  OK(tg_hit(a, &mallory, 1, &d));
  CHECK(!d.allowed && d.limit == TG_NONE && d.remaining == 0 && d.retry_after_ms == 1500);
  SAME(d.reason, "blocked");
  CHECK(tg_allow(a, (const uint8_t *)"mallory", 7) == 0 && tg_is_limited(a, &mallory) == 1);
  OK(tg_stats(a, &mallory, &s));
  CHECK(s.known == 1 && s.blocked == 1);
  OK(tg_why(a, &mallory, 1, &text));
  HAS(text, "\"step\":\"blocked\"");
  HAS(text, "\"value\":\"spam\"");
  tg_string_free(text);
  OK(tg_block(a, &bytes, NULL, NULL));
  OK(tg_hit(a, &bytes, 1, &d));
  CHECK(!d.allowed && d.retry_after_ms == TG_NONE);
  OK(tg_blocks(a, &text));
  SAME(text,
       "[{\"key\":[\"mallory\"],\"until_ms\":1700000001500,\"by\":\"ops\",\"reason\":\"spam\"},"
       "{\"key\":[{\"hex\":\"ff00\"}],\"until_ms\":null,\"by\":null,\"reason\":null}]");
  tg_string_free(text);
  OK(tg_manual_clock_advance(clock_, 1500));
  OK(tg_stats(a, &mallory, &s));
  CHECK(s.known == 0 && s.blocked == 0);
  CHECK(tg_unblock(a, &mallory) == 0 && tg_unblock(a, &bytes) == 1 && tg_unblock(a, &bytes) == 0);
  OK(tg_hit(a, &bytes, 1, &d));
  CHECK(d.allowed);

  /* The whole key; as many as there is room for; and a reset ends it. */
  tg_bytes parts[3][2] = {{TG_BYTES("x"), TG_BYTES("y")},
                          {TG_BYTES("x"), TG_BYTES("z")},
                          {TG_BYTES("y"), TG_BYTES("z")}};
  tg_key one = TG_KEY_PARTS_INIT(parts[0], 2), two = TG_KEY_PARTS_INIT(parts[1], 2);
  tg_key three = TG_KEY_PARTS_INIT(parts[2], 2);
  OK(tg_block(b, &one, NULL, NULL));
  OK(tg_hit(b, &two, 1, &d));
  CHECK(d.allowed);
  OK(tg_block(b, &two, NULL, NULL));
  n = 77;
  FAILS(tg_block(b, &three, NULL, &n), TG_STATUS_STORE);
  HAS(tg_last_error(), "larger capacity");
  CHECK(n == 77);
  OK(tg_reset(b, &one));
  OK(tg_hit(b, &one, 1, &d));
  CHECK(d.allowed);
  options.for_ms = 0;
  CHECK(tg_unblock_with(b, &two, &options) == 1 && tg_unblock_with(b, &two, NULL) == 0);
  OK(tg_changes(limiter, 5, &text));
  HAS(text, "\"rule\":\"b\",\"op\":\"unblock\",\"target\":{\"key\":[\"x\",\"y\"]},\"before\":true");
  HAS(text, "\"target\":{\"key\":[\"x\",\"z\"]},\"before\":true,\"after\":false,\"until_ms\":null,"
            "\"by\":\"ops\",\"reason\":\"spam\"");
  tg_string_free(text);
  tg_limiter_free(limiter);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void files(const char *folder) {
  char path[512];
  tg_limiter *limiter = NULL;
  tg_decision before, d;
  snprintf(path, sizeof path, "%s/policy.yaml", folder);
  write_file(path,
             "{version: 1, rules: {a: {limits: {few: {max: 1, per: 1m}}}, b: {limits: 5/min}}}");
  OK(tg_limiter_from_file(path, NULL, &limiter));
  const tg_rule *a = rule_of(limiter, "a"), *b = rule_of(limiter, "b");
  tg_key k = key("alice");
  OK(tg_hit(a, &k, 1, &before));
  OK(tg_hit(a, &k, 1, &before));
  SAME(before.reason, "few");
  write_file(path, "{version: 1, rules: {a: {limits: {many: {max: 10, per: 1m}}}}}");
  OK(tg_reload(limiter));
  OK(tg_hit(a, &k, 1, &d));
  CHECK(d.limit == 10);
  SAME(d.limits[0].name, "many");
  SAME(before.reason, "few"); /* texts live as long as the limiter */
  CHECK(rule_of(limiter, "a") == a);
  CHECK(tg_allow(b, NULL, 0) == 1);
  /* A rule that is gone still answers; one that comes back is the same. */
  write_file(path, "{version: 1, rules: {a: {limits: 5/min}, b: {limits: 5/min}}}");
  OK(tg_reload(limiter));
  CHECK(rule_of(limiter, "b") == b);
  CHECK(tg_allow(b, NULL, 0) == 1);
  write_file(path, "{version: 1, rules: {a: {limits: 5/mni}}}");
  FAILS(tg_reload(limiter), TG_STATUS_POLICY);
  HAS(tg_last_error(), "mni");
  CHECK(tg_allow(a, NULL, 0) == 1);

  OK(tg_limiter_close(limiter));
  FAILS(-tg_allow(a, NULL, 0), TG_STATUS_CLOSED);
  FAILS(tg_hit(a, &k, 1, &d), TG_STATUS_CLOSED);
  tg_limiter_free(limiter);

  /* A folder that outlives its limiters. */
  tg_options options = TG_OPTIONS_INIT;
  char store[600];
  snprintf(store, sizeof store, "file:%s/limits", folder);
  options.store = store;
  OK(tg_limiter_new("2/h window", &options, &limiter));
  CHECK(tg_allow(rule_of(limiter, "default"), NULL, 0) == 1);
  tg_limiter_free(limiter);
  OK(tg_limiter_new("2/h window", &options, &limiter));
  CHECK(tg_allow(rule_of(limiter, "default"), NULL, 0) == 1);
  CHECK(tg_allow(rule_of(limiter, "default"), NULL, 0) == 0);
  tg_limiter_free(limiter);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  OK(tg_manual_clock_new(0, 1700000000000, &clock_));
  versions();
  clocks();
  hits();
  parts_and_attributes();
  headers();
  OK(tg_manual_clock_set_wall(clock_, 1700000000000));
  held();
  budgets();
  changes();
  OK(tg_manual_clock_set_wall(clock_, 1700000000000));
  changes_with_options();
  OK(tg_manual_clock_set_wall(clock_, 1700000000000));
  blocks();
  files(argv[1]);
  tg_manual_clock_free(clock_);
  return 0;
}

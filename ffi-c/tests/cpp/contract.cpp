// The C++ layer does what C does and throws what C returns. It allocates nothing for a decision.
#include <tidegate.hpp>
#include <tidegate.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <type_traits>

static thread_local size_t allocations = 0;
void *operator new(size_t size) {
  allocations++;
  if (void *memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

#define CHECK(...)                                                            \
  do {                                                                        \
    if (!(__VA_ARGS__)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__);  \
      std::exit(1);                                                           \
    }                                                                         \
  } while (0)

template <class Call>
static tg_status thrown(Call call) {
  try {
    call();
  } catch (const tidegate::error &error) {
    CHECK(error.what()[0] != '\0');
    return error.status();
  }
  return TG_STATUS_OK;
}

using namespace std::chrono_literals;

/// A const key is read only: threads use one at once, and a copy does not need the first.
static void shares_a_key() {
  tidegate::options options;
  options.capacity = 100;
  const char *policy = R"({"version": 1, "rules": {"r": {"key": ["a", "b"], "limits": "500/h",
    "exempt": [{"role": "admin"}]}, "n": {"limits": "500/h"}}})";
  tidegate::limiter limiter = tidegate::limiter::from_policy(policy, options);
  tidegate::rule rule = limiter.rule("r"), numbers = limiter.rule("n");
  const tidegate::key number(123456789), several = tidegate::key({"x", "y"}).with("role", "user");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; i++) CHECK(rule.hit(several) && numbers.hit(number));
    });
  for (std::thread &thread : threads) thread.join();
  CHECK(rule.peek({"x", "y"}, 0).remaining() == 100u);
  CHECK(numbers.peek("123456789", 0).remaining() == 100u);
  tidegate::key copy = "z";
  {
    tidegate::key first = {"p", "q"};
    copy = first.with("role", "admin");
    first = number;
    CHECK(numbers.hit(first));
  }
  CHECK(rule.hit(copy).reason() == "exempt");
  copy = *&copy;
  CHECK(rule.hit(copy).reason() == "exempt" && numbers.peek("123456789", 0).remaining() == 99u);
}

static_assert(!std::is_copy_constructible_v<tidegate::limiter>);
static_assert(std::is_nothrow_move_constructible_v<tidegate::limiter>);
static_assert(!std::is_copy_constructible_v<tidegate::permit>);
static_assert(!std::is_copy_constructible_v<tidegate::reservation>);
static_assert(!std::is_copy_constructible_v<tidegate::manual_clock>);
static_assert(std::is_trivially_copyable_v<tidegate::decision>);

int main() {
  tidegate::manual_clock clock(0ms, 1700000000000ms);
  tidegate::options options;
  options.clock = &clock;
  options.capacity = 100;
  tidegate::limiter made("3/min", options);
  tidegate::limiter limiter = std::move(made);
  tidegate::rule rule = limiter.rule();

  size_t before = allocations;
  CHECK(rule.allow("alice") && rule.try_allow("alice") == 1);
  tidegate::decision d = rule.hit("alice");
  CHECK(d && d.remaining() == 0u && d.limit() == 3u && d.reason().empty() && d.rule() == "default");
  d = rule.hit("alice");
  CHECK(!d && d.reason() == "3/min" && d.retry_after() == 20s && d.notify() && !d.alert() &&
        !d.warning());
  CHECK(d.reset_after() == 60s && d.would_deny().empty() && d.attach().empty());
  CHECK(rule.try_hit("alice", 4, d) == TG_STATUS_OK && d.reason() == "cost" && !d.retry_after());
  CHECK(!rule.check("alice") && !rule.peek("alice") && rule.is_limited("alice"));
  CHECK(rule.try_peek("alice", 0, d) == TG_STATUS_OK &&
        rule.try_check("alice", 1, d) == TG_STATUS_OK);
  CHECK(rule.hit(tidegate::key("bob").with("role", "x").max(1)).limit() == 1u);
  CHECK(allocations == before);

  CHECK(d.headers(TG_HEADERS_LEGACY).find("Retry-After: 20\r\n") != std::string::npos);
  clock.advance(20s);
  CHECK(clock.now() == 20s && rule.allow("alice"));
  rule.refund("alice");
  CHECK(rule.record("alice").used == 3 && rule.stats("alice")->limits[0].used == 3);
  CHECK(rule.size() == 2);
  rule.reset("alice");
  CHECK(!rule.stats("alice"));
  rule.prune();
  rule.reset_all();
  CHECK(rule.size() == 0);
  CHECK(rule.allow_many({"a", "a", "a", "a", ""}) == std::vector<uint8_t>{1, 1, 1, 0, 1});
  {
    tidegate::reservation r = rule.reserve("carol", 3);
    CHECK(r && r.decision() && !rule.reserve("carol", 1) && r.settle(1) && !r.settle(0) &&
          !r.cancel());
  }
  CHECK(rule.peek("carol", 0).remaining() == 2u);

  rule.set_override("dave", R"({"3/min": {"max": 9}})");
  rule.set_override_match(R"({"role": "x"})", R"({"3/min": {"max": 8}})");
  CHECK(rule.hit("dave").limit() == 9u && rule.overrides().find("dave") != std::string::npos);
  CHECK(rule.clear_override("dave") && !rule.clear_override("dave"));
  CHECK(rule.clear_override_match(R"({"role": "x"})"));
  rule.set_default(R"({"3/min": {"max": 7}})");
  CHECK(rule.peek("dave").limit() == 7u);
  rule.add_exempt(R"({"role": "admin"})");
  CHECK(rule.hit(tidegate::key("eve").with("role", "admin")).reason() == "exempt");
  CHECK(rule.exempts() == R"([{"role":["admin"]}])" && rule.remove_exempt(R"({"role": "admin"})"));
  rule.set_exempts("[]");
  {
    tidegate::change_options hour{1h, "ops", "a trial"};
    tidegate::change_options nobody;
    uint64_t number = rule.set_override("frank", R"({"3/min": {"max": 9}})", hour);
    CHECK(number > 0 && rule.set_default(R"({"3/min": {"max": 8}})", hour) == number + 1);
    CHECK(rule.set_override_match(R"({"role": "y"})", R"({"3/min": {"max": 5}})", {1h}) ==
          number + 2);
    CHECK(rule.clear_override_match(R"({"role": "y"})", nobody) == number + 3);
    CHECK(rule.clear_override_match(R"({"role": "y"})", nobody) == 0);
    CHECK(rule.add_exempt(R"({"role": "z"})", hour) &&
          rule.remove_exempt(R"({"role": "z"})", nobody) > 0);
    CHECK(rule.remove_exempt(R"({"role": "z"})", nobody) == 0 && rule.set_exempts("[]", hour) > 0);
    CHECK(rule.peek("frank").limit() == 9u && rule.peek("gina").limit() == 8u);
    clock.advance(1h);
    CHECK(rule.peek("frank").limit() == 3u && rule.peek("gina").limit() == 3u);
    CHECK(rule.clear_override("frank", {0ms, "ops"}) == 0);
    CHECK(rule.set_mode("off", {60s}) > 0 && rule.hit("frank").reason() == "off");
    CHECK(rule.clear_mode() > 0 && rule.clear_mode() == 0);
    CHECK(rule.block("mallory", {60s, "ops", "spam"}) > 0 &&
          rule.hit("mallory").reason() == "blocked");
    CHECK(rule.hit("mallory").retry_after() == 60s && rule.stats("mallory")->blocked == 1);
    CHECK(rule.blocks().find(R"("by":"ops")") != std::string::npos);
    CHECK(rule.unblock("mallory", {0ms, "support"}) && !rule.unblock("mallory") &&
          rule.blocks() == "[]");
    CHECK(limiter.changes().find(R"("reason":"a trial")") != std::string::npos);
    CHECK(limiter.changes().find(R"("by":"support")") != std::string::npos);
    CHECK(limiter.changes(1000).find(R"("changes":[])") != std::string::npos);
    CHECK(thrown([&] { rule.block("mallory", {-1ms}); }) == TG_STATUS_RANGE);
    CHECK(thrown([&] { rule.set_mode("loud"); }) == TG_STATUS_ARGUMENT);
    CHECK(thrown([&] { rule.clear_mode(hour); }) == TG_STATUS_OPERATION);
    CHECK(thrown([&] { rule.unblock("mallory", hour); }) == TG_STATUS_OPERATION);
  }
  CHECK(limiter.metrics().find("default") != std::string::npos && !limiter.events().empty());
  {
    std::string seen = limiter.events();
    size_t at = seen.find("\"next\":\"") + 8;
    std::string next = seen.substr(at, seen.find('"', at) - at);
    CHECK(limiter.events(next).find("\"events\":[]") != std::string::npos);
    tidegate::options small;
    small.memory = 1;
    tidegate::limiter none;
    CHECK(tidegate::limiter::try_new("1/h", small, none) == TG_STATUS_MEMORY);
    tidegate::limiter numbers("1/h");
    tidegate::rule number = numbers.rule();
    tidegate::key largest(UINT64_MAX), copy = largest;
    CHECK(number.hit(copy) && !number.hit("18446744073709551615") && !number.hit(largest));
    CHECK(number.hit(-7) && !number.hit("-7"));
  }
  shares_a_key();
  CHECK(!limiter.audit().empty());

  const char *policy = R"({"version": 1, "rules": {
    "messages": {"key": ["channel", "sender"], "limits": "1/min", "budget": {"daily": 5}},
    "jobs": {"limits": "1 concurrent"}}})";
  tidegate::limiter several = tidegate::limiter::from_policy(policy, options);
  tidegate::rule messages = several.rule("messages"), jobs = several.rule("jobs");
  CHECK(messages.hit({"a:b", "c"}) && messages.hit({"a", "b:c"}) && !messages.hit({"a", "b:c"}));
  CHECK(messages.spend({"a", "b"}, 5).over && messages.budget({"a", "b"}).spent == 5);
  {
    tidegate::permit p = jobs.permit("x");
    CHECK(p && !jobs.permit("x") && p.renew());
    tidegate::permit q = std::move(p);
    CHECK(!p && q.release() && !q.release());
    tidegate::permit again = jobs.permit("x");
    CHECK(again && again.decision());
  }
  CHECK(jobs.permit("x"));

  // What fails throws, or is returned.
  CHECK(thrown([] { tidegate::limiter("20/mni"); }) == TG_STATUS_POLICY);
  CHECK(thrown([] { tidegate::limiter::from_file("/nowhere"); }) == TG_STATUS_FILE);
  CHECK(thrown([&] { limiter.rule("nobody"); }) == TG_STATUS_RULE);
  CHECK(thrown([&] { limiter.reload(); }) == TG_STATUS_OPERATION);
  CHECK(thrown([&] { messages.allow("x"); }) == TG_STATUS_KEY);
  CHECK(thrown([&] { messages.hit({"1", "2", "3", "4", "5", "6", "7", "8", "9"}); }) ==
        TG_STATUS_KEY);
  CHECK(thrown([&] { clock.advance(-1ms); }) == TG_STATUS_RANGE);
  CHECK(thrown([] { tidegate::ip_key("localhost"); }) == TG_STATUS_ADDRESS);
  CHECK(tidegate::ip_key("2001:db8:1:2ff::7") == "2001:db8:1:200::/56");
  tidegate::limiter none;
  CHECK(tidegate::limiter::try_new("1/x", {}, none) == TG_STATUS_POLICY && none.get() == nullptr);
  CHECK(none.try_rule("default", rule) == TG_STATUS_NULL);
  clock.set(5ms);
  clock.set_wall(7ms);
  several.close();
  CHECK(thrown([&] { jobs.permit("x"); }) == TG_STATUS_CLOSED);
  return 0;
}

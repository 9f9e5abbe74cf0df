// Tidegate for C++17: handles that free themselves, over tidegate.h, which is the manual.
//
//     tidegate::limiter limiter("5/10s window, 20/min");
//     tidegate::rule rule = limiter.rule("default");
//     if (rule.allow("alice")) { ... }
//
// Threads. As in tidegate.h: threads may share every handle. Only one thread may move, assign or
// destroy it.
//
// Ownership. Handles are move-only. A rule is a plain pointer into its limiter and lives as long as
// it. So do the texts of a decision. A key borrows its bytes, parts and attributes.
//
// Errors. A call that fails throws tidegate::error. With exceptions off (or TIDEGATE_NO_EXCEPTIONS)
// such a call ends the process. Then use the `try_...` functions and tidegate.h, which return a
// tg_status and throw nothing. `allow`, `hit`, `check`, `peek` and their `try_` forms allocate
// nothing when they succeed.
#ifndef TIDEGATE_HPP
#define TIDEGATE_HPP

#include "tidegate.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(TIDEGATE_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define TIDEGATE_NO_EXCEPTIONS
#endif

namespace tidegate {

using milliseconds = std::chrono::milliseconds;

/// What a call failed with: a status to act on, and a message.
class error : public std::runtime_error {
 public:
  error(tg_status status, const char *message) : std::runtime_error(message), status_(status) {}
  tg_status status() const noexcept { return status_; }

 private:
  tg_status status_;
};

namespace detail {

inline void check(tg_status status) {
  if (status != TG_STATUS_OK) {
#ifdef TIDEGATE_NO_EXCEPTIONS
    std::abort();
#else
    throw error(status, tg_last_error());
#endif
  }
}

inline bool answered(int answer) {
  if (answer < 0) check(static_cast<tg_status>(-answer));
  return answer == 1;
}

inline tg_bytes bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

inline std::string_view view(const char *text) noexcept { return text ? text : std::string_view(); }

inline std::optional<uint64_t> number(int64_t number) noexcept {
  return number < 0 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(number));
}

template <class T, void (*Free)(T *)>
struct freed {
  void operator()(T *handle) const noexcept { Free(handle); }
};
template <class T, void (*Free)(T *)>
using handle = std::unique_ptr<T, freed<T, Free>>;

inline std::string owned(char *text) {
  handle<char, tg_string_free> kept(text);
  return std::string(text);
}

}  // namespace detail

/// Something else about a call that a rule may look at.
struct attribute {
  std::string_view name, value;
};

/// Who is limited: bytes, or parts; and what else is known about the call.
///
/// It borrows its bytes, parts and attributes. As long as they are there, a const key may be used
/// in many calls, from many threads at once.
class key {
 public:
  key(std::string_view bytes) noexcept { key_.bytes = detail::bytes(bytes); }
  key(const char *text) noexcept : key(std::string_view(text)) {}
  key(const std::string &text) noexcept : key(std::string_view(text)) {}
  /// A whole number is its decimal digits, as in other languages.
  template <typename N, std::enable_if_t<std::is_integral_v<N> && sizeof(N) != 1, int> = 0>
  key(N number) noexcept {
    char *end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr;
    key_.bytes.len = static_cast<size_t>(end - digits_.data());
    has_digits_ = true;
    point_to_own();
  }
  /// More parts than a key has are refused by the call that it is for.
  key(std::initializer_list<std::string_view> parts) noexcept {
    for (std::string_view part : parts) {
      if (key_.part_count < parts_.size()) parts_[key_.part_count] = detail::bytes(part);
      key_.part_count++;
    }
    has_parts_ = true;
    point_to_own();
  }
  /// A copy points to its own parts and attributes.
  key(const key &other) noexcept { *this = other; }
  key &operator=(const key &other) noexcept {
    if (this == &other) return *this;
    key_ = other.key_;
    has_parts_ = other.has_parts_;
    has_digits_ = other.has_digits_;
    digits_ = other.digits_;
    for (size_t i = 0; i < key_.part_count && i < parts_.size(); i++) parts_[i] = other.parts_[i];
    for (size_t i = 0; i < key_.attribute_count && i < attributes_.size(); i++)
      attributes_[i] = other.attributes_[i];
    point_to_own();
    return *this;
  }

  /// With an attribute; more than TG_MOST_ATTRIBUTES are refused by the call.
  key &with(std::string_view name, std::string_view value) noexcept {
    if (key_.attribute_count < attributes_.size())
      attributes_[key_.attribute_count] = {detail::bytes(name), detail::bytes(value)};
    key_.attribute_count++;
    point_to_own();
    return *this;
  }
  /// With another `max` for this call, of a rule with one limit.
  key &max(uint64_t max) noexcept {
    key_.has_max = 1;
    key_.max = max;
    return *this;
  }

  /// As C has it; good until this key is changed or gone.
  const tg_key *get() const noexcept { return &key_; }

 private:
  void point_to_own() noexcept {
    if (has_parts_) key_.parts = parts_.data();
    if (key_.attribute_count > 0) key_.attributes = attributes_.data();
    if (has_digits_)
      key_.bytes = detail::bytes(std::string_view(digits_.data(), key_.bytes.len));
  }

  tg_key key_ = TG_KEY_INIT(nullptr, 0);
  bool has_parts_ = false;
  bool has_digits_ = false;
  std::array<char, 20> digits_{};
  std::array<tg_bytes, TG_MOST_PARTS> parts_;
  std::array<tg_attribute, TG_MOST_ATTRIBUTES> attributes_;
};

/// How long a run-time change lasts, the name of its maker, and why; see tg_change_options.
struct change_options {
  /// 0: until it is taken back.
  milliseconds for_{0};
  std::string by{}, reason{};
};

/// The answer to a hit. Its texts live as long as the limiter.
class decision {
 public:
  decision() noexcept = default;
  decision(const tg_rule *rule, const tg_decision &raw) noexcept : rule_(rule), raw_(raw) {}

  bool allowed() const noexcept { return raw_.allowed != 0; }
  explicit operator bool() const noexcept { return allowed(); }
  bool warning() const noexcept { return raw_.warning != 0; }
  bool alert() const noexcept { return raw_.alert != 0; }
  bool notify() const noexcept { return raw_.notify != 0; }
  std::string_view rule() const noexcept { return detail::view(raw_.rule); }
  /// Empty when the limits allowed the hit.
  std::string_view reason() const noexcept { return detail::view(raw_.reason); }
  std::string_view would_deny() const noexcept { return detail::view(raw_.would_deny); }
  /// JSON, or empty.
  std::string_view attach() const noexcept { return detail::view(raw_.attach); }
  std::optional<uint64_t> limit() const noexcept { return detail::number(raw_.limit); }
  std::optional<uint64_t> remaining() const noexcept { return detail::number(raw_.remaining); }
  /// None where waiting never helps.
  std::optional<milliseconds> retry_after() const noexcept {
    if (raw_.retry_after_ms < 0) return std::nullopt;
    return milliseconds(raw_.retry_after_ms);
  }
  milliseconds reset_after() const noexcept { return milliseconds(raw_.reset_after_ms); }
  /// Lines of `Name: value`, each ended by CR LF.
  std::string headers(uint32_t style = TG_HEADERS_BOTH) const {
    size_t length = 0;
    detail::check(tg_decision_headers(rule_, &raw_, style, nullptr, 0, &length));
    // A second may pass in between, and a number grow.
    std::string text(length + 16, '\0');
    detail::check(tg_decision_headers(rule_, &raw_, style, text.data(), text.size(), &length));
    text.resize(length);
    return text;
  }
  const tg_decision &raw() const noexcept { return raw_; }

 private:
  const tg_rule *rule_ = nullptr;
  tg_decision raw_{};
};

/// A slot of a concurrent limit, given back when destroyed. False if it was denied.
class permit {
 public:
  permit() noexcept = default;
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const tidegate::decision &decision() const noexcept { return decision_; }
  /// False if it was no longer held.
  bool release() { return handle_ && detail::answered(tg_release(handle_.get())); }
  /// False if the slot is lost.
  bool renew() { return handle_ && detail::answered(tg_renew(handle_.get())); }

 private:
  friend class rule;
  detail::handle<tg_permit_handle, tg_permit_free> handle_;
  tidegate::decision decision_;
};

/// An estimate that was spent; destroyed unsettled, it stays spent. False if it was denied.
class reservation {
 public:
  reservation() noexcept = default;
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const tidegate::decision &decision() const noexcept { return decision_; }
  /// False if it was settled before, or denied.
  bool settle(uint64_t actual) {
    return handle_ && detail::answered(tg_settle(handle_.get(), actual));
  }
  bool cancel() { return handle_ && detail::answered(tg_cancel(handle_.get())); }

 private:
  friend class rule;
  detail::handle<tg_reservation, tg_reservation_free> handle_;
  tidegate::decision decision_;
};

/// A rule of a limiter, which must outlive it. Cheap to copy.
class rule {
 public:
  rule() noexcept = default;
  explicit rule(const tg_rule *raw) noexcept : rule_(raw) {}

  bool allow(std::string_view key) const { return detail::answered(try_allow(key)); }
  /// 1, 0, or a negative tg_status.
  int try_allow(std::string_view key) const noexcept {
    return tg_allow(rule_, reinterpret_cast<const uint8_t *>(key.data()), key.size());
  }
  /// 1 or 0 for each key.
  std::vector<uint8_t> allow_many(const std::vector<std::string_view> &keys) const {
    std::vector<tg_bytes> all;
    all.reserve(keys.size());
    for (std::string_view key : keys) all.push_back(detail::bytes(key));
    std::vector<uint8_t> mask(keys.size());
    detail::check(tg_allow_many(rule_, all.data(), all.size(), mask.data()));
    return mask;
  }

  tidegate::decision hit(const key &key, uint64_t cost = 1) const {
    return decided(tg_hit, key, cost);
  }
  tidegate::decision check(const key &key, uint64_t cost = 1) const {
    return decided(tg_check, key, cost);
  }
  tidegate::decision peek(const key &key, uint64_t cost = 1) const {
    return decided(tg_peek, key, cost);
  }
  tg_status try_hit(const key &key, uint64_t cost, tidegate::decision &out) const noexcept {
    return tried(tg_hit, key, cost, out);
  }
  tg_status try_check(const key &key, uint64_t cost, tidegate::decision &out) const noexcept {
    return tried(tg_check, key, cost, out);
  }
  tg_status try_peek(const key &key, uint64_t cost, tidegate::decision &out) const noexcept {
    return tried(tg_peek, key, cost, out);
  }

  tg_recorded record(const key &key, uint64_t cost = 1) const {
    tg_recorded out;
    detail::check(tg_record(rule_, key.get(), cost, &out));
    return out;
  }
  void refund(const key &key, uint64_t cost = 1) const {
    detail::check(tg_refund(rule_, key.get(), cost));
  }
  tidegate::reservation reserve(const key &key, uint64_t estimate) const {
    tidegate::reservation out;
    detail::check(try_reserve(key, estimate, out));
    return out;
  }
  tg_status try_reserve(const key &key, uint64_t estimate,
                        tidegate::reservation &out) const noexcept {
    tg_decision raw;
    tg_reservation *handle = nullptr;
    tg_status status = tg_reserve(rule_, key.get(), estimate, &raw, &handle);
    if (status == TG_STATUS_OK) {
      out.handle_.reset(handle);
      out.decision_ = tidegate::decision(rule_, raw);
    }
    return status;
  }
  tidegate::permit permit(const key &key) const {
    tidegate::permit out;
    detail::check(try_permit(key, out));
    return out;
  }
  tg_status try_permit(const key &key, tidegate::permit &out) const noexcept {
    tg_decision raw;
    tg_permit_handle *handle = nullptr;
    tg_status status = tg_permit(rule_, key.get(), &raw, &handle);
    if (status == TG_STATUS_OK) {
      out.handle_.reset(handle);
      out.decision_ = tidegate::decision(rule_, raw);
    }
    return status;
  }

  tg_budget_state spend(const key &key, uint64_t amount) const {
    tg_budget_state out;
    detail::check(tg_spend(rule_, key.get(), amount, &out));
    return out;
  }
  tg_budget_state budget(const key &key) const {
    tg_budget_state out;
    detail::check(tg_budget(rule_, key.get(), &out));
    return out;
  }
  bool is_limited(const key &key) const {
    return detail::answered(tg_is_limited(rule_, key.get()));
  }
  /// None exactly when the key's state is that of a new one.
  std::optional<tg_key_stats> stats(const key &key) const {
    tg_key_stats out;
    detail::check(tg_stats(rule_, key.get(), &out));
    return out.known ? std::optional<tg_key_stats>(out) : std::nullopt;
  }
  void reset(const key &key) const { detail::check(tg_reset(rule_, key.get())); }
  void reset_all() const { detail::check(tg_reset_all(rule_)); }
  size_t prune() const {
    size_t out = 0;
    detail::check(tg_prune(rule_, &out));
    return out;
  }
  size_t size() const {
    size_t out = 0;
    detail::check(tg_len(rule_, &out));
    return out;
  }

  /// Limits and matches are JSON, as in tidegate.h. A change gives its number. What takes something
  /// back says whether there was something; with options, it gives the number of the change, or 0.
  uint64_t set_override(const key &key, const std::string &limits,
                        const change_options &options = {}) const {
    return changed(tg_set_override_with, options, key.get(), limits.c_str());
  }
  uint64_t set_override_match(const std::string &match, const std::string &limits,
                              const change_options &options = {}) const {
    return changed(tg_set_override_match_with, options, match.c_str(), limits.c_str());
  }
  bool clear_override(const key &key) const {
    return detail::answered(tg_clear_override(rule_, key.get()));
  }
  uint64_t clear_override(const key &key, const change_options &options) const {
    return changed(tg_clear_override_with, options, key.get());
  }
  bool clear_override_match(const std::string &match) const {
    return detail::answered(tg_clear_override_match(rule_, match.c_str()));
  }
  uint64_t clear_override_match(const std::string &match, const change_options &options) const {
    return changed(tg_clear_override_match_with, options, match.c_str());
  }
  /// Why a hit would get what it would get, as JSON; see tg_why.
  std::string why(const key &key, uint64_t cost = 1) const {
    char *text = nullptr;
    detail::check(tg_why(rule_, key.get(), cost, &text));
    return detail::owned(text);
  }
  std::string overrides() const { return told(tg_overrides); }
  uint64_t set_default(const std::string &limits, const change_options &options = {}) const {
    return changed(tg_set_default_with, options, limits.c_str());
  }
  uint64_t add_exempt(const std::string &match, const change_options &options = {}) const {
    return changed(tg_add_exempt_with, options, match.c_str());
  }
  bool remove_exempt(const std::string &match) const {
    return detail::answered(tg_remove_exempt(rule_, match.c_str()));
  }
  uint64_t remove_exempt(const std::string &match, const change_options &options) const {
    return changed(tg_remove_exempt_with, options, match.c_str());
  }
  uint64_t set_exempts(const std::string &matches, const change_options &options = {}) const {
    return changed(tg_set_exempts_with, options, matches.c_str());
  }
  std::string exempts() const { return told(tg_exempts); }
  /// "enforce", "shadow" or "off".
  uint64_t set_mode(const std::string &mode, const change_options &options = {}) const {
    return changed(tg_set_mode, options, mode.c_str());
  }
  /// 0 if none was set.
  uint64_t clear_mode(const change_options &options = {}) const {
    return changed(tg_clear_mode, options);
  }
  /// Refuses a key with reason "blocked"; see tg_block.
  uint64_t block(const key &key, const change_options &options = {}) const {
    return changed(tg_block, options, key.get());
  }
  /// False if the key was not blocked.
  bool unblock(const key &key, const change_options &options = {}) const {
    tg_change_options raw = read(options);
    return detail::answered(tg_unblock_with(rule_, key.get(), &raw));
  }
  std::string blocks() const { return told(tg_blocks); }
  const tg_rule *get() const noexcept { return rule_; }

 private:
  using operation = tg_status (*)(const tg_rule *, const tg_key *, uint64_t, tg_decision *);
  tg_status tried(operation call, const key &key, uint64_t cost,
                  tidegate::decision &out) const noexcept {
    tg_decision raw;
    tg_status status = call(rule_, key.get(), cost, &raw);
    if (status == TG_STATUS_OK) out = tidegate::decision(rule_, raw);
    return status;
  }
  tidegate::decision decided(operation call, const key &key, uint64_t cost) const {
    tg_decision raw;
    detail::check(call(rule_, key.get(), cost, &raw));
    return tidegate::decision(rule_, raw);
  }
  static tg_change_options read(const change_options &options) noexcept {
    tg_change_options raw = TG_CHANGE_OPTIONS_INIT;
    // What is below 0 is beyond any range, and so refused.
    raw.for_ms = static_cast<uint64_t>(options.for_.count());
    if (!options.by.empty()) raw.by = options.by.c_str();
    if (!options.reason.empty()) raw.reason = options.reason.c_str();
    return raw;
  }
  template <class Call, class... Arguments>
  uint64_t changed(Call call, const change_options &options, Arguments... arguments) const {
    tg_change_options raw = read(options);
    uint64_t number = 0;
    detail::check(call(rule_, arguments..., &raw, &number));
    return number;
  }
  std::string told(tg_status (*call)(const tg_rule *, char **)) const {
    char *text = nullptr;
    detail::check(call(rule_, &text));
    return detail::owned(text);
  }
  const tg_rule *rule_ = nullptr;
};

/// A clock that only calls move. Limiters that use it keep it alive.
class manual_clock {
 public:
  explicit manual_clock(milliseconds start = milliseconds(0), milliseconds wall = milliseconds(0)) {
    tg_manual_clock *clock = nullptr;
    detail::check(tg_manual_clock_new(count(start), count(wall), &clock));
    clock_.reset(clock);
  }
  void advance(milliseconds step) { detail::check(tg_manual_clock_advance(get(), count(step))); }
  void set(milliseconds now) { detail::check(tg_manual_clock_set(get(), count(now))); }
  void set_wall(milliseconds unix_time) {
    detail::check(tg_manual_clock_set_wall(get(), count(unix_time)));
  }
  milliseconds now() const {
    uint64_t now = 0;
    detail::check(tg_manual_clock_now(get(), &now));
    return milliseconds(now);
  }
  const tg_manual_clock *get() const noexcept { return clock_.get(); }

 private:
  // What is below 0 is beyond any range, and so refused.
  static uint64_t count(milliseconds time) noexcept { return static_cast<uint64_t>(time.count()); }
  detail::handle<tg_manual_clock, tg_manual_clock_free> clock_;
};

/// What a limiter is made with; what is set wins over the policy.
struct options {
  std::string store;
  uint64_t capacity = 0;
  uint32_t on_full = TG_ON_FULL_DEFAULT;
  const manual_clock *clock = nullptr;
  bool recreate = false;
  bool group = false;
  uint64_t memory = 0;
};

/// A policy at work.
class limiter {
 public:
  /// An empty one, to be filled by a `try_` function.
  limiter() noexcept = default;
  explicit limiter(const std::string &limits, const options &options = {}) {
    detail::check(try_new(limits, options, *this));
  }
  static limiter from_policy(std::string_view text, const options &options = {}) {
    limiter out;
    detail::check(try_from_policy(text, options, out));
    return out;
  }
  static limiter from_file(const std::string &path, const options &options = {}) {
    limiter out;
    detail::check(try_from_file(path, options, out));
    return out;
  }
  static tg_status try_new(const std::string &limits, const options &options,
                           limiter &out) noexcept {
    tg_limiter *made = nullptr;
    tg_options raw = read(options);
    tg_status status = tg_limiter_new(limits.c_str(), &raw, &made);
    return out.take(status, made);
  }
  static tg_status try_from_policy(std::string_view text, const options &options,
                                   limiter &out) noexcept {
    tg_limiter *made = nullptr;
    tg_options raw = read(options);
    tg_bytes bytes = detail::bytes(text);
    tg_status status = tg_limiter_from_policy(bytes.data, bytes.len, &raw, &made);
    return out.take(status, made);
  }
  static tg_status try_from_file(const std::string &path, const options &options,
                                 limiter &out) noexcept {
    tg_limiter *made = nullptr;
    tg_options raw = read(options);
    tg_status status = tg_limiter_from_file(path.c_str(), &raw, &made);
    return out.take(status, made);
  }

  /// Good as long as the limiter is.
  tidegate::rule rule(const std::string &name = "default") const {
    tidegate::rule out;
    detail::check(try_rule(name, out));
    return out;
  }
  tg_status try_rule(const std::string &name, tidegate::rule &out) const noexcept {
    const tg_rule *rule = nullptr;
    tg_status status = tg_rule_get(get(), name.c_str(), &rule);
    if (status == TG_STATUS_OK) out = tidegate::rule(rule);
    return status;
  }
  void reload() const { detail::check(tg_reload(get())); }
  void close() const { detail::check(tg_limiter_close(get())); }
  /// JSON, as in tidegate.h.
  std::string metrics() const {
    char *text = nullptr;
    detail::check(tg_metrics(get(), &text));
    return detail::owned(text);
  }
  /// Without `since`, all that are kept; else those after what `next` was.
  std::string events(const std::string &since = {}) const {
    char *text = nullptr;
    detail::check(tg_events(get(), since.empty() ? nullptr : since.c_str(), &text));
    return detail::owned(text);
  }
  /// Run-time changes with a number above `since`.
  std::string changes(uint64_t since = 0) const {
    char *text = nullptr;
    detail::check(tg_changes(get(), since, &text));
    return detail::owned(text);
  }
  std::string audit() const {
    char *text = nullptr;
    detail::check(tg_audit(get(), &text));
    return detail::owned(text);
  }
  const tg_limiter *get() const noexcept { return limiter_.get(); }

 private:
  static tg_options read(const options &options) noexcept {
    tg_options raw = TG_OPTIONS_INIT;
    if (!options.store.empty()) raw.store = options.store.c_str();
    raw.capacity = options.capacity;
    raw.on_full = options.on_full;
    raw.clock = options.clock ? options.clock->get() : nullptr;
    raw.recreate = options.recreate ? 1 : 0;
    raw.group = options.group ? 1 : 0;
    raw.memory = options.memory;
    return raw;
  }
  tg_status take(tg_status status, tg_limiter *made) noexcept {
    if (status == TG_STATUS_OK) limiter_.reset(made);
    return status;
  }
  detail::handle<tg_limiter, tg_limiter_free> limiter_;
};

/// Makes a key of a client's address.
inline std::string ip_key(const std::string &address, uint32_t v6_prefix = TG_V6_PREFIX) {
  char text[TG_IP_KEY_SIZE];
  size_t length = 0;
  detail::check(tg_ip_key(address.c_str(), v6_prefix, text, sizeof text, &length));
  return std::string(text, length);
}

}  // namespace tidegate

#endif

/*
 * Tidegate: rate limits for services, in C99 and later, and C++11 and later.
 * tidegate.hpp is a layer for C++17.
 *
 * Made by `make header` from ffi-c/src; change it there.
 *
 *     tg_limiter *limiter;
 *     const tg_rule *rule;
 *     if (tg_limiter_new("5/10s window, 20/min", NULL, &limiter) != TG_STATUS_OK ||
 *         tg_rule_get(limiter, "default", &rule) != TG_STATUS_OK) {
 *         fprintf(stderr, "%s\n", tg_last_error());
 *         return 1;
 *     }
 *     if (tg_allow(rule, (const uint8_t *)"alice", 5) == 1) { ... }
 *     tg_limiter_free(limiter);
 *
 * Threads. Every function may be called from any thread, and threads may share every handle. A
 * function that frees a handle must be the last to use it.
 *
 * Ownership. A handle that is written to an `out` is the caller's if its type has a `..._free`.
 * The caller frees it once. A tg_rule is its limiter's and is not freed. A `char *` written to a
 * `char **` is freed with tg_string_free. A `const char *` in a structure belongs to the limiter
 * and lives until tg_limiter_free. Arguments stay the caller's, and are read during the call
 * only.
 *
 * NULL. A pointer must not be NULL unless its function says so. Otherwise the call returns
 * TG_STATUS_NULL. Functions that free take NULL and do nothing. Bytes of length 0 may be at NULL.
 *
 * Errors. A failed call returns a tg_status other than TG_STATUS_OK. A function that returns an
 * int fails with minus a tg_status. A failed call has done nothing and written to no `out`.
 * tg_last_error says why, on the thread that failed. A denial is an answer and no error. No
 * exception comes out of this library.
 *
 * Other languages. Where a program's calls move between threads (Go), a second call may not find
 * the error of the first. Each `..._bytes` function therefore takes a tg_error, which the failing
 * call fills. It also takes the key as bytes, so that no argument is a structure of pointers
 * (cgo). For any other function, write a C function that calls it and then tg_last_error_copy.
 * Both then run on one thread.
 *
 * Statuses. The comment of each function lists the statuses by which it may fail. These groups
 * stand for several:
 * - every function: TG_STATUS_NULL, TG_STATUS_MEMORY, TG_STATUS_PANIC, TG_STATUS_OTHER
 * - those of a key: TG_STATUS_ARGUMENT for another version, TG_STATUS_LENGTH, TG_STATUS_UTF8 for
 *   an attribute, TG_STATUS_KEY, TG_STATUS_RANGE for `max`, TG_STATUS_CLOSED
 * - those of a change: TG_STATUS_ARGUMENT for options of another version or a text that is no
 *   JSON, TG_STATUS_UTF8, TG_STATUS_RANGE, TG_STATUS_OPERATION, TG_STATUS_STORE, TG_STATUS_CLOSED
 *
 * Limits. A limit in text is `MAX/PERIOD [burst N] [ALGORITHM]` or `N concurrent [lease PERIOD]`.
 * A comma separates several. ALGORITHM is bucket (unless stated), window, counter or fixed.
 * PERIOD is an optional whole number and a unit: ms, s, m, h, d, or a longer name such as min. So
 * "100/s burst 20", "200/h window" and "5 concurrent lease 30s" are limits.
 *
 * Paths. The path of a `file:` store in a policy file is relative to that file. In tg_options,
 * and in a policy given as text, it is relative to the working directory.
 *
 * Text ends with NUL and is UTF-8, unless it comes with a length. Keys are bytes, compared as
 * they are. Times are whole milliseconds, rounded up. An argument that takes one of some
 * constants is refused if it is none of them.
 *
 * Versions. Structures that callers fill begin with a version and have a TG_..._INIT. They grow
 * at the end only. A structure newer than the library is TG_STATUS_ARGUMENT. Structures that the
 * library fills begin with a version too and keep their size: new fields take the place of
 * reserved words, and a version tells which are there. TG_ABI_VERSION is the header's, and
 * tg_abi_version() the library's. A program works if its TG_ABI_VERSION is from
 * tg_abi_version_oldest() to tg_abi_version(). TG_VERSION is the release as text;
 * TG_VERSION_MAJOR, _MINOR and _PATCH are numbers for #if.
 *
 * Memory. Tables are made with their limiter and never grow. What finds no memory is
 * TG_STATUS_MEMORY: a table of any size, its move to another shape, a policy, a batch, a text.
 * The library keeps 1 MB of address space in reserve for the small allocations of calls that are
 * under way when the system refuses one. Half of it is for blocks of up to 8 KB. Calls begin
 * while half of those is free. The other half is for larger blocks, of up to 256 KB. What gives
 * back (tg_release, tg_settle, tg_cancel, every free) works also then. A failed call needs no
 * memory to keep its message. When the system has memory again, calls work again: only what was
 * made meanwhile and still lives, such as a permit, keeps its bytes of the reserve.
 *
 * While the system refuses memory, the process still ends in two cases. In the first, a call that
 * is under way needs a block that the reserve can't give: a larger one, or one too many, over all
 * threads. In the second, a thread makes its first call, whichever that is: the C library then
 * needs some bytes for the thread, and ends the process without them. So let each thread call
 * tg_allow once before memory is short. After that, a tg_allow that succeeds allocates nothing.
 *
 * After tg_limiter_free some kilobytes stay for the life of the process, and are reachable;
 * valgrind calls nothing lost.
 *
 * Fork. A child of fork() may use every handle of its parent, whatever the parent's other threads
 * were doing. With a `file:` store both count in one table. With `memory` or `memory:NAME` the
 * child has a copy. A permit or reservation from before the fork is given back by the first of
 * the two that does. Calls that wait in the parent are not in the child. A child made by a bare
 * clone() system call makes a limiter of its own.
 *
 * Waiting. No hit waits for a lock, a file or another process. Run-time changes of a `file:`
 * store wait until no other process changes the same rule. Hits go on meanwhile.
 */


#ifndef TIDEGATE_H
#define TIDEGATE_H

#include <stddef.h>
#include <stdint.h>

/* The release that this header is of. */
#define TG_VERSION "0.1.0"
#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 1
#define TG_VERSION_PATCH 0

/* A tg_options with nothing set. */
#define TG_OPTIONS_INIT { TG_OPTIONS_VERSION, TG_ON_FULL_DEFAULT, NULL, 0, NULL, 0, 0, 0 }

/* A tg_change_options with nothing set: for good, and by nobody. */
#define TG_CHANGE_OPTIONS_INIT { TG_CHANGE_OPTIONS_VERSION, 0, 0, NULL, NULL }

/* Some memory as bytes. */
#ifdef __cplusplus
#define TG_DATA(data) static_cast<const uint8_t *>(static_cast<const void *>(data))
#else
#define TG_DATA(data) ((const uint8_t *)(data))
#endif

/* The tg_bytes of a text literal. */
#define TG_BYTES(literal) { TG_DATA(literal), sizeof(literal) - 1 }

/* A tg_key of `len` bytes at `data`. */
#define TG_KEY_INIT(data, len) \
  { TG_KEY_VERSION, 0, { TG_DATA(data), (len) }, NULL, 0, NULL, 0, 0 }

/* A tg_key of `count` parts, which are tg_bytes. */
#define TG_KEY_PARTS_INIT(parts, count) \
  { TG_KEY_VERSION, 0, { NULL, 0 }, (parts), (count), NULL, 0, 0 }


/**
 * The `version` of tg_change_options.
 */
#define TG_CHANGE_OPTIONS_VERSION 1

/**
 * The `version` of a tg_decision.
 */
#define TG_DECISION_VERSION 2

/**
 * The most limits that a rule has.
 */
#define TG_MOST_LIMITS 8

/**
 * A number or a time that there is not.
 */
#define TG_NONE -1

/**
 * Header fields of both styles.
 */
#define TG_HEADERS_BOTH 0

/**
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset`, under the names that the policy gives them.
 */
#define TG_HEADERS_LEGACY 1

/**
 * `RateLimit-Policy` and `RateLimit`.
 */
#define TG_HEADERS_IETF 2

/**
 * Bytes of a tg_error's text, with its NUL.
 */
#define TG_ERROR_TEXT_SIZE 1008

/**
 * The `version` of a tg_key.
 */
#define TG_KEY_VERSION 1

/**
 * The most parts that a key has.
 */
#define TG_MOST_PARTS 8

/**
 * The most attributes that a call has.
 */
#define TG_MOST_ATTRIBUTES 32

/**
 * The `version` of tg_options.
 */
#define TG_OPTIONS_VERSION 2

/**
 * What the policy says, or TG_ON_FULL_OVERFLOW.
 */
#define TG_ON_FULL_DEFAULT 0

/**
 * A new key that finds the table full shares a bucket with other keys.
 */
#define TG_ON_FULL_OVERFLOW 1

/**
 * A new key that finds the table full is denied, with reason "full".
 */
#define TG_ON_FULL_DENY 2

/**
 * A new key that finds the table full is allowed.
 */
#define TG_ON_FULL_ALLOW 3

/**
 * The `version` of a tg_recorded.
 */
#define TG_RECORDED_VERSION 1

/**
 * The `version` of a tg_budget_state.
 */
#define TG_BUDGET_STATE_VERSION 1

/**
 * The `version` of a tg_key_stats.
 */
#define TG_KEY_STATS_VERSION 1

/**
 * The version of the structures and functions of this header. It grows when something is added.
 */
#define TG_ABI_VERSION 3

/**
 * The oldest version that programs may have been compiled for.
 */
#define TG_ABI_VERSION_OLDEST 3

/**
 * Bytes that every key of `tg_ip_key` fits into, with its NUL.
 */
#define TG_IP_KEY_SIZE 64

/**
 * The part of an IPv6 address that one customer has, as a rule.
 */
#define TG_V6_PREFIX 56

/**
 * What a call came to. Numbers are never changed nor used again.
 */
enum tg_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It was done. A denial is an answer, and so is also TG_STATUS_OK.
   */
  TG_STATUS_OK = 0,
  /**
   * A pointer is NULL that must not be.
   */
  TG_STATUS_NULL = 1,
  /**
   * A structure of another version, a constant that there is not, or a text that is no JSON.
   */
  TG_STATUS_ARGUMENT = 2,
  /**
   * A length that no object has.
   */
  TG_STATUS_LENGTH = 3,
  /**
   * A text that is not UTF-8.
   */
  TG_STATUS_UTF8 = 4,
  /**
   * The buffer is too small; the message says how much is needed.
   */
  TG_STATUS_BUFFER = 5,
  /**
   * A limit, rule or policy that can't be had.
   */
  TG_STATUS_POLICY = 10,
  /**
   * A key that is not the rule's: a wrong number of parts.
   */
  TG_STATUS_KEY = 11,
  /**
   * No rule of that name.
   */
  TG_STATUS_RULE = 12,
  /**
   * The operation is not one for this rule or limiter.
   */
  TG_STATUS_OPERATION = 13,
  /**
   * A number outside of what is allowed, such as a `max` above the rule's ceiling.
   */
  TG_STATUS_RANGE = 14,
  /**
   * An address that is none.
   */
  TG_STATUS_ADDRESS = 15,
  /**
   * The store can't be had or used.
   */
  TG_STATUS_STORE = 16,
  /**
   * A file that can't be read.
   */
  TG_STATUS_FILE = 17,
  /**
   * More memory than the policy allows, or than there is.
   */
  TG_STATUS_MEMORY = 18,
  /**
   * The limiter was closed.
   */
  TG_STATUS_CLOSED = 19,
  /**
   * A mistake in Tidegate itself. The process goes on; please report the message.
   */
  TG_STATUS_PANIC = 30,
  /**
   * Something that this version has no number for; the message says what.
   */
  TG_STATUS_OTHER = 31,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tg_status tg_status;
#else
typedef int32_t tg_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A policy at work. Threads may share it.
 */
typedef struct tg_limiter tg_limiter;

/**
 * A clock that is moved by hand, for tests that don't wait. Its wall time moves along.
 *
 * Threads may share it. Limiters that go by it keep it alive: it may be freed before them.
 */
typedef struct tg_manual_clock tg_manual_clock;

/**
 * A slot of a concurrent limit. Threads may share it.
 */
typedef struct tg_permit_handle tg_permit_handle;

/**
 * An estimate that was spent, to be settled once. Threads may share it.
 */
typedef struct tg_reservation tg_reservation;

/**
 * A rule of a limiter: limits that are taken together, all or nothing. Threads may share it.
 */
typedef struct tg_rule tg_rule;

/**
 * Some bytes, which need no NUL. `data` may be NULL if `len` is 0.
 */
typedef struct tg_bytes {
  /**
   * Where they are.
   */
  const uint8_t *data;
  /**
   * How many there are.
   */
  size_t len;
} tg_bytes;

/**
 * Something else about a call that a rule may read: `role`, `tier`, `ip`. Both are UTF-8.
 */
typedef struct tg_attribute {
  /**
   * Its name.
   */
  struct tg_bytes name;
  /**
   * Its value.
   */
  struct tg_bytes value;
} tg_attribute;

/**
 * A key, and what else is known about the call. Start from TG_KEY_INIT or
 * TG_KEY_PARTS_INIT.
 *
 * A key is compared as bytes. A whole number is its decimal digits (`snprintf` with "%llu"). An
 * address is its text (`inet_ntop`). So they are the same keys as in other languages.
 *
 * Everything it points to is the caller's, and is read during the call only.
 */
typedef struct tg_key {
  /**
   * TG_KEY_VERSION.
   */
  uint32_t version;
  /**
   * 1 if `max` is given, 0 if not.
   */
  uint32_t has_max;
  /**
   * The key, if `parts` is NULL.
   */
  struct tg_bytes bytes;
  /**
   * The key's parts, in the rule's order, or NULL. One part is the same key as its bytes.
   */
  const struct tg_bytes *parts;
  /**
   * How many; at most TG_MOST_PARTS.
   */
  size_t part_count;
  /**
   * What else is known, or NULL. Those that the rule does not name are ignored. Names that
   * operations take ("cost", "max", "timeout", "estimate", "amount", "for_", "by", "reason") are
   * no rule's.
   */
  const struct tg_attribute *attributes;
  /**
   * How many; at most TG_MOST_ATTRIBUTES.
   */
  size_t attribute_count;
  /**
   * For this call, in place of the limit's `max`, in rules with one limit.
   */
  uint64_t max;
} tg_key;

/**
 * How long a run-time change lasts, its maker and the reason. Start from TG_CHANGE_OPTIONS_INIT.
 */
typedef struct tg_change_options {
  /**
   * TG_CHANGE_OPTIONS_VERSION.
   */
  uint32_t version;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * After so many milliseconds the change ends by itself; at most 36,600 days. What was there
   * before it is not restored. 0: the change stands until it is taken back. A change that takes
   * something back has no end: for it, anything but 0 is TG_STATUS_OPERATION.
   */
  uint64_t for_ms;
  /**
   * Its maker, at most 200 bytes; or NULL.
   */
  const char *by;
  /**
   * Why, at most 1,000 bytes; or NULL.
   */
  const char *reason;
} tg_change_options;

/**
 * How a decision left one limit.
 */
typedef struct tg_limit_left {
  /**
   * The limit's name.
   */
  const char *name;
  /**
   * A bucket's size, else its `max`.
   */
  uint64_t max;
  /**
   * Its period in seconds, rounded up; 0 for a concurrent limit.
   */
  uint64_t window_seconds;
  /**
   * What is left of it.
   */
  uint64_t remaining;
  /**
   * Until all of it is there again.
   */
  int64_t reset_after_ms;
  /**
   * Milliseconds until there is more, rounded up; TG_NONE if there never is.
   */
  int64_t more_after_ms;
} tg_limit_left;

/**
 * The answer to a hit: plain data without an owner, to be copied at will.
 *
 * Its texts are the limiter's, end with NUL, and live until `tg_limiter_free`.
 */
typedef struct tg_decision {
  /**
   * TG_DECISION_VERSION: which fields there are.
   */
  uint32_t version;
  /**
   * 1 for yes, 0 for no; so with the next three.
   */
  uint8_t allowed;
  /**
   * An allowed hit left little.
   */
  uint8_t warning;
  /**
   * This denial was the one that reached the rule's alert.
   */
  uint8_t alert;
  /**
   * The sender should be notified of this denial.
   */
  uint8_t notify;
  /**
   * How many of `limits` are there.
   */
  uint8_t limit_count;
  /**
   * 0.
   */
  uint8_t reserved[7];
  /**
   * The rule's name.
   */
  const char *rule;
  /**
   * The denying limit's name, or "blocked", "cooldown", "backoff", "budget", "exempt", "off",
   * "cost", "full" or "outage"; NULL when allowed and counted.
   */
  const char *reason;
  /**
   * In shadow mode, the reason it would have been denied for; else NULL.
   */
  const char *would_deny;
  /**
   * What the rule hands back with a denial, as JSON; else NULL.
   */
  const char *attach;
  /**
   * The size of the limit with the least left, or of the one that denies; or TG_NONE.
   */
  int64_t limit;
  /**
   * What is left of it; or TG_NONE.
   */
  int64_t remaining;
  /**
   * Until the same hit would pass: 0 when allowed, TG_NONE where waiting never helps.
   */
  int64_t retry_after_ms;
  /**
   * Until the key has its full quota again.
   */
  int64_t reset_after_ms;
  /**
   * When it was made, by the limiter's clock; for `tg_decision_headers`.
   */
  uint64_t at_ns;
  /**
   * 0; for fields to come.
   */
  uint64_t reserved_words[4];
  /**
   * How each limit was left, in the rule's order: the first `limit_count`. The others are not
   * written.
   */
  struct tg_limit_left limits[TG_MOST_LIMITS];
} tg_decision;

/**
 * Why a call failed, in the caller's memory. It is written by a call that fails, and by no other.
 *
 * It is plain data without pointers and needs no initial value. It never grows.
 */
typedef struct tg_error {
  /**
   * The tg_status that the call failed with.
   */
  int32_t status;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Bytes of the whole message. If that is TG_ERROR_TEXT_SIZE or more, `text` is its start.
   */
  uint64_t length;
  /**
   * The message, UTF-8 that ends with NUL.
   */
  char text[TG_ERROR_TEXT_SIZE];
} tg_error;

/**
 * What was used after a `tg_record`: of the limit with the least left.
 */
typedef struct tg_recorded {
  /**
   * TG_RECORDED_VERSION: which fields there are.
   */
  uint32_t version;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Units that are gone; more than `limit` if more was recorded than allowed.
   */
  uint64_t used;
  /**
   * The limit's size.
   */
  uint64_t limit;
  /**
   * What is left of it.
   */
  uint64_t remaining;
  /**
   * Until the key has its full quota again.
   */
  int64_t reset_after_ms;
  /**
   * 0; for fields to come.
   */
  uint64_t reserved_words[4];
} tg_recorded;

/**
 * How a key stands with its budget.
 */
typedef struct tg_budget_state {
  /**
   * TG_BUDGET_STATE_VERSION: which fields there are.
   */
  uint32_t version;
  /**
   * 1 if nothing is left.
   */
  uint32_t over;
  /**
   * 1 if this amount was more than one hit should cost.
   */
  uint32_t over_per_hit;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Units spent today.
   */
  uint64_t spent;
  /**
   * Units left today.
   */
  uint64_t remaining;
  /**
   * Until the day is over.
   */
  int64_t reset_after_ms;
  /**
   * 0; for fields to come.
   */
  uint64_t reserved_words[4];
} tg_budget_state;

/**
 * What one limit holds of a key.
 */
typedef struct tg_limit_use {
  /**
   * The limit's name, which lives as long as the limiter; NULL beyond `limit_count`.
   */
  const char *name;
  /**
   * Whole units that are gone.
   */
  uint64_t used;
  /**
   * A bucket's size, else `max`.
   */
  uint64_t max;
  /**
   * Whole units that are left.
   */
  uint64_t remaining;
  /**
   * Until the whole quota is there again.
   */
  int64_t reset_after_ms;
  /**
   * 0; for fields to come.
   */
  uint64_t reserved_words[3];
} tg_limit_use;

/**
 * What is known of a key.
 */
typedef struct tg_key_stats {
  /**
   * TG_KEY_STATS_VERSION: which fields there are.
   */
  uint32_t version;
  /**
   * 0 exactly when the key's state is that of a new one; then all that follows is 0 too, but
   * for `budget.version`.
   */
  uint32_t known;
  /**
   * How many of `limits` are there.
   */
  uint32_t limit_count;
  /**
   * 1 if the rule has a budget.
   */
  uint32_t has_budget;
  /**
   * 1 if it is blocked; `tg_blocks` says until when, its maker and the reason.
   */
  uint32_t blocked;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * What its cooldown has to run.
   */
  int64_t cooldown_left_ms;
  /**
   * Denials in the span of the rule's alert, or in the run of its backoff.
   */
  uint64_t violations;
  /**
   * Since its last allowed hit; TG_NONE where the rule does not keep that.
   */
  int64_t last_allowed_ms;
  /**
   * Its budget, if `has_budget`.
   */
  struct tg_budget_state budget;
  /**
   * 0; for fields to come.
   */
  uint64_t reserved_words[8];
  /**
   * Each limit, in the rule's order.
   */
  struct tg_limit_use limits[TG_MOST_LIMITS];
} tg_key_stats;

/**
 * What a limiter is made with; what is set wins over the policy. Start from TG_OPTIONS_INIT.
 */
typedef struct tg_options {
  /**
   * TG_OPTIONS_VERSION. In version 1 `memory` is not there, and is not read.
   */
  uint32_t version;
  /**
   * One of TG_ON_FULL_….
   */
  uint32_t on_full;
  /**
   * Where state lives: "memory", "memory:NAME", "file:PATH"; NULL: what the policy says, or
   * memory.
   */
  const char *store;
  /**
   * Keys that a rule may hold live; 0: what the policy says. Where that says nothing either,
   * each rule takes what fits into its share of `memory`: at most 65536, at least 1024.
   */
  uint64_t capacity;
  /**
   * Where time comes from; NULL: from the system.
   */
  const struct tg_manual_clock *clock;
  /**
   * 1: tables of a file store that don't fit the policy, or can't be read, are made anew, and
   * their counts lost.
   */
  uint32_t recreate;
  /**
   * 1: the folder of a file store is shared with its group; 0: what the policy says, or not.
   */
  uint32_t group;
  /**
   * Bytes that all tables together may take; 0: what the policy says, or 256 MB.
   */
  uint64_t memory;
} tg_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Refuses a key from the next hit on, with reason "blocked": for a ban, or as long as an
 * upstream's `Retry-After` says. What was said of the key before is replaced.
 *
 * The block is kept with the store and acts in every process that shares it. It counts for no
 * cooldown, backoff or alert. `tg_record`, `tg_spend` and `tg_renew` work, and exempt keys pass;
 * `tg_reset` ends it. If as many keys are blocked as the rule has room for, it is TG_STATUS_STORE.
 * `options` and `out_number` as in `tg_set_override_with`.
 *
 * Statuses: those of a key and of a change.
 */
tg_status tg_block(const struct tg_rule *rule,
                   const struct tg_key *key,
                   const struct tg_change_options *options,
                   uint64_t *out_number);

/**
 * Ends a block. Returns 1, 0 if the key was not blocked, or a tg_status below 0.
 *
 * Statuses: those of a key and of a change.
 */
int tg_unblock(const struct tg_rule *rule, const struct tg_key *key);

/**
 * As `tg_unblock`, with options, which may be NULL.
 *
 * Statuses: those of a key and of a change.
 */
int tg_unblock_with(const struct tg_rule *rule,
                    const struct tg_key *key,
                    const struct tg_change_options *options);

/**
 * The keys that are blocked, a JSON list: key (a list of parts), until_ms (Unix time; null: for
 * good), by, reason.
 *
 * Writes the text to `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
 */
tg_status tg_blocks(const struct tg_rule *rule, char **out);

/**
 * Frees a text that a function of this library wrote to a `char **`. NULL is fine.
 */
void tg_string_free(char *text);

/**
 * Spends `cost` for a key if its rule allows: `tg_hit` for a key of `key_len` bytes at `key`.
 *
 * So with each `..._bytes`: it is the function of that name, for a key that is one part, without
 * attributes. No argument is a structure that holds pointers. `error` is where a call that fails
 * leaves the reason; it may be NULL.
 *
 * Statuses: those of `tg_hit`.
 */
tg_status tg_hit_bytes(const struct tg_rule *rule,
                       const uint8_t *key,
                       size_t key_len,
                       uint64_t cost,
                       struct tg_decision *out,
                       struct tg_error *error);

/**
 * `tg_check` for a key of bytes.
 *
 * Statuses: those of `tg_check`.
 */
tg_status tg_check_bytes(const struct tg_rule *rule,
                         const uint8_t *key,
                         size_t key_len,
                         uint64_t cost,
                         struct tg_decision *out,
                         struct tg_error *error);

/**
 * `tg_peek` for a key of bytes.
 *
 * Statuses: those of `tg_peek`.
 */
tg_status tg_peek_bytes(const struct tg_rule *rule,
                        const uint8_t *key,
                        size_t key_len,
                        uint64_t cost,
                        struct tg_decision *out,
                        struct tg_error *error);

/**
 * `tg_record` for a key of bytes.
 *
 * Statuses: those of `tg_record`.
 */
tg_status tg_record_bytes(const struct tg_rule *rule,
                          const uint8_t *key,
                          size_t key_len,
                          uint64_t cost,
                          struct tg_recorded *out,
                          struct tg_error *error);

/**
 * `tg_refund` for a key of bytes.
 *
 * Statuses: those of `tg_refund`.
 */
tg_status tg_refund_bytes(const struct tg_rule *rule,
                          const uint8_t *key,
                          size_t key_len,
                          uint64_t cost,
                          struct tg_error *error);

/**
 * `tg_reserve` for a key of bytes.
 *
 * Statuses: those of `tg_reserve`.
 */
tg_status tg_reserve_bytes(const struct tg_rule *rule,
                           const uint8_t *key,
                           size_t key_len,
                           uint64_t estimate,
                           struct tg_decision *out,
                           struct tg_reservation **out_reservation,
                           struct tg_error *error);

/**
 * `tg_permit` for a key of bytes.
 *
 * Statuses: those of `tg_permit`.
 */
tg_status tg_permit_bytes(const struct tg_rule *rule,
                          const uint8_t *key,
                          size_t key_len,
                          struct tg_decision *out,
                          struct tg_permit_handle **out_permit,
                          struct tg_error *error);

/**
 * `tg_spend` for a key of bytes.
 *
 * Statuses: those of `tg_spend`.
 */
tg_status tg_spend_bytes(const struct tg_rule *rule,
                         const uint8_t *key,
                         size_t key_len,
                         uint64_t amount,
                         struct tg_budget_state *out,
                         struct tg_error *error);

/**
 * `tg_budget` for a key of bytes.
 *
 * Statuses: those of `tg_budget`.
 */
tg_status tg_budget_bytes(const struct tg_rule *rule,
                          const uint8_t *key,
                          size_t key_len,
                          struct tg_budget_state *out,
                          struct tg_error *error);

/**
 * `tg_is_limited` for a key of bytes.
 *
 * Statuses: those of `tg_is_limited`.
 */
int tg_is_limited_bytes(const struct tg_rule *rule,
                        const uint8_t *key,
                        size_t key_len,
                        struct tg_error *error);

/**
 * `tg_stats` for a key of bytes.
 *
 * Statuses: those of `tg_stats`.
 */
tg_status tg_stats_bytes(const struct tg_rule *rule,
                         const uint8_t *key,
                         size_t key_len,
                         struct tg_key_stats *out,
                         struct tg_error *error);

/**
 * `tg_why` for a key of bytes.
 *
 * Statuses: those of `tg_why`.
 */
tg_status tg_why_bytes(const struct tg_rule *rule,
                       const uint8_t *key,
                       size_t key_len,
                       uint64_t cost,
                       char **out,
                       struct tg_error *error);

/**
 * `tg_reset` for a key of bytes.
 *
 * Statuses: those of `tg_reset`.
 */
tg_status tg_reset_bytes(const struct tg_rule *rule,
                         const uint8_t *key,
                         size_t key_len,
                         struct tg_error *error);

/**
 * `tg_block` for a key of bytes.
 *
 * The texts of `options`, if any, are in memory of C's.
 *
 * Statuses: those of `tg_block`.
 */
tg_status tg_block_bytes(const struct tg_rule *rule,
                         const uint8_t *key,
                         size_t key_len,
                         const struct tg_change_options *options,
                         uint64_t *out_number,
                         struct tg_error *error);

/**
 * `tg_unblock_with` for a key of bytes.
 *
 * Statuses: those of `tg_unblock_with`.
 */
int tg_unblock_bytes(const struct tg_rule *rule,
                     const uint8_t *key,
                     size_t key_len,
                     const struct tg_change_options *options,
                     struct tg_error *error);

/**
 * `tg_set_override_with` for a key of bytes.
 *
 * Statuses: those of `tg_set_override_with`.
 */
tg_status tg_set_override_bytes(const struct tg_rule *rule,
                                const uint8_t *key,
                                size_t key_len,
                                const char *limits,
                                const struct tg_change_options *options,
                                uint64_t *out_number,
                                struct tg_error *error);

/**
 * `tg_clear_override_with` for a key of bytes.
 *
 * Statuses: those of `tg_clear_override_with`.
 */
tg_status tg_clear_override_bytes(const struct tg_rule *rule,
                                  const uint8_t *key,
                                  size_t key_len,
                                  const struct tg_change_options *options,
                                  uint64_t *out_number,
                                  struct tg_error *error);

/**
 * `tg_allow_many` for keys that lie one after the other at `keys`: the first `key_lens[0]` bytes
 * are the first key, and so on. One call costs such a language far less than `count` calls.
 *
 * `key_lens` has `count` lengths, and `out_mask` room for `count`. All keys together have
 * `keys_len` bytes: where that is not the sum of the lengths, it is TG_STATUS_LENGTH.
 *
 * Statuses: those of `tg_allow_many`.
 */
tg_status tg_allow_many_bytes(const struct tg_rule *rule,
                              const uint8_t *keys,
                              size_t keys_len,
                              const size_t *key_lens,
                              size_t count,
                              uint8_t *out_mask,
                              struct tg_error *error);

/**
 * Judges a key by other limits from the next hit on, in every process that shares the store.
 *
 * `limits` is JSON: `{"per-minute": {"max": 60}}`, or for a rule with one limit a text,
 * `"60/min"`. What was set for the same key before is replaced. Of `key` only the key itself
 * counts.
 *
 * Statuses: those of a key and of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_override(const struct tg_rule *rule, const struct tg_key *key, const char *limits);

/**
 * As `tg_set_override`, with options, and the number of the change.
 *
 * So with each `..._with`: `options` may be NULL. `out_number` may be NULL. If not, the number
 * that the change has in `tg_changes` is written to it: 0 if there was nothing to take back.
 *
 * Statuses: those of a key and of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_override_with(const struct tg_rule *rule,
                               const struct tg_key *key,
                               const char *limits,
                               const struct tg_change_options *options,
                               uint64_t *out_number);

/**
 * As `tg_set_override`, for all calls that match: `{"role": ["admin", "system"]}`, as JSON.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_override_match(const struct tg_rule *rule,
                                const char *match_json,
                                const char *limits);

/**
 * As `tg_set_override_match`, with options.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_override_match_with(const struct tg_rule *rule,
                                     const char *match_json,
                                     const char *limits,
                                     const struct tg_change_options *options,
                                     uint64_t *out_number);

/**
 * Takes a key's override back. Returns 1, 0 if there was none, or a tg_status below 0.
 *
 * Statuses: those of a key and of a change.
 */
int tg_clear_override(const struct tg_rule *rule, const struct tg_key *key);

/**
 * Takes a key's override back, with options.
 *
 * Statuses: those of a key and of a change.
 */
tg_status tg_clear_override_with(const struct tg_rule *rule,
                                 const struct tg_key *key,
                                 const struct tg_change_options *options,
                                 uint64_t *out_number);

/**
 * Takes the override of a match back. Returns as `tg_clear_override` does.
 *
 * Statuses: those of a change.
 */
int tg_clear_override_match(const struct tg_rule *rule, const char *match_json);

/**
 * Takes the override of a match back, with options.
 *
 * Statuses: those of a change.
 */
tg_status tg_clear_override_match_with(const struct tg_rule *rule,
                                       const char *match_json,
                                       const struct tg_change_options *options,
                                       uint64_t *out_number);

/**
 * The overrides in force, a JSON list of maps with limits, and key (a list of parts) or match.
 *
 * Writes the text to `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
 */
tg_status tg_overrides(const struct tg_rule *rule, char **out);

/**
 * Changes the rule's own limits from the next hit on; `limits` as in `tg_set_override`, and `{}`
 * takes that back.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_default(const struct tg_rule *rule, const char *limits);

/**
 * As `tg_set_default`, with options.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_default_with(const struct tg_rule *rule,
                              const char *limits,
                              const struct tg_change_options *options,
                              uint64_t *out_number);

/**
 * Allows the calls that match (JSON, as in `tg_set_override_match`) from the next hit on,
 * uncounted.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_add_exempt(const struct tg_rule *rule, const char *match_json);

/**
 * As `tg_add_exempt`, with options.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_add_exempt_with(const struct tg_rule *rule,
                             const char *match_json,
                             const struct tg_change_options *options,
                             uint64_t *out_number);

/**
 * Takes an exemption back, the policy's own too. Returns 1, 0 if it was not in force, or a
 * tg_status below 0.
 *
 * Statuses: those of a change.
 */
int tg_remove_exempt(const struct tg_rule *rule, const char *match_json);

/**
 * Takes an exemption back, with options.
 *
 * Statuses: those of a change.
 */
tg_status tg_remove_exempt_with(const struct tg_rule *rule,
                                const char *match_json,
                                const struct tg_change_options *options,
                                uint64_t *out_number);

/**
 * Replaces all exemptions by these, a JSON list of matches.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_exempts(const struct tg_rule *rule, const char *matches);

/**
 * As `tg_set_exempts`, with options.
 *
 * Statuses: those of a change; TG_STATUS_POLICY.
 */
tg_status tg_set_exempts_with(const struct tg_rule *rule,
                              const char *matches,
                              const struct tg_change_options *options,
                              uint64_t *out_number);

/**
 * The exemptions in force, a JSON list of matches.
 *
 * Writes the text to `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
 */
tg_status tg_exempts(const struct tg_rule *rule, char **out);

/**
 * Judges in this mode from the next hit on, whatever the policy and its `when` say: "enforce",
 * "shadow" (every hit is allowed, and `would_deny` says what would have been) or "off" (nothing is
 * counted).
 *
 * `options` and `out_number` as in `tg_set_override_with`.
 *
 * Statuses: those of a change.
 */
tg_status tg_set_mode(const struct tg_rule *rule,
                      const char *mode,
                      const struct tg_change_options *options,
                      uint64_t *out_number);

/**
 * Takes `tg_set_mode` back: the policy's mode is in force again.
 *
 * `options` and `out_number` as in `tg_set_override_with`.
 *
 * Statuses: those of a change.
 */
tg_status tg_clear_mode(const struct tg_rule *rule,
                        const struct tg_change_options *options,
                        uint64_t *out_number);

/**
 * A clock that shows `start_ms`, with a wall time of `wall_ms` since the start of 1970.
 * Writes it to `out`; free it with `tg_manual_clock_free`.
 *
 * Statuses: only those of every function.
 */
tg_status tg_manual_clock_new(uint64_t start_ms, uint64_t wall_ms, struct tg_manual_clock **out);

/**
 * Frees a clock. NULL is fine.
 */
void tg_manual_clock_free(struct tg_manual_clock *clock);

/**
 * Moves the clock on.
 *
 * Statuses: only those of every function.
 */
tg_status tg_manual_clock_advance(const struct tg_manual_clock *clock, uint64_t step_ms);

/**
 * Sets the clock, back too.
 *
 * Statuses: only those of every function.
 */
tg_status tg_manual_clock_set(const struct tg_manual_clock *clock, uint64_t now_ms);

/**
 * Sets the wall time alone: milliseconds since the start of 1970.
 *
 * Statuses: only those of every function.
 */
tg_status tg_manual_clock_set_wall(const struct tg_manual_clock *clock, uint64_t unix_ms);

/**
 * Writes what the clock shows to `out`.
 *
 * Statuses: only those of every function.
 */
tg_status tg_manual_clock_now(const struct tg_manual_clock *clock, uint64_t *out);

/**
 * The header fields of a decision: lines of `Name: value`, each ended by CR LF, as HTTP has them.
 *
 * `rule` is the rule that decided. Writes the text and a NUL to `buffer`, and its length without
 * the NUL to `out_len`. With a `capacity` of 0 only `out_len` is written, and `buffer` may be
 * NULL. If it does not fit, nothing is written and TG_STATUS_BUFFER returned; 1024 bytes are
 * enough for most rules. An exempt call and one of a rule that is off have no fields: the text is
 * "".
 *
 * Statuses: TG_STATUS_ARGUMENT, TG_STATUS_LENGTH, TG_STATUS_BUFFER.
 */
tg_status tg_decision_headers(const struct tg_rule *rule,
                              const struct tg_decision *decision,
                              uint32_t style,
                              char *buffer,
                              size_t capacity,
                              size_t *out_len);

/**
 * Writes to `out` with what status and why the last call of this thread failed that did.
 *
 * For calls that take no tg_error: ask in the same C function as the call that failed, so that
 * both run on one thread. Where none failed, `status` is 0 and `text` is "".
 *
 * Statuses: TG_STATUS_NULL.
 */
tg_status tg_last_error_copy(struct tg_error *out);

/**
 * A hit whose true cost is known later: spends `estimate` if the rule allows it.
 *
 * Writes the decision to `out`, and to `out_reservation` a handle to settle, or NULL if it was
 * denied. Free it with `tg_reservation_free`.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_reserve(const struct tg_rule *rule,
                     const struct tg_key *key,
                     uint64_t estimate,
                     struct tg_decision *out,
                     struct tg_reservation **out_reservation);

/**
 * Gives back or takes the difference to the true cost. Returns 1, 0 if it was settled or cancelled
 * before (then nothing is done), or a tg_status below 0. The handle is still to be freed.
 *
 * Statuses: only those of every function.
 */
int tg_settle(const struct tg_reservation *reservation, uint64_t actual);

/**
 * Gives the estimate back. Returns as `tg_settle` does.
 *
 * Statuses: only those of every function.
 */
int tg_cancel(const struct tg_reservation *reservation);

/**
 * Frees a reservation; one that was not settled stays spent. NULL is fine.
 */
void tg_reservation_free(struct tg_reservation *reservation);

/**
 * Takes all limits of a rule with a concurrent one, and holds a slot until it is released or
 * freed, or its lease runs out.
 *
 * Writes the decision to `out`, and to `out_permit` a handle, or NULL if it was denied. Free it
 * with `tg_permit_free`.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule without a concurrent limit.
 */
tg_status tg_permit(const struct tg_rule *rule,
                    const struct tg_key *key,
                    struct tg_decision *out,
                    struct tg_permit_handle **out_permit);

/**
 * Gives the slot back. Returns 1, 0 if it was no longer held (released before, or its lease ran
 * out), or a tg_status below 0. The handle is still to be freed.
 *
 * Statuses: only those of every function.
 */
int tg_release(const struct tg_permit_handle *permit);

/**
 * Starts the lease anew. Returns 1, 0 if the slot is lost, or a tg_status below 0.
 *
 * Statuses: only those of every function.
 */
int tg_renew(const struct tg_permit_handle *permit);

/**
 * Releases a permit that is still held, and frees it. NULL is fine.
 */
void tg_permit_free(struct tg_permit_handle *permit);

/**
 * A limiter with one rule, "default", of these limits: "5/10s window, 20/min".
 *
 * `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
 *
 * Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_POLICY, TG_STATUS_STORE,
 * TG_STATUS_MEMORY.
 */
tg_status tg_limiter_new(const char *limits,
                         const struct tg_options *options,
                         struct tg_limiter **out);

/**
 * A limiter of a policy's text, YAML or JSON: `len` bytes of UTF-8, without a NUL.
 *
 * `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
 *
 * Statuses: TG_STATUS_LENGTH, TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_POLICY,
 * TG_STATUS_STORE, TG_STATUS_MEMORY.
 */
tg_status tg_limiter_from_policy(const uint8_t *text,
                                 size_t len,
                                 const struct tg_options *options,
                                 struct tg_limiter **out);

/**
 * A limiter of a policy file, YAML or JSON, which `tg_reload` reads again.
 *
 * `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
 *
 * Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_FILE, TG_STATUS_POLICY, TG_STATUS_STORE,
 * TG_STATUS_MEMORY.
 */
tg_status tg_limiter_from_file(const char *path,
                               const struct tg_options *options,
                               struct tg_limiter **out);

/**
 * Frees a limiter, its rules and all texts of its decisions. NULL is fine.
 *
 * No other call may be under way with it or its rules, and none may follow. Permits and
 * reservations may outlive it.
 */
void tg_limiter_free(struct tg_limiter *limiter);

/**
 * Lets go: every operation from now on is TG_STATUS_CLOSED. Still to be freed.
 *
 * Statuses: only those of every function.
 */
tg_status tg_limiter_close(const struct tg_limiter *limiter);

/**
 * A rule by its name ("default" in a limiter made by `tg_limiter_new`), or the policy's
 * `fallback`.
 *
 * Writes it to `out`. It is the limiter's: don't free it; it is good until `tg_limiter_free`, over
 * reloads too. Ask once and keep it: this takes a lock.
 *
 * Statuses: TG_STATUS_UTF8, TG_STATUS_RULE, TG_STATUS_CLOSED.
 */
tg_status tg_rule_get(const struct tg_limiter *limiter,
                      const char *name,
                      const struct tg_rule **out);

/**
 * Reads the policy file again: all or nothing. Rules that were gotten go by the new policy.
 *
 * Statuses: TG_STATUS_FILE, TG_STATUS_POLICY, TG_STATUS_STORE, TG_STATUS_MEMORY, TG_STATUS_CLOSED;
 * TG_STATUS_OPERATION for a limiter that was not made from a file.
 */
tg_status tg_reload(const struct tg_limiter *limiter);

/**
 * Counts so far, a JSON list with a map for each rule. Its numbers are allowed, warned, shadowed,
 * exempt, off, alerts, evictions, full, overflow, classify_defaults, capacity, keys and bytes.
 * `rule` is the name, `denied` has a count for each reason, and `retired` says whether the table
 * was replaced. `top_offenders` and `heaviest` are lists of key and count.
 *
 * Writes the text to `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED.
 */
tg_status tg_metrics(const struct tg_limiter *limiter, char **out);

/**
 * The last denials and alerts of all rules, a JSON map. `events` is a list with number, rule, key,
 * reason, alert, and at_ms in Unix time. `next` is a text. `missed` counts the events that later
 * ones replaced before they were read.
 *
 * `since` is what `next` was, for those after that; NULL for all that are kept. Writes the text to
 * `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_CLOSED.
 */
tg_status tg_events(const struct tg_limiter *limiter, const char *since, char **out);

/**
 * Run-time changes of all rules, the oldest first, a JSON map. `changes` is a list. `next` is the
 * number to ask with the next time. `missed` counts those after `since` that are no longer kept.
 * The store keeps at least the last 256.
 *
 * A change has these fields:
 *
 * - `number`, `rule`, `by`, `reason`
 * - `at_ms`, and `until_ms` or null: Unix time
 * - `op`: "set_override", "block" and so on
 * - `target`: a map with key or match, or null
 * - `before`, `after`: limits, a list of exemptions or a mode; of one exemption and of a block,
 *   whether it stood
 *
 * `since` is 0 for all that are kept, or what `next` was. Writes the text to `out`; free it with
 * `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
 */
tg_status tg_changes(const struct tg_limiter *limiter, uint64_t since, char **out);

/**
 * Findings on the policy, a JSON list: id, severity ("info" or "warn"), path, message.
 *
 * Writes the text to `out`; free it with `tg_string_free`.
 *
 * Statuses: TG_STATUS_CLOSED.
 */
tg_status tg_audit(const struct tg_limiter *limiter, char **out);

/**
 * Whether a hit of 1 passes, and spends it: the fastest path, without allocation.
 *
 * The key is `key_len` bytes at `key`, read during the call only. Returns 1 for yes, 0 for no, or
 * a tg_status below 0, as `-TG_STATUS_KEY`.
 *
 * Statuses: TG_STATUS_LENGTH, TG_STATUS_KEY, TG_STATUS_CLOSED; TG_STATUS_OPERATION for a rule with
 * permits.
 */
int tg_allow(const struct tg_rule *rule, const uint8_t *key, size_t key_len);

/**
 * `tg_allow` for `count` keys at once, far cheaper for each on large tables.
 *
 * Writes 1 or 0 for each key to `out_mask`, which has room for `count`. If the call fails, nothing
 * is written; keys before one that is not the rule's were judged.
 *
 * Statuses: TG_STATUS_LENGTH, TG_STATUS_KEY, TG_STATUS_CLOSED; TG_STATUS_OPERATION for a rule with
 * permits.
 */
tg_status tg_allow_many(const struct tg_rule *rule,
                        const struct tg_bytes *keys,
                        size_t count,
                        uint8_t *out_mask);

/**
 * Spends `cost` for a key if its rule allows, and says how it went.
 *
 * `key` is read during the call only. `*out` is written if and only if TG_STATUS_OK is returned,
 * denied or not. Safe from any thread, on the same rule too.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_hit(const struct tg_rule *rule,
                 const struct tg_key *key,
                 uint64_t cost,
                 struct tg_decision *out);

/**
 * As `tg_hit`, but an allowed one spends nothing: for "check, do the work, then `tg_record`". A
 * denial counts like a hit's.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_check(const struct tg_rule *rule,
                   const struct tg_key *key,
                   uint64_t cost,
                   struct tg_decision *out);

/**
 * What a `tg_hit` would get, changing nothing. With a cost of 0, what is left now.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_peek(const struct tg_rule *rule,
                  const struct tg_key *key,
                  uint64_t cost,
                  struct tg_decision *out);

/**
 * Spends without asking, also in a cooldown: a bucket goes no lower than 0, a window logs it.
 * Writes to `out` what is used then.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_record(const struct tg_rule *rule,
                    const struct tg_key *key,
                    uint64_t cost,
                    struct tg_recorded *out);

/**
 * Gives back, never above full; a window's newest first.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
 */
tg_status tg_refund(const struct tg_rule *rule, const struct tg_key *key, uint64_t cost);

/**
 * Records what was spent of the day's budget, always, and writes to `out` how the key stands then.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule without a budget.
 */
tg_status tg_spend(const struct tg_rule *rule,
                   const struct tg_key *key,
                   uint64_t amount,
                   struct tg_budget_state *out);

/**
 * Writes to `out` how the key stands with its budget.
 *
 * Statuses: those of a key; TG_STATUS_OPERATION for a rule without a budget.
 */
tg_status tg_budget(const struct tg_rule *rule,
                    const struct tg_key *key,
                    struct tg_budget_state *out);

/**
 * Whether a caller should leave the key alone. A blocked key is limited. With backoff, so is a key
 * that was denied less than `quiet` ago. Without backoff, so is a key whose hit of 1 would be
 * denied.
 *
 * Returns 1 for yes, 0 for no, or a tg_status below 0.
 *
 * Statuses: those of a key.
 */
int tg_is_limited(const struct tg_rule *rule, const struct tg_key *key);

/**
 * Writes to `out` what is known of a key.
 *
 * Statuses: those of a key.
 */
tg_status tg_stats(const struct tg_rule *rule, const struct tg_key *key, struct tg_key_stats *out);

/**
 * Why a hit of `cost` would get what it would get, changing nothing.
 *
 * Writes a JSON text to `out`; free it with `tg_string_free`. It has `decision`, and `steps`, the
 * judgement in order. A step has these fields:
 *
 * - `step`: mode, exempt, blocked, cost, budget, cooldown, backoff, or limit, once for each limit
 * - `outcome`: none, pass, allow or deny
 * - `limit`: the limit's name
 * - `value`: the number or word that the step goes by; of a block, its reason
 * - `source`: rule, default, when[0], override, change or call
 * - `until_ms`: when it ends, in Unix time
 * - `by`: the maker of the change that the value comes from
 *
 * Statuses: those of a key.
 */
tg_status tg_why(const struct tg_rule *rule, const struct tg_key *key, uint64_t cost, char **out);

/**
 * Forgets the key's limits, penalties and budget, but never those of a wider scope; ends its
 * block.
 *
 * Statuses: those of a key; TG_STATUS_STORE.
 */
tg_status tg_reset(const struct tg_rule *rule, const struct tg_key *key);

/**
 * Forgets every key of the rule, and ends all blocks.
 *
 * Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
 */
tg_status tg_reset_all(const struct tg_rule *rule);

/**
 * Drops idle keys now, and writes to `out` how many. Nothing must call this: they are evicted
 * when their places are needed.
 *
 * Statuses: TG_STATUS_CLOSED.
 */
tg_status tg_prune(const struct tg_rule *rule, size_t *out);

/**
 * Writes to `out` how many rows are in use, idle ones until they are pruned or taken over.
 *
 * Statuses: TG_STATUS_CLOSED.
 */
tg_status tg_len(const struct tg_rule *rule, size_t *out);

/**
 * Why the last call that failed on this thread did so: text that ends with NUL, "" if none has.
 *
 * Ask on the thread that failed. The text is the library's: it is good until the next call of this
 * thread that fails. A call that succeeds leaves it as it was. Of a message of more than 4,095
 * bytes it is the start.
 */
const char *tg_last_error(void);

/**
 * A status as a word: "ok", "null", "policy" and so on; "unknown" for a number that is none. The
 * sign does not matter, so that what `tg_allow` returned can be asked for too. Never NULL, and
 * never freed.
 */
const char *tg_status_name(int32_t status);

/**
 * The library's version: "0.1.0". Never NULL, and never freed.
 */
const char *tg_version(void);

/**
 * The library's TG_ABI_VERSION, which may be later than the header's.
 */
uint32_t tg_abi_version(void);

/**
 * The library's TG_ABI_VERSION_OLDEST: a program compiled with a TG_ABI_VERSION from this to
 * `tg_abi_version` works with it.
 */
uint32_t tg_abi_version_oldest(void);

/**
 * Makes a key of a client's address: IPv4 as it is, IPv6 cut to its first `v6_prefix` bits
 * (TG_V6_PREFIX, unless you know better). IPv4-mapped IPv6 addresses are unmapped first.
 *
 * Writes as `tg_decision_headers` does; TG_IP_KEY_SIZE bytes are always enough.
 *
 * Statuses: TG_STATUS_UTF8, TG_STATUS_ADDRESS, TG_STATUS_RANGE, TG_STATUS_LENGTH,
 * TG_STATUS_BUFFER.
 */
tg_status tg_ip_key(const char *address,
                    uint32_t v6_prefix,
                    char *buffer,
                    size_t capacity,
                    size_t *out_len);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TIDEGATE_H */

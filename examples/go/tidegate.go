// Package tidegate limits rates in Go, by cgo.
//
// A goroutine may be on another thread at its next call. So why a call failed is kept by the same
// call into C: by the functions above `import "C"`, or by a call that takes a tg_error.
package main

/*
#cgo pkg-config: tidegate
#include <stdlib.h>
#include <tidegate.h>

static tg_status kept(tg_status status, tg_error *error) {
  if (status != TG_STATUS_OK) tg_last_error_copy(error);
  return status;
}

static tg_status limiter_from_policy(const uint8_t *text, size_t len, tg_limiter **out,
                                     tg_error *error) {
  return kept(tg_limiter_from_policy(text, len, NULL, out), error);
}

static tg_status rule_get(const tg_limiter *limiter, const char *name, const tg_rule **out,
                          tg_error *error) {
  return kept(tg_rule_get(limiter, name, out), error);
}

// Parts that lie one after the other: a tg_key of Go pointers could not be handed over.
static tg_status hit_parts(const tg_rule *rule, const uint8_t *data, const size_t *lens,
                           size_t count, uint64_t cost, tg_decision *out, tg_error *error) {
  tg_bytes parts[TG_MOST_PARTS];
  for (size_t i = 0; i < count && i < TG_MOST_PARTS; i++, data += lens[i - 1]) {
    parts[i].data = data;
    parts[i].len = lens[i];
  }
  tg_key key = TG_KEY_PARTS_INIT(parts, count);
  return kept(tg_hit(rule, &key, cost, out), error);
}
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Limiter is a policy at work. Goroutines may share it, and its rules.
type Limiter struct{ raw *C.tg_limiter }

// Rule is good until its limiter is closed.
type Rule struct{ raw *C.tg_rule }

// Decision is the answer to a hit.
type Decision struct {
	Allowed    bool
	Reason     string
	Remaining  int64
	RetryAfter time.Duration // below 0 where waiting never helps
}

// Error is a failed call. A denial is none.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return e.Text }

func failed(status C.tg_status, e *C.tg_error) error {
	if status == C.TG_STATUS_OK {
		return nil
	}
	return &Error{int(e.status), C.GoString(&e.text[0])}
}

// bytes is where a text lies. C reads it during the call only.
func bytes(text string) (*C.uint8_t, C.size_t) {
	if text == "" {
		return nil, 0
	}
	data := []byte(text)
	return (*C.uint8_t)(unsafe.Pointer(&data[0])), C.size_t(len(data))
}

// New makes a limiter of a policy, YAML or JSON.
func New(policy string) (*Limiter, error) {
	var e C.tg_error
	limiter := &Limiter{}
	data, length := bytes(policy)
	status := C.limiter_from_policy(data, length, &limiter.raw, &e)
	if err := failed(status, &e); err != nil {
		return nil, err
	}
	return limiter, nil
}

// Close frees the limiter and its rules. No call may be under way. A second Close does nothing.
func (l *Limiter) Close() {
	C.tg_limiter_free(l.raw)
	l.raw = nil
}

// Rule finds a rule by its name. Ask once and keep it.
func (l *Limiter) Rule(name string) (*Rule, error) {
	var e C.tg_error
	rule, text := &Rule{}, C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if err := failed(C.rule_get(l.raw, text, &rule.raw, &e), &e); err != nil {
		return nil, err
	}
	return rule, nil
}

// Hit spends cost for a key if the rule allows it.
func (r *Rule) Hit(key string, cost uint64) (Decision, error) {
	var d C.tg_decision
	var e C.tg_error
	data, length := bytes(key)
	status := C.tg_hit_bytes(r.raw, data, length, C.uint64_t(cost), &d, &e)
	return decision(&d), failed(status, &e)
}

// HitParts is Hit for a key of several parts.
func (r *Rule) HitParts(cost uint64, parts ...string) (Decision, error) {
	var d C.tg_decision
	var e C.tg_error
	all, lens := "", make([]C.size_t, len(parts)+1)
	for i, part := range parts {
		all += part
		lens[i] = C.size_t(len(part))
	}
	data, _ := bytes(all)
	status := C.hit_parts(r.raw, data, &lens[0], C.size_t(len(parts)), C.uint64_t(cost), &d, &e)
	return decision(&d), failed(status, &e)
}

func decision(d *C.tg_decision) Decision {
	reason := ""
	if d.reason != nil {
		reason = C.GoString(d.reason)
	}
	wait := time.Duration(d.retry_after_ms) * time.Millisecond
	return Decision{d.allowed == 1, reason, int64(d.remaining), wait}
}

const policy = `{"version": 1, "rules": {"messages": {"limits": "3/min"},
  "sends": {"key": ["channel", "sender"], "limits": "1000/h"}}}`

func main() {
	limiter, err := New(policy)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	messages, err := limiter.Rule("messages")
	if err != nil {
		panic(err)
	}
	for i := 0; i < 4; i++ {
		d, err := messages.Hit("alice", 1)
		fmt.Println(d.Allowed, d.Reason, err)
	}
}

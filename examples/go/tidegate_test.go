package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func made(t *testing.T, rule string) *Rule {
	limiter, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	found, err := limiter.Rule(rule)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDenies(t *testing.T) {
	messages := made(t, "messages")
	d, err := messages.Hit("alice", 3)
	if err != nil || !d.Allowed || d.Remaining != 0 {
		t.Fatal(d, err)
	}
	d, err = messages.Hit("alice", 1)
	if err != nil || d.Allowed || d.Reason != "3/min" || d.RetryAfter > 20*time.Second {
		t.Fatal(d, err)
	}
	if d, err = messages.Hit("", 1); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
}

func TestClosesOnce(t *testing.T) {
	limiter, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	if rule, err := limiter.Rule("nobody"); rule != nil || err == nil {
		t.Fatal(rule, err)
	}
	limiter.Close()
	limiter.Close()
	if rule, err := limiter.Rule("messages"); rule != nil || err == nil {
		t.Fatal("a closed limiter has rules")
	}
}

// Many goroutines on many threads: as many grants as the rule has, and each failed call has the
// text of its own failure.
func TestGoroutines(t *testing.T) {
	sends, messages := made(t, "sends"), made(t, "messages")
	var granted, wrong int64
	var all sync.WaitGroup
	for g := 0; g < 64; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < 50; i++ {
				if d, err := sends.HitParts(1, "telegram", "alice"); err == nil && d.Allowed {
					atomic.AddInt64(&granted, 1)
				}
				var e *Error
				name := fmt.Sprintf("nobody-%d-%d", g, i)
				limiter, err := New(fmt.Sprintf(`{"version": 1, "rules": {}, %q: 1}`, name))
				if !errors.As(err, &e) || !strings.Contains(e.Text, name) || limiter != nil {
					atomic.AddInt64(&wrong, 1)
				}
				_, err = messages.HitParts(1, "two", "parts")
				if !errors.As(err, &e) || !strings.Contains(e.Text, "keys of 1 part") || e.Status != 11 {
					atomic.AddInt64(&wrong, 1)
				}
			}
		}(g)
	}
	all.Wait()
	if granted != 1000 || wrong != 0 {
		t.Fatal(granted, "granted,", wrong, "wrong texts")
	}
}

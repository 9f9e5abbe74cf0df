// Built with -fno-exceptions -fno-rtti: the `try_` functions are all one needs.
#include <tidegate.hpp>

int main() {
  tidegate::limiter limiter;
  tidegate::rule rule;
  tidegate::decision decision;
  if (tidegate::limiter::try_new("1/mni", {}, limiter) != TG_STATUS_POLICY) return 1;
  if (tidegate::limiter::try_new("1/min", {}, limiter) != TG_STATUS_OK) return 2;
  if (limiter.try_rule("default", rule) != TG_STATUS_OK) return 3;
  if (rule.try_allow("alice") != 1 || rule.try_allow("alice") != 0) return 4;
  if (rule.try_hit("alice", 1, decision) != TG_STATUS_OK || decision.allowed()) return 5;
  return 0;
}

#include <stdio.h>
#include <tidegate.h>

int main(void) {
  tg_limiter *limiter;
  const tg_rule *rule;
  if (tg_limiter_new("2/min", NULL, &limiter) != TG_STATUS_OK ||
      tg_rule_get(limiter, "default", &rule) != TG_STATUS_OK)
    return fprintf(stderr, "%s\n", tg_last_error()), 1;
  for (int i = 0; i < 3; i++) puts(tg_allow(rule, (const uint8_t *)"alice", 5) == 1 ? "yes" : "no");
  tg_limiter_free(limiter);
}

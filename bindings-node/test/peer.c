/* Hits a key of a store and prints how often it was allowed: peer STORE LIMITS CAPACITY KEY HITS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tidegate.h"

int main(int argc, char **argv) {
  tg_limiter *limiter;
  const tg_rule *rule;
  tg_options options = TG_OPTIONS_INIT;
  if (argc != 6) return 2;
  options.store = argv[1];
  options.capacity = strtoull(argv[3], NULL, 10);
  if (tg_limiter_new(argv[2], &options, &limiter) != TG_STATUS_OK ||
      tg_rule_get(limiter, "default", &rule) != TG_STATUS_OK)
    return fprintf(stderr, "%s\n", tg_last_error()), 1;
  int grants = 0;
  for (long i = strtol(argv[5], NULL, 10); i > 0; i--)
    grants += tg_allow(rule, (const uint8_t *)argv[4], strlen(argv[4])) == 1;
  printf("%d\n", grants);
  tg_limiter_free(limiter);
  return 0;
}

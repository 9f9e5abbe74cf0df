/* Structures are laid out here as they are in the library; a second unit that includes the header. */
#include "check.h"

_Static_assert(sizeof(tg_status) == 4, "tg_status");
_Static_assert(sizeof(tg_bytes) == 16 && offsetof(tg_bytes, len) == 8, "tg_bytes");
_Static_assert(sizeof(tg_attribute) == 32 && offsetof(tg_attribute, value) == 16, "tg_attribute");
_Static_assert(sizeof(tg_key) == 64 && offsetof(tg_key, parts) == 24, "tg_key");
_Static_assert(offsetof(tg_key, attributes) == 40 && offsetof(tg_key, max) == 56, "tg_key");
_Static_assert(sizeof(tg_options) == 40 && offsetof(tg_options, clock) == 24, "tg_options");
_Static_assert(sizeof(tg_limit_left) == 40, "tg_limit_left");
_Static_assert(sizeof(tg_decision) == 440 && offsetof(tg_decision, limits) == 120, "tg_decision");
_Static_assert(sizeof(tg_recorded) == 32 && sizeof(tg_budget_state) == 32, "tg_recorded");
_Static_assert(sizeof(tg_key_stats) == 392, "tg_key_stats");

const char *layout_version(void);
const char *layout_version(void) { return tg_version(); }

// The C header as C++11 has it.
#include <tidegate.h>
#include <tidegate.h>

static_assert(sizeof(tg_status) == 4 && sizeof(tg_key) == 64 && sizeof(tg_options) == 48, "layout");
static_assert(sizeof(tg_decision) == 504 && sizeof(tg_key_stats) == 696, "layout");

int main() {
  tg_key key = TG_KEY_INIT("a", 1);
  tg_options options = TG_OPTIONS_INIT;
  tg_bytes bytes = TG_BYTES("a");
  tg_key parts = TG_KEY_PARTS_INIT(&bytes, 1);
  tg_change_options change = TG_CHANGE_OPTIONS_INIT;
  bool versions = key.version == TG_KEY_VERSION && options.version == TG_OPTIONS_VERSION &&
                  parts.version == TG_KEY_VERSION &&
                  change.version == TG_CHANGE_OPTIONS_VERSION && tg_abi_version() == TG_ABI_VERSION;
  return versions && bytes.len == 1 ? 0 : 1;
}

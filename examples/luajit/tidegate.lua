-- Tidegate in LuaJIT, by its ffi: for OpenResty, or any program that has LuaJIT.
--
--     local limiter = tidegate.limiter("5/10s window, 20/min")
--     local rule = limiter:rule("default")
--     if rule:allow("alice") then ... end
--     local decision = rule:hit("alice", 1)
--
-- What is declared here is of TG_ABI_VERSION 3; another library is refused below.
local ffi = require("ffi")

ffi.cdef([[
typedef int32_t tg_status;
typedef struct tg_limiter tg_limiter;
typedef struct tg_rule tg_rule;
typedef struct {
  uint32_t version, on_full;
  const char *store;
  uint64_t capacity;
  const void *clock;
  uint32_t recreate, group;
  uint64_t memory;
} tg_options;
typedef struct {
  const char *name;
  uint64_t max, window_seconds, remaining;
  int64_t reset_after_ms, more_after_ms;
} tg_limit_left;
typedef struct {
  uint32_t version;
  uint8_t allowed, warning, alert, notify, limit_count, reserved[7];
  const char *rule, *reason, *would_deny, *attach;
  int64_t limit, remaining, retry_after_ms, reset_after_ms;
  uint64_t at_ns, reserved_words[4];
  tg_limit_left limits[8];
} tg_decision;
typedef struct { int32_t status; uint32_t reserved; uint64_t length; char text[1008]; } tg_error;
uint32_t tg_abi_version(void);
uint32_t tg_abi_version_oldest(void);
const char *tg_last_error(void);
tg_status tg_limiter_new(const char *limits, const tg_options *options, tg_limiter **out);
tg_status tg_limiter_from_file(const char *path, const tg_options *options, tg_limiter **out);
void tg_limiter_free(tg_limiter *limiter);
tg_status tg_rule_get(const tg_limiter *limiter, const char *name, const tg_rule **out);
int tg_allow(const tg_rule *rule, const char *key, size_t key_len);
tg_status tg_hit_bytes(const tg_rule *rule, const char *key, size_t key_len, uint64_t cost,
                       tg_decision *out, tg_error *error);
]])

local lib = ffi.load(os.getenv("TIDEGATE_LIBRARY") or "tidegate")
assert(lib.tg_abi_version() >= 3 and lib.tg_abi_version_oldest() <= 3, "another libtidegate")

-- A Lua state has one thread, so the last error is that of the last call.
local function check(status)
  if status ~= 0 then error(ffi.string(lib.tg_last_error()), 3) end
end

local function text(pointer) return pointer ~= nil and ffi.string(pointer) or nil end
local function number(value) return value >= 0 and tonumber(value) or nil end

local Rule = {}
Rule.__index = Rule

-- Whether a hit of 1 passes, and spends it.
function Rule:allow(key)
  local answer = lib.tg_allow(self.raw, key, #key)
  if answer < 0 then check(-answer) end
  return answer == 1
end

-- Spends `cost` (1 unless given), and says how it went. Times are milliseconds, nil for never.
function Rule:hit(key, cost)
  local d = self.decision
  check(lib.tg_hit_bytes(self.raw, key, #key, cost or 1, d, nil))
  return {
    allowed = d.allowed == 1,
    reason = text(d.reason),
    limit = number(d.limit),
    remaining = number(d.remaining),
    retry_after_ms = number(d.retry_after_ms),
  }
end

local Limiter = {}
Limiter.__index = Limiter

-- A rule by its name. It keeps the limiter alive. Ask once and keep it.
function Limiter:rule(name)
  local out = ffi.new("const tg_rule *[1]")
  check(lib.tg_rule_get(self.raw, name, out))
  return setmetatable({ raw = out[0], limiter = self, decision = ffi.new("tg_decision") }, Rule)
end

local function made(call, what, options)
  options = options or {}
  local raw = ffi.new("tg_options", { version = 2, store = options.store })
  raw.capacity = options.capacity or 0
  local out = ffi.new("tg_limiter *[1]")
  check(call(what, raw, out))
  return setmetatable({ raw = ffi.gc(out[0], lib.tg_limiter_free) }, Limiter)
end

return {
  limiter = function(limits, options) return made(lib.tg_limiter_new, limits, options) end,
  from_file = function(path, options) return made(lib.tg_limiter_from_file, path, options) end,
}

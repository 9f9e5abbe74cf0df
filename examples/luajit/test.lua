-- luajit test.lua FOLDER: what tidegate.lua does, and that two limiters share a folder.
local tidegate = require("tidegate")

local limiter = tidegate.limiter("3/min")
local rule = limiter:rule("default")
assert(rule:allow("alice") and rule:hit("alice", 2).allowed)
local denied = rule:hit("alice")
assert(not denied.allowed and denied.reason == "3/min" and denied.remaining == 0)
assert(denied.retry_after_ms > 19000 and denied.retry_after_ms <= 20000)
assert(rule:hit("alice", 4).reason == "cost" and rule:hit("alice", 4).retry_after_ms == nil)
assert(not rule:allow("alice") and rule:allow("") and rule:allow("a\0b"))

-- What fails is a Lua error with the library's words.
local ok, why = pcall(tidegate.limiter, "3/mni")
assert(not ok and why:find("mni", 1, true), why)
ok, why = pcall(limiter.rule, limiter, "nobody")
assert(not ok and why:find("nobody", 1, true), why)

-- A rule keeps its limiter alive.
limiter = nil
collectgarbage()
assert(rule:allow("bob"))

local options = { store = "file:" .. arg[1], capacity = 100 }
local here, there = tidegate.limiter("1000/h", options), tidegate.limiter("1000/h", options)
local granted = 0
for _ = 1, 1000 do
  for _, one in ipairs({ here:rule("default"), there:rule("default") }) do
    if one:allow("alice") then granted = granted + 1 end
  end
end
assert(granted == 1000, granted)
print("luajit: 1000 of 2000 hits were granted by two limiters on one folder")

-- One batch of one cell, all or nothing. Lua has no rollback: everything is checked before the first write.
-- KEYS: meta, state, outbox.
-- ARGV: epoch, expected offset, next offset, expected seq, next seq, published seq, time before which all
--       statuses are published, hash of the last decision, counts of puts, drops and decisions, then key and
--       value of each put, the key of each drop, seq and bytes of each decision.
-- Returns {'ok'}, or {'fenced' | 'offset' | 'seq', what the ledger holds}.

local epoch, expected_offset, next_offset = ARGV[1], ARGV[2], ARGV[3]
local expected_seq, next_seq, published, told_ms, chain = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local puts, drops, decisions = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local held = redis.call('HMGET', KEYS[1], 'epoch', 'next_offset', 'next_seq', 'published')
if held[1] ~= epoch then return {'fenced', held[1] or ''} end
if held[2] ~= expected_offset then return {'offset', held[2] or ''} end
if held[3] ~= expected_seq then return {'seq', held[3] or ''} end

local at = 12
local function write(command, key, count, width)
  local last = at + count * width - 1
  while at <= last do
    -- unpack takes a limited number of arguments at a time
    local till = math.min(at + 1000 * width - 1, last)
    redis.call(command, key, unpack(ARGV, at, till))
    at = till + 1
  end
end

write('HSET', KEYS[2], puts, 2)
write('HDEL', KEYS[2], drops, 1)
write('HSET', KEYS[3], decisions, 2)
for seq = tonumber(held[4]), tonumber(published) - 1 do
  redis.call('HDEL', KEYS[3], string.format('%.0f', seq))
end
redis.call('HSET', KEYS[1], 'next_offset', next_offset, 'next_seq', next_seq, 'published', published,
  'told_ms', told_ms, 'chain', chain)
return {'ok'}

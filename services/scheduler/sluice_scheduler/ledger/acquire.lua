-- Take over a cell: from now on only this epoch may commit.
-- KEYS: meta. ARGV: generation, resourceVersion, schema.
-- Returns {'ok', field, value, ...} with all of meta, {'fenced', epoch} when a later epoch has it, or
-- {'newer', schema} when a newer scheduler wrote it: that one must not be fenced off.

-- Epochs are compared as decimal strings: Lua's numbers are doubles, resourceVersions are not.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local schema = redis.call('HGET', KEYS[1], 'schema')
if schema and string.match(schema, '^%d+$') and less(ARGV[3], schema) then return {'newer', schema} end

local held = redis.call('HGET', KEYS[1], 'epoch')
if held then
  local generation, version = string.match(held, '^(%d+)-(%d+)$')
  if generation and (less(ARGV[1], generation) or (ARGV[1] == generation and less(ARGV[2], version))) then
    return {'fenced', held}
  end
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1] .. '-' .. ARGV[2])
local reply = {'ok'}
for _, item in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = item end
return reply

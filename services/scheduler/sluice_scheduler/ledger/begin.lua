-- The ledger begins at a REBUILD record of a log: everything before it is of no account any more.
-- KEYS: meta, state, outbox. ARGV: epoch, topic id, cluster uid, next offset, next seq, hash of the decision
--       before it, schema.
-- Returns {'ok'}, or {'fenced', epoch}.
local held = redis.call('HGET', KEYS[1], 'epoch')
if held ~= ARGV[1] then return {'fenced', held or ''} end
redis.call('HSET', KEYS[1], 'topic_id', ARGV[2], 'cluster_uid', ARGV[3], 'next_offset', ARGV[4],
  'next_seq', ARGV[5], 'published', ARGV[5], 'told_ms', 0, 'chain', ARGV[6], 'schema', ARGV[7])
redis.call('DEL', KEYS[2], KEYS[3])
return {'ok'}

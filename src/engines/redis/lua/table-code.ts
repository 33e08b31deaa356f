import { CLAIM_WINDOW, WAITER_TTL } from '../../../engine/wait-times.js'
import { luaFile } from './lua-file.js'
import { withConstants } from './server-code.js'

/** The values of the constants in the Lua files. */
const CONSTANTS = {
  CLAIM_WINDOW,
  /** How often the first waiter behind a foreign holder checks in, in milliseconds. */
  FOREIGN_LOOK: 20,
  /** Prefix of the ID of a foreign holder. With the Redisson layout, also the text of a key that it holds. */
  FOREIGN: "'?'",
  /** A place in the queues ahead of all waiters, for holders. */
  FRONT: "'0000000000000000'",
  /** Maximum of numbers and expiry times. Up to it, all integers are exact. */
  NEVER: Number.MAX_SAFE_INTEGER,
  /** Stands for the text of a key that is not a value, because another program has written it. */
  UNREADABLE: "'?'",
  /** How long the last sign of a session is kept, in milliseconds. Without it, its waiters lose their places. */
  SIGN_KEPT: 60 * 60_000,
  WAITER_TTL,
}

/**
 * The lock table and the store's commit in Lua: a port of `engine/lock-table.ts` and `engine/commit.ts`. A differential
 * test compares them. One call executes a list of operations at one time of the server's clock.
 *
 * It differs from the original in where it keeps a grant. The grant of an exclusive lock is the held key itself, a
 * plain string with an expiry. Foreign clients of `SET key value NX PX` see and respect it, and it makes an uncontended
 * lock cheap. A request gets a record, and an entry in the sorted queue of each of its keys, only when it must wait, is
 * shared, takes permits or has stolen its keys, or when another request waits behind its held key. Even then the held
 * key decides: if the string is missing or belongs to another client, the record is dropped.
 *
 * It also has what the original lacks: groups of readers or permit holders, the votes of a quorum (`vote`), and
 * records of foreign holders. `docs/internals/redis.md` explains them.
 *
 * Keys: the counter, the queues, the requests and the signs of life of this slot; the keys that operations name, in
 * their order; and the keys that are only read with them. Arguments: the session of the caller; the operations as JSON,
 * because hundreds of arguments would take client and server several times as long; and the default details of held
 * keys about their holder.
 *
 * @param heldKeys the code that reads and writes held keys
 * @param groupMin minimum number of readers or permit holders that become a group
 */
export function tableCode(heldKeys = luaFile('held-strings'), groupMin = 16): string {
  // Each file can use the functions and variables of the files before it.
  const levels = [
    [luaFile('table-begin')],
    [luaFile('table-texts'), heldKeys],
    [luaFile('table-records')],
    [luaFile('table-decisions'), luaFile('table-signs')],
    [
      luaFile('table-values'),
      luaFile('table-votes'),
      luaFile('table-locks'),
      luaFile('table-operator'),
      luaFile('table-run'),
      'return main',
    ],
  ]
  // When Lua creates a function, it searches the locals of the current level for each local that the function uses, but
  // finds those of outer levels at once. With a single level, a script would spend most of its time on that.
  const texts = levels.map(parts => parts.join('\n'))
  const code = texts.join('\nreturn (function()\n') + '\nend)()'.repeat(levels.length - 1)
  // Number of entries of a queue that are read first. A group has at least as many members.
  const few = Math.min(4, groupMin)
  return withConstants(code, { ...CONSTANTS, FEW: few, GROUP_MIN: groupMin })
}

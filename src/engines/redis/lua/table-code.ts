import { CLAIM_WINDOW, WAITER_TTL } from '../../../engine/contract.js'
import { luaFile } from './lua-file.js'
import { withConstants } from './server-code.js'

/** What stands for these names in the files. */
const CONSTANTS = {
  CLAIM_WINDOW,
  /** How often the first waiter behind a foreign holder looks, in milliseconds. */
  FOREIGN_LOOK: 20,
  /** The ID of a holder that is not ours begins with it, and so does the text of its held key. */
  FOREIGN: "'?'",
  /** The place of all holders in a queue, before all waiters. */
  FRONT: "'0000000000000000'",
  /** No number is greater, and no key expires later: up to here all whole numbers are exact. */
  NEVER: Number.MAX_SAFE_INTEGER,
  /** Stands for what another program has put in the place of a value. */
  UNREADABLE: "'?'",
  /** How long the sign of a session is kept that sends no other, in milliseconds. Its waiters lose their places then. */
  SIGN_KEPT: 60 * 60_000,
  WAITER_TTL,
}

/**
 * The lock table and the store's commit in Lua: the port of `engine/lock-table.ts` and `engine/commit.ts`, held equal to
 * them by a differential test. One call executes a list of operations at one moment of the server's clock.
 *
 * What differs from the original is where a grant is kept. The held key itself, a plain string with an expiry, is the
 * grant of an exclusive lock: that is what foreign `SET key value NX PX` clients see and respect, and what makes an
 * uncontended lock cheap. A request also has a record, and an entry in the sorted queue of each of its keys, only from
 * when it has to wait, is shared or takes permits, or when another request has met its held key and waits behind it.
 * The held key stays the truth for such a record: where the string is gone or another's, the record is dropped.
 *
 * Keys: the counter, the queues, the requests and the signs of life of this slot, then the keys that operations name, in
 * their order, and last those that are only read with them. Arguments: the own session; the operations as JSON, because
 * hundreds of arguments would cost client and server several times what it takes to write and to read that one; and what
 * own held keys say about their holder if they say nothing else.
 *
 * @param heldKeys how held keys are read and written
 * @param groupMin minimum number of readers that become a group
 */
export function tableCode(heldKeys = luaFile('held-strings'), groupMin = 16): string {
  const levels = [
    [luaFile('table-begin')],
    [luaFile('table-texts'), heldKeys],
    [luaFile('table-records')],
    [luaFile('table-decisions'), luaFile('table-signs')],
    [
      luaFile('table-values'),
      luaFile('table-locks'),
      luaFile('table-operator'),
      luaFile('table-run'),
      'return main',
    ],
  ]
  // A function that is made looks for each local that it uses through all those of the level that it is made in, and
  // finds those of outer levels at once: in one level most of a script's time would go into that.
  const texts = levels.map(parts => parts.join('\n'))
  const code = texts.join('\nreturn (function()\n') + '\nend)()'.repeat(levels.length - 1)
  // Number of entries of a queue that are read first. A group has at least as many members.
  const few = Math.min(4, groupMin)
  return withConstants(code, { ...CONSTANTS, FEW: few, GROUP_MIN: groupMin })
}

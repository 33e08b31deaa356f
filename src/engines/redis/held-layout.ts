import { createHash } from 'node:crypto'
import { heldHashes } from './lua/held-hashes.js'
import { serverClock, tableScript } from './lua/table-script.js'
import type { RedisOptions } from './redis-options.js'

/** What a held key looks like, and all that depends on it. */
export interface HeldLayout {
  /** The script that carries out calls, and the hash by which the server knows it. */
  readonly script: string
  readonly sha: string
  /** The type of a held key: as commands call it, and in words. */
  readonly type: 'string' | 'hash'
  readonly noun: string
  /** The command that reads the text of a held key. */
  readonly reading: (name: string) => readonly string[]
  /** The names of the keys that the script may read when it frees this one. */
  readonly beside: (name: string) => readonly string[]
  /** The channel on which foreign clients tell that they have freed the key, if they do. */
  readonly freed?: (name: string) => string
}

const STRING_SCRIPT = tableScript()
const HASH_SCRIPT = tableScript({ heldKeys: heldHashes, clock: serverClock, fastPath: '' })

/** The layouts by how the option names them. */
export const HELD_LAYOUTS: Readonly<Record<NonNullable<RedisOptions['layout']>, HeldLayout>> = {
  string: {
    script: STRING_SCRIPT,
    sha: shaOf(STRING_SCRIPT),
    type: 'string',
    noun: 'a string',
    reading: name => ['GET', name],
    beside: () => [],
  },
  redisson: {
    script: HASH_SCRIPT,
    sha: shaOf(HASH_SCRIPT),
    type: 'hash',
    noun: 'a hash',
    reading: name => ['HGET', name, 'signalbox'],
    beside: name => [redissonName('redisson_lock_queue', name), redissonName('redisson_lock_timeout', name)],
    freed: name => redissonName('redisson_lock__channel', name),
  },
}

function shaOf(script: string): string {
  return createHash('sha1').update(script).digest('hex')
}

/** As the script has it, too. */
function redissonName(what: string, name: string): string {
  return `${what}:${name.includes('{') ? name : `{${name}}`}`
}

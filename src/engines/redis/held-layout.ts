import { luaFile } from './lua/lua-file.js'
import { ServerCode } from './lua/server-code.js'
import { tableCode } from './lua/table-code.js'
import type { RedisOptions } from './redis-options.js'

/** The format of held keys, and everything that depends on it. */
export interface HeldLayout {
  readonly code: ServerCode
  /** The type of a held key: as commands name it, and in words. */
  readonly type: 'string' | 'hash'
  readonly noun: string
  /** The command that reads the text of a held key. */
  readonly reading: (name: string) => readonly string[]
  /** The names of the keys that the code may read when it frees this one. */
  readonly companions: (name: string) => readonly string[]
  /** The channel on which foreign clients announce that they have freed the key, if they do. */
  readonly freed?: (name: string) => string
}

/** The layouts, by the values of the option `layout`. */
export const HELD_LAYOUTS: Readonly<Record<NonNullable<RedisOptions['layout']>, HeldLayout>> = {
  string: {
    code: new ServerCode(tableCode()),
    type: 'string',
    noun: 'a string',
    reading: name => ['GET', name],
    companions: () => [],
  },
  redisson: {
    code: new ServerCode(tableCode(luaFile('held-hashes'))),
    type: 'hash',
    noun: 'a hash',
    reading: name => ['HGET', name, 'signalbox'],
    companions: name => [
      redissonName('redisson_lock_queue', name),
      redissonName('redisson_lock_timeout', name),
    ],
    freed: name => redissonName('redisson_lock__channel', name),
  },
}

/** The same as `companion` in `held-hashes.lua`. */
function redissonName(what: string, name: string): string {
  return `${what}:${name.includes('{') ? name : `{${name}}`}`
}

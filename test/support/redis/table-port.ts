import type { Operation } from '../../../src/engine/contract.js'
import { CallArguments } from '../../../src/engines/redis/call.js'
import { tableScript } from '../../../src/engines/redis/lua/table-script.js'
import { Names } from '../../../src/engines/redis/names.js'
import { outcomeOf, reportsOf } from '../../../src/engines/redis/outcomes.js'
import type { RedisServer } from '../servers/redis.js'
import type { Answered, Session, TablePort } from '../table-world.js'
import { callerOf } from './caller.js'
import { LoadedScript } from './loaded-script.js'

/** Replaces the time by what a test has set next to the counter, in milliseconds. */
export const setClock = `stamp = call('GET', NUMBERS .. ':now') .. '000'`

/**
 * The script with a clock that the test sets, and held keys that expire by it. All sessions get their messages in the
 * answer, as each is taken for the own.
 */
const WORLD_SCRIPT = tableScript({
  fastPath: '',
  clock: setClock,
  heldKeys: String.raw`
local function clear(key) call('DEL', key) end
local function left(key)
  local expires = call('HGET', key, 'expires')
  return expires and expires - now or -2
end
local function seen(key)
  if left(key) <= 0 then clear(key) end
  return call('HGET', key, 'text')
end
local function put(key, text, lease) call('HSET', key, 'text', text, 'expires', now + lease) end
local function expire(key, lease) call('HSET', key, 'expires', now + lease) end`,
})
  .replace('if session == SESSION then', 'if session then')
  // One reader is a group already.
  .replace('added >= 16', 'added >= 1')
  // By the server's clock, signs would expire at other times than by the test's.
  .replace("call('PEXPIRE', SIGNS, ", 'math.max(')

/** The port of the lock table in Redis. */
export class RedisTablePort implements TablePort {
  readonly canSteal = true
  readonly coversBySigns = true
  readonly signsEarly = true
  readonly #server: RedisServer
  readonly #script: LoadedScript
  readonly #names: Names

  /** @param prefix comes before all its names in Redis. */
  constructor(server: RedisServer, script: LoadedScript, prefix: string) {
    this.#server = server
    this.#script = script
    this.#names = new Names(prefix, false)
  }

  /** Makes a port for each seed, over one script. */
  static async over(server: RedisServer): Promise<(seed: number) => TablePort> {
    const script = await LoadedScript.load(server, WORLD_SCRIPT)
    return seed => new RedisTablePort(server, script, `${seed}:`)
  }

  async decide(session: Session, operation: Operation, now: number): Promise<Answered> {
    const group = this.#names.group('')
    const call = new CallArguments(this.#names, group, callerOf(session))
    call.add(operation)
    call.add({ type: 'inspect', prefix: '' })
    const set = this.#server.command('SET', `${group.numbers}:now`, now)
    const [answer, inspected, hints] = await this.#script.run(call)
    await set
    return {
      answer: outcomeOf(operation, answer!),
      told: (hints as string[]).filter(hint => !hint.startsWith('reserved')),
      reports: reportsOf(inspected!),
    }
  }
}

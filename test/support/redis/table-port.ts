import type { Operation } from '../../../src/engine/contract.js'
import { CallArguments } from '../../../src/engines/redis/call.js'
import { tableScript } from '../../../src/engines/redis/lua/table-script.js'
import { Names } from '../../../src/engines/redis/names.js'
import { outcomeOf, reportsOf, type ScriptReport } from '../../../src/engines/redis/outcomes.js'
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
const SCRIPT = tableScript({
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
  // By the server's clock, signs would expire at other times than by the test's.
  .replace("call('PEXPIRE', SIGNS, ", 'math.max(')

/** What came of operations that were carried out by one call. */
export interface Together {
  readonly outcomes: readonly unknown[]
  /** The hints for all sessions. */
  readonly told: readonly string[]
  readonly reports: readonly ScriptReport[]
}

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

  /**
   * Makes a port for each prefix, over one script.
   * @param groupMin how many readers become a group.
   */
  static async over(server: RedisServer, groupMin = 1): Promise<(prefix: string | number) => RedisTablePort> {
    const script = await LoadedScript.load(server, SCRIPT.replace('added >= 16', `added >= ${groupMin}`))
    return prefix => new RedisTablePort(server, script, `${prefix}:`)
  }

  async decide(session: Session, operation: Operation, now: number): Promise<Answered> {
    const { outcomes, told, reports } = await this.together(session, [operation], now)
    return { answer: outcomes[0], told, reports }
  }

  /** Carries out operations by one call. */
  async together(session: Session, operations: readonly Operation[], now: number): Promise<Together> {
    const group = this.#names.group('')
    const call = new CallArguments(this.#names, group, callerOf(session))
    for (const operation of operations) call.add(operation)
    call.add({ type: 'inspect', prefix: '' })
    const set = this.#server.command('SET', `${group.numbers}:now`, now)
    const answers = await this.#script.run(call)
    await set
    const [inspected, hints] = answers.slice(operations.length)
    return {
      outcomes: operations.map((operation, index) => outcomeOf(operation, answers[index]!)),
      told: (hints as string[]).filter(hint => !hint.startsWith('reserved')),
      reports: reportsOf(inspected!),
    }
  }

  /** Deletes the held key of a lock, as another program may. */
  async deleteHeld(key: string): Promise<void> {
    await this.#server.command('DEL', this.#names.held(key))
  }
}

import type { Reply } from './clients/connection.js'
import { timeOf } from './clients/reply.js'
import { systemClock } from '../../base/clock.js'
import type { ClockFacts } from '../../engine/kit/clock-findings.js'

/** Sends a command to one server. */
export type Send = (args: readonly string[]) => Promise<Reply>

/** Facts that a server reports about itself. A fact is undefined if this user may not see it. */
export interface RedisFacts extends ClockFacts {
  /** Its address. */
  readonly name: string
  readonly version: string | undefined
  readonly role: string | undefined
  readonly replicas: number
  /** The reply to `CONFIG GET`, by name; fields of INFO if `CONFIG GET` is rejected. */
  readonly settings: ReadonlyMap<string, string>
  /** The error messages of commands that it rejected. */
  readonly refusals: readonly string[]
}

const SETTINGS = ['appendonly', 'appendfsync', 'save', 'maxmemory', 'maxmemory-policy']

/**
 * Asks a server for its facts.
 * @param name its address; a node of a cluster reports its own.
 */
export async function redisFacts(send: Send, name: string, isOfCluster: boolean): Promise<RedisFacts> {
  const refusals: string[] = []
  const ask = async (args: readonly string[]): Promise<Reply | undefined> => {
    try {
      return await send(args)
    } catch (error) {
      refusals.push(`${args.slice(0, 2).join(' ')}: ${(error as Error).message}`)
      return undefined
    }
  }
  const info = fields(await ask(['INFO']))
  const settings = new Map<string, string>()
  const [isAof, limit, policy] = ['aof_enabled', 'maxmemory', 'maxmemory_policy'].map(name => info.get(name))
  if (isAof !== undefined) settings.set('appendonly', isAof === '1' ? 'yes' : 'no')
  if (limit !== undefined) settings.set('maxmemory', limit)
  if (policy !== undefined) settings.set('maxmemory-policy', policy)
  const reply = ((await ask(['CONFIG', 'GET', ...SETTINGS])) ?? []) as readonly string[]
  for (let index = 0; index < reply.length; index += 2) settings.set(reply[index]!, reply[index + 1]!)
  const begun = systemClock.now()
  const before = Date.now()
  const time = await ask(['TIME'])
  const uncertainty = systemClock.now() - begun
  return {
    name: (isOfCluster && ownAddress(await ask(['CLUSTER', 'NODES']))) || name,
    version: info.get('redis_version'),
    role: info.get('role'),
    replicas: Number(info.get('connected_slaves') ?? 0),
    settings,
    ahead: time === undefined ? undefined : timeOf(time) - (before + uncertainty / 2),
    uncertainty,
    refusals,
  }
}

/** Finds the node that is marked as `myself`: `ID HOST:PORT@PORT myself,master ...`. */
function ownAddress(nodes: Reply | undefined): string | undefined {
  return typeof nodes === 'string' ? /^\S+ ([^\s@]+)\S* myself\b/m.exec(nodes)?.[1] : undefined
}

function fields(reply: Reply | undefined): Map<string, string> {
  if (typeof reply !== 'string') return new Map()
  return new Map([...reply.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]))
}

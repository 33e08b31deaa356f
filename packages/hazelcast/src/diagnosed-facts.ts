import { randomUUID } from 'node:crypto'
import type { Client, HazelcastJsonValue, IMap, Member } from 'hazelcast-client'
import { systemClock, type ClockFacts } from 'signalbox/engine'
import { answered } from './call.js'
import type { Linked, Package } from './link.js'
import { memberTime, PRECISION } from './member-time.js'
import { JSON_CLASS } from './scan.js'

/** The facts that a client can find out about a cluster. */
export interface HazelcastFacts extends ClockFacts {
  readonly members: readonly MemberFacts[]
  readonly maps: readonly MapFacts[]
  /** The keys whose entries another program has written, so that they can't be read. */
  readonly foreign: readonly string[]
  /** The map of the entries. */
  readonly entries: string
  /** The errors of the maps that could not be examined. */
  readonly refusals: readonly string[]
}

interface MemberFacts {
  readonly address: string
  /** Undefined if the client does not know it. */
  readonly version: string | undefined
  /** A lite member keeps no data. */
  readonly isLite: boolean
}

/** The facts that a client can find out about the configuration of a map. */
export interface MapFacts {
  readonly name: string
  /** Number of members that have a backup of a change when it is confirmed; undefined if unknown. */
  readonly backups: number | undefined
  /** The lifetime of an entry without a TTL of its own, in milliseconds; Infinity if it never expires. */
  readonly ttl: number
  /** The eviction policy; undefined if none was detected. */
  readonly eviction: string | undefined
}

/** The beginning of the keys that are used for the examination. */
const PROBE = 'signalbox-doctor/'
/** Maximum time of a search of all entries, in milliseconds. */
const SEARCH_TIMEOUT = 10_000
/** Lease of the lock whose backups are counted, in milliseconds. */
const PROBE_TTL = 60_000
/** The value of a statistic that a member does not keep. */
const NONE = -1

/** Collects the facts about a cluster. Writes entries for it, and deletes them again. */
export async function hazelcastFacts(
  { client, locks, table, values }: Linked,
  hazelcast: Package,
): Promise<HazelcastFacts> {
  const refusals: string[] = []
  const foreign = await foreignKeys(values, hazelcast).catch((error: unknown) => {
    refusals.push(`${values.getName()}: ${(error as Error).message}`)
    return []
  })
  const maps: MapFacts[] = []
  const examine = async (name: string, work: () => Promise<MapFacts>): Promise<void> => {
    try {
      maps.push(await work())
    } catch (error) {
      refusals.push(`${name}: ${(error as Error).message}`)
    }
  }
  for (const map of [table, values] as IMap<string, unknown>[])
    await examine(map.getName(), () => examineMap(client, map))
  // In the map of locks, other programs would see an entry. A lock has as many backups as an entry.
  await examine(locks.getName(), () => examineLocks(client, locks))
  const time = await timeOf(table).catch(() => undefined)
  return {
    members: client.getCluster().getMembers().map(memberFacts),
    maps,
    foreign,
    entries: values.getName(),
    ahead: time?.ahead,
    uncertainty: time?.uncertainty ?? 0,
    refusals,
  }
}

/** A property of a member that the package does not document. */
interface Versioned {
  readonly version?: { readonly major: number; readonly minor: number; readonly patch: number }
}

function memberFacts(member: Member): MemberFacts {
  const { version } = member as Member & Versioned
  return {
    address: member.address.toString(),
    version: version && `${version.major}.${version.minor}.${version.patch}`,
    isLite: member.liteMember,
  }
}

async function foreignKeys(
  map: IMap<string, HazelcastJsonValue>,
  { Predicates }: Package,
): Promise<string[]> {
  const isForeign = Predicates.not(Predicates.instanceOf(JSON_CLASS))
  const keys = [...(await answered(map.keySetWithPredicate(isForeign), systemClock, SEARCH_TIMEOUT))]
  return keys.filter(key => !key.startsWith(PROBE)).sort()
}

async function examineMap(client: Client, map: IMap<string, unknown>): Promise<MapFacts> {
  const key = probe()
  try {
    const backups = await backupsOf(client, () => map.set(key, 'probe'))
    const view = await answered(map.getEntryView(key), systemClock)
    const { creationTime, hits, lastAccessTime, ttl, maxIdle } = view
    // Members keep these for all entries if statistics are enabled, or else only for entries that they may evict.
    const isCounted = creationTime.toNumber() !== NONE
    const eviction = hits.toNumber() !== NONE ? 'LFU' : lastAccessTime.toNumber() !== NONE ? 'LRU' : undefined
    return {
      name: map.getName(),
      backups,
      ttl: Math.min(...[ttl, maxIdle].map(time => (isForever(time.toNumber()) ? Infinity : time.toNumber()))),
      eviction: isCounted ? undefined : eviction,
    }
  } finally {
    await answered(map.delete(key), systemClock)
  }
}

async function examineLocks(client: Client, map: IMap<string, unknown>): Promise<MapFacts> {
  const key = probe()
  const backups = await backupsOf(client, () => map.tryLock(key, 0, PROBE_TTL))
  await answered(map.unlock(key), systemClock)
  return { name: map.getName(), backups, ttl: Infinity, eviction: undefined }
}

/** Parts of a client that count the backups that a member waited for; the package does not document them. */
interface Inside {
  readonly invocationService?: {
    readonly backupAckToClientEnabled?: boolean
    processResponse?: (message: Response) => void
  }
}

interface Response {
  getNumberOfBackupAcks?: () => number
}

/** Number of backups that the reply to a change waits for; undefined if unknown. */
async function backupsOf(client: Client, change: () => Promise<unknown>): Promise<number | undefined> {
  const service = (client as unknown as Inside).invocationService
  const process = service?.processResponse
  if (!service || !process || service.backupAckToClientEnabled !== true) {
    await answered(change(), systemClock)
    return undefined
  }
  let max: number | undefined
  service.processResponse = function (message) {
    const number = message.getNumberOfBackupAcks?.()
    // Other replies, such as those to heartbeats, have no such number.
    if (number !== undefined) max = Math.max(max ?? 0, number)
    process.call(this, message)
  }
  try {
    await answered(change(), systemClock)
  } finally {
    service.processResponse = process
  }
  return max
}

async function timeOf(map: IMap<string, string>): Promise<{ ahead: number; uncertainty: number }> {
  const begun = systemClock.now()
  const before = Date.now()
  const time = await memberTime(map, systemClock)
  const took = systemClock.now() - begun
  return { ahead: time - (before + took / 2), uncertainty: (took + PRECISION) / 2 }
}

function probe(): string {
  return `${PROBE}${randomUUID()}`
}

function isForever(time: number): boolean {
  return time <= 0 || time >= Number.MAX_SAFE_INTEGER
}

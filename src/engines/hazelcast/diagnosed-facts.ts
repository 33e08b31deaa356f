import { randomUUID } from 'node:crypto'
import type { Client, IMap, Member } from 'hazelcast-client'
import { systemClock } from '../../clock.js'
import { answered } from './call.js'
import type { Linked } from './link.js'
import type { ClockFacts } from '../../engine/kit/clock-findings.js'

/** What a client sees of a cluster. */
export interface HazelcastFacts extends ClockFacts {
  readonly members: readonly MemberFacts[]
  readonly maps: readonly MapFacts[]
  /** What a member refused to tell, in its own words. */
  readonly refusals: readonly string[]
}

interface MemberFacts {
  readonly address: string
  /** Undefined when the client does not show it. */
  readonly version: string | undefined
  /** It keeps no data. */
  readonly isLite: boolean
}

/** What is seen of the configuration of a map. */
export interface MapFacts {
  readonly name: string
  /** How many other members had a change before it was answered; undefined when the client does not show it. */
  readonly backups: number | undefined
  /** After how long an entry ends that was written without an end: milliseconds, Infinity for never. */
  readonly life: number
  /** By which policy entries are thrown away when there are many; undefined when none is seen. */
  readonly eviction: string | undefined
}

/** How long an entry is to live whose end tells the time: milliseconds. */
const LIFE = 60_000
/** Members keep times in whole seconds. */
const SECOND = 1000
/** Stands for what a member does not keep. */
const NONE = -1

/** Asks a cluster for all that matters, by entries that are gone afterwards. */
export async function hazelcastFacts({ client, locks, table, values }: Linked): Promise<HazelcastFacts> {
  const refusals: string[] = []
  const maps: MapFacts[] = []
  const see = async (name: string, look: () => Promise<MapFacts>): Promise<void> => {
    try {
      maps.push(await look())
    } catch (error) {
      refusals.push(`${name}: ${(error as Error).message}`)
    }
  }
  for (const map of [table, values] as IMap<string, unknown>[])
    await see(map.getName(), () => lookAtMap(client, map))
  // An entry of ours there would be seen by the programs that it belongs to; a lock has as many copies.
  await see(locks.getName(), () => lookAtLocks(client, locks))
  const time = await timeOf(table).catch(() => undefined)
  return {
    members: client.getCluster().getMembers().map(memberFacts),
    maps,
    ahead: time?.ahead,
    uncertainty: time?.uncertainty ?? 0,
    refusals,
  }
}

/** What a client knows of a member beside what the package documents. */
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

async function lookAtMap(client: Client, map: IMap<string, unknown>): Promise<MapFacts> {
  const key = probe()
  try {
    const backups = await backupsOf(client, () => map.set(key, 'probe'))
    const view = await answered(map.getEntryView(key), systemClock)
    const { creationTime, hits, lastAccessTime, ttl, maxIdle } = view
    // With statistics of entries a member keeps these anyway, and without only for what it may evict.
    const isCounted = creationTime.toNumber() !== NONE
    const eviction = hits.toNumber() !== NONE ? 'LFU' : lastAccessTime.toNumber() !== NONE ? 'LRU' : undefined
    return {
      name: map.getName(),
      backups,
      life: Math.min(
        ...[ttl, maxIdle].map(time => (isForEver(time.toNumber()) ? Infinity : time.toNumber())),
      ),
      eviction: isCounted ? undefined : eviction,
    }
  } finally {
    await answered(map.delete(key), systemClock)
  }
}

async function lookAtLocks(client: Client, map: IMap<string, unknown>): Promise<MapFacts> {
  const key = probe()
  const backups = await backupsOf(client, () => map.tryLock(key, 0, LIFE))
  await answered(map.unlock(key), systemClock)
  return { name: map.getName(), backups, life: Infinity, eviction: undefined }
}

/** What of a client tells how many copies a member has waited for; no part of what the package documents. */
interface Inside {
  readonly invocationService?: {
    readonly backupAckToClientEnabled?: boolean
    processResponse?: (message: Response) => void
  }
}

interface Response {
  getNumberOfBackupAcks?: () => number
}

/** How many copies the answer to a change waits for; undefined when the client does not show it. */
async function backupsOf(client: Client, change: () => Promise<unknown>): Promise<number | undefined> {
  const service = (client as unknown as Inside).invocationService
  const process = service?.processResponse
  if (!service || !process || service.backupAckToClientEnabled !== true) {
    await answered(change(), systemClock)
    return undefined
  }
  let most: number | undefined
  service.processResponse = function (message) {
    const number = message.getNumberOfBackupAcks?.()
    // Other answers, like those to its heartbeats, have none.
    if (number !== undefined) most = Math.max(most ?? 0, number)
    process.call(this, message)
  }
  try {
    await answered(change(), systemClock)
  } finally {
    service.processResponse = process
  }
  return most
}

async function timeOf(map: IMap<string, string>): Promise<{ ahead: number; uncertainty: number }> {
  const key = probe()
  const begun = systemClock.now()
  const before = Date.now()
  await answered(map.set(key, 'probe', LIFE), systemClock)
  const took = systemClock.now() - begun
  try {
    const view = await answered(map.getEntryView(key), systemClock)
    const time = view.expirationTime.toNumber() - LIFE + SECOND / 2
    return { ahead: time - (before + took / 2), uncertainty: (took + SECOND) / 2 }
  } finally {
    await answered(map.delete(key), systemClock)
  }
}

function probe(): string {
  return `signalbox-doctor/${randomUUID()}`
}

function isForEver(time: number): boolean {
  return time <= 0 || time >= Number.MAX_SAFE_INTEGER
}

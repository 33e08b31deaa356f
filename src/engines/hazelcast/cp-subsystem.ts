import type { Client, FencedLock, IAtomicReference, IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { SignalboxError, UnavailableError } from '../../errors.js'
import { answered, NoAnswerError } from './call.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import type { Package } from './link.js'
import { TABLE_KEY, type TableCell } from './table-cell.js'

/** A CP group that is used for the first time elects a leader before it answers: milliseconds. */
const PATIENCE = 10_000
/** The key of the map of the table by whose entry the boxes hear of changes. */
export const NEWS_KEY = 'news'
/** What stands where the table is without the CP subsystem, so that boxes without it are refused. */
const KEPT_IN_CP = 'This table is kept in the CP subsystem.'

/** What a group is called in which something without the name of a group lies, unless the mode is unsafe. */
const DEFAULT_GROUP = 'default'

/** What is used of CP objects beyond what the package documents, so all may be absent. */
interface Inside {
  getGroupId?: () => { readonly name?: string }
  toData?: (value: unknown) => unknown
  requestLockOwnershipState?: () => Promise<{ readonly fence: Fence }>
}

/** What a FencedLock gives to who has it. */
export type Fence = NonNullable<Awaited<ReturnType<FencedLock['tryLock']>>>

/** The CP subsystem of a cluster, as one client reaches it: the table, and the locks of one CP group. */
export class CpSubsystem {
  readonly cell: TableCell
  readonly #client: Client
  readonly #group: string
  /** The client keeps them as well, and the members, too. */
  readonly #locks = new Map<string, Promise<FencedLock>>()

  private constructor(client: Client, group: string, cell: TableCell) {
    this.#client = client
    this.#group = group
    this.cell = cell
  }

  /**
   * @param table where boxes without the CP subsystem have their table
   * @throws UnavailableError when there is none, when it is unsafe and that is not allowed, or when it does not answer
   */
  static async open(
    client: Client,
    table: IMap<string, string>,
    { name, map, cp }: HazelcastPlace,
    { UnsupportedOperationError, CPGroupDestroyedError }: Package,
    clock: Clock,
  ): Promise<CpSubsystem> {
    const context = { engine: name }
    try {
      if (cp !== 'unsafe' && (await answered(isUnsafe(client), clock, PATIENCE)))
        throw new UnavailableError(
          `the CP subsystem of ${name} is in unsafe mode, in which it loses and doubles locks as maps do: set cp-member-count to 3 or more on its members, or allow it with cp=unsafe`,
          context,
        )
      const getting = client.getCPSubsystem().getAtomicReference<string>(`${TABLE_KEY}@${map}`)
      const reference = await answered(getting, clock, PATIENCE)
      await answered(reference.get(), clock, PATIENCE)
      // Only now, because where there is none the map is to be of use without it.
      const before = await answered(table.putIfAbsent(TABLE_KEY, KEPT_IN_CP), clock)
      if (before !== null && before !== KEPT_IN_CP)
        throw new UnavailableError(
          `the map ${map} of ${name} is used by boxes without the CP subsystem: take another map, or close them all and delete the entry ${TABLE_KEY} of ${map}.table`,
          context,
        )
      const ended = (error: unknown): void => {
        // The members have made the CP subsystem anew, and what this client knows of it leads nowhere: another one takes its place.
        if (error instanceof CPGroupDestroyedError) void client.shutdown().catch(() => undefined)
      }
      return new CpSubsystem(client, map, cpCell(reference, table, ended))
    } catch (error) {
      if (error instanceof SignalboxError) throw error
      if (error instanceof UnsupportedOperationError)
        throw new UnavailableError(
          `${name} has no CP subsystem, which its option cp asks for: Community members have none from 5.5 on. It takes members of the Enterprise edition, or Community members of 5.4 or older with a cp-member-count of 3 or more; without cp the box uses maps`,
          { ...context, cause: error },
        )
      if (error instanceof NoAnswerError)
        throw new UnavailableError(
          `the CP subsystem of ${name} does not answer: a majority of its CP members may be missing`,
          { ...context, cause: error },
        )
      throw error
    }
  }

  /** The FencedLock of a key. @throws what the client throws */
  lock(key: string): Promise<FencedLock> {
    const known = this.#locks.get(key)
    if (known) return known
    const getting = this.#client.getCPSubsystem().getLock(lockName(key, this.#group))
    this.#locks.set(key, getting)
    getting.catch(() => this.#locks.delete(key))
    return getting
  }
}

/** Whether this fence is that of who has the lock now. @throws what the client throws */
export async function isOwner(lock: FencedLock, fence: Fence): Promise<boolean> {
  const { requestLockOwnershipState } = lock as Inside
  if (!requestLockOwnershipState) return lock.isLocked()
  const owned = await requestLockOwnershipState.call(lock)
  return owned.fence.equals(fence)
}

/** What the FencedLock of a key is called. The client ends a name at the `@` before that of the group, and trims it. */
export function lockName(key: string, group: string): string {
  return `${key.replace(/[%@]|^\s+|\s+$/g, encodeURIComponent)}@${group}`
}

/**
 * Whether a CP subsystem is in unsafe mode: members have no groups then, so a name stands where that of the default group would.
 * @throws what the client throws
 */
export async function isUnsafe(client: Client): Promise<boolean> {
  const probe = (await client.getCPSubsystem().getAtomicLong('signalbox')) as Inside
  return probe.getGroupId?.().name !== DEFAULT_GROUP
}

/**
 * An AtomicReference, which tells nobody of a change, and a map entry that does.
 * @param failed is told what the client throws
 */
function cpCell(
  reference: IAtomicReference<string>,
  news: IMap<string, string>,
  failed: (error: unknown) => void,
): TableCell {
  const cell = matchingNull(reference)
  const told = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call
    } catch (error) {
      failed(error)
      throw error
    }
  }
  return {
    get: () => told(cell.get()),
    async replace(before, after) {
      // False may be the answer to a second time: members ask again when the leader of the group has changed.
      if (!(await told(cell.compareAndSet((before ?? null) as string, after)))) return undefined
      news.set(NEWS_KEY, after).catch(() => undefined)
      // The client writes by then, so that the news arrives although this process ends.
      await new Promise<void>(resolve => void setImmediate(resolve))
      return true
    },
  }
}

/** The package sends null as a value, which a reference that nobody has set is not equal to. */
function matchingNull(reference: IAtomicReference<string>): IAtomicReference<string> {
  const { toData } = reference as Inside
  const toNullableData = (value: unknown): unknown => (value === null ? null : toData?.call(reference, value))
  return Object.create(reference, { toData: { value: toNullableData } }) as IAtomicReference<string>
}

import type { Box, Guarantees } from 'signalbox'
import type { Awaitable, Engine } from 'signalbox/engine'
import type { Records } from 'signalbox/store'

/** An engine that is to be checked. */
export interface EngineFixture {
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether it has limits: its reservation step can read a clock. Default: whether it keeps values. */
  readonly hasClock?: boolean
  /** Whether the engine knows when a value was written. Default: false. */
  readonly knowsChanges?: boolean
  /**
   * Whether a holder may learn only by its next renewal that an operator has released its lock by force. Default: false
   */
  readonly noticesLossByRenewal?: boolean
  /** Whether its places keep values in records outside the engine. */
  readonly hasRecords?: boolean
  /**
   * Maximum time until a call that does not wait for others fails while the network delivers nothing, in milliseconds.
   * Default: 8000
   */
  readonly failsWithin?: number
  /**
   * The module of an {@link Opener}, as `import()` takes it, for processes that checks start. Default: signalbox,
   * for URLs that it knows.
   */
  readonly opener?: string
  /** Returns a new, unused place. Each check has its own. */
  start(): Awaitable<Place>
  /** Makes a network of its own for one further box of a place; `none` for an engine that is not reached over one. */
  readonly network: 'none' | ((place: Place) => Awaitable<Network>)
  /** For each promise that the engine weakens, a function that shows the weakness, and rejects if it does not occur. */
  readonly weaknesses: Readonly<Partial<Record<string, () => Promise<void>>>>
}

/** A network between one further box and the servers, which checks disturb. */
export interface Network {
  /** The engine of that box, not joined yet. */
  readonly engine: Engine
  /** Breaks the connections, and refuses new ones until {@link restore}. */
  cut(): void
  restore(): void
  /** Delays each packet from now on. Packets of one connection keep their order. */
  slowDown(delays: Delays): void
  /**
   * Drops all data in this direction on the connections that are open now. They stay open. New ones are not affected.
   */
  swallow(way: 'requests' | 'replies'): void
  /**
   * Breaks each connection that is open now when the box sends data over it, and keeps that data under way.
   * @returns a function that delivers the data to the servers, and resolves when they have answered or closed their
   *   ends
   */
  strand(): () => Promise<void>
  /**
   * Drops all hints from now on, on connections that carry only hints, also on new ones. They stay open. Left out if
   * hints share a connection with answers.
   */
  loseHints?(): void
}

/** Delays of packets, in milliseconds. */
export interface Delays {
  /** Delay in each direction, without jitter. */
  readonly way: number
  /** Maximum of a random delay that is added for each request. Default: 0 */
  readonly requestJitter?: number
  /** The same for replies. */
  readonly replyJitter?: number
}

/** Whether the engine keeps values. Without them it has no stores, transactions or elections. */
export function keepsValues({ guarantees }: EngineFixture): boolean {
  return guarantees.durability !== 'none'
}

/** Whether the engine has limits: by default if it keeps values, because it then mostly has a clock. */
export function hasLimits(fixture: EngineFixture): boolean {
  return fixture.hasClock ?? keepsValues(fixture)
}

/** The exports of a module that opens boxes. */
export interface Opener {
  readonly open: (url: string) => Promise<Box>
}

/** The state that the boxes of one check share, for example a schema or a folder. */
export interface Place {
  /** Other processes open the place by this URL, as a user would. */
  readonly url: string
  /** Returns an engine for one further box, not joined yet. It behaves towards the others as if in another process. */
  engine(): Awaitable<Engine>
  /** Records that keep the values of all stores of the place. Left out if the engine keeps them. */
  readonly records?: Records
  /**
   * Settles when all servers of the place know the holders, and that this session listens to hints. Left out if they
   * know a holder when its grant is given, and a listener when its request waits.
   * @param listener a session that has waited
   */
  settled?(listener?: string): Promise<void>
  /** Returns the number of records that the engine keeps: rows, keys, nodes. Left out if they cannot be counted. */
  size?(): Awaitable<number>
  /** Time for which the engine keeps an expired record, in milliseconds. Default: 0 */
  readonly keeps?: number
  /** Makes the record of the value of this store key unreadable. Left out if only the engine can write it. */
  spoil?(store: string, key: string): Awaitable<void>
  /**
   * Locks a free key as a program without Signalbox does, for at least half a minute, and returns a function that
   * unlocks it. Left out if no other program shares locks.
   */
  lockOutside?(key: string): Awaitable<() => Awaitable<unknown>>
  /** Removes the place, after all its boxes were closed. */
  close(): Awaitable<void>
}

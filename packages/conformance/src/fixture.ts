import type { Box, Guarantees } from 'signalbox'
import type { Awaitable, Engine } from 'signalbox/engine'
import type { Records } from 'signalbox/store'

/** An engine that is to be checked. */
export interface EngineFixture {
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether it has a clock that can be read in the step that reserves, and so limits. Default: as it keeps values. */
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
   * When a call that does not wait for others fails at the latest while the network delivers nothing, in milliseconds.
   * Default: 8000
   */
  readonly failsWithin?: number
  /**
   * The module of an {@link Opener}, as `import()` takes it, for processes that checks start. Default: signalbox,
   * for URLs that it knows.
   */
  readonly opener?: string
  /** A new, unused place; each check has its own. */
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
  /** Delays each packet from now on. Those of one connection keep their order. */
  slowDown(delays: Delays): void
  /** The connections that are open now lose all that is sent this way, and stay open. New ones are not affected. */
  swallow(way: 'requests' | 'replies'): void
  /**
   * The connections that are open now break for the box when it sends something, which stays under way.
   * @returns delivers that to the servers, and resolves when they have answered or have closed their ends.
   */
  strand(): () => Promise<void>
  /**
   * Connections over which only hints come lose all of them from now on, also new ones, and stay open. Left out where
   * hints come over the connection of the answers.
   */
  loseHints?(): void
}

/** How long packets take, in milliseconds. */
export interface Delays {
  /** Each way, without the following. */
  readonly way: number
  /** For each request a random time up to this comes on top. Default: 0 */
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

/** Where the boxes of one check meet. */
export interface Place {
  /** Other processes open the place by this URL, as a user would. */
  readonly url: string
  /** An engine for one further box, not joined yet. It is to the others like one in another process. */
  engine(): Awaitable<Engine>
  /** Where all stores of the place keep their values, if not in the engine. */
  readonly records?: Records
  /**
   * Settles when all servers of the place know what is held. Default: they do when the grant is given.
   */
  settled?(): Promise<void>
  /** Number of records that the engine keeps: rows, keys, nodes. Left out where nothing can count them. */
  size?(): Awaitable<number>
  /** How long the engine keeps a record that has expired, in milliseconds. Default: 0 */
  readonly keeps?: number
  /** Makes the record of the value of this store key unreadable. Left out where nothing but the engine can write it. */
  spoil?(store: string, key: string): Awaitable<void>
  /**
   * Locks a free key as a program without Signalbox does, for at least half a minute, and returns a function that
   * unlocks it. Left out where no other program shares locks.
   */
  lockOutside?(key: string): Awaitable<() => Awaitable<unknown>>
  /** Removes the place, after all its boxes were closed. */
  close(): Awaitable<void>
}

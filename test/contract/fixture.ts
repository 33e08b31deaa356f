import type { Awaitable, Engine } from '../../src/engines/engine.js'
import type { Guarantees } from '../../src/guarantees.js'
import type { Records } from '../../src/store/records/records.js'

/** One kind of engine that the suite runs over. */
export interface EngineFixture {
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether it has a clock that can be read in the step that reserves, and so limits. Default: as it keeps values. */
  readonly hasClock?: boolean
  /** Whether its places keep values in records beside the engine. */
  readonly hasRecords?: boolean
  /** A place that nobody has used before; each test has its own. */
  start(): Awaitable<Place>
  /** A test for each promise that the engine weakens, which shows the weakness occur; by the promise. */
  readonly weaknesses: Readonly<Partial<Record<string, () => Promise<void>>>>
}

/** Whether the engine keeps values; one that does not has no stores, no transactions and no elections. */
export function keepsValues({ guarantees }: EngineFixture): boolean {
  return guarantees.durability !== 'none'
}

/** Whether it has limits: what keeps values has one place that decides, and mostly one clock. */
export function hasLimits(fixture: EngineFixture): boolean {
  return fixture.hasClock ?? keepsValues(fixture)
}

/** Where the boxes of one test meet. */
export interface Place {
  /** For processes of their own, which open it as a user would. */
  readonly url: string
  /** An engine for one further box, not joined yet: to the others it is as one in another process. */
  engine(): Awaitable<Engine>
  /** Where all stores of the place keep their values, if not in the engine. */
  readonly records?: Records
  /** Removes the place, after all its boxes were closed. */
  close(): Awaitable<void>
}

import type { IMap } from 'hazelcast-client'
import { VirtualClock } from '../../../src/base/clock.js'
import type { EntryStore, SignStore } from '../../../packages/hazelcast/src/entry-store.js'
import type { Random } from '../random.js'
import { BoxEntries } from './box-entries.js'

/** The faults of the calls of a run. */
export interface Weather {
  /** Chance that the reply to a call is lost. Such a call is applied at once, later, or never. */
  readonly losses: number
  /** Chance of a crash of the calling process, for each call. */
  readonly crashes: number
  /** Chance of a pause of one process, for each step. */
  readonly pauses: number
  /** Chance that one process is cut off for a while, for each step. */
  readonly cuts: number
  /** Chance that a hint is lost. */
  readonly lostHints: number
  /** Maximum error of the wall clock of a process, in milliseconds. */
  readonly skew: number
  /** Chance that time passes before calls are answered, for each step. */
  readonly delays: number
}

interface Call {
  readonly process: SimulatedProcess
  readonly name: string
  /** The calls of a process with the same key are executed in the order in which they were sent. */
  readonly key: unknown
  apply(): unknown
  answer(reply: unknown): void
  fail(): void
}

/** A process with its own clocks. */
export class SimulatedProcess {
  isCrashed = false
  /** Time of the world until which the process does nothing. */
  pausedUntil = 0
  /** Time of the world until which the process gets no replies. */
  cutUntil = 0

  constructor(
    readonly name: string,
    readonly skew: number,
    readonly clock: VirtualClock,
  ) {}
}

/** Wall-clock time at the start of each world, in milliseconds since 1970. */
const START = 1_800_000_000_000

/** Entries in memory. Each call waits until the world executes it. */
export class EntryWorld {
  readonly texts = new Map<string, string>()
  readonly #ofBoxes = new BoxEntries(() => this.now)
  readonly log: string[] = []
  readonly processes: SimulatedProcess[] = []
  /** Milliseconds since the start. */
  now = 0
  /** Number of events so far. */
  step = 0
  readonly #random: Random
  #weather: Weather
  #calls: Call[] = []
  #late: Call[] = []

  constructor(random: Random, weather: Weather) {
    wall.now = START
    this.#random = random
    this.#weather = weather
  }

  process(name: string): SimulatedProcess {
    const skew = Math.round(this.#random.between(-this.#weather.skew, this.#weather.skew))
    const process = new SimulatedProcess(name, skew, new VirtualClock(this.now))
    this.processes.push(process)
    return process
  }

  /** Ends all faults. Calls under way arrive now or never. */
  calm(): void {
    for (const call of this.#late.splice(0)) if (this.#random.chance(0.5)) call.apply()
    this.#weather = { ...this.#weather, losses: 0, crashes: 0, pauses: 0, cuts: 0, lostHints: 0, delays: 0 }
  }

  note(text: string): void {
    this.log.push(`${this.step} ${this.now}: ${text}`)
  }

  /**
   * Returns the entries as a process sees them.
   * @param prefix prefix of their keys in `texts`
   */
  store(process: SimulatedProcess, prefix: string): EntryStore & SignStore {
    const call = <T>(key: string, name: string, apply: () => T): Promise<T> =>
      this.#send({ process, key, name: `${name} ${prefix}${key}`, apply })
    return {
      get: key => call(key, 'get', () => this.texts.get(prefix + key)),
      add: (key, text) =>
        call(key, `add ${text}`, () => {
          const present = this.texts.get(prefix + key)
          if (present === undefined) this.texts.set(prefix + key, text)
          return present
        }),
      replace: (key, before, after) =>
        call(key, `replace ${after}`, () => {
          if (this.texts.get(prefix + key) !== before) return false
          this.texts.set(prefix + key, after)
          return true
        }),
      remove: (key, before) =>
        call(key, 'remove', () => {
          if (this.texts.get(prefix + key) === before) this.texts.delete(prefix + key)
        }),
      put: (key, text, ttl) => this.boxes(process).set(key, text, ttl),
      getAll: async keys => new Map(await this.boxes(process).getAll([...keys])),
    }
  }

  /** Returns the map of the boxes as a process sees it. */
  boxes(process: SimulatedProcess): IMap<string, string> {
    return this.#ofBoxes.map((key, name, apply) =>
      this.#send({ process, key, name: `${name} ${key}`, apply }),
    )
  }

  /** Delivers a hint at some time, or never. */
  hint(process: SimulatedProcess, name: string, deliver: () => void): void {
    if (process.isCrashed || this.#random.chance(this.#weather.lostHints)) return
    this.#calls.push({
      process,
      name,
      key: deliver,
      apply: () => undefined,
      answer: deliver,
      fail: () => undefined,
    })
  }

  /** Runs until `isOver`, or for a number of milliseconds. Returns whether it is over. */
  async run(isOver: () => boolean, limit: number): Promise<boolean> {
    const until = this.now + limit
    for (let left = 20_000; ; left--) {
      await this.#settle()
      if (isOver()) return true
      if (this.now >= until || left === 0) return false
      this.step++
      this.#next()
    }
  }

  #send<T>(call: Pick<Call, 'process' | 'key' | 'name'> & { readonly apply: () => T }): Promise<T> {
    return new Promise((resolve, reject) => {
      if (call.process.isCrashed) return
      this.#calls.push({
        ...call,
        answer: reply => resolve(reply as T),
        fail: () => reject(new Error('the connection was lost')),
      })
    })
  }

  /** Lets every process continue until it waits for a call, a hint or its clock. */
  async #settle(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
  }

  #next(): void {
    const random = this.#random
    const { losses, crashes, pauses, cuts, delays } = this.#weather
    const ready = this.#calls.filter(
      (call, at) =>
        call.process.pausedUntil <= this.now &&
        this.#calls.findIndex(({ process, key }) => process === call.process && key === call.key) === at,
    )
    if (this.#late.length > 0 && random.chance(0.1)) {
      const [call] = this.#late.splice(random.below(this.#late.length), 1)
      this.note(`late ${call!.process.name}: ${call!.name}`)
      return void call!.apply()
    }
    if (random.chance(pauses)) {
      const process = random.pick(this.processes)
      process.pausedUntil = this.now + random.pick([500, 2500, 4000, 8000])
      this.note(`pause ${process.name}`)
    }
    if (random.chance(cuts)) {
      const process = random.pick(this.processes)
      process.cutUntil = this.now + random.pick([500, 3000, 6000, 9000])
      this.note(`cut ${process.name}`)
    }
    if (ready.length === 0 || random.chance(delays)) return this.#pass(ready.length > 0)
    const call = random.pick(ready)
    this.#calls.splice(this.#calls.indexOf(call), 1)
    const { process } = call
    this.#be(process)
    if (random.chance(crashes)) return this.#crash(process)
    if (random.chance(losses) || process.cutUntil > this.now) {
      const fate = random.pick(['applied', 'late', 'never'])
      this.note(`lose (${fate}) ${process.name}: ${call.name}`)
      if (fate === 'applied') call.apply()
      if (fate === 'late') this.#late.push(call)
      return call.fail()
    }
    const reply = call.apply()
    this.note(`${process.name}: ${call.name}${reply === false ? ' FAILED' : ''}`)
    call.answer(reply)
  }

  #crash(process: SimulatedProcess): void {
    this.note(`crash ${process.name}`)
    process.isCrashed = true
    for (const call of this.#calls)
      if (call.process === process && this.#random.chance(0.5)) this.#late.push(call)
    this.#calls = this.#calls.filter(call => call.process !== process)
  }

  /** Advances the time of each process that is not paused. */
  #pass(isShort: boolean): void {
    const awake = this.processes.filter(process => !process.isCrashed && process.pausedUntil <= this.now)
    const next = Math.min(
      ...awake.map(({ clock }) => clock.nextAt() ?? Infinity),
      ...this.processes.filter(({ pausedUntil }) => pausedUntil > this.now).map(each => each.pausedUntil),
    )
    const least = isShort ? this.#random.pick([1, 20, 300, 1200]) : 1
    this.now = Math.max(this.now + least, Math.min(next, this.now + 1000))
    for (const process of this.processes) {
      if (process.isCrashed || process.pausedUntil > this.now) continue
      this.#be(process)
      process.clock.advanceTo(this.now)
    }
  }

  /** Sets the wall clock to that of this process. */
  #be({ skew }: SimulatedProcess): void {
    wall.now = START + Math.floor(this.now) + skew
  }
}

/** Current value of `Date.now`. */
export const wall = { now: START }

import type { Action } from './action.js'
import { healed, type Climate } from './climate.js'
import { Connection } from './connection.js'
import { GrantWatch } from './grant-watch.js'
import { History } from './history.js'
import { ObservedStore } from './observed-store.js'
import { ObservedTable } from './observed-table.js'
import { SimulatedProcess, textOf } from './process.js'
import { Random } from './random.js'
import { Resource } from './resource.js'
import { GROUPED, SINGLE } from './schedule.js'
import { Server } from './server.js'
import type { Sources } from './sources.js'
import { Timeline } from './timeline.js'
import { TurnOrder } from './turn-order.js'
import { Watchers } from './watchers.js'

/** Offsets of the clocks, in milliseconds. Clocks of different machines cannot be compared. */
const SERVER_OFFSET = 1_048_576
const PROCESS_OFFSET = 65_536
/** Pause of a process that could not join before its next attempt, in milliseconds. */
const JOIN_PAUSE = 100

/** A task that has begun and must end, unless its process crashes. */
interface Task {
  readonly process: SimulatedProcess
  readonly what: string
}

/** All participants of one schedule. */
export class World {
  readonly timeline = new Timeline()
  readonly history = new History(() => this.timeline.now)
  readonly table: ObservedTable
  readonly store: ObservedStore
  readonly grants: GrantWatch
  readonly server: Server
  readonly resource: Resource
  readonly turns: TurnOrder
  readonly watchers: Watchers
  /** The processes that take part, by place. */
  readonly places: SimulatedProcess[] = []
  /** All processes that ever took part. */
  readonly processes: SimulatedProcess[] = []
  readonly connections = new Map<SimulatedProcess, Connection>()
  readonly #tasks = new Set<Task>()
  readonly #seed: number
  readonly #sources: Sources
  #climate: Climate
  #started = 0
  #marks = 0
  /** Time until which the only thread of all processes is frozen. */
  #frozenUntil = 0

  constructor(seed: number, climate: Climate, sources: Sources) {
    this.#seed = seed
    this.#sources = sources
    this.#climate = climate
    const offset = this.direct ? 0 : SERVER_OFFSET
    const { timeline, history } = this
    this.table = new ObservedTable(
      timeline,
      offset,
      history,
      climate,
      session => this.processes.find(process => process.session === session),
      request => this.grants.granted(request),
    )
    this.store = new ObservedStore(history)
    this.grants = new GrantWatch(timeline, history, this.table, climate)
    this.server = new Server(sources, timeline, history, this.table, this.store, offset)
    this.resource = new Resource(history)
    this.turns = new TurnOrder(timeline, history)
    this.watchers = new Watchers(history)
  }

  get climate(): Climate {
    return this.#climate
  }

  get direct(): boolean {
    return this.#climate.kind === 'direct'
  }

  /** The tasks that have begun and not ended. */
  get tasks(): readonly Task[] {
    return [...this.#tasks]
  }

  /** Returns a unique number for the mark of a change. */
  nextMark(): number {
    return ++this.#marks
  }

  /** Whether the only thread of all processes is frozen, so that nothing can happen. */
  get stopped(): boolean {
    return this.direct && this.timeline.now < this.#frozenUntil
  }

  /** Starts a process at a place, in place of the earlier one. */
  start(place: number): void {
    const number = ++this.#started
    const name = `p${number}`
    const { timeline, history } = this
    const random = new Random(this.#seed, name)
    const offset = this.direct ? 0 : number * PROCESS_OFFSET
    const process = new SimulatedProcess(name, timeline, history, random, this.#climate.lateness, offset)
    this.places[place] = process
    this.processes.push(process)
    if (this.stopped) process.freeze(this.#frozenUntil - timeline.now, true)
    this.do(process, 'joins', () => this.#join(process, random))
  }

  /** Starts another process at the place of one that is gone. */
  replace(place: number, pause: number): void {
    this.timeline.at(this.timeline.now + pause, () => this.start(place))
  }

  /** Starts a task of a process. The task must come to its end. */
  do(process: SimulatedProcess, what: string, task: () => Promise<void>): void {
    const running = { process, what }
    this.#tasks.add(running)
    process.deliver(() => {
      task()
        .catch((error: unknown) => this.history.violate('P10', `${process.name} ${what}: ${textOf(error)}`))
        .finally(() => this.#tasks.delete(running))
    })
  }

  /** Freezes the process. In one thread, freezes all processes, and those that start meanwhile. */
  freeze(process: SimulatedProcess, duration: number, timersFirst: boolean): void {
    if (this.direct) this.#frozenUntil = Math.max(this.#frozenUntil, this.timeline.now + duration)
    for (const one of this.direct ? this.processes : [process]) one.freeze(duration, timersFirst)
  }

  /** Crashes the process, with all its tasks. */
  crash(process: SimulatedProcess, severed: boolean): void {
    process.crash()
    process.open = false
    this.connections.get(process)!.severed = severed
    for (const task of this.#tasks) if (task.process === process) this.#tasks.delete(task)
  }

  /** Ends all faults. */
  heal(): void {
    this.history.note('world', 'is healed')
    this.#climate = healed(this.#climate)
    this.#frozenUntil = 0
    for (const process of this.processes) {
      process.cutUntil = 0
      process.thaw(true)
    }
  }

  /** Whether an action can begin: its process has joined and is not being closed. */
  ready({ place }: Action): boolean {
    return !this.stopped && (this.places[place]?.open ?? false)
  }

  async #join(process: SimulatedProcess, random: Random): Promise<void> {
    for (;;) {
      const connection = new Connection(process, random, {
        timeline: this.timeline,
        history: this.history,
        server: this.server,
        sources: this.#sources,
        table: this.table,
        climate: () => this.#climate,
      })
      this.connections.set(process, connection)
      try {
        const { detectDeadlocks } = this.#climate
        process.box = await this.#sources.Box.join(connection, process.clock, { detectDeadlocks })
      } catch {
        await process.sleep(JOIN_PAUSE)
        continue
      }
      process.stores.set(SINGLE, process.box.store(SINGLE))
      process.stores.set(GROUPED, process.box.store(GROUPED, { group: { maxSize: 4, maxTime: 5 } }))
      process.open = true
      this.history.note(process.name, 'has joined')
      return
    }
  }
}

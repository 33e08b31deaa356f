import type { LocationCounts } from '../domain/location.js'
import { getOrInsert } from '../get-or-insert.js'
import type { MessageSource } from '../input/source.js'
import type { Message } from '../messages/message.js'
import type { Settings } from '../options.js'
import { busiest } from '../report/busiest.js'
import { RateMeter } from '../report/rate-meter.js'
import type { Report } from '../report/report.js'
import type { LockInUse, LockUser } from '../lock-in-use.js'
import type {
  BusyPlace,
  EndFrame,
  Facts,
  Frame,
  LockedStation,
  NowFrame,
  TrainMoves,
  WorkerState,
} from './frames.js'
import { Network } from './network.js'
import { PageServer } from './page-server.js'
import { Scene } from './scene.js'
import { verdictOf } from './verdict.js'
import { Waits } from './waits.js'

/** Interval between frames, in milliseconds. */
const FRAME_INTERVAL = 100
/** Interval between diagrams of a growing network, in milliseconds. Pages redraw the map for each diagram. */
const DIAGRAM_INTERVAL = 1000
/** Interval between queries of the locks while a page is open, in milliseconds. */
const LOCKS_INTERVAL = 250
/** Interval between queries in a run that keeps its locks longer for viewers, in milliseconds. */
const KEPT_LOCKS_INTERVAL = 100
/** Interval between updates of the busiest locations, in milliseconds. */
const SORT_INTERVAL = 500
const MAX_BUSIEST = 10
const MAX_EVENTS = 12

export interface RunState extends Facts {
  readonly time: number | null
  readonly workers: readonly Omit<WorkerState, 'perSecond'>[]
}

export interface BoardParts {
  readonly source: MessageSource
  readonly settings: Pick<Settings, 'processes' | 'input' | 'dwell' | 'use'>
  /** Returns the locks of locations that are in use now. Rejects if the engine is unreachable. */
  locks(): Promise<readonly LockInUse[]>
}

const NOT_BEGUN: RunState = {
  messages: 0,
  time: null,
  kills: 0,
  redelivered: 0,
  alreadyApplied: 0,
  workers: [],
}

/** Shows a run on a page: trains, stations, locks, workers, and the result. */
export class Board {
  readonly #parts: BoardParts
  readonly #network: Network
  readonly #scene: Scene
  readonly #server: PageServer
  readonly #waits = new Waits()
  readonly #rate = new RateMeter()
  readonly #workerRates = new Map<number, RateMeter>()
  /** The workers of the last frame. */
  #workers: readonly WorkerState[] = []
  #events: readonly string[] = []
  #state: () => RunState = () => NOT_BEGUN
  #begun = 0
  #shownChanges = 0
  #locked: readonly LockedStation[] = []
  #busiest: readonly BusyPlace[] = []
  #timers: NodeJS.Timeout[] = []
  #isReadingLocks = false
  /** The first frames of a page after the run. */
  #final: readonly Frame[] | undefined

  private constructor(parts: BoardParts, network: Network, scene: Scene, server: PageServer) {
    this.#parts = parts
    this.#network = network
    this.#scene = scene
    this.#server = server
  }

  static async open(port: number, parts: BoardParts): Promise<Board> {
    const { locationNames, geography } = parts.source
    const network = new Network(locationNames, geography)
    const scene = new Scene(network)
    const server = await PageServer.open(port, () => board.#first())
    const board = new Board(parts, network, scene, server)
    return board
  }

  get url(): string {
    return this.#server.url
  }

  viewed(): Promise<void> {
    return this.#server.joined
  }

  /** Starts to send frames. @param state returns the state of the run. */
  begin(state: () => RunState): void {
    this.#state = state
    this.#begun = performance.now()
    this.#shownChanges = this.#network.changes
    this.#timers = [
      setInterval(() => this.#sendFrame(), FRAME_INTERVAL),
      setInterval(() => this.#sendGrowth(), DIAGRAM_INTERVAL),
      setInterval(
        () => void this.#readLocks(),
        this.#parts.settings.dwell > 0 ? KEPT_LOCKS_INTERVAL : LOCKS_INTERVAL,
      ),
      setInterval(() => this.#sort(), SORT_INTERVAL),
    ]
    for (const timer of this.#timers) timer.unref()
  }

  settled(message: Message, event: string): void {
    this.#scene.settle(message, event)
  }

  /** Shows the report. The board serves the page until `close`. */
  end(report: Report): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#sendGrowth()
    const { messages, seconds, perSecond } = report
    this.#waits.take([], String)
    const now: NowFrame = {
      ...this.#now(this.#scene.frame()),
      ...{ messages, seconds, perSecond },
      busiest: this.#busiestOf(new Map(Object.entries(report.locations))),
      // The worker processes have exited normally, so none is shown as restarting.
      workers: this.#workers.map(worker => ({ ...worker, isReady: true })),
      locked: [],
    }
    const end: EndFrame = { kind: 'end', ...verdictOf(report), standing: this.#scene.standing() }
    this.#server.send(now)
    this.#server.send(end)
    this.#final = [this.#about(), now, end]
  }

  /** Stops serving after open pages have received all frames. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#server.close()
  }

  #first(): readonly Frame[] {
    return this.#final ?? [this.#about(), this.#now(this.#scene.standing())]
  }

  #sendFrame(): void {
    this.#server.send(this.#now(this.#scene.frame()))
  }

  #sort(): void {
    if (this.#server.pages > 0) this.#busiest = this.#busiestOf(this.#scene.counts)
  }

  #sendGrowth(): void {
    if (this.#network.changes === this.#shownChanges) return
    this.#shownChanges = this.#network.changes
    this.#server.send(this.#about())
  }

  #busiestOf(locations: ReadonlyMap<string, LocationCounts>): BusyPlace[] {
    const { locationNames } = this.#parts.source
    return busiest(locations, MAX_BUSIEST).map(place => ({
      ...place,
      name: locationNames.get(place.id) ?? '',
    }))
  }

  #about(): Frame {
    const { source, settings } = this.#parts
    const { processes, input, dwell, use } = settings
    const speed = (input.kind === 'timetable' ? input.speed : undefined) ?? null
    const isLocked = use !== 'unlocked'
    const diagram = this.#network.diagram()
    return { kind: 'about', title: source.name, processes, speed, dwell, isLocked, diagram }
  }

  #now(trains: readonly TrainMoves[]): NowFrame {
    const at = performance.now()
    const { workers, ...state } = this.#state()
    this.#note(workers.map(worker => ({ ...worker, perSecond: this.#workerRate(worker, at) })))
    return {
      kind: 'now',
      ...state,
      total: this.#parts.source.total ?? null,
      seconds: this.#begun === 0 ? 0 : (at - this.#begun) / 1000,
      // Measured from the beginning of the run, because the first count of a resumed run includes its earlier messages.
      perSecond: this.#begun === 0 ? 0 : this.#rate.rate(at, state.messages),
      trains,
      waiting: this.#scene.drawn(this.#waits.trains),
      allWaiting: this.#waits.trains.length,
      running: this.#scene.running,
      busiest: this.#busiest,
      workers: this.#workers,
      events: this.#events,
      locked: this.#locked,
      waits: this.#waits.listed.map(wait => ({
        ...wait,
        waiter: this.#named(wait.waiter),
        holder: this.#named(wait.holder),
      })),
    }
  }

  /** Adds the events of workers since the last frame. */
  #note(workers: readonly WorkerState[]): void {
    const events = workers.flatMap(({ worker, kills, replaced }, index) => {
      const before = this.#workers[index] ?? { kills: 0, replaced: 0 }
      if (replaced === before.replaced) return []
      const how = kills > before.kills ? 'was killed' : 'died'
      return [`worker ${worker} was replaced`, `worker ${worker} ${how}`]
    })
    this.#events = [...events, ...this.#events].slice(0, MAX_EVENTS)
    this.#workers = workers
  }

  #workerRate({ worker, messages }: RunState['workers'][number], at: number): number {
    return getOrInsert(this.#workerRates, worker, () => new RateMeter()).rate(at, messages)
  }

  async #readLocks(): Promise<void> {
    // Waits for the reply of a slow or unreachable engine before the next query.
    if (this.#server.pages === 0 || this.#isReadingLocks) return
    this.#isReadingLocks = true
    // The page shows the last state while the engine is unreachable.
    const locks = await this.#parts.locks().catch(() => undefined)
    this.#isReadingLocks = false
    if (!locks || this.#final) return
    this.#locked = this.#lockedStations(locks)
    this.#waits.take(locks, location => this.#network.nameOf(location))
  }

  #lockedStations(locks: readonly LockInUse[]): LockedStation[] {
    // A waiter for several locks is shown only at stations that have a holder.
    const stations = new Map<number, { holders: Map<string, LockUser>; waiters: Map<string, LockUser> }>()
    for (const { location, holders, waiters } of locks) {
      const station = this.#network.stationOf(location)
      if (station === undefined || holders.length === 0) continue
      const locked = getOrInsert(stations, station, () => ({ holders: new Map(), waiters: new Map() }))
      for (const holder of holders) locked.holders.set(holder.train ?? holder.who, this.#named(holder))
      for (const waiter of waiters) locked.waiters.set(waiter.train ?? waiter.who, this.#named(waiter))
    }
    return [...stations].map(([station, { holders, waiters }]) => ({
      station,
      holders: [...holders.values()],
      waiters: [...waiters.values()],
    }))
  }

  /** Leaves out the day of a train if the run has only one day. */
  #named(user: LockUser): LockUser {
    if (this.#parts.source.days !== 1) return user
    return { ...user, train: user.train?.replace(/#1$/, '') }
  }
}

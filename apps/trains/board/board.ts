import type { LocationCounts } from '../domain/location.js'
import { getOrInsert } from '../get-or-insert.js'
import type { MessageSource } from '../input/source.js'
import type { Message } from '../messages/message.js'
import { busiest } from '../report/busiest.js'
import { RateMeter } from '../report/rate-meter.js'
import { EXIT, exitStatus, type Report } from '../report/report.js'
import { outcome } from '../report/text-report.js'
import type { LockInUse } from '../tracker.js'
import type {
  BusyPlace,
  EndFrame,
  Frame,
  LockedStation,
  NowFrame,
  TrainMoves,
  WorkerState,
} from './frames.js'
import { Network } from './network.js'
import { PageServer } from './page-server.js'
import { Scene } from './scene.js'

/** How often pages receive what has happened, in milliseconds. */
const FRAME_EVERY = 100
/** How often pages receive a network that grows, in milliseconds. They redraw it each time. */
const DIAGRAM_EVERY = 1000
/** How often the locks are looked at while there is a page, in milliseconds. */
const LOCKS_EVERY = 250
/** How often the locations are sorted again, in milliseconds. */
const SORTED_EVERY = 500
/** So many locations are shown. */
const BUSIEST = 10
/** So many events are shown. */
const MOST_EVENTS = 12

/** How a run is getting on. */
export interface RunState {
  readonly messages: number
  readonly workers: readonly Omit<WorkerState, 'perSecond'>[]
}

/** What a board shows. */
export interface BoardParts {
  readonly source: MessageSource
  /** The locks of locations that are in use now. Rejects when the engine can't be asked. */
  locks(): Promise<readonly LockInUse[]>
}

/** Shows a run on a page: trains, stations, locks, workers, and what comes of it. */
export class Board {
  readonly #parts: BoardParts
  readonly #network: Network
  readonly #scene: Scene
  readonly #server: PageServer
  readonly #rate = new RateMeter()
  readonly #workerRates = new Map<number, RateMeter>()
  /** The workers as they were in the frame before. */
  #workers: readonly WorkerState[] = []
  #events: readonly string[] = []
  #state: () => RunState = () => ({ messages: 0, workers: [] })
  #begun = 0
  #shownChanges = 0
  #locked: readonly LockedStation[] = []
  #busiest: readonly BusyPlace[] = []
  #timers: NodeJS.Timeout[] = []
  #isLooking = false
  /** What a page begins with when the run is over. */
  #final: readonly Frame[] | undefined

  private constructor(parts: BoardParts, network: Network, scene: Scene, server: PageServer) {
    this.#parts = parts
    this.#network = network
    this.#scene = scene
    this.#server = server
  }

  /**
   * Serves the page on 127.0.0.1.
   * @param port 0 for a free one.
   * @throws InputError when the port can't be used.
   */
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

  /** The run begins. @param state returns its progress. */
  begin(state: () => RunState): void {
    this.#state = state
    this.#begun = performance.now()
    this.#shownChanges = this.#network.changes
    this.#timers = [
      setInterval(() => this.#sendFrame(), FRAME_EVERY),
      setInterval(() => this.#sendGrowth(), DIAGRAM_EVERY),
      setInterval(() => void this.#lookAtLocks(), LOCKS_EVERY),
      setInterval(() => this.#sort(), SORTED_EVERY),
    ]
    for (const timer of this.#timers) timer.unref()
  }

  /** A message is done. */
  settled(message: Message, event: string): void {
    this.#scene.settle(message, event)
  }

  /** The run is over. The page is served until `close`. */
  end(report: Report): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#sendGrowth()
    const { messages, seconds, perSecond } = report
    const now: NowFrame = {
      ...this.#now(this.#scene.frame()),
      ...{ messages, seconds, perSecond },
      busiest: this.#busiestOf(new Map(Object.entries(report.locations))),
      // Their processes have ended, as they should.
      workers: this.#workers.map(worker => ({ ...worker, isReady: true })),
      locked: [],
    }
    const end: EndFrame = { kind: 'end', outcome: outcomeOf(report), lines: outcome(report) }
    this.#server.send(now)
    this.#server.send(end)
    this.#final = [this.#diagram(), { ...now, trains: this.#scene.standing() }, end]
  }

  /** Ends. Pages get what was sent to them. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#server.close()
  }

  #first(): readonly Frame[] {
    return this.#final ?? [this.#diagram(), this.#now(this.#scene.standing())]
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
    this.#server.send(this.#diagram())
  }

  #busiestOf(locations: ReadonlyMap<string, LocationCounts>): BusyPlace[] {
    const { locationNames } = this.#parts.source
    return busiest(locations, BUSIEST).map(place => ({ ...place, name: locationNames.get(place.id) ?? '' }))
  }

  #diagram(): Frame {
    return { kind: 'diagram', title: this.#parts.source.description, diagram: this.#network.diagram() }
  }

  #now(trains: readonly TrainMoves[]): NowFrame {
    const at = performance.now()
    const { messages, workers } = this.#state()
    this.#note(workers.map(worker => ({ ...worker, perSecond: this.#workerRate(worker, at) })))
    return {
      kind: 'now',
      messages,
      total: this.#parts.source.total ?? null,
      seconds: this.#begun === 0 ? 0 : (at - this.#begun) / 1000,
      perSecond: this.#rate.rate(at, messages),
      trains,
      underWay: this.#scene.underWay,
      busiest: this.#busiest,
      workers: this.#workers,
      events: this.#events,
      locked: this.#locked,
    }
  }

  /** Notes the outcome of workers since the frame before. */
  #note(workers: readonly WorkerState[]): void {
    const events = workers.flatMap(({ worker, kills, replaced }, index) => {
      const before = this.#workers[index] ?? { kills: 0, replaced: 0 }
      if (replaced === before.replaced) return []
      const how = kills > before.kills ? 'was killed' : 'died'
      return [`worker ${worker} is replaced`, `worker ${worker} ${how}`]
    })
    this.#events = [...events, ...this.#events].slice(0, MOST_EVENTS)
    this.#workers = workers
  }

  #workerRate({ worker, messages }: RunState['workers'][number], at: number): number {
    return getOrInsert(this.#workerRates, worker, () => new RateMeter()).rate(at, messages)
  }

  async #lookAtLocks(): Promise<void> {
    // An engine that is slow or unreachable is not asked again before it has answered.
    if (this.#server.pages === 0 || this.#isLooking) return
    this.#isLooking = true
    // A page shows the last state while the engine can't be asked.
    const locks = await this.#parts.locks().catch(() => undefined)
    this.#isLooking = false
    if (locks && !this.#final) this.#locked = this.#lockedStations(locks)
  }

  #lockedStations(locks: readonly LockInUse[]): LockedStation[] {
    const stations = new Map<number, { holders: Set<string>; waiters: Set<string> }>()
    for (const { location, holders, waiters } of locks) {
      const station = this.#network.stationOf(location)
      if (station === undefined) continue
      const locked = getOrInsert(stations, station, () => ({ holders: new Set(), waiters: new Set() }))
      for (const holder of holders) locked.holders.add(holder)
      for (const waiter of waiters) locked.waiters.add(waiter)
    }
    return [...stations].map(([station, { holders, waiters }]) => ({
      station,
      holders: [...holders],
      waiters: [...waiters],
    }))
  }
}

function outcomeOf(report: Report): EndFrame['outcome'] {
  if (!report.matchesSerial) return 'wrong'
  return exitStatus(report, true) === EXIT.fine.status ? 'right' : 'incomplete'
}

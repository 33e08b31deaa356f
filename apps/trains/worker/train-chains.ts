import { neighbours, type Candidate } from './neighbours.js'

/** How much goes on at the same time. */
export interface ChainLimits {
  /** So many items are worked on together at the most. */
  readonly together: number
  /** So many of them are of one train, and follow each other. */
  readonly run: number
  /** So many times over at the same time. */
  readonly atOnce: number
  /** How long those that wait for their locks keep the next ones back: milliseconds. */
  readonly patience: number
}

/** What is done with items of several trains, each train's in their order. */
export interface ChainWork<Item> {
  /** Must not reject. It calls `goOn` as soon as it waits for no locks any more. */
  work(runs: readonly (readonly Item[])[], goOn: () => void): Promise<void>
  /** Where an item happens, as far as that is known. */
  placeOf(item: Item): string | undefined
}

/**
 * Keeps the order of each train's messages: those of one train run one after the other, or some together as a run;
 * those of different trains at the same time. Runs that have places in common, and so need the same locks, begin
 * together. Nothing remains of a train whose messages are all done.
 */
export class TrainChains<Item> {
  readonly #work: ChainWork<Item>
  readonly #limits: ChainLimits
  readonly #chains = new Map<string, Chain<Item>>()
  /** Trains that have something to do and wait for their turn, the longest first. */
  readonly #ready = new Set<Chain<Item>>()
  #running = 0
  /** Whether the newest that have begun keep the next ones back. */
  #keptBack = false
  /** The places of all that wait for their locks. */
  readonly #awaited = new Set<ReadonlySet<string>>()
  #fillPlanned = false
  #idle: (() => void)[] = []

  constructor(work: ChainWork<Item>, limits: ChainLimits) {
    this.#work = work
    this.#limits = limits
  }

  /** Runs the item when the train's earlier ones are done and there is room. */
  add(train: string, item: Item): void {
    let chain = this.#chains.get(train)
    if (!chain) {
      chain = new Chain(train, this.#limits.run, one => this.#work.placeOf(one))
      this.#chains.set(train, chain)
      this.#ready.add(chain)
    }
    chain.add(item)
    if (this.#fillPlanned) return
    this.#fillPlanned = true
    // All that this tick brings can be chosen from.
    queueMicrotask(() => {
      this.#fillPlanned = false
      this.#fill()
    })
  }

  /** Resolves when nothing runs and nothing waits. */
  idle(): Promise<void> {
    if (this.#chains.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  #fill(): void {
    while (!this.#keptBack && this.#running < this.#limits.atOnce) {
      // What needs the same locks as those that wait would only wait behind them.
      const chosen = neighbours(this.#ready, this.#limits.together, this.#awaited)
      if (chosen.length === 0) return
      for (const chain of chosen) this.#ready.delete(chain)
      void this.#run(chosen)
    }
  }

  async #run(chosen: readonly Chain<Item>[]): Promise<void> {
    const places = new Set(chosen.flatMap(chain => chain.places))
    const goOn = this.#keepBack(places)
    this.#running++
    await this.#work.work(
      chosen.map(chain => chain.take()),
      goOn,
    )
    this.#running--
    for (const chain of chosen) {
      if (chain.size > 0) this.#ready.add(chain)
      else this.#chains.delete(chain.train)
    }
    goOn()
    this.#fill()
    if (this.#chains.size > 0) return
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  /** Begins nothing more for a while, and nothing at these places, until the returned function is called. */
  #keepBack(places: ReadonlySet<string>): () => void {
    this.#awaited.add(places)
    const { patience } = this.#limits
    let waiting = patience > 0
    this.#keptBack = waiting
    const next = (): void => {
      if (!waiting) return
      waiting = false
      this.#keptBack = false
      this.#fill()
    }
    const timer = waiting ? setTimeout(next, patience) : undefined
    return () => {
      clearTimeout(timer)
      if (this.#awaited.delete(places)) next()
    }
  }
}

/** What a train still has to do, without what runs. */
class Chain<Item> implements Candidate {
  readonly train: string
  readonly #run: number
  readonly #placeOf: (item: Item) => string | undefined
  readonly #waiting: Item[] = []
  /** Where the train was last. */
  #last: string | undefined
  #places: readonly string[] | undefined

  constructor(train: string, run: number, placeOf: (item: Item) => string | undefined) {
    this.train = train
    this.#run = run
    this.#placeOf = placeOf
  }

  /** How many items its next run has. */
  get size(): number {
    return Math.min(this.#waiting.length, this.#run)
  }

  /** Where its next run happens, the place where it begins among them. */
  get places(): readonly string[] {
    if (this.#places) return this.#places
    const places = new Set<string>()
    if (this.#last !== undefined) places.add(this.#last)
    for (const item of this.#waiting.slice(0, this.#run)) {
      const place = this.#placeOf(item)
      if (place !== undefined) places.add(place)
    }
    return (this.#places = [...places])
  }

  add(item: Item): void {
    if (this.#waiting.length < this.#run) this.#places = undefined
    this.#waiting.push(item)
  }

  /** Takes its next run out. */
  take(): readonly Item[] {
    this.#places = undefined
    const run = this.#waiting.splice(0, this.#run)
    for (const item of run) this.#last = this.#placeOf(item) ?? this.#last
    return run
  }
}

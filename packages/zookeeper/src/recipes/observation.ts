import { ClosedError } from '../errors.js'
import type { WatchEvent } from '../watch-event.js'
import { keepProcessAlive, letProcessEnd } from '../keep-alive.js'
import { onAbort } from '../on-abort.js'
import { retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'

/** What a reading gave. It is another object each time that this has changed. */
interface Reading<T> {
  readonly value: T
}

/** What is observed, and how. */
export interface Observed<T> {
  readonly path: string
  /** Reads it. It may ask for more than the node: what is watched is the node, its data and its children. */
  read(): Promise<T>
  /** Whether two readings are the same: then the second one is not told. */
  isSame(one: T, other: T): boolean
}

/** Reads a node whenever it has changed. Changes that come while it is being read are one. */
export class Observation<T> implements AsyncDisposable {
  readonly #observed: Observed<T>
  readonly #waiting: (() => void)[] = []
  #unwatch: () => void = () => undefined
  #reading: Reading<T> | undefined
  #ended: Error | undefined
  #isStale = true
  #refreshing: Promise<void> | undefined

  private constructor(observed: Observed<T>) {
    this.#observed = observed
  }

  /** Begins with a reading. @throws what reading throws, and what ended the session */
  static async start<T>(zk: ZooKeeper, observed: Observed<T>): Promise<Observation<T>> {
    const observation = new Observation(observed)
    const told = (event: WatchEvent): void => observation.#told(event)
    observation.#unwatch = await retryUnsent(() => zk.onChange(observed.path, told))
    await observation.#refresh()
    if (observation.#ended) throw observation.#ended
    return observation
  }

  /**
   * Observes a node until `check` gives an outcome for a reading.
   * @param signal ends the observation
   * @throws ClosedError when the signal has aborted; what reading or checking throws; what ended the session
   */
  static async until<T, R>(
    zk: ZooKeeper,
    observed: Observed<T>,
    signal: AbortSignal | undefined,
    check: (value: T) => R | undefined | Promise<R | undefined>,
  ): Promise<R> {
    await using observation = await Observation.start(zk, observed)
    const forget = signal && onAbort(signal, () => void observation.close())
    if (signal?.aborted) await observation.close()
    try {
      for (let reading = observation.#last; ; reading = await observation.#after(reading)) {
        const outcome = await check(reading.value)
        if (outcome !== undefined) return outcome
      }
    } finally {
      forget?.()
    }
  }

  /** What the last reading gave. @throws what has ended the observation */
  get value(): T {
    return this.#last.value
  }

  get #last(): Reading<T> {
    if (this.#ended) throw this.#ended
    return this.#reading!
  }

  /** Waits until there is another reading. @throws what has ended the observation */
  async #after(reading: Reading<T>): Promise<Reading<T>> {
    if (this.#last === reading) {
      // The watch keeps no process alive, and a caller that waits does.
      keepProcessAlive()
      await new Promise<void>(resolve => this.#waiting.push(resolve))
      letProcessEnd()
    }
    return this.#last
  }

  /** This reading and all others to come, leaving out those that are overtaken, until the observation is closed. */
  async *readings(): AsyncGenerator<T, undefined> {
    try {
      for (let reading = this.#last; ; reading = await this.#after(reading)) yield reading.value
    } catch (error) {
      if (!(error instanceof ClosedError) || error !== this.#ended) throw error
    }
    return undefined
  }

  /** Ends it, and the loops over it. */
  async close(): Promise<void> {
    const { path } = this.#observed
    this.#end(new ClosedError(`the observation of ${path} was closed`, { path }))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #told(event: WatchEvent): void {
    if (event.type === 'ended') return this.#end(event.cause!)
    this.#isStale = true
    void this.#refresh()
  }

  /** Settles when it has been read since the last change, or has ended. Never throws. */
  async #refresh(): Promise<void> {
    if (this.#isStale && !this.#ended) this.#refreshing ??= this.#readAgain()
    await this.#refreshing
  }

  async #readAgain(): Promise<void> {
    while (this.#isStale && !this.#ended) {
      this.#isStale = false
      try {
        this.#take(await retryUnsent(() => this.#observed.read()))
      } catch (error) {
        this.#end(error as Error)
      }
    }
    this.#refreshing = undefined
  }

  #take(value: T): void {
    if (this.#ended) return
    if (this.#reading && this.#observed.isSame(this.#reading.value, value)) return
    this.#reading = { value }
    this.#wake()
  }

  #end(why: Error): void {
    if (this.#ended) return
    this.#ended = why
    this.#unwatch()
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

import { ClosedError } from '../errors.js'
import type { WatchEvent } from '../watch-event.js'
import { keepProcessAlive, letProcessEnd } from '../keep-alive.js'
import { onAbort } from '../on-abort.js'
import { retryUnsent } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'

/** A reading. There is a new object whenever the value has changed. */
interface Reading<T> {
  readonly value: T
}

/** A node to observe, and how to read its value. */
export interface Observed<T> {
  readonly path: string
  /** Reads the value. It may read more than the node, but only the node, its data and its children are watched. */
  read(): Promise<T>
  /** Whether two readings are equal; then the second one is dropped. */
  isSame(one: T, other: T): boolean
}

/** Reads a node whenever it has changed. Changes during a reading cause one further reading. */
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

  /** Starts with a reading. @throws the errors of reading; the error that ended the session */
  static async start<T>(zk: ZooKeeper, observed: Observed<T>): Promise<Observation<T>> {
    const observation = new Observation(observed)
    const listener = (event: WatchEvent): void => observation.#onEvent(event)
    observation.#unwatch = await retryUnsent(() => zk.onChange(observed.path, listener))
    await observation.#refresh()
    if (observation.#ended) throw observation.#ended
    return observation
  }

  /**
   * Observes a node until `check` returns an outcome for a reading.
   * @param signal ends the observation
   * @throws ClosedError if the signal has aborted; the errors of reading and checking; the error that ended the session
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
      for (let reading = observation.#current; ; reading = await observation.#after(reading)) {
        const outcome = await check(reading.value)
        if (outcome !== undefined) return outcome
      }
    } finally {
      forget?.()
    }
  }

  /** The value of the last reading. @throws the error that ended the observation */
  get value(): T {
    return this.#current.value
  }

  get #current(): Reading<T> {
    if (this.#ended) throw this.#ended
    return this.#reading!
  }

  /** Waits for the next reading. @throws the error that ended the observation */
  async #after(reading: Reading<T>): Promise<Reading<T>> {
    if (this.#current === reading) {
      // The watch lets the process end; a caller that waits keeps it alive.
      keepProcessAlive()
      await new Promise<void>(resolve => this.#waiting.push(resolve))
      letProcessEnd()
    }
    return this.#current
  }

  /** Yields this reading and all further ones, except outdated ones, until the observation is closed. */
  async *readings(): AsyncGenerator<T, undefined> {
    try {
      for (let reading = this.#current; ; reading = await this.#after(reading)) yield reading.value
    } catch (error) {
      if (!(error instanceof ClosedError) || error !== this.#ended) throw error
    }
    return undefined
  }

  /** Ends the observation, and the loops over it. */
  async close(): Promise<void> {
    const { path } = this.#observed
    this.#end(new ClosedError(`the observation of ${path} was closed`, { path }))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #onEvent(event: WatchEvent): void {
    if (event.type === 'ended') return this.#end(event.cause!)
    this.#isStale = true
    void this.#refresh()
  }

  /** Resolves when the node was read since the last change, or the observation has ended. Never throws. */
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

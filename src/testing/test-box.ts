import { Box, type BoxOptions } from '../box.js'
import { milliseconds, type Duration } from '../base/duration.js'
import { MemoryEngine, MemorySpace } from '../engines/memory/memory-engine.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkKey } from '../base/options.js'
import { FailingEngine, type FailOptions, type Fault } from './failing-engine.js'
import { OpenTransactions } from './open-transactions.js'
import { TestClock } from './test-clock.js'

/** A box for tests. Its engine is a memory of its own, and the test controls its time. */
export interface TestBox extends Box {
  /**
   * Advances the clock of the box: waits end, leases are renewed or expire, limiters refill. Resolves when the code
   * that is due has run, as far as it does not wait for I/O. While fake timers of vitest, Jest or Sinon.JS are
   * installed, advances those, and the box with them.
   *
   * ```ts
   * const refused = expect(box.mutex('report').acquire({ wait: '5s' })).rejects.toThrow(TimedOutError)
   * await box.advance('5s')
   * await refused // if another caller holds the lock
   * ```
   * @throws InvalidArgumentError
   */
  advance(duration: Duration): Promise<void>
  /** Opens another box on the same memory and clock, like a box in another process. @throws InvalidArgumentError */
  another(options?: BoxOptions): Promise<TestBox>
  /**
   * Takes a key away from all its holders, in this box and others: their grants are lost.
   * @throws InvalidArgumentError when no box holds the key
   */
  lose(key: string): void
  /**
   * Makes operations of this box fail, until `restore`. A second call replaces the fault of the first.
   *
   * ```ts
   * box.fail('unreachable') // every call rejects with an UnavailableError, and leases expire
   * box.fail('replyLost', { operations: ['commit'], times: 1 }) // one change is made, and its caller is not sure
   * ```
   * @throws InvalidArgumentError
   */
  fail(fault: Fault, options?: FailOptions): void
  /** Ends the fault of `fail`. */
  restore(): void
}

/**
 * Opens a box for a test. Its engine is `memory:`, shared only with the boxes that `another` opens. The box treats it
 * like an engine on a server, and its clock stands still until `advance`, or until the fake timers of vitest, Jest or
 * Sinon.JS advance. It sets no real timer. The clock starts at the current time, `Date.now()`.
 *
 * ```ts
 * const box = await openTestBox()
 * const limiter = box.limiter('api', { limit: 1, per: '1m' })
 * await limiter.acquire()
 * await box.advance('61s')
 * console.log(await limiter.tryAcquire() !== undefined) // true
 * await box.close()
 * ```
 * @throws InvalidArgumentError
 */
export function openTestBox(options?: BoxOptions): Promise<TestBox> {
  return new TestPlace().open(options)
}

/** The parts that the boxes of a test share: a memory, a clock, and the transactions of the test. */
class TestPlace {
  readonly #clock = new TestClock()
  readonly #space = new MemorySpace(this.#clock)
  readonly #transactions = new OpenTransactions(this.#space, this.#clock)
  #boxes = 0

  async open(options?: BoxOptions): Promise<TestBox> {
    const memory = new MemoryEngine('memory:', this.#space, this.#clock)
    const engine = new FailingEngine(memory, this.#transactions, () => this.#left())
    const box = await Box.join(engine, this.#clock, options)
    this.#boxes++
    return Object.assign(box, {
      advance: async (duration: Duration) =>
        this.#clock.advance(milliseconds('duration', duration, { min: 0, max: Number.MAX_SAFE_INTEGER })),
      another: (others?: BoxOptions) => this.open(others),
      lose: (key: string) => lose(memory, key),
      fail: (fault: Fault, failOptions?: FailOptions) => engine.fail(fault, failOptions),
      restore: () => engine.restore(),
    })
  }

  #left(): void {
    if (--this.#boxes === 0) this.#clock.stop()
  }
}

function lose(memory: MemoryEngine, key: string): void {
  checkKey('key', key)
  const requests = memory.submit({ type: 'inspect', prefix: key, exact: true })
  const held = requests.filter(({ phase }) => phase === 'held')
  if (held.length === 0)
    throw new InvalidArgumentError(`key must be held by a box of the test, not ${shown(key)}`)
  for (const { number } of held) memory.submit({ type: 'forceRelease', key, number })
}

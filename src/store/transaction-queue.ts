import { onAbort } from '../base/abort-task.js'
import { AbortedError, InvalidArgumentError, TimedOutError } from '../base/errors.js'
import type { Session } from '../core/session.js'
import { keyOrder } from './key-order.js'
import { Batch, type Prepared } from './batch.js'
import { titleOf, type Member } from './member.js'
import type { Values } from './values.js'
import { runtimeTimers } from '../base/runtime-timers.js'

export interface GroupOptions {
  readonly maxSize: number
  /** Time after which a batch commits and leaves its remaining tasks to the next one, in milliseconds. */
  readonly maxTime: number
}

/** Maximum number of batches that wait for their locks. One whose keys are held for long must not block all others. */
const MAX_BATCHES = 4
/**
 * Time for which a batch that waits delays the next one, in milliseconds. One full batch is better than two half-full
 * ones.
 */
const MAX_DELAY = 250

/** Runs transactions: each on its own, or concurrent ones in batches. */
export class TransactionQueue {
  readonly #session: Session
  readonly #batch: Batch
  /** The order of the transactions that run on their own. */
  readonly #takeTurn: ReturnType<typeof keyOrder>
  readonly #prefix: string
  readonly #group: GroupOptions | undefined
  readonly #canJoin: boolean
  readonly #waiting: Member[] = []
  /** Whether the newest batch has neither sent its commit nor waited for long. */
  #beginning = false
  /** The next batch, prepared while the last one runs, so that its request is sent with the commit of that one. */
  #prepared: Prepared | undefined
  #preparing = false
  /** Number of members that were put ahead of those that are being prepared. */
  #putAhead = 0
  /** Number of batches that wait or run. */
  #batches = 0
  #begun = 0

  constructor(session: Session, values: Values, prefix: string, group: GroupOptions | undefined) {
    this.#session = session
    this.#batch = new Batch(session, values, prefix, group?.maxTime ?? Infinity)
    this.#takeTurn = keyOrder(session.clock)
    this.#prefix = prefix
    this.#group = group
    this.#canJoin = values.join
  }

  add(member: Member): void {
    if (member.within && !this.#canJoin)
      return member.reject(
        new InvalidArgumentError(
          `${this.#session.engine.name} can't write values in a caller's transaction; remove the option in`,
        ),
      )
    // A transaction within a task must not wait for the batch of that task.
    const runsAlone = !this.#group || member.within !== undefined || member.request.wait === 0
    if (runsAlone || this.#session.deadlocks?.inside()) return void this.#alone(member)
    this.#limit(member)
    this.#waiting.push(member)
    // Transactions of the same tick come into the same batch.
    if (this.#waiting.length === 1) runtimeTimers.queueMicrotask(() => this.#pump())
  }

  /** Begins the next batch, unless one has not sent its commit yet: until then more members may join the next one. */
  #pump(): void {
    if (this.#beginning || this.#batches >= MAX_BATCHES) return
    if (!this.#prepared) return this.#prepareNext()
    const prepared = this.#prepared
    this.#prepared = undefined
    void this.#together(prepared)
  }

  #prepareNext(): void {
    if (this.#prepared || this.#preparing || this.#waiting.length === 0) return
    this.#preparing = true
    this.#putAhead = 0
    void this.#batch.prepare(this.#waiting.splice(0, this.#group!.maxSize)).then(prepared => {
      this.#preparing = false
      if (prepared && this.#putAhead > 0) {
        this.#waiting.splice(this.#putAhead, 0, ...this.#batch.unprepare(prepared))
      } else this.#prepared = prepared
      this.#pump()
    })
  }

  async #together(prepared: Prepared): Promise<void> {
    let first = true
    const next = (): void => {
      if (!first) return
      first = false
      timer.cancel()
      this.#beginning = false
      this.#pump()
    }
    this.#beginning = true
    this.#batches++
    const place = ++this.#begun
    const timer = this.#session.clock.after(MAX_DELAY, next, false)
    const alone = await this.#batch.run(prepared, {
      granted: () => this.#prepareNext(),
      overtaken: () => this.#begun > place,
      left: again => this.#putFirst(again),
      sent: next,
    })
    this.#batches--
    for (const member of alone) await this.#alone(member)
    next()
    this.#pump()
  }

  /** Puts the members that a batch has left ahead of all later ones, including those that are being prepared. */
  #putFirst(again: readonly Member[]): void {
    if (again.length === 0) return
    for (const member of again) this.#limit(member)
    const later = this.#prepared ? this.#batch.unprepare(this.#prepared) : []
    this.#prepared = undefined
    this.#waiting.unshift(...again, ...later)
    this.#putAhead += again.length
  }

  /** Lets a member's wait and signal reject it, until its task begins. */
  #limit(member: Member): void {
    if (member.settled || member.stopWaiting) return
    const { wait, signal } = member.request
    const context = () => ({ key: titleOf(member, this.#prefix), engine: this.#session.engine.name })
    const timedOut = (): void =>
      member.reject(
        new TimedOutError(`timed out after ${wait} ms waiting for the locks of the transaction`, context()),
      )
    const aborted = (): void =>
      member.reject(new AbortedError('the transaction was aborted', { ...context(), cause: signal?.reason }))
    if (signal?.aborted) return aborted()
    // Keeps the process alive, which not every signal does.
    const timer = wait < Infinity || signal ? this.#session.clock.after(wait, timedOut, true) : undefined
    const letGo = signal && onAbort(signal, aborted)
    member.stopWaiting = () => {
      member.stopWaiting = undefined
      timer?.cancel()
      letGo?.()
    }
  }

  async #alone(member: Member): Promise<void> {
    let left: readonly Member[] = [member]
    while (left.length > 0) {
      const prepared = await this.#batch.prepare(left)
      if (!prepared) return
      let again: readonly Member[] = []
      const turn = this.#takeTurn(prepared.queue.leases.keys)
      const progress = {
        left: (members: readonly Member[]) => (again = members),
        sent: turn.end,
      }
      // A transaction within a task must not wait for others, which may wait for that task.
      const before = this.#session.deadlocks?.inside() ? undefined : turn.before
      const alone = await this.#batch.run(prepared, progress, before)
      turn.end()
      left = [...again, ...alone]
    }
  }
}

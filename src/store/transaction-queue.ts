import { onAbort } from '../abort-task.js'
import { AbortedError, InvalidArgumentError, TimedOutError } from '../errors.js'
import type { Session } from '../core/session.js'
import { KeyOrder } from './key-order.js'
import { Batch, type Prepared, type Progress } from './batch.js'
import { titleOf, type Member } from './member.js'
import type { Values } from './values.js'

/** How transactions of one process may share locks and a commit. */
export interface GroupOptions {
  /** Maximum number of transactions in one batch. */
  readonly maxSize: number
  /** Time after which a batch commits and leaves its remaining tasks to the next one, in milliseconds. */
  readonly maxTime: number
}

/** So many batches may wait for their locks: one whose keys are held for long must not keep all others back. */
const MAX_BATCHES = 4
/** How long a batch keeps the next one back while it waits, in milliseconds. Of two in the queue neither is full. */
const KEPT_BACK = 250

/** Of a batch that is not in the queue. */
const UNWATCHED: Omit<Progress, 'left'> = {
  granted: () => undefined,
  overtaken: () => false,
  sent: () => undefined,
}

/** Runs transactions: each on its own, or those that come together in batches. */
export class TransactionQueue {
  readonly #session: Session
  readonly #batch: Batch
  /** The transactions that run on their own. */
  readonly #order: KeyOrder
  readonly #prefix: string
  readonly #group: GroupOptions | undefined
  readonly #canJoin: boolean
  readonly #waiting: Member[] = []
  /** Whether the newest batch has neither sent its commit nor waited for long. */
  #beginning = false
  /** The next batch, prepared while the last one works, so that its request travels with the commit of that one. */
  #prepared: Prepared | undefined
  #preparing = false
  /** How many were put before those that are being prepared. */
  #putBefore = 0
  #batches = 0
  #begun = 0

  /** @param group undefined: each transaction on its own. */
  constructor(session: Session, values: Values, prefix: string, group: GroupOptions | undefined) {
    this.#session = session
    this.#batch = new Batch(session, values, prefix, group?.maxTime ?? Infinity)
    this.#order = new KeyOrder(session.clock)
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
    // A transaction within a task must not wait for the batch that the task may belong to.
    const runsAlone = !this.#group || member.within !== undefined || member.request.wait === 0
    if (runsAlone || this.#session.deadlocks?.inside()) return void this.#alone(member)
    this.#limit(member)
    this.#waiting.push(member)
    // Transactions of the same tick are to be sent together.
    if (this.#waiting.length === 1) queueMicrotask(() => this.#pump())
  }

  /** Begins a batch unless one is on its way to its commit: later members are better off in a fuller one. */
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
    this.#putBefore = 0
    void this.#batch.prepare(this.#waiting.splice(0, this.#group!.maxSize)).then(prepared => {
      this.#preparing = false
      if (prepared && this.#putBefore > 0) {
        this.#waiting.splice(this.#putBefore, 0, ...this.#batch.unprepare(prepared))
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
    const timer = this.#session.clock.after(KEPT_BACK, next, false)
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

  /** Puts what a batch left over before all later transactions, including those that are being prepared. */
  #putFirst(again: readonly Member[]): void {
    if (again.length === 0) return
    for (const member of again) this.#limit(member)
    const later = this.#prepared ? this.#batch.unprepare(this.#prepared) : []
    this.#prepared = undefined
    this.#waiting.unshift(...again, ...later)
    this.#putBefore += again.length
  }

  /** Lets a member's own wait and signal end its wait, from the call until its function begins. */
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
      const turn = this.#order.take(prepared.queue.keys)
      const progress = {
        ...UNWATCHED,
        left: (members: readonly Member[]) => (again = members),
        sent: turn.end,
      }
      // One in a task must not wait for others, which may wait for that task.
      const before = this.#session.deadlocks?.inside() ? undefined : turn.before
      const alone = await this.#batch.run(prepared, progress, before)
      turn.end()
      left = [...again, ...alone]
    }
  }
}

import type { Session } from '../session.js'
import { Batch, type Member } from './batch.js'

/** How transactions of one process may share locks and a commit. */
export interface GroupOptions {
  /** At most so many together. */
  readonly most: number
  /** A batch commits when its functions have taken so long: milliseconds. */
  readonly within: number
}

/** So many batches may be under way: the next takes its locks while the last waits for the disk. */
const BATCHES = 2

/** Runs transactions: each on its own, or those that come together in batches. */
export class TransactionQueue {
  readonly #session: Session
  readonly #batch: Batch
  readonly #group: GroupOptions | undefined
  readonly #waiting: Member[] = []
  #running = 0

  /** @param group undefined: each transaction on its own. */
  constructor(session: Session, prefix: string, group: GroupOptions | undefined) {
    this.#session = session
    this.#batch = new Batch(session, prefix, group?.within ?? Infinity)
    this.#group = group
  }

  add(member: Member): void {
    // A transaction within a task must not wait for the batch that the task may belong to.
    if (!this.#group || member.ask.wait === 0 || this.#session.frames?.inside())
      return void this.#alone(member)
    this.#waiting.push(member)
    // What this tick brings shall travel together.
    if (this.#waiting.length === 1) queueMicrotask(() => this.#pump())
  }

  #pump(): void {
    const group = this.#group!
    while (this.#running < BATCHES && this.#waiting.length > 0) {
      this.#running++
      void this.#together(this.#waiting.splice(0, group.most))
    }
  }

  async #together(members: readonly Member[]): Promise<void> {
    let under = true
    const next = (): void => {
      if (!under) return
      under = false
      this.#running--
      this.#pump()
    }
    const { again, alone } = await this.#batch.run(members, next)
    this.#waiting.unshift(...again)
    for (const member of alone) await this.#alone(member)
    next()
    this.#pump()
  }

  async #alone(member: Member): Promise<void> {
    let left: readonly Member[] = [member]
    while (left.length > 0) {
      const { again, alone } = await this.#batch.run(left, () => undefined)
      left = [...again, ...alone]
    }
  }
}

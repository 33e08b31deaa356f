import { ConflictError, LostError, SignalboxError, type Store } from 'signalbox'
import { START_BALANCE } from '../check/money.js'
import type { Account, Transfer } from '../history.js'
import { PATIENCE } from '../locks/locks.js'
import { systemClock } from '../../../src/clock.js'
import { ACCOUNTS } from '../protocol.js'
import type { Random } from '../../../src/conformance/random.js'
import type { Link } from './link.js'

const MOST_MONEY = 20
/** So many deliveries of one transfer are tried when answers are lost. */
const DELIVERIES = 3

/** Moves money from one account to another, in one transaction. */
export class Transferring {
  readonly #who: string
  readonly #lease: number
  readonly #store: Store
  readonly #link: Link
  readonly #random: Random

  constructor(who: string, lease: number, store: Store, link: Link, random: Random) {
    this.#who = who
    this.#lease = lease
    this.#store = store
    this.#link = link
    this.#random = random
  }

  async once(): Promise<void> {
    const [from, to] = this.#random.some(ACCOUNTS, 2) as [string, string]
    const amount = 1 + this.#random.below(MOST_MONEY)
    const transfer = { who: this.#who, id: `${this.#who} ${this.#link.nextCall()}`, from, to, amount }
    // Messages come twice, at once or one after the other.
    const twice = this.#random.below(5) === 0
    await Promise.all(Array.from({ length: twice ? 2 : 1 }, () => this.#deliver(transfer)))
  }

  async #deliver(transfer: Omit<Transfer, 'asked'>): Promise<void> {
    for (let delivery = 1; delivery <= DELIVERIES; delivery++) {
      const call = this.#link.nextCall()
      this.#link.tell({ say: 'transfer', call, transfer: { ...transfer, asked: systemClock.now() } })
      const outcome = await this.#attempt(transfer)
      this.#link.tell({ say: 'transferred', call, at: systemClock.now(), ...outcome })
      if (outcome.end !== 'unknown') return
    }
  }

  async #attempt({
    id,
    from,
    to,
    amount,
  }: Omit<Transfer, 'asked'>): Promise<Pick<Transfer, 'end' | 'changes'>> {
    try {
      const outcome = await this.#store.transaction(
        [from, to],
        transaction => {
          const changes: Record<string, number> = {}
          for (const [name, sum] of [
            [from, -amount],
            [to, amount],
          ] as const) {
            const account = transaction.get<Account>(name) ?? { balance: START_BALANCE, changes: 0 }
            changes[name] = account.changes + 1
            transaction.put(name, { balance: account.balance + sum, changes: account.changes + 1 })
          }
          return changes
        },
        { id, lease: this.#lease, wait: PATIENCE * this.#lease },
      )
      return outcome.applied ? { end: 'applied', changes: outcome.result } : { end: 'repeated' }
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error
      if (error.code === 'INDETERMINATE') return { end: 'unknown' }
      if (error instanceof LostError || error instanceof ConflictError) return { end: 'refused' }
      if (error.code === 'UNAVAILABLE' || error.code === 'TIMED_OUT') return { end: 'refused' }
      throw error
    }
  }
}

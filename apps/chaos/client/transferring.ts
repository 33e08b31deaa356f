import { ConflictError, LostError, SignalboxError, type Store } from 'signalbox'
import { START_BALANCE } from '../check/money.js'
import type { Account, Transfer } from '../history.js'
import { PATIENCE } from '../locks/locks.js'
import { systemClock } from 'signalbox/engine'
import { ACCOUNTS } from '../protocol.js'
import type { Random } from 'signalbox-conformance'
import type { Link } from './link.js'

/** A transfer without its outcome. */
type Order = Omit<Transfer, 'asked' | 'settled' | 'end' | 'changes'>

/** Numbers the calls and receives the reports. */
type Reporter = Pick<Link, 'nextCall' | 'report'>

const MAX_MONEY = 20
/** Maximum number of deliveries of a transfer whose answers are lost. */
const DELIVERIES = 3

/** Moves money from one account to another, in one transaction. */
export class Transferring {
  readonly #who: string
  readonly #lease: number
  readonly #store: Store
  readonly #link: Reporter

  constructor(who: string, lease: number, store: Store, link: Reporter) {
    this.#who = who
    this.#lease = lease
    this.#store = store
    this.#link = link
  }

  async once(random: Random): Promise<void> {
    const [from, to] = random.some(ACCOUNTS, 2) as [string, string]
    const amount = 1 + random.below(MAX_MONEY)
    const transfer = { who: this.#who, id: `${this.#who} ${this.#link.nextCall()}`, from, to, amount }
    // Some messages arrive twice.
    const twice = random.below(5) === 0
    await Promise.all(Array.from({ length: twice ? 2 : 1 }, () => this.deliver(transfer)))
  }

  /** Delivers a transfer until an answer shows the outcome, at most {@link DELIVERIES} times. */
  async deliver(transfer: Order): Promise<void> {
    for (let delivery = 1; delivery <= DELIVERIES; delivery++) {
      const call = this.#link.nextCall()
      this.#link.report({ say: 'transfer', call, transfer: { ...transfer, asked: systemClock.now() } })
      const outcome = await this.#attempt(transfer)
      this.#link.report({ say: 'transferred', call, at: systemClock.now(), ...outcome })
      if (outcome.end !== 'unknown') return
    }
  }

  async #attempt({ id, from, to, amount }: Order): Promise<Pick<Transfer, 'end' | 'changes'>> {
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

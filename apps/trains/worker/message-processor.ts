import type { Clock } from '../clock.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Outcome, Read, Transaction } from '../messages/message-type.js'
import type { MessageRegistry } from '../messages/registry.js'
import type { RunStore } from '../run-store.js'
import { failureKind, reasonOf } from './failure.js'

/** How long and how often a message is tried. Durations are milliseconds. */
export interface Limits {
  /** How long one try queues for the locks. */
  readonly lockWait: number
  /** How long the locks outlive a process that has stopped. */
  readonly lease: number
  /** How often an attempt tries to get the locks. */
  readonly lockTries: number
  /** How many attempts a message has. */
  readonly attempts: number
}

/** What finally became of a message. */
export interface Settlement {
  /** The event of its outcome, `already applied`, or `dead-lettered`. */
  readonly event: string
  /** How long it waited until its locks were held, in the try that succeeded, in milliseconds. */
  readonly lockWait: number
  /** Why it could not be applied, where it could not. */
  readonly failure?: string
}

/** The event of a message that was committed before, and delivered again because its acknowledgement was lost. */
export const ALREADY_APPLIED = 'already applied'

/** The event of a message that is given up. */
const DEAD_LETTERED = 'dead-lettered'

/** How long the engine is left alone after it failed, times the number of the attempt, in milliseconds. */
const ENGINE_PAUSE = 100

/**
 * The longest pause before locks are tried again, times the number of the try, where the wait for them isn't shorter:
 * milliseconds. Without a pause the engine would be busy only with attempts that come too late.
 */
const LOCK_PAUSE = 100

/** What the tries of one attempt have come to. */
type Attempt =
  | { readonly settlements: readonly Settlement[] }
  | { readonly settlements?: undefined; readonly failed: unknown; readonly final: boolean }

/** Applies messages to the store, as often as its limits allow, and logs the outcome of it. */
export class MessageProcessor {
  readonly #store: Pick<RunStore, 'transaction'>
  readonly #registry: MessageRegistry
  readonly #limits: Limits
  readonly #log: Log
  readonly #clock: Clock
  readonly #random: () => number

  /** @param random a number from 0 to below 1: how much of the longest pause is taken between two tries. */
  constructor(
    store: Pick<RunStore, 'transaction'>,
    registry: MessageRegistry,
    limits: Limits,
    log: Log,
    clock: Clock,
    random: () => number = Math.random,
  ) {
    this.#store = store
    this.#registry = registry
    this.#limits = limits
    this.#log = log
    this.#clock = clock
    this.#random = random
  }

  /**
   * Applies messages of one train that follow each other: in one transaction, and if that fails one by one. The messages
   * of a train must not be processed at the same time.
   * @throws what the store throws when it is closed meanwhile: the rest is then neither applied nor given up.
   */
  async process(run: readonly Message[]): Promise<readonly Settlement[]> {
    if (run.length > 1) {
      const { settlements } = await this.#attempt(run, 1, 1)
      if (settlements) return settlements
    }
    const settlements: Settlement[] = []
    for (const message of run) settlements.push(await this.#processOne(message))
    return settlements
  }

  async #processOne(message: Message): Promise<Settlement> {
    const { attempts } = this.#limits
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt([message], attempt, this.#limits.lockTries)
      if (outcome.settlements) return outcome.settlements[0]!
      if (outcome.final || attempt === attempts) {
        const reason = reasonOf(outcome.failed)
        const { id, train } = message
        this.#log.error(DEAD_LETTERED, { message: id, train, attempts: attempt, reason })
        return { event: DEAD_LETTERED, lockWait: 0, failure: reason }
      }
      this.#log.info('retried', { message: message.id, attempt: attempt + 1 })
      if (failureKind(outcome.failed) === 'engine') {
        await this.#clock.sleep(ENGINE_PAUSE * attempt)
      }
    }
  }

  async #attempt(run: readonly Message[], attempt: number, lockTries: number): Promise<Attempt> {
    const { lockWait } = this.#limits
    for (let lockTry = 1; ; lockTry++) {
      try {
        return { settlements: await this.#apply(run, attempt, lockTry) }
      } catch (error) {
        const kind = failureKind(error)
        if (kind === 'closing') throw error
        const about = { message: run[0]!.id, messages: run.length, attempt, lockTry, reason: reasonOf(error) }
        if (kind === 'locks') this.#log.info('not all locks acquired', about)
        else if (kind !== 'final') this.#log.warn(kind === 'engine' ? 'engine failed' : kind, about)
        if (kind === 'locks' && lockTry < lockTries) {
          await this.#clock.sleep(this.#random() * Math.min(lockWait, LOCK_PAUSE) * lockTry)
          continue
        }
        return { failed: error, final: kind === 'final' }
      }
    }
  }

  async #apply(run: readonly Message[], attempt: number, lockTry: number): Promise<readonly Settlement[]> {
    const { lockWait: wait, lease } = this.#limits
    const begun = this.#clock.now()
    let lockedAt = begun
    const outcome = await this.#store.transaction(
      read => this.#keysOf(run, read),
      async transaction => {
        lockedAt = this.#clock.now()
        const outcomes: (Outcome | undefined)[] = []
        for (const message of run) {
          const { id } = message
          if (this.#log.writes('debug')) this.#log.debug('locks acquired', { message: id, attempt, lockTry })
          outcomes.push(transaction.committed(id) ? undefined : await this.#handle(message, transaction))
        }
        return outcomes
      },
      { id: run.map(({ id }) => id), wait, lease },
    )
    const lockWait = lockedAt - begun
    return run.map((message, index) => {
      const done = outcome.applied ? outcome.result[index] : undefined
      if (!done) {
        this.#log.info(ALREADY_APPLIED, { message: message.id, train: message.train })
        return { event: ALREADY_APPLIED, lockWait }
      }
      if (this.#log.writes('info')) this.#logOutcome(message, done, this.#clock.now() - lockedAt)
      return { event: done.event, lockWait }
    })
  }

  /** The keys of all messages, that of their train first. */
  async #keysOf(run: readonly Message[], read: Read): Promise<readonly string[]> {
    const named = await Promise.all(
      run.map(async message => this.#registry.typeOf(message).keys(message, read)),
    )
    return [...new Set(named.flat())]
  }

  /** Handles a message with the keys that it names itself: alone, it would have no others. */
  async #handle(message: Message, transaction: Transaction): Promise<Outcome> {
    const type = this.#registry.typeOf(message)
    const keys = await type.keys(message, async key => transaction.get(key))
    const named = (key: string): string => {
      if (!keys.includes(key))
        throw new Error(`${key} is not a key of the message; its keys are ${keys.join(', ')}`)
      return key
    }
    return type.handle(message, {
      get: key => transaction.get(named(key)),
      put: (key, value) => transaction.put(named(key), value),
      delete: key => transaction.delete(named(key)),
    })
  }

  #logOutcome(message: Message, { event, details }: Outcome, held: number): void {
    this.#log.debug('locks released', { message: message.id, held: Math.round(held * 1000) / 1000 })
    this.#log.info(event, { message: message.id, train: message.train, ...details })
  }
}

import type { Clock } from '../clock.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Outcome, Read, Transaction } from '../messages/message-type.js'
import type { MessageRegistry } from '../messages/registry.js'
import type { TrainStore } from '../store.js'
import { failureKind, reasonOf } from './failure.js'
import { NamedKeys } from './named-keys.js'

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
  /** How long it waited until its locks were held, in the try that succeeded: milliseconds. */
  readonly lockWait: number
  /** Why it could not be applied, where it could not. */
  readonly failure?: string
}

/** The event of a message that was committed before, and delivered again because nobody had heard of it. */
export const ALREADY_APPLIED = 'already applied'

/** The event of a message that is given up. */
const DEAD_LETTERED = 'dead-lettered'

/** How long the engine is left alone after it failed, times the number of the attempt: milliseconds. */
const ENGINE_PAUSE = 100

/**
 * The longest pause before locks are tried again, times the number of the try, where the wait for them isn't shorter:
 * milliseconds. Without a pause those who are too late every time would be all that the engine is busy with.
 */
const LOCK_PAUSE = 100

/** What the tries of one attempt have come to. */
type Attempt =
  | { readonly settled: readonly Settlement[] }
  | { readonly settled?: undefined; readonly failed: unknown; readonly final: boolean }

/** Applies one message at a time to the store, as often as its limits allow, and logs what became of it. */
export class MessageProcessor {
  readonly #store: TrainStore
  readonly #registry: MessageRegistry
  readonly #limits: Limits
  readonly #log: Log
  readonly #clock: Clock
  readonly #random: () => number

  /** @param random a number from 0 to below 1: how much of the longest pause is taken between two tries. */
  constructor(
    store: TrainStore,
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
   * Applies messages of one train that follow each other, together if that goes through at once, else one by one. Those
   * of other trains may be applied at the same time.
   * @throws what the store says when it is closed meanwhile: the rest is then neither applied nor given up.
   */
  async process(run: readonly Message[]): Promise<readonly Settlement[]> {
    if (run.length > 1) {
      const { settled } = await this.#attempt(run, 1, 1)
      if (settled) return settled
    }
    const settlements: Settlement[] = []
    for (const message of run) settlements.push(await this.#processOne(message))
    return settlements
  }

  async #processOne(message: Message): Promise<Settlement> {
    const { attempts } = this.#limits
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt([message], attempt, this.#limits.lockTries)
      if (outcome.settled) return outcome.settled[0]!
      if (outcome.final || attempt === attempts) {
        const reason = reasonOf(outcome.failed)
        this.#log.error(DEAD_LETTERED, {
          message: message.id,
          train: message.train,
          attempts: attempt,
          reason,
        })
        return { event: DEAD_LETTERED, lockWait: 0, failure: reason }
      }
      this.#log.info('retried', { message: message.id, attempt: attempt + 1 })
      if (failureKind(outcome.failed) === 'engine') {
        await this.#clock.sleep(ENGINE_PAUSE * attempt, NEVER)
      }
    }
  }

  async #attempt(run: readonly Message[], attempt: number, lockTries: number): Promise<Attempt> {
    const { lockWait } = this.#limits
    for (let lockTry = 1; ; lockTry++) {
      try {
        return { settled: await this.#apply(run, attempt, lockTry) }
      } catch (error) {
        const kind = failureKind(error)
        const about = { message: run[0]!.id, run: run.length, attempt, lockTry, reason: reasonOf(error) }
        switch (kind) {
          case 'closing':
            throw error
          case 'locks':
            this.#log.info('not all locks acquired', about)
            if (lockTry === lockTries) break
            await this.#clock.sleep(this.#random() * Math.min(lockWait, LOCK_PAUSE) * lockTry, NEVER)
            continue
          case 'conflict':
            this.#log.warn('conflict', about)
            break
          case 'engine':
            this.#log.warn('engine failed', about)
            break
          case 'final':
            break
        }
        return { failed: error, final: kind === 'final' }
      }
    }
  }

  async #apply(run: readonly Message[], attempt: number, lockTry: number): Promise<readonly Settlement[]> {
    const { lockWait: wait, lease } = this.#limits
    const begun = this.#clock.now()
    let lockedAt = begun
    const transaction = await this.#store.transaction(
      read => this.#keysOf(run, read),
      async values => {
        lockedAt = this.#clock.now()
        const outcomes: (Outcome | undefined)[] = []
        for (const message of run) {
          if (this.#log.writes('debug')) {
            this.#log.debug('locks acquired', { message: message.id, attempt, lockTry })
          }
          outcomes.push(values.committed(message.id) ? undefined : await this.#handle(message, run, values))
        }
        return outcomes
      },
      { ids: run.map(({ id }) => id), wait, lease },
    )
    const lockWait = lockedAt - begun
    return run.map((message, index) => {
      const outcome = transaction.applied ? transaction.result[index] : undefined
      if (!outcome) {
        this.#log.info(ALREADY_APPLIED, { message: message.id, train: message.train })
        return { event: ALREADY_APPLIED, lockWait }
      }
      if (this.#log.writes('info')) this.#logOutcome(message, outcome, this.#clock.now() - lockedAt)
      return { event: outcome.event, lockWait }
    })
  }

  /** The keys of all messages, the train's first. What one finds by reading may be what another before it writes. */
  async #keysOf(run: readonly Message[], read: Read): Promise<readonly string[]> {
    const keys = new Set<string>()
    for (const message of run) {
      for (const key of await this.#registry.typeOf(message).keys(message, read)) keys.add(key)
    }
    return [...keys]
  }

  async #handle(message: Message, run: readonly Message[], values: Transaction): Promise<Outcome> {
    const type = this.#registry.typeOf(message)
    if (run.length === 1) return type.handle(message, values)
    const keys = await type.keys(message, async key => values.get(key))
    return type.handle(message, new NamedKeys(values, keys))
  }

  #logOutcome(message: Message, { event, details }: Outcome, held: number): void {
    this.#log.debug('locks released', { message: message.id, held: Math.round(held * 1000) / 1000 })
    this.#log.info(event, { message: message.id, train: message.train, ...details })
  }
}

const NEVER = new AbortController().signal

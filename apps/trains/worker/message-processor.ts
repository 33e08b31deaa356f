import type { Clock } from '../clock.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Outcome } from '../messages/message-type.js'
import type { MessageRegistry } from '../messages/registry.js'
import type { TrainStore } from '../store.js'
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

/** What the tries of one attempt have come to. */
type Attempt = { readonly settled: Settlement } | { readonly failed: unknown; readonly final: boolean }

/** Applies one message at a time to the store, as often as its limits allow, and logs what became of it. */
export class MessageProcessor {
  readonly #store: TrainStore
  readonly #registry: MessageRegistry
  readonly #limits: Limits
  readonly #log: Log
  readonly #clock: Clock

  constructor(store: TrainStore, registry: MessageRegistry, limits: Limits, log: Log, clock: Clock) {
    this.#store = store
    this.#registry = registry
    this.#limits = limits
    this.#log = log
    this.#clock = clock
  }

  /**
   * Applies a message. Many may be applied at the same time, but those of one train only one after the other.
   * @throws what the store says when it is closed meanwhile: the message is then neither applied nor given up.
   */
  async process(message: Message): Promise<Settlement> {
    const { attempts } = this.#limits
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(message, attempt)
      if ('settled' in outcome) return outcome.settled
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

  async #attempt(message: Message, attempt: number): Promise<Attempt> {
    const { lockTries } = this.#limits
    for (let lockTry = 1; ; lockTry++) {
      try {
        return { settled: await this.#apply(message, attempt, lockTry) }
      } catch (error) {
        const kind = failureKind(error)
        const about = { message: message.id, attempt, lockTry, reason: reasonOf(error) }
        switch (kind) {
          case 'closing':
            throw error
          case 'locks':
            this.#log.info('not all locks acquired', about)
            if (lockTry < lockTries) continue
            break
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

  async #apply(message: Message, attempt: number, lockTry: number): Promise<Settlement> {
    const type = this.#registry.typeOf(message)
    const { lockWait: wait, lease } = this.#limits
    const begun = this.#clock.now()
    let lockedAt = begun
    const transaction = await this.#store.transaction(
      read => type.keys(message, read),
      values => {
        lockedAt = this.#clock.now()
        this.#log.debug('locks acquired', { message: message.id, attempt, lockTry })
        return type.handle(message, values)
      },
      { id: message.id, wait, lease },
    )
    const lockWait = lockedAt - begun
    if (!transaction.applied) {
      this.#log.info(ALREADY_APPLIED, { message: message.id, train: message.train })
      return { event: ALREADY_APPLIED, lockWait }
    }
    if (this.#log.writes('info')) this.#logOutcome(message, transaction.result, this.#clock.now() - lockedAt)
    return { event: transaction.result.event, lockWait }
  }

  #logOutcome(message: Message, { event, details }: Outcome, held: number): void {
    this.#log.debug('locks released', { message: message.id, held: Math.round(held * 1000) / 1000 })
    this.#log.info(event, { message: message.id, train: message.train, ...details })
  }
}

const NEVER = new AbortController().signal

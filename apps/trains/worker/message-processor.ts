import type { TransactionPart } from 'signalbox'
import type { Clock } from '../clock.js'
import { trainKey } from '../domain/train.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Outcome, Read, Transaction } from '../messages/message-type.js'
import type { MessageRegistry } from '../messages/registry.js'
import { reasonOf } from '../reason.js'
import type { RunStore } from '../run-store.js'
import { failureKind, RunAbortedError } from './failure.js'

/** Limits of the tries and attempts of a message. Durations are in milliseconds. */
export interface Limits {
  /** Maximum time that a try waits for the locks. */
  readonly lockWait: number
  /** Time that the locks outlive a process that stopped. */
  readonly lease: number
  /** Maximum number of tries to acquire the locks in an attempt. */
  readonly lockTries: number
  readonly attempts: number
}

export interface Settlement {
  /** The event of its outcome, `already applied`, or `dead-lettered`. */
  readonly event: string
  /** Time that the successful try waited for its locks, in milliseconds; 0 if the message was dead-lettered. */
  readonly lockWait: number
  /** The reason if the message was dead-lettered. */
  readonly failure?: string
}

/** The event of a message that was already committed, and delivered again because its acknowledgement was lost. */
export const ALREADY_APPLIED = 'already applied'

const DEAD_LETTERED = 'dead-lettered'

/** Pause after a failure of the engine, in milliseconds; multiplied by the number of the attempt. */
const ENGINE_PAUSE = 100

/**
 * Maximum pause before the next try for the locks, in milliseconds. A shorter wait for the locks replaces it. It is
 * multiplied by the number of the try. Without a pause, the engine would be busy with tries that time out.
 */
const LOCK_PAUSE = 100

/** Thrown to end a transaction that finds its message not committed. */
const NOT_COMMITTED = new Error('not committed')

type Attempt =
  | { readonly settlements: readonly Settlement[] }
  | { readonly settlements?: undefined; readonly failed: unknown; readonly final: boolean }

/** Applies messages to the store, with retries, and logs the outcomes. */
export class MessageProcessor {
  readonly #store: Pick<RunStore, 'transaction'>
  readonly #registry: MessageRegistry
  readonly #limits: Limits
  readonly #log: Log
  readonly #clock: Clock
  readonly #random: () => number

  /** @param random returns a number from 0 to below 1, the fraction of the maximum pause between two tries. */
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
   * Applies messages in one transaction, those of each train in their order. If that fails, uses one transaction for
   * each train, and if one of these fails, one for each of its messages. A train's messages must not be processed
   * concurrently.
   * @throws the store's error if it is closed meanwhile; RunAbortedError. The remaining messages are then neither
   * applied nor dead-lettered.
   */
  async process(run: readonly Message[]): Promise<readonly Settlement[]> {
    if (run.length > 1) {
      const { settlements } = await this.#attempt(run, 1, 1)
      if (settlements) return settlements
      const trains = [...new Set(run.map(({ train }) => train))]
      if (trains.length > 1) return this.#processApart(run, trains)
    }
    const settlements: Settlement[] = []
    for (const message of run) settlements.push(await this.#processOne(message))
    return settlements
  }

  async #processApart(run: readonly Message[], trains: readonly string[]): Promise<readonly Settlement[]> {
    const settled = new Map<Message, Settlement>()
    await Promise.all(
      trains.map(async name => {
        const own = run.filter(({ train }) => train === name)
        const settlements = await this.process(own)
        for (const [index, message] of own.entries()) settled.set(message, settlements[index]!)
      }),
    )
    return run.map(message => settled.get(message)!)
  }

  async #processOne(message: Message): Promise<Settlement> {
    const { attempts } = this.#limits
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt([message], attempt, this.#limits.lockTries)
      if (outcome.settlements) return outcome.settlements[0]!
      if (outcome.final || attempt === attempts) {
        if (!outcome.final && (await this.#isCommitted(message))) return this.#alreadyApplied(message, 0)
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
        if (kind === 'ending') throw error
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
    let named: readonly (readonly string[])[] = []
    const outcome = await this.#store.transaction(
      async read => {
        named = await this.#keysOf(run, read)
        return [...new Set(named.flat())]
      },
      async transaction => {
        lockedAt = this.#clock.now()
        const outcomes: (Outcome | undefined)[] = []
        for (const message of run) {
          const { id } = message
          if (this.#log.writes('debug')) this.#log.debug('locks acquired', { message: id, attempt, lockTry })
          if (transaction.committed(id)) outcomes.push(undefined)
          else {
            const keys = run.length > 1 ? await this.#keysNow(message, transaction) : named[0]!
            outcomes.push(this.#handle(message, keys, transaction))
          }
        }
        return outcomes
      },
      { id: run.map(idOf), wait, lease },
    )
    const lockWait = lockedAt - begun
    return run.map((message, index) => {
      const done = outcome.applied ? outcome.result[index] : undefined
      if (!done) return this.#alreadyApplied(message, lockWait)
      if (this.#log.writes('info')) {
        const held = Math.round((this.#clock.now() - lockedAt) * 1000) / 1000
        this.#log.debug('locks released', { message: message.id, held })
        this.#log.info(done.event, { message: message.id, train: message.train, ...done.details })
      }
      return { event: done.event, lockWait }
    })
  }

  /**
   * Whether a message is committed although it failed: by an attempt that got no reply, or by a worker that died before
   * it acknowledged the message.
   * @throws RunAbortedError if this can't be determined.
   */
  async #isCommitted(message: Message): Promise<boolean> {
    const { lease } = this.#limits
    const id = [idOf(message)]
    const key = () => Promise.resolve([trainKey(message.train)])
    const doNothing = (): never => {
      throw NOT_COMMITTED
    }
    // A worker that died may hold the lock of the train until its lease ends.
    for (let waited = 0; ; waited += LOCK_PAUSE) {
      try {
        // The wait is 0, because a transaction that waits may share a commit, and so wait for the locks of others.
        await this.#store.transaction(key, doNothing, { id, wait: 0, lease })
        return true
      } catch (error) {
        if (error === NOT_COMMITTED) return false
        const kind = failureKind(error)
        if (kind === 'ending') throw error
        if (kind === 'locks' && waited < lease) {
          await this.#clock.sleep(LOCK_PAUSE)
          continue
        }
        const what = `can't find out whether message ${message.id} is committed: ${reasonOf(error)}`
        throw new RunAbortedError(what, { cause: error })
      }
    }
  }

  #alreadyApplied({ id, train }: Message, lockWait: number): Settlement {
    this.#log.info(ALREADY_APPLIED, { message: id, train })
    return { event: ALREADY_APPLIED, lockWait }
  }

  /**
   * Returns the keys of each message, as named before the run. Together they are sufficient for the run: if an earlier
   * message of the same train changes the keys that a message needs, the new ones are among the keys of the earlier
   * message.
   */
  #keysOf(run: readonly Message[], read: Read): Promise<readonly (readonly string[])[]> {
    return Promise.all(run.map(async message => this.#registry.typeOf(message).keys(message, read)))
  }

  /** Returns the keys of a message, given the writes of earlier messages of the run. */
  #keysNow(message: Message, transaction: Transaction): readonly string[] | Promise<readonly string[]> {
    return this.#registry.typeOf(message).keys(message, async key => transaction.get(key))
  }

  /** Handles a message with access to its own keys only, so that it behaves the same in a run as alone. */
  #handle(message: Message, keys: readonly string[], transaction: Transaction): Outcome {
    const named = (key: string): string => {
      if (!keys.includes(key))
        throw new Error(`${key} is not a key of the message; its keys are ${keys.join(', ')}`)
      return key
    }
    return this.#registry.typeOf(message).handle(message, {
      get: key => transaction.get(named(key)),
      put: (key, value) => transaction.put(named(key), value),
      delete: key => transaction.delete(named(key)),
    })
  }
}

/** Returns the ID of a message, to be recorded with its train. */
function idOf({ id, train }: Message): TransactionPart {
  return { id, key: trainKey(train) }
}

import type { Clock } from '../clock.js'
import { trainKey } from '../domain/train.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Outcome, Read, Transaction } from '../messages/message-type.js'
import type { MessageRegistry } from '../messages/registry.js'
import type { PartsTransaction, TrainStore } from '../store.js'
import { failureKind, reasonOf } from './failure.js'
import { KeptValues } from './kept-values.js'
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

/** The event of a message that was committed before, and delivered again because its acknowledgement was lost. */
export const ALREADY_APPLIED = 'already applied'

/** The event of a message that is given up. */
const DEAD_LETTERED = 'dead-lettered'

/** How long the engine is left alone after it failed, times the number of the attempt: milliseconds. */
const ENGINE_PAUSE = 100

/**
 * The longest pause before locks are tried again, times the number of the try, where the wait for them isn't shorter:
 * milliseconds. Without a pause the engine would be busy only with attempts that come too late.
 */
const LOCK_PAUSE = 100

/** How long the messages of one transaction may keep its locks before it is committed: milliseconds. */
const WITHIN = 20

/** Messages of one train that follow each other. */
type Run = readonly Message[]

/** What became of each run's messages, from its first one on: undefined for one that was committed before. */
interface Handled {
  readonly outcomes: readonly (readonly (Outcome | undefined)[])[]
  /** Runs whose next message failed; of others that are not done time was over. */
  readonly failed: ReadonlySet<number>
}

/** What a transaction has come to: of each run the messages that were applied, from its first one on. */
interface Applied {
  readonly settlements: readonly (readonly Settlement[])[]
  readonly failed: ReadonlySet<number>
}

/** What the tries of one attempt have come to. */
type Attempt =
  | { readonly applied: Applied }
  | { readonly applied?: undefined; readonly failed: unknown; readonly final: boolean }

/** Applies messages to the store, as often as its limits allow, and logs what became of it. */
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

  /** Where a message happens, as far as it says so itself. */
  placeOf(message: Message): string | undefined {
    return this.#registry.placeOf(message)
  }

  /**
   * Applies runs of messages, each of one train that follow each other: as many together as go through at once, and
   * what is left of each run one by one. The runs of one train must not be applied at the same time.
   * @param goOn is called when it waits for no locks any more.
   * @returns the settlements of each run.
   * @throws what the store says when it is closed meanwhile: the rest is then neither applied nor given up.
   */
  async process(
    runs: readonly Run[],
    goOn: () => void = () => undefined,
  ): Promise<readonly (readonly Settlement[])[]> {
    const settlements: Settlement[][] = runs.map(() => [])
    const left = (index: number): Run => runs[index]!.slice(settlements[index]!.length)
    let open = runs.map((_, index) => index)
    while (open.length > 1 || (open.length === 1 && left(open[0]!).length > 1)) {
      const together = open
      const { applied } = await this.#attempt(together.map(left), 1, 1, goOn)
      if (!applied) break
      applied.settlements.forEach((some, place) => settlements[together[place]!]!.push(...some))
      open = together.filter((index, place) => left(index).length > 0 && !applied.failed.has(place))
    }
    await Promise.all(
      runs.map(async (_, index) => {
        for (const message of left(index)) settlements[index]!.push(await this.#processOne(message, goOn))
      }),
    )
    return settlements
  }

  async #processOne(message: Message, goOn: () => void): Promise<Settlement> {
    const { attempts } = this.#limits
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt([[message]], attempt, this.#limits.lockTries, goOn)
      if (outcome.applied) return outcome.applied.settlements[0]![0]!
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
        await this.#clock.sleep(ENGINE_PAUSE * attempt)
      }
    }
  }

  async #attempt(
    runs: readonly Run[],
    attempt: number,
    lockTries: number,
    goOn: () => void,
  ): Promise<Attempt> {
    const { lockWait } = this.#limits
    for (let lockTry = 1; ; lockTry++) {
      try {
        return { applied: await this.#apply(runs, attempt, lockTry, goOn) }
      } catch (error) {
        const kind = failureKind(error)
        const messages = runs.reduce((sum, run) => sum + run.length, 0)
        const about = { message: runs[0]![0]!.id, messages, attempt, lockTry, reason: reasonOf(error) }
        switch (kind) {
          case 'closing':
            throw error
          case 'locks':
            this.#log.info('not all locks acquired', about)
            if (lockTry === lockTries) break
            await this.#clock.sleep(this.#random() * Math.min(lockWait, LOCK_PAUSE) * lockTry)
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

  async #apply(runs: readonly Run[], attempt: number, lockTry: number, goOn: () => void): Promise<Applied> {
    const { lockWait: wait, lease } = this.#limits
    const begun = this.#clock.now()
    let lockedAt = begun
    const parts = runs.flatMap(run => run.map(({ id, train }) => ({ id, key: trainKey(train) })))
    const transaction = await this.#store.transaction(
      read => this.#keysOf(runs, read),
      async values => {
        lockedAt = this.#clock.now()
        for (const { id } of parts) {
          if (this.#log.writes('debug')) this.#log.debug('locks acquired', { message: id, attempt, lockTry })
        }
        const handled =
          parts.length === 1 ? this.#handleOne(runs[0]![0]!, values) : await this.#handle(runs, values)
        goOn()
        return handled
      },
      { parts, wait, lease },
    )
    const lockWait = lockedAt - begun
    const settle = (message: Message, outcome: Outcome | undefined): Settlement => {
      if (!outcome) {
        this.#log.info(ALREADY_APPLIED, { message: message.id, train: message.train })
        return { event: ALREADY_APPLIED, lockWait }
      }
      if (this.#log.writes('info')) this.#logOutcome(message, outcome, this.#clock.now() - lockedAt)
      return { event: outcome.event, lockWait }
    }
    if (!transaction.applied) {
      return {
        settlements: runs.map(run => run.map(message => settle(message, undefined))),
        failed: new Set(),
      }
    }
    const { outcomes, failed } = transaction.result
    return {
      settlements: outcomes.map((some, index) =>
        some.map((outcome, place) => settle(runs[index]![place]!, outcome)),
      ),
      failed,
    }
  }

  /** The keys of all messages. What one finds by reading may be what another before it writes. */
  async #keysOf(runs: readonly Run[], read: Read): Promise<readonly string[]> {
    const values = new Map<string, Promise<unknown>>()
    const readOnce = (key: string): Promise<unknown> => {
      let value = values.get(key)
      if (!value) values.set(key, (value = read(key)))
      return value
    }
    const named = await Promise.all(
      runs.flat().map(async message => this.#registry.typeOf(message).keys(message, readOnce)),
    )
    return [...new Set(named.flat())]
  }

  #handleOne(message: Message, values: PartsTransaction): Handled {
    const { id } = message
    const outcome = values.committed(id) ? undefined : this.#registry.typeOf(message).handle(message, values)
    return { outcomes: [[outcome]], failed: new Set() }
  }

  /** Applies message after message. One that fails is left out, and so are those of its train that follow. */
  async #handle(runs: readonly Run[], values: PartsTransaction): Promise<Handled> {
    const until = this.#clock.now() + WITHIN
    const kept = new KeptValues(values)
    const failed = new Set<number>()
    const outcomes: (Outcome | undefined)[][] = []
    for (const [index, run] of runs.entries()) {
      const own: (Outcome | undefined)[] = []
      outcomes.push(own)
      for (const message of run) {
        if (this.#clock.now() >= until && (index > 0 || own.length > 0)) break
        try {
          own.push(values.committed(message.id) ? undefined : await this.#handleAmong(message, kept))
          kept.keep()
        } catch {
          // Tried alone, it says what is wrong.
          kept.takeBack()
          failed.add(index)
          break
        }
      }
      for (const { id } of run.slice(own.length)) values.leaveOut(id)
    }
    kept.write()
    return { outcomes, failed }
  }

  async #handleAmong(message: Message, values: Transaction): Promise<Outcome> {
    const type = this.#registry.typeOf(message)
    const keys = await type.keys(message, async key => values.get(key))
    return type.handle(message, new NamedKeys(values, keys))
  }

  #logOutcome(message: Message, { event, details }: Outcome, held: number): void {
    this.#log.debug('locks released', { message: message.id, held: Math.round(held * 1000) / 1000 })
    this.#log.info(event, { message: message.id, train: message.train, ...details })
  }
}

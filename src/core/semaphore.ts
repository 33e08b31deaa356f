import type { Session } from './session.js'
import { claimSet } from './claims.js'
import type { Grant } from './grant.js'
import { ClaimSetLock, type Lock } from './lock.js'
import { checkOptions } from '../base/options.js'
import { printedAs } from '../base/printed.js'
import { needsReceiver } from '../base/receiver.js'
import type { LockOptions } from './lock-options.js'

/** The size of a semaphore. */
export interface SemaphoreOptions {
  /** The number of permits. All callers of a key must pass the same number while the semaphore is in use. */
  max: number
}

/** Options of a request for permits. */
export interface PermitOptions extends LockOptions {
  /** The number of permits to acquire; default 1. */
  permits?: number | undefined
}

/** Permits that callers acquire and release; several callers can hold some at once. Locked when no permit is free. */
export type Semaphore = Lock<Grant, PermitOptions>

/** Acquires a claim on permits of one key by a {@link ClaimSetLock}. */
class PermitsLock implements Semaphore {
  readonly #session: Session
  readonly #key: string
  readonly #max: number
  readonly #one: ClaimSetLock

  static {
    needsReceiver(this)
    printedAs(this, 'Lock', lock => ({
      kind: 'semaphore',
      key: lock.#key,
      max: lock.#max,
      engine: lock.#session.engine.name,
    }))
  }

  constructor(session: Session, key: string, max: number) {
    this.#session = session
    this.#key = key
    this.#max = max
    this.#one = this.#lock(1)
  }

  async tryAcquire(options?: PermitOptions): Promise<Grant | undefined> {
    const [lock, rest] = this.#split(options)
    return lock.tryAcquire(rest)
  }

  isLocked(): Promise<boolean> {
    return this.#one.isLocked()
  }

  async acquire(options?: PermitOptions): Promise<Grant> {
    const [lock, rest] = this.#split(options)
    return lock.acquire(rest)
  }

  async run<T>(task: (grant: Grant) => T | Promise<T>, options?: PermitOptions): Promise<T> {
    const [lock, rest] = this.#split(options)
    return lock.run(task, rest)
  }

  #split(options: PermitOptions | undefined): [ClaimSetLock, LockOptions | undefined] {
    if (options === undefined) return [this.#one, options]
    if (typeof options !== 'object' || options === null) checkOptions(options, [], '{ permits: 2 }')
    if (!('permits' in options)) return [this.#one, options]
    const { permits = 1, ...rest } = options
    return [permits === 1 ? this.#one : this.#lock(permits), rest]
  }

  #lock(permits: number): ClaimSetLock {
    const claim = { key: this.#key, mode: 'permits', permits, max: this.#max } as const
    return new ClaimSetLock(this.#session, claimSet([claim]), 'semaphore')
  }
}

export function semaphore(session: Session, key: string, options: SemaphoreOptions): Semaphore {
  checkOptions(options, ['max'], '{ max: 4 }')
  return new PermitsLock(session, key, options.max)
}

import {
  AbortedError,
  BusyError,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  SignalboxError,
  TimedOutError,
  shown,
  type Holder,
} from '../errors.js'
import { shortDuration } from '../duration.js'

/** The errors about the locks of one claim set. */
export class LockErrors {
  readonly #noun: string
  readonly #key: string
  readonly #engine: string

  /** @param noun what the caller knows the lock as, such as `mutex`. @param key the keys, as errors name them. */
  constructor(noun: string, key: string, engine: string) {
    this.#noun = noun
    this.#key = key
    this.#engine = engine
  }

  get context(): { key: string; engine: string } {
    return { key: this.#key, engine: this.#engine }
  }

  busy(): BusyError {
    return new BusyError(`${this.#title} is busy`, this.context)
  }

  /** @param wait milliseconds. @param holder the one that is known to hold it, if any. */
  timedOut(wait: number, holder?: Holder): TimedOutError {
    const holds = holder ? `; ${holding(holder)}` : ''
    return new TimedOutError(
      `${this.#title} was not to be had within ${wait} ms${holds}`,
      this.context,
      holder,
    )
  }

  aborted(signal: AbortSignal): AbortedError {
    return new AbortedError(`waiting for ${this.#title} was aborted`, {
      ...this.context,
      cause: signal.reason,
    })
  }

  lostBeforeRelease(): LostError {
    return new LostError(`${this.#title} was lost before it was released`, this.context)
  }

  /** The engine has no transactions of callers'. */
  noFence(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#engine} has no transactions that a grant could be bound to; a resource can compare tokens instead`,
      this.context,
    )
  }

  notExclusive(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#title} has no exclusive key that could be bound to a transaction`,
      this.context,
    )
  }

  notDowngraded(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#title} is not exclusive on all its keys, so it can't be downgraded`,
      this.context,
    )
  }

  /** The key is in use with another number of permits. */
  mismatch(key: string, max: number): InvalidArgumentError {
    return new InvalidArgumentError(
      `the semaphore ${key} is live with ${max} permits, and this caller names another number`,
      { key, engine: this.#engine },
    )
  }

  /** The engine gave an answer that the contract doesn't have. */
  unknownStatus(answer: unknown): IndeterminateError {
    const state = typeof answer === 'object' && answer && 'state' in answer
    return new IndeterminateError(
      `the engine answered ${state ? `the state ${shown(answer.state)}` : shown(answer)}, which is no status`,
      this.context,
    )
  }

  /** What an engine has failed with, as an error of this library. */
  failed(error: unknown): SignalboxError {
    if (error instanceof SignalboxError) return error
    return new IndeterminateError(`the engine failed in a way it should not: ${String(error)}`, {
      ...this.context,
      cause: error,
    })
  }

  get #title(): string {
    return `${this.#noun} ${this.#key} on ${this.#engine}`
  }
}

function holding({ label, host, pid, age }: Holder): string {
  const who = `${label === undefined ? '' : `${shown(label)} on `}${host} (pid ${pid})`
  return age === undefined
    ? `the last holder known is ${who}`
    : `it is held by ${who}, which asked for it ${shortDuration(age)} ago`
}

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
} from '../base/errors.js'
import { shortDuration } from '../base/duration.js'

/** The errors about the locks of one claim set. */
export class LockErrors {
  readonly #noun: string
  readonly #key: string
  readonly #engine: string

  /** @param noun names the kind of lock, such as `mutex`. @param key the keys, as errors name them. */
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

  /** @param wait milliseconds. @param holder the known holder, if any. */
  timedOut(wait: number, holder?: Holder): TimedOutError {
    const holds = holder ? ` (${holderText(holder)})` : ''
    return new TimedOutError(
      `timed out after ${wait} ms waiting for ${this.#title}${holds}`,
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
    return new LostError(`${this.#title} was lost before its release`, this.context)
  }

  /** The engine can't bind a grant to a caller's transaction. */
  cannotFence(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#engine} can't bind a grant to a transaction; let the resource compare fencing tokens instead`,
      this.context,
    )
  }

  notExclusive(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#title} has no exclusive key to bind to a transaction`,
      this.context,
    )
  }

  cannotDowngrade(): InvalidArgumentError {
    return new InvalidArgumentError(
      `${this.#title} is not exclusive on all its keys, so it can't be downgraded`,
      this.context,
    )
  }

  /** The key is in use with a different number of permits. */
  mismatch(key: string, max: number): InvalidArgumentError {
    return new InvalidArgumentError(
      `semaphore ${key} is in use with max ${max}; this caller passed a different max`,
      { key, engine: this.#engine },
    )
  }

  /** The engine's answer is not in the contract. */
  unknownStatus(answer: unknown): IndeterminateError {
    const state = typeof answer === 'object' && answer && 'state' in answer
    return new IndeterminateError(
      `the engine answered with an unknown ${state ? `state ${shown(answer.state)}` : `status ${shown(answer)}`}`,
      this.context,
    )
  }

  /** Wraps an unexpected error of an engine. */
  failed(error: unknown): SignalboxError {
    if (error instanceof SignalboxError) return error
    return new IndeterminateError(`the engine failed with an unexpected error: ${String(error)}`, {
      ...this.context,
      cause: error,
    })
  }

  get #title(): string {
    return `${this.#noun} ${this.#key} on ${this.#engine}`
  }
}

/** Formats a holder: who it is, and for how long it has held. */
export function holderText({ label, host, pid, age }: Holder): string {
  const who = `${label === undefined ? '' : `${shown(label)} on `}${host}, pid ${pid}`
  return age === undefined
    ? `last known holder: ${who}`
    : `held by ${who}, requested ${shortDuration(age)} ago`
}

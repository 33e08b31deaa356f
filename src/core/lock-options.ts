import { milliseconds, type Duration } from '../base/duration.js'
import type { ReadSet } from '../engine/contract.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkOptions, checkSignal, flag } from '../base/options.js'

/** Options of a lock request. */
export interface LockOptions {
  /** Maximum wait; default: no limit. 0: don't wait for another holder or waiter. */
  wait?: Duration | undefined
  /** Time for which the grant lasts without a renewal, 20 ms to a day; default 30 s. See `renew`. */
  lease?: Duration | undefined
  /** Aborts the wait. It does not end a grant. */
  signal?: AbortSignal | undefined
  /** Label that `inspect()` shows with the holder or waiter: 1 to 200 characters. */
  label?: string | undefined
  /** Whether the lease is renewed until the release; default true. */
  renew?: boolean | undefined
  /** Whether a task that already holds these keys by `run` gets a nested grant instead of an error; default false. */
  reentrant?: boolean | undefined
  /**
   * Whether the engine gets a request for this call alone; default false: calls of one box with the same claims share a
   * request and take turns on its grant. With it, calls of a box with different claims are served in the order in which
   * they were made, too, and `inspect()` lists each of them.
   */
  ownRequest?: boolean | undefined
  /**
   * Whether to take the keys from their holders, whose grants are lost, and to pass all that wait for them; default
   * false. For recovery from a holder that does not release. Over memory, files and Redis, but not over a quorum; all
   * claims must be exclusive.
   */
  steal?: boolean | undefined
}

const DEFAULT_LEASE = 30_000
/** The bounds of a lease, in milliseconds. */
export const LEASE_BOUNDS = { min: 20, max: 86_400_000 }
const WAIT_BOUNDS = { min: 0, max: Infinity }
const MAX_LABEL_LENGTH = 200

/** The checked options of a request that its local queue uses; times in milliseconds. */
export interface AcquireTerms {
  readonly wait: number
  readonly lease: number
  readonly renew: boolean
  readonly label: string | undefined
  readonly signal: AbortSignal | undefined
  readonly steal?: boolean | undefined
  /** Whether the caller asked for a nested grant if its task holds the keys. */
  readonly reentrant?: boolean | undefined
  /** Values to read in the same step as the grant. Only in a local queue of its own, because a turn reads nothing. */
  readonly read?: ReadSet | undefined
  /** Settles when the request may be sent to the engine; until then the caller waits in the local queue. */
  readonly before?: Promise<void> | undefined
}

export interface CheckedOptions extends AcquireTerms {
  readonly reentrant: boolean
  readonly ownRequest: boolean
}

const DEFAULTS: CheckedOptions = {
  wait: Infinity,
  lease: DEFAULT_LEASE,
  renew: true,
  label: undefined,
  signal: undefined,
  reentrant: false,
  ownRequest: false,
  steal: false,
}
const NAMES = Object.keys(DEFAULTS)
const TRY_NAMES = NAMES.filter(name => name !== 'wait' && name !== 'signal')

/** @throws InvalidArgumentError that names the option, what it must be, and the value it got. */
export function checkedOptions(options: LockOptions | undefined): CheckedOptions {
  if (options === undefined) return DEFAULTS
  checkOptions(options, NAMES, `{ wait: '5s' }`)
  const { wait, lease, signal, label, renew, reentrant, ownRequest, steal } = options
  checkSignal(signal)
  if (label !== undefined && (typeof label !== 'string' || label === '' || label.length > MAX_LABEL_LENGTH)) {
    throw new InvalidArgumentError(
      `label must be a string of 1 to ${MAX_LABEL_LENGTH} characters, not ${shown(label)}`,
    )
  }
  return {
    wait: wait === undefined ? Infinity : milliseconds('wait', wait, WAIT_BOUNDS),
    lease: lease === undefined ? DEFAULT_LEASE : milliseconds('lease', lease, LEASE_BOUNDS),
    renew: flag('renew', renew, true),
    label,
    signal,
    reentrant: flag('reentrant', reentrant, false),
    ownRequest: flag('ownRequest', ownRequest, false),
    steal: flag('steal', steal, false),
  }
}

/** Checks the options of `tryAcquire`, which has no `wait` and `signal`. @throws as {@link checkedOptions} */
export function checkedTryOptions(options: LockOptions | undefined): CheckedOptions {
  if (options !== undefined) checkOptions(options, TRY_NAMES, `{ lease: '10s' }`)
  return checkedOptions(options)
}

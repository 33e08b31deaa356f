import type { Tenant } from '../base/lane.js'
import { holderText } from '../core/lock-errors.js'
import type { Rules } from './counter.js'
import {
  AbortedError,
  BusyError,
  ClosedError,
  InvalidArgumentError,
  TimedOutError,
  UnavailableError,
  type ErrorContext,
  type Holder,
} from '../base/errors.js'

/** Maximum numbers of waiting callers. */
type QueueLimits = Pick<Rules, 'queue' | 'tenantQueue'>

/** Creates the errors about the permits of one limiter, or of one of its keys. */
export class LimiterErrors {
  readonly #name: string | undefined
  readonly #key: string | undefined
  readonly #engine: string | undefined

  /** @param name undefined for a limiter of this process. @param key undefined for the limiter itself. */
  constructor(name: string | undefined, key?: string, engine?: string) {
    this.#name = name
    this.#key = key
    this.#engine = engine
  }

  busy(): BusyError {
    return this.#busy('')
  }

  /** The error of a caller that does not wait while all permits are in use. @param concurrency maximum number. */
  allInUse(concurrency: number): BusyError {
    return this.#busy(`: its concurrency is ${concurrency}, and all are in use`)
  }

  /**
   * Returns the error of a caller that may not wait, because too many do; undefined if it may.
   * @param callers number of waiting callers. @param ofTenant number of those of its tenant or group.
   */
  queueFull(
    { queue, tenantQueue }: QueueLimits,
    callers: number,
    tenant: Tenant | undefined,
    ofTenant: number,
  ): BusyError | undefined {
    if (callers >= queue) return this.#busy(`, and ${callersAre(queue)} waiting, the maximum of its queue`)
    if (!tenant || ofTenant < tenantQueue) return undefined
    const whose = tenant.group === undefined ? `tenant ${tenant.name}` : `group ${tenant.group}`
    return this.#busy(`, and ${callersAre(tenantQueue)} waiting for ${whose}, the maximum of its tenantQueue`)
  }

  aborted({ reason: cause }: AbortSignal): AbortedError {
    return new AbortedError(`waiting for a permit of ${this.#title} was aborted`, { ...this.#context, cause })
  }

  timedOut(wait: number): TimedOutError {
    return new TimedOutError(this.#lateAfter(wait), this.#context)
  }

  /**
   * The error of a wait in which no permit in use was released.
   * @param wait milliseconds. @param concurrency maximum number of permits in use. @param holder a known holder.
   */
  timedOutInUse(wait: number, concurrency: number, holder: Holder | undefined): TimedOutError {
    const holds = holder ? ` (${holderText(holder)})` : ''
    return new TimedOutError(
      `${this.#lateAfter(wait)}: its concurrency is ${concurrency}, and all are in use${holds}`,
      this.#context,
      holder,
    )
  }

  /** The error of a wait that has passed while the engine was unreachable. @param wait milliseconds. */
  unreachable(wait: number, cause: Error): UnavailableError {
    return new UnavailableError(`${this.#lateAfter(wait)}, because the engine can't be reached`, {
      ...this.#context,
      cause,
    })
  }

  /**
   * The error of a caller whose turn would come after its wait.
   * @param wait maximum wait, in milliseconds. @param turn time until its turn, in milliseconds.
   * @param ahead number of callers ahead, if it is known.
   */
  tooLate(wait: number, turn: number, ahead?: number): TimedOutError {
    const callers = ahead ? `${callersAre(ahead)} ahead, ` : ''
    const earliest = `its turn would be in ${Math.ceil(turn)} ms at the earliest`
    const late = `can't get a permit of ${this.#title} within ${Math.ceil(wait)} ms`
    return new TimedOutError(`${late}: ${callers}${earliest}`, this.#context)
  }

  /** @param excess the limit and the cost. */
  lowered([max, wanted]: readonly [max: number, wanted: string]): InvalidArgumentError {
    return new InvalidArgumentError(
      `the limit of ${this.#title} was lowered to ${max} while a caller waited for ${wanted}`,
      this.#context,
    )
  }

  closed(): ClosedError {
    return new ClosedError(`${this.#title} was closed`, this.#context)
  }

  #busy(why: string): BusyError {
    return new BusyError(`no permit of ${this.#title} is available now${why}`, this.#context)
  }

  get #context(): ErrorContext {
    const names = [this.#name, this.#key].filter(name => name !== undefined)
    return { key: names.length === 0 ? undefined : names.join(', '), engine: this.#engine }
  }

  get #title(): string {
    const limiter = this.#name === undefined ? 'a limiter of this process' : `limiter ${this.#name}`
    const whole = this.#key === undefined ? limiter : `key ${this.#key} of ${limiter}`
    return this.#engine === undefined ? whole : `${whole} on ${this.#engine}`
  }

  #lateAfter(wait: number): string {
    return `timed out after ${Math.ceil(wait)} ms waiting for a permit of ${this.#title}`
  }
}

function callersAre(count: number): string {
  return count === 1 ? '1 caller is' : `${count} callers are`
}

import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import type {
  GrantedEvent,
  LimitEvent,
  LockEvent,
  LockRefusedEvent,
  LostEvent,
  PermittedEvent,
  RefusedEvent,
  ReleasedEvent,
  ReleaseFailedEvent,
  StoreEvent,
  TransactionEvent,
  WriteEvent,
} from '../diagnostics.js'
import { outcomeOf } from './outcome.js'

/** Seconds: from hand-overs within a process to leases. */
const BOUNDARIES = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300]

/** What locks, limits and stores tell, as counters and histograms. */
export class Metrics {
  readonly #lockName: (keys: readonly string[]) => string | undefined
  readonly #requests: Counter
  readonly #losses: Counter
  readonly #releaseFailures: Counter
  readonly #wait: Histogram
  readonly #hold: Histogram
  readonly #permits: Counter
  readonly #pauses: Counter
  readonly #limitWait: Histogram
  readonly #transaction: Histogram
  readonly #write: Histogram

  constructor(meter: Meter, lockName: (keys: readonly string[]) => string | undefined) {
    this.#lockName = lockName
    this.#requests = meter.createCounter('signalbox.lock.requests', {
      description: 'Requests for locks; each ends with one wait',
      unit: '{request}',
    })
    this.#losses = meter.createCounter('signalbox.lock.losses', {
      description: 'Grants that were lost before they were released',
      unit: '{grant}',
    })
    this.#releaseFailures = meter.createCounter('signalbox.lock.release.failures', {
      description: 'Releases that the engine did not answer; the lease ends what they could not give back',
      unit: '{release}',
    })
    this.#permits = meter.createCounter('signalbox.limit.permits', {
      description: 'Calls that limits have let through',
      unit: '{call}',
    })
    this.#pauses = meter.createCounter('signalbox.limit.pauses', {
      description: 'Times that callers were held off until a named time',
      unit: '{pause}',
    })
    // The unit is part of the name, because some exporters to Prometheus add it and others don't.
    const advice = { explicitBucketBoundaries: BOUNDARIES }
    const seconds = (name: string, description: string): Histogram =>
      meter.createHistogram(`signalbox.${name}.seconds`, { description, unit: 's', advice })
    this.#wait = seconds('lock.wait', 'From a request to its grant, or to its refusal')
    this.#hold = seconds(
      'lock.hold',
      'From a grant to its end: its release, also one that failed, or its loss',
    )
    this.#limitWait = seconds('limit.wait', 'From a request to its permit, or to its refusal')
    this.#transaction = seconds('store.transaction', 'From the call of a transaction to its end')
    this.#write = seconds('store.write', 'From the call of a single write to its end')
  }

  requested(event: LockEvent): void {
    this.#requests.add(1, this.#attributes(event))
  }

  granted(event: GrantedEvent): void {
    this.#waited(event, 'granted')
  }

  lockRefused(event: LockRefusedEvent): void {
    this.#waited(event, outcomeOf(event.error))
  }

  released(event: ReleasedEvent): void {
    this.#ended(event)
  }

  releaseFailed(event: ReleaseFailedEvent): void {
    this.#ended(event)
    this.#releaseFailures.add(1, this.#attributes(event))
  }

  lost(event: LostEvent): void {
    this.#ended(event)
    this.#losses.add(1, this.#attributes(event))
  }

  permitted(event: PermittedEvent): void {
    const attributes = limitAttributes(event)
    this.#permits.add(event.n, attributes)
    this.#limitWait.record(event.waited / 1000, { ...attributes, 'signalbox.outcome': 'permitted' })
  }

  refused(event: RefusedEvent): void {
    const attributes = { ...limitAttributes(event), 'signalbox.outcome': outcomeOf(event.error) }
    this.#limitWait.record(event.waited / 1000, attributes)
  }

  paused(event: LimitEvent): void {
    this.#pauses.add(1, limitAttributes(event))
  }

  transaction(event: TransactionEvent): void {
    this.#transaction.record(event.took / 1000, storeAttributes(event))
  }

  write(event: WriteEvent): void {
    this.#write.record(event.took / 1000, { ...storeAttributes(event), 'signalbox.verb': event.verb })
  }

  #ended(event: ReleasedEvent): void {
    this.#hold.record(event.held / 1000, this.#attributes(event))
  }

  #waited(event: GrantedEvent | LockRefusedEvent, outcome: string): void {
    const attributes = this.#attributes(event)
    attributes['signalbox.outcome'] = outcome
    this.#wait.record(event.waited / 1000, attributes)
  }

  #attributes({ engine, keys }: LockEvent): Attributes {
    const attributes: Attributes = { 'signalbox.engine': engine }
    const name = this.#lockName(keys)
    if (name !== undefined) attributes['signalbox.lock'] = name
    return attributes
  }
}

function limitAttributes({ engine, limiter }: LimitEvent): Attributes {
  return { 'signalbox.engine': engine, 'signalbox.limiter': limiter }
}

function storeAttributes({ engine, store, outcome, error }: StoreEvent & { outcome: string }): Attributes {
  const ended = outcome === 'failed' ? outcomeOf(error) : outcome
  return { 'signalbox.engine': engine, 'signalbox.store': store, 'signalbox.outcome': ended }
}

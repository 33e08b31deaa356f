import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import type { GrantedEvent, LockEvent, LostEvent, ReleasedEvent, TimedOutEvent } from '../diagnostics.js'

/** Seconds: from hand-overs within a process to leases. */
const BOUNDARIES = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300]

/** What locks tell, as counters and histograms. */
export class LockMetrics {
  readonly #lockName: (keys: readonly string[]) => string | undefined
  readonly #requests: Counter
  readonly #losses: Counter
  readonly #wait: Histogram
  readonly #hold: Histogram

  constructor(meter: Meter, lockName: (keys: readonly string[]) => string | undefined) {
    this.#lockName = lockName
    this.#requests = meter.createCounter('signalbox.lock.requests', {
      description: 'Requests for locks that were willing to wait',
      unit: '{request}',
    })
    this.#losses = meter.createCounter('signalbox.lock.losses', {
      description: 'Grants that were lost before they were released',
      unit: '{grant}',
    })
    // The unit is part of the name, because some exporters to Prometheus add it and others don't.
    const advice = { explicitBucketBoundaries: BOUNDARIES }
    this.#wait = meter.createHistogram('signalbox.lock.wait.seconds', {
      description: 'From a request to its grant, or to the end of its wait',
      unit: 's',
      advice,
    })
    this.#hold = meter.createHistogram('signalbox.lock.hold.seconds', {
      description: 'From a grant to its release',
      unit: 's',
      advice,
    })
  }

  requested(event: LockEvent): void {
    this.#requests.add(1, this.#attributes(event))
  }

  granted(event: GrantedEvent): void {
    this.#waited(event, 'granted')
  }

  timedOut(event: TimedOutEvent): void {
    this.#waited(event, 'timed out')
  }

  released(event: ReleasedEvent): void {
    this.#hold.record(event.held / 1000, this.#attributes(event))
  }

  lost(event: LostEvent): void {
    this.#losses.add(1, this.#attributes(event))
  }

  #waited(event: GrantedEvent | TimedOutEvent, outcome: string): void {
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

import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from '@opentelemetry/api'
import type {
  BoxEvent,
  BoxStateEvent,
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
} from '../base/diagnostics.js'
import { outcomeOf } from './outcome.js'

/** Boundaries of the histograms, in seconds: from hand-overs within a process to leases. */
const BOUNDARIES = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300]

const ELECTION = 'election:'

export class Metrics {
  readonly #lockName: (keys: readonly string[]) => string | undefined
  readonly #boxes: UpDownCounter
  /** The state of each box that is open, by session. */
  readonly #states = new Map<string, Attributes>()
  readonly #waiters: UpDownCounter
  /** The waiting requests, except those from before there was a listener. */
  readonly #waiting = new Map<LockEvent, Attributes>()
  readonly #holders: UpDownCounter
  readonly #leaders: UpDownCounter
  /** Grants in use that were counted, by session, token and key. */
  readonly #held = new Map<string, LockEvent>()
  readonly #requests: Counter
  readonly #losses: Counter
  readonly #releaseFailures: Counter
  readonly #wait: Histogram
  readonly #holdTime: Histogram
  readonly #permits: Counter
  readonly #pauses: Counter
  readonly #limitWait: Histogram
  readonly #transaction: Histogram
  readonly #write: Histogram

  constructor(meter: Meter, lockName: (keys: readonly string[]) => string | undefined) {
    this.#lockName = lockName
    const gauge = (name: string, unit: string, description: string): UpDownCounter =>
      meter.createUpDownCounter(`signalbox.${name}`, { description, unit: `{${unit}}` })
    const counter = (name: string, unit: string, description: string): Counter =>
      meter.createCounter(`signalbox.${name}`, { description, unit: `{${unit}}` })
    this.#boxes = gauge('box.states', 'box', 'Open boxes, by what is known of their engine')
    this.#waiters = gauge('lock.waiters', 'request', 'Requests of this process that wait for a lock')
    this.#holders = gauge('lock.holders', 'grant', 'Grants of this process that are in use')
    this.#leaders = gauge('election.leaders', 'leader', 'Elections that this process leads')
    this.#requests = counter('lock.requests', 'request', 'Requests for locks; each ends with one wait')
    this.#losses = counter('lock.losses', 'grant', 'Grants that were lost before they were released')
    this.#releaseFailures = counter(
      'lock.release.failures',
      'release',
      'Releases that the engine did not answer; the lease ends what they could not give back',
    )
    this.#permits = counter('limit.permits', 'call', 'Calls that limits have let through')
    this.#pauses = counter('limit.pauses', 'pause', 'Times that callers were held off until a named time')
    // The unit is part of the name, because some exporters to Prometheus add it and others don't.
    const advice = { explicitBucketBoundaries: BOUNDARIES }
    const seconds = (name: string, description: string): Histogram =>
      meter.createHistogram(`signalbox.${name}.seconds`, { description, unit: 's', advice })
    this.#wait = seconds('lock.wait', 'From a request to its grant, or to its refusal')
    this.#holdTime = seconds(
      'lock.hold',
      'From a grant to its end: its release, also one that failed, or its loss',
    )
    this.#limitWait = seconds('limit.wait', 'From a request to its permit, or to its refusal')
    this.#transaction = seconds('store.transaction', 'From the call of a transaction to its end')
    this.#write = seconds('store.write', 'From the call of a single write to its end')
  }

  /** Subtracts everything that is still counted, because nothing will report its end. */
  end(): void {
    for (const state of this.#states.values()) this.#boxes.add(-1, state)
    for (const attributes of this.#waiting.values()) this.#waiters.add(-1, attributes)
    for (const event of this.#held.values()) this.#hold(-1, event)
    for (const counted of [this.#states, this.#waiting, this.#held]) counted.clear()
  }

  boxState({ engine, session, status }: BoxStateEvent): void {
    const before = this.#states.get(session)
    if (before) this.#boxes.add(-1, before)
    this.#states.delete(session)
    if (status === 'closed') return
    const now = { 'signalbox.engine': engine, 'signalbox.status': status }
    this.#states.set(session, now)
    this.#boxes.add(1, now)
  }

  requested(event: LockEvent): void {
    const attributes = this.#attributes(event)
    this.#requests.add(1, attributes)
    this.#waiting.set(event, attributes)
    this.#waiters.add(1, attributes)
  }

  granted(event: GrantedEvent): void {
    this.#waited(event, 'granted')
    this.#held.set(grantOf(event), event)
    this.#hold(1, event)
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
    this.#holdTime.record(event.held / 1000, this.#attributes(event))
    if (this.#held.delete(grantOf(event))) this.#hold(-1, event)
  }

  #hold(change: 1 | -1, event: LockEvent): void {
    this.#holders.add(change, this.#attributes(event))
    const election = electionOf(event)
    if (election === undefined) return
    this.#leaders.add(change, { 'signalbox.engine': event.engine, 'signalbox.election': election })
  }

  #waited(event: GrantedEvent | LockRefusedEvent, outcome: string): void {
    const attributes = this.#attributes(event)
    if (event.request && this.#waiting.delete(event.request)) this.#waiters.add(-1, { ...attributes })
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

/** Identifies a grant: engines number the grants of each key separately. */
function grantOf({ session, keys, token }: BoxEvent & { keys: readonly string[]; token: bigint }): string {
  return JSON.stringify([session, String(token), keys[0]])
}

/** The name of the election that the holder leads. Callers that wait for its end have shared claims. */
function electionOf({ keys: [key], modes: [mode] }: LockEvent): string | undefined {
  return mode === 'exclusive' && key?.startsWith(ELECTION) ? key.slice(ELECTION.length) : undefined
}

function limitAttributes({ engine, limiter }: LimitEvent): Attributes {
  return { 'signalbox.engine': engine, 'signalbox.limiter': limiter }
}

function storeAttributes({ engine, store, outcome, error }: StoreEvent & { outcome: string }): Attributes {
  const ended = outcome === 'failed' ? outcomeOf(error) : outcome
  return { 'signalbox.engine': engine, 'signalbox.store': store, 'signalbox.outcome': ended }
}

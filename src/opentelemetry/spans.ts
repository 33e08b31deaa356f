import { context, SpanStatusCode, type Attributes, type Context, type Tracer } from '@opentelemetry/api'
import type {
  BoxEvent,
  GrantedEvent,
  LockEvent,
  LockRefusedEvent,
  LostEvent,
  PausedEvent,
  PermittedEvent,
  RefusedEvent,
  ReleasedEvent,
  ReleaseFailedEvent,
  TransactionEvent,
  WriteEvent,
} from '../base/diagnostics.js'
import { failureOf, outcomeOf } from './outcome.js'

/** The fields of messages that are attributes of the same name. */
const SHOWN: ReadonlySet<string> = new Set([
  'engine',
  'session',
  'limiter',
  'key',
  'n',
  'until',
  'store',
  'verb',
  'outcome',
  'attempts',
])

export class Spans {
  readonly #tracer: Tracer
  readonly #consoleUrl: string | undefined
  /** The context in which each lock was requested. The grant may happen within the release of another task. */
  readonly #askedWithin = new WeakMap<LockEvent, Context>()

  constructor(tracer: Tracer, consoleUrl: string | undefined) {
    this.#tracer = tracer
    this.#consoleUrl = consoleUrl
  }

  boxState(): void {
    // The state of a box lasts, so only metrics report it.
  }

  requested(event: LockEvent): void {
    this.#askedWithin.set(event, context.active())
  }

  granted(event: GrantedEvent): void {
    this.#waited(event)
  }

  lockRefused(event: LockRefusedEvent): void {
    this.#waited({ ...event, outcome: outcomeOf(event.error) }, failureOf(event.error))
  }

  released(event: ReleasedEvent): void {
    this.#ended(event)
  }

  releaseFailed(event: ReleaseFailedEvent): void {
    this.#ended(event, failureOf(event.error))
  }

  lost(event: LostEvent): void {
    this.#ended(event, event.error.message)
  }

  permitted(event: PermittedEvent): void {
    this.#span('signalbox.limit.wait', event.waited, event, context.active())
  }

  refused(event: RefusedEvent): void {
    const ended = { ...event, outcome: outcomeOf(event.error) }
    this.#span('signalbox.limit.wait', event.waited, ended, context.active(), failureOf(event.error))
  }

  paused(event: PausedEvent): void {
    this.#span('signalbox.limit.pause', 0, event, context.active())
  }

  transaction(event: TransactionEvent): void {
    const failure = event.outcome === 'failed' ? failureOf(event.error) : undefined
    this.#span('signalbox.store.transaction', event.took, event, context.active(), failure)
  }

  write(event: WriteEvent): void {
    const failure = event.outcome === 'failed' ? failureOf(event.error) : undefined
    this.#span('signalbox.store.write', event.took, event, context.active(), failure)
  }

  #ended(event: ReleasedEvent, failure?: string): void {
    this.#span('signalbox.lock.hold', event.held, event, context.active(), failure)
  }

  #waited(event: GrantedEvent | (LockRefusedEvent & { outcome: string }), failure?: string): void {
    const within = (event.request && this.#askedWithin.get(event.request)) ?? context.active()
    this.#span('signalbox.lock.wait', event.waited, event, within, failure, this.#timelineOf(event))
  }

  /** Returns the address of the timeline of the first key on the page of the console. */
  #timelineOf({ keys: [key] }: LockEvent): Attributes {
    if (this.#consoleUrl === undefined) return {}
    return { 'signalbox.console.url': `${this.#consoleUrl}#/key/${encodeURIComponent(key!)}` }
  }

  /** A span that ends now. @param duration milliseconds */
  #span(
    name: string,
    duration: number,
    event: BoxEvent,
    within: Context,
    failure?: string,
    more?: Attributes,
  ): void {
    const now = Date.now()
    const attributes = { ...attributesOf(event), ...more }
    const span = this.#tracer.startSpan(name, { startTime: now - duration, attributes }, within)
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure })
    span.end(now)
  }
}

/** Returns the attributes of a message, without its duration and its failure, which the span has itself. */
function attributesOf(event: BoxEvent): Attributes {
  const attributes: Attributes = {}
  for (const [name, value] of Object.entries(event) as [string, unknown][]) {
    if (Array.isArray(value)) attributes[`signalbox.${name}`] = [...(value as string[])]
    // A number can't represent a large token exactly.
    else if (typeof value === 'bigint') attributes[`signalbox.${name}`] = String(value)
    else if (SHOWN.has(name) && value !== undefined)
      attributes[`signalbox.${name}`] = value as string | number
  }
  return attributes
}

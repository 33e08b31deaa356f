import { context, SpanStatusCode, type Attributes, type Context, type Tracer } from '@opentelemetry/api'
import type { GrantedEvent, LockEvent, LostEvent, ReleasedEvent, TimedOutEvent } from '../diagnostics.js'

/** What locks tell, as spans. */
export class LockSpans {
  readonly #tracer: Tracer
  /** Within what a lock was asked for: it may be granted within somebody else's release. */
  readonly #askedWithin = new WeakMap<LockEvent, Context>()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  requested(event: LockEvent): void {
    this.#askedWithin.set(event, context.active())
  }

  granted(event: GrantedEvent): void {
    this.#waited(event)
  }

  timedOut(event: TimedOutEvent): void {
    this.#waited(event, 'the wait was over')
  }

  released(event: ReleasedEvent): void {
    this.#span('signalbox.lock.hold', event.held, event, context.active())
  }

  lost(event: LostEvent): void {
    this.#span('signalbox.lock.lost', 0, event, context.active(), event.error.message)
  }

  #waited(event: GrantedEvent | TimedOutEvent, failure?: string): void {
    const within = (event.request && this.#askedWithin.get(event.request)) ?? context.active()
    this.#span('signalbox.lock.wait', event.waited, event, within, failure)
  }

  /** A span that ends now. @param duration milliseconds */
  #span(name: string, duration: number, event: LockEvent, within: Context, failure?: string): void {
    const now = Date.now()
    const span = this.#tracer.startSpan(
      name,
      { startTime: now - duration, attributes: attributesOf(event) },
      within,
    )
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure })
    span.end(now)
  }
}

function attributesOf({ engine, session, keys, ...rest }: LockEvent & { token?: bigint }): Attributes {
  return {
    'signalbox.engine': engine,
    'signalbox.session': session,
    'signalbox.keys': [...keys],
    // Greater than a number can be exactly.
    ...(rest.token !== undefined && { 'signalbox.token': String(rest.token) }),
  }
}

import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api'
import { subscribe, unsubscribe, type Channel } from 'node:diagnostics_channel'
import {
  channels,
  type GrantedEvent,
  type LockEvent,
  type LostEvent,
  type ReleasedEvent,
  type TimedOutEvent,
} from '../diagnostics.js'
import { InvalidArgumentError, shown } from '../errors.js'
import { checkOptions } from '../locks/lock-options.js'
import { LockMetrics } from './lock-metrics.js'
import { LockSpans } from './lock-spans.js'

/** How locks are shown to OpenTelemetry. */
export interface InstrumentOptions {
  /** Where metrics go; default: the global provider, as it is now. */
  meterProvider?: MeterProvider | undefined
  /** Where spans go; default: the global provider, as it is now. */
  tracerProvider?: TracerProvider | undefined
  /**
   * A name for the keys of a lock, which becomes the attribute `signalbox.lock` of its metrics; undefined for none. There
   * should be few different ones, because each is a time series of its own. Default: none. Must not throw.
   */
  lockName?: ((keys: readonly string[]) => string | undefined) | undefined
}

const SCOPE = 'signalbox'

/**
 * Tells OpenTelemetry of the locks of all boxes of this process, over the channels of `node:diagnostics_channel`, until
 * what is returned is disposed of.
 *
 * Metrics: the counters `signalbox.lock.requests` and `signalbox.lock.losses`, and the histograms
 * `signalbox.lock.wait.seconds` (with `signalbox.outcome`, `granted` or `timed out`) and `signalbox.lock.hold.seconds`; all
 * with `signalbox.engine`. Spans: `signalbox.lock.wait` from a request to its grant or the end of its wait, below the span
 * within which it was asked for, and `signalbox.lock.hold` from a grant to its release, below the span within which it
 * was released; `signalbox.lock.lost` at a loss; all with keys, engine and session.
 * @throws InvalidArgumentError when an option is unfit
 */
export function instrument(options: InstrumentOptions = {}): Disposable {
  checkOptions(options, ['meterProvider', 'tracerProvider', 'lockName'])
  const { meterProvider = metrics, tracerProvider = trace, lockName = () => undefined } = options
  if (typeof lockName !== 'function')
    throw new InvalidArgumentError(`lockName takes a function, not ${shown(lockName)}`)
  const measured = new LockMetrics(meterProvider.getMeter(SCOPE), lockName)
  const traced = new LockSpans(tracerProvider.getTracer(SCOPE))
  const stops = [...listen(measured), ...listen(traced)]
  return {
    [Symbol.dispose]() {
      for (const stop of stops) stop()
    },
  }
}

/** Tells a sink all that the channels tell; what is returned ends that. */
function listen(sink: LockMetrics | LockSpans): (() => void)[] {
  return [
    on(channels.requested, message => sink.requested(message as LockEvent)),
    on(channels.granted, message => sink.granted(message as GrantedEvent)),
    on(channels.released, message => sink.released(message as ReleasedEvent)),
    on(channels.lost, message => sink.lost(message as LostEvent)),
    on(channels.timedOut, message => sink.timedOut(message as TimedOutEvent)),
  ]
}

function on({ name }: Channel, listener: (message: unknown) => void): () => void {
  subscribe(name, listener)
  return () => void unsubscribe(name, listener)
}

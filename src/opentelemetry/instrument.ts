import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { channels } from '../base/diagnostics.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { Metrics } from './metrics.js'
import { Spans } from './spans.js'

/** Options of {@link instrument}. */
export interface InstrumentOptions {
  /** Receives the metrics; default: the current global provider. */
  meterProvider?: MeterProvider | undefined
  /** Receives the spans; default: the current global provider. */
  tracerProvider?: TracerProvider | undefined
  /**
   * A name for the keys of a lock, which becomes the attribute `signalbox.lock` of its metrics; undefined for none.
   * There should be few different ones, because each is a time series of its own. Default: none. Must not throw.
   */
  lockName?: ((keys: readonly string[]) => string | undefined) | undefined
  /**
   * The address of a console, see `signalbox-console`, such as `https://ops.example.com/locks/`. Spans of waits for
   * locks then have the attribute `signalbox.console.url`, the address of the timeline of their first key. Default: no
   * such attribute.
   */
  consoleUrl?: string | undefined
}

const SCOPE = 'signalbox'

/**
 * Reports to OpenTelemetry the locks, limiters and stores of all boxes of this process, over the channels of
 * `node:diagnostics_channel`, until the returned object is disposed of.
 *
 * State: `signalbox.box.states` (with `signalbox.status`), `signalbox.lock.waiters`, `signalbox.lock.holders` and
 * `signalbox.election.leaders` (with `signalbox.election`) of this process, from when this was called on.
 *
 * Metrics of locks: the counters `signalbox.lock.requests`, `signalbox.lock.losses` and
 * `signalbox.lock.release.failures`, and the histograms `signalbox.lock.wait.seconds` (with `signalbox.outcome`,
 * `granted` or as of limiters) and `signalbox.lock.hold.seconds`; all with `signalbox.engine`. Spans:
 * `signalbox.lock.wait` from a request to its grant or the end of its wait, below the span within which it was asked
 * for, and `signalbox.lock.hold` from a grant to its release or loss, below the span within which it was released, with
 * the error of a loss or of a release that failed; all with keys, engine and session. With `consoleUrl`, waits have
 * `signalbox.console.url`.
 *
 * Of limits, with `signalbox.limiter`: the counters `signalbox.limit.permits` and `signalbox.limit.pauses`, the
 * histogram and span `signalbox.limit.wait` (`.seconds`), the span `signalbox.limit.pause`. Of stores, with
 * `signalbox.store`: the histograms and spans `signalbox.store.transaction` and `signalbox.store.write` (`.seconds`).
 * Their outcome is that of the call, or the `code` of its error in lower case. `busy` and `aborted` are outcomes; every
 * other error is the status of its span.
 * @throws InvalidArgumentError when an option is invalid
 */
export function instrument(options: InstrumentOptions = {}): Disposable {
  checkOptions(options, ['meterProvider', 'tracerProvider', 'lockName', 'consoleUrl'])
  const { meterProvider = metrics, tracerProvider = trace, lockName = () => undefined, consoleUrl } = options
  if (typeof lockName !== 'function')
    throw new InvalidArgumentError(`lockName must be a function, not ${shown(lockName)}`)
  if (!has(meterProvider, 'getMeter'))
    throw new InvalidArgumentError(`meterProvider must be a MeterProvider, not ${shown(meterProvider)}`)
  if (!has(tracerProvider, 'getTracer'))
    throw new InvalidArgumentError(`tracerProvider must be a TracerProvider, not ${shown(tracerProvider)}`)
  if (consoleUrl !== undefined) checkConsoleUrl(consoleUrl)
  const measured = new Metrics(meterProvider.getMeter(SCOPE), lockName)
  const traced = new Spans(tracerProvider.getTracer(SCOPE), consoleUrl)
  const stops = [...listen(measured), ...listen(traced)]
  return {
    [Symbol.dispose]() {
      for (const stop of stops) stop()
      measured.end()
    },
  }
}

/** Checks the URL of a console. The error does not contain the value, because it may contain a secret. */
function checkConsoleUrl(value: unknown): void {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('consoleUrl must be an address that begins with http:// or https://')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new InvalidArgumentError(
      'consoleUrl must have no user, no password and nothing from the first ? or # on: traces must not contain secrets',
    )
}

function has(provider: unknown, method: string): boolean {
  return typeof (provider as Record<string, unknown> | null)?.[method] === 'function'
}

/** Passes all events of the channels to a sink. Returns functions that each unsubscribe from one channel. */
function listen(sink: Metrics | Spans): (() => void)[] {
  return (Object.keys(channels) as (keyof typeof channels)[]).map(name => {
    const listener = (message: unknown): void => sink[name](message as never)
    subscribe(channels[name].name, listener)
    return () => void unsubscribe(channels[name].name, listener)
  })
}

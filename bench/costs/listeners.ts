import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { subscribe } from 'node:diagnostics_channel'
import { open } from 'signalbox'
import { instrument } from 'signalbox/opentelemetry'
import { busy } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'
import { acquired } from './verbs.js'

const CHANNELS = ['requested', 'granted', 'released', 'lost', 'timed-out']

/** Acquires and releases in a process where `observe` has been called. */
function observed(name: string, observe: () => void): ForkedSubject {
  return forked(name, async () => {
    observe()
    const box = await open('memory:')
    const mutex = box.mutex('key')
    return { perform: window => busy(window, 1, acquired(() => mutex)(box)), stop: () => box.close() }
  })
}

const NOBODY = 'nobody listens'
const NO_LONGER = 'instrumented, and disposed of'
const LISTENER = 'a listener on each channel'
const METRICS = 'OpenTelemetry, metrics'
const ALL = 'OpenTelemetry, metrics and spans'

/** What it costs to be told of locks, and to be told no longer. */
export const listeners: Work = {
  part: 'costs',
  name: 'a mutex of the memory engine, observed',
  seconds: 0.25,
  subjects: [
    observed(NOBODY, () => undefined),
    observed(NO_LONGER, () => instrument({ meterProvider: new MeterProvider() })[Symbol.dispose]()),
    observed(LISTENER, () => {
      for (const channel of CHANNELS) subscribe(`signalbox:lock:${channel}`, () => undefined)
    }),
    observed(METRICS, () => void instrument({ meterProvider: new MeterProvider() })),
    observed(ALL, () => {
      void instrument({ meterProvider: new MeterProvider(), tracerProvider: new BasicTracerProvider() })
    }),
  ],
  comparisons: [NO_LONGER, LISTENER, METRICS, ALL].map(of => ({
    measure: 'opsPerSecond',
    of,
    to: NOBODY,
    ...(of === NO_LONGER && { goal: { atLeast: 0.95 } }),
  })),
}

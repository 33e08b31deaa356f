import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { subscribe } from 'node:diagnostics_channel'
import { cp, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { open as Open } from 'signalbox'
import { instrument } from 'signalbox/opentelemetry'
import { packageFile } from '../package.js'
import { busy } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'
import { inBox } from './in-box.js'
import { kept } from './verbs.js'

const CHANNELS = ['requested', 'granted', 'refused', 'released', 'release-failed', 'lost']

/** Acquires and releases in a process where `observe` has been called. */
function observed(name: string, observe: () => void): ForkedSubject {
  return inBox(name, box => {
    observe()
    return kept(box)
  })
}

/** The same with a copy of the package that never checks for listeners. */
function unobservable(name: string): ForkedSubject {
  return forked(name, async place => {
    const folder = await mkdtemp(join(place.folder, 'unobservable-'))
    await cp(packageFile('dist'), join(folder, 'dist'), { recursive: true })
    await cp(packageFile('package.json'), join(folder, 'package.json'))
    await symlink(packageFile('node_modules'), join(folder, 'node_modules'))
    for (const name of ['core/session.js', 'core/local-queue.js']) {
      const module = join(folder, 'dist/src', name)
      const text = await readFile(module, 'utf8')
      const deaf = text.replaceAll(LOOK, 'false')
      if (deaf === text) throw new Error(`${module} looks at no channel`)
      await writeFile(module, deaf)
    }
    const { open } = (await import(pathToFileURL(join(folder, 'dist/src/index.js')).href)) as {
      open: typeof Open
    }
    const box = await open('memory:')
    const operations = kept(box)
    return { perform: window => busy(window, 1, operations), stop: () => box.close() }
  })
}

const LOOK = /\bchannels\.\w+\.hasSubscribers\b/g

const DEAF = 'the checks for listeners taken out'
const NO_LISTENER = 'no listener'
const NO_LONGER = 'instrumented, and disposed of'
const LISTENER = 'a listener on each channel'
const METRICS = 'OpenTelemetry, metrics'
const ALL = 'OpenTelemetry, metrics and spans'

/** The cost of subscribing to lock events, and the cost that remains after unsubscribing. */
export const listeners: Work = {
  part: 'costs',
  name: 'a mutex of the memory engine, observed',
  seconds: 0.25,
  subjects: [
    unobservable(DEAF),
    observed(NO_LISTENER, () => undefined),
    observed(NO_LONGER, () => instrument({ meterProvider: new MeterProvider() })[Symbol.dispose]()),
    observed(LISTENER, () => {
      for (const channel of CHANNELS) subscribe(`signalbox:lock:${channel}`, () => undefined)
    }),
    observed(METRICS, () => void instrument({ meterProvider: new MeterProvider() })),
    observed(ALL, () => {
      void instrument({ meterProvider: new MeterProvider(), tracerProvider: new BasicTracerProvider() })
    }),
  ],
  comparisons: [
    // Without listeners there is no cost, neither for the checks nor after a listener has unsubscribed.
    { measure: 'opsPerSecond', of: NO_LISTENER, to: DEAF, goal: { atLeast: 0.95 } },
    { measure: 'opsPerSecond', of: NO_LONGER, to: NO_LISTENER, goal: { atLeast: 0.95 } },
    ...[LISTENER, METRICS, ALL].map(of => ({ measure: 'opsPerSecond' as const, of, to: NO_LISTENER })),
  ],
}

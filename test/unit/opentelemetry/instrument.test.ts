import { context, trace, type Context, type ContextManager } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { channels } from '../../../src/diagnostics.js'
import { open } from '../../../src/index.js'
import { instrument } from '../../../src/opentelemetry/index.js'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** The active context follows the asynchronous calls, as with the SDK for Node. */
class Followed implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()
  readonly #none: Context

  constructor(none: Context) {
    this.#none = none
  }

  active(): Context {
    return this.#storage.getStore() ?? this.#none
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    within: Context,
    task: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(within, () => task.apply(self, args))
  }

  bind<T>(_within: Context, target: T): T {
    return target
  }

  enable(): this {
    return this
  }

  disable(): this {
    return this
  }
}

beforeAll(() => {
  context.setGlobalContextManager(new Followed(context.active()))
})
afterAll(() => context.disable())

/** Everything that locks can tell: a grant, a hand-over, a wait that is over, and a loss. */
async function everything(): Promise<void> {
  await using box = await open('memory:')
  const grant = await box.mutex('a').acquire()
  const next = box.mutex('a').acquire()
  await expect(box.mutex('a').acquire({ wait: 5 })).rejects.toThrow()
  await grant.release()
  const taken = await next
  await box.forceRelease('a', taken.token)
  await taken.release().catch(() => undefined)
}

test('metrics tell of requests, waits, holds and losses, and the dashboard asks for nothing else', async () => {
  const port = await freePort()
  const reader = new PrometheusExporter({ host: '127.0.0.1', port, preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => meterProvider.shutdown())
  await reader.startServer()
  {
    using _instrumented = instrument({ meterProvider, lockName: keys => keys[0]! })
    await everything()
  }
  // Nobody listens any more.
  await everything()
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const labels = 'signalbox_engine="memory:",signalbox_lock="a"'
  const series = (name: string, more = ''): number =>
    Number(new RegExp(`^${name}\\{${labels}${more}[^}]*\\} ([\\d.e-]+)`, 'm').exec(text)?.[1])
  expect(series('signalbox_lock_requests_total')).toBe(3)
  expect(series('signalbox_lock_losses_total')).toBe(1)
  expect(series('signalbox_lock_hold_seconds_count')).toBe(2)
  expect(series('signalbox_lock_wait_seconds_count', ',signalbox_outcome="granted"')).toBe(2)
  expect(series('signalbox_lock_wait_seconds_count', ',signalbox_outcome="timed out"')).toBe(1)
  // Seconds, not milliseconds: it waited 5 ms.
  expect(series('signalbox_lock_wait_seconds_sum', ',signalbox_outcome="timed out"')).toBeGreaterThan(0.004)
  expect(series('signalbox_lock_wait_seconds_sum', ',signalbox_outcome="timed out"')).toBeLessThan(4)

  const dashboard = readFileSync(
    fileURLToPath(new URL('../../../docs/grafana-dashboard.json', import.meta.url)),
    'utf8',
  )
  const asked = new Set(dashboard.match(/\bsignalbox_lock_\w+/g))
  expect(asked.size).toBeGreaterThan(5)
  for (const name of asked) expect(text, name).toMatch(new RegExp(`^${name}\\{`, 'm'))
  const used = new Set(dashboard.match(/\bsignalbox_(?!lock_)\w+/g))
  for (const name of used) expect(text, name).toContain(`${name}="`)
})

test('spans are below the one within which the lock was asked for or released', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = tracerProvider.getTracer('test')
  using _instrumented = instrument({ tracerProvider })
  await using box = await open('memory:')
  const within = (name: string, task: () => Promise<void>): Promise<void> => {
    const span = tracer.startSpan(name)
    return context.with(trace.setSpan(context.active(), span), async () => {
      await task()
      span.end()
    })
  }
  const first = await box.mutex('a', 'b').acquire()
  const second = within('second', () => box.mutex('a', 'b').run(() => undefined))
  const late = within('late', async () => {
    await expect(box.mutex('a', 'b').acquire({ wait: 1 })).rejects.toThrow()
  })
  await late
  await within('first', () => first.release())
  await second

  const spans = exporter.getFinishedSpans()
  const parents = (name: string): (string | undefined)[] =>
    spans.filter(span => span.name === name).map(span => parentOf(span, spans)?.name)
  expect(parents('signalbox.lock.wait')).toEqual([undefined, 'late', 'second'])
  expect(parents('signalbox.lock.hold')).toEqual(['first', 'second'])
  const [, timedOut, granted] = spans.filter(({ name }) => name === 'signalbox.lock.wait')
  expect(timedOut!.status.message).toBe('the wait was over')
  expect(granted!.attributes).toMatchObject({
    'signalbox.engine': 'memory:',
    'signalbox.keys': ['a', 'b'],
    'signalbox.session': box.session,
    'signalbox.token': expect.stringMatching(/^\d{10,19}$/),
  })
  const hold = spans.filter(({ name }) => name === 'signalbox.lock.hold')[0]!
  expect(hold.duration[0] * 1e9 + hold.duration[1]).toBeGreaterThan(0)
})

function parentOf(span: ReadableSpan, spans: readonly ReadableSpan[]): ReadableSpan | undefined {
  return spans.find(other => other.spanContext().spanId === span.parentSpanContext?.spanId)
}

test('nothing listens before and after, and options are checked', () => {
  const listening = (): boolean[] => Object.values(channels).map(({ hasSubscribers }) => hasSubscribers)
  expect(listening()).not.toContain(true)
  instrument()[Symbol.dispose]()
  expect(listening()).not.toContain(true)
  expect(() => instrument({ lockName: 'a' as never })).toThrow('lockName takes a function')
  expect(() => instrument({ name: 'a' } as never)).toThrow('there is no option "name"')
})

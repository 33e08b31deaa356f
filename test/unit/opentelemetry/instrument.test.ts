import { context, SpanStatusCode, trace, type Context, type ContextManager } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
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
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { channels } from '../../../src/base/diagnostics.js'
import { openMemory } from '../../../src/engines/memory/memory-engine.js'
import { ConflictError, LostError, open, UnavailableError, type Box } from '../../../src/index.js'
import { routeOf } from '../../../packages/console/src/page/route.js'
import { instrument } from '../../../src/opentelemetry/index.js'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** A context manager whose active context follows asynchronous calls, like that of the SDK for Node. */
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

/** Causes everything that can be reported about locks, limits and stores, in every way that the page names. */
async function everything(): Promise<void> {
  await using box = await open('memory:')
  await box.election('clerk').lead(() => undefined)
  await ofLocks(box)
  await ofAnOutage()
  await ofLimits(box)
  await ofStores(box)
}

/** Causes a grant, a handover, a wait that times out, and a loss. */
async function ofLocks(box: Box): Promise<void> {
  const grant = await box.mutex('a').acquire()
  const next = box.mutex('a').acquire()
  await expect(box.mutex('a').acquire({ wait: 5 })).rejects.toThrow()
  await grant.release()
  const taken = await next
  await box.forceRelease('a', taken.token)
  await taken.release().catch(() => undefined)
  await expect(box.mutex('a').acquire({ signal: AbortSignal.abort() })).rejects.toThrow()
  await box.mutex('a').run(async () => {
    await expect(box.mutex('a').acquire()).rejects.toThrow()
    expect(await box.mutex('a').tryAcquire()).toBeUndefined()
  })
}

/** Causes a failed release, and a request while the engine is unreachable. */
async function ofAnOutage(): Promise<void> {
  const engine = new FaultInjectingEngine(openMemory('memory:'))
  await using box = await open({ engine })
  const grant = await box.mutex('a').acquire()
  engine.intercept = () => Promise.reject(new UnavailableError('the line is cut'))
  await expect(grant.release()).rejects.toThrow(UnavailableError)
  await expect(box.mutex('a').acquire()).rejects.toThrow(UnavailableError)
  engine.restore()
}

/** Causes permits, a refusal, waits that cannot be met or time out, and a pause. */
async function ofLimits(box: Box): Promise<void> {
  const limiter = box.limiter('api', { limit: 3, per: '1m' })
  await limiter.acquire(2)
  await limiter.key('one').acquire()
  expect(await limiter.tryAcquire(2)).toBeUndefined()
  await expect(limiter.acquire(2, { wait: 5 })).rejects.toThrow()
  await limiter.pauseUntil(Date.now() + 60_000)
}

/** Causes an applied transaction, its repetition, a lost one, a failed one, and single writes. */
async function ofStores(box: Box): Promise<void> {
  const store = box.store('bank')
  const add = () => store.transaction(['a', 'b'], transaction => transaction.put('a', 1), { id: 'one' })
  await add()
  await add()
  const lost = store.transaction(['a'], async transaction => {
    transaction.put('a', 2)
    await box.forceRelease('bank/a', transaction.token)
  })
  await expect(lost).rejects.toThrow(LostError)
  const conflict = store.transaction(['a'], async transaction => {
    transaction.put('a', 3)
    await store.put('a', 4)
  })
  await expect(conflict).rejects.toThrow(ConflictError)
  const failing = store.transaction(['a'], () => {
    throw new TypeError('no')
  })
  await expect(failing).rejects.toThrow('no')
  const { version } = (await store.get('a'))!
  await store.compareAndSet('a', version, 5)
  expect(await store.compareAndSet('a', version, 6)).toBeUndefined()
  await store.delete('a')
}

test('metrics cover locks, limits and stores, and the dashboard uses only these', async () => {
  const port = await freePort()
  const reader = new PrometheusExporter({ host: '127.0.0.1', port, preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => meterProvider.shutdown())
  await reader.startServer()
  {
    using _instrumented = instrument({ meterProvider, lockName: keys => keys[0]! })
    await everything()
  }
  // The channels no longer have a listener.
  await everything()
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const value = (name: string, labels: string): number =>
    Number(
      new RegExp(`^${name}\\{signalbox_engine="memory:",${labels}[^}]*\\} ([\\d.e-]+)`, 'm').exec(text)?.[1],
    )
  const series = (name: string, more = ''): number =>
    value(`signalbox_lock_${name}`, `signalbox_lock="a"${more}`)
  const limit = (name: string, more = ''): number =>
    value(`signalbox_limit_${name}`, `signalbox_limiter="api"${more}`)
  const ended = (what: string, outcome: string, more = ''): number =>
    value(
      `signalbox_store_${what}_seconds_count`,
      `signalbox_store="bank",signalbox_outcome="${outcome}"${more}`,
    )
  expect(series('requests_total')).toBe(9)
  const outcomes = ['granted', 'timed out', 'aborted', 'deadlock', 'busy', 'unavailable'].map(outcome =>
    series('wait_seconds_count', `,signalbox_outcome="${outcome}"`),
  )
  expect(outcomes).toEqual([4, 1, 1, 1, 1, 1])
  expect(series('release_failures_total')).toBe(1)
  expect(series('losses_total')).toBe(1)
  expect(series('hold_seconds_count')).toBe(4)
  // Seconds, not milliseconds: it waited 5 ms.
  expect(series('wait_seconds_sum', ',signalbox_outcome="timed out"')).toBeGreaterThan(0.004)
  expect(series('wait_seconds_sum', ',signalbox_outcome="timed out"')).toBeLessThan(4)

  expect(limit('permits_total')).toBe(3)
  expect(limit('pauses_total')).toBe(1)
  expect(limit('wait_seconds_count', ',signalbox_outcome="permitted"')).toBe(2)
  expect(limit('wait_seconds_count', ',signalbox_outcome="busy"')).toBe(1)
  expect(limit('wait_seconds_count', ',signalbox_outcome="timed out"')).toBe(1)

  for (const outcome of ['applied', 'repeated', 'lost', 'conflict', 'failed'])
    expect(ended('transaction', outcome), outcome).toBe(1)
  expect(ended('write', 'applied', ',signalbox_verb="put"')).toBe(1)
  expect(ended('write', 'applied', ',signalbox_verb="compareAndSet"')).toBe(1)
  expect(ended('write', 'conflict', ',signalbox_verb="compareAndSet"')).toBe(1)
  expect(ended('write', 'applied', ',signalbox_verb="delete"')).toBe(1)

  const dashboard = readFileSync(
    fileURLToPath(new URL('../../../docs/grafana-dashboard.json', import.meta.url)),
    'utf8',
  )
  const asked = new Set(dashboard.match(/\bsignalbox_(?:box|lock|election|limit|store)_\w+/g))
  expect(asked.size).toBeGreaterThan(17)
  for (const name of asked) expect(text, name).toMatch(new RegExp(`^${name}\\{`, 'm'))
  const used = new Set(dashboard.match(/\bsignalbox_(?!(?:box|lock|election|limit|store)_)\w+/g))
  for (const label of ['lock', 'election', 'limiter', 'store', 'status', 'outcome'])
    expect(used, label).toContain(`signalbox_${label}`)
  for (const name of used) expect(text, name).toContain(`${name}="`)
})

test('spans are children of the span in which the lock was requested or released', async () => {
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
  expect(timedOut!.status.message).toMatch(
    /^timed out after 1 ms waiting for mutex a, b on memory: \(.+, pid \d+\)$/,
  )
  expect(granted!.attributes).toMatchObject({
    'signalbox.engine': 'memory:',
    'signalbox.keys': ['a', 'b'],
    'signalbox.session': box.session,
    'signalbox.token': expect.stringMatching(/^\d{10,19}$/),
  })
  const hold = spans.filter(({ name }) => name === 'signalbox.lock.hold')[0]!
  expect(hold.duration[0] * 1e9 + hold.duration[1]).toBeGreaterThan(0)
})

test('with the address of a console, the span of a wait links to the timeline of its key', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  using _instrumented = instrument({ tracerProvider, consoleUrl: 'https://ops.example/locks/' })
  await using box = await open('memory:')
  const key = 'order:4711/ü #%?<b>'
  const grant = await box.mutex(key, 'z').acquire()
  await expect(box.mutex(key).acquire({ wait: 1 })).rejects.toThrow()
  await grant.release()
  const [granted, timedOut, held] = exporter.getFinishedSpans()
  const address = 'https://ops.example/locks/#/key/order%3A4711%2F%C3%BC%20%23%25%3F%3Cb%3E'
  expect(granted!.attributes['signalbox.console.url']).toBe(address)
  expect(timedOut!.attributes['signalbox.console.url']).toBe(address)
  expect(routeOf(new URL(address).hash)).toEqual({ view: 'key', key })
  expect(held!.name).toBe('signalbox.lock.hold')
  expect(held!.attributes).not.toHaveProperty('signalbox.console.url')
})

test('an address of a console with a secret is rejected, and not repeated', () => {
  for (const address of ['http://127.0.0.1:1/#secret=hush', 'https://a:hush@b/', 'https://b/?token=hush'])
    expect(() => instrument({ consoleUrl: address })).toThrow(
      /^consoleUrl must have no user, no password and nothing from the first \? or # on: (?!.*hush)/,
    )
  for (const address of ['hush', '', 'javascript:hush', 42])
    expect(() => instrument({ consoleUrl: address as string })).toThrow(
      /^consoleUrl must be an address that begins with http:\/\/ or https:\/\/$/,
    )
})

test('gauges show the boxes, waiters, holders and leaders of now, those from before left out', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => meterProvider.shutdown())
  await using early = await open('memory:')
  const before = await early.mutex('before').acquire()
  const waiting = early.mutex('before').acquire()
  const instrumented = instrument({ meterProvider, lockName: keys => keys[0]! })
  const now = async (): Promise<Record<string, unknown>> => {
    exporter.reset()
    await reader.forceFlush()
    const metrics = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(each => each.metrics)
    const gauges = metrics.filter(({ descriptor }) => /states|waiters|holders|leaders/.test(descriptor.name))
    return Object.fromEntries(
      gauges.flatMap(({ descriptor, dataPoints }) =>
        dataPoints
          .filter(({ value }) => value !== 0)
          .map(({ attributes, value }) => {
            const { 'signalbox.engine': _, ...others } = attributes
            return [[descriptor.name.slice(10), ...Object.values(others)].join(' '), value]
          }),
      ),
    )
  }
  await before.release()
  await (await waiting).release()
  expect(await now()).toEqual({})

  const engine = new FaultInjectingEngine(openMemory('memory:'))
  const box = await open({ engine })
  const grant = await box.mutex('a').acquire()
  const others = [box.mutex('a').acquire(), box.mutex('a').acquire({ wait: 50 })] as const
  others[1].catch(() => undefined)
  const term = await box.election('clerk').campaign()
  expect(await now()).toEqual({
    'box.states ready': 1,
    'lock.holders a': 1,
    'lock.waiters a': 2,
    'lock.holders election:clerk': 1,
    'election.leaders clerk': 1,
  })
  await expect(others[1]).rejects.toThrow()
  await grant.release()
  await term.release()
  expect(await now()).toEqual({ 'box.states ready': 1, 'lock.holders a': 1 })
  // A caller that waits until there is no leader does not lead.
  const free = await box.lock({ key: 'election:clerk', mode: 'shared' }).acquire()
  expect(await now()).toMatchObject({ 'lock.holders election:clerk': 1 })
  expect(await now()).not.toHaveProperty('election.leaders clerk')
  await free.release()
  const next = await others[0]
  await box.forceRelease('a', next.token)
  engine.intercept = () => Promise.reject(new UnavailableError('the line is cut'))
  await expect(box.mutex('b').acquire()).rejects.toThrow()
  expect(await now()).toEqual({ 'box.states reconnecting': 1 })
  engine.restore()
  await box.close()
  expect(await now()).toEqual({})

  await using another = await open('memory:')
  await using _term = await another.election('clerk').campaign()
  const later = another.mutex('a')
  await using _held = await later.acquire()
  const late = later.acquire()
  expect(await now()).toMatchObject({ 'lock.waiters a': 1, 'election.leaders clerk': 1 })
  instrumented[Symbol.dispose]()
  expect(await now()).toEqual({})
  void late.then(grant => grant.release())
})

test('a lock in use and a wait that its caller gave up are outcomes; what failed is an error', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  using _instrumented = instrument({ tracerProvider })
  const box = await open('memory:')
  const grant = await box.mutex('a').acquire()
  expect(await box.mutex('a').tryAcquire()).toBeUndefined()
  await expect(box.mutex('a').acquire({ wait: 0 })).rejects.toThrow()
  const controller = new AbortController()
  const given = box.mutex('a').acquire({ signal: controller.signal })
  controller.abort()
  await expect(given).rejects.toThrow()
  await expect(box.mutex('a').acquire({ wait: 5 })).rejects.toThrow()
  const closed = box.mutex('a').acquire()
  closed.catch(() => undefined)
  await box.close()
  await expect(closed).rejects.toThrow()
  await grant.release().catch(() => undefined)
  const waits = exporter.getFinishedSpans().filter(({ name }) => name === 'signalbox.lock.wait')
  expect(waits.map(({ attributes, status }) => [attributes['signalbox.outcome'], status.code])).toEqual([
    [undefined, SpanStatusCode.UNSET],
    ['busy', SpanStatusCode.UNSET],
    ['busy', SpanStatusCode.UNSET],
    ['aborted', SpanStatusCode.UNSET],
    ['timed out', SpanStatusCode.ERROR],
    ['closed', SpanStatusCode.ERROR],
  ])
})

test('a lock that was lost, and one whose release failed, have a span that says why', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  using _instrumented = instrument({ tracerProvider })
  await using box = await open('memory:')
  const taken = await box.mutex('a').acquire()
  await box.forceRelease('a', taken.token)
  await expect(taken.release()).rejects.toThrow(LostError)
  await ofAnOutage()
  const holds = exporter.getFinishedSpans().filter(({ name }) => name === 'signalbox.lock.hold')
  expect(holds.map(({ status }) => status.message)).toEqual([
    'a is no longer held: it was released by force',
    'the line is cut',
  ])
  expect(holds[0]!.attributes['signalbox.token']).toBe(String(taken.token))
})

test("limits and stores have spans, as children of the caller's span, and failed ones have the reason", async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = tracerProvider.getTracer('test')
  using _instrumented = instrument({ tracerProvider })
  await using box = await open('memory:')
  const store = box.store('bank', { group: { maxSize: 2, maxTime: 1000 } })
  const within = (name: string, task: () => Promise<unknown>): Promise<unknown> =>
    context.with(trace.setSpan(context.active(), tracer.startSpan(name)), async () => {
      await task()
      trace.getActiveSpan()!.end()
    })
  // The transactions share a commit. The one that commits settles the other one.
  await Promise.all(
    ['one', 'other'].map(name =>
      within(name, () => store.transaction([name], transaction => transaction.put(name, 1))),
    ),
  )
  await within('writes', () => store.compareAndSet('one', 1, 2))
  await within('limits', () => ofLimits(box))
  const spans = exporter.getFinishedSpans()
  const parents = (name: string): (string | undefined)[] =>
    spans.filter(span => span.name === name).map(span => parentOf(span, spans)?.name)
  expect(parents('signalbox.store.transaction')).toEqual(['one', 'other'])
  expect(parents('signalbox.store.write')).toEqual(['writes'])
  expect(parents('signalbox.limit.wait')).toEqual(['limits', 'limits', 'limits', 'limits'])
  expect(parents('signalbox.limit.pause')).toEqual(['limits'])
  const attributes = (name: string, index = 0) => spans.filter(span => span.name === name)[index]!.attributes
  expect(attributes('signalbox.store.transaction')).toEqual({
    'signalbox.engine': 'memory:',
    'signalbox.session': box.session,
    'signalbox.store': 'bank',
    'signalbox.keys': ['one'],
    'signalbox.outcome': 'applied',
    'signalbox.attempts': 1,
    'signalbox.token': expect.stringMatching(/^\d{10,19}$/),
  })
  expect(attributes('signalbox.store.write')).toMatchObject({
    'signalbox.verb': 'compareAndSet',
    'signalbox.outcome': 'conflict',
  })
  expect(attributes('signalbox.limit.wait', 1)).toEqual({
    'signalbox.engine': 'memory:',
    'signalbox.session': box.session,
    'signalbox.limiter': 'api',
    'signalbox.key': 'one',
    'signalbox.n': 1,
  })
  const failures = spans
    .filter(({ name }) => name === 'signalbox.limit.wait')
    .map(({ status }) => status.message)
  expect(failures).toEqual([
    undefined,
    undefined,
    undefined,
    expect.stringMatching("^can't get a permit .* within"),
  ])
})

function parentOf(span: ReadableSpan, spans: readonly ReadableSpan[]): ReadableSpan | undefined {
  return spans.find(other => other.spanContext().spanId === span.parentSpanContext?.spanId)
}

test('no listener exists before and after, and options are checked', () => {
  const listening = (): boolean[] => Object.values(channels).map(({ hasSubscribers }) => hasSubscribers)
  expect(listening()).not.toContain(true)
  instrument()[Symbol.dispose]()
  expect(listening()).not.toContain(true)
  expect(() => instrument({ lockName: 'a' as never })).toThrow('lockName must be a function')
  expect(() => instrument({ name: 'a' } as never)).toThrow('unknown option "name"')
})

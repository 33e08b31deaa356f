import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { consoleOf, type BoxConsole } from '../../packages/console/src/index.js'
import type { Message } from '../../packages/console/src/messages.js'
import { modelAfter, overviewOf, type Model } from '../../packages/console/src/page/model.js'
import { diagnose, open, type Box } from '../../src/index.js'
import { startEngine } from '../support/servers/engines.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisServers } from '../support/servers/redis.js'
import { PATIENCE } from './command-line.js'

interface Engine {
  /** Starts the servers, which end with the test, and returns the URL. */
  readonly start: () => Promise<string>
  readonly hasLimits: boolean
  readonly hasValues: boolean
}

const ENGINES: Readonly<Record<string, Engine>> = {
  files: {
    start() {
      const folder = mkdtempSync(join(tmpdir(), 'signalbox-console-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      return Promise.resolve(`file:${folder}/locks`)
    },
    hasLimits: true,
    hasValues: true,
  },
  Redis: { start: () => startEngine('Redis'), hasLimits: true, hasValues: true },
  'a Redis cluster': {
    async start() {
      const cluster = await startRedisCluster()
      onTestFinished(() => cluster.kill())
      return `${cluster.url}?prefix={console}:`
    },
    hasLimits: true,
    hasValues: true,
  },
  'a Redis quorum': {
    async start() {
      const servers = await startRedisServers(3)
      onTestFinished(() => Promise.all(servers.map(server => server.stop())).then(() => undefined))
      return quorumUrl(servers)
    },
    hasLimits: false,
    hasValues: false,
  },
  PostgreSQL: { start: () => startEngine('PostgreSQL'), hasLimits: true, hasValues: true },
  ZooKeeper: { start: () => startEngine('ZooKeeper'), hasLimits: false, hasValues: true },
  Hazelcast: { start: () => startEngine('Hazelcast'), hasLimits: false, hasValues: true },
}

const BASE = 'http://ops.example/locks/'

/** A page without a browser: receives the messages of a console, and sends it requests. */
class FollowedConsole {
  model: Model | undefined
  readonly #console: BoxConsole

  constructor(locks: BoxConsole) {
    this.#console = locks
    void this.#follow()
  }

  get overview(): ReturnType<typeof overviewOf> {
    return overviewOf(this.model!.keys)
  }

  async value(store: string, key: string): Promise<unknown> {
    return this.#ask(`value?${new URLSearchParams({ store, key }).toString()}`, {})
  }

  async stores(): Promise<unknown> {
    return this.#ask('stores', {})
  }

  async values(store: string): Promise<unknown> {
    return this.#ask(`values?${new URLSearchParams({ store }).toString()}`, {})
  }

  async order(name: string, order: object): Promise<unknown> {
    const headers = { 'Content-Type': 'application/json' }
    return this.#ask(name, { method: 'POST', headers, body: JSON.stringify(order) })
  }

  /** Returns the events of a key, newest last. */
  timeline(of: string): string[] {
    return this.model!.events.filter(({ key }) => key === of).map(
      ({ kind, from, who }) => `${kind} ${from?.label ?? ''} ${who.label!}`,
    )
  }

  async #ask(path: string, { headers, ...init }: RequestInit): Promise<unknown> {
    const own = { ...(headers as object), 'Sec-Fetch-Site': 'same-origin' }
    const answer = await this.#console.fetch(new Request(BASE + path, { ...init, headers: own }))
    return { status: answer.status, ...((await answer.json()) as object) }
  }

  async #follow(): Promise<void> {
    const { body } = await this.#console.fetch(new Request(`${BASE}events`))
    let rest = ''
    for await (const part of body!.pipeThrough(new TextDecoderStream())) {
      const events = (rest + part).split('\n\n')
      rest = events.pop()!
      for (const event of events)
        this.model = modelAfter(this.model, JSON.parse(event.slice('data: '.length)) as Message)
    }
  }
}

test.each(Object.entries(ENGINES))('all views and both actions work on %s', async (_, engine) => {
  const url = await engine.start()
  const boxes = await Promise.all(
    ['console', 'billing', 'report', 'mailer'].map(async label => {
      const box = await open(url, { label })
      onTestFinished(() => box.close())
      return box
    }),
  )
  const [observer, billing, report, mailer] = boxes as [Box, Box, Box, Box]
  const locks = consoleOf(observer, { diagnose: () => diagnose(url), log: () => undefined })
  onTestFinished(() => locks.close())
  const shown = <T>(check: () => T): Promise<T> => vi.waitFor(check, PATIENCE)

  const grant = await billing.mutex('order:4711', 'stock').acquire()
  await mailer.semaphore('smtp', { max: 4 }).acquire()
  await mailer.readWriteLock('catalogue').read.acquire()
  const [next, writing] = [
    report.mutex('order:4711').acquire(),
    report.readWriteLock('catalogue').write.acquire(),
  ]
  // These waits are rejected by the revocation below, or when their box closes.
  for (const wait of [next, writing]) wait.catch(() => undefined)
  if (engine.hasLimits) await billing.limiter('api', { limit: 5, per: '1h' }).acquire(2)
  const page = new FollowedConsole(locks)

  const holder = await shown(() => {
    const { keys, limiters } = page.model!
    const named = (key: string, parties: 'holders' | 'waiters'): unknown[] =>
      keys.get(key)![parties].map(({ label, host, pid, claim }) => [label, host !== '', pid, claim.mode])
    const { pid } = process
    expect(named('order:4711', 'holders')).toEqual([['billing', true, pid, 'exclusive']])
    expect(named('order:4711', 'waiters')).toEqual([['report', true, pid, 'exclusive']])
    expect(named('stock', 'holders')).toEqual([['billing', true, pid, 'exclusive']])
    expect(named('smtp', 'holders')).toEqual([['mailer', true, pid, 'permits']])
    expect(named('catalogue', 'holders')).toEqual([['mailer', true, pid, 'shared']])
    expect(named('catalogue', 'waiters')).toEqual([['report', true, pid, 'exclusive']])
    expect(limiters).toMatchObject(
      engine.hasLimits ? [{ name: 'api', limits: [{ limit: 5, used: 2, remaining: 3 }] }] : [],
    )
    return keys.get('order:4711')!.holders[0]!
  })
  const { waits, sessions } = page.overview
  expect(waits.map(({ waiter, blocker, key }) => `${waiter.label} ${blocker.label} ${key}`).sort()).toEqual([
    'report billing order:4711',
    'report mailer catalogue',
  ])
  expect([...sessions.values()].map(({ who }) => who.label).sort()).toEqual(['billing', 'mailer', 'report'])
  expect(holder.until! - holder.since).toBeGreaterThan(0)
  expect(page.model!.engine).toBe(observer.engine)

  if (engine.hasValues) {
    const version = await billing.store('accounts').put('amy', { balance: 42 })
    expect(await page.value('accounts', 'amy')).toMatchObject({
      status: 200,
      found: true,
      version,
      json: JSON.stringify({ balance: 42 }, null, 2),
    })
    expect(await page.value('accounts', 'bob')).toEqual({ status: 200, found: false })
    expect(await page.values('accounts')).toMatchObject({
      status: 200,
      rows: [{ key: 'amy', version, json: JSON.stringify({ balance: 42 }) }],
      hasMore: false,
    })
    expect(await page.stores()).toEqual({ status: 200, names: ['accounts'], hasMore: false })
  } else {
    expect(await page.stores()).toMatchObject({ status: 400 })
    expect(await page.value('accounts', 'amy')).toMatchObject({ status: 400 })
    expect(await page.values('accounts')).toMatchObject({ status: 400 })
  }
  expect(await page.order('doctor', {})).toMatchObject({
    status: 200,
    facts: expect.arrayContaining([expect.any(String)]) as string[],
    findings: expect.any(Array) as unknown[],
  })

  // A token that is not, or no longer, that of a grant of this key releases nothing.
  const { token } = holder
  for (const other of ['1', String(BigInt(token!) - 1024n), '9999999999999999999'])
    expect(await page.order('release', { key: 'order:4711', token: other })).toMatchObject({ status: 404 })
  grant.assertHeld()
  expect(await page.order('release', { key: 'order:4711', token })).toEqual({ status: 200, released: true })
  const handedOver = await next
  await shown(() => expect(grant.signal.aborted).toBe(true))
  // A second click, or a click in another tab, finds no such grant.
  expect(await page.order('release', { key: 'order:4711', token })).toMatchObject({ status: 404 })
  await shown(() => {
    expect(page.model!.keys.get('order:4711')!.holders).toMatchObject([{ label: 'report' }])
    expect(page.model!.keys.has('stock')).toBe(false)
    expect(page.timeline('order:4711')).toEqual(['released by hand  billing', 'granted  report'])
    expect(page.timeline('stock')).toEqual(['released by hand  billing'])
  })
  handedOver.assertHeld()

  const { session } = mailer
  expect(await page.order('revoke', { session })).toEqual({ status: 200, requests: 2 })
  await writing
  expect(await page.order('revoke', { session })).toMatchObject({ status: 404 })
  await shown(() => {
    expect(page.overview.sessions.has(session)).toBe(false)
    expect(page.timeline('smtp')).toEqual(['revoked by hand  mailer'])
    expect(page.timeline('catalogue')).toEqual(['revoked by hand  mailer', 'granted  report'])
  })
})

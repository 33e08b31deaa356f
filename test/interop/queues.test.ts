import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { findBlocks } from '../docs/blocks.js'
import { runProgram } from '../support/run-program.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import type { Order } from './queues/client.js'
import { runtime } from './runtime.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, 'test/interop/queues')
const PATIENT = 60_000

/** The programs of the page, by the file names in their first lines. */
const programs = new Map(
  findBlocks('docs/queues.md', readFileSync(join(root, 'docs/queues.md'), 'utf8')).map(({ code }) => [
    /^\/\/ ([\w-]+)\.ts/.exec(code)![1]!,
    code,
  ]),
)

beforeAll(async () => {
  mkdirSync(join(folder, 'build'), { recursive: true })
  for (const [name, code] of programs) writeFileSync(join(folder, 'build', `${name}.ts`), code)
})

test('the types of the programs fit', async () => {
  const argv = ['node_modules/typescript/bin/tsc', '-p', folder, '--noCheck', 'false']
  await runProgram(process.execPath, argv, { cwd: root, timeLimit: 110_000 })
})

/** A call to the partner. */
interface Call extends Order {
  readonly start: number
  end: number | undefined
}

/** The service that the jobs call. It records the calls. */
class Partner {
  readonly calls: Call[] = []
  /** Customers whose calls it does not answer for now. */
  readonly held = new Set<string>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly #waiting: [string, () => void][] = []

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Answers the calls of a customer that it has held back. */
  answer(customer: string): void {
    this.held.delete(customer)
    for (const [of, respond] of this.#waiting) if (of === customer) respond()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  running(customer: string): number {
    return this.of(customer).filter(({ end }) => end === undefined).length
  }

  of(customer: string): Call[] {
    return this.calls.filter(call => call.customer === customer)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const start = performance.now()
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const call: Call = { ...(JSON.parse(body) as Order), start, end: undefined }
    this.calls.push(call)
    response.once('close', () => (call.end = performance.now()))
    const respond = (): void => void setTimeout(() => response.end('done'), 100)
    if (this.held.has(call.customer)) this.#waiting.push([call.customer, respond])
    else respond()
  }
}

/** Returns the maximum number of these calls that ran at the same time. */
function mostAtOnce(calls: readonly Call[]): number {
  return Math.max(
    ...calls.map(({ start }) => calls.filter(one => one.start <= start && one.end! > start).length),
  )
}

/** Returns the maximum number of these calls that began within a second. */
function mostInASecond(calls: readonly Call[]): number {
  return Math.max(
    ...calls.map(({ start }) => calls.filter(one => one.start >= start && one.start < start + 1000).length),
  )
}

function orders(customer: string, count: number): Order[] {
  return Array.from({ length: count }, (_, order) => ({ customer, order }))
}

interface Setting {
  readonly name: string
  readonly start: () => Promise<{ url: string; kill(): Promise<unknown> }>
  /** A setting of the worker and its replacement, with which the queue detects dead workers earlier. */
  readonly sooner?: [string, string]
}

const settings: readonly Setting[] = [
  {
    name: 'bullmq',
    start: startRedis,
    sooner: ['concurrency: 10', 'concurrency: 10, lockDuration: 5000, stalledInterval: 1000'],
  },
  { name: 'pg-boss', start: startPostgres },
  { name: 'graphile-worker', start: startPostgres },
]

describe.each(settings)('jobs of $name', ({ name, start, sooner }) => {
  let partner: Partner
  let url: string
  let compiled: string
  const workers: ChildProcess[] = []

  async function begin(): Promise<void> {
    const server = await start()
    url = server.url
    partner = new Partner()
    const address = await partner.listen()
    compiled = join(folder, 'build', `${name}-${process.pid}`)
    mkdirSync(compiled, { recursive: true })
    for (const module of ['permits', name]) {
      const code = programs
        .get(module)!
        .replaceAll(/(redis|postgres):\/\/localhost[^']*/g, url)
        .replaceAll('http://localhost:8080', address)
        .replaceAll(...(sooner ?? ['', '']))
        // On a busy machine, the times that calls take to arrive differ more.
        .replaceAll("jitter: '50ms'", "jitter: '500ms'")
      const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
      writeFileSync(join(compiled, `${module}.js`), ts.transpileModule(code, { compilerOptions }).outputText)
    }
    onTestFinished(async () => {
      for (const worker of workers.splice(0)) worker.kill('SIGKILL')
      partner.close()
      rmSync(compiled, { recursive: true })
      await server.kill()
    })
  }

  function startWorker(): ChildProcess {
    const { program, argv } = runtime('Node 24', join(compiled, `${name}.js`))
    const worker = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] })
    workers.push(worker)
    return worker
  }

  async function client(
    action: 'add' | 'recover' | 'unfinished',
    jobs: readonly Order[] = [],
  ): Promise<string> {
    const { program, argv } = runtime('Node 24', join(folder, 'client.ts'))
    const all = [...argv, name, url, action, JSON.stringify(jobs)]
    return (await runProgram(program, all, { cwd: folder, timeLimit: PATIENT })).stdout.trim()
  }

  test('run once each, two of a customer at a time, and no customer waits for another', async () => {
    await begin()
    const jobs = [...orders('anna', 60), ...orders('ben', 6), ...orders('carl', 6)]
    await client('add', jobs)
    for (let worker = 0; worker < 3; worker++) startWorker()
    const isDone = (): boolean => partner.calls.filter(({ end }) => end !== undefined).length >= jobs.length
    await until('all have called', isDone, PATIENT)
    await until('all are done', async () => (await client('unfinished')) === '0', PATIENT)
    const called = partner.calls.map(({ customer, order }) => `${customer} ${order}`)
    expect(called.sort()).toEqual(jobs.map(({ customer, order }) => `${customer} ${order}`).sort())
    const customers = ['anna', 'ben', 'carl'].map(customer => partner.of(customer))
    // On a busy machine, six jobs need not overlap.
    expect(mostAtOnce(customers[0]!)).toBe(2)
    expect(Math.max(...customers.map(mostAtOnce))).toBe(2)
    expect(mostInASecond(partner.calls)).toBeLessThanOrEqual(20)
    const [anna, ben, carl] = customers.map(calls => Math.max(...calls.map(({ end }) => end!))) as [
      number,
      number,
      number,
    ]
    expect(Math.max(ben, carl)).toBeLessThan(anna)
  })

  test('start soon behind a thousand jobs of another customer', async () => {
    await begin()
    await client('add', [...orders('anna', 1000), ...orders('ben', 10)])
    for (let worker = 0; worker < 3; worker++) startWorker()
    const isDone = (): boolean => partner.of('ben').filter(({ end }) => end !== undefined).length === 10
    await until('all of the other customer are done', isDone, PATIENT)
    expect(partner.of('anna').length).toBeLessThan(200)
  })

  test('occupy no worker while they wait, and a dead worker loses its permits and its jobs', async () => {
    await begin()
    partner.held.add('anna')
    // More jobs than all workers can run.
    await client('add', orders('anna', 30))
    const dying = startWorker()
    await until('two of one customer run', () => partner.running('anna') === 2, PATIENT)
    startWorker()
    await client('add', orders('ben', 4))
    const benIsDone = (): boolean => partner.of('ben').filter(({ end }) => end !== undefined).length === 4
    await until('another customer is served', benIsDone, PATIENT)
    expect(partner.of('anna')).toHaveLength(2)
    dying.kill('SIGKILL')
    await until('other jobs have the permits', () => partner.of('anna').length === 4, PATIENT)
    partner.answer('anna')
    await until(
      'all are done',
      async () => {
        await client('recover')
        return (await client('unfinished')) === '0'
      },
      PATIENT,
    )
    expect(new Set(partner.of('anna').map(({ order }) => order)).size).toBe(30)
    expect(partner.of('anna')).toHaveLength(32)
    expect(mostAtOnce(partner.of('anna'))).toBe(2)
    for (const order of orders('anna', 30)) {
      expect(mostAtOnce(partner.of('anna').filter(one => one.order === order.order))).toBe(1)
    }
  })
})

import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { reapedFolder, reapLater } from '../../apps/chaos/servers/reaper.js'
import { queued, until } from '../../packages/conformance/src/time.js'
import { builtFolder } from '../../scripts/interop.mjs'
import { open } from '../../src/index.js'
import { runProgram } from '../support/run-program.js'
import { startRedis } from '../support/servers/redis.js'
import { NestApplication } from './nest-application.js'
import type { Setting } from './nest.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

const server = await startRedis()
const source = server.url
/** A box that stands for another process. */
const other = await open(source)

afterAll(async () => {
  await other.close()
  await server.stop()
})

function startAll(count: number, setting: Setting): Promise<NestApplication[]> {
  return Promise.all(Array.from({ length: count }, () => NestApplication.start(setting)))
}

test.each(['test/interop/nestjs', 'examples/nestjs'])(
  'the types of %s fit, and mistakes do not compile',
  async project => {
    const argv = ['node_modules/typescript/bin/tsc', '-p', project, '--noCheck', 'false']
    await runProgram(process.execPath, argv, { cwd: root, timeLimit: 110_000 })
  },
)

test('an application in ES modules has the same package and the same errors', async () => {
  const argv = [join(builtFolder, 'nestjs/nestjs/esm.mjs')]
  const { stdout } = await runProgram(process.execPath, argv, { cwd: root, timeLimit: 30_000 })
  expect(stdout).toBe('[["door"],true]\nCLOSED\n')
})

test('mistakes have errors that name them', async () => {
  const argv = [join(builtFolder, 'nestjs/nestjs/mistakes.js')]
  const { stdout } = await runProgram(process.execPath, argv, { cwd: root, timeLimit: 30_000 })
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^@Locked of Jobs.locked has no box: Nest must create the instance/),
    'two methods have a job Jobs.Symbol(job): pass a name to @OncePerFleet of one of them',
    expect.stringMatching(/^the source to open must be a URL .* not undefined$/),
    '',
  ])
})

describe.each(['express', 'fastify'] as const)('on %s', platform => {
  test('@Locked excludes the calls of all processes, with increasing tokens', async () => {
    const applications = await startAll(2, { platform, source })
    const file = join(reapedFolder('nest'), platform)
    const countAll = (path: string): Promise<unknown[]> => {
      writeFileSync(file, '0')
      const ask = async (_: unknown, index: number): Promise<unknown> =>
        (await applications[index % 2]!.ask(`count/${path}?file=${file}`, 'POST')).body
      return Promise.all(Array.from({ length: 20 }, ask))
    }
    const locked = (await countAll('locked')) as [number, string][]
    const inOrder = locked.sort(([left], [right]) => left - right)
    expect(inOrder.map(([value]) => value)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    const tokens = inOrder.map(([, token]) => BigInt(token))
    expect(tokens.every((token, index) => index === 0 || token > tokens[index - 1]!)).toBe(true)
    // Control: updates are lost without a lock.
    expect(Math.max(...(await countAll('unlocked')).map(Number))).toBeLessThan(20)
  })

  test('request-scoped and inherited providers have the lock, and other decorators keep their metadata', async () => {
    const application = await NestApplication.start({ platform, source })
    const bodyOf = async (path: string): Promise<unknown> => (await application.ask(path)).body
    const [a, b] = (await Promise.all(
      ['a', 'b'].map(tenant => bodyOf(`scoped?tenant=${tenant}`)),
    )) as string[][]
    expect([a!.slice(0, 2), b!.slice(0, 2)]).toEqual([
      ['a:7', 'all'],
      ['all', 'b:7'],
    ])
    expect(a![2]).toBe(b![2])
    expect(await bodyOf('inherited')).toEqual([
      ['InheritedWork', 'work:3'],
      ['overridden', 'OverriddenWork', 'work:4'],
      ['own', 'overridden', 'OverriddenWork', 'work:5'],
    ])
    expect(await bodyOf('decorated/above')).toEqual(['above', ['above', ['admin']]])
    expect(await bodyOf('decorated/below')).toEqual(['below', ['below', ['admin']]])
  })

  test('the console works under a path', async () => {
    const application = await NestApplication.start({ platform, source })
    expect(await application.ask('admin/locks')).toMatchObject({
      status: 200,
      body: expect.stringContaining('<div id="page">') as string,
    })
    for (const file of ['page.js', 'page.css'])
      expect((await application.ask(`admin/locks/${file}`)).status).toBe(200)
    const grant = await other.mutex(`window on ${platform}`).acquire()
    const [key] = grant.keys
    const release = (token: bigint): ReturnType<NestApplication['ask']> =>
      application.ask('admin/locks/release', 'POST', { key, token: String(token) })
    expect((await release(1n)).status).toBe(404)
    expect(await release(grant.token)).toMatchObject({ status: 200, body: { released: true } })
    await until('the holder notices', () => grant.signal.aborted)
  })

  test('the exception filter answers errors with their status, and reports only those that an operator must know', async () => {
    const application = await NestApplication.start({ platform, source })
    await using grant = await other.mutex('door').acquire()
    const answered = async (path: string): Promise<unknown> => {
      const { status, headers, body } = await application.ask(path)
      expect(headers.get('content-type')).toMatch(/^application\/problem\+json/)
      return [status, (body as { code: string }).code, headers.get('retry-after')]
    }
    expect(grant.keys).toEqual(['door'])
    expect(await answered('busy/door')).toEqual([409, 'BUSY', '1'])
    expect(await answered('middleware')).toEqual([409, 'BUSY', '1'])
    expect(await answered('late/door')).toEqual([503, 'TIMED_OUT', '1'])
    expect(application.stderr).toBe('')
    expect(await answered('lost/window')).toEqual([500, 'LOST', null])
    expect(await answered('invalid')).toEqual([500, 'INVALID_ARGUMENT', null])
    await until('both are logged', () => application.stderr.split('[SignalboxExceptionFilter]').length === 3)
    expect((await application.ask('missing')).status).toBe(404)
  })

  test('the client of a gateway gets the error as an event', async () => {
    const application = await NestApplication.start({ platform, source, gateways: true })
    await using grant = await other.mutex('door').acquire()
    expect(grant.keys).toEqual(['door'])
    const received = async (path: string): Promise<unknown> => (await application.ask(path)).body
    expect(await received('gateway/busy')).toEqual({ status: 'error', message: 'The resource is busy.' })
    expect(application.stderr).toBe('')
    expect(await received('gateway/invalid')).toMatchObject({ status: 'error' })
    await until('it is logged', () => application.stderr.includes('[SignalboxExceptionFilter]'))
  })

  test('a field of GraphQL gets the text and the code of the error', async () => {
    const application = await NestApplication.start({ platform, source, graphql: true })
    await using grant = await other.mutex('door').acquire()
    expect(grant.keys).toEqual(['door'])
    const error = { message: 'The resource is busy.', extensions: { code: 'BUSY', taskBegan: false } }
    expect(await application.query('{ busy(key: "door") }')).toMatchObject({
      data: null,
      errors: [{ ...error, path: ['busy'] }],
    })
    expect(await application.query('{ door(name: "door") { visitor } }')).toMatchObject({
      errors: [{ ...error, path: ['door', 'visitor'] }],
    })
    expect(await application.query('{ door(name: "gate") { visitor } }')).toEqual({
      data: { door: { visitor: 'gate under gate' } },
    })
    expect(application.stderr).toBe('')
    expect(await application.query('{ invalid }')).toMatchObject({
      errors: [{ extensions: { code: 'INVALID_ARGUMENT' } }],
    })
    await until('it is logged', () => application.stderr.includes('[SignalboxExceptionFilter]'))
    expect(application.stderr).not.toContain('[ExceptionsHandler]')
  })

  test('a shutdown rejects queries that wait for a lock before Apollo drains, and lets others end', async () => {
    const application = await NestApplication.start({ platform, source, graphql: true })
    await using grant = await other.mutex('shop').acquire()
    expect(grant.keys).toEqual(['shop'])
    const holding = application.query('{ hold(key: "store") }')
    await until('it holds a lock', () => other.mutex('store').isLocked())
    const waiting = application.query('{ wait(key: "shop") }')
    await queued(other, 'shop', 1)
    application.kill('SIGTERM')
    // Apollo closes connections of queries without a response after 10 seconds.
    expect(await waiting).toMatchObject({
      errors: [{ message: 'The server is shutting down.', extensions: { code: 'CLOSED' } }],
    })
    application.order({ letGo: 'store' })
    expect(await holding).toEqual({ data: { hold: ['store'] } })
    expect(await application.ended).toBe('SIGTERM')
    expect(application.stderr).toBe('')
  })

  test('the client of a microservice gets the text and the code of the error', async () => {
    const application = await NestApplication.start({ platform, source, rpcPort: await freePort() })
    await using grant = await other.mutex('door').acquire()
    expect(grant.keys).toEqual(['door'])
    const received = async (pattern: string): Promise<unknown> =>
      (await application.ask(`microservice/${pattern}`)).body
    const error = { status: 'error', message: 'The resource is busy.', code: 'BUSY', taskBegan: false }
    expect(await received('busy')).toEqual(error)
    expect(application.stderr).toBe('')
    expect(await received('invalid')).toMatchObject({ status: 'error', code: 'INVALID_ARGUMENT' })
    await until('it is logged', () => application.stderr.includes('[SignalboxExceptionFilter]'))
    expect(application.stderr).not.toContain('[RpcExceptionsHandler]')
    expect(await received('other')).toEqual({ status: 'error', message: 'Internal server error' })
  })

  test('the health indicator of terminus and the filter notice an outage', async () => {
    const own = await startRedis()
    const application = await NestApplication.start({ platform, source: own.url })
    const healthy = await application.ask('health')
    expect(healthy).toMatchObject({ status: 200, body: { info: { signalbox: { status: 'up' } } } })
    await own.stop()
    const { status, body } = await application.ask('health')
    expect([status, body]).toMatchObject([503, { error: { signalbox: { status: 'down' } } }])
    for (const path of ['busy/a', 'limited']) {
      const failed = await application.ask(path)
      expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '1'])
    }
  })

  test('a shutdown rejects waiters, lets requests end, and releases all locks', async () => {
    const [application, next] = (await startAll(2, { platform, source })) as [
      NestApplication,
      NestApplication,
    ]
    const elsewhere = next.ask('hold/shop')
    await until('another process holds the lock', () => other.mutex('shop').isLocked())
    const waiting = application.ask('hold/shop')
    await queued(other, 'shop', 1)
    const holding = application.ask('hold/store')
    await until('it holds a lock', () => other.mutex('store').isLocked())
    application.order({ background: 'stock' })
    await application.reported({ background: 'holds' })
    application.kill('SIGTERM')
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'CLOSED' } })
    expect(application.reports).not.toContainEqual({ background: 'aborted' })
    application.order({ letGo: 'store' })
    expect(await holding).toMatchObject({ status: 200, body: 'held' })
    expect(await application.ended).toBe('SIGTERM')
    expect(application.reports).toContainEqual({ background: 'aborted' })
    expect(application.stderr).toBe('')
    for (const key of ['stock', 'store']) expect(await other.mutex(key).isLocked()).toBe(false)
    next.order({ letGo: 'shop' })
    expect((await elsewhere).status).toBe(200)
  })

  test('with drain, a shutdown waits for tasks without a request', async () => {
    const application = await NestApplication.start({ platform, source, drain: 60_000 })
    application.order({ background: 'stock' })
    await application.reported({ background: 'holds' })
    application.kill('SIGTERM')
    application.order({ letGo: 'stock' })
    expect(await application.ended).toBe('SIGTERM')
    expect(application.reports.at(-1)).toEqual({ background: 'done' })
  })

  test.each([
    [{}, 1],
    [{ blockDuration: 1 }, 3],
  ] as const)('of 1,000 requests at once, 5 pass: %o, %i processes', async (options, processes) => {
    expect(await passing(processes, { platform, source, ...options })).toBe(5)
  })
})

test('the example sells each seat once, and one of its processes reports each second', async () => {
  const folder = reapedFolder('nest')
  const text = readFileSync(join(root, 'examples/nestjs/main.ts'), 'utf8')
  const compilerOptions = { ...ts.getDefaultCompilerOptions(), experimentalDecorators: true }
  Object.assign(compilerOptions, { emitDecoratorMetadata: true, target: ts.ScriptTarget.ES2022 })
  Object.assign(compilerOptions, { module: ts.ModuleKind.CommonJS, esModuleInterop: true })
  const program = join(builtFolder, 'nestjs/nestjs/example.js')
  writeFileSync(program, ts.transpileModule(text, { compilerOptions }).outputText)
  const ports = [await freePort(), await freePort()]
  const outputs = ports.map(port => {
    const environment = { PORT: String(port), FILE: join(folder, 'seats.json'), ENGINE: source }
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, ...environment },
      stdio: 'pipe',
    })
    reapLater(child)
    onTestFinished(() => void child.kill('SIGKILL'))
    const output = { text: '', child }
    child.stdout.setEncoding('utf8').on('data', (part: string) => (output.text += part))
    return output
  })
  const buy = (index: number): Promise<Response> =>
    fetch(`http://127.0.0.1:${ports[index % 2]!}/seats`, { method: 'POST', headers: { connection: 'close' } })
  for (const index of [0, 1]) await until('it listens', () => buy(index).then(Boolean, () => false), 60_000)
  const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => buy(index)))
  const count = (status: number): number => answers.filter(answer => answer.status === status).length
  // Two seats were already sold, and at most 30 requests get through.
  expect([count(201), count(409), count(429)]).toEqual([8, 20, 12])
  const seats = await Promise.all(
    answers.filter(({ status }) => status === 201).map(answer => answer.json() as Promise<{ seat: number }>),
  )
  expect(seats.map(({ seat }) => seat).sort((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9, 10])
  outputs[0]!.child.kill('SIGKILL')
  outputs[1]!.text = ''
  await until('the other one reports', () => /^.+: 10 sold$/m.test(outputs[1]!.text), 60_000)
})

test.each([
  ['nest', { blockDuration: 1 }, 1],
  ['nest', {}, 3],
  ['nest-lab', { blockDuration: 1 }, 3],
] as const)('the control: with the storage %s %o, more than 5 pass', async (storage, options, processes) => {
  expect(await passing(processes, { platform: 'express', source, storage, ...options })).toBeGreaterThan(5)
})

/** Sends 1,000 requests to several processes at once, and returns the number that pass. */
async function passing(processes: number, setting: Setting): Promise<number> {
  await server.command('FLUSHALL')
  const applications = await startAll(processes, setting)
  const answers = await Promise.all(
    Array.from({ length: 1000 }, (_, index) => applications[index % processes]!.ask('limited')),
  )
  const refused = answers.filter(({ status }) => status === 429)
  expect(refused.every(({ headers }) => Number(headers.get('retry-after')) >= 0)).toBe(true)
  const passed = answers.filter(({ status }) => status === 200)
  expect(passed.length + refused.length).toBe(1000)
  return passed.length
}

test('@OncePerFleet runs each job once a slot, in the order of either decorator', async () => {
  const applications = await startAll(3, { platform: 'express', source, jobs: true })
  const runs = (): { job: string; slot: string }[] =>
    applications.flatMap(({ reports }) => reports.flatMap(report => ('job' in report ? [report] : [])))
  await until('each has run three times', () => runs().length >= 12, 60_000)
  for (const application of applications) application.kill('SIGTERM')
  for (const application of applications) expect(await application.ended).toBe('SIGTERM')
  const all = runs().map(({ job, slot }) => `${job}: ${slot}`)
  expect(new Set(all).size).toBe(all.length)
  const jobs = ['First on First.run', 'Second on Second.run', 'Third on third']
  expect([...new Set(runs().map(({ job }) => job))].sort()).toEqual(jobs)
})

test('a job of @OncePerFleet whose process is killed runs again in another one, and not after it is done', async () => {
  const applications = await startAll(3, { platform: 'express', source, jobs: true })
  const [first, ...others] = applications as [NestApplication, ...NestApplication[]]
  const runs = (): { slot: string; token: string }[] =>
    applications.flatMap(({ reports }) =>
      reports.flatMap(report => ('job' in report && report.job === 'migrate' ? [report] : [])),
    )
  const migrate = (application: NestApplication): ReturnType<NestApplication['ask']> =>
    application.ask('migrate', 'POST')
  void migrate(first).catch(() => undefined)
  await until('the first runs it', () => runs().length === 1)
  const waiting = others.map(migrate)
  await queued(other, 'migrate', 2)
  first.kill('SIGKILL')
  await until('another one runs it', () => runs().length === 2)
  for (const application of others) application.order({ letGo: 'migrate' })
  for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(201)
  expect((await migrate(others[0]!)).status).toBe(201)
  const [killed, again, ...more] = runs()
  expect([killed!.slot, again!.slot, more]).toEqual(['release 8', 'release 8', []])
  expect(BigInt(again!.token)).toBeGreaterThan(BigInt(killed!.token))
})

import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'
import type { ServerProcess } from '../../apps/chaos/servers/server-process.js'
import { until } from '../../packages/conformance/src/time.js'
import { builtProgram } from '../support/built-program.js'
import { ModelProvider } from '../support/model-provider.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { program, Running } from './command-line.js'
import type { Calls } from './partner.process.js'

/** Maximum duration, in milliseconds. */
const PATIENT = 50_000

const root = fileURLToPath(new URL('../../', import.meta.url))
const examples = join(root, 'examples')

function start(
  name: string,
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input?: string,
): Running {
  const running = new Running(
    process.execPath,
    [builtProgram(`examples/${name}.js`), ...argv],
    examples,
    environment,
    input,
  )
  onTestFinished(() => running.kill('SIGKILL'))
  return running
}

function stopAfterTest<S extends ServerProcess>(server: S): S {
  onTestFinished(() => server.kill())
  return server
}

test('each example has at most 80 lines, and README of the folder names it', () => {
  const readme = readFileSync(join(examples, 'README.md'), 'utf8')
  const programs = readdirSync(examples).filter(name => /\.(ts|sh)$/.test(name))
  expect(programs).toHaveLength(12)
  for (const name of programs) {
    expect(readFileSync(join(examples, name), 'utf8').split('\n').length - 1, name).toBeLessThanOrEqual(80)
    expect(readme).toContain(`[${name}](${name})`)
  }
})

test('web-farm: of two processes that are asked at once, one charges an invoice', async () => {
  const redis = stopAfterTest(await startRedis())
  const postgres = stopAfterTest(await startPostgres())
  const db = new pg.Client({ connectionString: postgres.url })
  await db.connect()
  onTestFinished(() => db.end())
  await db.query('create table invoice (id text primary key, paid_by text, fence bigint not null default 0)')
  await db.query(`insert into invoice (id) values ('42')`)
  const ports = [String(await freePort()), String(await freePort())]
  const servers = ports.map(PORT =>
    start('web-farm', [], { REDIS_URL: redis.url, DATABASE_URL: postgres.url, PORT }),
  )
  await until('both listen', () => servers.every(({ stdout }) => stdout.includes('listening')), PATIENT)
  const ask = async (port: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/invoices/42`, { method: 'POST' })
    return `${response.status} ${await response.text()}`
  }
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(ports[index % 2]!)))
  const { rows } = await db.query<{ paid_by: string }>('select paid_by from invoice')
  expect(new Set(answers)).toEqual(new Set([`200 paid by ${rows[0]!.paid_by}\n`]))
  for (const server of servers) server.kill('SIGTERM')
  for (const server of servers) expect(await server.ended).toMatchObject({ status: 0, stderr: '' })
})

/** Runs an example in one process for each list of arguments, all at once. Returns their output. */
async function runAll(name: string, ...lists: readonly (readonly string[])[]): Promise<string[]> {
  const ends = await Promise.all(lists.map(argv => start(name, argv).ended))
  for (const end of ends) expect(end).toMatchObject({ status: 0, stderr: '' })
  return ends.map(({ stdout }) => stdout)
}

const NOTES = Array.from({ length: 6 }, (_, index) => `note ${index}`)

test('lockfile: no line of several writers is lost', async () => {
  const file = join(reapedFolder('examples'), 'notes.txt')
  await runAll('lockfile', ...NOTES.map(note => [file, note]))
  expect(readFileSync(file, 'utf8').trim().split('\n').sort()).toEqual(NOTES)
})

test('several-locks: transfers in both directions neither deadlock nor lose money', async () => {
  const folder = reapedFolder('examples')
  for (const name of ['anna', 'ben']) writeFileSync(join(folder, name), '100')
  const transfers = NOTES.map((_, index) => (index % 2 === 0 ? ['anna', 'ben'] : ['ben', 'anna']))
  await runAll('several-locks', ...transfers.map(names => [folder, ...names, '5']))
  expect(['anna', 'ben'].map(name => readFileSync(join(folder, name), 'utf8'))).toEqual(['100', '100'])
  const tooMuch = await start('several-locks', [folder, 'anna', 'ben', '1000']).ended
  expect(tooMuch.stderr).toContain('anna has only 100')
})

test('web-locks: of notes that six processes add at once, none is lost', async () => {
  const folder = reapedFolder('examples')
  const said = await runAll('web-locks', ...NOTES.map(note => [folder, 'add', note]))
  expect(said.sort()).toEqual(NOTES.map((_, index) => `${index + 1} notes\n`))
  const [list] = await runAll('web-locks', [folder, 'list'])
  expect(list!.trim().split('\n').sort()).toEqual(NOTES)
})

test('rate-limit: two processes together send what the limit allows', async () => {
  const redis = stopAfterTest(await startRedis())
  const partner = fork(builtProgram('test/integration/partner.process.js'))
  onTestFinished(() => void partner.kill('SIGKILL'))
  const [port] = (await once(partner, 'message')) as [number]
  const environment = {
    REDIS_URL: redis.url,
    PARTNER_URL: `http://127.0.0.1:${port}`,
    LIMIT: '7',
    PER: '1h',
    WAIT: '1s',
  }
  const orders = (name: string): string[] => Array.from({ length: 6 }, (_, index) => `${name}-${index}`)
  const processes = ['a', 'b'].map(name => start('rate-limit', orders(name), environment))
  const ends = await Promise.all(processes.map(({ ended }) => ended))
  expect(ends.map(({ status, stderr }) => [status, stderr])).toEqual([
    [0, ''],
    [0, ''],
  ])
  const lines = ends.flatMap(({ stdout }) => stdout.trim().split('\n'))
  expect(lines.filter(line => line.endsWith(': 200'))).toHaveLength(7)
  expect(lines.filter(line => line.endsWith('the limit is reached'))).toHaveLength(5)
  partner.send('calls')
  const [{ keys }] = (await once(partner, 'message')) as [Calls]
  expect(new Set(keys).size).toBe(7)
})

test('api-limits: two processes together limit a customer, whose streams release their permits', async () => {
  const redis = stopAfterTest(await startRedis())
  const ports = [String(await freePort()), String(await freePort())]
  const servers = ports.map(PORT => start('api-limits', [], { REDIS_URL: redis.url, PORT, LIMIT: '6' }))
  await until('both listen', () => servers.every(({ stdout }) => stdout.includes('listening')), PATIENT)
  const ask = (index: number, customer: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${ports[index % 2]}/answers`, { headers: { 'X-Customer': customer } })
  const first = await Promise.all([ask(0, 'anna'), ask(1, 'anna')])
  const third = await ask(0, 'anna')
  expect([...first, third, await ask(0, 'ben')].map(({ status }) => status)).toEqual([200, 200, 429, 200])
  expect(third.headers.get('retry-after')).toBe('1')
  expect(await first[0]!.text()).toBe('word 1\nword 2\nword 3\nword 4\nword 5\n')
  await first[1]!.body!.cancel()
  const left = async (): Promise<boolean> => (await ask(1, 'anna')).status === 200
  await until('the permit of the stream that was left is free', left, PATIENT)
  for (const server of servers) server.kill('SIGTERM')
})

test(
  'model-quota: two processes keep both limits of a provider, and a customer with many prompts delays no other',
  async () => {
    const redis = stopAfterTest(await startRedis())
    await using model = await ModelProvider.start(30, 4000, 2000)
    const environment = {
      REDIS_URL: redis.url,
      MODEL_URL: model.url,
      REQUESTS: '30',
      TOKENS: '4000',
      PER: '2s',
    }
    const run = (prompts: readonly (readonly [customer: string, prompt: string])[]): Running => {
      const lines = prompts.map(([customer, prompt]) => JSON.stringify({ customer, prompt }))
      return start('model-quota', [], environment, lines.join('\n'))
    }
    const many = Array.from({ length: 100 }, (_, index) => ['anna', 'a'.repeat(40 + index)] as const)
    const first = run(many)
    await until('the first process works', () => model.accepted.length > 30, PATIENT)
    const before = model.accepted.length
    const second = run([1, 2, 3].map(index => ['ben', 'b'.repeat(100 * index)] as const))
    const ends = await Promise.all([first.ended, second.ended])
    expect(ends.map(({ status, stderr }) => [status, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ])
    // A stall of this machine may let calls arrive closer together.
    expect(model.refused).toBeLessThan(5)
    expect(model.accepted).toHaveLength(103)
    // The calls of the customer with few prompts were sent among the next ones of the other.
    const last = model.accepted.findLastIndex(({ prompt }) => prompt.startsWith('b'))
    expect(last - before).toBeLessThan(50)
    // The first window is full at once.
    const { at: begin } = model.accepted[0]!
    const { at: end } = model.accepted.at(-1)!
    const tokens = model.accepted.reduce((sum, call) => sum + call.tokens, 0)
    expect(tokens / 4000).toBeGreaterThan((0.7 * (end - begin)) / 2000)
  },
  PATIENT,
)

test('transaction: a transfer that two processes get twice is applied once', async () => {
  const postgres = stopAfterTest(await startPostgres())
  const lines = ['t1', 't2', 't1'].map(id => JSON.stringify({ id, from: 'anna', to: 'ben', amount: 30 }))
  const run = async (): Promise<string> => {
    const child = spawn(process.execPath, [builtProgram('examples/transaction.js')], {
      env: { ...process.env, DATABASE_URL: postgres.url },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stdin.end(lines.join('\n'))
    expect(await once(child, 'close')).toEqual([0, null])
    return stdout
  }
  const outputs = await Promise.all([run(), run()])
  expect(
    outputs
      .join('')
      .match(/^t\d applied$/gm)
      ?.sort(),
  ).toEqual(['t1 applied', 't2 applied'])
  expect((await run()).split('\n').slice(-3)).toEqual(['anna -60', 'ben 60', ''])
})

test('leader: one process works, and another one after it was killed', async () => {
  const zookeeper = stopAfterTest(await startZooKeeper())
  const ZOOKEEPER_URL = `zookeeper://${zookeeper.address}`
  const first = start('leader', [], { ZOOKEEPER_URL })
  await until('one leads', () => first.stdout.includes('round 2'), PATIENT)
  const second = start('leader', [], { ZOOKEEPER_URL })
  await until('it still leads', () => first.stdout.includes('round 9'), PATIENT)
  expect(second.stdout).toBe('')
  first.kill('SIGKILL')
  await until('the other leads', () => second.stdout.includes('round 2'), PATIENT)
  second.kill('SIGTERM')
  const { status, stdout } = await second.ended
  expect([status, stdout.endsWith(`${second.pid} stops\n`)]).toEqual([0, true])
})

test('schedule: of three hosts, one makes the report of each slot, also after one was killed', async () => {
  const postgres = stopAfterTest(await startPostgres())
  const db = new pg.Client({ connectionString: postgres.url })
  await db.connect()
  onTestFinished(() => db.end())
  await db.query('create table report (slot timestamptz primary key, made_by integer not null)')
  const environment = { DATABASE_URL: postgres.url, EVERY: '1s' }
  const hosts = [1, 2, 3].map(() => start('schedule', [], environment))
  const made = (): string[] =>
    hosts.flatMap(({ stdout }) => stdout.match(/(?<=made the report of ).*/g) ?? []).sort()
  await until('three reports are made', () => made().length >= 3, PATIENT)
  const [first, ...others] = hosts
  first!.kill('SIGKILL')
  const before = made().length
  await until('two more are made', () => made().length >= before + 2, PATIENT)
  for (const host of others) host.kill('SIGTERM')
  for (const { ended } of others) expect(await ended).toMatchObject({ status: 0, stderr: '' })
  await first!.ended
  expect(made()).toEqual([...new Set(made())])
  const { rows } = await db.query<{ slot: Date }>('select slot from report order by slot')
  expect(rows.map(({ slot }) => slot.toISOString())).toEqual(expect.arrayContaining(made()))
})

test('zookeeper-recipe: gets the lock', async () => {
  const zookeeper = stopAfterTest(await startZooKeeper())
  const { status, stdout } = await start('zookeeper-recipe', [], { ZOOKEEPER_HOSTS: zookeeper.address }).ended
  expect([status, stdout]).toEqual([0, 'no one else was here\n'])
})

test('engine: passes the checks of a promise', async () => {
  const { status, stdout } = await start('engine/json-engine', ['P8']).ended
  expect(status).toBe(0)
  expect(stdout).toMatch(/^. pass [1-9]/m)
})

test('testing: the tests with vitest and node:test pass', async () => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const byVitest = new Running(process.execPath, [vitest, 'run', '--root', 'testing'], examples, {})
  const byNode = new Running(
    process.execPath,
    ['--test', builtProgram('examples/testing/charge.node.js')],
    examples,
    {},
  )
  const [one, other] = [await byVitest.ended, await byNode.ended]
  expect([one.status, other.status], one.stderr + other.stdout).toEqual([0, 0])
  expect(one.stdout).toMatch(/4 passed/)
  expect(other.stdout).toMatch(/pass 2/)
})

test('nightly: of three hosts that start the job, one does it', async () => {
  const folder = reapedFolder('examples')
  const [bin, target] = [join(folder, 'bin'), join(folder, 'backups')]
  for (const path of [bin, target]) mkdirSync(path)
  writeFileSync(join(bin, 'signalbox'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`)
  chmodSync(join(bin, 'signalbox'), 0o755)
  const environment = { SIGNALBOX_URL: `file:${folder}/locks`, PATH: `${bin}:${process.env['PATH']}` }
  const hosts = Array.from(
    { length: 3 },
    () => new Running('sh', [join(examples, 'nightly.sh'), target], folder, environment),
  )
  const ends = await Promise.all(hosts.map(({ ended }) => ended))
  expect(ends.map(({ status }) => status)).toEqual([0, 0, 0])
  expect(ends.filter(({ stdout }) => stdout.startsWith('wrote '))).toHaveLength(1)
  expect(readdirSync(target)).toHaveLength(1)
})

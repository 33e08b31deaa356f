import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { reapLater } from '../../apps/chaos/servers/reaper.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { check, checkSync, lock, lockSync, type LockOptions } from 'signalbox-lockfile'
import { Client, lockfile } from '../interop/client.js'
import { contest } from '../interop/contest.js'
import type { Part } from '../interop/rounds.js'
import { builtProgram } from '../support/built-program.js'
import type { LockfilePlan } from './lockfile.process.js'

/** Waits longer than a test may take, without another check in the meantime. */
const PATIENT: LockOptions = { retries: { retries: 1, minTimeout: 60_000 } }

let folder: string
let file: string
/** The folder in which the processes leave notes for each other. */
let notes: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-lockfile-test-'))
  notes = mkdtempSync(join(tmpdir(), 'signalbox-lockfile-notes-'))
  vi.stubEnv('TMPDIR', notes)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
    rmSync(notes, { recursive: true, force: true })
  })
  file = join(folder, 'file')
  writeFileSync(file, '')
})

/** A process that holds the lock. */
interface Holder {
  readonly child: ChildProcess
  /** The next lines of its output. */
  readonly lines: NodeJS.AsyncIterator<string>
  readonly ended: Promise<unknown[]>
}

async function hold(plan: Partial<LockfilePlan> = {}): Promise<Holder> {
  const whole: LockfilePlan = { file, then: 'stay', ...plan }
  const program = builtProgram('test/integration/lockfile.process.js')
  const child = spawn(process.execPath, [program, JSON.stringify(whole)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  reapLater(child)
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const reader: Interface = createInterface(child.stdout)
  const lines = reader[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('held')
  return { child, lines, ended }
}

async function kill({ child, ended }: Holder, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  child.kill(signal)
  await ended
}

/** Returns the names of all notes. */
function notesLeft(): string[] {
  const names = readdirSync(notes, { recursive: true, encoding: 'utf8' })
  return names.filter(name => /^signalbox-lockfile-.*\//.test(name))
}

/** Returns the number of waiting processes. */
function waiting(): number {
  return notesLeft().filter(name => /queue-.*\//.test(name)).length
}

/** Returns the time for which a waiter waits after an event, in milliseconds. */
async function waitsAfter(event: () => unknown, options: LockOptions = PATIENT): Promise<number> {
  const next = lock(file, options)
  await until('it waits', () => waiting() > 0)
  await event()
  return taking(next)
}

/** Waits for a lock, and releases it. Returns the time that the wait took, in milliseconds. */
async function taking(next: ReturnType<typeof lock>): Promise<number> {
  const since = performance.now()
  const release = await next
  const waited = performance.now() - since
  await release()
  return waited
}

/** Starts a process that waits for the lock, and stops it. */
async function stoppedWaiter(): Promise<void> {
  const stopped = await client()
  void stopped.acquire(60_000).catch(() => undefined)
  await until('it waits', () => waiting() > 0)
  stopped.signal('SIGSTOP')
}

function part(more: Partial<Part> = {}): Part {
  const whole = { url: '', name: file, lease: 10_000, renew: true, retry: 60_000, hold: 2, pause: 2 }
  return { ...whole, excludes: true, ...more }
}

async function client(more?: Partial<Part>): Promise<Client> {
  const started = await Client.start(lockfile, part(more))
  onTestFinished(() => started[Symbol.asyncDispose]())
  return started
}

describe('a killed holder', () => {
  test.each([{ sync: false }, { sync: true }])('does not lock the file, %o', async plan => {
    const one = await hold(plan)
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED', file })
    expect(await check(file)).toBe(true)
    await kill(one)
    expect(await check(file)).toBe(false)
    expect(checkSync(file)).toBe(false)
    await taking(lock(file))
    await kill(await hold(plan))
    lockSync(file)()
    expect(readdirSync(folder)).toEqual(['file'])
    expect(notesLeft()).toEqual([])
  })

  test('is noticed by a waiter at once', async () => {
    const holder = await hold()
    expect(await waitsAfter(() => kill(holder))).toBeLessThan(500)
  })

  test('is noticed although the waiter ahead is stopped', async () => {
    const holder = await hold()
    await stoppedWaiter()
    const next = lock(file, PATIENT)
    await until('two wait', () => waiting() === 2)
    await kill(holder)
    expect(await taking(next)).toBeLessThan(800)
  })

  test('is noticed by its note, which it left late', async () => {
    const { child } = await hold()
    await lock(file).catch(() => undefined)
    const name = notesLeft()[0]!
    const process = readlinkSync(join(notes, name))
    rmSync(join(notes, name))
    child.kill('SIGKILL')
    expect(
      await waitsAfter(async () => {
        await pause(100)
        symlinkSync(process, join(notes, name))
      }),
    ).toBeLessThan(600)
  })

  test('that nobody can know of is noticed when its lock is stale', async () => {
    const holder = await hold()
    rmSync(notes, { recursive: true })
    await kill(holder)
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
    const before = new Date(Date.now() - 20_000)
    utimesSync(`${file}.lock`, before, before)
    await taking(lock(file))
  })
})

describe('a waiter', () => {
  test('is woken when the folder is removed by hand', async () => {
    await hold()
    expect(await waitsAfter(() => rmdirSync(`${file}.lock`))).toBeLessThan(500)
  })

  test('that is stopped does not keep those behind it from the lock', async () => {
    const release = await lock(file)
    await stoppedWaiter()
    const next = lock(file, PATIENT)
    await until('two wait', () => waiting() === 2)
    await release()
    expect(await taking(next)).toBeLessThan(1000)
  })

  test('does not wait for those ahead of it that were killed, or terminated as threads', async () => {
    const release = await lock(file)
    const killed = await client()
    void killed.acquire(60_000).catch(() => undefined)
    const threads = Array.from({ length: 2 }, () =>
      startThread('lock(workerData.file, { retries: [60_000] })'),
    )
    await until('they wait', () => waiting() === 3)
    await killed[Symbol.asyncDispose]()
    for (const thread of threads) await thread.terminate()
    expect(await waitsAfter(release)).toBeLessThan(300)
  })

  test('comes before those of another process that come after it', async () => {
    const release = await lock(file)
    const order: string[] = []
    const other = await client()
    const first = other.acquire(60_000).then(() => order.push('other'))
    await until('it waits', () => waiting() > 0)
    const here = Array.from({ length: 3 }, async () => {
      const releaseHere = await lock(file, PATIENT)
      order.push('here')
      await releaseHere()
    })
    await until('two processes wait', () => waiting() === 2)
    await release()
    await first
    await other.release()
    await Promise.all(here)
    expect(order).toEqual(['other', 'here', 'here', 'here'])
  })

  test('fails with ELOCKED when its retries are over', async () => {
    const release = await lock(file)
    const since = performance.now()
    await expect(lock(file, { retries: [50, 100] })).rejects.toMatchObject({ code: 'ELOCKED' })
    expect(performance.now() - since).toBeGreaterThanOrEqual(149)
    await release()
    expect(notesLeft()).toEqual([])
  })
})

test('processes with crashes are never inside at once', async () => {
  const clients = Array.from({ length: 3 }, () => [lockfile, part()] as const)
  const stop = new AbortController()
  const crashing = (async () => {
    while (!stop.signal.aborted) await kill(await hold({ options: { retries: [60_000] } }))
  })()
  const wanted = new Map([['lockfile > lockfile', Infinity]])
  const result = await contest({ clients, wanted, limit: 10_000 })
  stop.abort()
  await crashing
  expect(result.overlaps).toEqual([])
  expect(result.stays).toBeGreaterThan(100)
})

describe('a compromised lock', () => {
  test('does not end the process, which gets a warning', async () => {
    const { child, lines } = await hold({ options: { update: 1000 } })
    rmdirSync(`${file}.lock`)
    expect((await lines.next()).value).toBe('warned ECOMPROMISED')
    expect(child.exitCode).toBe(null)
  })

  test('ends the process if onCompromised throws', async () => {
    const { ended } = await hold({ options: { update: 1000 }, throws: true })
    rmdirSync(`${file}.lock`)
    expect(await ended).toEqual([1, null])
  })

  test('is not released from its new holder', async () => {
    const errors: Error[] = []
    const release = await lock(file, { onCompromised: error => errors.push(error) })
    rmdirSync(`${file}.lock`)
    const other = await hold()
    const { now } = Date
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 5000)
    await expect(release()).rejects.toMatchObject({ code: 'ERELEASED', cause: { code: 'ECOMPROMISED' } })
    await until('it is reported', () => errors.length > 0)
    expect(errors).toMatchObject([{ code: 'ECOMPROMISED' }])
    expect(await check(file)).toBe(true)
    await kill(other)
  })
})

describe('a process that ends', () => {
  test.each([
    [{ then: 'end' }, [0, null]],
    [{ then: 'exit' }, [3, null]],
    [{ then: 'throw' }, [1, null]],
    [{ then: 'end', sync: true }, [0, null]],
  ] as const)('releases its locks, %o', async (plan, end) => {
    const { ended } = await hold(plan)
    expect(await ended).toEqual(end)
    expect(existsSync(`${file}.lock`)).toBe(false)
    expect(notesLeft()).toEqual([])
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('by %s releases its locks', async signal => {
    const { child, ended } = await hold()
    child.kill(signal)
    expect(await ended).toEqual([null, signal])
    expect(existsSync(`${file}.lock`)).toBe(false)
  })

  test('keeps its locks while it handles a signal', async () => {
    const { child, lines, ended } = await hold({ handles: true })
    for (let time = 0; time < 2; time++) {
      child.kill('SIGTERM')
      expect((await lines.next()).value).toBe('handled')
      expect(await check(file)).toBe(true)
    }
    child.kill('SIGINT')
    expect(await ended).toEqual([null, 'SIGINT'])
    expect(existsSync(`${file}.lock`)).toBe(false)
  })
})

test('a thread and the process exclude each other', async () => {
  const release = await lock(file)
  const attempt = async (): Promise<unknown> =>
    (await once(startThread('lock(workerData.file)'), 'message'))[0]
  expect(await attempt()).toBe('ELOCKED')
  await release()
  expect(await attempt()).toBe('held')
})

/** Starts a thread that evaluates an expression for the promise of a lock. */
function startThread(locks: string): Worker {
  const source = `
    const { workerData, parentPort } = require('node:worker_threads')
    import(workerData.module).then(({ lock }) => ${locks}).then(
      () => parentPort.postMessage('held'), error => parentPort.postMessage(error.code))`
  const module = builtProgram('packages/lockfile/src/index.js')
  const thread = new Worker(source, { eval: true, workerData: { module, file } })
  onTestFinished(() => thread.terminate().then(() => undefined))
  return thread
}

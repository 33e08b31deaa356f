import { fork } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { MutexService, MutexTimeoutError } from '../../apps/mutex/mutex-service.js'
import { ClosedError, LostError, open, UnavailableError } from '../../src/index.js'
import { builtProgram } from '../support/built-program.js'
import { overlaps, type Interval } from '../../apps/chaos/check/intervals.js'
import { runProgram } from '../support/run-program.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import type { MutexOrder, MutexStep } from './mutex.process.js'

const TASKS = 10
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.stop()
})

function service(url: string, waitMillis = 10_000, log?: (line: string) => void): MutexService {
  const made = new MutexService({ url, leaseSeconds: 5, waitMillis, ...(log && { log }) })
  onTestFinished(() => made.close())
  return made
}

/** Returns the interval in which each task worked. */
function workOf(steps: readonly { readonly line: string; readonly at: bigint }[]): Interval[] {
  const begun = new Map<string, bigint>()
  const found: Interval[] = []
  for (const { line, at } of steps) {
    const [, what, who = ''] = /^process (start|end) (\d+)$/.exec(line) ?? []
    if (what === 'start') begun.set(who, at)
    else if (what === 'end') found.push({ who, from: begun.get(who)!, to: at })
  }
  return found
}

/** Returns the lines of one part of the demo. Their times are their positions. */
function part(lines: readonly string[], name: string): { line: string; at: bigint }[] {
  const begin = lines.findIndex(line => line.startsWith(`${name} part start`))
  const end = lines.indexOf(`${name} part finish`)
  expect(begin).toBeGreaterThanOrEqual(0)
  expect(end).toBeGreaterThan(begin)
  return lines.slice(begin + 1, end).map((line, index) => ({ line, at: BigInt(index) }))
}

describe('the demo', () => {
  async function played(url: string): Promise<string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-mutex-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const program = builtProgram('../dist/apps/mutex/main.js')
    const argv = url === '' ? [program] : [program, '--engine', url]
    const { stdout, stderr } = await runProgram(process.execPath, argv, { cwd: folder, timeLimit: 50_000 })
    expect(stderr).toBe('')
    return stdout.trimEnd().split('\n')
  }

  test.each([
    ['Redis', () => redis.url],
    ['the file engine, which it uses when none is named', () => ''],
    ['the memory of its process', () => 'memory:'],
  ])('shows ten tasks and an outlived lease, on %s', async (_, url) => {
    const lines = await played(url())

    const parallel = workOf(part(lines, 'parallel'))
    expect(parallel).toHaveLength(TASKS)
    expect(overlaps(parallel).length).toBeGreaterThan(0)

    const locked = part(lines, 'locked')
    expect(workOf(locked)).toHaveLength(TASKS)
    expect(overlaps(workOf(locked))).toEqual([])
    for (let task = 1; task <= TASKS; task++) {
      const at = (step: string): number => locked.findIndex(({ line }) => line === `${step} ${task}`)
      const places = ['wait', 'Lock by', 'process start', 'process end', 'Unlock by'].map(at)
      expect(places).toEqual([...places].sort((one, other) => one - other))
      expect(places[0]).toBeGreaterThanOrEqual(0)
    }
    const created = ids(locked, `^create key : lock_id=(${UUID})$`)
    const deleted = ids(locked, `^delete key : lock_id expect=(${UUID}) actual=\\1$`)
    expect(new Set(created).size).toBe(TASKS)
    expect(deleted).toEqual(created)

    const danger = part(lines, 'danger')
    expect(danger.map(({ line }) => line)).toContain('inside at once : 2 and 3')
    expect(together(workOf(danger))).toContain('2 3')
    const [first = '', second = ''] = ids(danger, `^create key : lock_id=(${UUID})$`)
    expect(danger.map(({ line }) => line)).toContain(`delete key : lock_id expect=${first} actual=${second}`)

    const safe = part(lines, 'safe')
    const said = safe.map(({ line }) => line)
    expect(together(workOf(safe))).not.toContain('2 3')
    const [own = '', others = ''] = ids(safe, `^create key : lock_id=(${UUID})$`)
    expect(said).toContain(`delete key : lock_id expect=${own} actual=${others}`)
    expect(said).toContain('signal of 1 aborted : true')
    expect(said).toContain('write by 1 : rejected by the fence, the value is the result of 2')
    expect(said.filter(line => line.startsWith('release refused : '))).toHaveLength(1)
  })

  test('reports in one line what it can not use', async () => {
    await expect(played('redis://127.0.0.1:1')).rejects.toThrow(
      /ended with status 1\n(?:.*\n)*\n?error: .*127/,
    )
    await expect(played('gopher:x')).rejects.toThrow(/ended with status 2/)
  })

  function ids(steps: readonly { line: string }[], pattern: string): string[] {
    return steps.flatMap(({ line }) => new RegExp(pattern).exec(line)?.[1] ?? [])
  }

  /** Returns the pairs of tasks that worked at the same time. */
  function together(intervals: readonly Interval[]): string[] {
    return overlaps(intervals).map(pair => [...pair.map(({ who }) => who)].sort().join(' '))
  }
})

test('ten processes work at once without the mutex, and one after another with it', async () => {
  const steps: { line: string; at: bigint }[] = []
  const processes = Array.from({ length: TASKS }, (_, index) => {
    const argv = [redis.url, 'ten processes', String(index + 1)]
    const child = fork(builtProgram('test/integration/mutex.process.js'), argv, { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    child.on('message', ({ line, at }: MutexStep) => steps.push({ line, at: BigInt(at) }))
    const until = async (line: string): Promise<void> => {
      for await (const [step] of on(child, 'message')) if ((step as MutexStep).line === line) return
    }
    const ready = until('ready')
    return {
      ready,
      async order(order: MutexOrder): Promise<void> {
        const done = order === 'end' ? once(child, 'exit') : until('done')
        child.send(order)
        await done
      },
    }
  })
  await Promise.all(processes.map(({ ready }) => ready))

  await Promise.all(processes.map(each => each.order('work')))
  const parallel = workOf(steps.splice(0))
  expect(parallel).toHaveLength(TASKS)
  expect(overlaps(parallel).length).toBeGreaterThan(0)

  await Promise.all(processes.map(each => each.order('lockedWork')))
  const locked = workOf(steps)
  expect(locked).toHaveLength(TASKS)
  expect(overlaps(locked)).toEqual([])
  const told = (what: string): number => steps.filter(({ line }) => line.startsWith(what)).length
  expect([told('create key'), told('delete key')]).toEqual([TASKS, TASKS])
  await Promise.all(processes.map(each => each.order('end')))
})

describe('the service', () => {
  test('gives a mutex with a UUID of its own, which the label of its holder shows', async () => {
    const one = service(redis.url)
    await using box = await open(redis.url)
    const mutex = await one.waitForSingleObject('shown')
    expect(mutex.lockId).toMatch(new RegExp(`^${UUID}$`))
    expect(mutex.key).toBe('shown')
    mutex.assertHeld()
    for await (const { holders } of box.inspect('shown')) {
      expect(holders.map(({ label, token }) => [label, token])).toEqual([[mutex.lockId, mutex.token]])
    }
    await mutex.release()
    await mutex.release()
    const next = await one.waitForSingleObject('shown')
    expect(next.lockId).not.toBe(mutex.lockId)
    expect(next.token).toBeGreaterThan(mutex.token)
    await next[Symbol.asyncDispose]()
    expect(await box.mutex('shown').tryAcquire()).toBeDefined()
  })

  test('names the mutex when the wait is over, and leaves nothing behind', async () => {
    const one = service(redis.url)
    await using _mutex = await one.waitForSingleObject('wanted')
    for (const waitMillis of [0, 30]) {
      const failure = await service(redis.url, waitMillis)
        .waitForSingleObject('wanted')
        .catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(MutexTimeoutError)
      expect(failure).toMatchObject({
        name: 'MutexTimeoutError',
        mutex: 'wanted',
        key: 'wanted',
        code: 'TIMED_OUT',
        message: `mutex wanted was not free within ${waitMillis} ms`,
      })
    }
    await using box = await open(redis.url)
    for await (const { waiters } of box.inspect('wanted')) expect(waiters).toEqual([])
  })

  test('a lost mutex is not released, and its next holder keeps it', async () => {
    const told: string[] = []
    const forgetful = new MutexService({
      url: redis.url,
      leaseSeconds: 0.05,
      waitMillis: 0,
      renew: false,
      log: line => told.push(line),
    })
    onTestFinished(() => forgetful.close())
    const mutex = await forgetful.waitForSingleObject('lost')
    const next = await service(redis.url).waitForSingleObject('lost')
    expect(mutex.signal.aborted).toBe(true)
    expect(() => mutex.assertHeld()).toThrow(LostError)
    await expect(mutex.release()).rejects.toThrow(LostError)
    await expect(mutex[Symbol.asyncDispose]()).resolves.toBeUndefined()
    next.assertHeld()
    expect(told).toEqual([
      `create key : lock_id=${mutex.lockId}`,
      `delete key : lock_id expect=${mutex.lockId} actual=${next.lockId}`,
    ])
  })

  test("a mutex whose release fails keeps the block's result", async () => {
    await using server = await startRedis()
    const one = service(server.url)
    const block = async (): Promise<string> => {
      await using _mutex = await one.waitForSingleObject('key')
      await server.kill()
      return 'charged'
    }
    expect(await block()).toBe('charged')
  })

  test('tries again to connect at the next wait, and opens nothing after its end', async () => {
    await using down = await startRedis()
    await down.kill()
    const one = service(down.url)
    await expect(one.waitForSingleObject('key')).rejects.toThrow(UnavailableError)
    await down.start()
    await (await one.waitForSingleObject('key')).release()
    await one.close()
    await expect(one.waitForSingleObject('key')).rejects.toThrow(ClosedError)
  })
})

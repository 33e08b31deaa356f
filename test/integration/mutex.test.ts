import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { MutexService, MutexTimeoutError } from '../../apps/mutex/mutex-service.js'
import { ClosedError, LostError, open, UnavailableError } from '../../src/index.js'
import { builtProgram } from '../support/built-program.js'
import { runProgram } from '../support/run-program.js'
import { startRedis } from '../support/servers/redis.js'

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

const redis = await startRedis()
afterAll(() => redis.stop())

function service(url: string, waitMillis = 10_000, log?: (line: string) => void): MutexService {
  const made = new MutexService({ url, leaseSeconds: 5, waitMillis, ...(log && { log }) })
  onTestFinished(() => made.close())
  return made
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

  test('shows an outlived lease without and with fencing, on the file engine if none is named', async () => {
    const lines = await played('')
    expect(lines).toContain('inside at once : 2 and 3')
    expect(lines).toContain('signal of 1 aborted : true')
    expect(lines).toContain('write by 1 : rejected by the fence, the value is the result of 2')
    expect(lines.filter(line => line.startsWith('release refused : '))).toHaveLength(1)
  })

  test('reports in one line what it can not use', async () => {
    await expect(played('redis://127.0.0.1:1')).rejects.toThrow(
      /ended with status 1\n(?:.*\n)*\n?error: .*127/,
    )
    await expect(played('gopher:x')).rejects.toThrow(/ended with status 2/)
  })
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
